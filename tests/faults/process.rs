//! D: faults of the process and its machine.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::Duration;

use grammar::Judged as _;
use serde_json::json;
use simulator::Simulator;
use testkit::upstreams::{FaultTest, HASTY, Outcome, honest_text, text_lanes};
use testkit::{Connection, Gateway, NOWHERE, TEXT, await_that, by_shell};

use crate::GATEWAY;

/// A process that was killed starts again at its address without any repair.
#[test]
fn d06_killed_at_any_moment_it_starts_again() {
    let mut killed = GATEWAY.without_engines("");
    for turn in 0..10 {
        let address = killed.address();
        let mut connections: Vec<_> = (0..turn).map(|_| Connection::open(address)).collect();
        for connection in &mut connections {
            connection.send(b"GET /v1/mod");
        }
        killed.signal("KILL");
        assert!(!killed.wait().success());
        let mut command = GATEWAY.command();
        command.args([
            "serve",
            "--listen",
            &address.to_string(),
            "--admin",
            "127.0.0.1:0",
        ]);
        killed = Gateway::run(
            &command,
            Stdio::piped(),
            Some(GATEWAY.file("sluicegate.toml", NOWHERE)),
        );
        assert_eq!(killed.get(TEXT, "/v1/models").status, 200, "turn {turn}");
    }
}

/// After the process was suspended, requests whose deadlines have passed fail cleanly, a request
/// that arrived meanwhile is served, and the gateway works as before.
#[test]
fn d12_resumed_process_fails_only_overdue_requests() {
    let test = FaultTest::named(GATEWAY, "stall-after-2", HASTY);
    let mut open: Vec<_> = text_lanes()
        .into_iter()
        .map(|lane| (lane, test.open(lane, true)))
        .collect();
    test.await_requests(open.len());
    test.gateway.signal("STOP");
    let asked = open.len();
    let late = text_lanes()[0];
    open.push((late, test.open(late, true)));
    let is_asked = test.simulator.wait_for_requests(asked + 1, PAST_LIMITS);
    assert!(!is_asked, "a suspended process sends no requests");
    test.gateway.signal("CONT");
    test.await_requests(asked + 1);
    for (lane, mut connection) in open {
        let got = Outcome::new(
            lane,
            connection.response(),
            honest_text(lane, true, "Hello, you there."),
        );
        assert!(got.response.is_complete(), "{lane:?}");
        got.stalls();
    }
    test.end();
}

/// Uploads beyond the body memory limit are refused with 503 before the system's memory limit is
/// reached.
#[test]
fn d15_uploads_over_the_memory_limit_are_refused() {
    // No model is embedded: a single one would exceed the limit.
    let config = "[limits]\njson_body = \"8MiB\"\nedit_body = \"8MiB\"\nbody_memory = \"32MiB\"\n"
        .to_owned()
        + NOWHERE;
    let mut command = by_shell("exec prlimit --data=268435456 \"$@\"", &GATEWAY.command());
    command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    let server = Gateway::run(
        &command,
        Stdio::piped(),
        Some(GATEWAY.file("sluicegate.toml", &config)),
    );
    let body =
        json!({"model": "nobody", "input": [{"role": "user", "content": "x".repeat(7 << 20)}]});
    let question = testkit::Request::post("/v1/responses", &body)
        .bearer(TEXT)
        .bytes();
    // Each holds all of its body but the end, until it is refused: 32 of 7 MiB, where 4 have room.
    let mut open: Vec<_> = (0..32)
        .map(|_| Connection::open(server.address()))
        .collect();
    let all_but_the_end = &question[..question.len() - 1];
    std::thread::scope(|scope| {
        for connection in &mut open {
            // A client that is refused in the middle of its upload cannot send the rest.
            scope.spawn(|| connection.try_send(all_but_the_end));
        }
    });
    let refused = "sluicegate_requests_total{route=\"responses\",status=\"503\"";
    await_that("those without room are refused", || {
        server.sum(refused) >= 28.0
    });
    drop(open);
    server.await_quiet();
    assert_eq!(server.metric("sluicegate_panics_total"), 0.0);
    assert_eq!(server.get(TEXT, "/v1/models").status, 200, "it lives");
}

/// A key file that cannot be read is a startup error that names it; a key file that is readable by
/// everyone causes a warning.
#[test]
fn d16_key_files_are_looked_at() {
    let simulator = Simulator::honest().unwrap();
    let missing =
        "[[upstreams]]\nname = \"u\"\nprotocol = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
                   api_key = { file = \"/nonexistent/upstream.key\" }\n"
            .to_owned()
            + NOWHERE;
    let file = GATEWAY.file("sluicegate.toml", &missing);
    let output = GATEWAY
        .command()
        .args(["serve", "--config"])
        .arg(&file.0)
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && message.contains("/nonexistent/upstream.key"),
        "{message}"
    );

    for (mode, is_warned) in [(0o644, true), (0o600, false)] {
        let key = GATEWAY.file("upstream.key", "simulator-secret");
        fs::set_permissions(&key.0, Permissions::from_mode(mode)).unwrap();
        let config = missing.replace("/nonexistent/upstream.key", key.0.to_str().unwrap());
        let config = config.replace("http://127.0.0.1:1/v1", &simulator.base_url());
        let server = GATEWAY.configured(&config);
        assert_eq!(server.get(TEXT, "/v1/models").status, 200);
        let warning = || {
            server
                .log
                .lock()
                .unwrap()
                .contains("the key file is world-readable")
        };
        if is_warned {
            await_that("it is warned of", warning);
        } else {
            await_that("the request is logged", || {
                server.log.lock().unwrap().contains("\"route\":\"models\"")
            });
            assert!(!warning());
        }
        assert!(!server.log.lock().unwrap().contains("simulator-secret"));
    }
}

/// The limits of [`HASTY`] have passed by then.
const PAST_LIMITS: Duration = Duration::from_millis(1_500);
