//! The items of a response: the emitted part of each, and the parsing of complete items.

use engine::{EngineError, TextEvent};
use wire::Json;

use super::super::call_sequencer::{CallSequencer, Key};
use super::super::json::{arguments, bounded, lenient, needed};

/// The index of a part in its item.
pub(super) type PartIndex = u64;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Text,
    Refusal,
    Summary,
    Reasoning,
    Arguments,
}

impl Kind {
    /// Returns the kind of content in an event of this type, and true if the event carries it
    /// completely.
    pub(super) fn from_event(event: &str) -> Option<(Self, bool)> {
        let (name, step) = event.rsplit_once('.')?;
        let kind = match name {
            "output_text" => Self::Text,
            "refusal" => Self::Refusal,
            "reasoning_summary_text" => Self::Summary,
            "reasoning_text" | "reasoning" => Self::Reasoning,
            "function_call_arguments" => Self::Arguments,
            _ => return None,
        };
        match step {
            "delta" => Some((kind, false)),
            "done" => Some((kind, true)),
            _ => None,
        }
    }

    /// Returns the name of the kind in event types.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Text => "output_text",
            Self::Refusal => "refusal",
            Self::Summary => "reasoning_summary_text",
            Self::Reasoning => "reasoning_text",
            Self::Arguments => "function_call_arguments",
        }
    }

    /// Returns the member that holds the complete content.
    pub(super) fn complete_member(self) -> &'static str {
        match self {
            Self::Text | Self::Summary | Self::Reasoning => "text",
            Self::Refusal => "refusal",
            Self::Arguments => "arguments",
        }
    }

    /// Returns the type of the items with this content.
    fn item(self) -> &'static str {
        match self {
            Self::Text | Self::Refusal => "message",
            Self::Summary | Self::Reasoning => "reasoning",
            Self::Arguments => "function_call",
        }
    }

    fn event(self, text: &str) -> TextEvent {
        let text = text.to_owned();
        match self {
            Self::Text => TextEvent::Text(text),
            Self::Refusal => TextEvent::Refusal(text),
            Self::Summary | Self::Reasoning => TextEvent::Reasoning(text),
            Self::Arguments => TextEvent::Arguments(text),
        }
    }
}

/// The items that have started.
#[derive(Debug, Default)]
pub(super) struct Items(Vec<ItemState>);

/// The state of an item: the content that was emitted.
#[derive(Debug)]
pub(super) struct ItemState {
    key: Key,
    id: Option<String>,
    /// Empty until it is known.
    kind: String,
    parts: Vec<Part>,
    is_done: bool,
}

#[derive(Debug)]
struct Part {
    kind: Kind,
    index: PartIndex,
    text: String,
}

impl Items {
    /// Returns the item that an event belongs to, by the index, else by the id, else the last.
    /// Starts it if it is unknown.
    pub(super) fn get_or_add(
        &mut self,
        index: Option<u64>,
        id: Option<&str>,
    ) -> Result<&mut ItemState, EngineError> {
        let position = match (index.map(bounded).transpose()?, id) {
            (Some(index), _) => self.0.iter().rposition(|item| item.key.0 == index),
            (None, Some(id)) => self
                .0
                .iter()
                .rposition(|item| item.id.as_deref() == Some(id)),
            (None, None) => self.0.len().checked_sub(1),
        };
        match position {
            Some(position) => Ok(&mut self.0[position]),
            None => self.start(index, id),
        }
    }

    /// Starts an item. An item with the same index may be another one, because some servers give
    /// all items one index.
    pub(super) fn start(
        &mut self,
        index: Option<u64>,
        id: Option<&str>,
    ) -> Result<&mut ItemState, EngineError> {
        let slot = bounded(self.0.len() as u64)?;
        let index = index.map(bounded).transpose()?.unwrap_or(slot);
        let started = self
            .0
            .iter()
            .rposition(|item| item.key.0 == index && item.may_match(id));
        Ok(match started {
            Some(position) => &mut self.0[position],
            None => self.push((index, slot), id),
        })
    }

    /// Returns the state of an item of the complete output, where it may have another id than in
    /// the stream: by the id, else by its position among the items of its kind.
    pub(super) fn matching(
        &mut self,
        output: &[Item],
        index: usize,
    ) -> Result<&mut ItemState, EngineError> {
        let item = &output[index];
        let by_id = self
            .0
            .iter()
            .position(|known| item.id.is_some() && known.id == item.id);
        let before = output[..index]
            .iter()
            .filter(|other| other.kind == item.kind)
            .count();
        let mut alike = self
            .0
            .iter()
            .enumerate()
            .filter(|(_, known)| known.kind == item.kind);
        match by_id.or_else(|| alike.nth(before).map(|(position, _)| position)) {
            Some(position) => Ok(&mut self.0[position]),
            None => {
                let key = (bounded(index as u64)?, bounded(self.0.len() as u64)?);
                Ok(self.push(key, item.id.as_deref()))
            }
        }
    }

    fn push(&mut self, key: Key, id: Option<&str>) -> &mut ItemState {
        let id = id.map(str::to_owned);
        self.0.push_mut(ItemState {
            key,
            id,
            kind: String::new(),
            parts: Vec::new(),
            is_done: false,
        })
    }
}

