//! Splits a stream into server-sent events as defined by
//! <https://html.spec.whatwg.org/multipage/server-sent-events.html>, and reads single events.

use accumulator::{Content, add_up};
use serde_json::Value;
use simulator::Protocol;

use crate::client::Response;

/// The data of each event of a complete stream with status 200.
#[track_caller]
pub fn data(response: &Response) -> Vec<String> {
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(
        response.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    assert_eq!(response.header("content-length"), None);
    assert!(
        response.is_complete(),
        "the body came to its end: {}",
        response.text()
    );
    let (events, is_cut) = split(&response.body);
    assert!(!is_cut, "no event is cut: {}", response.text());
    let text = |data| String::from_utf8(data).expect("events are UTF-8");
    events.into_iter().map(text).collect()
}

/// The data of each complete event, as bytes that may be invalid UTF-8.
pub fn events(stream: &[u8]) -> Vec<Vec<u8>> {
    split(stream).0
}

/// The data of each complete event, and whether the last event is incomplete.
fn split(stream: &[u8]) -> (Vec<Vec<u8>>, bool) {
    let (mut events, mut data) = (Vec::new(), None::<Vec<u8>>);
    let (lines, rest) = lines(stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream));
    for line in lines {
        if line.is_empty() {
            events.extend(data.take().filter(|data| !data.is_empty()));
        } else if let Some(value) = line
            .strip_prefix(b"data")
            .filter(|rest| matches!(rest.first(), None | Some(b':')))
        {
            let value = value.strip_prefix(b":").unwrap_or(value);
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match &mut data {
                Some(data) => data.extend([b"\n", value].concat()),
                None => data = Some(value.to_vec()),
            }
        }
    }
    (events, data.is_some() || !rest.is_empty())
}

/// The complete lines, each ended by CR, LF or both, and the bytes after the last one.
fn lines(mut rest: &[u8]) -> (Vec<&[u8]>, &[u8]) {
    let mut lines = Vec::new();
    while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        lines.push(&rest[..end]);
        let ended = if rest[end..].starts_with(b"\r\n") {
            2
        } else {
            1
        };
        rest = &rest[end + ended..];
    }
    (lines, rest)
}

/// The text of all deltas of a stream, in order: texts, reasoning, refusals and arguments. For
/// Images the pictures.
pub fn delta_text(protocol: Protocol, stream: &[u8]) -> String {
    let mut text = String::new();
    for data in events(stream) {
        let event: Value = serde_json::from_slice(&data).unwrap_or_default();
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

/// The content that a client of text adds up from the events of a stream.
pub fn added_up(protocol: Protocol, stream: &[u8]) -> Option<Content> {
    let protocol = match protocol {
        Protocol::Responses => accumulator::Protocol::Responses,
        Protocol::Chat => accumulator::Protocol::Chat,
        Protocol::Messages => accumulator::Protocol::Messages,
        Protocol::Images => return None,
    };
    Some(add_up(protocol, &events(stream)))
}

/// The number of events that end a stream of text, in the protocol of any client.
pub fn ends(stream: &[u8]) -> usize {
    const TYPES: [&str; 5] = [
        "response.completed",
        "response.incomplete",
        "response.failed",
        "message_stop",
        "error",
    ];
    let is_end = |data: &Vec<u8>| {
        let event: Value = serde_json::from_slice(data).unwrap_or_default();
        let is_failure = event["error"].is_object();
        data.trim_ascii() == b"[DONE]"
            || is_failure
            || TYPES.iter().any(|kind| event["type"] == *kind)
    };
    events(stream).iter().filter(|data| is_end(data)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events end with an empty line, however lines end; comments, other fields and incomplete
    /// lines are ignored.
    #[test]
    fn events_are_cut_as_the_standard_says() {
        let read = |stream: &str| {
            events(stream.as_bytes())
                .into_iter()
                .map(|data| String::from_utf8(data).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            read("data: a\n\ndata:b\r\n\r\ndata: c\r\rdata: cut\n"),
            ["a", "b", "c"]
        );
        assert_eq!(
            read("\u{FEFF}data: a\n: data: b\nevent: x\ndatax: y\ndata: c\n\n"),
            ["a\nc"]
        );
        assert_eq!(read("data\n\ndata:\n\n: nothing\n\nid: 1\n\n"), [""; 0]);
        assert_eq!(events(b"data: \xFF\n\n"), [b"\xFF"]);
    }
}
