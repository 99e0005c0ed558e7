//! The output of the model, independent of the protocol.

use serde_json::{Value, json};

use super::parsed_request::{Choice, Format, ParsedRequest, Tool};
use super::schema;

#[derive(Debug)]
pub(super) struct Answer {
    /// Empty if reasoning is not enabled.
    pub(super) reasoning: String,
    /// The seal of the reasoning; `None` if the model does not check it.
    pub(super) seal: Option<String>,
    /// The text or the refusal; empty if there are calls.
    pub(super) text: String,
    pub(super) stop: Stop,
    pub(super) input_tokens: usize,
    /// Includes the reasoning.
    pub(super) output_tokens: usize,
    pub(super) reasoning_tokens: usize,
}

#[derive(Debug, PartialEq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    /// An object, or the text for a freeform tool.
    pub(super) arguments: Value,
}

impl Call {
    pub(super) fn of(tool: &Tool, arguments: Value) -> Self {
        Self {
            name: tool.name.clone(),
            namespace: tool.namespace.clone(),
            arguments,
        }
    }
}

/// The reason why the output ends.
#[derive(Debug, PartialEq)]
pub(super) enum Stop {
    /// The output is complete.
    End,
    /// The token limit was reached.
    Length,
    /// This stop sequence was reached.
    Sequence(String),
    /// The text is a refusal.
    Refusal,
    Calls(Vec<Call>),
}

impl Answer {
    /// Generates the output for a request.
    pub(super) fn new(parsed: &ParsedRequest) -> Self {
        if parsed.text.contains("refuse") {
            return Self::of(parsed, "I can't help with that.".to_owned(), Stop::Refusal);
        }
        calls(parsed).map_or_else(
            || Self::in_text(parsed),
            |calls| Self::calling(parsed, calls),
        )
    }

    /// The output that calls no tool.
    pub(super) fn in_text(parsed: &ParsedRequest) -> Self {
        let (text, stop) = limit(parsed, text(parsed));
        Self::of(parsed, text, stop)
    }

    /// The output that calls tools.
    pub(super) fn calling(parsed: &ParsedRequest, calls: Vec<Call>) -> Self {
        Self::of(parsed, String::new(), Stop::Calls(calls))
    }

    /// The output with this text and this end, after the reasoning.
    pub(super) fn of(parsed: &ParsedRequest, text: String, stop: Stop) -> Self {
        let reasoning = if parsed.reasons {
            "The user said something. I answer it."
        } else {
            ""
        };
        let reasoning_tokens = words(reasoning).len();
        let tokens: usize = match &stop {
            Stop::Calls(calls) => calls
                .iter()
                .map(|call| 1 + fragments(&call.arguments.to_string()).len())
                .sum(),
            _ => words(&text).len(),
        };
        let output_tokens = reasoning_tokens + tokens;
        Self {
            reasoning: reasoning.to_owned(),
            seal: None,
            text,
            stop,
            input_tokens: parsed.tokens(),
            output_tokens,
            reasoning_tokens,
        }
    }

    /// The same output after another thought, which is sealed.
    pub(super) fn with_thought(self, thought: String, seal: String) -> Self {
        let reasoning_tokens = words(&thought).len();
        Self {
            output_tokens: self.output_tokens - self.reasoning_tokens + reasoning_tokens,
            reasoning_tokens,
            reasoning: thought,
            seal: Some(seal),
            ..self
        }
    }
}

/// Splits a text into the pieces in which it is streamed, each about a token: words, with the
/// whitespace before them.
pub(super) fn words(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let words =
        characters.chunk_by(|before, after| before.is_whitespace() || !after.is_whitespace());
    words.map(|word| word.iter().collect()).collect()
}

/// Splits the arguments of a call into the pieces in which they are streamed.
pub(super) fn fragments(arguments: &str) -> Vec<String> {
    let characters: Vec<char> = arguments.chars().collect();
    characters
        .chunks(8)
        .map(|piece| piece.iter().collect())
        .collect()
}

/// The calls, or `None` if the model answers with text.
fn calls(parsed: &ParsedRequest) -> Option<Vec<Call>> {
    let is_answered = !parsed.results.is_empty();
    let (first, is_forced) = match &parsed.choice {
        Choice::None => return None,
        Choice::Named(name) => (parsed.tools.iter().find(|tool| tool.name == *name), true),
        Choice::Required => (parsed.tools.first(), true),
        Choice::Auto if is_answered => return None,
        Choice::Auto => (
            parsed
                .tools
                .iter()
                .find(|tool| parsed.text.contains(&tool.name)),
            false,
        ),
    };
    let is_several = parsed.text.contains("parallel")
        || (parsed.parallel == Some(true) && parsed.tools.len() > 1);
    if is_several && parsed.parallel != Some(false) && !is_answered {
        let first = first.or(parsed.tools.first())?;
        let is_other = |tool: &&Tool| tool.name != first.name && !is_forced;
        let second = parsed.tools.iter().find(is_other).unwrap_or(first);
        return Some(vec![call(first, parsed), call(second, parsed)]);
    }
    Some(vec![call(first?, parsed)])
}

fn call(tool: &Tool, parsed: &ParsedRequest) -> Call {
    let arguments = match schema::fit(&tool.schema) {
        _ if tool.is_freeform => parsed.text.as_str().into(),
        arguments @ Value::Object(_) => arguments,
        _ => json!({"text": parsed.text}),
    };
    Call::of(tool, arguments)
}

fn text(parsed: &ParsedRequest) -> String {
    if !parsed.results.is_empty() {
        return format!("The tool said: {}", parsed.results.join("; "));
    }
    match &parsed.format {
        Format::Json => return json!({"said": parsed.text}).to_string(),
        Format::Schema(schema) => return schema::fit(schema).to_string(),
        Format::Text => {}
    }
    if let Some(count) = count(&parsed.text) {
        return (1..=count)
            .map(|number| number.to_string())
            .collect::<Vec<_>>()
            .join(" ");
    }
    let echo = format!("You said: {}", parsed.text);
    match parsed.images.len() {
        0 => echo,
        1 => format!("I see 1 image: {}. {echo}", parsed.images[0]),
        count => format!("I see {count} images: {}. {echo}", parsed.images.join(", ")),
    }
}

/// The number to count to, if the text requests counting.
fn count(text: &str) -> Option<u32> {
    let (_, after) = text.split_once("count to ")?;
    let digits = after
        .split(|character: char| !character.is_ascii_digit())
        .next()?;
    digits.parse().ok().filter(|count| *count <= MAX_COUNT)
}

/// Truncates a text at the first stop sequence or at the token limit.
fn limit(parsed: &ParsedRequest, mut text: String) -> (String, Stop) {
    let mut stop = Stop::End;
    let stops = parsed.stops.iter().filter(|stop| !stop.is_empty());
    if let Some((at, found)) = stops
        .filter_map(|stop| Some((text.find(stop)?, stop)))
        .min()
    {
        text.truncate(at);
        stop = Stop::Sequence(found.clone());
    }
    let mut words = words(&text);
    match parsed.cap {
        Some(cap) if cap < words.len() || cap <= SMALL_CAP => {
            words.truncate(cap.min(words.len().saturating_sub(1)));
            (words.concat(), Stop::Length)
        }
        _ => (text, stop),
    }
}

/// A token limit up to this size always truncates the text.
const SMALL_CAP: usize = 8;

const MAX_COUNT: u32 = 1_000_000;
