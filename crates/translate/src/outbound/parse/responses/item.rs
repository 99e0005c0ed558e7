//! The items of a response: what was told of each, and what an item says when it comes whole.

use engine::{EngineError, TextEvent};
use serde::Deserialize;
use wire::Json;

use super::super::call_sequencer::{CallSequencer, Key};
use super::super::json::{arguments, bounded, lenient, needed};

wire::read_objects!(Item, Content);

/// Where a part stands in its item.
pub(super) type Place = u64;

/// What a piece is a piece of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Text,
    Refusal,
    Summary,
    Thoughts,
    Arguments,
}

impl Kind {
    /// What an event of this type has a piece of, and whether it has the whole.
    pub(super) fn of(event: &str) -> Option<(Self, bool)> {
        let (of, step) = event.rsplit_once('.')?;
        let kind = match of {
            "output_text" => Self::Text,
            "refusal" => Self::Refusal,
            "reasoning_summary_text" => Self::Summary,
            "reasoning_text" | "reasoning" => Self::Thoughts,
            "function_call_arguments" => Self::Arguments,
            _ => return None,
        };
        match step {
            "delta" => Some((kind, false)),
            "done" => Some((kind, true)),
            _ => None,
        }
    }

    /// The name under which events tell of it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Text => "output_text",
            Self::Refusal => "refusal",
            Self::Summary => "reasoning_summary_text",
            Self::Thoughts => "reasoning_text",
            Self::Arguments => "function_call_arguments",
        }
    }

    /// The member that has the whole of it.
    pub(super) fn whole(self) -> &'static str {
        match self {
            Self::Text | Self::Summary | Self::Thoughts => "text",
            Self::Refusal => "refusal",
            Self::Arguments => "arguments",
        }
    }

    /// The kind of item that has it.
    fn item(self) -> &'static str {
        match self {
            Self::Text | Self::Refusal => "message",
            Self::Summary | Self::Thoughts => "reasoning",
            Self::Arguments => "function_call",
        }
    }

    fn event(self, text: &str) -> TextEvent {
        let text = text.to_owned();
        match self {
            Self::Text => TextEvent::Text(text),
            Self::Refusal => TextEvent::Refusal(text),
            Self::Summary | Self::Thoughts => TextEvent::Reasoning(text),
            Self::Arguments => TextEvent::Arguments(text),
        }
    }
}

/// The items that began.
#[derive(Debug, Default)]
pub(super) struct Items(Vec<Known>);

/// What was told of an item.
#[derive(Debug)]
pub(super) struct Known {
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
    place: Place,
    told: String,
}

impl Items {
    /// The item that an event tells of: by the index, else by the id, else the last.
    pub(super) fn at(&mut self, index: Option<u64>, id: Option<&str>) -> Result<&mut Known, EngineError> {
        let place = match (index.map(bounded).transpose()?, id) {
            (Some(index), _) => self.0.iter().rposition(|item| item.key.0 == index),
            (None, Some(id)) => self.0.iter().rposition(|item| item.id.as_deref() == Some(id)),
            (None, None) => self.0.len().checked_sub(1),
        };
        match place {
            Some(place) => Ok(&mut self.0[place]),
            None => self.add(index, id),
        }
    }

    /// The item that begins. Some servers give every item the same index.
    pub(super) fn add(&mut self, index: Option<u64>, id: Option<&str>) -> Result<&mut Known, EngineError> {
        let slot = bounded(self.0.len() as u64)?;
        let index = index.map(bounded).transpose()?.unwrap_or(slot);
        let begun = self.0.iter().rposition(|item| item.key.0 == index && item.may_be(id));
        Ok(match begun {
            Some(place) => &mut self.0[place],
            None => self.push((index, slot), id),
        })
    }

    /// An item at its place in the whole output, where it may stand under another id than in its stream: by the id,
    /// else the one that is as far along among those of its kind.
    pub(super) fn within(&mut self, output: &[Item], place: usize) -> Result<&mut Known, EngineError> {
        let item = &output[place];
        let by_id = self.0.iter().position(|known| item.id.is_some() && known.id == item.id);
        let before = output[..place].iter().filter(|other| other.kind == item.kind).count();
        let mut alike = self.0.iter().enumerate().filter(|(_, known)| known.kind == item.kind);
        match by_id.or_else(|| alike.nth(before).map(|(place, _)| place)) {
            Some(place) => Ok(&mut self.0[place]),
            None => {
                let key = (bounded(place as u64)?, bounded(self.0.len() as u64)?);
                Ok(self.push(key, item.id.as_deref()))
            }
        }
    }

    fn push(&mut self, key: Key, id: Option<&str>) -> &mut Known {
        let id = id.map(str::to_owned);
        self.0.push_mut(Known { key, id, kind: String::new(), parts: Vec::new(), is_done: false })
    }
}

