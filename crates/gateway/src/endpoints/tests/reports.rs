//! The reports of requests, and the end of requests by an operator.

use std::sync::Arc;

use engine::{Stop, TextEvent, Usage};
use serde_json::{Value, json};

use crate::exchange::record::Record;
use crate::testing::{Engine, FIRST, TestGateway};

fn hello() -> Value {
    json!({"model": "text", "messages": [{"role": "user", "content": "Hello."}]})
}

/// An engine that answers with one text.
fn answering() -> Engine {
    let usage = Usage {
        input: 71,
        cache_read: 30,
        output: 13,
        ..Usage::default()
    };
    Engine {
        text: vec![
            TextEvent::Text("Hi.".to_owned()),
            TextEvent::Finished {
                stop: Stop::End,
                usage: Some(usage),
            },
        ],
        ends: true,
        ..Engine::default()
    }
}

/// The newest report as the admin API shows it.
fn newest(gateway: &TestGateway) -> Value {
    let (reports, _) = gateway.state.history.since(0);
    serde_json::to_value(&**reports.last().unwrap()).unwrap()
}

#[tokio::test]
async fn a_report_says_how_the_request_was_admitted_tried_and_counted() {
    let quota = "[[quotas]]\nkey = \"*\"\nrequests_per_minute = 10\n";
    let gateway = TestGateway::new(answering(), quota);
    let reply = gateway.post(FIRST, "/v1/chat/completions", &hello()).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let report = newest(&gateway);
    assert_eq!(report["route"], "chat_completions");
    assert_eq!(report["key"], "first");
    assert_eq!(report["model"], "text");
    assert_eq!(report["outcome"], "completed");
    assert_eq!(report["status"], 200);
    assert_eq!(report["input_tokens"], 71);
    assert_eq!(report["cache_read_tokens"], 30);
    assert_eq!(report["output_tokens"], 13);
    assert_eq!(
        report["admission"]["limits"],
        json!([
            {"limit": "key *", "key": "first"},
        ])
    );
    assert_eq!(report["admission"]["refused_by"], Value::Null);
    let attempt = &report["attempts"][0];
    assert_eq!(attempt["target"], "embedded");
    assert_eq!(attempt["road"], "embedded");
    assert_eq!(attempt["result"], "answered");
    assert!(gateway.state.live.list().is_empty());
}

#[tokio::test]
async fn a_report_names_the_limit_that_refused_the_request() {
    let quota = "[[quotas]]\nkey = \"*\"\nrequests_per_minute = 1\n";
    let gateway = TestGateway::new(answering(), quota);
    for status in [200, 429] {
        let reply = gateway.post(FIRST, "/v1/chat/completions", &hello()).await;
        assert_eq!(reply.status, status, "{}", reply.body);
    }
    let report = newest(&gateway);
    assert_eq!(report["outcome"], "shed");
    assert_eq!(report["code"], "rate_limit_exceeded");
    let refused = &report["admission"]["refused_by"];
    assert_eq!(refused["limit"], "key *");
    assert_eq!(refused["dimension"], "requests_per_minute");
    assert_eq!(report["attempts"], json!([]));
}

/// A client chooses the name of a model behind a pattern. Reports are retained, so they have the beginning
/// only.
#[tokio::test]
async fn a_report_has_the_beginning_of_a_long_model_name() {
    let mut record = Record::new(
        Arc::default(),
        Arc::default(),
        Arc::default(),
        "req_1".to_owned(),
    );
    record.key = Some("first".into());
    record.model = Some("é".repeat(1000));
    let history = Arc::clone(&record.history);
    drop(record);
    let report = history.find("req_1").unwrap();
    assert_eq!(report.model.as_deref(), Some("é".repeat(128).as_str()));
}

/// Nobody without a key can displace the reports of other requests.
#[tokio::test]
async fn a_request_without_a_valid_key_has_no_report() {
    let gateway = TestGateway::new(answering(), "");
    let reply = gateway
        .post("no-key", "/v1/chat/completions", &hello())
        .await;
    assert_eq!(reply.status, 401, "{}", reply.body);
    assert!(gateway.state.history.since(0).0.is_empty());
}

/// An operator can end a request before its answer, and within a stream. The engine is cancelled, and
/// the permit is released.
#[tokio::test]
async fn an_operator_ends_a_request_in_flight() {
    for (stream, status) in [(false, 403), (true, 200)] {
        let engine = Engine {
            text: vec![TextEvent::Text("Hi.".to_owned())],
            ..Engine::default()
        };
        let gateway = Arc::new(TestGateway::new(engine, ""));
        let mut body = hello();
        body["stream"] = stream.into();
        let reply = tokio::spawn(gateway.post(FIRST, "/v1/chat/completions", &body));
        let id = loop {
            let live = serde_json::to_value(gateway.state.live.list()).unwrap();
            let is_begun = !stream || live[0]["state"] == "streaming";
            match live[0]["request_id"].as_str().filter(|_| is_begun) {
                Some(id) => break id.to_owned(),
                None => tokio::task::yield_now().await,
            }
        };
        assert!(!gateway.state.end_request("req_unknown"));
        assert!(gateway.state.end_request(&id));
        let reply = reply.await.unwrap();
        assert_eq!(reply.status, status, "{}", reply.body);
        let report = newest(&gateway);
        assert_eq!(report["request_id"], Value::from(id));
        assert_eq!(report["outcome"], "ended_by_operator");
        assert_eq!(gateway.in_flight(), (0, 0));
    }
}
