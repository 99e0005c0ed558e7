//! Tests of the binary.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use sluicegate_simulator::{Protocol, scenario};
use testkit::{Connection, End};

use crate::samples::{path, sample};

const BINARY: &str = env!("CARGO_BIN_EXE_sluicegate-simulator");

#[test]
fn the_scenarios_are_listed() {
    let output = Command::new(BINARY).arg("--list").output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let known: Vec<_> = scenario::all().iter().chain(scenario::models()).collect();
    assert_eq!(text.lines().count(), known.len());
    for (line, scenario) in text.lines().zip(known) {
        assert!(
            line.starts_with(scenario.template) && line.ends_with(scenario.about),
            "{line}"
        );
    }
}

#[test]
fn the_drawn_faults_are_listed() {
    assert_faults_are_listed(&["--faults", "50"], 0..=49);
}

/// The list begins at the requested seed, and wraps around after the last seed.
#[test]
fn the_list_of_faults_begins_anywhere() {
    assert_faults_are_listed(
        &["--faults", "3", "--first", "4000000000000000000"],
        4_000_000_000_000_000_000..=4_000_000_000_000_000_002,
    );
    assert_faults_are_listed(
        &["--faults", "3", "--first", "18446744073709551614"],
        [u64::MAX - 1, u64::MAX, 0],
    );
}

fn assert_faults_are_listed(arguments: &[&str], seeds: impl IntoIterator<Item = u64>) {
    let output = Command::new(BINARY).args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let expected: Vec<_> = seeds.into_iter().map(line).collect();
    let listed: Vec<Vec<_>> = text
        .lines()
        .map(|line| line.split_whitespace().map(str::to_owned).collect())
        .collect();
    assert_eq!(listed, expected);
}

/// The words in the line of a seed.
fn line(seed: u64) -> Vec<String> {
    let words = [true, false].map(|stream| {
        let fault = scenario::fault(seed, stream);
        [fault.template, if fault.loses { "loses" } else { "keeps" }]
    });
    [seed.to_string()]
        .into_iter()
        .chain(words.concat().into_iter().map(str::to_owned))
        .collect()
}

#[test]
fn the_model_names_the_scenario() {
    let mut process = Process(
        Command::new(BINARY)
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut line = String::new();
    BufReader::new(process.0.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line
        .trim()
        .strip_prefix("sluicegate-simulator listens on http://")
        .unwrap()
        .trim_end_matches("/v1");
    let mut client = Connection::open(address.parse().unwrap());
    client.post(
        path(Protocol::Chat),
        &sample(Protocol::Chat, "any", "Hello.", true),
    );
    assert_eq!(client.response().end, End::Complete);
    client.post(
        path(Protocol::Chat),
        &sample(Protocol::Chat, "reset-after-2", "Hello.", true),
    );
    let answer = client.response();
    assert_eq!((answer.chunks().len(), answer.end), (2, End::Reset));
}

/// A child process that is killed at the end of the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
