//! D13: the log cannot be written.

use std::fs::OpenOptions;
use std::io::{self, BufRead as _, BufReader};
use std::process::Stdio;
use std::thread;

use serde_json::{Value, json};
use simulator::Simulator;
use testkit::{Connection, Gateway, Request, TEXT, await_that};

use crate::GATEWAY;

/// A gateway with a very long model id that every log line contains, so that the log fills up soon.
struct Talkative {
    server: Gateway,
    question: Request,
    _simulator: Simulator,
}

impl Talkative {
    fn logging_to(place: impl Into<Stdio>) -> Self {
        let simulator = Simulator::honest().unwrap();
        let id = "m".repeat(64 << 10);
        let config = format!(
            "[[upstreams]]\nname = \"only\"\nprotocol = \"chat\"\nbase_url = \"{}\"\n\
             [[models]]\nid = \"{id}\"\nfamily = \"text\"\nprotocols = [\"chat\"]\n\
             targets = [{{ upstream = \"only\", model = \"theirs\" }}]\n",
            simulator.base_url()
        );
        let body = json!({"model": id, "messages": [{"role": "user", "content": "Hello."}]});
        let question = Request::post("/v1/chat/completions", &body).bearer(TEXT);
        Self {
            server: GATEWAY.logging_to(place, &config),
            question,
            _simulator: simulator,
        }
    }

    fn lost(&self) -> f64 {
        self.server.metric("sluicegate_log_dropped_total")
    }

    /// Sends requests until log lines are lost, and asserts that every response is correct.
    fn serves_while_lines_are_lost(&self) {
        let mut connection = Connection::open(self.server.address());
        let mut requests = 0;
        while self.lost() == 0.0 {
            assert!(requests < MANY, "no line was lost after {MANY} requests");
            connection.send(self.question.bytes());
            assert_eq!(connection.response().status, 200);
            requests += 1;
        }
        assert_eq!(self.server.metric("sluicegate_panics_total"), 0.0);
    }

    fn leaves(mut self) {
        self.server.signal("INT");
        assert!(self.server.wait().success());
    }
}

/// A stalled log reader delays no request: log lines are dropped and counted.
#[test]
fn d13_stalled_log_reader_delays_no_request() {
    let (_reader, writer) = io::pipe().unwrap();
    let talkative = Talkative::logging_to(writer);
    talkative.serves_while_lines_are_lost();
    talkative.leaves();
}

/// A closed log pipe does not end the process: dropped log lines are counted.
#[test]
fn d13_a_closed_pipe_of_the_log_ends_nothing() {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let talkative = Talkative::logging_to(writer);
    talkative.serves_while_lines_are_lost();
    talkative.leaves();
}

/// A full disk does not end the process: dropped log lines are counted.
#[test]
fn d13_a_full_disk_ends_nothing() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let talkative = Talkative::logging_to(full);
    talkative.serves_while_lines_are_lost();
    talkative.leaves();
}

/// A log reader that stalls and then continues receives every line that was not counted as dropped,
/// and each line is complete.
#[test]
fn d13_log_reports_dropped_lines() {
    let (reader, writer) = io::pipe().unwrap();
    let talkative = Talkative::logging_to(writer);
    talkative.serves_while_lines_are_lost();
    let lines = thread::spawn(move || {
        BufReader::new(reader)
            .lines()
            .map_while(Result::ok)
            .collect::<Vec<_>>()
    });
    await_that("there is room again", || {
        let before = talkative.lost();
        talkative.question.send(talkative.server.address()).status == 200
            && talkative.lost() == before
    });
    talkative.leaves();
    let lines = lines.join().unwrap();
    assert!(
        lines
            .iter()
            .all(|line| serde_json::from_str::<Value>(line).is_ok())
    );
    assert!(
        lines
            .iter()
            .any(|line| line.contains("log lines were dropped"))
    );
}

/// More lines than fit into a pipe and the queue before it.
const MANY: usize = 100_000;
