//! Names of tools that are too long for an upstream.

use std::borrow::Cow;

use engine::{AssistantPart, TextEvent, TextRequest, ToolChoice, Turn};
use sha2::{Digest as _, Sha256};

use crate::outbound::Protocol;

/// The names of tools that were shortened for an upstream, to restore them in its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShortNames {
    /// The short names with their originals.
    names: Vec<(String, String)>,
}

impl ShortNames {
    /// Returns true if no name was shortened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the event with the original name of its call.
    #[must_use]
    pub fn restore(&self, mut event: TextEvent) -> TextEvent {
        if let TextEvent::Call { name, .. } = &mut event
            && let Some((_, original)) = self.names.iter().find(|(short, _)| short == name)
        {
            original.clone_into(name);
        }
        event
    }

    /// Shortens a name, unless the protocol accepts it.
    fn shorten(&mut self, name: &mut String, limit: usize) {
        if name.len() <= limit {
            return;
        }
        let short = shortened(name, limit);
        let original = std::mem::replace(name, short.clone());
        if !self.names.iter().any(|(known, _)| *known == short) {
            self.names.push((short, original));
        }
    }
}

/// Returns the request with all names of tools in lengths that the upstream's protocol accepts: up
/// to 64 characters with OpenAI (<https://platform.openai.com/docs/api-reference/chat/create>), up
/// to 128 with Anthropic (<https://docs.anthropic.com/en/api/messages>).
pub(super) fn fitted(
    protocol: Protocol,
    request: &TextRequest,
) -> (Cow<'_, TextRequest>, ShortNames) {
    let limit = if protocol == Protocol::Messages {
        128
    } else {
        64
    };
    let mut names = ShortNames::default();
    let is_long = |name: &String| name.len() > limit;
    if !request.tools.iter().any(|tool| is_long(&tool.name)) && !calls(request).any(is_long) {
        return (Cow::Borrowed(request), names);
    }
    let mut request = request.clone();
    for tool in &mut request.tools {
        names.shorten(&mut tool.name, limit);
    }
    if let ToolChoice::Named(name) = &mut request.tool_choice {
        names.shorten(name, limit);
    }
    for turn in &mut request.turns {
        let Turn::Assistant(parts) = turn else {
            continue;
        };
        for part in parts {
            if let AssistantPart::Call(call) = part {
                names.shorten(&mut call.name, limit);
            }
        }
    }
    (Cow::Owned(request), names)
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

/// Returns the beginning of a name with a part of its SHA-256, which is the same in every request.
fn shortened(name: &str, limit: usize) -> String {
    let digest = Sha256::digest(name);
    let [a, b, c, d] = [digest[0], digest[1], digest[2], digest[3]];
    let start = &name[..name.floor_char_boundary(limit - 9)];
    format!("{start}_{a:02x}{b:02x}{c:02x}{d:02x}")
}
