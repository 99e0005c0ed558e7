//! The streams among the fixtures, and the helpers that check their relayed copies.

use bytes::Bytes;
use engine::EngineError;
use images::Operation;
use serde_json::{Value, json};
use sluicegate_relay::{Chat, End, Guard, RelayProtocol};
use sse::Decoder;
use vendor::api_error;
use wire::Splice;

/// Relays a stream that arrives in these pieces, including the event of its failure.
pub(super) fn relayed<S: RelayProtocol>(
    protocol: S,
    model: &str,
    pieces: &[&[u8]],
) -> (Vec<u8>, Result<End, EngineError>) {
    let (mut guard, mut out) = (Guard::new(protocol, model.to_owned()), Vec::new());
    let ended = pieces.iter().find_map(|piece| {
        guard
            .feed(Bytes::copy_from_slice(piece), &mut out)
            .transpose()
    });
    let ended = ended.unwrap_or_else(|| guard.finish(&mut out));
    if let Err(error) = &ended {
        guard.fail(&api_error(error), &mut out);
        // The second call writes nothing.
        guard.fail(&api_error(error), &mut out);
    }
    (out, ended)
}

pub(super) fn completion(finish_reason: Option<&str>) -> Value {
    let message = json!({"role": "assistant", "content": "Hi"});
    let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason});
    json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})
}

/// Returns the failure of a stream of one event, which must not be forwarded.
pub(super) fn refused<S: RelayProtocol>(protocol: S, event: &Value) -> EngineError {
    let (out, ended) = relayed(
        protocol,
        "m",
        &[format!("data: {event}\n\n").as_bytes(), b"data: [DONE]\n\n"],
    );
    assert!(
        !String::from_utf8(out).unwrap().contains("team7"),
        "{event}"
    );
    ended.unwrap_err()
}

/// The streams among the fixtures that succeed, by protocol.
pub(super) const RESPONSES: [&str; 8] = [
    "responses-stream-text.sse",
    "responses-stream-unicode-newlines.sse",
    "responses-stream-function-call.sse",
    "responses-stream-parallel-function-calls.sse",
    "responses-stream-empty-arguments.sse",
    "responses-stream-reasoning-summary.sse",
    "responses-stream-refusal.sse",
    "responses-stream-incomplete.sse",
];
pub(super) const CHAT: [&str; 5] = [
    "chat-stream-text.sse",
    "chat-stream-usage.sse",
    "chat-stream-reasoning.sse",
    "chat-stream-length.sse",
    "chat-stream-tool-calls.sse",
];
pub(super) const MESSAGES: [&str; 4] = [
    "messages-stream-text.sse",
    "messages-stream-tool-use.sse",
    "messages-stream-thinking.sse",
    "messages-stream-max-tokens.sse",
];
pub(super) const IMAGES: [(&str, Operation, u32); 4] = [
    ("images-stream-generate.sse", Operation::Generation, 1),
    (
        "images-stream-generate-no-preview.sse",
        Operation::Generation,
        1,
    ),
    ("images-stream-generate-two.sse", Operation::Generation, 2),
    ("images-stream-edit.sse", Operation::Edit, 1),
];

/// Runs `law` with every stream and its protocol.
macro_rules! each_stream {
    ($law:ident) => {{
        use sluicegate_relay::{Chat, Images, Messages, Responses};
        use $crate::laws::{self, fixture};

        laws::RESPONSES.iter().for_each(|name| {
            $law(
                &fixture(name),
                Responses::default,
                laws::ends_well_responses,
            )
        });
        laws::CHAT
            .iter()
            .for_each(|name| $law(&fixture(name), Chat::default, laws::ends_well_chat));
        laws::MESSAGES
            .iter()
            .for_each(|name| $law(&fixture(name), Messages::default, laws::ends_well_messages));
        for (name, operation, count) in laws::IMAGES {
            let ends = |stream: &[u8]| laws::ends_well_images(stream, operation, count);
            $law(&fixture(name), || Images::new(operation, count), ends);
        }
    }};
}
pub(super) use each_stream;

/// Returns `None` if a stream of the gateway has not ended, else true if it succeeded. The terminal
/// events of the protocol are `succeeded` and `failed`, by their type; of Chat, `[DONE]` and a
/// chunk with an error.
fn ends_well(stream: &[u8], succeeded: &[&str], failed: &[&str]) -> Option<bool> {
    let mut end = None;
    for data in data(stream) {
        assert_eq!(end, None, "after the end: {data}");
        let event: Value = if data == "[DONE]" {
            json!({"type": data})
        } else {
            serde_json::from_str(&data).unwrap()
        };
        let kind = event["type"]
            .as_str()
            .unwrap_or(if event["error"].is_object() {
                "error"
            } else {
                "chunk"
            });
        end = succeeded
            .contains(&kind)
            .then_some(true)
            .or(failed.contains(&kind).then_some(false));
    }
    end
}

pub(super) fn ends_well_responses(stream: &[u8]) -> Option<bool> {
    ends_well(
        stream,
        &["response.completed", "response.incomplete"],
        &["response.failed", "error"],
    )
}

pub(super) fn ends_well_chat(stream: &[u8]) -> Option<bool> {
    ends_well(stream, &["[DONE]"], &["error"])
}

pub(super) fn ends_well_messages(stream: &[u8]) -> Option<bool> {
    ends_well(stream, &["message_stop"], &["error"])
}

pub(super) fn ends_well_images(stream: &[u8], operation: Operation, count: u32) -> Option<bool> {
    let (mut grammar, mut failed) = (images::Grammar::new(operation, Some(count)), false);
    for data in data(stream) {
        let event = images::Event::read(&data).unwrap();
        failed |= matches!(event, images::Event::Error(_));
        grammar.push(&event).unwrap();
    }
    grammar.is_ended().then_some(!failed)
}

/// Returns the model's name in a stream.
pub(super) fn model(stream: &[u8]) -> String {
    let text = String::from_utf8_lossy(stream);
    let named = text
        .split_once("\"model\":")
        .and_then(|(_, rest)| rest.split('"').nth(1));
    named.unwrap_or_default().to_owned()
}

/// Returns a stream without its comments.
pub(super) fn events(stream: &[u8]) -> String {
    let text = String::from_utf8(stream.to_vec()).unwrap();
    text.split_inclusive("\n\n")
        .filter(|event| !event.starts_with(':'))
        .collect()
}

/// Returns true if a reply is of the frequent form. The types then read it as well, to the same end
/// and with the same edits.
pub(super) fn is_frequent(body: &[u8], model: &str) -> bool {
    let Some((out, end)) = Chat::frequent_reply(body, model) else {
        return false;
    };
    let mut edits = Splice::new(body);
    let text = String::from_utf8_lossy(body);
    assert_eq!(Chat::reply(body, model, &mut edits).unwrap(), end, "{text}");
    assert_eq!(
        String::from_utf8(out).unwrap(),
        String::from_utf8(edits.to_vec()).unwrap()
    );
    true
}

/// Returns the data of the complete events in a stream.
pub(super) fn data(stream: &[u8]) -> Vec<String> {
    let (mut decoder, mut data) = (Decoder::new(), Vec::new());
    decoder.feed(stream.to_vec().into());
    while let Some(event) = decoder.poll() {
        data.push(event.unwrap().data().into_owned());
    }
    data
}

/// Reads a fixture, which the tests of the translation share.
pub(super) fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{FIXTURES}/{name}")).unwrap()
}

/// The folder of the fixtures, seen from this crate.
pub(super) const FIXTURES: &str = "../translate/tests/it/fixtures";
