//! Marks the seals of relayed answers with their maker.

use std::sync::Arc;

use memchr::memmem;
use serde_json::Value;
use vendor::Protocol;
use vendor::envelope::Envelope;
use wire::{MemberEdit, MemberPath, Splice};

/// Marks the seals of the answers of one upstream, so that a later request brings them back to it
/// alone. The mark is a prefix; each piece of a signature that comes in several gets it.
#[derive(Clone, Debug)]
pub struct Marker {
    mark: Arc<str>,
    paths: Vec<MemberPath>,
}

impl Marker {
    /// Marks the answers of an upstream that uses this protocol.
    #[must_use]
    pub fn new(protocol: Protocol, envelope: &Envelope) -> Self {
        let paths = match protocol {
            Protocol::Responses => OF_RESPONSES,
            Protocol::Chat => OF_CHAT,
            Protocol::Messages => OF_MESSAGES,
        };
        Self {
            mark: envelope.mark(),
            paths: paths.iter().filter_map(|path| path.parse().ok()).collect(),
        }
    }

    /// Marks the seals of an event, or of a plain reply.
    pub fn mark(&self, splice: &mut Splice<'_>) {
        let document = splice.document();
        for path in &self.paths {
            if memmem::find(document, path.name().as_bytes()).is_none() {
                continue;
            }
            splice.edit_each(path, |object| {
                let is_seal = path.name() != "data" || is_encrypted(object.get("type"));
                let seal: Value = serde_json::from_slice(object.get(path.name())?).ok()?;
                let seal = seal.as_str().filter(|seal| is_seal && !seal.is_empty())?;
                let marked = format!("{}{seal}", self.mark);
                Some(MemberEdit::Set(Value::from(marked).to_string()))
            });
        }
    }

    /// Returns a plain reply whose seals are marked.
    #[must_use]
    pub fn marked(&self, reply: Vec<u8>) -> Vec<u8> {
        let mut splice = Splice::new(&reply);
        self.mark(&mut splice);
        match splice.is_empty() {
            true => reply,
            false => splice.to_vec(),
        }
    }
}

/// Returns true for the type of an object whose `data` is encrypted reasoning.
fn is_encrypted(kind: Option<&[u8]>) -> bool {
    let kinds: [&[u8]; 2] = [b"\"redacted_thinking\"", b"\"reasoning.encrypted\""];
    kind.is_some_and(|kind| kinds.contains(&kind))
}

/// The seals of a response and of its events
/// (<https://platform.openai.com/docs/api-reference/responses-streaming>).
const OF_RESPONSES: &[&str] = &[
    "output[].encrypted_content",
    "response.output[].encrypted_content",
    "item.encrypted_content",
];
/// The seals of a message and of its events (<https://docs.anthropic.com/en/api/messages-streaming>).
const OF_MESSAGES: &[&str] = &[
    "content[].signature",
    "content[].data",
    "content_block.signature",
    "content_block.data",
    "delta.signature",
];
/// The seals of a completion and of its chunks (<https://openrouter.ai/docs/use-cases/reasoning-tokens>,
/// <https://ai.google.dev/gemini-api/docs/thought-signatures>).
const OF_CHAT: &[&str] = &[
    "choices[].message.reasoning_details[].signature",
    "choices[].message.reasoning_details[].data",
    "choices[].message.extra_content.google.thought_signature",
    "choices[].message.tool_calls[].extra_content.google.thought_signature",
    "choices[].delta.reasoning_details[].signature",
    "choices[].delta.reasoning_details[].data",
    "choices[].delta.extra_content.google.thought_signature",
    "choices[].delta.tool_calls[].extra_content.google.thought_signature",
];
