//! The grammar of a stream as a state machine, and the fold from a stream to the response that it amounts to.
//!
//! ```text
//! stream    = created ( failed | in_progress item* end )
//! end       = completed | incomplete | failed          failed at once, anywhere after created
//! item      = message | call | reasoning | other       one after another, output_index 0, 1, 2, …
//! message   = item.added part+ item.done               content_index 0, 1, 2, …
//! part      = part.added ( text.delta | annotation )* text.done part.done
//!           | part.added refusal.delta* refusal.done part.done
//! call      = item.added arguments.delta* arguments.done item.done
//! reasoning = item.added summary* item.done            summary_index 0, 1, 2, …
//! summary   = part.added text.delta* text.done part.done
//! other     = item.added item.done                     the trace of a hosted tool
//! ```
//!
//! An `error` event ends a stream anywhere. Whatever is added is blank, whatever is done is the sum of its deltas,
//! and the response at the end has the items that were done. Sequence numbers count from 0 without gaps.
//!
//! See spec §6.1 and wire-reference §1.9.

mod item;

use std::collections::HashSet;
use std::fmt;

use crate::event::{Event, ItemEvent};
use crate::response::{OutputItem, Response, ResponseError, Status};
use item::{OpenItem, is_cut, same_content, same_identity};

/// Reads along with a stream and says when it leaves the grammar.
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

/// How a stream leaves the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Offence {
    /// A type that the grammar does not have. The machine has noted the event's number and nothing else: who lets
    /// such events pass may go on.
    UnknownType,
    /// A sequence number that is missing or not the next.
    Sequence,
    /// A response with another id than the first.
    Identity,
    /// A beginning that is missing, repeated or not blank.
    Opening,
    /// A status that does not go with the event.
    Status,
    /// An item that is added before the one before it is done, after one that was cut, out of order or not blank;
    /// or that is done without being open.
    Item,
    /// An item without an id of its own, or whose id, type or call changes.
    ItemIdentity,
    /// A part that is added before the one before it is done, out of order or not blank; or an item done without
    /// its parts.
    Part,
    /// A piece of something that is not open.
    Stray,
    /// A text that is not the sum of its deltas.
    Text,
    /// An end while an item is open.
    Unclosed,
    /// A response at the end whose items are not those that were done.
    Output,
    /// Anything after the end.
    AfterEnd,
    /// No end.
    Truncated,
}

