//! Encodes a neutral request as the body of a request to an upstream.
//!
//! Fields that are dropped by name are listed in [`field_map`](crate::field_map); fields that are
//! dropped because of their value or the upstream's capabilities are reported here.

mod chat;
mod messages;
mod responses;

use engine::{EngineError, ImageSource, TextRequest, Tool, ToolChoice};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use wire::{DataUrl, Json};

use super::Protocol;

/// Settings of a request to an upstream that the gateway decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// True to request a stream.
    pub stream: bool,
    /// The output limit in tokens if the protocol requires one and the request has none.
    pub max_tokens: u64,
    /// True if a Messages upstream accepts `temperature`, `top_p` and `top_k`.
    pub sampling: bool,
}

/// A request encoded for an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedRequest {
    /// The body: a JSON object.
    pub body: Vec<u8>,
    /// The fields dropped because of their value or the upstream, each once.
    pub dropped: Vec<DroppedField>,
}

wire::text_enum! {
    /// A field that exists in the upstream's protocol but could not carry the request's value, by
    /// its name for clients.
    #[non_exhaustive]
    pub enum DroppedField {
        /// A temperature that was left out, or lowered to the maximum.
        Temperature = "temperature",
        /// Nucleus sampling.
        TopP = "top_p",
        /// Top-k sampling.
        TopK = "top_k",
        /// Earlier reasoning that the upstream would not accept.
        Reasoning = "reasoning",
        /// The position of instructions within the conversation. Their text is kept.
        SystemPosition = "system_position",
    }
}

/// Encodes a request in an upstream's protocol. The body passes that protocol's validator.
///
/// # Errors
/// [`EngineError::Unsupported`] when the protocol cannot represent something that cannot be left
/// out.
pub fn request(
    protocol: Protocol,
    request: &TextRequest,
    settings: &Settings,
) -> Result<EncodedRequest, EngineError> {
    check(request)?;
    let mut dropped = DroppedFields::default();
    let body = match protocol {
        Protocol::Responses => json(&responses::request(request, settings)?),
        Protocol::Chat => json(&chat::request(request, settings, &mut dropped)?),
        Protocol::Messages => json(&messages::request(request, settings, &mut dropped)?),
    };
    Ok(EncodedRequest {
        body: body?,
        dropped: dropped.0,
    })
}

/// The fields dropped so far, without duplicates.
#[derive(Default)]
struct DroppedFields(Vec<DroppedField>);

impl DroppedFields {
    fn add(&mut self, field: DroppedField) {
        if !self.0.contains(&field) {
            self.0.push(field);
        }
    }
}

fn json<T: Serialize>(request: &T) -> Result<Vec<u8>, EngineError> {
    serde_json::to_vec(request)
        .map_err(|error| EngineError::Internal(format!("failed to serialize the request: {error}")))
}

/// Checks the rules that all three protocols share.
fn check(request: &TextRequest) -> Result<(), EngineError> {
    if request.max_output_tokens == Some(0) {
        return Err(unsupported(
            "A cap of 0 tokens is not supported by this model.",
        ));
    }
    let is_declared = |name: &str| request.tools.iter().any(|tool| tool.name == name);
    match &request.tool_choice {
        ToolChoice::Required if request.tools.is_empty() => Err(refusal(
            "tool_choice",
            "Only functions can be called by this model, and there is none.",
        )),
        ToolChoice::Named(name) if !is_declared(name) => Err(refusal(
            "tool_choice",
            "'tool_choice' names a tool that this model cannot call.",
        )),
        _ => Ok(()),
    }
}

/// The refusal of a parameter that has the same name in all protocols.
fn refusal(param: &str, sentence: impl Into<String>) -> EngineError {
    EngineError::Unsupported {
        param: Some(param.to_owned()),
        reason: sentence.into(),
    }
}

/// The refusal of a parameter whose name in the client's protocol is not known here.
fn unsupported(sentence: impl Into<String>) -> EngineError {
    EngineError::Unsupported {
        param: None,
        reason: sentence.into(),
    }
}

fn empty_conversation() -> EngineError {
    unsupported("There is nothing in the conversation that this model could answer.")
}

/// Converts a count to the integer type of the protocols.
fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts the tools, unless their number or a name exceeds the limits of Responses and Chat
/// Completions.
fn tools<T>(
    tools: &[Tool],
    convert: impl Fn(&Tool) -> Result<T, EngineError>,
) -> Result<Option<Vec<T>>, EngineError> {
    if tools.len() > MAX_TOOLS {
        return Err(refusal(
            "tools",
            format!(
                "This model takes at most {MAX_TOOLS} tools, but got {}.",
                tools.len()
            ),
        ));
    }
    if let Some(tool) = tools.iter().find(|tool| tool.name.len() > MAX_NAME) {
        let sentence = format!(
            "The names of tools have at most {MAX_NAME} characters, '{}' has more.",
            tool.name
        );
        return Err(refusal("tools", sentence));
    }
    let converted = tools.iter().map(convert).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(converted).filter(|tools| !tools.is_empty()))
}

/// Returns JSON of the caller, if it can be nested in the request within the depth limit.
fn embed(json: &Json) -> Result<Json, EngineError> {
    if wire::depth(json.text().as_bytes()) > MAX_DEPTH {
        return Err(unsupported(format!(
            "A JSON Schema or the input of a call nests more than {MAX_DEPTH} deep."
        )));
    }
    Ok(json.clone())
}

/// Returns a call id that every protocol accepts: ids other than `[a-zA-Z0-9_-]{1,64}` are replaced
/// by a digest, which is the same for the call and its result.
pub(crate) fn call_id(id: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=MAX_NAME).contains(&id.len()) && id.bytes().all(plain) {
        return id.to_owned();
    }
    let half = Sha256::digest(id).into_iter().take(16);
    wire::id(
        "call",
        half.fold(0, |bits, byte| bits << 8 | u128::from(byte)),
    )
}

/// Returns the URL of an image; that of an inline image contains its data.
fn image_url(source: &ImageSource) -> String {
    match source {
        ImageSource::Inline { media_type, data } => data_url(media_type, data),
        ImageSource::Url(url) => url.clone(),
    }
}

fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

/// Checks that the content of a document is base64.
fn check_data(media_type: &str, data: &str) -> Result<(), EngineError> {
    match (DataUrl { media_type, data }).check() {
        Ok(()) => Ok(()),
        Err(why) => Err(unsupported(format!(
            "The content of a document is not usable: {why}."
        ))),
    }
}

/// Joins texts with blank lines; `None` if there are none.
fn join(texts: &[&str]) -> Option<String> {
    (!texts.is_empty()).then(|| texts.join(BLANK_LINE))
}

/// The separator of joined texts.
const BLANK_LINE: &str = "\n\n";
/// The prefix of a failed call's result, for protocols without an error flag.
const ERROR_PREFIX: &str = "[error] ";
/// The name of an unnamed schema, for protocols that require one.
const SCHEMA_NAME: &str = "answer";
const MAX_TOOLS: usize = 128;
/// The longest name of a tool, and the longest id of a call.
const MAX_NAME: usize = 64;
/// The maximum depth of the caller's JSON: the request adds at most five levels around it.
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
            assert_eq!(
                (id.len(), id == call_id(odd), id == call_id("other.id")),
                (37, true, false),
                "{odd:?}"
            );
        }
        // The SHA-256 of an empty message, cut to half of its digits.
        assert_eq!(call_id(""), "call_e3b0c44298fc1c149afbf4c8996fb924");
    }
}
