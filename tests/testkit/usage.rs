//! Replies of conforming upstreams with other counts of tokens.

use bytes::Bytes;
use serde_json::{Value, json};
use simulator::{Play, Protocol, Request as Asked, honest};

/// A conforming reply with every JSON document changed. Documents for which `change` returns false
/// are left out.
pub fn edited(request: &Asked, change: impl Fn(Protocol, &mut Value) -> bool) -> Play {
    let Some(protocol) = request
        .protocol()
        .filter(|_| !request.path.ends_with("/count_tokens"))
    else {
        return honest::answer(request);
    };
    let play = honest::answer(request);
    let edit = |piece: &Bytes| {
        let text = std::str::from_utf8(piece).unwrap();
        let begin = text.find('{').unwrap_or(text.len());
        let end = text.trim_end().len();
        let Ok(mut document) = serde_json::from_str(&text[begin..end.max(begin)]) else {
            return Some(text.to_owned());
        };
        change(protocol, &mut document)
            .then(|| format!("{}{document}{}", &text[..begin], &text[end..]))
    };
    let pieces: Vec<_> = play.pieces().filter_map(edit).collect();
    play.with_pieces(pieces)
}

/// Puts the counts of [`usage`] where a document has usage.
pub fn count(protocol: Protocol, document: &mut Value) -> bool {
    let usage = usage(protocol, document["type"].as_str());
    for place in PLACES {
        if let Some(found) = document
            .pointer_mut(place)
            .filter(|found| found.is_object())
        {
            *found = usage.clone();
        }
    }
    true
}

/// The usage object of each protocol, as its vendor documents it. In Messages the tokens of the
/// prompt that were read from a cache or written to one are counted separately, and a stream begins
/// with the counts of the prompt.
pub fn usage(protocol: Protocol, event: Option<&str>) -> Value {
    match (protocol, event) {
        (Protocol::Responses, _) => json!({
            "input_tokens": 1101, "input_tokens_details": {"cached_tokens": 600},
            "output_tokens": 211, "output_tokens_details": {"reasoning_tokens": 100}, "total_tokens": 1312,
        }),
        (Protocol::Chat, _) => json!({
            "prompt_tokens": 1303, "prompt_tokens_details": {"cached_tokens": 1024},
            "completion_tokens": 317, "completion_tokens_details": {"reasoning_tokens": 64}, "total_tokens": 1620,
        }),
        (Protocol::Messages, Some("message_delta")) => json!({"output_tokens": 419}),
        (Protocol::Messages, event) => json!({
            "input_tokens": 1000, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 207,
            "output_tokens": if event == Some("message_start") { 3 } else { 419 },
        }),
        (Protocol::Images, _) => json!({
            "input_tokens": 523, "input_tokens_details": {"text_tokens": 23, "image_tokens": 500},
            "output_tokens": 6272, "total_tokens": 6795,
        }),
    }
}

/// The paths of usage in documents.
pub const PLACES: [&str; 3] = ["/usage", "/response/usage", "/message/usage"];
