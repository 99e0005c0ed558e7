//! Names of tools, and of their arguments, that an upstream would refuse.

mod keys;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use engine::{
    AssistantPart, EngineError, TextEvent, TextRequest, Tool, ToolCall, ToolChoice, Turn,
};
use sha2::{Digest as _, Sha256};
use vendor::Protocol;

use self::keys::{Replaced, Restorer};
use super::{DroppedField, DroppedFields, Settings};

/// The names of tools and of their arguments that were replaced for an upstream, to restore them in
/// its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplacedNames {
    /// The originals of the names of tools by the new ones.
    originals: HashMap<String, String>,
    /// For the new names of tools, the originals of the names of their arguments by the new ones.
    arguments: HashMap<String, HashMap<String, String>>,
    /// The arguments of the most recent call, if some of their names were replaced.
    open: Option<Restorer>,
}

impl ReplacedNames {
    /// Returns true if no name was replaced.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.originals.is_empty() && self.arguments.is_empty()
    }

    /// Returns the next event of the answer with the original name of its call, or the original
    /// names of its arguments.
    #[must_use]
    pub fn restore(&mut self, mut event: TextEvent) -> TextEvent {
        match &mut event {
            TextEvent::Call { name, .. } => {
                self.open = self.arguments.get(name).cloned().map(Restorer::new);
                if let Some(original) = self.originals.get(name) {
                    original.clone_into(name);
                }
            }
            TextEvent::Arguments(piece) => {
                if let Some(open) = &mut self.open {
                    *piece = open.restore(piece);
                }
            }
            _ => {}
        }
        event
    }

    /// Replaces a name, unless the protocol accepts it.
    fn fit(&mut self, name: &mut String, limit: Limit) {
        if limit.allows(name) {
            return;
        }
        let mut new = replacement(name, limit.length, is_letter);
        if !limit.allows(&new) {
            new = format!("_{}", replacement(name, limit.length - 1, is_letter));
        }
        let original = std::mem::replace(name, new.clone());
        self.originals.entry(new).or_insert(original);
    }
}

/// Returns the request with all names of tools as the upstream's protocol accepts them: letters,
/// digits, `_` and `-`, up to 64 with OpenAI
/// (<https://platform.openai.com/docs/api-reference/chat/create>) and up to 128 with Anthropic
/// (<https://docs.anthropic.com/en/api/messages>), and the names of arguments. Earlier calls may
/// have any names.
pub(super) fn fitted<'a>(
    protocol: Protocol,
    request: &'a TextRequest,
    settings: &Settings,
    dropped: &mut DroppedFields,
) -> Result<(Cow<'a, TextRequest>, ReplacedNames), EngineError> {
    let limit = Limit {
        length: match protocol {
            Protocol::Messages => 128,
            _ => 64,
        },
        begins_with_letter: settings.quirks.tool_names,
    };
    let mut names = ReplacedNames::default();
    let is_unfit = |name: &String| !limit.allows(name);
    let arguments = replaced_arguments(protocol, &request.tools, dropped)?;
    if arguments.is_empty()
        && !request.tools.iter().any(|tool| is_unfit(&tool.name))
        && !calls(request).any(is_unfit)
    {
        return Ok((Cow::Borrowed(request), names));
    }
    let mut request = request.clone();
    for (at, replaced) in arguments {
        let tool = &mut request.tools[at];
        tool.parameters = Some(replaced.schema.clone());
        for call in calls_mut(&mut request.turns).filter(|call| call.name == tool.name) {
            call.arguments = replaced
                .applied(&call.arguments)
                .unwrap_or_else(|| std::mem::take(&mut call.arguments));
        }
        names.fit(&mut tool.name, limit);
        names
            .arguments
            .insert(tool.name.clone(), replaced.originals());
    }
    for tool in &mut request.tools {
        names.fit(&mut tool.name, limit);
    }
    if let ToolChoice::Named(name) = &mut request.tool_choice {
        names.fit(name, limit);
    }
    for call in calls_mut(&mut request.turns) {
        names.fit(&mut call.name, limit);
    }
    Ok((Cow::Owned(request), names))
}

/// Returns the names of arguments that Claude would refuse, by the positions of their tools.
fn replaced_arguments(
    protocol: Protocol,
    tools: &[Tool],
    dropped: &mut DroppedFields,
) -> Result<Vec<(usize, Replaced)>, EngineError> {
    let mut all = Vec::new();
    if protocol == Protocol::Messages {
        for (at, tool) in tools.iter().enumerate() {
            all.extend(Replaced::of(tool, dropped)?.map(|replaced| (at, replaced)));
        }
    }
    Ok(all)
}

/// Returns the request without the tools that have the name of an earlier one: "tools: Tool names
/// must be unique.", Claude (<https://github.com/NousResearch/hermes-agent/issues/18748>).
pub(super) fn unique<'a>(
    request: Cow<'a, TextRequest>,
    dropped: &mut DroppedFields,
) -> Cow<'a, TextRequest> {
    let mut known = HashSet::with_capacity(request.tools.len());
    if request.tools.iter().all(|tool| known.insert(&tool.name)) {
        return request;
    }
    dropped.add(DroppedField::Tools);
    let mut request = request.into_owned();
    let mut known = HashSet::new();
    request.tools.retain(|tool| known.insert(tool.name.clone()));
    Cow::Owned(request)
}

/// Returns the names of the functions that were called earlier.
pub(super) fn calls(request: &TextRequest) -> impl Iterator<Item = &String> {
    let parts = request.turns.iter().filter_map(|turn| match turn {
        Turn::Assistant(parts) => Some(parts),
        _ => None,
    });
    parts.flatten().filter_map(|part| match part {
        AssistantPart::Call(call) => Some(&call.name),
        _ => None,
    })
}

fn calls_mut(turns: &mut [Turn]) -> impl Iterator<Item = &mut ToolCall> {
    let parts = turns.iter_mut().filter_map(|turn| match turn {
        Turn::Assistant(parts) => Some(parts),
        _ => None,
    });
    parts.flatten().filter_map(|part| match part {
        AssistantPart::Call(call) => Some(call),
        _ => None,
    })
}

/// The names that an upstream accepts.
#[derive(Clone, Copy)]
struct Limit {
    /// The number of letters.
    length: usize,
    /// True if they begin with a letter or `_`, as Gemini requires
    /// (<https://ai.google.dev/gemini-api/docs/function-calling>).
    begins_with_letter: bool,
}

impl Limit {
    fn allows(self, name: &str) -> bool {
        let begins = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
        (1..=self.length).contains(&name.len())
            && name.chars().all(is_letter)
            && (begins || !self.begins_with_letter)
    }
}

fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

/// Returns the beginning of a name with a part of its SHA-256, which is the same in every request.
fn replacement(name: &str, limit: usize, is_letter: fn(char) -> bool) -> String {
    let digest = Sha256::digest(name);
    let [a, b, c, d] = [digest[0], digest[1], digest[2], digest[3]];
    let letters = name.chars().take(limit - 9);
    let start: String = letters
        .map(|letter| if is_letter(letter) { letter } else { '_' })
        .collect();
    format!("{start}_{a:02x}{b:02x}{c:02x}{d:02x}")
}
