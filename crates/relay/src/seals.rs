//! Leaves out of a relayed request the seals that its target cannot open, and marks the seals of answers.
//!
//! A seal is opaque data by which a vendor recognizes its own reasoning: the signature of a thinking
//! block (<https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking>), encrypted
//! reasoning (<https://platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items>),
//! `reasoning_details` (<https://openrouter.ai/docs/use-cases/reasoning-tokens>) and the thought
//! signatures of Gemini (<https://ai.google.dev/gemini-api/docs/thought-signatures>). A vendor
//! refuses a request with a seal that another one made, or that the gateway did.

mod marker;

use std::borrow::Cow;
use std::sync::Arc;

use memchr::memmem;
use responses::Reasoning;
use serde::Deserialize;
use wire::{ElementEdit, Splice};

pub use self::marker::Marker;
use vendor::Protocol;
use vendor::envelope::{
    DETAILS, EXTRA, PROVIDER_FIELDS, REASONING_OPAQUE, REASONING_SIGNATURE, THINKING_BLOCKS,
};
use vendor::envelope::{Envelope, SealGroup, contains_envelope, is_envelope};

/// The seals that a target can open: those with its mark, and perhaps those without any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Openable {
    /// The mark of the target's account.
    mark: Arc<str>,
    /// True if the target can open the seals with its mark.
    opens_marked: bool,
    /// True if clients may have seals without a mark from this target.
    opens_unmarked: bool,
    /// True if the target takes thinking blocks with an empty signature.
    takes_unsigned: bool,
}

impl Openable {
    /// Returns the seals that a target with these envelopes can open. Clients have those without a mark
    /// from their `first` target, because another one answers only if that fails. `takes_unsigned` is true
    /// if the target takes thinking blocks with an empty signature.
    pub fn at(envelope: &Envelope, first: &mut Option<SealGroup>, takes_unsigned: bool) -> Self {
        let group = envelope.group();
        Self {
            mark: envelope.mark(),
            opens_marked: true,
            opens_unmarked: *first.get_or_insert(group) == group,
            takes_unsigned,
        }
    }

    /// No seals at all, for a target that has refused one of them.
    #[must_use]
    pub fn none(self) -> Self {
        Self {
            opens_marked: false,
            opens_unmarked: false,
            ..self
        }
    }

    /// Returns a JSON text without the target's marks.
    fn unmarked<'a>(&self, json: &'a [u8]) -> Cow<'a, [u8]> {
        let mark = self.mark.as_bytes();
        let (mut rest, mut left) = (json, Vec::new());
        while let Some(at) = memmem::find(rest, mark) {
            let (before, after) = rest.split_at(at);
            left.extend_from_slice(before);
            rest = after.get(mark.len()..).unwrap_or_default();
        }
        match rest.len() == json.len() {
            true => Cow::Borrowed(json),
            false => Cow::Owned([left.as_slice(), rest].concat()),
        }
    }

    /// Returns true if the target can open a seal. `was_marked` is true if it had the target's mark.
    fn has(&self, seal: &str, was_marked: bool) -> bool {
        let opens = was_marked && self.opens_marked || self.opens_unmarked;
        opens && !seal.is_empty() && !is_envelope(seal)
    }

    /// Returns the edit that leaves out an element, or its marks.
    fn edit(keeps: bool, element: Cow<'_, [u8]>) -> ElementEdit {
        match element {
            _ if !keeps => ElementEdit::Remove,
            Cow::Borrowed(_) => ElementEdit::Keep,
            Cow::Owned(unmarked) => ElementEdit::Replace(unmarked),
        }
    }
}

