//! The token usage of answers.

use engine::{Stop, Usage};
use serde_json::{Value, json};
use sluicegate_translate::outbound::{StreamReader, usage_of_reply};
use vendor::Protocol;

use super::{chat, finish, parse_events};
use crate::streams::{ModelOutput, fixture};

#[test]
fn the_table_of_usage() {
    let table: Value = serde_json::from_slice(&fixture("translate-usage.json")).unwrap();
    let all = Usage {
        input: 100,
        cache_read: 40,
        cache_write: 10,
        output: 30,
        reasoning: 12,
        ..Usage::default()
    };
    let usage = |output: ModelOutput| output.end.unwrap().1.unwrap();
    let terminal = json!({"type": "response.completed", "response": {"usage": table["responses"]}});
    assert_eq!(usage(parse_events(Protocol::Responses, &[terminal])), all);
    let mut counts = table["chat"].clone();
    let more = table["chat_upstream_may_also_have"].as_object().unwrap();
    more.iter()
        .for_each(|(name, details)| counts[name] = details.clone());
    assert_eq!(
        usage(chat(&[finish("stop"), json!({ "usage": counts })])),
        Usage {
            cache_write: 0,
            ..all
        }
    );
    let mut counts = table["messages"].clone();
    counts["output_tokens_details"] = json!({"thinking_tokens": 12});
    let message = [
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": counts}),
        json!({"type": "message_stop"}),
    ];
    assert_eq!(usage(parse_events(Protocol::Messages, &message)), all);
}

#[test]
fn final_counts_replace_initial_counts() {
    let output = parse_events(
        Protocol::Messages,
        &[
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 7, "cache_read_input_tokens": 2, "output_tokens": 1}}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}),
            json!({"type": "message_stop"}),
        ],
    );
    assert_eq!(
        output.end,
        Some((
            Stop::End,
            Some(Usage {
                input: 9,
                cache_read: 2,
                output: 9,
                ..Usage::default()
            })
        ))
    );
}

/// A client that leaves, and a reply that is rejected.
#[test]
fn counts_are_known_before_and_without_an_end() {
    let start = json!({"type": "message_start", "message": {"usage": {"input_tokens": 200, "output_tokens": 1}}});
    let mut reader = StreamReader::new(Protocol::Messages);
    reader
        .feed(format!("data: {start}\n\n").into(), &mut Vec::new())
        .unwrap();
    assert_eq!(reader.usage().map(|usage| usage.input), Some(200));
    let rejected = json!({"object": "chat.completion", "choices": [{"index": 0, "message": {}, "finish_reason": "error"}],
        "usage": {"prompt_tokens": 6000, "completion_tokens": 900}});
    let usage = usage_of_reply(Protocol::Chat, rejected.to_string().as_bytes());
    assert_eq!(
        usage.map(|usage| (usage.input, usage.output)),
        Some((6000, 900))
    );
}
