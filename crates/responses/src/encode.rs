//! Encodes model output as the events of a stream, always within the stream grammar.

mod custom_call;
mod echo;
mod open_item;
mod place;

use wire::{ApiError, Json, Object};

pub use self::echo::Echo;
use self::open_item::OpenItem;
use self::place::Place;
use crate::event::{Event, ResponseEvent};
use crate::request::{FunctionCall, Phase, Reasoning, ReasoningPart, RefusalPart, TextPart};
use crate::response::{
    IncompleteDetails, IncompleteReason, OutputItem, OutputMessage, OutputPart, OutputText,
    Response, ResponseError, Usage,
};
use crate::status::Status;

/// The fields that identify a response; every response object of a stream repeats them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The id of the response, `resp_…`. The ids of its items are derived from it.
    pub id: String,
    /// Creation time, in Unix seconds.
    pub created_at: i64,
    /// The id of the model, as requested.
    pub model: String,
}

/// The outcome of a response that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model finished its output.
    Completed,
    /// The output was truncated or filtered.
    Incomplete(IncompleteReason),
}

/// Encodes model output as events and accumulates it into the response that the terminal event
/// carries.
///
/// Any order of calls yields a stream within the grammar: items and parts are opened and closed
/// automatically, and calls after the terminal event have no effect.
#[derive(Debug)]
pub struct Encoder {
    /// The response so far, without the open item.
    response: Response,
    open: Option<OpenItem>,
    state: State,
    next_number: u64,
    offers_tools: bool,
    pad_deltas: bool,
    include_encrypted: bool,
    /// The log probabilities of the tokens of the next text.
    logprobs: Vec<Json>,
}

#[derive(Debug, PartialEq)]
enum State {
    Before,
    Running,
    Ended,
}

impl Encoder {
    /// Creates an encoder that has emitted nothing yet.
    #[must_use]
    pub fn new(head: Head, echo: Echo) -> Self {
        let Echo {
            blank,
            offers_tools,
            pad_deltas,
            include_encrypted,
        } = echo;
        let response = Response {
            id: head.id,
            created_at: head.created_at,
            model: head.model,
            ..blank
        };
        Self {
            response,
            open: None,
            state: State::Before,
            next_number: 0,
            offers_tools,
            pad_deltas,
            include_encrypted,
            logprobs: Vec::new(),
        }
    }

    /// Opens the stream. Optional: the first output opens it as well.
    pub fn open(&mut self, out: &mut Vec<Event>) {
        if self.state == State::Before {
            self.state = State::Running;
            out.push(Event::Created(self.snapshot()));
            out.push(Event::InProgress(self.snapshot()));
        }
    }

    /// Adds log probabilities of the tokens of the next output text.
    pub fn logprobs(&mut self, tokens: Vec<Json>) {
        self.logprobs.extend(tokens);
    }

    /// Appends output text.
    pub fn text(&mut self, text: &str, out: &mut Vec<Event>) {
        if self.accepts(text) {
            self.open_part(OutputPart::Text(OutputText::default()), out);
            self.append(text);
            let logprobs = std::mem::take(&mut self.logprobs);
            if let Some(part) = self.open.as_mut().and_then(OpenItem::output_text) {
                part.logprobs.extend_from_slice(&logprobs);
            }
            out.push(self.place().text_delta(text, logprobs));
        }
    }

    /// Appends refusal text.
    pub fn refusal(&mut self, text: &str, out: &mut Vec<Event>) {
        if self.accepts(text) {
            self.open_part(OutputPart::Refusal(RefusalPart::default()), out);
            self.append(text);
            out.push(self.place().refusal_delta(text));
        }
    }

    /// Appends reasoning text.
    pub fn reasoning(&mut self, text: &str, out: &mut Vec<Event>) {
        if self.accepts(text) {
            self.open_summary(out);
            self.append(text);
            out.push(self.place().summary_delta(text));
        }
    }

    /// Ends the open part: the next text, refusal or reasoning starts a new one.
    pub fn end_part(&mut self, out: &mut Vec<Event>) {
        let Some(open) = self.open.as_mut().filter(|open| open.in_part) else {
            return;
        };
        open.in_part = false;
        match &open.item {
            OutputItem::Message(message) => {
                if let Some(part) = message.content.last().cloned() {
                    self.push_part_done(part, out);
                }
            }
            OutputItem::Reasoning(reasoning) => {
                if let Some(part) = reasoning.summary.last().cloned() {
                    self.push_summary_done(part, out);
                }
            }
            _ => {}
        }
    }

