//! The facts in the list of models of a model server.
//!
//! Servers agree on the list and on the ids in it, and each has its own names for what it states about a
//! model. Members of another type than expected, and words that the gateway does not know, state nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::{Capability, Facts, Modality};

/// Reads the list of models of a server. Returns the facts of each model that has some, by its name at
/// the server.
///
/// # Errors
/// Returns the problem if `json` is not a list of models.
pub fn read(json: &[u8]) -> Result<BTreeMap<String, Facts>, String> {
    let list: Value = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    // Together sends an array. llama.cpp has `data` and `models`, with facts in the first one.
    let member = |name| list.get(name).and_then(Value::as_array);
    let entries = list.as_array().or(member("data")).or(member("models"));
    let entries = entries.ok_or("it is neither an array nor an object with 'data' or 'models'")?;
    let known = entries
        .iter()
        .filter_map(|entry| Some((name(entry)?.to_owned(), facts(entry))))
        .filter(|(_, facts)| *facts != Facts::default());
    Ok(known.collect())
}

/// Returns the name by which requests refer to a model: `id`, except in the lists of Gemini (`name`) and
/// of LM Studio (`key`).
fn name(entry: &Value) -> Option<&str> {
    let names = ["id", "key", "name"].into_iter();
    let name = names.filter_map(|name| entry.get(name)?.as_str()).next()?;
    Some(name.strip_prefix("models/").unwrap_or(name))
}

fn facts(entry: &Value) -> Facts {
    Facts {
        max_input_tokens: tokens(entry, &INPUT),
        max_output_tokens: tokens(entry, &OUTPUT),
        input_modalities: media(entry, "/architecture/input_modalities")
            .or_else(|| media_of_capabilities(entry)),
        output_modalities: media(entry, "/architecture/output_modalities"),
        capabilities: capabilities(entry),
        deprecated_at: time(entry, &["/deprecated_at", "/deprecation"]),
        retires_at: time(entry, &["/retires_at", "/expiration_date"]),
    }
}

/// The members with the tokens of the longest prompt. The window that a server has loaded comes before
/// the one for which the model was made.
const INPUT: [&str; 10] = [
    "/max_input_tokens",                         // Anthropic
    "/context_length",                           // OpenRouter, Together
    "/max_model_len",                            // vLLM
    "/context_window",                           // Groq
    "/meta/n_ctx",                               // llama.cpp
    "/meta/n_ctx_train",                         // llama.cpp, the model's own window
    "/loaded_context_length",                    // LM Studio, REST API v0
    "/loaded_instances/0/config/context_length", // LM Studio, REST API v1
    "/max_context_length",                       // Mistral, and LM Studio for a model's own window
    "/inputTokenLimit",                          // Gemini
];

/// The members with the tokens of the longest answer.
const OUTPUT: [&str; 5] = [
    "/max_output_tokens",                  // Sluicegate
    "/max_tokens",                         // Anthropic
    "/top_provider/max_completion_tokens", // OpenRouter
    "/max_completion_tokens",              // Groq
    "/outputTokenLimit",                   // Gemini
];

fn tokens(entry: &Value, pointers: &[&str]) -> Option<NonZeroU64> {
    let mut stated = pointers.iter().filter_map(|at| entry.pointer(at)?.as_u64());
    stated.find_map(NonZeroU64::new)
}

/// Reads a list of media. One with an unknown word is left out, because it would not be complete.
fn media(entry: &Value, pointer: &str) -> Option<BTreeSet<Modality>> {
    let words = entry.pointer(pointer)?.as_array()?.iter();
    words.map(|word| Modality::named(word.as_str()?)).collect()
}

/// Reads the media of prompts from the capabilities in the form of Anthropic.
fn media_of_capabilities(entry: &Value) -> Option<BTreeSet<Modality>> {
    let image = supported(entry, "image_input")?.then_some(Modality::Image);
    let file = supported(entry, "pdf_input")?.then_some(Modality::File);
    let media = [Some(Modality::Text), image, file];
    Some(media.into_iter().flatten().collect())
}

/// Reads the capabilities in the form of Anthropic, which names all of them. Flags of other servers are
/// left out: what they do not name, such as several calls in one answer, the model may still do.
fn capabilities(entry: &Value) -> Option<BTreeSet<Capability>> {
    supported(entry, "structured_outputs")?;
    let listed = NAMED
        .iter()
        .filter(|(at, _)| supported(entry, at) == Some(true));
    let mut found: BTreeSet<_> = listed.map(|(_, capability)| *capability).collect();
    if supported(entry, "thinking/types/disabled") == Some(false) {
        found.insert(Capability::AlwaysThinking);
    }
    found.extend(tools(entry));
    Some(found)
}

/// Reads whether a model with capabilities in the form of Anthropic calls tools. That form has no word
/// for it, because [all models of Anthropic](https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview)
/// do. A list of another gateway has the parameters of OpenAI beside it.
fn tools(entry: &Value) -> Vec<Capability> {
    let all = [
        (Capability::Tools, "tools"),
        (Capability::ParallelToolCalls, "parallel_tool_calls"),
    ];
    let parameters = entry.get("supported_parameters").and_then(Value::as_array);
    let has = |word: &str| parameters.is_none_or(|words| words.iter().any(|it| it == word));
    let all = all.into_iter().filter(|(_, word)| has(word));
    all.map(|(capability, _)| capability).collect()
}

/// Returns whether a member of `capabilities` in the form of Anthropic says that it is supported.
fn supported(entry: &Value, path: &str) -> Option<bool> {
    let at = format!("/capabilities/{path}/supported");
    entry.pointer(&at)?.as_bool()
}

/// The members of `capabilities` in the form of
/// [Anthropic](https://platform.claude.com/docs/en/api/models/list).
const NAMED: [(&str, Capability); 16] = [
    ("structured_outputs", Capability::StructuredOutputs),
    ("thinking/types/enabled", Capability::Thinking),
    ("thinking/types/adaptive", Capability::AdaptiveThinking),
    (
        "thinking/types/between_tools",
        Capability::ThinkingBetweenTools,
    ),
    ("effort/low", Capability::EffortLow),
    ("effort/medium", Capability::EffortMedium),
    ("effort/high", Capability::EffortHigh),
    ("effort/xhigh", Capability::EffortXhigh),
    ("effort/max", Capability::EffortMax),
    ("citations", Capability::Citations),
    ("server_tools/web_search", Capability::WebSearch),
    ("server_tools/code_execution", Capability::CodeExecution),
    ("code_execution", Capability::ProgrammaticToolCalls),
    (
        "context_management/clear_thinking_20251015",
        Capability::ClearThinking,
    ),
    (
        "context_management/clear_tool_uses_20250919",
        Capability::ClearToolUses,
    ),
    (
        "context_management/compact_20260112",
        Capability::Compaction,
    ),
];

/// Reads the first of several members that is a time, or a date, which is the start of the day in UTC.
fn time(entry: &Value, pointers: &[&str]) -> Option<Timestamp> {
    let mut texts = pointers.iter().filter_map(|at| entry.pointer(at)?.as_str());
    texts.find_map(|text| {
        let start = |date: Date| Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp());
        text.parse().ok().or_else(|| start(text.parse().ok()?))
    })
}
