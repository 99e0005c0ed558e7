//! The binary.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use sluicegate_simulator::{Protocol, scenario};

use crate::client::{Client, End};
use crate::samples::{ask, path};

const BINARY: &str = env!("CARGO_BIN_EXE_sluicegate-simulator");

#[test]
fn the_scenarios_are_listed() {
    let output = Command::new(BINARY).arg("--list").output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), scenario::all().len());
    for (line, scenario) in text.lines().zip(scenario::all()) {
        assert!(line.starts_with(scenario.template()) && line.ends_with(scenario.about()), "{line}");
    }
}

#[test]
fn the_drawn_faults_are_listed() {
    let output = Command::new(BINARY).args(["--faults", "50"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for (seed, line) in (0..50).zip(text.lines()) {
        let told: Vec<_> = line.split_whitespace().collect();
        let owed = [true, false].map(|stream| scenario::fault(seed, stream));
        let loses = owed.map(|fault| if fault.loses() { "loses" } else { "keeps" });
        assert_eq!(told, [&seed.to_string(), owed[0].template(), loses[0], owed[1].template(), loses[1]]);
    }
    assert_eq!(text.lines().count(), 50);
}

#[test]
fn the_model_names_the_scenario() {
    let mut process =
        Process(Command::new(BINARY).args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("sluicegate-simulator listens on http://").unwrap().trim_end_matches("/v1");
    let mut client = Client::open(address.parse().unwrap());
    client.post(path(Protocol::Chat), &ask(Protocol::Chat, "any", "Hello.", true));
    assert_eq!(client.answer().end, End::Complete);
    client.post(path(Protocol::Chat), &ask(Protocol::Chat, "reset-after-2", "Hello.", true));
    let answer = client.answer();
    assert_eq!((answer.chunks.len(), answer.end), (2, End::Reset));
}

/// A child that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
