//! The log of incidents.

use std::fs;

use serde_json::{Value, json};
use simulator::{Protocol, Simulator, scenario};
use testkit::upstreams::{HASTY, closed_port};
use testkit::{Config, await_that};

use crate::GATEWAY;

/// One run with a refused connection, a timeout, an open circuit breaker, a reload that fails, and
/// a shutdown. The log has a line for each, with the word that an operator searches for.
#[test]
fn each_incident_is_found_by_its_usual_word() {
    let stalled = scenario::named("stall-head").unwrap();
    let stalled = Simulator::start(move |request| stalled.play(request)).unwrap();
    let closed = closed_port();
    let honest = Simulator::honest().unwrap();
    let mut gateway = Config::new("")
        .upstream(
            "closed",
            Protocol::Chat,
            &format!("http://{}", closed.local_addr().unwrap()),
            "",
        )
        .upstream("stalled", Protocol::Chat, &stalled.base_url(), HASTY)
        .upstream("honest", Protocol::Chat, &honest.base_url(), "")
        .model(
            "down",
            Protocol::Chat,
            r#"[{ upstream = "closed" }, { upstream = "honest" }]"#,
        )
        .model("slow", Protocol::Chat, r#"[{ upstream = "stalled" }]"#)
        .start(GATEWAY);
    let status = |model: &str, stream: bool| {
        let messages = json!([{"role": "user", "content": "Hello."}]);
        let body = json!({"model": model, "messages": messages, "stream": stream});
        gateway.ask(Protocol::Chat, &body).status
    };
    // Twenty attempts open the breaker.
    assert_eq!([(); 21].map(|()| status("down", false)), [200; 21]);
    assert_eq!(status("slow", true), 504);
    fs::write(gateway.config_path(), "limits = 1").unwrap();
    await_that("the reload has failed", || {
        gateway.sum("sluicegate_config_reloads_total{outcome=\"refused\"}") == 1.0
    });
    gateway.signal("INT");
    assert!(gateway.wait().success());
    await_that("the log is read", || {
        gateway.log.lock().unwrap().contains("shutdown started")
    });

    let log = gateway.log.lock().unwrap().clone();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (level, message, upstream, cause) in [
        (
            "ERROR",
            "upstream request failed",
            "closed",
            "Connection refused",
        ),
        (
            "WARN",
            "upstream request failed",
            "closed",
            "circuit breaker open",
        ),
        ("WARN", "upstream request failed", "stalled", "timeout"),
        ("ERROR", "reload failed", "", ""),
        ("INFO", "shutdown started", "", ""),
    ] {
        let has = |line: &Value, name: &str, part: &str| {
            line[name].as_str().unwrap_or_default().contains(part)
        };
        let is_found = |line: &&Value| {
            line["level"] == level
                && has(line, "message", message)
                && has(line, "upstream", upstream)
                && has(line, "cause", cause)
        };
        assert!(
            lines.iter().any(|line| is_found(&line)),
            "{level} {message:?} {upstream:?} {cause:?}: {log}"
        );
    }
}