impl Known {
    /// More of a part.
    pub(super) fn piece(
        &mut self,
        kind: Kind,
        place: Place,
        text: &str,
        order: &mut CallSequencer,
        out: &mut Vec<TextEvent>,
    ) -> Result<(), EngineError> {
        if text.is_empty() || self.is_done {
            return Ok(());
        }
        self.is_of(kind.item());
        if kind == Kind::Arguments {
            // The name may still come.
            order.call(self.key, "", "", out);
            order.arguments(self.key, text, out);
            return Ok(());
        }
        let is_next_paragraph = kind == Kind::Summary && !self.parts.is_empty() && self.told(kind, place).is_empty();
        if is_next_paragraph {
            order.say(TextEvent::Reasoning(PARAGRAPH.to_owned()), out);
        }
        self.part(kind, place)?.told.push_str(text);
        order.say(kind.event(text), out);
        Ok(())
    }

    /// The whole of a part, of which pieces may have come: what they lack is told.
    pub(super) fn whole(
        &mut self,
        kind: Kind,
        place: Place,
        whole: &str,
        order: &mut CallSequencer,
        out: &mut Vec<TextEvent>,
    ) -> Result<(), EngineError> {
        if kind == Kind::Arguments {
            if !self.is_done {
                order.whole_arguments(self.key, whole, out);
            }
            return Ok(());
        }
        match whole.strip_prefix(self.told(kind, place)) {
            Some(rest) => self.piece(kind, place, rest, order, out),
            None => Ok(()),
        }
    }

    fn told(&self, kind: Kind, place: Place) -> &str {
        let part = self.parts.iter().find(|part| part.kind == kind && part.place == place);
        part.map_or("", |part| part.told.as_str())
    }

    fn part(&mut self, kind: Kind, place: Place) -> Result<&mut Part, EngineError> {
        let known = self.parts.iter().position(|part| part.kind == kind && part.place == place);
        if known.is_none() {
            bounded(self.parts.len() as u64)?;
            self.parts.push(Part { kind, place, told: String::new() });
        }
        let at = known.unwrap_or(self.parts.len() - 1);
        Ok(&mut self.parts[at])
    }

    fn is_of(&mut self, kind: &str) {
        if self.kind.is_empty() {
            kind.clone_into(&mut self.kind);
        }
    }

    fn end(&mut self, order: &mut CallSequencer, out: &mut Vec<TextEvent>) {
        order.close(self.key, out);
        self.is_done = true;
        self.parts = Vec::new();
    }

    /// Whether an item that begins with this id is this one, of which something was told before.
    fn may_be(&self, id: Option<&str>) -> bool {
        let is_other = |known: &str| id.is_some_and(|id| id != known);
        !self.is_done && !self.id.as_deref().is_some_and(is_other)
    }
}

/// An item as an upstream tells it.
#[derive(Deserialize)]
#[serde(remote = "Self")]
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

/// A part of an item as an upstream tells it.
#[derive(Deserialize)]
#[serde(remote = "Self")]
struct Content {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    refusal: Option<String>,
}

impl Item {
    /// Tells what was not told of the item, and ends it when it is done.
    pub(super) fn tell(
        &self,
        known: &mut Known,
        is_done: bool,
        order: &mut CallSequencer,
        out: &mut Vec<TextEvent>,
    ) -> Result<(), EngineError> {
        known.is_of(&self.kind);
        match self.kind.as_str() {
            "function_call" if !known.is_done => self.call(known, order, out)?,
            "function_call" | "message" | "reasoning" => {}
            // What a server's own tools do.
            _ => return Ok(()),
        }
        if is_done {
            self.tell_rest(known, order, out)?;
            known.end(order, out);
        }
        Ok(())
    }

    fn call(&self, known: &Known, order: &mut CallSequencer, out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        let name = needed(self.name.as_deref(), &self.kind, "name")?;
        let id = needed(self.call_id.as_deref().or(self.id.as_deref()), &self.kind, "call_id")?;
        order.call(known.key, id, name, out);
        Ok(())
    }

    fn tell_rest(
        &self,
        known: &mut Known,
        order: &mut CallSequencer,
        out: &mut Vec<TextEvent>,
    ) -> Result<(), EngineError> {
        let summary = self.summary.iter().flatten().zip(0..);
        for (part, place) in summary.chain(self.content.iter().flatten().zip(0..)) {
            if let Some((kind, text)) = part.whole() {
                known.whole(kind, place, text, order, out)?;
            }
        }
        match &self.arguments {
            Some(whole) => known.whole(Kind::Arguments, 0, &arguments(whole)?, order, out),
            None => Ok(()),
        }
    }
}

impl Content {
    fn whole(&self) -> Option<(Kind, &str)> {
        let (kind, text) = match self.kind.as_str() {
            "output_text" | "text" => (Kind::Text, &self.text),
            "refusal" => (Kind::Refusal, &self.refusal),
            "summary_text" => (Kind::Summary, &self.text),
            "reasoning_text" => (Kind::Thoughts, &self.text),
            _ => return None,
        };
        Some((kind, text.as_deref()?))
    }
}

/// What stands between the parts of a summary, which are paragraphs.
const PARAGRAPH: &str = "\n\n";