    /// Ends the reasoning item with its encrypted content. The content is included only if the
    /// request asked for it.
    pub fn seal(&mut self, encrypted_content: &str, out: &mut Vec<Event>) {
        if !self.accepts(encrypted_content) {
            return;
        }
        if self.include_encrypted {
            self.open_reasoning(out);
        }
        if let Some(OpenItem {
            item: OutputItem::Reasoning(reasoning),
            ..
        }) = &mut self.open
        {
            reasoning.encrypted_content =
                self.include_encrypted.then(|| encrypted_content.to_owned());
            self.close(Status::Completed, None, out);
        }
    }

    /// Adds a reasoning item that has nothing but encrypted content. Does nothing unless the
    /// request asked for encrypted content.
    pub fn redacted_reasoning(&mut self, encrypted_content: &str, out: &mut Vec<Event>) {
        if !self.include_encrypted || !self.accepts(encrypted_content) {
            return;
        }
        if self.is_in("reasoning") {
            self.close(Status::Completed, None, out);
        }
        self.seal(encrypted_content, out);
    }

    /// Starts a tool call.
    pub fn call(&mut self, call_id: &str, name: &str, out: &mut Vec<Event>) {
        self.call_with(call_id, name, Object::new(), out);
    }

    /// Starts a tool call with further members, such as its namespace.
    pub fn call_with(&mut self, call_id: &str, name: &str, extra: Object, out: &mut Vec<Event>) {
        if !self.begin_call(out) {
            return;
        }
        let call = FunctionCall {
            id: Some(self.item_id("fc")),
            status: Some(Status::InProgress),
            extra,
            ..FunctionCall::new(call_id.to_owned(), name.to_owned(), String::new())
        };
        self.add(OutputItem::FunctionCall(call), out);
    }

    /// Closes what is open, for a call. Returns false if the stream has ended.
    fn begin_call(&mut self, out: &mut Vec<Event>) -> bool {
        if self.state == State::Ended {
            return false;
        }
        self.open(out);
        self.close(Status::Completed, Some(Phase::Commentary), out);
        true
    }

    /// Appends to the arguments of the last call. Has no effect once another item has started.
    pub fn arguments(&mut self, text: &str, out: &mut Vec<Event>) {
        if self.accepts(text) && self.is_in("function_call") {
            self.append(text);
            out.push(self.place().arguments_delta(text));
        }
    }

