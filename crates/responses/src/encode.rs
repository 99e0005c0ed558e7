//! From what a model does to the events of a stream, never outside the grammar.

mod echo;
mod open_item;
mod place;

use wire::{ApiError, Object};

pub use self::echo::Echo;
use self::open_item::OpenItem;
use self::place::Place;
use crate::event::{Event, ResponseEvent};
use crate::request::{FunctionCall, Phase, Reasoning, ReasoningPart, RefusalPart, TextPart};
use crate::response::{
    IncompleteDetails, IncompleteReason, OutputItem, OutputMessage, OutputPart, OutputText, Response, ResponseError,
    Status, Usage,
};

/// What every response object of a stream says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// `resp_…`; the ids of the items are made from it.
    pub id: String,
    /// When the response was begun, in Unix seconds.
    pub created_at: i64,
    /// The model that the caller asked for.
    pub model: String,
}

/// How a response ends that does not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model was done.
    Completed,
    /// The model was cut.
    Incomplete(IncompleteReason),
}

/// Turns what a model does into events, and gathers it in the response that the last event carries.
///
/// Any order of calls gives a stream within the grammar: items and parts open and close by themselves, and after
/// the end nothing more is said.
#[derive(Debug)]
pub struct Encoder {
    /// The response so far, without the open item.
    response: Response,
    open: Option<OpenItem>,
    state: State,
    next_number: u64,
    offers_tools: bool,
    pads: bool,
    seals: bool,
}

#[derive(Debug, PartialEq)]
enum State {
    Before,
    Running,
    Ended,
}

impl Encoder {
    /// An encoder before its first event.
    #[must_use]
    pub fn new(head: Head, echo: Echo) -> Self {
        let Echo { blank, offers_tools, pads, seals } = echo;
        let response = Response { id: head.id, created_at: head.created_at, model: head.model, ..blank };
        Self { response, open: None, state: State::Before, next_number: 0, offers_tools, pads, seals }
    }

    /// Opens the stream; by itself with the first thing that is said otherwise.
    pub fn open(&mut self, out: &mut Vec<Event>) {
        if self.state == State::Before {
            self.state = State::Running;
            out.push(Event::Created(self.snapshot()));
            out.push(Event::InProgress(self.snapshot()));
        }
    }

    /// More of the answer.
    pub fn text(&mut self, text: &str, out: &mut Vec<Event>) {
        if self.takes(text) {
            self.open_part(OutputPart::Text(OutputText::default()), out);
            self.append(text);
            out.push(self.place().text_delta(text));
        }
    }

    /// More of a refusal.
    pub fn refusal(&mut self, text: &str, out: &mut Vec<Event>) {
        if self.takes(text) {
            self.open_part(OutputPart::Refusal(RefusalPart::default()), out);
            self.append(text);
            out.push(self.place().refusal_delta(text));
        }
    }

    /// More of the thoughts.
    pub fn reasoning(&mut self, text: &str, out: &mut Vec<Event>) {
        if self.takes(text) {
            self.open_summary(out);
            self.append(text);
            out.push(self.place().summary_delta(text));
        }
    }

    /// The next text, refusal or thought begins a part of its own.
    pub fn end_part(&mut self, out: &mut Vec<Event>) {
        self.close_part(out);
    }

    /// The model's seal on the thoughts just told, which it ends. It is told only to who asked for it.
    pub fn seal(&mut self, seal: &str, out: &mut Vec<Event>) {
        if !self.takes(seal) {
            return;
        }
        if self.seals {
            self.open_reasoning(out);
        }
        if let Some(OpenItem { item: OutputItem::Reasoning(reasoning), .. }) = &mut self.open {
            reasoning.encrypted_content = self.seals.then(|| seal.to_owned());
            self.close(Status::Completed, None, out);
        }
    }

    /// Thoughts of which nothing but their seal is told, as an item of their own. They are told only to who asked for it.
    pub fn redacted_reasoning(&mut self, seal: &str, out: &mut Vec<Event>) {
        if !self.seals || !self.takes(seal) {
            return;
        }
        if self.is_in("reasoning") {
            self.close(Status::Completed, None, out);
        }
        self.seal(seal, out);
    }

