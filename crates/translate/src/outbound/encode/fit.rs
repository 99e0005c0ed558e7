//! Requests within the limits of the upstream, which do not depend on its rules for single members.

use std::borrow::Cow;

use engine::{CacheLifetime, Format, Reasoning, TextRequest, Turn, UserPart};
use serde_json::Value;
use vendor::Protocol;
use wire::{Json, Object};

use super::{DroppedField, DroppedFields, Settings, history, schema};

/// Returns the request as the upstream can take it.
pub(super) fn fitted<'a>(
    protocol: Protocol,
    request: Cow<'a, TextRequest>,
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Cow<'a, TextRequest> {
    let mut request = request;
    if settings.quirks.no_reasoning && request.reasoning != Reasoning::default() {
        let reasoning = std::mem::take(&mut request.to_mut().reasoning);
        if reasoning.wanted() {
            dropped.add(DroppedField::Effort);
        }
    }
    if settings.quirks.schema_as_text
        && let Format::JsonSchema { schema, .. } = &request.format
    {
        let instruction = schema_in_words(schema);
        ask_in_words(request.to_mut(), instruction, protocol);
        dropped.add(DroppedField::Schema);
    }
    if settings.quirks.typed_alternatives {
        schema::type_alternatives(request.to_mut(), dropped);
    }
    if settings.quirks.merge_system
        && let Cow::Owned(turns) = history::with_one_system(&request.turns, dropped)
    {
        request.to_mut().turns = turns;
    }
    let needs_user = protocol == Protocol::Messages || settings.quirks.needs_user;
    if needs_user && history::has_only_instructions(&request.turns) {
        history::ask_by_instructions(&mut request.to_mut().turns);
        dropped.add(DroppedField::SystemPosition);
    }
    let is_claude = protocol == Protocol::Messages || settings.quirks.cache_control;
    if is_claude && let Some(kept) = kept_marks(&request) {
        keep_marks(request.to_mut(), &kept);
        dropped.add(DroppedField::CacheBreakpoint);
    }
    let metadata = request.labels.metadata.as_ref();
    if protocol == Protocol::Responses && metadata.is_some_and(|metadata| !is_taken(metadata)) {
        let labels = &mut request.to_mut().labels;
        labels.metadata = labels.metadata.take().map(within_limits);
        dropped.add(DroppedField::Metadata);
    }
    request
}

/// The instruction that asks for the output of a schema, for a server that takes no schemas.
fn schema_in_words(schema: &Json) -> String {
    format!(
        "Answer with a JSON object that matches this JSON Schema, and with nothing else:\n{}",
        schema.text()
    )
}

/// Asks for JSON by an instruction, beside the format of any JSON object, which Messages does not have.
fn ask_in_words(request: &mut TextRequest, instruction: String, protocol: Protocol) {
    request.turns.insert(0, Turn::System(instruction));
    request.format = match protocol {
        Protocol::Responses | Protocol::Chat => Format::JsonObject,
        Protocol::Messages => Format::Text,
    };
}

fn parts(turns: &[Turn]) -> impl Iterator<Item = &UserPart> {
    turns.iter().flat_map(|turn| match turn {
        Turn::User(parts) => parts.as_slice(),
        Turn::Tool(result) => result.content.as_slice(),
        _ => &[],
    })
}

/// Returns the breakpoints of the prompt cache that Claude takes, in the order of the prompt, or
/// `None` if it takes all: at most four, and none for minutes before one for an hour
/// (<https://platform.claude.com/docs/en/build-with-claude/prompt-caching>). Those behind the tools
/// and the instructions stay, and the last ones of the conversation.
fn kept_marks(request: &TextRequest) -> Option<Vec<Option<CacheLifetime>>> {
    let prefixes = [request.cached.tools, request.cached.system];
    let heads = prefixes.iter().flatten().count();
    let marks = parts(&request.turns).filter_map(|part| match part {
        UserPart::CacheBreakpoint(lifetime) => Some(*lifetime),
        _ => None,
    });
    let marks: Vec<_> = prefixes.into_iter().flatten().chain(marks).collect();
    let surplus = marks.len().saturating_sub(MAX_MARKS);
    let mut shortest = CacheLifetime::Short;
    let mut kept = Vec::with_capacity(marks.len());
    // A prefix that is kept for an hour contains all those before it.
    for (at, lifetime) in marks.iter().enumerate().rev() {
        let is_surplus = (heads..heads + surplus).contains(&at);
        if !is_surplus && *lifetime == CacheLifetime::Long {
            shortest = CacheLifetime::Long;
        }
        kept.push((!is_surplus).then_some(shortest));
    }
    kept.reverse();
    let is_same = |(kept, mark): (&Option<_>, &_)| *kept == Some(*mark);
    let takes_all = kept.iter().zip(&marks).all(is_same);
    (!takes_all).then_some(kept)
}

fn keep_marks(request: &mut TextRequest, kept: &[Option<CacheLifetime>]) {
    let mut kept = kept.iter().copied();
    for prefix in [&mut request.cached.tools, &mut request.cached.system] {
        if prefix.is_some() {
            *prefix = kept.next().flatten();
        }
    }
    for turn in &mut request.turns {
        let parts = match turn {
            Turn::User(parts) => parts,
            Turn::Tool(result) => &mut result.content,
            _ => continue,
        };
        parts.retain_mut(|part| match part {
            UserPart::CacheBreakpoint(lifetime) => match kept.next().flatten() {
                Some(kept) => {
                    *lifetime = kept;
                    true
                }
                None => false,
            },
            _ => true,
        });
    }
}

/// Returns true if OpenAI takes the metadata: at most 16 texts, with at most 512 characters, and
/// names with at most 64 (<https://platform.openai.com/docs/api-reference/responses/create>).
fn is_taken(metadata: &Object) -> bool {
    metadata.len() <= MAX_PAIRS && metadata.iter().all(|(name, value)| is_pair(name, value))
}

fn is_pair(name: &str, value: &Value) -> bool {
    let fits = |text: &str, most: usize| text.chars().nth(most).is_none();
    fits(name, MAX_NAME) && value.as_str().is_some_and(|value| fits(value, MAX_VALUE))
}

/// Returns the pairs that OpenAI takes. Numbers and the like become texts.
fn within_limits(metadata: Object) -> Object {
    let texts = metadata.into_iter().map(|(name, value)| match value {
        Value::String(_) => (name, value),
        other => (name, other.to_string().into()),
    });
    let pairs = texts.filter(|(name, value)| is_pair(name, value));
    pairs.take(MAX_PAIRS).collect()
}

/// The number of breakpoints in a request of Messages.
const MAX_MARKS: usize = 4;
/// The number of pairs of metadata.
const MAX_PAIRS: usize = 16;
/// The lengths of their names and values, in characters.
const MAX_NAME: usize = 64;
const MAX_VALUE: usize = 512;