impl Grammar {
    /// The grammar before the first event.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// How the event leaves the grammar. The machine is then of no more use, but after [`Offence::UnknownType`].
    pub fn push(&mut self, event: &Event) -> Result<(), Offence> {
        if self.stage == Stage::Ended {
            return Err(Offence::AfterEnd);
        }
        self.count(event)?;
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
            Event::Other(_) | Event::ReasoningTextDelta(_) | Event::ReasoningTextDone(_) => Err(Offence::UnknownType),
            Event::OutputItemAdded(event) => self.add_item(event),
            Event::OutputItemDone(event) => self.finish_item(event),
            _ => {
                let (id, index) = event.place().ok_or(Offence::UnknownType)?;
                self.open_item(id, index)?.take(event)
            }
        }
    }

    /// Whether the end was seen.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.stage == Stage::Ended
    }

    /// Takes the end of the bytes.
    ///
    /// # Errors
    /// [`Offence::Truncated`] when the stream had not ended.
    pub fn finish(self) -> Result<(), Offence> {
        if self.is_ended() { Ok(()) } else { Err(Offence::Truncated) }
    }

    /// The items so far, for who tells of a failure in the place of an end: the one that is still open comes last, as
    /// far as it got, and incomplete.
    #[must_use]
    pub fn into_items(self) -> Vec<OutputItem> {
        let mut items = self.done;
        items.extend(self.open.map(OpenItem::cut));
        items
    }

    fn count(&mut self, event: &Event) -> Result<(), Offence> {
        match event.sequence_number() {
            Some(number) if number == self.next_number => {
                self.next_number += 1;
                Ok(())
            }
            // Strangers and failures in need may come without a number.
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
        let was_cut = self.done.last().is_some_and(is_cut);
        if was_cut && status == Status::Completed {
            return Err(Offence::Status);
        }
        self.check_response(status, response)?;
        if self.open.is_some() {
            return Err(Offence::Unclosed);
        }
        let same = |(done, told): (&OutputItem, &OutputItem)| same_identity(done, told) && same_content(done, told);
        if self.done.len() != response.output.len() || !self.done.iter().zip(&response.output).all(same) {
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
        if response.status == status { Ok(()) } else { Err(Offence::Status) }
    }

    fn add_item(&mut self, event: &ItemEvent) -> Result<(), Offence> {
        let follows = self.stage == Stage::Running && self.open.is_none() && !self.done.last().is_some_and(is_cut);
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
        let open = self.open.as_ref().filter(|_| event.output_index as usize == self.done.len());
        open.ok_or(Offence::Item)?.finish(&event.item)?;
        self.open = None;
        self.done.push(event.item.clone());
        Ok(())
    }

    fn open_item(&mut self, id: &str, index: u32) -> Result<&mut OpenItem, Offence> {
        let at = self.done.len();
        self.open.as_mut().filter(|open| open.id() == id && index as usize == at).ok_or(Offence::Stray)
    }
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownType => "an event of a type that the grammar does not have",
            Self::Sequence => "a sequence number that is missing or not the next",
            Self::Identity => "a response with another id than the first",
            Self::Opening => "a beginning that is missing, repeated or not blank",
            Self::Status => "a status that does not go with its event",
            Self::Item => "an item that is out of order or not blank",
            Self::ItemIdentity => "an item without an id of its own, or that changes what it is",
            Self::Part => "a part that is out of order, missing or not blank",
            Self::Stray => "a piece of something that is not open",
            Self::Text => "a text that is not the sum of its deltas",
            Self::Unclosed => "an end while an item is open",
            Self::Output => "a response whose items are not those of its stream",
            Self::AfterEnd => "something after the end of the stream",
            Self::Truncated => "no completion and no failure at the end of the stream",
        })
    }
}

impl std::error::Error for Offence {}

/// Gathers a stream into the response that it amounts to: the one that its end carries, held against its events.
#[derive(Clone, Debug, Default)]
pub struct Fold {
    grammar: Grammar,
    end: Option<Result<Box<Response>, ResponseError>>,
}

/// Why a stream amounts to no response.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamError {
    /// It left the grammar.
    Offence(Offence),
    /// It told of a failure.
    Failed(ResponseError),
}

impl Fold {
    /// The fold of no events.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// When the event leaves the grammar. The fold is then of no more use, but after [`Offence::UnknownType`].
    pub fn push(&mut self, event: &Event) -> Result<(), StreamError> {
        self.grammar.push(event).map_err(StreamError::Offence)?;
        match event {
            Event::Completed(event) | Event::Incomplete(event) => self.end = Some(Ok(event.response.clone())),
            Event::Failed(event) => self.end = Some(Err(event.response.error.clone().unwrap_or_default())),
            Event::Error(event) => self.end = Some(Err(event.failure())),
            _ => {}
        }
        Ok(())
    }

    /// The response, once the stream has ended: completed, or incomplete.
    ///
    /// # Errors
    /// When the stream failed or did not end.
    pub fn finish(self) -> Result<Response, StreamError> {
        match self.end {
            Some(Ok(response)) => Ok(*response),
            Some(Err(failure)) => Err(StreamError::Failed(failure)),
            None => Err(StreamError::Offence(Offence::Truncated)),
        }
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offence(offence) => offence.fmt(f),
            Self::Failed(failure) => write!(f, "the stream failed: {}", failure.message),
        }
    }
}

impl std::error::Error for StreamError {}
