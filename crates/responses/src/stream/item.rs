//! One item between its added and its done event, and the comparison of items.

use super::Offence;
use crate::event::{Event, PartEvent, SummaryPartEvent};
use crate::request::ReasoningPart;
use crate::response::{OutputItem, OutputPart};
use crate::status::Status;

/// An item between its added and its done event, with the content of its deltas.
#[derive(Clone, Debug)]
pub(super) struct OpenItem {
    item: OutputItem,
    text: Text,
}

/// The state of the item's current text: the text of the last part, or the arguments of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Text {
    /// There is no current text: the item is between parts.
    None,
    /// The text accepts deltas.
    Open,
    /// The text is complete.
    Complete,
}

impl OpenItem {
    /// Opens an item from its added event, in which it must be empty.
    pub(super) fn begin(item: &OutputItem) -> Result<Self, Offence> {
        if !is_blank(item) {
            return Err(Offence::Item);
        }
        if item.id().is_empty() {
            return Err(Offence::ItemIdentity);
        }
        let text = match item {
            OutputItem::FunctionCall(_) => Text::Open,
            _ => Text::None,
        };
        Ok(Self {
            item: item.clone(),
            text,
        })
    }

    pub(super) fn id(&self) -> &str {
        self.item.id()
    }

    /// Applies an event that belongs to the item.
    pub(super) fn take(&mut self, event: &Event) -> Result<(), Offence> {
        match event {
            Event::ContentPartAdded(event) => return self.add_part(event),
            Event::ContentPartDone(event) => return self.finish_part(event),
            Event::SummaryPartAdded(event) => return self.add_summary(event),
            Event::SummaryPartDone(event) => return self.finish_summary(event),
            Event::OutputTextDelta(event) => self
                .output_text(event.content_index)?
                .push_str(&event.delta),
            Event::RefusalDelta(event) => self.refusal(event.content_index)?.push_str(&event.delta),
            Event::ArgumentsDelta(event) => self.arguments()?.push_str(&event.delta),
            Event::SummaryTextDelta(event) => {
                self.summary(event.summary_index)?.push_str(&event.delta);
            }
            Event::OutputTextAnnotationAdded(event) => drop(self.output_text(event.content_index)?),
            Event::OutputTextDone(event) => {
                self.complete_text(&event.text, |item| item.output_text(event.content_index))?;
            }
            Event::RefusalDone(event) => {
                self.complete_text(&event.refusal, |item| item.refusal(event.content_index))?;
            }
            Event::ArgumentsDone(event) => self.complete_text(&event.arguments, Self::arguments)?,
            Event::SummaryTextDone(event) => {
                self.complete_text(&event.text, |item| item.summary(event.summary_index))?;
            }
            _ => return Err(Offence::UnknownType),
        }
        Ok(())
    }

    /// Checks the item of the done event against the accumulated one.
    pub(super) fn finish(&self, done: &OutputItem) -> Result<(), Offence> {
        if !same_identity(&self.item, done) {
            return Err(Offence::ItemIdentity);
        }
        if !self.is_complete() {
            return Err(Offence::Part);
        }
        if !same_content(&self.item, done) {
            return Err(Offence::Text);
        }
        match done.status() {
            None | Some(Status::Completed | Status::Incomplete) => Ok(()),
            Some(_) => Err(Offence::Status),
        }
    }

    /// Returns the item with the content so far, as incomplete.
    pub(super) fn into_incomplete(mut self) -> OutputItem {
        self.item.set_status(Status::Incomplete);
        self.item
    }

    fn add_part(&mut self, event: &PartEvent) -> Result<(), Offence> {
        let OutputItem::Message(message) = &mut self.item else {
            return Err(Offence::Part);
        };
        let follows =
            self.text == Text::None && event.content_index as usize == message.content.len();
        if !follows || text_of(&event.part) != Some("") {
            return Err(Offence::Part);
        }
        message.content.push(event.part.clone());
        self.text = Text::Open;
        Ok(())
    }

    fn finish_part(&mut self, event: &PartEvent) -> Result<(), Offence> {
        let OutputItem::Message(message) = &self.item else {
            return Err(Offence::Part);
        };
        let last = message
            .content
            .last()
            .filter(|_| event.content_index as usize + 1 == message.content.len());
        let last = last
            .filter(|_| self.text == Text::Complete)
            .ok_or(Offence::Part)?;
        if !same_part(last, &event.part) {
            return Err(Offence::Text);
        }
        self.text = Text::None;
        Ok(())
    }

    fn add_summary(&mut self, event: &SummaryPartEvent) -> Result<(), Offence> {
        let OutputItem::Reasoning(reasoning) = &mut self.item else {
            return Err(Offence::Part);
        };
        let follows =
            self.text == Text::None && event.summary_index as usize == reasoning.summary.len();
        if !follows || summary_of(&event.part) != Some("") {
            return Err(Offence::Part);
        }
        reasoning.summary.push(event.part.clone());
        self.text = Text::Open;
        Ok(())
    }

