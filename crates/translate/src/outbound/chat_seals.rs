//! The seals of a message of Chat Completions.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The opaque data that a server of Chat Completions wants back with its message: the details of its
/// reasoning (<https://openrouter.ai/docs/use-cases/reasoning-tokens>), and a thought signature
/// (<https://ai.google.dev/gemini-api/docs/thought-signatures>). It is JSON where it is a signature of
/// reasoning.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ChatSeals {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) reasoning_details: Vec<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) extra_content: Option<Value>,
}

impl ChatSeals {
    /// Reads the signature of reasoning of this protocol.
    pub(crate) fn read(signature: &str) -> Option<Self> {
        serde_json::from_str(signature).ok()
    }

    /// Adds a detail of the reasoning, or a piece of the last one.
    pub(crate) fn add_detail(&mut self, detail: &str) {
        let Ok(detail) = serde_json::from_str::<Map<_, _>>(detail) else {
            return;
        };
        let last = self.reasoning_details.last_mut();
        match last.filter(|last| is_continued(last, &detail)) {
            Some(last) => append(last, detail),
            None => self.reasoning_details.push(detail),
        }
    }

    /// Keeps the thought signature of a message. Servers have other data in the same member.
    pub(crate) fn add_extra(&mut self, extra: &str) {
        if extra.contains("signature") {
            self.extra_content = serde_json::from_str(extra).ok();
        }
    }

    /// Adds the seals of a later part of the same message.
    pub(crate) fn add(&mut self, other: Self) {
        self.reasoning_details.extend(other.reasoning_details);
        self.extra_content = other.extra_content.or(self.extra_content.take());
    }

    /// Returns true if there is no text of the reasoning in the details.
    pub(crate) fn lacks_text(&self) -> bool {
        let is_text = |detail: &Map<_, _>| TEXTS.iter().any(|name| has_text(detail, name));
        !self.reasoning_details.iter().any(is_text)
    }

    /// Takes the seals as a signature of reasoning. Returns `None` while there are none: details of
    /// nothing but text are no seal.
    pub(crate) fn take_signature(&mut self) -> Option<String> {
        let is_sealed = |detail: &Map<_, _>| SEALS.iter().any(|name| has_text(detail, name));
        let is_any = self.extra_content.is_some() || self.reasoning_details.iter().any(is_sealed);
        let seals = is_any.then(|| std::mem::take(self))?;
        serde_json::to_string(&seals).ok()
    }
}

/// Returns true if a detail is a piece of the one before it.
fn is_continued(last: &Map<String, Value>, next: &Map<String, Value>) -> bool {
    let same = |name| last.get(name).is_some() && last.get(name) == next.get(name);
    same("index") && same("type") && !has_text(last, "data") && !has_text(next, "data")
}

/// Adds a piece: its texts are appended, and its other members are kept.
fn append(last: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (name, value) in piece {
        match (last.get_mut(&name), value) {
            (Some(Value::String(text)), Value::String(more)) if TEXTS.contains(&&*name) => {
                text.push_str(&more);
            }
            (_, Value::Null) => {}
            (_, value) => {
                last.insert(name, value);
            }
        }
    }
}

fn has_text(detail: &Map<String, Value>, name: &str) -> bool {
    let text = detail.get(name).and_then(Value::as_str);
    text.is_some_and(|text| !text.is_empty())
}

/// The members with readable reasoning.
const TEXTS: [&str; 2] = ["text", "summary"];
/// The members that only the server can read.
const SEALS: [&str; 2] = ["data", "signature"];
