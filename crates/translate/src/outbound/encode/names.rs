//! Names of tools that an upstream would refuse.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use engine::{AssistantPart, TextEvent, TextRequest, ToolChoice, Turn};
use sha2::{Digest as _, Sha256};
use vendor::Protocol;

use super::{DroppedField, DroppedFields};

/// The names of tools that were replaced for an upstream, to restore them in its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplacedNames {
    /// The originals by the new names.
    originals: HashMap<String, String>,
}

impl ReplacedNames {
    /// Returns true if no name was replaced.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.originals.is_empty()
    }

    /// Returns the event with the original name of its call.
    #[must_use]
    pub fn restore(&self, mut event: TextEvent) -> TextEvent {
        if let TextEvent::Call { name, .. } = &mut event
            && let Some(original) = self.originals.get(name)
        {
            original.clone_into(name);
        }
        event
    }

    /// Replaces a name, unless the protocol accepts it.
    fn fit(&mut self, name: &mut String, limit: usize) {
        if is_fit(name, limit) {
            return;
        }
        let new = replacement(name, limit);
        let original = std::mem::replace(name, new.clone());
        self.originals.entry(new).or_insert(original);
    }
}

/// Returns the request with all names of tools as the upstream's protocol accepts them: letters,
/// digits, `_` and `-`, up to 64 with OpenAI
/// (<https://platform.openai.com/docs/api-reference/chat/create>) and up to 128 with Anthropic
/// (<https://docs.anthropic.com/en/api/messages>). Earlier calls may have any names.
pub(super) fn fitted(
    protocol: Protocol,
    request: &TextRequest,
) -> (Cow<'_, TextRequest>, ReplacedNames) {
    let limit = if protocol == Protocol::Messages {
        128
    } else {
        64
    };
    let mut names = ReplacedNames::default();
    let is_unfit = |name: &String| !is_fit(name, limit);
    if !request.tools.iter().any(|tool| is_unfit(&tool.name)) && !calls(request).any(is_unfit) {
        return (Cow::Borrowed(request), names);
    }
    let mut request = request.clone();
    for tool in &mut request.tools {
        names.fit(&mut tool.name, limit);
    }
    if let ToolChoice::Named(name) = &mut request.tool_choice {
        names.fit(name, limit);
    }
    for turn in &mut request.turns {
        let Turn::Assistant(parts) = turn else {
            continue;
        };
        for part in parts {
            if let AssistantPart::Call(call) = part {
                names.fit(&mut call.name, limit);
            }
        }
    }
    (Cow::Owned(request), names)
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

fn is_fit(name: &str, limit: usize) -> bool {
    (1..=limit).contains(&name.len()) && name.chars().all(is_letter)
}

fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

/// Returns the beginning of a name with a part of its SHA-256, which is the same in every request.
fn replacement(name: &str, limit: usize) -> String {
    let digest = Sha256::digest(name);
    let [a, b, c, d] = [digest[0], digest[1], digest[2], digest[3]];
    let letters = name.chars().take(limit - 9);
    let start: String = letters
        .map(|letter| if is_letter(letter) { letter } else { '_' })
        .collect();
    format!("{start}_{a:02x}{b:02x}{c:02x}{d:02x}")
}
