//! The reader of a stream.

mod continued;

use std::borrow::Cow;

use wire::lenient::{
    Call, Counts, OtherContent, ReadError, TextOrder, TextPlace, Tokens, Update, bounded, parse,
    push, required,
};

use super::Stop;
use super::blocks::{BlockKind, Blocks, OpenBlock};
use super::event::{Block, Delta, Event, Message};
use super::usage::{NamedCounts, settled, unsettled};

/// Reads a stream, event by event.
///
/// ```
/// use sluicegate_messages::lenient::{Reader, Stop, Update};
///
/// let mut reader = Reader::new();
/// let mut updates = Vec::new();
/// for data in [
///     r#"{"type":"message_start","message":{}}"#,
///     r#"{"type":"content_block_start","index":0,"content_block":{"type":"text"}}"#,
///     r#"{"type":"content_block_delta","index":0,"delta":{"text":"Hello."}}"#,
///     r#"{"type":"content_block_stop","index":0}"#,
///     r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
///     r#"{"type":"message_stop"}"#,
/// ] {
///     reader.event(data, &mut updates)?;
/// }
/// assert_eq!(updates, [Update::Text("Hello.".into())]);
/// assert_eq!(reader.stop(), Some(&Stop::EndTurn));
/// # Ok::<(), sluicegate_messages::lenient::ReadError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Reader {
    has_started: bool,
    is_ended: bool,
    has_content: bool,
    content_length: u64,
    other_content: Vec<OtherContent>,
    blocks: Blocks,
    order: TextOrder,
    /// The index of the block of the last event, if clients need another one.
    index: Option<usize>,
    /// The type of the delta of the last event, if it has none.
    delta_kind: Option<&'static str>,
    calls: Vec<Call>,
    counts: Counts,
    /// The counts that the usage of the last event or of the reply should have.
    unsettled_usage: Option<NamedCounts>,
    /// True if the last event is a `message_delta` without a usage.
    lacks_usage: bool,
    stop: Option<Stop>,
    /// The stop reason and the stop sequence, as the server has written them.
    stop_words: [Option<String>; 2],
    /// True if the last event is a `message_delta` without a stop reason.
    lacks_stop: bool,
    text_place: Option<TextPlace>,
}

/// The kind of an event, for those who pass it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The first `message_start`.
    Start,
    /// A `message_start` that repeats the first one, or `[DONE]`: nothing that a client expects.
    Repetition,
    /// `message_stop`.
    End,
    /// Any other event.
    Other,
}

