//! Token counts and deadlines of requests to the embedded engines.

mod reports;

use std::time::Duration;

use bytes::Bytes;
use engine::{ImageEvent, ImageUsage, Stop, TextEvent, Usage};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::testing::{Engine, FIRST, TestGateway};

/// The tokens of an embedded engine are counted once per request, on every endpoint, unary and
/// streamed.
#[tokio::test]
async fn tokens_of_embedded_engines_are_counted() {
    let usage = Usage {
        input: 71,
        cache_read: 30,
        output: 13,
        reasoning: 5,
        ..Usage::default()
    };
    let finished = |input_text, input_image, output_image| ImageEvent::Finished {
        picture: Bytes::from_static(b"a picture"),
        usage: ImageUsage {
            input_text,
            input_image,
            output_image,
        },
    };
    let engine = Engine {
        text: vec![
            TextEvent::Text("Hi.".to_owned()),
            TextEvent::Finished {
                stop: Stop::End,
                usage: Some(usage),
            },
        ],
        pictures: vec![finished(5, 7, 11), finished(0, 0, 17)],
        ends: true,
        ..Engine::default()
    };
    let gateway = TestGateway::new(engine, "");
    let counted = || {
        ["input", "output"]
            .map(|of| gateway.metric(&format!("sluicegate_tokens_total{{direction=\"{of}\"}}")))
    };
    let (mut inputs, mut outputs) = (0.0, 0.0);
    for stream in [false, true] {
        for (path, mut body) in requests() {
            body["stream"] = stream.into();
            let (input, output) = if path.contains("images") {
                (12.0, 28.0)
            } else {
                (71.0, 13.0)
            };
            let reply = gateway.post(FIRST, path, &body).await;
            assert_eq!(reply.status, 200, "{path}: {}", reply.body);
            (inputs, outputs) = (inputs + input, outputs + output);
            assert_eq!(
                counted(),
                [Some(inputs), Some(outputs)],
                "{path}, stream: {stream}"
            );
        }
    }
}

/// A unary request to an embedded engine that does not finish fails with 504 at its deadline; the
/// engine is cancelled, and the permit is released.
#[tokio::test(start_paused = true)]
async fn u21_plain_requests_to_embedded_engines_have_a_deadline() {
    let engine = Engine {
        text: vec![TextEvent::Text("Hi.".to_owned())],
        pictures: vec![ImageEvent::Preview(Bytes::from_static(b"a picture"))],
        ..Engine::default()
    };
    let gateway = TestGateway::new(engine, "");
    for (path, body) in requests().into_iter().chain(counts()) {
        let reply = timeout(GUARD, gateway.post(FIRST, path, &body))
            .await
            .expect("it is answered");
        let is_messages = path.starts_with("/v1/messages");
        let (field, code) = if is_messages {
            ("type", "timeout_error")
        } else {
            ("code", "upstream_timeout")
        };
        assert_eq!(
            (reply.status, &reply.json()["error"][field]),
            (504, &json!(code)),
            "{path}: {}",
            reply.body
        );
        assert_eq!(gateway.in_flight(), (0, 0), "{path}");
    }
}

/// The embedded engine counts for clients of both protocols.
#[tokio::test]
async fn prompts_of_the_embedded_engine_are_counted() {
    let engine = Engine {
        ends: true,
        ..Engine::default()
    };
    let gateway = TestGateway::new(engine, "");
    let replies = [
        r#"{"input_tokens":7}"#,
        r#"{"input_tokens":7,"object":"response.input_tokens"}"#,
    ];
    for ((path, body), expected) in counts().into_iter().zip(replies) {
        let reply = gateway.post(FIRST, path, &body).await;
        assert_eq!((reply.status, &*reply.body), (200, expected), "{path}");
    }
}

/// Returns a request to each endpoint that counts.
fn counts() -> [(&'static str, Value); 2] {
    let turns = json!([{"role": "user", "content": "Hello."}]);
    [
        (
            "/v1/messages/count_tokens",
            json!({"model": "text", "messages": turns}),
        ),
        (
            "/v1/responses/input_tokens",
            json!({"model": "text", "input": turns}),
        ),
    ]
}

/// Returns a request to each endpoint; those for images request two.
fn requests() -> [(&'static str, Value); 5] {
    let turns = json!([{"role": "user", "content": "Hello."}]);
    let red = format!("data:image/png;base64,{RED}");
    [
        ("/v1/responses", json!({"model": "text", "input": turns})),
        (
            "/v1/chat/completions",
            json!({"model": "text", "messages": turns}),
        ),
        (
            "/v1/messages",
            json!({"model": "text", "max_tokens": 9, "messages": turns}),
        ),
        (
            "/v1/images/generations",
            json!({"model": "pictures", "prompt": "x", "n": 2}),
        ),
        (
            "/v1/images/edits",
            json!({"model": "pictures", "prompt": "x", "n": 2, "images": [{"image_url": red}]}),
        ),
    ]
}

/// Longer than any request may take. The paused clock advances only while nothing else runs.
const GUARD: Duration = Duration::from_secs(86_400);
/// A red square.
const RED: &str = "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mP4z8BAEmIY1TCqYfhqAACQ+f8B8u7oVwAAAABJRU5ErkJggg==";
