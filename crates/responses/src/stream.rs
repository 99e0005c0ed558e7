//! The stream grammar as a state machine, and the fold that assembles a stream into its response.
//!
//! ```text
//! stream    = created ( failed | in_progress item* end )
//! end       = completed | incomplete | failed          failed may occur anywhere after created
//! item      = message | call | reasoning | other       never interleaved, output_index 0, 1, 2, …
//! message   = item.added part+ item.done               content_index 0, 1, 2, …
//! part      = part.added ( text.delta | annotation )* text.done part.done
//!           | part.added refusal.delta* refusal.done part.done
//! call      = item.added arguments.delta* arguments.done item.done
//! reasoning = item.added summary* item.done            summary_index 0, 1, 2, …
//! summary   = part.added text.delta* text.done part.done
//! other     = item.added item.done                     an item of a hosted tool
//! ```
//!
//! An `error` event may end the stream anywhere. Whatever is added must be empty, whatever is done
//! must equal the concatenation of its deltas, and the response of the terminal event must contain
//! the items that were done. Sequence numbers count from 0 without gaps.
//!
//! See <https://platform.openai.com/docs/api-reference/responses-streaming>.

mod item;

use std::collections::HashSet;

use crate::event::{Event, ItemEvent};
use crate::response::{OutputItem, Response, ResponseError};
use crate::status::Status;
use item::{OpenItem, is_incomplete, same_content, same_identity};

/// A state machine that checks a stream against the grammar, event by event.
#[derive(Clone, Debug, Default)]
pub struct Grammar {
    stage: Stage,
    next_number: u64,
    response_id: String,
    item_ids: HashSet<String>,
    done: Vec<OutputItem>,
    open: Option<OpenItem>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Stage {
    #[default]
    Before,
    Created,
    Running,
    Ended,
}

wire::text_enum! {
    /// A violation of the stream grammar.
    #[non_exhaustive]
    pub enum Offence {
        /// An event type that the grammar does not define. Only the event's sequence number has
        /// been recorded, so a caller that accepts such events may continue with the next one.
        UnknownType = "an event of a type that the grammar does not define",
        Sequence = "a missing or unexpected sequence number",
        Identity = "a response whose id differs from the id of the first event",
        Opening = "a missing, repeated or non-empty opening event",
        Status = "a status that does not match its event",
        /// An item that is added before its predecessor is done, after an incomplete item, at the
        /// wrong index, or non-empty; or that is done without being open.
        Item = "an item that is out of order or not empty when added",
        /// An item without a unique id, or whose id, type or call changes.
        ItemIdentity = "an item without a unique id, or whose identity changes",
        /// A part that is added before its predecessor is done, at the wrong index, or non-empty;
        /// or an item that is done without its parts.
        Part = "a part that is out of order, missing or not empty when added",
        Stray = "an event for an item or part that is not open",
        Text = "a text that differs from the concatenation of its deltas",
        Unclosed = "a terminal event while an item is open",
        Output = "a final response whose items differ from the items of its stream",
        AfterEnd = "an event after the terminal event",
        Truncated = "the stream ended without a terminal event",
    }
}

impl std::error::Error for Offence {}

impl Grammar {
    /// Checks the next event.
    ///
    /// # Errors
    /// Returns the violation, if any. After an error other than [`Offence::UnknownType`] the state
    /// machine is unusable.
    pub fn push(&mut self, event: &Event) -> Result<(), Offence> {
        if self.stage == Stage::Ended {
            return Err(Offence::AfterEnd);
        }
        self.check_sequence(event)?;
        match event {
            Event::Created(event) => self.begin(Stage::Before, Stage::Created, &event.response),
            Event::InProgress(event) => self.begin(Stage::Created, Stage::Running, &event.response),
            Event::Completed(event) => self.end(Status::Completed, &event.response),
            Event::Incomplete(event) => self.end(Status::Incomplete, &event.response),
            Event::Failed(event) => self.fail(&event.response),
            Event::Error(_) => {
                self.stage = Stage::Ended;
                Ok(())
            }
            event if event.is_undefined() => Err(Offence::UnknownType),
            Event::OutputItemAdded(event) => self.add_item(event),
            Event::OutputItemDone(event) => self.finish_item(event),
            _ => {
                let (id, index) = event.place().ok_or(Offence::UnknownType)?;
                self.open_item(id, index)?.take(event)
            }
        }
    }

    /// Returns true if the terminal event was received.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.stage == Stage::Ended
    }

    /// Checks that the stream may end here.
    ///
    /// # Errors
    /// Returns [`Offence::Truncated`] if no terminal event was received.
    pub fn finish(self) -> Result<(), Offence> {
        if self.is_ended() {
            Ok(())
        } else {
            Err(Offence::Truncated)
        }
    }

    /// Returns the items so far, for reporting a failure of a stream that has no terminal event. An
    /// open item comes last, incomplete.
    #[must_use]
    pub fn into_items(self) -> Vec<OutputItem> {
        let mut items = self.done;
        items.extend(self.open.map(OpenItem::into_incomplete));
        items
    }

