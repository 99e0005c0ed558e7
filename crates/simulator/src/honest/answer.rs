//! What the model says, whatever the protocol.

use serde_json::{Value, json};

use super::ask::{Ask, Choice, Format, Tool};
use super::schema;

/// What the model says. Texts are in the pieces in which they are streamed, each about a token.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) thoughts: Vec<String>,
    pub(super) said: Said,
    pub(super) stop: Stop,
    pub(super) usage: Usage,
}

/// The answer proper.
#[derive(Debug)]
pub(super) enum Said {
    Text(Vec<String>),
    Refusal(Vec<String>),
    Calls(Vec<Call>),
}

/// A call of a function.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: String,
    /// An object.
    pub(super) arguments: Value,
}

/// Why the answer ends.
#[derive(Debug, PartialEq)]
pub(super) enum Stop {
    /// All is said.
    End,
    /// The cap on the output.
    Length,
    /// This stop text came up.
    Text(String),
}

/// What it took, in tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    pub(super) input: u64,
    /// With the thoughts.
    pub(super) output: u64,
    pub(super) thoughts: u64,
}

impl Answer {
    pub(super) fn to(ask: &Ask) -> Self {
        let thoughts = if ask.thinks { pieces("The user said something. I answer it.") } else { Vec::new() };
        let (said, stop) = if ask.text.contains("refuse") {
            (Said::Refusal(pieces("I can't help with that.")), Stop::End)
        } else if let Some(calls) = calls(ask) {
            (Said::Calls(calls), Stop::End)
        } else {
            let (text, stop) = cut(ask, pieces(&text(ask)));
            (Said::Text(text), stop)
        };
        let usage = usage(ask, &thoughts, &said);
        Self { thoughts, said, stop, usage }
    }
}

impl Call {
    /// The arguments as text, in pieces.
    pub(super) fn pieces(&self) -> Vec<String> {
        let characters: Vec<char> = self.arguments.to_string().chars().collect();
        characters.chunks(8).map(|piece| piece.iter().collect()).collect()
    }
}

/// Cuts a text into words, each with the blanks before it.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut after_word = false;
    for character in text.chars() {
        if character.is_whitespace() && after_word {
            pieces.push(String::new());
        }
        after_word = !character.is_whitespace();
        if let Some(piece) = pieces.last_mut() {
            piece.push(character);
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// What is called, when anything is.
fn calls(ask: &Ask) -> Option<Vec<Call>> {
    let named = |name: &str| ask.tools.iter().find(|tool| tool.name == name);
    let is_answered = !ask.results.is_empty();
    let (first, is_forced) = match &ask.choice {
        Choice::None => return None,
        Choice::Named(name) => (named(name), true),
        Choice::Required => (ask.tools.first(), true),
        Choice::Auto if is_answered => return None,
        Choice::Auto => (ask.tools.iter().find(|tool| ask.text.contains(&tool.name)), false),
    };
    let is_several = ask.text.contains("parallel") || (ask.parallel == Some(true) && ask.tools.len() > 1);
    if is_several && ask.parallel != Some(false) && !is_answered {
        let first = first.or(ask.tools.first())?;
        let is_other = |tool: &&Tool| tool.name != first.name && !is_forced;
        let second = ask.tools.iter().find(is_other).unwrap_or(first);
        return Some(vec![call(first, ask), call(second, ask)]);
    }
    Some(vec![call(first?, ask)])
}

fn call(tool: &Tool, ask: &Ask) -> Call {
    let arguments = match schema::fit(&tool.schema) {
        arguments @ Value::Object(_) => arguments,
        _ => json!({"text": ask.text}),
    };
    Call { name: tool.name.clone(), arguments }
}

fn text(ask: &Ask) -> String {
    if !ask.results.is_empty() {
        return format!("The tool said: {}", ask.results.join("; "));
    }
    match &ask.format {
        Format::Json => return json!({"said": ask.text}).to_string(),
        Format::Schema(schema) => return schema::fit(schema).to_string(),
        Format::Text => {}
    }
    if let Some(count) = count(&ask.text) {
        return (1..=count).map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
    }
    let said = format!("You said: {}", ask.text);
    match ask.images.len() {
        0 => said,
        1 => format!("I see 1 image: {}. {said}", ask.images[0]),
        count => format!("I see {count} images: {}. {said}", ask.images.join(", ")),
    }
}

/// How far to count, when that is asked for.
fn count(text: &str) -> Option<u32> {
    let after = &text[text.find("count to ")? + "count to ".len()..];
    let digits = after.split(|character: char| !character.is_ascii_digit()).next()?;
    digits.parse().ok().filter(|count| *count <= MAX_COUNT)
}

/// Ends a text where a stop text or the cap ends it.
fn cut(ask: &Ask, mut text: Vec<String>) -> (Vec<String>, Stop) {
    let mut stop = Stop::End;
    let whole = text.concat();
    let stops = ask.stops.iter().filter(|stop| !stop.is_empty());
    if let Some((at, found)) = stops.filter_map(|stop| Some((whole.find(stop)?, stop))).min() {
        text = pieces(&whole[..at]);
        stop = Stop::Text(found.clone());
    }
    let Some(cap) = ask.cap.and_then(|cap| usize::try_from(cap).ok()) else { return (text, stop) };
    if cap < text.len() || cap <= SMALL_CAP {
        text.truncate(cap.min(text.len().saturating_sub(1)));
        stop = Stop::Length;
    }
    (text, stop)
}

fn usage(ask: &Ask, thoughts: &[String], said: &Said) -> Usage {
    let said = match said {
        Said::Text(pieces) | Said::Refusal(pieces) => pieces.len(),
        Said::Calls(calls) => calls.iter().map(|call| 1 + call.pieces().len()).sum(),
    };
    let thoughts = thoughts.len() as u64;
    Usage { input: ask.tokens(), output: thoughts + said as u64, thoughts }
}

/// A cap that is always reached.
const SMALL_CAP: usize = 8;

const MAX_COUNT: u32 = 1_000_000;
