//! Builds the events that belong to one position of the stream.

use wire::Object;

use crate::event::{
    ArgumentsDelta, ArgumentsDone, Event, ItemEvent, PartEvent, RefusalDelta, RefusalDone, SummaryPartEvent,
    SummaryTextDelta, SummaryTextDone, TextDelta, TextDone,
};
use crate::request::ReasoningPart;
use crate::response::{OutputItem, OutputPart};

/// The position of one event in the stream.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) sequence_number: u64,
    pub(super) output_index: u32,
    pub(super) item_id: String,
    /// The index of the last part of the item.
    pub(super) part_index: u32,
    /// Block size in bytes that deltas are padded to; 0 disables padding.
    pub(super) block: usize,
}

impl Place {
    pub(super) fn item(self, item: OutputItem) -> ItemEvent {
        let Self { sequence_number, output_index, .. } = self;
        ItemEvent { sequence_number, output_index, item, extra: Object::new() }
    }

    pub(super) fn part(self, part: OutputPart) -> PartEvent {
        let Self { sequence_number, output_index, item_id, part_index: content_index, .. } = self;
        PartEvent { sequence_number, item_id, output_index, content_index, part, extra: Object::new() }
    }

    pub(super) fn summary_part(self, part: ReasoningPart) -> SummaryPartEvent {
        let Self { sequence_number, output_index, item_id, part_index: summary_index, .. } = self;
        SummaryPartEvent { sequence_number, item_id, output_index, summary_index, part, extra: Object::new() }
    }

    pub(super) fn text_delta(self, delta: &str) -> Event {
        Event::OutputTextDelta(TextDelta {
            sequence_number: self.sequence_number,
            obfuscation: self.padding(delta),
            item_id: self.item_id,
            output_index: self.output_index,
            content_index: self.part_index,
            delta: delta.to_owned(),
            logprobs: Vec::new(),
            extra: Object::new(),
        })
    }

    pub(super) fn text_done(self, text: &str) -> Event {
        Event::OutputTextDone(TextDone {
            sequence_number: self.sequence_number,
            item_id: self.item_id,
            output_index: self.output_index,
            content_index: self.part_index,
            text: text.to_owned(),
            logprobs: Vec::new(),
            extra: Object::new(),
        })
    }

    pub(super) fn refusal_delta(self, delta: &str) -> Event {
        Event::RefusalDelta(RefusalDelta {
            sequence_number: self.sequence_number,
            obfuscation: self.padding(delta),
            item_id: self.item_id,
            output_index: self.output_index,
            content_index: self.part_index,
            delta: delta.to_owned(),
            extra: Object::new(),
        })
    }

    pub(super) fn refusal_done(self, refusal: &str) -> Event {
        Event::RefusalDone(RefusalDone {
            sequence_number: self.sequence_number,
            item_id: self.item_id,
            output_index: self.output_index,
            content_index: self.part_index,
            refusal: refusal.to_owned(),
            extra: Object::new(),
        })
    }

    pub(super) fn summary_delta(self, delta: &str) -> Event {
        Event::SummaryTextDelta(SummaryTextDelta {
            sequence_number: self.sequence_number,
            obfuscation: self.padding(delta),
            item_id: self.item_id,
            output_index: self.output_index,
            summary_index: self.part_index,
            delta: delta.to_owned(),
            extra: Object::new(),
        })
    }

    pub(super) fn summary_done(self, text: &str) -> Event {
        Event::SummaryTextDone(SummaryTextDone {
            sequence_number: self.sequence_number,
            item_id: self.item_id,
            output_index: self.output_index,
            summary_index: self.part_index,
            text: text.to_owned(),
            extra: Object::new(),
        })
    }

    pub(super) fn arguments_delta(self, delta: &str) -> Event {
        Event::ArgumentsDelta(ArgumentsDelta {
            sequence_number: self.sequence_number,
            obfuscation: self.padding(delta),
            item_id: self.item_id,
            output_index: self.output_index,
            delta: delta.to_owned(),
            extra: Object::new(),
        })
    }

    pub(super) fn arguments_done(self, name: String, arguments: String) -> Event {
        Event::ArgumentsDone(ArgumentsDone {
            sequence_number: self.sequence_number,
            item_id: self.item_id,
            output_index: self.output_index,
            name: Some(name),
            arguments,
            extra: Object::new(),
        })
    }

    /// Returns the padding that rounds a delta up to whole blocks.
    fn padding(&self, delta: &str) -> Option<String> {
        let over = delta.len().checked_rem(self.block)?;
        Some("x".repeat(self.block - over))
    }
}
