//! The ends of streams and replies.

use engine::{EngineError, Stop};
use serde_json::{Value, json};
use sluicegate_translate::outbound::reply;
use vendor::Protocol;

use super::{chat, delta, failed, finish, parse_events, pieces, start};
use crate::streams::{ModelOutput, fixture, parse_ok};

#[test]
fn the_table_of_ends() {
    let table: Value = serde_json::from_slice(&fixture("translate-stop-reasons.json")).unwrap();
    for row in table["rows"].as_array().unwrap() {
        let meaning = row["meaning"].as_str().unwrap();
        let called = meaning == "tool call";
        let end = |output: ModelOutput| output.end.unwrap().0;
        let (chat_end, messages_end, responses_end) = match meaning {
            "natural end" => (Stop::End, Stop::End, Stop::End),
            "custom stop string hit" => (Stop::End, Stop::StopText("x".to_owned()), Stop::End),
            "output limit" => (Stop::MaxTokens, Stop::MaxTokens, Stop::MaxTokens),
            "context window full" => (Stop::MaxTokens, Stop::ContextFull, Stop::MaxTokens),
            "tool call" => (Stop::ToolCalls, Stop::ToolCalls, Stop::ToolCalls),
            "refused or filtered" => (Stop::Refused, Stop::Refused, Stop::Refused),
            "paused turn (upstream only)" => (Stop::End, Stop::Paused, Stop::End),
            _ => continue,
        };
        let piece = json!([{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]);
        let content = if called {
            pieces(piece)
        } else {
            delta(json!({"content": "a"}))
        };
        assert_eq!(
            end(chat(&[content, finish(row["chat"].as_str().unwrap())])),
            chat_end
        );
        let kind = if called { "tool_use" } else { "text" };
        let message = [
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": kind, "id": "c", "name": "f"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": row["messages"], "stop_sequence": "x"}}),
            json!({"type": "message_stop"}),
        ];
        assert_eq!(
            end(parse_events(Protocol::Messages, &message)),
            messages_end
        );
        let output =
            json!([{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]);
        let (status, reason) = (&row["responses"]["status"], &row["responses"]["reason"]);
        let response = json!({"status": status, "output": if called { output } else { json!([]) },
            "incomplete_details": if reason.is_null() { Value::Null } else { json!({ "reason": reason }) }});
        let terminal =
            json!({"type": format!("response.{}", status.as_str().unwrap()), "response": response});
        assert_eq!(
            end(parse_events(Protocol::Responses, &[terminal])),
            responses_end
        );
    }
}

/// A complete reply states its type and that it is finished.
#[test]
fn s16_reply_without_a_completion_marker_is_an_error() {
    for (protocol, name, member) in [
        (
            Protocol::Responses,
            "responses-response-text.json",
            "status",
        ),
        (Protocol::Messages, "messages-response-text.json", "type"),
        (
            Protocol::Messages,
            "messages-response-text.json",
            "stop_reason",
        ),
    ] {
        let complete: Value = serde_json::from_slice(&fixture(name)).unwrap();
        assert!(reply(protocol, complete.to_string().as_bytes()).is_ok());
        for other in [None, Some(json!("in_progress")), Some(json!(null))] {
            let mut changed = complete.clone();
            match &other {
                Some(other) => changed[member] = other.clone(),
                None => drop(changed.as_object_mut().unwrap().remove(member)),
            }
            let read = reply(protocol, changed.to_string().as_bytes());
            assert!(read.is_err(), "{member} {other:?}");
        }
    }
}

#[test]
fn the_type_of_the_last_event_decides() {
    let end = |kind: &str, response: Value| {
        parse_events(
            Protocol::Responses,
            &[json!({"type": kind, "response": response})],
        )
        .end
        .unwrap()
        .0
    };
    assert_eq!(end("response.incomplete", json!({})), Stop::MaxTokens);
    assert_eq!(
        end("response.completed", json!({"status": null})),
        Stop::End
    );
    for (kind, response) in [
        ("response.completed", json!({"status": "failed"})),
        ("response.completed", json!({"status": "cancelled"})),
        ("response.completed", json!({"error": {"code": "x"}})),
        (
            "response.completed",
            json!({"status": "completed", "incomplete_details": {"reason": "max_output_tokens"}}),
        ),
        ("response.incomplete", json!({"status": "in_progress"})),
        ("response.incomplete", json!({"status": "completed"})),
    ] {
        let failed = failed(
            Protocol::Responses,
            &[json!({"type": kind, "response": response})],
        );
        assert!(
            matches!(
                failed,
                EngineError::Upstream(_) | EngineError::Failed { .. }
            ),
            "{failed:?}"
        );
    }
}

/// A stream without a stop reason may have been truncated.
#[test]
fn stream_end_without_a_stop_reason_is_truncation() {
    for reason in [json!({"stop_reason": null}), json!({})] {
        let delta = json!({"type": "message_delta", "delta": reason});
        let failed = failed(
            Protocol::Messages,
            &[start(), delta, json!({"type": "message_stop"})],
        );
        assert!(matches!(failed, EngineError::Truncated(_)), "{failed:?}");
    }
}

#[test]
fn done_means_nothing_to_others_than_chat() {
    let events = [
        r#"{"type":"response.completed","response":{}}"#,
        "[DONE]",
        "{",
    ];
    assert_eq!(
        parse_ok(Protocol::Responses, &events).end,
        Some((Stop::End, None))
    );
    let reason = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    let start = r#"{"type":"message_start","message":{}}"#;
    let events = [
        "[DONE]",
        start,
        "",
        " ",
        reason,
        r#"{"type":"message_stop"}"#,
    ];
    assert_eq!(
        parse_ok(Protocol::Messages, &events).end,
        Some((Stop::End, None))
    );
}

/// Data after the terminal event is ignored. Content between the finish reason and the terminal
/// event may belong to another answer.
#[test]
fn s07_first_end_counts_and_late_content_is_a_failure() {
    let content = || delta(json!({"content": "a"}));
    for late in [
        content(),
        finish("length"),
        json!({"error": {"message": "late"}}),
    ] {
        let error = failed(Protocol::Chat, &[content(), finish("stop"), late.clone()]);
        assert!(
            matches!(error, EngineError::Upstream(_)),
            "{late}: {error:?}"
        );
        let events = [
            content().to_string(),
            finish("stop").to_string(),
            "[DONE]".to_owned(),
            late.to_string(),
        ];
        assert_eq!(
            parse_ok(Protocol::Chat, &events).end,
            Some((Stop::End, None)),
            "{late}"
        );
    }
    assert_eq!(
        chat(&[
            content(),
            finish("stop"),
            finish("stop"),
            delta(json!({"content": ""}))
        ])
        .text,
        "a"
    );
}
