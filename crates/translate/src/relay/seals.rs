//! Leaves out of a relayed request the seals that its target cannot open.
//!
//! A seal is opaque data by which a vendor recognizes its own reasoning: the signature of a thinking
//! block (<https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking>), encrypted
//! reasoning (<https://platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items>),
//! `reasoning_details` (<https://openrouter.ai/docs/use-cases/reasoning-tokens>) and the thought
//! signatures of Gemini (<https://ai.google.dev/gemini-api/docs/thought-signatures>). A vendor
//! refuses a request with a seal that another one made, or that the gateway did.

use std::borrow::Cow;

use memchr::memmem;
use responses::Reasoning;
use serde::Deserialize;
use wire::{ElementEdit, Splice};

use crate::envelope::{Envelope, SealGroup, contains_envelope, is_envelope};
use crate::outbound::Protocol;
use crate::outbound::chat_seals::{DETAILS, EXTRA};

/// The seals that a target can open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Openable {
    /// All that are no envelopes of the gateway: clients may have them from this target.
    FromClient,
    /// None: the request was meant for a target of another account.
    Nothing,
}

/// Leaves out the seals of a request that its target cannot open, and returns the names of the
/// members that are lost. `protocol` is the protocol of the client and of the target.
pub fn leave_out_foreign(
    protocol: Protocol,
    openable: Openable,
    splice: &mut Splice<'_>,
) -> Vec<&'static str> {
    let hints: &[&[u8]] = match protocol {
        Protocol::Responses => &[
            b"encrypted_content",
            Reasoning::OWN_ID.as_bytes(),
            EXTRA.as_bytes(),
        ],
        Protocol::Chat => &[DETAILS.as_bytes(), EXTRA.as_bytes()],
        Protocol::Messages => &[b"thinking"],
    };
    let is_hinted = |hint: &&[u8]| memmem::find(splice.document(), hint).is_some();
    if !hints.iter().any(is_hinted) {
        return Vec::new();
    }
    let mut lost = Vec::new();
    match protocol {
        Protocol::Responses => {
            let edited = splice.edit_elements(&["input"], |item| edit_item(item, openable));
            lost.extend(edited.then_some(REASONING));
        }
        Protocol::Messages => edit_messages(openable, splice, &mut lost),
        Protocol::Chat => {
            splice.edit_elements(&["messages"], |message| {
                edit_message(message, openable, &mut lost)
            });
        }
    }
    lost
}

impl Openable {
    /// Returns the seals that a target with these envelopes can open. Clients have those of their
    /// `first` target, because another one answers only if that fails.
    pub fn at(envelope: &Envelope, first: &mut Option<SealGroup>) -> Self {
        let group = envelope.group();
        match *first.get_or_insert(group) == group {
            true => Self::FromClient,
            false => Self::Nothing,
        }
    }

    /// Returns true if the target can open a seal.
    fn has(self, seal: &str) -> bool {
        self == Self::FromClient && !seal.is_empty() && !is_envelope(seal)
    }
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

/// Leaves out reasoning with a foreign seal, and reasoning that the gateway has passed on without
/// one: no server knows it by the gateway's id. A summary of the conversation that only another
/// server can read is left out as well.
fn edit_item(text: &[u8], openable: Openable) -> ElementEdit {
    let Ok(item) = serde_json::from_slice::<Sealed<'_>>(text) else {
        return ElementEdit::Keep;
    };
    match &*item.kind {
        "reasoning" | "compaction" => {}
        "function_call" | "custom_tool_call" => return edit_call(text, Openable::FromClient),
        _ => return ElementEdit::Keep,
    }
    let is_made = || item.id.is_some_and(|id| id.starts_with(Reasoning::OWN_ID));
    let keeps = match item.encrypted_content {
        Some(seal) => openable.has(&seal),
        None => !is_made(),
    };
    edit(keeps)
}

