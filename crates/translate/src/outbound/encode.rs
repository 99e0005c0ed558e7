//! A neutral request as the body of a request to an upstream (wire-reference §9.1).
//!
//! What is lost for the name of a field is in the [`ledger`](crate::field_map); what is lost for a value, or because of
//! the upstream, is told here.

mod chat;
mod messages;
mod responses;

use std::fmt;

use engine::{Effort, EngineError, TextRequest, Tool, ToolChoice};
use serde::Serialize;
use wire::{DataUrl, Json};

use super::Protocol;

/// What the gateway decides about a request to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether to ask for a stream.
    pub stream: bool,
    /// The cap on the output, in tokens, for a protocol that requires one, when the request has none.
    pub max_tokens: u64,
    /// Whether a Messages upstream takes `temperature`, `top_p` and `top_k`.
    pub sampling: bool,
}

/// A request as an upstream reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedRequest {
    /// The body: a JSON object.
    pub body: Vec<u8>,
    /// What had no place because of its value or of the upstream, each told once.
    pub dropped: Vec<DroppedField>,
}

/// Something that an upstream's protocol has no place for, though it has one for the field as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DroppedField {
    /// A temperature that was left out, or lowered to the greatest that is taken.
    Temperature,
    /// The share of likely tokens to draw from.
    TopP,
    /// The number of likely tokens to draw from.
    TopK,
    /// Earlier thoughts that the upstream would not take back.
    Reasoning,
    /// The place of instructions within the conversation; their text is kept.
    SystemPosition,
}

impl DroppedField {
    /// Its short name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Temperature => "temperature",
            Self::TopP => "top_p",
            Self::TopK => "top_k",
            Self::Reasoning => "reasoning",
            Self::SystemPosition => "system_position",
        }
    }
}

impl fmt::Display for DroppedField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Says a request in an upstream's protocol. The body keeps every rule of that protocol's validator.
///
/// # Errors
/// [`EngineError::Unsupported`] when something that cannot be left out has no place there.
pub fn request(protocol: Protocol, request: &TextRequest, settings: &Settings) -> Result<EncodedRequest, EngineError> {
    check(request)?;
    let mut losses = DroppedFields::default();
    let body = match protocol {
        Protocol::Responses => json(&responses::request(request, settings)?),
        Protocol::Chat => json(&chat::request(request, settings, &mut losses)?),
        Protocol::Messages => json(&messages::request(request, settings, &mut losses)?),
    };
    Ok(EncodedRequest { body: body?, dropped: losses.0 })
}

/// What was lost so far.
#[derive(Default)]
struct DroppedFields(Vec<DroppedField>);

impl DroppedFields {
    fn add(&mut self, lost: DroppedField) {
        if !self.0.contains(&lost) {
            self.0.push(lost);
        }
    }
}

/// The word for how hard to think that Responses and Chat Completions share.
fn effort(effort: Effort) -> &'static str {
    match effort {
        Effort::None => "none",
        Effort::Minimal => "minimal",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::XHigh => "xhigh",
        Effort::Max => "max",
    }
}

fn json<T: Serialize>(request: &T) -> Result<Vec<u8>, EngineError> {
    serde_json::to_vec(request).map_err(|error| EngineError::Internal(format!("a request has no JSON form: {error}")))
}

/// The rules that all three protocols share.
fn check(request: &TextRequest) -> Result<(), EngineError> {
    if request.max_output_tokens == Some(0) {
        return Err(unsupported("A cap of 0 tokens is not supported by this model."));
    }
    let offered = |name: &str| request.tools.iter().any(|tool| tool.name == name);
    match &request.tool_choice {
        ToolChoice::Required if request.tools.is_empty() => {
            Err(refusal("tool_choice", "Only functions can be called by this model, and there is none."))
        }
        ToolChoice::Named(name) if !offered(name) => {
            Err(refusal("tool_choice", "'tool_choice' names a tool that this model cannot call."))
        }
        _ => Ok(()),
    }
}

