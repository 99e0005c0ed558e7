//! Any bytes as the stream of an upstream of the client's own protocol: the relayed stream ends
//! once, and with a success only where the relay reports one. A relay that recognizes events by
//! their form has the same result as one that parses every event. The same bytes as a plain reply
//! of Chat: the types accept every reply that the reader of frequent replies accepts, with the same
//! edits.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use relay::{Chat, Guard, Images, Messages, RelayProtocol, Responses};
use serde_json::value::RawValue;
use sse::Decoder;
use vendor::api_error;
use wire::Splice;

/// Checks one input; a panic is a finding.
pub fn check(input: &[u8]) {
    let Some((first, stream)) = input.split_first() else {
        return;
    };
    check_reply(stream);
    let size = usize::from(first >> 2) * 3 + 1;
    let (out, is_success) = match first % 4 {
        0 => relayed(Responses::default, stream, size),
        1 => relayed(Chat::default, stream, size),
        2 => relayed(Messages::default, stream, size),
        _ => relayed(
            || Images::new(images::Operation::Generation, 1),
            stream,
            size,
        ),
    };
    let events = data(&out).expect("relayed data is a stream of events");
    let protocol = usize::from(first % 4);
    let ends: Vec<_> = events.iter().map(|data| end(protocol, data)).collect();
    let Some((last, before)) = ends.split_last() else {
        assert!(!is_success, "a success without events");
        return;
    };
    assert!(before.iter().all(Option::is_none), "events after the end");
    assert_eq!(*last, Some(is_success), "every stream has an end");
}

/// Compares the reader of frequent replies with the reader of all replies.
fn check_reply(body: &[u8]) {
    if let Some((out, end)) = Chat::frequent_reply(body, "m") {
        let mut edits = Splice::new(body);
        let read = Chat::reply(body, "m", &mut edits).expect("a frequent reply is a reply");
        assert_eq!((out, end), (edits.to_vec(), read), "one reply, one reading");
    }
}

/// Returns true or false if the event with this data ends a stream of the protocol with this
/// number, with a success or a failure.
fn end(protocol: usize, data: &str) -> Option<bool> {
    if data == "[DONE]" {
        return Some(true);
    }
    // Numbers may be out of any range.
    let event: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(data).unwrap_or_default();
    let kind = event
        .get("type")
        .map_or("", |kind| kind.get().trim_matches('"'));
    let is_failure = kind == "error"
        || protocol == 0 && kind == "response.failed"
        || kind.is_empty()
            && event
                .get("error")
                .is_some_and(|error| error.get() != "null");
    let is_success = ENDS[protocol].contains(&kind);
    (is_failure || is_success).then_some(is_success)
}

/// The client's stream for an upstream's that arrives in pieces of `size`, and whether it ended
/// well.
fn relayed<S: RelayProtocol>(
    protocol: impl Fn() -> S,
    stream: &[u8],
    size: usize,
) -> (Vec<u8>, bool) {
    let by_form = fed(Guard::new(protocol(), "m".to_owned()), stream, size);
    let parsed = Guard::that_parses_all(protocol(), "m".to_owned());
    assert_eq!(by_form, fed(parsed, stream, size), "known forms");
    let (out, is_success, ..) = by_form;
    (out, is_success)
}

/// The client's stream, whether it ended well, the signs of life and the end.
fn fed<S: RelayProtocol>(
    mut guard: Guard<S>,
    stream: &[u8],
    size: usize,
) -> (Vec<u8>, bool, u64, String) {
    let mut out = Vec::new();
    let fed = stream.chunks(size).find_map(|piece| {
        guard
            .feed(Bytes::copy_from_slice(piece), &mut out)
            .transpose()
    });
    let ended = fed.unwrap_or_else(|| guard.finish(&mut out));
    if let Err(error) = &ended {
        guard.fail(&api_error(error), &mut out);
    }
    let end = format!("{ended:?}");
    (out, ended.is_ok(), guard.signs_of_life(), end)
}

/// The data of each event, or `None` if this is no stream of events.
fn data(stream: &[u8]) -> Option<Vec<String>> {
    let (mut decoder, mut data) = (Decoder::new(), Vec::new());
    decoder.feed(Bytes::copy_from_slice(stream));
    while let Some(event) = decoder.poll() {
        data.push(event.ok()?.data().into_owned());
    }
    Some(data)
}

/// The types of the events that end a stream of each protocol with a success.
const ENDS: [&[&str]; 4] = [
    &["response.completed", "response.incomplete"],
    &[],
    &["message_stop"],
    &["image_generation.completed"],
];