impl ItemState {
    /// Appends text to a part and emits it.
    pub(super) fn push_delta(
        &mut self,
        kind: Kind,
        index: PartIndex,
        text: &str,
        out: &mut CallSequencer,
    ) -> Result<(), EngineError> {
        if text.is_empty() || self.is_done {
            return Ok(());
        }
        self.set_kind(kind.item());
        if kind == Kind::Arguments {
            // The name may arrive later.
            out.call(self.key, "", "");
            out.arguments(self.key, text);
            return Ok(());
        }
        let is_next_paragraph =
            kind == Kind::Summary && !self.parts.is_empty() && self.emitted(kind, index).is_empty();
        if is_next_paragraph {
            out.emit(TextEvent::Reasoning(PARAGRAPH.to_owned()));
        }
        self.part(kind, index)?.text.push_str(text);
        out.emit(kind.event(text));
        Ok(())
    }

    /// Completes a part, and emits the text that was not received as deltas.
    pub(super) fn complete(
        &mut self,
        kind: Kind,
        index: PartIndex,
        complete: &str,
        out: &mut CallSequencer,
    ) -> Result<(), EngineError> {
        if kind == Kind::Arguments {
            if !self.is_done {
                out.complete_arguments(self.key, complete);
            }
            return Ok(());
        }
        match complete.strip_prefix(self.emitted(kind, index)) {
            Some(rest) => self.push_delta(kind, index, rest, out),
            None => Ok(()),
        }
    }

    fn emitted(&self, kind: Kind, index: PartIndex) -> &str {
        let part = self
            .parts
            .iter()
            .find(|part| part.kind == kind && part.index == index);
        part.map_or("", |part| part.text.as_str())
    }

    fn part(&mut self, kind: Kind, index: PartIndex) -> Result<&mut Part, EngineError> {
        let known = self
            .parts
            .iter()
            .position(|part| part.kind == kind && part.index == index);
        if known.is_none() {
            bounded(self.parts.len() as u64)?;
            self.parts.push(Part {
                kind,
                index,
                text: String::new(),
            });
        }
        let at = known.unwrap_or(self.parts.len() - 1);
        Ok(&mut self.parts[at])
    }

    fn set_kind(&mut self, kind: &str) {
        if self.kind.is_empty() {
            kind.clone_into(&mut self.kind);
        }
    }

    fn end(&mut self, out: &mut CallSequencer) {
        out.close(self.key);
        self.is_done = true;
        self.parts = Vec::new();
    }

    /// Returns true if a starting item with this id may be this one, of which content was emitted
    /// before.
    fn may_match(&self, id: Option<&str>) -> bool {
        let is_other = |known: &str| id.is_some_and(|id| id != known);
        !self.is_done && !self.id.as_deref().is_some_and(is_other)
    }
}

wire::read_objects! {
    /// An item in an upstream's event.
    pub(super) struct Item {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default, deserialize_with = "lenient")]
        pub(super) id: Option<String>,
        #[serde(default, deserialize_with = "lenient")]
        call_id: Option<String>,
        #[serde(default, deserialize_with = "lenient")]
        name: Option<String>,
        arguments: Option<Json>,
        #[serde(default, deserialize_with = "lenient")]
        content: Option<Vec<Content>>,
        #[serde(default, deserialize_with = "lenient")]
        summary: Option<Vec<Content>>,
    }

    /// A part of an item in an upstream's event.
    struct Content {
        #[serde(rename = "type")]
        kind: String,
        text: Option<String>,
        refusal: Option<String>,
    }
}

impl Item {
    /// Emits the content that was not emitted yet, and ends the item if it is done.
    pub(super) fn emit(
        &self,
        known: &mut ItemState,
        is_done: bool,
        out: &mut CallSequencer,
    ) -> Result<(), EngineError> {
        known.set_kind(&self.kind);
        match self.kind.as_str() {
            "function_call" if !known.is_done => self.call(known, out)?,
            "function_call" | "message" | "reasoning" => {}
            // Items of the server's hosted tools.
            _ => return Ok(()),
        }
        if is_done {
            self.emit_rest(known, out)?;
            known.end(out);
        }
        Ok(())
    }

    fn call(&self, known: &ItemState, out: &mut CallSequencer) -> Result<(), EngineError> {
        let name = needed(self.name.as_deref(), &self.kind, "name")?;
        let id = needed(
            self.call_id.as_deref().or(self.id.as_deref()),
            &self.kind,
            "call_id",
        )?;
        out.call(known.key, id, name);
        Ok(())
    }

    fn emit_rest(&self, known: &mut ItemState, out: &mut CallSequencer) -> Result<(), EngineError> {
        let summary = self.summary.iter().flatten().zip(0..);
        for (part, index) in summary.chain(self.content.iter().flatten().zip(0..)) {
            if let Some((kind, text)) = part.content() {
                known.complete(kind, index, text, out)?;
            }
        }
        match &self.arguments {
            Some(complete) => known.complete(Kind::Arguments, 0, &arguments(complete)?, out),
            None => Ok(()),
        }
    }
}

impl Content {
    fn content(&self) -> Option<(Kind, &str)> {
        let (kind, text) = match self.kind.as_str() {
            "output_text" | "text" => (Kind::Text, &self.text),
            "refusal" => (Kind::Refusal, &self.refusal),
            "summary_text" => (Kind::Summary, &self.text),
            "reasoning_text" => (Kind::Reasoning, &self.text),
            _ => return None,
        };
        Some((kind, text.as_deref()?))
    }
}

/// The separator of the parts of a summary, which are paragraphs.
const PARAGRAPH: &str = "\n\n";