impl Reader {
    /// Creates a reader that has read nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the data of an event, and appends its updates.
    ///
    /// # Errors
    /// If it is not an event, reports an error, or contradicts an earlier event. The reader is
    /// unusable afterwards.
    pub fn event<'a>(
        &mut self,
        data: &'a str,
        out: &mut Vec<Update<'a>>,
    ) -> Result<Kind, ReadError> {
        self.text_place = None;
        (self.index, self.delta_kind) = (None, None);
        (self.lacks_usage, self.lacks_stop) = (false, false);
        let data = data.trim_matches([' ', '\t', '\n', '\r']);
        // Some servers end the streams of every protocol with it.
        if data == "[DONE]" {
            return Ok(Kind::Repetition);
        }
        let event: Event<'_> = parse(data)?;
        self.note_counts(&event);
        if event.is_error() {
            return Err(ReadError::Reported(data.to_owned()));
        }
        let before = out.len();
        let kind = self.read(event, out)?;
        self.has_content |= out.len() > before;
        self.content_length += out[before..].iter().map(Update::length).sum::<u64>();
        Ok(kind)
    }

    /// Reads a plain reply, which has to be finished.
    ///
    /// # Errors
    /// As for [`Reader::event`], and if it has no stop reason.
    pub fn reply<'a>(&mut self, body: &'a str, out: &mut Vec<Update<'a>>) -> Result<(), ReadError> {
        let event: Event<'_> = parse(body)?;
        let message: Message<'a> = parse(body)?;
        self.note_counts(&event);
        if event.is_error() || message.is_failure() {
            return Err(ReadError::Reported(body.to_owned()));
        }
        let content = message
            .content
            .filter(|_| message.kind.get() == Some("message"));
        let content =
            content.ok_or_else(|| ReadError::Malformed("the reply is not a message".to_owned()))?;
        for block in content {
            self.open_block(None, block, out)?;
            self.close_block(None, out)?;
        }
        if let Some(reason) = message
            .stop_reason
            .get()
            .filter(|reason| !reason.is_empty())
        {
            self.end(reason, message.stop_sequence.get())?;
        }
        self.complete()
    }

    /// Returns how the answer ended, once the stop reason is known.
    #[must_use]
    pub fn stop(&self) -> Option<&Stop> {
        self.stop.as_ref()
    }

    /// Returns true after `message_start`.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.has_started
    }

    /// Returns true after `message_stop`.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Returns true if the events so far have content, or the end of it. `message_start`, `ping`
    /// and the start of an empty block do not count.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.has_content || !self.other_content.is_empty() || self.stop.is_some()
    }

    /// Returns the kinds of content that the answer has and that this reader has no updates for.
    #[must_use]
    pub fn other_content(&self) -> &[OtherContent] {
        &self.other_content
    }

    /// Returns the length of all texts, thoughts and arguments so far, in bytes.
    #[must_use]
    pub fn content_length(&self) -> u64 {
        self.content_length
    }

    /// Returns the settled token counts so far, also after an error.
    #[must_use]
    pub fn tokens(&self) -> Option<Tokens> {
        self.counts.settled()
    }

    /// Returns the names of the counts in the usage of the last event, or of the reply, and their
    /// settled values, if it may have others: some servers write zeros at the end of a stream.
    /// Whoever passes it on writes the settled ones.
    #[must_use]
    pub fn unsettled_usage(&self) -> Option<[(&'static str, u64); 4]> {
        self.unsettled_usage
    }

    /// Returns the names and values of the counts so far if the last event is a `message_delta`
    /// without a usage, which clients require.
    #[must_use]
    pub fn missing_usage(&self) -> Option<[(&'static str, u64); 4]> {
        let counts = || settled(&self.tokens().unwrap_or_default());
        self.lacks_usage.then(counts)
    }

    /// Returns the stop reason and the stop sequence so far, in the words of the server, if the last
    /// event is a `message_delta` without a stop reason: clients keep the reason of the last one.
    #[must_use]
    pub fn missing_stop(&self) -> Option<[Option<&str>; 2]> {
        let words = || self.stop_words.each_ref().map(Option::as_deref);
        self.lacks_stop.then(words)
    }

    /// Notes the token counts of an event or of a reply, also if it reports an error.
    fn note_counts(&mut self, event: &Event<'_>) {
        self.unsettled_usage = None;
        let message = event.message.0.as_ref();
        if let Some(counts) = message.and_then(|message| message.usage.0) {
            self.counts.merge(&counts);
        }
        if let Some(counts) = event.usage.0 {
            self.counts.merge(&counts);
            let settled = self.counts.settled();
            self.unsettled_usage = settled.and_then(|tokens| unsettled(&counts, &tokens));
        }
    }

    /// Returns the index by which clients find the block of the last event, unless the event has it.
    #[must_use]
    pub fn index(&self) -> Option<usize> {
        self.index
    }

    /// Returns the type of the delta of the last event, if it has none.
    #[must_use]
    pub fn delta_kind(&self) -> Option<&'static str> {
        self.delta_kind
    }

    /// Returns true if a piece of a text belongs before one that came earlier, by the order of their
    /// blocks.
    #[must_use]
    pub fn breaks_order(&self) -> bool {
        self.order.is_broken()
    }

    fn read<'a>(&mut self, event: Event<'a>, out: &mut Vec<Update<'a>>) -> Result<Kind, ReadError> {
        if event.is_foreign() {
            return Ok(Kind::Other);
        }
        match required(event.kind.get(), "type")? {
            "message_start" => {
                let message = event.message.0.unwrap_or_default();
                if message.has_content() {
                    return Err(ReadError::Contradiction("content within message_start"));
                }
                return self.start();
            }
            "content_block_start" => {
                let block = required(event.content_block, "content_block")?;
                self.check_open()?;
                self.open_block(event.index.0, block, out)?;
            }
            "content_block_delta" => {
                let delta = required(event.delta, "delta")?;
                delta.check()?;
                self.check_open()?;
                self.delta(event.index.0, delta, out)?;
            }
            "content_block_stop" => self.close_block(event.index.0, out)?,
            "message_delta" => {
                self.lacks_usage = event.usage.0.is_none();
                if self.lacks_usage {
                    required(event.delta.as_ref(), "delta")?;
                }
                self.check_started()?;
                let delta = event.delta.unwrap_or_default();
                if delta.has_content() {
                    return Err(ReadError::Contradiction("content within message_delta"));
                }
                self.read_stop(&delta)?;
            }
            "message_stop" => {
                self.check_started()?;
                self.complete()?;
                return Ok(Kind::End);
            }
            // `ping`, and events that are newer than this reader.
            _ => {}
        }
        Ok(Kind::Other)
    }

    fn start(&mut self) -> Result<Kind, ReadError> {
        // Some servers repeat the event. One after content begins another answer.
        if self.has_started && (self.has_content || self.blocks.any_open() || self.stop.is_some()) {
            return Err(ReadError::Contradiction("a second message_start"));
        }
        let is_repeated = std::mem::replace(&mut self.has_started, true);
        Ok(if is_repeated {
            Kind::Repetition
        } else {
            Kind::Start
        })
    }

    fn check_started(&self) -> Result<(), ReadError> {
        if self.has_started {
            Ok(())
        } else {
            Err(ReadError::Contradiction("an event before message_start"))
        }
    }

    /// Checks that content may come.
    fn check_open(&self) -> Result<(), ReadError> {
        match self.stop {
            Some(_) => Err(ReadError::Contradiction("content after the stop reason")),
            None => self.check_started(),
        }
    }

    fn open_block<'a>(
        &mut self,
        index: Option<u64>,
        block: Block<'a>,
        out: &mut Vec<Update<'a>>,
    ) -> Result<(), ReadError> {
        let before = out.len();
        let kind = match required(block.kind.get(), "type")? {
            "text" => {
                let has_citations = block.citations.is_some_and(|list| list.get() != "[]");
                OtherContent::Annotations.note(has_citations, &mut self.other_content);
                push(block.text.0, Update::Text, out);
                BlockKind::Text
            }
            "thinking" => {
                push(block.thinking.0, Update::Reasoning, out);
                push(block.signature.0, Update::Signature, out);
                BlockKind::Thinking
            }
            "redacted_thinking" => {
                push(block.data.0, Update::RedactedReasoning, out);
                BlockKind::Redacted
            }
            "tool_use" => self.open_call(block, out)?,
            // Blocks of the server's hosted tools, and blocks that are newer than this reader.
            _ => {
                OtherContent::HostedTools.note(true, &mut self.other_content);
                BlockKind::Other
            }
        };
        let shown = self.blocks.open(index, kind)?;
        self.note_index(index, shown);
        self.note_order(shown, &out[before..]);
        Ok(())
    }

    fn open_call<'a>(
        &mut self,
        block: Block<'a>,
        out: &mut Vec<Update<'a>>,
    ) -> Result<BlockKind, ReadError> {
        let call = bounded(self.calls.len() as u64)?;
        let input = block.input.map_or("", serde_json::value::RawValue::get);
        if !matches!(input, "" | "null") && !input.starts_with('{') {
            return Err(ReadError::Call("its input is no JSON object"));
        }
        let [id, name] = [block.id, block.name].map(|text| text.0.unwrap_or_default());
        self.calls.push(Call {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            arguments: String::new(),
        });
        out.push(Update::Call { call, id, name });
        Ok(BlockKind::Call(call, input.to_owned()))
    }

    fn delta<'a>(
        &mut self,
        index: Option<u64>,
        delta: Delta<'a>,
        out: &mut Vec<Update<'a>>,
    ) -> Result<(), ReadError> {
        let block = self.blocks.find(index)?;
        let shown = block.shown;
        self.delta_kind = block.kind.check(&delta)?;
        let before = out.len();
        if let BlockKind::Call(call, _) = block.kind {
            let text = delta.partial_json.0.filter(|text| !text.is_empty());
            if let Some(text) = text {
                self.calls[call].arguments += &text;
                out.push(Update::Arguments { call, text });
            }
        } else {
            let kind = self.delta_kind.or(delta.kind.get());
            let is_continued = block.kind.is_continued(kind, &delta);
            self.text_place = is_continued.then(|| block.place());
            let is_citation = delta.kind.get() == Some("citations_delta");
            OtherContent::Annotations.note(is_citation, &mut self.other_content);
            push(delta.text.0, Update::Text, out);
            push(delta.thinking.0, Update::Reasoning, out);
            push(delta.signature.0, Update::Signature, out);
        }
        self.note_index(index, shown);
        self.note_order(shown, &out[before..]);
        Ok(())
    }

    fn close_block(
        &mut self,
        index: Option<u64>,
        out: &mut Vec<Update<'_>>,
    ) -> Result<(), ReadError> {
        let OpenBlock { shown, kind, .. } = self.blocks.close(index)?;
        self.note_index(index, shown);
        if let BlockKind::Call(call, input) = kind {
            let arguments = &mut self.calls[call].arguments;
            // The input at the start counts if no deltas follow.
            if arguments.is_empty()
                && !matches!(input.as_str(), "" | "null")
                && !is_empty_object(&input)
            {
                arguments.clone_from(&input);
                let text = Cow::Owned(input);
                out.push(Update::Arguments { call, text });
            }
            out.push(Update::CallEnd(call));
        }
        Ok(())
    }

    /// Notes the index by which clients find a block, unless the event has it.
    fn note_index(&mut self, index: Option<u64>, shown: usize) {
        self.index = (index != Some(shown as u64)).then_some(shown);
    }

    fn note_order(&mut self, block: usize, updates: &[Update<'_>]) {
        for update in updates {
            match update {
                Update::Text(_) => self.order.note(0, (block as u64, 0)),
                Update::Reasoning(_) => self.order.note(1, (block as u64, 0)),
                _ => {}
            }
        }
    }

    /// Reads the stop reason of a `message_delta`, if it has one.
    fn read_stop(&mut self, delta: &Delta<'_>) -> Result<(), ReadError> {
        let reason = delta.stop_reason.get().filter(|reason| !reason.is_empty());
        self.lacks_stop = reason.is_none();
        let Some(reason) = reason else { return Ok(()) };
        let sequence = delta.stop_sequence.get();
        self.end(reason, sequence)?;
        self.stop_words = [Some(reason), sequence].map(|word| word.map(str::to_owned));
        Ok(())
    }

    /// Handles a stop reason.
    fn end(&mut self, reason: &str, sequence: Option<&str>) -> Result<(), ReadError> {
        let stop = match Stop::of(reason).ok_or_else(|| ReadError::Stop(reason.to_owned()))? {
            Stop::StopSequence(_) => Stop::StopSequence(sequence.map(str::to_owned)),
            Stop::EndTurn if !self.calls.is_empty() => Stop::ToolUse,
            stop => stop,
        };
        if stop == Stop::ToolUse && self.calls.is_empty() {
            return Err(ReadError::Contradiction(
                "a stop reason for calls, but no call",
            ));
        }
        if self.stop.as_ref().is_some_and(|earlier| *earlier != stop) {
            return Err(ReadError::Contradiction("two stop reasons"));
        }
        self.stop = Some(stop);
        Ok(())
    }

    /// Handles the end of the answer.
    fn complete(&mut self) -> Result<(), ReadError> {
        let stop = self.stop.as_ref().ok_or(ReadError::Truncated)?;
        if stop.is_complete() {
            if self.blocks.any_open() {
                return Err(ReadError::Contradiction("a block that is not closed"));
            }
            self.calls.iter().try_for_each(Call::check)?;
        }
        self.is_ended = true;
        Ok(())
    }
}

/// Reads the token counts of a plain reply, also of one that [`Reader::reply`] rejects: it has used
/// them all the same.
#[must_use]
pub fn reported_tokens(body: &str) -> Option<Tokens> {
    parse::<Event<'_>>(body).ok()?.usage.tokens()
}

fn is_empty_object(json: &str) -> bool {
    let members = json
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    members.is_some_and(|members| members.trim().is_empty())
}