/// Leaves out the seals of a request that its target cannot open, and returns the names of the
/// members that are lost. `protocol` is the protocol of the client and of the target.
pub fn leave_out_foreign(
    protocol: Protocol,
    openable: &Openable,
    splice: &mut Splice<'_>,
) -> Vec<&'static str> {
    let hints: &[&str] = match protocol {
        Protocol::Responses => &["encrypted_content", Reasoning::OWN_ID, EXTRA],
        Protocol::Chat => &[
            DETAILS,
            EXTRA,
            THINKING_BLOCKS,
            REASONING_OPAQUE,
            // Of reasoning, and the thought signatures in `provider_specific_fields`.
            "_signature\"",
        ],
        Protocol::Messages => &["thinking"],
    };
    let document = splice.document();
    let is_hinted = |hint: &&str| memmem::find(document, hint.as_bytes()).is_some();
    let may_have_seals = match protocol {
        // Only what the gateway has sealed or marked is foreign to a target with which the client has
        // talked. That is one search of a long conversation in place of five.
        Protocol::Chat if openable.opens_unmarked => contains_envelope(document),
        _ => hints.iter().any(is_hinted),
    };
    let mut editor = Editor {
        openable,
        lost: Vec::new(),
    };
    if may_have_seals {
        match protocol {
            Protocol::Responses => {
                splice.edit_elements(&["input"], |item| editor.item(item));
            }
            Protocol::Messages => editor.messages(splice),
            Protocol::Chat => {
                splice.edit_elements(&["messages"], |message| editor.completion(message));
            }
        }
    }
    editor.lost
}

/// The edits of one request.
struct Editor<'a> {
    openable: &'a Openable,
    /// The names of the members that are lost, each once.
    lost: Vec<&'static str>,
}

/// The members of an item of Responses, or of a block of Messages, that seals are in.
#[derive(Deserialize)]
struct Sealed<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    id: Option<String>,
    encrypted_content: Option<String>,
    signature: Option<String>,
    data: Option<String>,
}