    /// Ends the stream without a failure. `completed_at`, in Unix seconds, is only used for a
    /// completed response.
    pub fn finish(
        &mut self,
        finish: Finish,
        usage: Option<Usage>,
        completed_at: i64,
        out: &mut Vec<Event>,
    ) {
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

    /// Ends the stream with a failure. An open item is abandoned. If nothing has been emitted yet,
    /// only `response.created` precedes the failure.
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

    fn accepts(&self, text: &str) -> bool {
        self.state != State::Ended && !text.is_empty()
    }

    fn is_in(&self, kind: &str) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| open.item.kind() == kind)
    }

    fn open_message(&mut self, out: &mut Vec<Event>) {
        if self.is_in("message") {
            return;
        }
        self.open(out);
        self.close(Status::Completed, None, out);
        let role = OutputMessage::ROLE.to_owned();
        let message = OutputMessage {
            // If tools are offered, the phase is only known once the message ends: a call may
            // follow.
            phase: (!self.offers_tools).then_some(Phase::FinalAnswer),
            ..OutputMessage::new(self.item_id("msg"), Status::InProgress, role, Vec::new())
        };
        self.add(OutputItem::Message(message), out);
    }

    fn open_reasoning(&mut self, out: &mut Vec<Event>) {
        if self.is_in("reasoning") {
            return;
        }
        self.open(out);
        // A message that is followed by more reasoning does not end the turn.
        let phase = self.offers_tools.then_some(Phase::Commentary);
        self.close(Status::Completed, phase, out);
        let reasoning = Reasoning {
            id: Some(self.item_id(Reasoning::OWN_ID.trim_end_matches('_'))),
            ..Reasoning::default()
        };
        self.add(OutputItem::Reasoning(reasoning), out);
    }

    /// Opens a part of the kind of `blank` in a message, unless such a part is open.
    fn open_part(&mut self, blank: OutputPart, out: &mut Vec<Event>) {
        self.open_message(out);
        if self
            .open
            .as_ref()
            .is_some_and(|open| open.is_in_part(blank.kind()))
        {
            return;
        }
        self.end_part(out);
        if let Some(OpenItem {
            item: OutputItem::Message(message),
            in_part,
        }) = &mut self.open
        {
            message.content.push(blank.clone());
            *in_part = true;
        }
        out.push(Event::ContentPartAdded(self.place().part(blank)));
    }

    /// Opens a part of the reasoning summary, unless one is open.
    fn open_summary(&mut self, out: &mut Vec<Event>) {
        self.open_reasoning(out);
        let Some(OpenItem {
            item: OutputItem::Reasoning(reasoning),
            in_part: in_part @ false,
        }) = &mut self.open
        else {
            return;
        };
        let blank = ReasoningPart::Summary(TextPart::default());
        reasoning.summary.push(blank.clone());
        *in_part = true;
        out.push(Event::SummaryPartAdded(self.place().summary_part(blank)));
    }

    fn add(&mut self, item: OutputItem, out: &mut Vec<Event>) {
        self.open = Some(OpenItem {
            item: item.clone(),
            in_part: false,
        });
        out.push(Event::OutputItemAdded(self.place().item(item)));
    }

    fn append(&mut self, text: &str) {
        if let Some(open) = self.open.as_mut().and_then(OpenItem::text) {
            open.push_str(text);
        }
    }

    /// Closes the open item, if any. `phase` is the phase of a message, if known by now.
    fn close(&mut self, status: Status, phase: Option<Phase>, out: &mut Vec<Event>) {
        self.end_part(out);
        self.close_arguments(&status, out);
        self.close_input(out);
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

    fn push_part_done(&mut self, part: OutputPart, out: &mut Vec<Event>) {
        match &part {
            OutputPart::Text(part) => out.push(self.place().text_done(part)),
            OutputPart::Refusal(part) => out.push(self.place().refusal_done(&part.refusal)),
            OutputPart::Other(_) => {}
        }
        out.push(Event::ContentPartDone(self.place().part(part)));
    }

    fn push_summary_done(&mut self, part: ReasoningPart, out: &mut Vec<Event>) {
        if let ReasoningPart::Summary(part) = &part {
            out.push(self.place().summary_done(&part.text));
        }
        out.push(Event::SummaryPartDone(self.place().summary_part(part)));
    }

    /// Ends the arguments of an open call. If the call is complete and has no arguments, they
    /// become `{}`.
    fn close_arguments(&mut self, status: &Status, out: &mut Vec<Event>) {
        let Some(OpenItem {
            item: OutputItem::FunctionCall(call),
            ..
        }) = &self.open
        else {
            return;
        };
        if call.arguments.is_empty() && *status == Status::Completed {
            self.arguments("{}", out);
        }
        if let Some(OpenItem {
            item: OutputItem::FunctionCall(call),
            ..
        }) = &self.open
        {
            let name = call.name.clone();
            let arguments = call.arguments.clone();
            out.push(self.place().arguments_done(name, arguments));
        }
    }

    fn snapshot(&mut self) -> ResponseEvent {
        let response = Box::new(self.response.clone());
        ResponseEvent::new(self.place().sequence_number, response)
    }

    /// Returns the position of the next event and advances the sequence number.
    fn place(&mut self) -> Place {
        let (item_id, parts) = self
            .open
            .as_ref()
            .map(|open| (open.item.id().to_owned(), open.parts()))
            .unwrap_or_default();
        let sequence_number = self.next_number;
        self.next_number += 1;
        Place {
            sequence_number,
            output_index: index(self.response.output.len()),
            item_id,
            part_index: index(parts.saturating_sub(1)),
            block: if self.pad_deltas { PADDED_BLOCK } else { 0 },
        }
    }

    /// Returns the id of the next item: the suffix of the response's id with another prefix and the
    /// item's number.
    fn item_id(&self, prefix: &str) -> String {
        let id = &self.response.id;
        let suffix = id.split_once('_').map_or(id.as_str(), |(_, suffix)| suffix);
        format!("{prefix}_{suffix}{:02}", self.response.output.len() + 1)
    }
}

fn index(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// Block size in bytes: padding rounds a delta up to a multiple of it.
const PADDED_BLOCK: usize = 16;
