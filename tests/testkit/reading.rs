//! The content of a response, parsed from its bytes without any type of the gateway's.

mod events;
mod finish;
mod reply;
mod stream;
mod truth;

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, PAD};
use serde_json::Value;
use simulator::Protocol;

pub use self::events::events;
use self::finish::Finish;
use self::truth::Contradiction;

/// The content of the body of a response with status 200, up to its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    pub end: End,
    /// Reasoning, texts, refusals and arguments, in order. For Images the pictures.
    pub words: String,
    /// True if the output limit truncated it.
    pub is_cut: bool,
    /// True if a filter truncated it, or the model refused.
    pub is_filtered: bool,
    /// True if it says that it is incomplete, for that reason or another.
    pub is_incomplete: bool,
    pub usage: Option<Usage>,
    /// Every model that it names.
    pub models: BTreeSet<String>,
    /// The number of events before its end.
    pub events: usize,
    /// True if there are events after its end.
    pub has_more: bool,
    /// The contradiction that makes it a failure.
    pub contradiction: Option<Contradiction>,
}

/// The end of a response.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum End {
    /// None: it is truncated.
    #[default]
    Missing,
    /// The terminal event of a success, or a finished reply.
    Success,
    /// A failure with its code, or data outside of the protocol, without one.
    Failure(Option<String>),
}

/// Token counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Including those from a cache.
    pub input: u64,
    pub output: u64,
}

impl Reading {
    /// Parses a body, which is a JSON object or else a stream of events. It is only a success with
    /// `pictures` pictures.
    pub fn of(protocol: Protocol, body: &[u8], is_whole: bool, pictures: u32) -> Self {
        match json(body) {
            Ok(reply @ Value::Object(_)) if is_whole => reply::read(protocol, &reply),
            Ok(Value::Object(_)) => Self::default(),
            _ => stream::read(protocol, body, is_whole, pictures),
        }
    }

    /// Fails if it is a success that contradicts itself. One changed byte may be meant as a
    /// contradiction or as a form that is tolerated, so this is for other changes only.
    pub fn checked(mut self) -> Self {
        if self.contradiction.is_some() {
            self.end = End::Failure(None);
        }
        self
    }

    /// Notes what a word for the end means.
    fn finish(&mut self, protocol: Protocol, word: &Value) {
        let finish = word.as_str().and_then(|word| Finish::of(protocol, word));
        self.is_cut |= finish == Some(Finish::Cut);
        self.is_incomplete |= finish == Some(Finish::Cut);
        self.is_filtered |= finish == Some(Finish::Filtered);
    }

    fn name(&mut self, model: &Value) {
        self.models.extend(model.as_str().map(str::to_owned));
    }
}

impl Usage {
    /// Parses the counts of any protocol.
    fn of(counts: &Value) -> Option<Self> {
        counts
            .is_object()
            .then(|| Self::with(counts, Self::default()))
    }

    /// The same, with `other` for those that are absent.
    fn with(counts: &Value, other: Self) -> Self {
        let count = |names: &[&str]| names.iter().find_map(|name| counts[*name].as_u64());
        let cached =
            ["cache_read_input_tokens", "cache_creation_input_tokens"].map(|name| count(&[name]));
        let input = count(&["input_tokens", "prompt_tokens"]);
        Self {
            input: input.map_or(other.input, |input| {
                input + cached.into_iter().flatten().sum::<u64>()
            }),
            output: count(&["output_tokens", "completion_tokens"]).unwrap_or(other.output),
        }
    }
}

/// Reads JSON. A number beyond all bounds, such as `1E999`, is one by its grammar (RFC 8259,
/// section 6), but has no value that serde_json could hold: it is read without its exponent.
fn json(text: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(text).or_else(|error| {
        let is_too_large = error.to_string().starts_with("number out of range");
        if is_too_large {
            serde_json::from_slice(&without_exponents(text))
        } else {
            Err(error)
        }
    })
}

/// The text without the exponents of its numbers; what is no exponent stays.
fn without_exponents(text: &[u8]) -> Vec<u8> {
    let (mut out, mut rest, mut in_string) = (Vec::with_capacity(text.len()), text, false);
    while let Some((byte, after)) = rest.split_first() {
        let is_exponent =
            !in_string && matches!(byte, b'e' | b'E') && out.last().is_some_and(u8::is_ascii_digit);
        if is_exponent {
            let digits = after
                .strip_prefix(b"+")
                .or_else(|| after.strip_prefix(b"-"))
                .unwrap_or(after);
            let end = digits
                .iter()
                .position(|byte| !byte.is_ascii_digit())
                .unwrap_or(digits.len());
            if end > 0 {
                // What follows is kept, whatever it is: a number has one exponent.
                let kept = (end + 1).min(digits.len());
                out.extend_from_slice(&digits[end..kept]);
                rest = &digits[kept..];
                continue;
            }
        }
        let escaped = if in_string && *byte == b'\\' {
            after.len().min(1)
        } else {
            0
        };
        out.push(*byte);
        out.extend_from_slice(&after[..escaped]);
        in_string ^= *byte == b'"';
        rest = &after[escaped..];
    }
    out
}

/// The failure in a reply or in an event, if it is one.
fn failure(object: &Value) -> Option<End> {
    let error = match &object["response"]["error"] {
        Value::Null => &object["error"],
        error => error,
    };
    let is_error = !matches!(error, Value::Null | Value::Bool(false));
    let is_marked = object["type"] == "error"
        || object["object"] == "error"
        || object["type"] == "response.failed";
    if !is_error && !is_marked {
        return None;
    }
    let error = if error.is_object() { error } else { object };
    let code = error["code"].as_str().or(error["type"].as_str());
    Some(End::Failure(code.map(str::to_owned)))
}

/// The texts of the members with these names.
fn texts<'a>(object: &'a Value, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
    names.iter().filter_map(|name| object[*name].as_str())
}

/// The texts of content that is a list of parts.
fn parts(content: &Value) -> impl Iterator<Item = &str> {
    let parts = content.as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str())
}

/// Returns true if this is the base64 of a picture: of a known format with its end, or binary.
fn is_picture(base64: &Value) -> bool {
    let Some(file) = base64.as_str().and_then(|text| BASE64.decode(text).ok()) else {
        return false;
    };
    let end = &file[file.len().saturating_sub(48)..];
    let ends_with = |mark: &[u8]| end.windows(mark.len()).any(|window| window == mark);
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    match file.first_chunk::<12>() {
        None => false,
        Some([0x89, b'P', b'N', b'G', ..]) => ends_with(b"IEND\xaeB`\x82"),
        Some([0xff, 0xd8, 0xff, ..]) => ends_with(b"\xff\xd9"),
        Some([b'R', b'I', b'F', b'F', size @ .., b'W', b'E', b'B', b'P']) => {
            file.len() >= 8 + u32::from_le_bytes(*size) as usize
        }
        Some(head) => !head.iter().all(is_text),
    }
}

/// The alphabet with its padding, whatever bits of the last letter are not used.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, PAD.with_decode_allow_trailing_bits(true));

fn list<'a>(object: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    object[name].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests;
