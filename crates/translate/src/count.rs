//! Token counts: the requests of clients for one, the request to an upstream for one, and the reply.
//!
//! See <https://platform.claude.com/docs/en/api/messages/count_tokens> and
//! <https://platform.openai.com/docs/api-reference/responses/input-tokens>.

use engine::{EngineError, TextRequest};
use messages::{TokenCount, ValidCount};
use responses::{InputTokenCount, ValidRequest};
use serde_json::{Map, Value};
use vendor::Protocol;
use wire::{ApiError, Path};

use crate::inbound::{ClientProtocol as _, Messages, Responses};
use crate::outbound::encode::{self, Settings};

/// A validated request for the number of tokens in a prompt.
#[derive(Clone, Debug)]
pub enum CountRequest {
    /// A request of Messages.
    Messages(Box<ValidCount>),
    /// A request of Responses.
    Responses(Box<ValidRequest>),
}

/// The validation rules of a model, for both protocols that count.
#[derive(Clone, Debug, Default)]
pub struct CountRules {
    /// The rules of Messages.
    pub messages: messages::Rules,
    /// The rules of Responses.
    pub responses: responses::Rules,
}

impl CountRequest {
    /// Reads and validates a request of a protocol by the rules of its model, which `rules` returns. A
    /// request of Responses cannot refer to what a server keeps, because nothing ties it to the server
    /// or to the key of that conversation.
    ///
    /// # Errors
    /// Returns the violations of the request.
    pub fn read(
        protocol: Protocol,
        body: &[u8],
        rules: impl FnOnce(&str) -> CountRules,
    ) -> Result<Self, ApiError> {
        if protocol == Protocol::Messages {
            let request = messages::Request::read(body).map_err(messages::refusal)?;
            let rules = rules(&request.model).messages;
            let valid = request.validate_for_count(&rules);
            return Ok(Self::Messages(Box::new(valid.map_err(messages::refusal)?)));
        }
        let request = responses::Request::read(body)?;
        let mut rules = rules(&request.model).responses;
        rules.previous_response = false;
        rules.item_references = false;
        rules.conversation = false;
        rules.prompt = false;
        rules.background = false;
        Ok(Self::Responses(Box::new(request.validate(&rules)?)))
    }

    /// Returns the model that the request names.
    #[must_use]
    pub fn model(&self) -> &str {
        match self {
            Self::Messages(request) => &request.model,
            Self::Responses(request) => &request.model,
        }
    }

    /// Visits every image URL, with its path in the document.
    pub fn addresses(&self, visit: &mut dyn FnMut(&Path<'_>, &str)) {
        match self {
            Self::Messages(request) => request.addresses(visit),
            Self::Responses(request) => request.addresses(visit),
        }
    }

    /// Converts the request to the neutral form. It is validated again, because it may have been
    /// validated for an upstream that knows more.
    ///
    /// # Errors
    /// Returns the violations of a request that only its own vendor can read.
    pub fn neutral(self) -> Result<TextRequest, ApiError> {
        let inbound = match self {
            Self::Messages(request) => {
                let valid = request.into_inner().validate_for_count(&Default::default());
                Messages::count(valid.map_err(messages::refusal)?)
            }
            Self::Responses(request) => {
                let mut rules = responses::Rules::default();
                rules.string_input = true;
                Responses::request(request.into_inner().validate(&rules)?)
            }
        };
        Ok(inbound?.request)
    }
}

/// Returns the path by which an upstream counts tokens in the requests of a protocol, relative to its
/// base URL.
#[must_use]
pub const fn path(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Responses => "/responses/input_tokens",
        _ => "/messages/count_tokens",
    }
}

/// Encodes a prompt for the endpoint of a protocol that counts.
///
/// # Errors
/// As [`encode::request`].
pub fn encode(
    protocol: Protocol,
    request: &TextRequest,
    settings: &Settings,
) -> Result<Vec<u8>, EngineError> {
    let encoded = encode::request(protocol, request, settings)?;
    counted(protocol, &encoded.body).map_err(|error| EngineError::Internal(error.to_string()))
}

/// Returns the members of an encoded request that are counted; the vendors refuse the others.
///
/// # Errors
/// Returns an error for a request that is not a JSON object.
pub fn counted(protocol: Protocol, encoded: &[u8]) -> serde_json::Result<Vec<u8>> {
    let counted: &[&str] = match protocol {
        Protocol::Responses => &RESPONSES,
        _ => &MESSAGES,
    };
    let mut members: Map<String, Value> = serde_json::from_slice(encoded)?;
    members.retain(|name, _| counted.contains(&name.as_str()));
    serde_json::to_vec(&members)
}

/// Reads the reply of an upstream. Both protocols name the number alike.
///
/// # Errors
/// Returns an error for any other document.
pub fn read_reply(body: &[u8]) -> serde_json::Result<u64> {
    serde_json::from_slice::<TokenCount>(body).map(|count| count.input_tokens)
}

/// Returns the reply for a client of a protocol.
#[must_use]
pub fn reply(protocol: Protocol, input_tokens: u64) -> Value {
    match protocol {
        Protocol::Responses => serde_json::json!(InputTokenCount::new(
            input_tokens,
            InputTokenCount::OBJECT.to_owned()
        )),
        _ => serde_json::json!(TokenCount::new(input_tokens)),
    }
}

const MESSAGES: [&str; 8] = [
    "model",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "cache_control",
];

const RESPONSES: [&str; 9] = [
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "text",
    "truncation",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The parameters of both endpoints in the SDKs `anthropic` 2.14.0 and `openai` 3.57.0.
    #[test]
    fn only_counted_members_are_sent() {
        let kept = |protocol, body: &str| {
            String::from_utf8(counted(protocol, body.as_bytes()).unwrap()).unwrap()
        };
        let messages = r#"{"model":"m","max_tokens":64,"stream":true,"temperature":1.0,"system":"s","messages":[],"stop_sequences":["x"],"tools":[]}"#;
        assert_eq!(
            kept(Protocol::Messages, messages),
            r#"{"model":"m","system":"s","messages":[],"tools":[]}"#
        );
        let responses = r#"{"model":"m","input":[],"store":false,"stream":true,"max_output_tokens":64,"text":{"verbosity":"low"}}"#;
        assert_eq!(
            kept(Protocol::Responses, responses),
            r#"{"model":"m","input":[],"text":{"verbosity":"low"}}"#
        );
    }

    #[test]
    fn replies_are_those_of_the_protocols() {
        let messages = r#"{"input_tokens":2095}"#;
        let responses = r#"{"input_tokens":11,"object":"response.input_tokens"}"#;
        assert_eq!(reply(Protocol::Messages, 2095).to_string(), messages);
        assert_eq!(reply(Protocol::Responses, 11).to_string(), responses);
        assert_eq!(read_reply(messages.as_bytes()).unwrap(), 2095);
        assert_eq!(read_reply(responses.as_bytes()).unwrap(), 11);
        assert!(read_reply(br#"{"count":11}"#).is_err());
    }
}
