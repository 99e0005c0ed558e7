//! The admin listener, and that none of its endpoints are on the clients' listener.

use serde_json::json;
use testkit::{Request, TEXT, await_that};

use crate::GATEWAY;

/// Health and metrics are served on the admin address, and are 404 on the client address.
#[test]
fn a11_health_and_metrics_are_on_the_admin_address_alone() {
    let server = GATEWAY.shared();
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(
            Request::get(path).send(server.admin.unwrap()).status,
            200,
            "{path}"
        );
        assert_eq!(
            Request::get(path)
                .bearer(TEXT)
                .send(server.address())
                .status,
            404,
            "{path}"
        );
    }
    assert_eq!(
        Request::get("/v1/models")
            .bearer(TEXT)
            .send(server.admin.unwrap())
            .status,
        404
    );
    assert_eq!(
        Request::get("/livez")
            .method("POST")
            .send(server.admin.unwrap())
            .status,
        405
    );
}

#[test]
fn request_is_counted_and_logged_once_without_secrets() {
    let server = GATEWAY.configured("[limits]\nconcurrency = 4\n");
    let prompt = "canary-prompt-7f3a";
    let body = json!({"model": "alt-flash", "messages": [{"role": "user", "content": prompt}], "max_tokens": 4});
    let answer = server.post(TEXT, "/v1/chat/completions", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let id = answer.header("x-request-id").unwrap().to_owned();
    assert_eq!(answer.header("request-id"), Some(id.as_str()));
    await_that("the log line is written", || {
        server.log.lock().unwrap().contains(&id)
    });

    let log = server.log.lock().unwrap().clone();
    let line = log.lines().find(|line| line.contains(&id)).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(
        (
            &line["route"],
            &line["key"],
            &line["model"],
            &line["status"],
            &line["outcome"]
        ),
        (
            &json!("chat_completions"),
            &json!("text-key"),
            &json!("alt-flash"),
            &json!(200),
            &json!("incomplete")
        )
    );
    assert_eq!(line["output_tokens"], 4);
    assert_eq!(log.matches(&id).count(), 1);
    for secret in [prompt, TEXT] {
        assert!(!log.contains(secret), "{secret} in the log");
    }
    let metrics = Request::get("/metrics").send(server.admin.unwrap());
    let counted =
        "sluicegate_requests_total{route=\"chat_completions\",status=\"200\",code=\"\"} 1";
    assert!(metrics.text().contains(counted), "{}", metrics.text());
}

/// A client's request id is logged if it is harmless; the response always has the gateway's own
/// request id.
#[test]
fn p03_a_clients_own_request_id_is_logged_and_ours_is_answered() {
    let server = GATEWAY.without_engines("");
    let ask = |id: &str| {
        Request::get("/v1/models")
            .bearer(TEXT)
            .header("x-request-id", id)
            .send(server.address())
    };
    let response = ask("mine-42");
    assert!(response.header("x-request-id").unwrap().starts_with("req_"));
    await_that("the log line is written", || {
        server
            .log
            .lock()
            .unwrap()
            .contains("\"client_request_id\":\"mine-42\"")
    });
    let hostile = ask("x\" , evil");
    let ours = hostile.header("x-request-id").unwrap().to_owned();
    await_that("the log line is written", || {
        server.log.lock().unwrap().contains(&ours)
    });
    assert!(!server.log.lock().unwrap().contains("evil"));
}