impl Editor<'_> {
    fn lose(&mut self, name: &'static str) {
        if !self.lost.contains(&name) {
            self.lost.push(name);
        }
    }

    /// Leaves out reasoning with a foreign seal, and reasoning that the gateway has passed on without
    /// one: no server knows it by the gateway's id. A summary of the conversation that only another
    /// server can read is left out as well.
    fn item(&mut self, item: &[u8]) -> ElementEdit {
        let unmarked = self.openable.unmarked(item);
        let was_marked = matches!(unmarked, Cow::Owned(_));
        let Ok(sealed) = serde_json::from_slice::<Sealed<'_>>(&unmarked) else {
            return ElementEdit::Keep;
        };
        let keeps = match &*sealed.kind {
            "reasoning" | "compaction" => match sealed.encrypted_content {
                Some(seal) => self.openable.has(&seal, was_marked),
                None => !sealed
                    .id
                    .is_some_and(|id| id.starts_with(Reasoning::OWN_ID)),
            },
            "function_call" | "custom_tool_call" => return self.call_item(item),
            _ => return ElementEdit::Keep,
        };
        if !keeps {
            self.lose(REASONING);
        }
        Openable::edit(keeps, unmarked)
    }

    /// Leaves out the envelopes that a client of Responses has got with a call.
    fn call_item(&mut self, item: &[u8]) -> ElementEdit {
        let mut item = Splice::new(item);
        if !item.value(&[EXTRA]).is_some_and(contains_envelope) {
            return ElementEdit::Keep;
        }
        item.remove(&[], &[EXTRA]);
        self.lose(REASONING);
        ElementEdit::Replace(item.to_vec())
    }

    /// Leaves out the thinking blocks that have a foreign signature, or none if the target refuses that; a
    /// target that takes none gets them without it. A model with a budget does
    /// not think in a turn whose thoughts are left out: "Expected `thinking` or `redacted_thinking`, but
    /// found `tool_use`".
    fn messages(&mut self, splice: &mut Splice<'_>) {
        let mut is_last_cut = false;
        splice.edit_elements(&["messages"], |message| {
            let (edit, is_cut) = self.message(message);
            if Splice::new(message).has_value(&["role"], b"\"assistant\"") {
                is_last_cut = is_cut;
            }
            edit
        });
        let has_budget = splice.has_value(&["thinking", "type"], b"\"enabled\"");
        if is_last_cut && has_budget && splice.replace(&["thinking"], br#"{"type":"disabled"}"#) {
            self.lose("thinking");
        }
    }

    /// Leaves out the foreign thinking blocks of a message, and the message if nothing else is in it.
    /// Returns true if a block is left out.
    fn message(&mut self, message: &[u8]) -> (ElementEdit, bool) {
        let mut inner = Splice::new(message);
        let (mut is_kept, mut is_cut) = (false, false);
        inner.edit_elements(&["content"], |block| {
            let edit = self.block(block);
            is_kept |= edit != ElementEdit::Remove;
            is_cut |= edit == ElementEdit::Remove;
            edit
        });
        let edit = match inner.is_empty() {
            true => ElementEdit::Keep,
            false if is_kept => ElementEdit::Replace(inner.to_vec()),
            false => ElementEdit::Remove,
        };
        (edit, is_cut)
    }

    fn block(&mut self, block: &[u8]) -> ElementEdit {
        let unmarked = self.openable.unmarked(block);
        let was_marked = matches!(unmarked, Cow::Owned(_));
        let Ok(sealed) = serde_json::from_slice::<Sealed<'_>>(&unmarked) else {
            return ElementEdit::Keep;
        };
        let seal = match &*sealed.kind {
            "thinking" => sealed.signature,
            "redacted_thinking" => sealed.data,
            _ => return ElementEdit::Keep,
        };
        let seal = seal.unwrap_or_default();
        let keeps = match seal.is_empty() {
            true => self.openable.takes_unsigned,
            false => self.openable.has(&seal, was_marked),
        };
        if !keeps && self.openable.takes_unsigned && sealed.kind == "thinking" {
            return unsigned(&unmarked);
        }
        if !keeps {
            self.lose(REASONING);
        }
        Openable::edit(keeps, unmarked)
    }

    /// Leaves out the foreign seals of a message of Chat Completions and of its calls.
    fn completion(&mut self, message: &[u8]) -> ElementEdit {
        let mut inner = Splice::new(message);
        self.members(&mut inner, &OF_MESSAGE);
        inner.edit_elements(&["tool_calls"], |call| {
            let mut call = Splice::new(call);
            self.members(&mut call, &OF_CALL);
            match call.is_empty() {
                true => ElementEdit::Keep,
                false => ElementEdit::Replace(call.to_vec()),
            }
        });
        match inner.is_empty() {
            true => ElementEdit::Keep,
            false => ElementEdit::Replace(inner.to_vec()),
        }
    }

    /// Leaves out the members of an object that have foreign seals, and the marks of others.
    fn members(&mut self, object: &mut Splice<'_>, members: &[(&'static str, &'static str)]) {
        let mut removed = Vec::new();
        for (name, path) in members {
            let Some(value) = object.value(&[name]) else {
                continue;
            };
            let unmarked = self.openable.unmarked(value);
            let was_marked = matches!(unmarked, Cow::Owned(_));
            let opens = self.openable.opens_unmarked || was_marked && self.openable.opens_marked;
            if !opens || contains_envelope(&unmarked) {
                removed.push(*name);
                self.lose(path);
            } else if let Cow::Owned(unmarked) = unmarked {
                object.replace(&[name], &unmarked);
            }
        }
        object.remove(&[], &removed);
    }
}

/// Returns the edit that empties the signature of a thinking block, whose text the target takes.
fn unsigned(block: &[u8]) -> ElementEdit {
    let mut block = Splice::new(block);
    block.replace(&["signature"], b"\"\"");
    ElementEdit::Replace(block.to_vec())
}

/// The name of reasoning that is lost, as on the translated roads.
const REASONING: &str = "reasoning";
/// The members of a message and of a call of Chat Completions that have seals, and their paths.
const OF_MESSAGE: [(&str, &str); 5] = [
    (DETAILS, "messages[].reasoning_details"),
    (EXTRA, "messages[].extra_content"),
    (THINKING_BLOCKS, "messages[].thinking_blocks"),
    (REASONING_OPAQUE, "messages[].reasoning_opaque"),
    (REASONING_SIGNATURE, "messages[].reasoning_signature"),
];
const OF_CALL: [(&str, &str); 2] = [
    (EXTRA, "messages[].tool_calls[].extra_content"),
    (
        PROVIDER_FIELDS,
        "messages[].tool_calls[].provider_specific_fields",
    ),
];
