//! Parses every fixture, checks that nothing is lost, and compares its meaning with a snapshot.

use serde_json::{Value, json};
use sluicegate_messages::{
    Block, BlockDelta, Delta, Encoder, Event, Head, Message, Request, Rules, StopReason,
    TokenCount, Usage,
};
use wire::{ApiError, ErrorKind};

use crate::{events, fold, text};

#[test]
fn requests_are_valid_and_nothing_is_lost() {
    insta::glob!("fixtures/messages-request-*.json", |path| {
        let body = std::fs::read(path).unwrap();
        let request = Request::read(&body)
            .unwrap()
            .validate(&Rules::default())
            .unwrap()
            .into_inner();
        assert_eq!(
            serde_json::to_value(&request).unwrap(),
            with_types(serde_json::from_slice(&body).unwrap())
        );
        insta::assert_debug_snapshot!(request);
    });
}

/// A tool without a type is a custom tool, and is written with its type.
fn with_types(mut request: Value) -> Value {
    for tool in request
        .get_mut("tools")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        tool.as_object_mut()
            .unwrap()
            .entry("type")
            .or_insert("custom".into());
    }
    request
}

#[test]
fn a_count_needs_no_cap() {
    let body = include_bytes!("fixtures/messages-count-tokens-request.json");
    let request = Request::read(body).unwrap();
    assert!(request.clone().validate(&Rules::default()).is_err());
    let request = request
        .validate_for_count(&Rules::default())
        .unwrap()
        .into_inner();
    assert_eq!(
        serde_json::to_value(&request).unwrap(),
        serde_json::from_slice::<Value>(body).unwrap()
    );

    let reply = include_str!("fixtures/messages-count-tokens-response.json");
    let count = TokenCount::new(10);
    assert_eq!(serde_json::from_str::<TokenCount>(reply).unwrap(), count);
    assert_eq!(
        serde_json::to_value(&count).unwrap(),
        serde_json::from_str::<Value>(reply).unwrap()
    );
}

#[test]
fn replies_are_read_and_nothing_is_lost() {
    insta::glob!("fixtures/messages-response-*.json", |path| {
        let body = std::fs::read(path).unwrap();
        let reply: Message = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            serde_json::to_value(&reply).unwrap(),
            serde_json::from_slice::<Value>(&body).unwrap()
        );
        insta::assert_debug_snapshot!(reply);
    });
}

#[test]
fn streams_are_within_the_grammar_and_amount_to_a_reply() {
    insta::glob!("fixtures/messages-stream-*.sse", |path| {
        let stream = std::fs::read_to_string(path).unwrap();
        let events = events(&stream);
        assert_eq!(text(&events), stream, "written as it was read");
        match fold(&events) {
            Ok(reply) => insta::assert_snapshot!(pretty(&reply)),
            Err(error) => insta::assert_snapshot!(error),
        }
    });
}

fn pretty(reply: &Message) -> String {
    serde_json::to_string_pretty(&serde_json::to_value(reply).unwrap()).unwrap()
}

#[test]
fn a_stream_amounts_to_the_reply_that_was_not_streamed() {
    for name in ["text", "max-tokens", "thinking"] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fixtures");
        let stream =
            std::fs::read_to_string(format!("{folder}/messages-stream-{name}.sse")).unwrap();
        let reply =
            std::fs::read_to_string(format!("{folder}/messages-response-{name}.json")).unwrap();
        assert_eq!(
            fold(&events(&stream)).unwrap(),
            serde_json::from_str(&reply).unwrap(),
            "{name}"
        );
    }
}

#[test]
fn our_encoder_writes_the_same_bytes() {
    insta::glob!("fixtures/messages-stream-*.sse", |path| {
        let mut events = events(&std::fs::read_to_string(path).unwrap());
        let mut reencoded = reencoded(&events);
        reencoded.iter_mut().for_each(remove_new_members);
        events.retain(|event| !is_empty_piece(event));
        assert_eq!(text(&reencoded), text(&events));
    });
}

