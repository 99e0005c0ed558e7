//! The reader of a stream.

use std::borrow::Cow;

use wire::lenient::{
    Counts, Members, OtherContent, ReadError, TextPlace, Tokens, Update, bounded, push,
};

use super::Finish;
use super::calls::Calls;
use super::chunk::{Choice, Chunk, Delta, Piece, json};

/// Reads a stream, event by event. A plain reply is read as a stream of one event.
///
/// ```
/// use sluicegate_chat::lenient::{Finish, Reader, Update};
///
/// let mut reader = Reader::new();
/// let mut updates = Vec::new();
/// reader.event(r#"{"choices":[{"delta":{"content":"Hello."}}]}"#, &mut updates)?;
/// reader.event(r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{}}"#, &mut updates)?;
/// reader.event("[DONE]", &mut updates)?;
/// assert_eq!(updates, [Update::Text("Hello.".into())]);
/// assert_eq!(reader.finish()?, Finish::Stop);
/// # Ok::<(), sluicegate_chat::lenient::ReadError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Reader {
    /// Choices beside the first, which are checked alike but emit no updates.
    choices: Vec<ChoiceState>,
    /// The token counts that are not of a single choice.
    counts: Counts,
    /// The counts that the usage of the last event should have.
    unsettled_usage: Option<[u64; 3]>,
    id: String,
    is_done: bool,
    has_content: bool,
    /// True if a choice beside the first has content.
    others_have_content: bool,
    /// The length of the text.
    text: usize,
    content_length: u64,
    has_odd_calls: bool,
    lists_texts: bool,
    other_content: Vec<OtherContent>,
    has_usage_alone: bool,
    lacks_object: bool,
    lacks_delta: bool,
    lacks_index: bool,
    text_place: Option<TextPlace>,
}