    fn check_sequence(&mut self, event: &Event) -> Result<(), Offence> {
        match event.sequence_number() {
            Some(number) if number == self.next_number => {
                self.next_number += 1;
                Ok(())
            }
            // Unrecognized events and failures may lack a sequence number.
            None if matches!(event, Event::Other(_) | Event::Error(_)) => Ok(()),
            _ => Err(Offence::Sequence),
        }
    }

    fn begin(&mut self, from: Stage, to: Stage, response: &Response) -> Result<(), Offence> {
        if self.stage != from || response.id.is_empty() || !response.output.is_empty() {
            return Err(Offence::Opening);
        }
        if from == Stage::Before {
            self.response_id.clone_from(&response.id);
        }
        self.check_response(Status::InProgress, response)?;
        self.stage = to;
        Ok(())
    }

    fn end(&mut self, status: Status, response: &Response) -> Result<(), Offence> {
        if self.stage != Stage::Running {
            return Err(Offence::Opening);
        }
        let is_truncated = self.done.last().is_some_and(is_incomplete);
        if is_truncated && status == Status::Completed {
            return Err(Offence::Status);
        }
        self.check_response(status, response)?;
        if self.open.is_some() {
            return Err(Offence::Unclosed);
        }
        let same = |(done, reported): (&OutputItem, &OutputItem)| {
            same_identity(done, reported) && same_content(done, reported)
        };
        if self.done.len() != response.output.len()
            || !self.done.iter().zip(&response.output).all(same)
        {
            return Err(Offence::Output);
        }
        self.stage = Stage::Ended;
        Ok(())
    }

    fn fail(&mut self, response: &Response) -> Result<(), Offence> {
        if self.stage == Stage::Before {
            return Err(Offence::Opening);
        }
        self.check_response(Status::Failed, response)?;
        self.stage = Stage::Ended;
        Ok(())
    }

    fn check_response(&self, status: Status, response: &Response) -> Result<(), Offence> {
        if response.id != self.response_id {
            return Err(Offence::Identity);
        }
        if response.status == status {
            Ok(())
        } else {
            Err(Offence::Status)
        }
    }

    fn add_item(&mut self, event: &ItemEvent) -> Result<(), Offence> {
        let after_incomplete = self.done.last().is_some_and(is_incomplete);
        let follows = self.stage == Stage::Running && self.open.is_none() && !after_incomplete;
        if !follows || event.output_index as usize != self.done.len() {
            return Err(Offence::Item);
        }
        let open = OpenItem::begin(&event.item)?;
        if !self.item_ids.insert(open.id().to_owned()) {
            return Err(Offence::ItemIdentity);
        }
        self.open = Some(open);
        Ok(())
    }

    fn finish_item(&mut self, event: &ItemEvent) -> Result<(), Offence> {
        let open = self
            .open
            .as_ref()
            .filter(|_| event.output_index as usize == self.done.len());
        open.ok_or(Offence::Item)?.finish(&event.item)?;
        self.open = None;
        self.done.push(event.item.clone());
        Ok(())
    }

    fn open_item(&mut self, id: &str, index: u32) -> Result<&mut OpenItem, Offence> {
        let at = self.done.len();
        self.open
            .as_mut()
            .filter(|open| open.id() == id && index as usize == at)
            .ok_or(Offence::Stray)
    }
}

/// Assembles a stream into its response: the response of the terminal event, checked against the
/// events before it.
#[derive(Clone, Debug, Default)]
pub struct Fold {
    grammar: Grammar,
    end: Option<Result<Box<Response>, ResponseError>>,
}

/// The reason why a stream yields no response.
pub type StreamError = wire::StreamError<Offence, ResponseError>;

impl Fold {
    /// Adds the next event.
    ///
    /// # Errors
    /// Returns an error if the event violates the grammar. After an error other than
    /// [`Offence::UnknownType`] the fold is unusable.
    pub fn push(&mut self, event: &Event) -> Result<(), StreamError> {
        self.grammar.push(event).map_err(StreamError::Offence)?;
        match event {
            Event::Completed(event) | Event::Incomplete(event) => {
                self.end = Some(Ok(event.response.clone()));
            }
            Event::Failed(event) => {
                self.end = Some(Err(event.response.error.clone().unwrap_or_default()));
            }
            Event::Error(event) => self.end = Some(Err(event.failure())),
            _ => {}
        }
        Ok(())
    }

    /// Returns the response, completed or incomplete, once the stream has ended.
    ///
    /// # Errors
    /// Returns an error if the stream failed or has no terminal event.
    pub fn finish(self) -> Result<Response, StreamError> {
        match self.end {
            Some(Ok(response)) => Ok(*response),
            Some(Err(failure)) => Err(StreamError::Failed(failure)),
            None => Err(StreamError::Offence(Offence::Truncated)),
        }
    }
}