    /// A call begins.
    pub fn call(&mut self, call_id: &str, name: &str, out: &mut Vec<Event>) {
        if self.state == State::Ended {
            return;
        }
        self.open(out);
        self.close(Status::Completed, Some(Phase::Commentary), out);
        let call = FunctionCall {
            id: Some(self.item_id("fc")),
            status: Some(Status::InProgress),
            call_id: call_id.to_owned(),
            name: name.to_owned(),
            arguments: String::new(),
            extra: Object::new(),
        };
        self.add(OutputItem::FunctionCall(call), out);
    }

    /// More of the arguments of the call that began last. Once something else has begun it means nothing.
    pub fn arguments(&mut self, text: &str, out: &mut Vec<Event>) {
        if self.takes(text) && self.is_in("function_call") {
            self.append(text);
            out.push(self.place().arguments_delta(text));
        }
    }

    /// The end without failure. `completed_at`, in Unix seconds, is told when the response is completed.
    pub fn finish(&mut self, finish: Finish, usage: Option<Usage>, completed_at: i64, out: &mut Vec<Event>) {
        if self.state == State::Ended {
            return;
        }
        self.open(out);
        self.response.usage = usage;
        let event = match finish {
            Finish::Completed => {
                self.close(Status::Completed, Some(Phase::FinalAnswer), out);
                self.response.status = Status::Completed;
                self.response.completed_at = Some(completed_at);
                Event::Completed
            }
            Finish::Incomplete(reason) => {
                self.close(Status::Incomplete, Some(Phase::FinalAnswer), out);
                self.response.status = Status::Incomplete;
                self.response.incomplete_details = Some(IncompleteDetails { reason });
                Event::Incomplete
            }
        };
        self.state = State::Ended;
        out.push(event(self.snapshot()));
    }

    /// The end with failure. What is open is abandoned; before anything was opened nothing else is said.
    pub fn fail(&mut self, error: &ApiError, out: &mut Vec<Event>) {
        match self.state {
            State::Before => out.push(Event::Created(self.snapshot())),
            State::Running => {}
            State::Ended => return,
        }
        if let Some(OpenItem { mut item, .. }) = self.open.take() {
            item.set_status(Status::Incomplete);
            self.response.output.push(item);
        }
        self.response.status = Status::Failed;
        self.response.error = Some(ResponseError::from(error));
        self.state = State::Ended;
        out.push(Event::Failed(self.snapshot()));
    }

    fn takes(&self, text: &str) -> bool {
        self.state != State::Ended && !text.is_empty()
    }

    fn is_in(&self, kind: &str) -> bool {
        self.open.as_ref().is_some_and(|open| open.item.kind() == kind)
    }

    fn open_message(&mut self, out: &mut Vec<Event>) {
        if self.is_in("message") {
            return;
        }
        self.open(out);
        self.close(Status::Completed, None, out);
        let message = OutputMessage {
            id: self.item_id("msg"),
            status: Status::InProgress,
            role: OutputMessage::ROLE.to_owned(),
            content: Vec::new(),
            // Where a call may follow, it is not known yet.
            phase: (!self.offers_tools).then_some(Phase::FinalAnswer),
            extra: Object::new(),
        };
        self.add(OutputItem::Message(message), out);
    }

    fn open_reasoning(&mut self, out: &mut Vec<Event>) {
        if self.is_in("reasoning") {
            return;
        }
        self.open(out);
        // A message that is thought about further is not the last of the turn.
        let phase = self.offers_tools.then_some(Phase::Commentary);
        self.close(Status::Completed, phase, out);
        let reasoning = Reasoning { id: Some(self.item_id("rs")), ..Reasoning::default() };
        self.add(OutputItem::Reasoning(reasoning), out);
    }

    /// Opens a part like `blank` in a message, unless the open part is one.
    fn open_part(&mut self, blank: OutputPart, out: &mut Vec<Event>) {
        self.open_message(out);
        if self.open.as_ref().is_some_and(|open| open.is_in_part(blank.kind())) {
            return;
        }
        self.close_part(out);
        if let Some(OpenItem { item: OutputItem::Message(message), in_part }) = &mut self.open {
            message.content.push(blank.clone());
            *in_part = true;
        }
        out.push(Event::ContentPartAdded(self.place().part(blank)));
    }

