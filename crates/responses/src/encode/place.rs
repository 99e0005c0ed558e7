//! Builds the events that belong to one position of the stream.

use serde_json::Value;
use wire::{Json, Object};

use crate::event::{
    ArgumentsDelta, ArgumentsDone, Event, ItemEvent, PartEvent, RefusalDelta, RefusalDone,
    SummaryPartEvent, SummaryTextDelta, SummaryTextDone, TextDelta, TextDone,
};
use crate::request::ReasoningPart;
use crate::response::{OutputItem, OutputPart, OutputText};

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
        ItemEvent::new(self.sequence_number, self.output_index, item)
    }

    pub(super) fn part(self, part: OutputPart) -> PartEvent {
        self.of_part(PartEvent::new, part)
    }

    pub(super) fn summary_part(self, part: ReasoningPart) -> SummaryPartEvent {
        self.of_part(SummaryPartEvent::new, part)
    }

    pub(super) fn text_delta(self, delta: &str, logprobs: Vec<Json>) -> Event {
        let obfuscation = self.padding(delta);
        let new = |number, item, output, part, text| {
            TextDelta::new(number, item, output, part, text, logprobs)
        };
        Event::OutputTextDelta(TextDelta {
            obfuscation,
            ..self.of_part(new, delta.to_owned())
        })
    }

    pub(super) fn text_done(self, part: &OutputText) -> Event {
        let logprobs = part.logprobs.clone();
        let new = |number, item, output, index, text| {
            TextDone::new(number, item, output, index, text, logprobs)
        };
        Event::OutputTextDone(self.of_part(new, part.text.clone()))
    }

    pub(super) fn refusal_delta(self, delta: &str) -> Event {
        let obfuscation = self.padding(delta);
        Event::RefusalDelta(RefusalDelta {
            obfuscation,
            ..self.of_part(RefusalDelta::new, delta.to_owned())
        })
    }

    pub(super) fn refusal_done(self, refusal: &str) -> Event {
        Event::RefusalDone(self.of_part(RefusalDone::new, refusal.to_owned()))
    }

    pub(super) fn summary_delta(self, delta: &str) -> Event {
        let obfuscation = self.padding(delta);
        let event = self.of_part(SummaryTextDelta::new, delta.to_owned());
        Event::SummaryTextDelta(SummaryTextDelta {
            obfuscation,
            ..event
        })
    }

    pub(super) fn summary_done(self, text: &str) -> Event {
        Event::SummaryTextDone(self.of_part(SummaryTextDone::new, text.to_owned()))
    }

    pub(super) fn arguments_delta(self, delta: &str) -> Event {
        let obfuscation = self.padding(delta);
        let event = ArgumentsDelta::new(
            self.sequence_number,
            self.item_id,
            self.output_index,
            delta.to_owned(),
        );
        Event::ArgumentsDelta(ArgumentsDelta {
            obfuscation,
            ..event
        })
    }

    pub(super) fn arguments_done(self, name: String, arguments: String) -> Event {
        let event = ArgumentsDone::new(
            self.sequence_number,
            self.item_id,
            self.output_index,
            arguments,
        );
        Event::ArgumentsDone(ArgumentsDone {
            name: Some(name),
            ..event
        })
    }

    pub(super) fn custom_input_delta(self, delta: &str) -> Event {
        let obfuscation = self.padding(delta);
        let mut event = self.of_custom_input("delta", ("delta", delta));
        event.extend(obfuscation.map(|padding| ("obfuscation".to_owned(), padding.into())));
        Event::Other(event)
    }

    pub(super) fn custom_input_done(self, input: &str) -> Event {
        Event::Other(self.of_custom_input("done", ("input", input)))
    }

    /// Builds an event about the input of a custom call.
    fn of_custom_input(self, word: &str, (name, text): (&str, &str)) -> Object {
        let members = [
            (
                "type",
                format!("response.custom_tool_call_input.{word}").into(),
            ),
            ("sequence_number", self.sequence_number.into()),
            ("item_id", self.item_id.into()),
            ("output_index", self.output_index.into()),
            (name, Value::from(text)),
        ];
        members
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect()
    }

    /// Builds an event of the last part from its position and its content.
    fn of_part<T, E>(self, new: impl FnOnce(u64, String, u32, u32, T) -> E, content: T) -> E {
        new(
            self.sequence_number,
            self.item_id,
            self.output_index,
            self.part_index,
            content,
        )
    }

    /// Returns the padding that rounds a delta up to whole blocks.
    fn padding(&self, delta: &str) -> Option<String> {
        let over = delta.len().checked_rem(self.block)?;
        Some("x".repeat(self.block - over))
    }
}
