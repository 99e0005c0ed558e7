//! The seals of a message of Chat Completions.

use chat::ToolCall;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use vendor::envelope::{
    DETAILS, EXTRA, PROVIDER_FIELDS, REASONING_OPAQUE, REASONING_SIGNATURE, THINKING_BLOCKS,
};
use wire::Object;

/// The thought signature with which Gemini accepts a call of another model.
const UNCHECKED: &str = "skip_thought_signature_validator";

/// The opaque data that a server of Chat Completions wants back with its message: the details of its
/// reasoning (<https://openrouter.ai/docs/use-cases/reasoning-tokens>), a thought signature
/// (<https://ai.google.dev/gemini-api/docs/thought-signatures>), and members of other servers, which
/// [`vendor::envelope`] names. It is JSON where it is a signature of reasoning.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ChatSeals {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) extra_content: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    thinking_blocks: Vec<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_opaque: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_signature: Option<String>,
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

    /// Adds a member of the message with this name, or a piece of it, as JSON.
    pub(crate) fn add_member(&mut self, name: &str, value: &str) {
        match name {
            THINKING_BLOCKS => {
                let blocks: Vec<Map<_, _>> = serde_json::from_str(value).unwrap_or_default();
                blocks.into_iter().for_each(|block| self.add_block(block));
            }
            REASONING_OPAQUE => self.reasoning_opaque = serde_json::from_str(value).ok(),
            REASONING_SIGNATURE => self.reasoning_signature = serde_json::from_str(value).ok(),
            _ => {}
        }
    }

    /// Adds a thinking block, or a piece of the last one: its signature comes last.
    fn add_block(&mut self, block: Map<String, Value>) {
        let is_thinking =
            |block: &Map<_, _>| block.get("type").is_some_and(|kind| kind == "thinking");
        let last = self.thinking_blocks.last_mut();
        let last = last.filter(|last| is_thinking(last) && !has_text(last, "signature"));
        match last.filter(|_| is_thinking(&block)) {
            Some(last) => append(last, block),
            None => self.thinking_blocks.push(block),
        }
    }

    /// Returns true if the seal is of the text of the reasoning, which has to be beside it.
    pub(crate) fn needs_text(&self) -> bool {
        self.reasoning_opaque.is_some() || self.reasoning_signature.is_some()
    }

    /// Brings back the seals of a message in the members in which they came.
    pub(crate) fn add_to(self, reasoning: &mut Option<String>, members: &mut Object) {
        let mut put = |name: &str, value: Option<Value>| {
            members.extend(value.map(|value| (name.to_owned(), value)));
        };
        let list = |objects: Vec<Map<_, _>>| (!objects.is_empty()).then(|| objects.into());
        put(DETAILS, list(self.reasoning_details));
        put(EXTRA, self.extra_content);
        put(THINKING_BLOCKS, list(self.thinking_blocks));
        put(
            REASONING_SIGNATURE,
            self.reasoning_signature.map(Value::String),
        );
        // The server has the text in a member of its own too.
        if let Some(seal) = self.reasoning_opaque {
            put("reasoning_text", reasoning.take().map(Value::String));
            put(REASONING_OPAQUE, Some(Value::String(seal)));
        }
    }

    /// Adds the seals of a later part of the same message.
    pub(crate) fn add(&mut self, other: Self) {
        self.reasoning_details.extend(other.reasoning_details);
        self.extra_content = other.extra_content.or(self.extra_content.take());
        self.thinking_blocks.extend(other.thinking_blocks);
        self.reasoning_opaque = other.reasoning_opaque.or(self.reasoning_opaque.take());
        self.reasoning_signature = other
            .reasoning_signature
            .or(self.reasoning_signature.take());
    }

    /// Returns true if there is no text of the reasoning in the details or blocks.
    pub(crate) fn lacks_text(&self) -> bool {
        let is_text = |detail: &Map<_, _>| TEXTS.iter().any(|name| has_text(detail, name));
        let mut parts = self.reasoning_details.iter().chain(&self.thinking_blocks);
        !parts.any(is_text)
    }

    /// Takes the seals as a signature of reasoning, if there are any: details that consist of text
    /// are no seal.
    pub(crate) fn take_signature(&mut self) -> Option<String> {
        let is_sealed = |detail: &Map<_, _>| SEALS.iter().any(|name| has_text(detail, name));
        let mut parts = self.reasoning_details.iter().chain(&self.thinking_blocks);
        let is_any = self.extra_content.is_some() || self.needs_text() || parts.any(is_sealed);
        let seals = is_any.then(|| std::mem::take(self))?;
        serde_json::to_string(&seals).ok()
    }
}

/// Returns the seal of a call whose opaque data is the value of this member, as JSON.
pub(crate) fn call_seal(member: &str, content: &str) -> String {
    match member {
        EXTRA => content.to_owned(),
        member => format!("{{\"{member}\":{content}}}"),
    }
}

/// Returns the member of a call that has this seal.
pub(crate) fn of_call(seal: &str) -> Option<(String, Value)> {
    let mut seal: Value = serde_json::from_str(seal).ok()?;
    Some(match seal.get_mut(PROVIDER_FIELDS) {
        Some(fields) => (PROVIDER_FIELDS.to_owned(), fields.take()),
        None => (EXTRA.to_owned(), seal),
    })
}

/// Lets the first of the calls of a message pass for one with a thought signature, if none has any,
/// as calls of other models: <https://ai.google.dev/gemini-api/docs/thought-signatures#faqs>. Only the
/// first of parallel calls has one.
pub(crate) fn sign(calls: &mut [ToolCall]) {
    if let [ToolCall::Function(first), rest @ ..] = calls {
        let is_bare =
            |call: &ToolCall| matches!(call, ToolCall::Function(call) if call.extra.is_empty());
        if first.extra.is_empty() && rest.iter().all(is_bare) {
            let unchecked = json!({ "google": { "thought_signature": UNCHECKED } });
            first.extra.insert(EXTRA.to_owned(), unchecked);
        }
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
const TEXTS: [&str; 3] = ["text", "summary", "thinking"];
/// The members that only the server can read.
const SEALS: [&str; 2] = ["data", "signature"];