    fn finish_summary(&mut self, event: &SummaryPartEvent) -> Result<(), Offence> {
        let OutputItem::Reasoning(reasoning) = &self.item else {
            return Err(Offence::Part);
        };
        let last = reasoning
            .summary
            .last()
            .filter(|_| event.summary_index as usize + 1 == reasoning.summary.len());
        let last = last
            .filter(|_| self.text == Text::Complete)
            .ok_or(Offence::Part)?;
        if summary_of(last) != summary_of(&event.part) {
            return Err(Offence::Text);
        }
        self.text = Text::None;
        Ok(())
    }

    /// The text of the open part of a message.
    fn output_text(&mut self, index: u32) -> Result<&mut String, Offence> {
        match self.open_part(index)? {
            OutputPart::Text(part) => Ok(&mut part.text),
            _ => Err(Offence::Stray),
        }
    }

    /// The refusal in the open part of a message.
    fn refusal(&mut self, index: u32) -> Result<&mut String, Offence> {
        match self.open_part(index)? {
            OutputPart::Refusal(part) => Ok(&mut part.refusal),
            _ => Err(Offence::Stray),
        }
    }

    fn open_part(&mut self, index: u32) -> Result<&mut OutputPart, Offence> {
        let OutputItem::Message(message) = &mut self.item else {
            return Err(Offence::Stray);
        };
        let is_last = self.text == Text::Open && index as usize + 1 == message.content.len();
        message
            .content
            .last_mut()
            .filter(|_| is_last)
            .ok_or(Offence::Stray)
    }

    /// The text of the open part of a reasoning summary.
    fn summary(&mut self, index: u32) -> Result<&mut String, Offence> {
        let OutputItem::Reasoning(reasoning) = &mut self.item else {
            return Err(Offence::Stray);
        };
        let is_last = self.text == Text::Open && index as usize + 1 == reasoning.summary.len();
        match reasoning.summary.last_mut().filter(|_| is_last) {
            Some(ReasoningPart::Summary(part)) => Ok(&mut part.text),
            _ => Err(Offence::Stray),
        }
    }

    fn arguments(&mut self) -> Result<&mut String, Offence> {
        match &mut self.item {
            OutputItem::FunctionCall(call) if self.text == Text::Open => Ok(&mut call.arguments),
            _ => Err(Offence::Stray),
        }
    }

    /// Completes the open text, which must equal `complete`.
    fn complete_text(
        &mut self,
        complete: &str,
        open: impl FnOnce(&mut Self) -> Result<&mut String, Offence>,
    ) -> Result<(), Offence> {
        if open(self)? != complete {
            return Err(Offence::Text);
        }
        self.text = Text::Complete;
        Ok(())
    }

    /// Returns true if the item has all of its parts.
    fn is_complete(&self) -> bool {
        match &self.item {
            OutputItem::Message(message) => self.text == Text::None && !message.content.is_empty(),
            OutputItem::FunctionCall(_) => self.text == Text::Complete,
            OutputItem::Reasoning(_) => self.text == Text::None,
            OutputItem::Other(_) => true,
        }
    }
}

fn is_blank(item: &OutputItem) -> bool {
    let begins = matches!(item.status(), None | Some(Status::InProgress));
    begins
        && match item {
            OutputItem::Message(message) => message.content.is_empty(),
            OutputItem::FunctionCall(call) => call.arguments.is_empty(),
            OutputItem::Reasoning(reasoning) => reasoning.summary.is_empty(),
            OutputItem::Other(_) => true,
        }
}

/// Returns true if the item is incomplete: no other item may follow it.
pub(super) fn is_incomplete(item: &OutputItem) -> bool {
    item.status() == Some(&Status::Incomplete)
}

pub(super) fn same_identity(one: &OutputItem, other: &OutputItem) -> bool {
    let same_call = match (one, other) {
        (OutputItem::FunctionCall(one), OutputItem::FunctionCall(other)) => {
            one.call_id == other.call_id && one.name == other.name
        }
        _ => true,
    };
    same_call && one.id() == other.id() && one.kind() == other.kind()
}

/// Returns true if two items of the same identity have the same content. Annotations, phase and
/// encrypted content are not compared.
pub(super) fn same_content(one: &OutputItem, other: &OutputItem) -> bool {
    match (one, other) {
        (OutputItem::Message(one), OutputItem::Message(other)) => {
            let parts = one.content.iter().zip(&other.content);
            one.content.len() == other.content.len()
                && parts.into_iter().all(|(one, other)| same_part(one, other))
        }
        (OutputItem::FunctionCall(one), OutputItem::FunctionCall(other)) => {
            one.arguments == other.arguments
        }
        (OutputItem::Reasoning(one), OutputItem::Reasoning(other)) => one
            .summary
            .iter()
            .map(summary_of)
            .eq(other.summary.iter().map(summary_of)),
        _ => true,
    }
}

fn same_part(one: &OutputPart, other: &OutputPart) -> bool {
    one.kind() == other.kind() && text_of(one) == text_of(other)
}

fn text_of(part: &OutputPart) -> Option<&str> {
    match part {
        OutputPart::Text(part) => Some(&part.text),
        OutputPart::Refusal(part) => Some(&part.refusal),
        OutputPart::Other(_) => None,
    }
}

fn summary_of(part: &ReasoningPart) -> Option<&str> {
    match part {
        ReasoningPart::Summary(part) => Some(&part.text),
        _ => None,
    }
}