    /// Opens a part of thoughts, unless one is open.
    fn open_summary(&mut self, out: &mut Vec<Event>) {
        self.open_reasoning(out);
        let Some(OpenItem { item: OutputItem::Reasoning(reasoning), in_part: in_part @ false }) = &mut self.open else {
            return;
        };
        let blank = ReasoningPart::Summary(TextPart::default());
        reasoning.summary.push(blank.clone());
        *in_part = true;
        out.push(Event::SummaryPartAdded(self.place().summary_part(blank)));
    }

    fn add(&mut self, item: OutputItem, out: &mut Vec<Event>) {
        self.open = Some(OpenItem { item: item.clone(), in_part: false });
        out.push(Event::OutputItemAdded(self.place().item(item)));
    }

    fn append(&mut self, text: &str) {
        if let Some(open) = self.open.as_mut().and_then(OpenItem::text) {
            open.push_str(text);
        }
    }

    /// Closes the open item, if there is one. `phase` is for a message, when it is known by now.
    fn close(&mut self, status: Status, phase: Option<Phase>, out: &mut Vec<Event>) {
        self.close_part(out);
        self.close_arguments(&status, out);
        let Some(open) = &mut self.open else { return };
        if let (OutputItem::Message(message), Some(phase)) = (&mut open.item, phase) {
            message.phase = Some(phase);
        }
        open.item.set_status(status);
        let item = open.item.clone();
        out.push(Event::OutputItemDone(self.place().item(item.clone())));
        self.response.output.push(item);
        self.open = None;
    }

    fn close_part(&mut self, out: &mut Vec<Event>) {
        let Some(open) = self.open.as_mut().filter(|open| open.in_part) else { return };
        open.in_part = false;
        match &open.item {
            OutputItem::Message(message) => {
                if let Some(part) = message.content.last().cloned() {
                    self.tell_part(part, out);
                }
            }
            OutputItem::Reasoning(reasoning) => {
                if let Some(part) = reasoning.summary.last().cloned() {
                    self.tell_summary(part, out);
                }
            }
            _ => {}
        }
    }

    fn tell_part(&mut self, part: OutputPart, out: &mut Vec<Event>) {
        match &part {
            OutputPart::Text(part) => out.push(self.place().text_done(&part.text)),
            OutputPart::Refusal(part) => out.push(self.place().refusal_done(&part.refusal)),
            OutputPart::Other(_) => {}
        }
        out.push(Event::ContentPartDone(self.place().part(part)));
    }

    fn tell_summary(&mut self, part: ReasoningPart, out: &mut Vec<Event>) {
        if let ReasoningPart::Summary(part) = &part {
            out.push(self.place().summary_done(&part.text));
        }
        out.push(Event::SummaryPartDone(self.place().summary_part(part)));
    }

    /// Ends the arguments of an open call: of one that was not cut they are `{}` when there were none.
    fn close_arguments(&mut self, status: &Status, out: &mut Vec<Event>) {
        let Some(OpenItem { item: OutputItem::FunctionCall(call), .. }) = &self.open else { return };
        if call.arguments.is_empty() && *status == Status::Completed {
            self.arguments("{}", out);
        }
        if let Some(OpenItem { item: OutputItem::FunctionCall(call), .. }) = &self.open {
            let (name, arguments) = (call.name.clone(), call.arguments.clone());
            out.push(self.place().arguments_done(name, arguments));
        }
    }

    fn snapshot(&mut self) -> ResponseEvent {
        let response = Box::new(self.response.clone());
        ResponseEvent { sequence_number: self.place().sequence_number, response, extra: Object::new() }
    }

    /// The place of the next event.
    fn place(&mut self) -> Place {
        let (item_id, parts) =
            self.open.as_ref().map(|open| (open.item.id().to_owned(), open.parts())).unwrap_or_default();
        let sequence_number = self.next_number;
        self.next_number += 1;
        Place {
            sequence_number,
            output_index: index(self.response.output.len()),
            item_id,
            part_index: index(parts.saturating_sub(1)),
            block: if self.pads { PADDED_BLOCK } else { 0 },
        }
    }

    /// The id of the next item: the response's own, under another prefix and with the item's number.
    fn item_id(&self, prefix: &str) -> String {
        let id = &self.response.id;
        let own = id.split_once('_').map_or(id.as_str(), |(_, own)| own);
        format!("{prefix}_{own}{:02}", self.response.output.len() + 1)
    }
}

fn index(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// Padded deltas are a multiple of so many bytes long.
const PADDED_BLOCK: usize = 16;