impl Reader {
    /// Creates a reader that has read nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the data of an event, and appends the updates of the first choice.
    ///
    /// # Errors
    /// If it is not a chunk, reports an error, or contradicts what came before. The reader is
    /// unusable afterwards.
    pub fn event<'a>(&mut self, data: &'a str, out: &mut Vec<Update<'a>>) -> Result<(), ReadError> {
        self.text_place = None;
        let data = data.trim_matches([' ', '\t', '\n', '\r']);
        if data == DONE {
            self.is_done = true;
            return self.finish().map(drop);
        }
        let chunk = self.chunk(data)?;
        self.read(chunk, false, out)
    }

    /// Reads a plain reply, which has to be finished.
    ///
    /// # Errors
    /// As for [`Reader::event`], and if it has no finish reason.
    pub fn reply<'a>(
        &mut self,
        body: &'a str,
        out: &mut Vec<Update<'a>>,
    ) -> Result<Finish, ReadError> {
        let chunk = self.chunk(body)?;
        self.read(chunk, true, out)?;
        self.finish()
    }

    /// Returns how the answer ended. A stream may lack `[DONE]` after its finish reason.
    ///
    /// # Errors
    /// If a choice has no finish reason.
    pub fn finish(&self) -> Result<Finish, ReadError> {
        let mut finishes = self
            .choices
            .iter()
            .map(|choice| choice.finish.ok_or(ReadError::Truncated));
        let first = finishes.next().ok_or(ReadError::Truncated)??;
        finishes.try_for_each(|finish| finish.map(drop))?;
        Ok(first)
    }

    /// Returns true after `[DONE]`.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Returns the settled token counts so far, also after an error. Some servers have them in each
    /// choice: then the choices share the prompt, and their answers add up.
    #[must_use]
    pub fn tokens(&self) -> Option<Tokens> {
        if let [only] = &*self.choices {
            let mut counts = self.counts;
            counts.merge(&only.counts);
            return counts.settled();
        }
        let each = self
            .choices
            .iter()
            .filter_map(|choice| choice.counts.settled());
        self.counts
            .settled()
            .or_else(|| each.reduce(Tokens::with_choice))
    }

    /// Returns the settled counts of the prompt, the answer and their sum, if the usage of the last
    /// event or of the reply has others. Whoever passes it on writes these, so that they add up.
    #[must_use]
    pub fn unsettled_usage(&self) -> Option<[u64; 3]> {
        self.unsettled_usage
    }

    /// Returns the length of all texts, thoughts and arguments so far, in bytes, of all choices.
    #[must_use]
    pub fn content_length(&self) -> u64 {
        self.content_length
    }

    /// Returns the id of the answer; empty until it is known.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the kinds of content that the answer has and that this reader has no updates for.
    #[must_use]
    pub fn other_content(&self) -> &[OtherContent] {
        &self.other_content
    }

    /// Returns true if the last event has calls of the first choice in a form that clients do not
    /// know: without an index, with arguments that are no text, with an id or a name that an
    /// earlier piece had, or as `function_call`. Whoever passes the event on writes them anew, from
    /// its updates.
    #[must_use]
    pub fn has_odd_calls(&self) -> bool {
        let repeats = |first: &ChoiceState| first.calls.has_repetition;
        self.has_odd_calls || self.choices.first().is_some_and(repeats)
    }

    /// Returns true if the content of the first choice of the last event is a list of texts and
    /// thoughts, where clients expect a text. A relay writes it anew, from its
    /// updates.
    #[must_use]
    pub fn lists_texts(&self) -> bool {
        self.lists_texts
    }

    /// Returns true if the last event has the usage and no choices. Only clients that request it
    /// expect such an event.
    #[must_use]
    pub fn has_usage_alone(&self) -> bool {
        self.has_usage_alone
    }

    /// Returns true if the last event has choices, but not the `object` of a chunk. Clients skip
    /// such events when they join the chunks.
    #[must_use]
    pub fn lacks_object(&self) -> bool {
        self.lacks_object
    }

    /// Returns true if the first choice of the last event has no `delta`, which clients read
    /// without looking for it, and no message of its own in its place.
    #[must_use]
    pub fn lacks_delta(&self) -> bool {
        self.lacks_delta
    }

    /// Returns true if the first choice of the last event has no `index`: it is choice 0.
    #[must_use]
    pub fn lacks_index(&self) -> bool {
        self.lacks_index
    }

    /// Returns the choice whose texts the last event continues, if it does nothing else.
    #[must_use]
    pub fn text_place(&self) -> Option<TextPlace> {
        self.text_place
    }

    /// Reads an event as the one that had this place, with another content and other reasoning.
    /// Returns false, and reads nothing, if such an event may be an error by now.
    #[must_use]
    pub fn continue_text(&mut self, place: TextPlace, content: &str, reasoning: [&str; 2]) -> bool {
        let choice = self.choices.get(place.item);
        if choice.is_none_or(|choice| choice.finish.is_some()) {
            return false;
        }
        let lengths = [content, reasoning[0], reasoning[1]].map(str::len);
        self.content_length += lengths.iter().sum::<usize>() as u64;
        let is_empty = content.is_empty() && reasoning.iter().all(|text| text.is_empty());
        if place.item == 0 {
            self.has_content |= !is_empty;
            self.text += content.len();
        } else {
            self.others_have_content |= !is_empty;
        }
        true
    }

    /// Returns true if the events so far have content, or the end of it. The role of a choice, an
    /// empty text, the results of a filter and events of the server's own are none.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.has_content
            || self.others_have_content
            || !self.other_content.is_empty()
            || self.choices.iter().any(|choice| choice.finish.is_some())
    }

    /// Returns the number of choices that have begun.
    #[must_use]
    pub fn choices(&self) -> usize {
        self.choices.len()
    }

    /// Returns true if a limit truncated any choice.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        let is_cut = |choice: &ChoiceState| choice.finish == Some(Finish::Length);
        self.choices.iter().any(is_cut)
    }

    /// Parses a chunk and notes its token counts, also those of one that reports an error.
    fn chunk<'a>(&mut self, data: &'a str) -> Result<Chunk<'a>, ReadError> {
        // Some servers send empty lines before a reply, to keep the connection alive.
        let data = data.trim_ascii_start();
        if !data.starts_with('{') {
            return Err(ReadError::Malformed("not a JSON object".to_owned()));
        }
        let chunk: Chunk<'_> = json(data)?;
        chunk.note_counts(&mut self.counts);
        if chunk.is_error() {
            Err(ReadError::Reported(data.to_owned()))
        } else {
            Ok(chunk)
        }
    }

    fn read<'a>(
        &mut self,
        chunk: Chunk<'a>,
        is_reply: bool,
        out: &mut Vec<Update<'a>>,
    ) -> Result<(), ReadError> {
        // A stream may have events of the server's own, such as the results of its checks.
        if is_reply && chunk.choices.is_none() && chunk.usage.0.is_none() {
            return Err(ReadError::Malformed("neither choices nor usage".to_owned()));
        }
        if self.id.is_empty() {
            chunk.id.or_empty().clone_into(&mut self.id);
        }
        let has_choices = chunk
            .choices
            .as_ref()
            .is_some_and(|choices| !choices.is_empty());
        self.has_usage_alone = !has_choices && chunk.usage.0.is_some();
        self.has_odd_calls = chunk.choices.iter().flatten().any(Choice::has_odd_calls);
        self.lists_texts = chunk.choices.iter().flatten().any(Choice::lists_texts);
        self.lacks_object = chunk.lacks_object();
        (self.lacks_delta, self.lacks_index) = (false, false);
        if let Some(first) = self.choices.first_mut() {
            first.calls.has_repetition = false;
        }
        let may_repeat = !is_reply && self.has_content && chunk.is_whole();
        let (before, continued) = (out.len(), chunk.continued());
        for (place, mut choice) in chunk.choices.into_iter().flatten().enumerate() {
            if may_repeat {
                self.drop_repetition(&mut choice)?;
            }
            self.lacks_delta |= place == 0 && choice.is_bare();
            self.lacks_index |= place == 0 && choice.index.0.is_none();
            self.choice(choice, is_reply, out)?;
        }
        self.has_content |= out.len() > before;
        self.text += text_length(&out[before..]);
        let unsettled = |usage: Counts| usage.unsettled(&self.tokens()?);
        self.unsettled_usage = chunk.usage.0.and_then(unsettled);
        let item = continued.and_then(|index| bounded(index).ok());
        self.text_place = item.map(|item| TextPlace {
            item,
            ..TextPlace::default()
        });
        Ok(())
    }

    /// Drops the message of a finished choice without a delta: some servers end a stream with the
    /// whole reply, which repeats the deltas.
    fn drop_repetition(&self, choice: &mut Choice<'_>) -> Result<(), ReadError> {
        let is_finished = !choice.finish_reason.or_empty().is_empty();
        let message = choice.message.take_if(|_| is_finished);
        let Some(message) = message.filter(|_| choice.delta.is_none()) else {
            return Ok(());
        };
        let mut repeated = Vec::new();
        ChoiceState::default().delta(message, true, &mut repeated)?;
        if text_length(&repeated) == self.text {
            Ok(())
        } else {
            Err(ReadError::Contradiction(
                "a whole reply that differs from its deltas",
            ))
        }
    }

    fn choice<'a>(
        &mut self,
        choice: Choice<'a>,
        is_reply: bool,
        out: &mut Vec<Update<'a>>,
    ) -> Result<(), ReadError> {
        let index = bounded(choice.index.0.unwrap_or_default())?;
        if self.choices.len() <= index {
            self.choices.resize_with(index + 1, ChoiceState::default);
        }
        let state = &mut self.choices[index];
        if let Some(counts) = &choice.usage.0 {
            state.counts.merge(counts);
        }
        let before = out.len();
        if is_reply && choice.is_bare() {
            return Err(ReadError::Malformed(
                "a choice without a message".to_owned(),
            ));
        }
        let mut has_calls = false;
        out.extend(choice.logprobs().filter(|_| state.finish.is_none()));
        if let Some(delta) = choice.delta.or(choice.message) {
            delta.note_other_content(&mut self.other_content);
            has_calls = delta.tool_calls.iter().flatten().next().is_some();
            state.delta(delta, is_reply, out)?;
        }
        if state.finish.is_some() && (has_calls || out.len() > before) {
            return Err(ReadError::Contradiction(AFTER_FINISH));
        }
        self.content_length += out[before..].iter().map(Update::length).sum::<u64>();
        if index > 0 {
            self.others_have_content |= out.len() > before;
            out.truncate(before);
        }
        match choice.finish_reason.or_empty() {
            "" => Ok(()),
            reason => state.end(reason),
        }
    }
}

