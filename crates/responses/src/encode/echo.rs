//! The parts of a response that mirror its request.

use wire::{Object, TextOr};

use crate::request::{Format, PlainFormat, ReasoningOptions, Request, TextOptions};
use crate::response::{Response, free_choice, one, parallel_by_default, standard_tier};
use crate::status::Status;

/// The fields that a response repeats from its request, and the request's options that affect the
/// stream.
#[derive(Clone, Debug)]
pub struct Echo {
    /// The initial response, without the fields of `Head`.
    pub(super) blank: Response,
    /// True if the request offers tools, so that calls may follow a message.
    pub(super) offers_tools: bool,
    /// True if deltas are padded.
    pub(super) pad_deltas: bool,
    /// True if encrypted reasoning content is included.
    pub(super) include_encrypted: bool,
}

impl Echo {
    /// Extracts the mirrored fields and the stream options of a request.
    #[must_use]
    pub fn of(request: &Request) -> Self {
        Self {
            blank: blank(request),
            offers_tools: request
                .tools
                .as_ref()
                .is_some_and(|tools| !tools.is_empty()),
            pad_deltas: request.includes_obfuscation(),
            include_encrypted: request.includes(Request::ENCRYPTED_REASONING),
        }
    }
}

impl Default for Echo {
    /// The echo of a request with default options.
    fn default() -> Self {
        Self::of(&Request::default())
    }
}

fn blank(request: &Request) -> Response {
    Response {
        id: String::new(),
        object: Response::OBJECT.to_owned(),
        created_at: 0,
        completed_at: None,
        status: Status::InProgress,
        background: false,
        error: None,
        frequency_penalty: request.frequency_penalty.unwrap_or_default(),
        incomplete_details: None,
        instructions: request.instructions.clone().map(TextOr::Text),
        max_output_tokens: request.max_output_tokens,
        max_tool_calls: request.max_tool_calls,
        metadata: request.metadata.clone().unwrap_or_default(),
        model: String::new(),
        output: Vec::new(),
        parallel_tool_calls: request
            .parallel_tool_calls
            .unwrap_or_else(parallel_by_default),
        presence_penalty: request.presence_penalty.unwrap_or_default(),
        previous_response_id: None,
        prompt_cache_key: request.prompt_cache_key.clone(),
        reasoning: reasoning(request.reasoning.as_ref()),
        safety_identifier: request.safety_identifier.clone(),
        service_tier: standard_tier(),
        store: false,
        temperature: request.temperature.unwrap_or_else(one),
        text: text(request.text.as_ref()),
        tool_choice: request.tool_choice.clone().unwrap_or_else(free_choice),
        tools: request.tools.clone().unwrap_or_default(),
        top_logprobs: request.top_logprobs.unwrap_or_default(),
        top_p: request.top_p.unwrap_or_else(one),
        truncation: request.truncation.clone().unwrap_or_default(),
        usage: None,
        user: request.user.clone(),
        extra: Object::new(),
    }
}

fn reasoning(options: Option<&ReasoningOptions>) -> ReasoningOptions {
    let Some(options) = options else {
        return ReasoningOptions::default();
    };
    ReasoningOptions {
        summary: options.summary().cloned(),
        generate_summary: None,
        ..options.clone()
    }
}

fn text(options: Option<&TextOptions>) -> TextOptions {
    let mut options = options.cloned().unwrap_or_default();
    options
        .format
        .get_or_insert_with(|| Format::Text(PlainFormat::default()));
    options
}
