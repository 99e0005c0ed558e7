//! Validates requests beyond the types of their fields.

mod input;
mod tools;

use wire::{Code, Object, Path, Problem, Violations};

use self::input::check_input;
use self::tools::check_tools;
use crate::request::{
    Effort, Format, ReasoningOptions, Request, Summary, TextOptions, Truncation, Verbosity,
};

/// Model-dependent exceptions to the rules. The default is the strictest set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// True if `input` may be a string.
    pub string_input: bool,
    /// True if `previous_response_id` may continue a response that the server keeps.
    pub previous_response: bool,
    /// True if items may refer to those that the server keeps.
    pub item_references: bool,
    /// True if `conversation` may name a conversation that the server keeps.
    pub conversation: bool,
    /// True if `prompt` may name a prompt that the server keeps.
    pub prompt: bool,
    /// True if `background` may be true.
    pub background: bool,
    /// True if images and documents may be files that the server keeps. In earlier messages they may
    /// be.
    pub file_ids: bool,
    /// True if unknown types of items, parts and tools, unknown roles and unknown words of settings
    /// are accepted, because somebody else interprets them. So are known parts in any message, and
    /// results and choices whose call or function is not in the request.
    pub unknown_types: bool,
}

impl Rules {
    /// Returns a word of a setting if it has to be a known one.
    fn judged<'a>(&self, word: Option<&'a str>) -> Option<&'a str> {
        word.filter(|word| !self.unknown_types || word.is_empty())
    }
}

wire::valid! {
    /// A request that satisfies every rule. Only [`Request::validate`] creates it.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ValidRequest(Request);
}

impl Request {
    /// Validates the request against every rule.
    ///
    /// # Errors
    /// Returns every violation, each with its path.
    pub fn validate(self, rules: &Rules) -> Result<ValidRequest, Violations> {
        let mut found = Violations::default();
        let root = Path::ROOT;
        found.check_spelling(&root, &self);
        found.check_model(&self.model);
        check_input(&self, rules, &root.key("input"), &mut found);
        check_numbers(&self, &mut found);
        check_text(self.text.as_ref(), rules, &root.key("text"), &mut found);
        check_reasoning(
            self.reasoning.as_ref(),
            rules,
            &root.key("reasoning"),
            &mut found,
        );
        let truncation = rules.judged(self.truncation.as_ref().map(Truncation::as_str));
        found.check_word(&root.key("truncation"), truncation, Truncation::KNOWN);
        check_metadata(self.metadata.as_ref(), &root.key("metadata"), &mut found);
        check_tools(&self, rules, &mut found);
        check_unserved(&self, rules, &mut found);
        found.or(ValidRequest(self))
    }
}

fn check_numbers(request: &Request, found: &mut Violations) {
    let root = Path::ROOT;
    found.check_integer(
        &root.key("max_output_tokens"),
        request.max_output_tokens,
        1,
        i64::MAX,
    );
    found.check_integer(
        &root.key("max_tool_calls"),
        request.max_tool_calls,
        1,
        i64::MAX,
    );
    found.check_integer(&root.key("top_logprobs"), request.top_logprobs, 0, 20);
    found.check_number(&root.key("temperature"), request.temperature, 0.0, 2.0);
    found.check_number(&root.key("top_p"), request.top_p, 0.0, 1.0);
    found.check_number(
        &root.key("presence_penalty"),
        request.presence_penalty,
        -2.0,
        2.0,
    );
    found.check_number(
        &root.key("frequency_penalty"),
        request.frequency_penalty,
        -2.0,
        2.0,
    );
}

fn check_text(
    options: Option<&TextOptions>,
    rules: &Rules,
    path: &Path<'_>,
    found: &mut Violations,
) {
    let Some(options) = options else { return };
    let verbosity = rules.judged(options.verbosity.as_ref().map(Verbosity::as_str));
    found.check_word(&path.key("verbosity"), verbosity, Verbosity::KNOWN);
    let path = path.key("format");
    match &options.format {
        Some(Format::JsonSchema(format)) => {
            found.check_name(&path.key("name"), &format.name, MAX_NAME);
            found.check_schema(&path.key("schema"), Some(&format.schema));
        }
        Some(format @ Format::Other(_)) if rules.judged(Some(format.kind())).is_some() => {
            found.unknown_word(&path.key("type"), format.kind(), Format::KNOWN);
        }
        _ => {}
    }
}

fn check_reasoning(
    options: Option<&ReasoningOptions>,
    rules: &Rules,
    path: &Path<'_>,
    found: &mut Violations,
) {
    let Some(options) = options else { return };
    let effort = rules.judged(options.effort.as_ref().map(Effort::as_str));
    found.check_word(&path.key("effort"), effort, Effort::KNOWN);
    for (name, summary) in [
        ("summary", &options.summary),
        ("generate_summary", &options.generate_summary),
    ] {
        let summary = rules.judged(summary.as_ref().map(Summary::as_str));
        found.check_word(&path.key(name), summary, Summary::KNOWN);
    }
}

fn check_metadata(metadata: Option<&Object>, path: &Path<'_>, found: &mut Violations) {
    let Some(metadata) = metadata else { return };
    found.check_length(path, metadata.len(), MAX_PAIRS);
    for (key, value) in metadata {
        let path = path.key(key);
        found.check_text(&path, key, MAX_KEY);
        match value.as_str() {
            None => found.add(
                &path,
                Problem::Type {
                    expected: "a string".to_owned(),
                    found: "another value",
                },
            ),
            Some(text) => found.check_text(&path, text, MAX_VALUE),
        }
    }
}

fn check_unserved(request: &Request, rules: &Rules, found: &mut Violations) {
    let root = Path::ROOT;
    if let Some(id) = &request.previous_response_id
        && !rules.previous_response
    {
        let id = wire::truncate_for_error(id);
        let sentence = format!("Previous response with id '{id}' not found.");
        let code = Code::PreviousResponseNotFound;
        found.unsupported(&root.key("previous_response_id"), code, sentence);
    }
    if request.conversation.is_some() && !rules.conversation {
        found.unsupported_parameter(&root.key("conversation"), Some("input"));
    }
    if request.prompt.is_some() && !rules.prompt {
        found.unsupported_parameter(&root.key("prompt"), Some("input"));
    }
    if request.background == Some(true) && !rules.background {
        found.unsupported_parameter(&root.key("background"), None);
    }
}

const MAX_NAME: usize = 64;
const MAX_PAIRS: usize = 16;
const MAX_KEY: usize = 64;
const MAX_VALUE: usize = 512;