/// A refusal of something that has one name in all protocols.
fn refusal(param: &str, sentence: impl Into<String>) -> EngineError {
    EngineError::Unsupported { param: Some(param.to_owned()), reason: sentence.into() }
}

/// A refusal of something whose name in the caller's protocol is not known here.
fn unsupported(sentence: impl Into<String>) -> EngineError {
    EngineError::Unsupported { param: None, reason: sentence.into() }
}

fn nothing_to_answer() -> EngineError {
    unsupported("There is nothing in the conversation that this model could answer.")
}

/// A count as the protocols write it.
fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The tools, when there are as many and with such names as Responses and Chat Completions take.
fn check_tools(tools: &[Tool]) -> Result<(), EngineError> {
    if tools.len() > MAX_TOOLS {
        return Err(refusal("tools", format!("This model takes at most {MAX_TOOLS} tools, but got {}.", tools.len())));
    }
    match tools.iter().find(|tool| tool.name.len() > MAX_NAME) {
        Some(tool) => {
            let sentence = format!("The names of tools have at most {MAX_NAME} characters, '{}' has more.", tool.name);
            Err(refusal("tools", sentence))
        }
        None => Ok(()),
    }
}

/// JSON of the caller's, when it leaves room to be put inside the request.
fn embed(json: &Json) -> Result<Json, EngineError> {
    if wire::depth(json.text().as_bytes()) > MAX_DEPTH {
        return Err(unsupported(format!("A JSON Schema or the input of a call nests more than {MAX_DEPTH} deep.")));
    }
    Ok(json.clone())
}

/// The id of a call as every protocol takes it: others than `[a-zA-Z0-9_-]{1,64}` give way to a hash, which is the same
/// for the call and for its result.
pub(crate) fn call_id(id: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=MAX_NAME).contains(&id.len()) && id.bytes().all(plain) {
        return id.to_owned();
    }
    format!("call_{:032x}", fnv1a(id.as_bytes()))
}

/// The 128-bit FNV-1a hash (<http://www.isthe.com/chongo/tech/comp/fnv/>): the same in every run.
fn fnv1a(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

/// The content of a document, when it is base64.
fn check_data(media_type: &str, data: &str) -> Result<(), EngineError> {
    match (DataUrl { media_type, data }).check() {
        Ok(()) => Ok(()),
        Err(why) => Err(unsupported(format!("The content of a document is not usable: {why}."))),
    }
}

/// The texts with a blank line between them; nothing when there are none.
fn join(texts: &[&str]) -> Option<String> {
    (!texts.is_empty()).then(|| texts.join(BLANK_LINE))
}

/// Between texts that were apart and become one.
const BLANK_LINE: &str = "\n\n";
/// Before the result of a call that failed, where a result cannot say so otherwise.
const ERROR_PREFIX: &str = "[error] ";
/// The name of a schema that has none, where it needs one.
const SCHEMA_NAME: &str = "answer";
const MAX_TOOLS: usize = 128;
/// The longest name of a tool, and the longest id of a call.
const MAX_NAME: usize = 64;
/// How deep JSON of the caller's may nest: the request is at most five deep around it.
const MAX_DEPTH: usize = wire::MAX_DEPTH - 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_not_everybody_takes_give_way_to_a_stable_hash() {
        let (long, fits) = ("a".repeat(65), "a".repeat(64));
        assert_eq!(call_id("call_a-1"), "call_a-1");
        assert_eq!(call_id(&fits), fits);
        for odd in ["", "a b", "caf\u{e9}", "a.b", &long] {
            let id = call_id(odd);
            assert_eq!((id.len(), id == call_id(odd), id == call_id("other.id")), (37, true, false), "{odd:?}");
        }
        assert_eq!(call_id(""), "call_6c62272e07bb014262b821756295c58d");
        // http://www.isthe.com/chongo/src/fnv/test_fnv.c
        assert_eq!(fnv1a(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
