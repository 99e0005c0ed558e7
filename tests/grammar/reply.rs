//! Parses responses to clients, in every protocol.

use images::Operation;
use serde_json::Value;
use simulator::Protocol;
use testkit::Response;

use crate::stream::{self, End};

/// Parses a stream by the grammar of its protocol: its reply, or the failure that it reported.
/// Anything outside the grammar, a second end and bytes after the end fail the test.
#[track_caller]
pub(crate) fn stream(protocol: Protocol, response: &Response) -> End<Value> {
    match protocol {
        Protocol::Responses => value(stream::responses(response)),
        Protocol::Chat => value(stream::chat(response)),
        Protocol::Messages => value(stream::messages(response)),
        Protocol::Images => pictures(Operation::Generation, 1, response),
    }
}

/// Parses a plain reply, and asserts that the type that streams are folded to can read it.
#[track_caller]
pub(crate) fn plain(protocol: Protocol, response: &Response) -> Value {
    assert_eq!(
        (response.status, response.header("content-type")),
        (200, Some("application/json")),
        "{response:?}"
    );
    let body = &response.body;
    let read = match protocol {
        Protocol::Responses => serde_json::from_slice::<responses::Response>(body).map(drop),
        Protocol::Chat => serde_json::from_slice::<chat::Completion>(body).map(drop),
        Protocol::Messages => serde_json::from_slice::<messages::Message>(body).map(drop),
        Protocol::Images => serde_json::from_slice::<images::Response>(body).map(drop),
    };
    let reply = read.and_then(|()| serde_json::from_slice(body));
    reply.unwrap_or_else(|error| panic!("{error}: {}", response.text()))
}

/// The text of all deltas of a stream, in order: texts, reasoning, refusals and arguments. For
/// Images the pictures.
pub(crate) fn delta_text(protocol: Protocol, stream: &[u8]) -> String {
    let mut text = String::new();
    for data in events(stream) {
        let event: Value = serde_json::from_str(&data).unwrap_or_default();
        match protocol {
            Protocol::Responses
                if event["type"]
                    .as_str()
                    .is_some_and(|name| name.ends_with(".delta")) =>
            {
                text += event["delta"].as_str().unwrap_or_default();
            }
            Protocol::Chat => {
                let delta = &event["choices"][0]["delta"];
                let texts = ["reasoning_content", "content", "refusal"].map(|name| &delta[name]);
                let calls = delta["tool_calls"].as_array().into_iter().flatten();
                let arguments = calls.map(|call| &call["function"]["arguments"]);
                text.extend(texts.into_iter().chain(arguments).filter_map(Value::as_str));
            }
            Protocol::Messages => {
                let texts = ["thinking", "text", "partial_json"].map(|name| &event["delta"][name]);
                text.extend(texts.into_iter().filter_map(Value::as_str));
            }
            Protocol::Images => text += event["b64_json"].as_str().unwrap_or_default(),
            Protocol::Responses => {}
        }
    }
    text
}

/// The scenarios whose streams are tolerated although the grammar does not permit them: the relay
/// forwards them unchanged.
pub(crate) const BENT: [&str; 5] = [
    "filtered",
    "huge-index-N",
    "unknown-event",
    "usage-twice",
    "vllm",
];

/// The number of events that end a stream of text, in the protocol of any client.
pub(crate) fn ends(stream: &[u8]) -> usize {
    const TYPES: [&str; 5] = [
        "response.completed",
        "response.incomplete",
        "response.failed",
        "message_stop",
        "error",
    ];
    let is_end = |data: &String| {
        let event: Value = serde_json::from_str(data).unwrap_or_default();
        let is_failure = event["error"].is_object();
        data.trim() == "[DONE]" || is_failure || TYPES.iter().any(|kind| event["type"] == *kind)
    };
    events(stream).iter().filter(|data| is_end(data)).count()
}

/// The data of each event of a stream that may be truncated.
pub(crate) fn events(stream: &[u8]) -> Vec<String> {
    let (mut decoder, mut data) = (sse::Decoder::new(), Vec::new());
    decoder.feed(stream.to_vec().into());
    while let Some(Ok(event)) = decoder.poll() {
        data.push(event.data().into_owned());
    }
    data
}

/// As `stream`, for a stream of so many pictures.
#[track_caller]
pub(crate) fn pictures(operation: Operation, count: u32, response: &Response) -> End<Value> {
    let mut fold = images::Fold::new(operation, Some(count));
    let data = stream::data(response);
    for (place, data) in data.iter().enumerate() {
        let event = images::Event::read(data).unwrap_or_else(|error| panic!("{error}: {data}"));
        match fold.push(event) {
            Ok(()) => {}
            Err(images::StreamError::Failed(_)) => {}
            Err(error) => panic!("{error}: event {place}\n{}", response.text()),
        }
    }
    match fold.finish() {
        Ok(reply) => End::Reply(written(&reply).unwrap()),
        Err(images::StreamError::Failed(failure)) => {
            End::Failure(serde_json::to_string(&failure).unwrap())
        }
        Err(error) => panic!("{error}\n{}", response.text()),
    }
}

#[track_caller]
fn value<T: serde::Serialize + std::fmt::Debug>(end: End<T>) -> End<Value> {
    match end {
        End::Reply(reply) => End::Reply(written(&reply).unwrap()),
        End::Failure(failure) => End::Failure(failure),
    }
}

fn written(reply: &impl serde::Serialize) -> serde_json::Result<Value> {
    serde_json::to_value(reply)
}