/// Removes the members that the vendor's schema did not require when the fixtures were written.
fn remove_new_members(event: &mut Event) {
    match event {
        Event::MessageStart(start) => {
            start.message.extra.clear();
            start.message.usage.extra.clear();
        }
        Event::BlockStart(start) => match &mut start.content_block {
            Block::Text(block) => block.extra.clear(),
            Block::ToolUse(block) => block.extra.clear(),
            _ => {}
        },
        Event::MessageDelta(end) => {
            end.delta.extra.clear();
            end.usage.extra.clear();
        }
        _ => {}
    }
}

/// The required members of `Message`, `ResponseTextBlock`, `ResponseToolUseBlock` and `Usage` in the
/// schema of November 2026: <https://docs.anthropic.com/en/api/messages>.
#[test]
fn an_answer_has_each_member_that_the_schema_requires() {
    let head = Head {
        id: "msg_1".to_owned(),
        model: "m".to_owned(),
    };
    let (mut encoder, mut out) = (Encoder::new(head, None), Vec::new());
    encoder.text("Hi.", &mut out);
    encoder.call("toolu_1", "f", &mut out);
    encoder.finish(StopReason::ToolUse, None, Some(Usage::new(7, 9)), &mut out);
    assert_eq!(
        serde_json::to_value(fold(&out).unwrap()).unwrap(),
        json!({
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [
                {"type": "text", "text": "Hi.", "citations": null},
                {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}, "caller": {"type": "direct"}},
            ],
            "stop_reason": "tool_use",
            "stop_sequence": null,
            "stop_details": null,
            "container": null,
            "usage": {
                "input_tokens": 7,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": 9,
                "cache_creation": null,
                "inference_geo": null,
                "output_tokens_details": null,
                "server_tool_use": null,
                "service_tier": null,
            },
        })
    );
    let Some(Event::MessageDelta(end)) = out.iter().rev().nth(1) else {
        panic!("{out:?}");
    };
    assert_eq!(
        serde_json::to_value(end).unwrap(),
        json!({
            "delta": {
                "stop_reason": "tool_use",
                "stop_sequence": null,
                "stop_details": null,
                "container": null,
            },
            "usage": {
                "input_tokens": 7,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": 9,
                "output_tokens_details": null,
                "server_tool_use": null,
            },
        })
    );
}

/// Re-encodes the content of the events with our encoder.
fn reencoded(events: &[Event]) -> Vec<Event> {
    let Event::MessageStart(start) = &events[0] else {
        panic!("a stream begins with message_start")
    };
    let head = Head {
        id: start.message.id.clone(),
        model: start.message.model.clone(),
    };
    let mut encoder = Encoder::new(head, Some(start.message.usage.input_tokens));
    let mut out = Vec::new();
    encoder.open(&mut out);
    for event in events {
        encode(event, &mut encoder, &mut out);
    }
    out
}

#[expect(clippy::disallowed_methods, reason = "an error of the test alone")]
fn encode(event: &Event, encoder: &mut Encoder, out: &mut Vec<Event>) {
    match event {
        Event::Ping(_) => encoder.ping(out),
        Event::BlockStart(start) => {
            if let Block::ToolUse(call) = &start.content_block {
                encoder.call(&call.id, &call.name, out);
            }
        }
        Event::BlockDelta(delta) => match &delta.delta {
            Delta::Text(delta) => encoder.text(&delta.text, out),
            Delta::InputJson(delta) => encoder.arguments(&delta.partial_json, out),
            Delta::Thinking(delta) => encoder.reasoning(&delta.thinking, out),
            Delta::Signature(delta) => encoder.signature(&delta.signature, out),
            other => panic!("{other:?}"),
        },
        Event::MessageDelta(end) => {
            let usage = Usage::new(end.usage.input_tokens.unwrap(), end.usage.output_tokens);
            let reason = end.delta.stop_reason.clone().unwrap();
            encoder.finish(reason, end.delta.stop_sequence.clone(), Some(usage), out);
        }
        Event::Error(_) => {
            let error = ApiError::new(
                ErrorKind::Overloaded,
                "server_is_overloaded",
                "The upstream is overloaded.",
            );
            encoder.fail(&error, out);
        }
        _ => {}
    }
}

/// Returns true if the event is an empty fragment of an input.
fn is_empty_piece(event: &Event) -> bool {
    matches!(event, Event::BlockDelta(BlockDelta { delta: Delta::InputJson(delta), .. }) if delta.partial_json.is_empty())
}