/// Leaves out the foreign seals of a call.
fn edit_call(call: &[u8], openable: Openable) -> ElementEdit {
    let mut call = Splice::new(call);
    if !is_foreign(&call, EXTRA, openable) {
        return ElementEdit::Keep;
    }
    call.remove(&[], &[EXTRA]);
    ElementEdit::Replace(call.to_vec())
}

/// Leaves out the thinking blocks that have a foreign signature or none. A model with a budget does not
/// think in a turn whose thoughts are left out: "Expected `thinking` or `redacted_thinking`, but found
/// `tool_use`".
fn edit_messages(openable: Openable, splice: &mut Splice<'_>, lost: &mut Vec<&'static str>) {
    let mut is_last_cut = false;
    let is_edited = splice.edit_elements(&["messages"], |message| {
        let edit = edit_blocks(message, openable);
        if Splice::new(message).has_value(&["role"], b"\"assistant\"") {
            is_last_cut = edit != ElementEdit::Keep;
        }
        edit
    });
    lost.extend(is_edited.then_some(REASONING));
    let has_budget = splice.has_value(&["thinking", "type"], b"\"enabled\"");
    if is_last_cut && has_budget && splice.replace(&["thinking"], br#"{"type":"disabled"}"#) {
        lost.push("thinking");
    }
}

/// Leaves out the foreign thinking blocks of a message, and the message if nothing else is in it.
fn edit_blocks(message: &[u8], openable: Openable) -> ElementEdit {
    let mut inner = Splice::new(message);
    let mut is_kept = false;
    let is_edited = inner.edit_elements(&["content"], |block| {
        let keeps = keeps_block(block, openable);
        is_kept |= keeps;
        edit(keeps)
    });
    match (is_edited, is_kept) {
        (false, _) => ElementEdit::Keep,
        (true, false) => ElementEdit::Remove,
        (true, true) => ElementEdit::Replace(inner.to_vec()),
    }
}

fn keeps_block(block: &[u8], openable: Openable) -> bool {
    let Ok(block) = serde_json::from_slice::<Sealed<'_>>(block) else {
        return true;
    };
    let seal = match &*block.kind {
        "thinking" => block.signature,
        "redacted_thinking" => block.data,
        _ => return true,
    };
    openable.has(&seal.unwrap_or_default())
}

/// Leaves out the foreign seals of a message and of its calls.
fn edit_message(message: &[u8], openable: Openable, lost: &mut Vec<&'static str>) -> ElementEdit {
    let mut inner = Splice::new(message);
    let foreign = OF_MESSAGE.map(|(name, path)| is_foreign(&inner, name, openable).then_some(path));
    let names = OF_MESSAGE
        .iter()
        .zip(foreign)
        .filter(|(_, path)| path.is_some());
    let names: Vec<_> = names.map(|((name, _), _)| *name).collect();
    inner.remove(&[], &names);
    let is_edited = inner.edit_elements(&["tool_calls"], |call| edit_call(call, openable));
    let of_calls = is_edited.then_some("messages[].tool_calls[].extra_content");
    for path in foreign.into_iter().chain([of_calls]).flatten() {
        if !lost.contains(&path) {
            lost.push(path);
        }
    }
    match inner.is_empty() {
        true => ElementEdit::Keep,
        false => ElementEdit::Replace(inner.to_vec()),
    }
}

/// Returns true if a member has seals that the target cannot open.
fn is_foreign(object: &Splice<'_>, name: &str, openable: Openable) -> bool {
    let seal = object.value(&[name]);
    seal.is_some_and(|seal| openable == Openable::Nothing || contains_envelope(seal))
}

fn edit(keeps: bool) -> ElementEdit {
    match keeps {
        true => ElementEdit::Keep,
        false => ElementEdit::Remove,
    }
}

/// The name of reasoning that is lost, as on the translated roads.
const REASONING: &str = "reasoning";
/// The members of a message that have seals, and their paths.
const OF_MESSAGE: [(&str, &str); 2] = [
    (DETAILS, "messages[].reasoning_details"),
    (EXTRA, "messages[].extra_content"),
];
