//! Streams and replies that are failures.

use engine::{EngineError, Rejection, Stop};
use serde_json::{Value, json};
use sluicegate_translate::outbound::reply;
use vendor::Protocol;

use super::{delta, failed, protocol, start, stream};
use crate::streams::{data, fixture, parse_ok, parse_stream};

#[test]
fn streams_that_were_cut_or_refused() {
    for name in [
        "chat-stream-length.sse",
        "responses-stream-incomplete.sse",
        "messages-stream-max-tokens.sse",
    ] {
        assert_eq!(stream(name).end.unwrap().0, Stop::MaxTokens, "{name}");
    }
    let output = stream("responses-stream-refusal.sse");
    assert!(!output.refusal.is_empty() && output.text.is_empty());
}

#[test]
fn streams_that_fail() {
    let fails = |name: &str| {
        parse_stream(protocol(name), &data(&fixture(name)))
            .1
            .unwrap_err()
    };
    let streams = ["chat-stream-error.sse", "responses-stream-failed-mid.sse"];
    let error_events = [
        "responses-upstream-error-event-flat.sse",
        "responses-upstream-error-event-nested.sse",
    ];
    for name in streams.into_iter().chain(error_events) {
        assert!(
            matches!(fails(name), EngineError::Upstream(text) if text.contains("server_error")),
            "{name}"
        );
    }
    assert!(matches!(
        fails("messages-stream-error.sse"),
        EngineError::Overloaded { .. }
    ));
    assert!(matches!(
        fails("responses-stream-concurrency-limit.sse"),
        EngineError::RateLimited { .. }
    ));
    assert!(matches!(
        fails("responses-stream-truncated-invalid.sse"),
        EngineError::Truncated(_)
    ));
}

#[test]
fn malformed_event_is_a_failure() {
    for (protocol, event) in [
        (Protocol::Chat, "{"),
        (Protocol::Chat, "[]"),
        (Protocol::Chat, "\"text\""),
        (Protocol::Chat, r#"{"choices":{}}"#),
        (
            Protocol::Chat,
            r#"{"choices":[{"index":2147483648,"delta":{}}]}"#,
        ),
        (
            Protocol::Chat,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":4096,"id":"a"}]}}]}"#,
        ),
        (Protocol::Chat, r#"{"choices":[{"delta":{"content":5}}]}"#),
        (Protocol::Responses, r#"{"delta":"a"}"#),
        (
            Protocol::Responses,
            r#"{"type":"response.output_text.delta","output_index":0}"#,
        ),
        (
            Protocol::Responses,
            r#"{"type":"response.output_text.delta","output_index":4096,"delta":"a"}"#,
        ),
        (
            Protocol::Responses,
            r#"{"type":"response.output_item.done"}"#,
        ),
        (Protocol::Responses, r#"{"type":"response.completed"}"#),
        (Protocol::Messages, "[DONE"),
        (Protocol::Messages, r#"{"index":0}"#),
        (
            Protocol::Messages,
            r#"{"type":"content_block_delta","index":0}"#,
        ),
        (
            Protocol::Messages,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta"}}"#,
        ),
        (Protocol::Messages, r#"{"type":"message_delta"}"#),
    ] {
        let (events, result) = parse_stream(protocol, &[event]);
        let error = result.unwrap_err().to_string();
        assert!(
            error.starts_with("the upstream failed: malformed event: "),
            "{event}: {error}"
        );
        assert!(events.is_empty());
    }
}

#[test]
fn a_failure_does_not_quote_model_output() {
    let error = failed(
        Protocol::Chat,
        &[json!({"choices": [{"index": "a secret of the user"}]})],
    );
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[test]
fn a_stream_without_its_end_is_truncated() {
    let text = delta(json!({"content": "a"})).to_string();
    for events in [vec![], vec![text.as_str()], vec![text.as_str(), "[DONE]"]] {
        assert!(
            matches!(
                parse_stream(Protocol::Chat, &events).1,
                Err(EngineError::Truncated(_))
            ),
            "{events:?}"
        );
    }
    let stopped = [
        start(),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
    ];
    assert!(matches!(
        failed(Protocol::Messages, &stopped),
        EngineError::Truncated(_)
    ));
}

#[test]
fn a_body_with_status_200_can_be_a_failure() {
    use EngineError::{Overloaded, RateLimited, Rejected, Truncated, Upstream};
    let error = |body: Value| reply(Protocol::Chat, body.to_string().as_bytes()).unwrap_err();
    assert!(matches!(
        error(json!({"error": {"code": "rate_limit_exceeded"}})),
        RateLimited { .. }
    ));
    assert!(matches!(
        error(json!({"error": {"code": 429, "message": "slow"}})),
        RateLimited { .. }
    ));
    assert!(matches!(
        error(json!({"type": "error", "error": {"type": "overloaded_error"}})),
        Overloaded { .. }
    ));
    assert!(matches!(
        error(
            json!({"error": {"code": "context_length_exceeded", "type": "invalid_request_error"}})
        ),
        Rejected {
            why: Rejection::ContextLength(_),
            ..
        }
    ));
    assert!(matches!(
        error(json!({"error": {"code": "content_policy_violation"}})),
        Rejected {
            why: Rejection::ContentPolicy,
            ..
        }
    ));
    assert!(matches!(
        error(json!({"object": "error", "message": "bad field", "type": "BadRequestError", "code": 400})),
        Rejected { why: Rejection::Invalid, message, .. } if message == "bad field"
    ));
    assert!(
        matches!(error(json!({"error": "it broke"})), Upstream(text) if text.contains("no code given"))
    );
    assert!(matches!(
        error(json!({"error": {"code": "invalid_api_key", "type": "invalid_request_error"}})),
        EngineError::Misconfigured(_)
    ));
    assert!(matches!(
        error(json!({"choices": [{"message": {"content": "a"}}]})),
        Truncated(_)
    ));
    // Errors in forms of their own: MiniMax, Baidu.
    for body in [
        json!({"choices": null, "base_resp": {"status_code": 1002, "status_msg": "rate limit exceeded(RPM)"}}),
        json!({"choices": null, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}),
        json!({"error_code": 336_103, "error_msg": "the max input characters is 4800"}),
    ] {
        let error = error(body.clone());
        assert!(
            matches!(
                error,
                RateLimited { .. } | EngineError::Account { .. } | Rejected { .. }
            ),
            "{body}: {error:?}"
        );
    }
    for body in [&b"<html>"[..], b"", b"[]", b"null"] {
        for protocol in [Protocol::Responses, Protocol::Chat, Protocol::Messages] {
            assert!(matches!(reply(protocol, body), Err(Upstream(_))));
        }
    }
}

/// Only JSON white space may stand around an event (RFC 8259, section 2): it has no form feed.
#[test]
fn only_white_space_of_json_may_stand_around_an_event() {
    let stream = data(&fixture("messages-stream-text.sse"));
    let spaced: Vec<_> = stream
        .iter()
        .map(|data| format!(" \t\r\n{data}\t "))
        .collect();
    assert_eq!(
        parse_ok(Protocol::Messages, &spaced),
        parse_ok(Protocol::Messages, &stream)
    );
    for strange in ["\u{0C}", "\u{0B}", "\u{A0}", "\0"] {
        let mut invalid = stream.clone();
        invalid[1].push_str(strange);
        let (_, result) = parse_stream(Protocol::Messages, &invalid);
        assert!(
            matches!(result, Err(EngineError::Upstream(_))),
            "{strange:?}: {result:?}"
        );
    }
}