/// A choice as far as it is known.
#[derive(Clone, Debug, Default)]
struct ChoiceState {
    /// The token counts that the choice itself has.
    counts: Counts,
    calls: Calls,
    finish: Option<Finish>,
}

impl ChoiceState {
    fn delta<'a>(
        &mut self,
        mut delta: Delta<'a>,
        is_reply: bool,
        out: &mut Vec<Update<'a>>,
    ) -> Result<(), ReadError> {
        push(delta.take_reasoning(), Update::Reasoning, out);
        delta.content(out)?;
        push(delta.refusal.0, Update::Refusal, out);
        let pieces = delta.tool_calls.unwrap_or_default();
        // Some servers send a call in both forms at once.
        let old_form = delta.function_call.0.filter(|_| pieces.is_empty());
        let is_only = pieces.len() == 1;
        for (position, mut piece) in pieces.into_iter().enumerate() {
            if is_reply {
                // Every entry of a plain reply is a call of its own.
                piece.index.0 = Some(position as u64);
                piece.id.0 = piece.id.0.or(Some(Cow::default()));
            }
            self.calls.piece(piece, position, is_only, out)?;
        }
        if let Some(function) = old_form {
            let piece = Piece {
                function: Members(Some(function)),
                ..Piece::default()
            };
            self.calls.piece(piece, 0, true, out)?;
        }
        Ok(())
    }

    /// Handles a finish reason.
    fn end(&mut self, reason: &str) -> Result<(), ReadError> {
        let finish = Finish::of(reason).ok_or_else(|| ReadError::Stop(reason.to_owned()))?;
        match self.finish {
            Some(earlier)
                if earlier == finish || earlier == Finish::ToolCalls && finish == Finish::Stop =>
            {
                return Ok(());
            }
            Some(_) => return Err(ReadError::Contradiction(AFTER_FINISH)),
            None => {}
        }
        if finish == Finish::ToolCalls && self.calls.is_empty() {
            return Err(ReadError::Contradiction(
                "a finish reason for calls, but no call",
            ));
        }
        if finish.is_complete() {
            self.calls.check()?;
        }
        let has_calls = finish == Finish::Stop && !self.calls.is_empty();
        self.finish = Some(if has_calls { Finish::ToolCalls } else { finish });
        Ok(())
    }
}

/// Reads the token counts of a plain reply, also of one that [`Reader::reply`] rejects: it has used
/// them all the same.
#[must_use]
pub fn reported_tokens(body: &str) -> Option<Tokens> {
    let mut reader = Reader::new();
    // A reply that is no chunk has no counts.
    if let Ok(chunk) = reader.chunk(body) {
        for choice in chunk.choices.iter().flatten() {
            let counts = choice.usage.0.unwrap_or_default();
            reader.choices.push(ChoiceState {
                counts,
                ..ChoiceState::default()
            });
        }
    }
    reader.tokens()
}

/// The length of the output text of these updates.
fn text_length(updates: &[Update<'_>]) -> usize {
    let length = |update: &Update<'_>| match update {
        Update::Text(text) => text.len(),
        _ => 0,
    };
    updates.iter().map(length).sum()
}

/// The data of the last event.
const DONE: &str = "[DONE]";
const AFTER_FINISH: &str = "content after the finish reason, or another finish reason";
