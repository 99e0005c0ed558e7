//! The reader of a stream.

use std::borrow::Cow;

use wire::lenient::{
    Counts, Members, OtherContent, ReadError, TextPlace, Tokens, Update, bounded, push,
};

use super::calls::Calls;
use super::chunk::{Choice, Chunk, Delta, Piece, json};
use super::defects::{Defects, ListedContent};
use super::{CallDefects, Finish};

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
    content_length: u64,
    other_content: Vec<OtherContent>,
    has_usage: bool,
    has_usage_alone: bool,
    lacks_object: bool,
    lacks_choices: bool,
    /// The defects of the last event.
    defects: Vec<Defects>,
    text_place: Option<TextPlace>,
    /// The number of times that the service tier has changed. An event from before a change would have
    /// to state its own again.
    tiers: usize,
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
    /// If it is not a chunk, reports an error, or contradicts an earlier event. The reader is
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

    /// Returns how the answer ended. A stream may lack `[DONE]` after its finish reason, and its
    /// choices may have any indexes.
    ///
    /// # Errors
    /// If a choice has no finish reason.
    pub fn finish(&self) -> Result<Finish, ReadError> {
        let mut finishes = self
            .begun()
            .map(|choice| choice.finish.ok_or(ReadError::Truncated));
        let first = finishes.next().ok_or(ReadError::Truncated)??;
        finishes.try_for_each(|finish| finish.map(drop))?;
        Ok(first)
    }

    /// Returns the stop sequence that ended choice 0, if the server names it.
    #[must_use]
    pub fn stop_sequence(&self) -> Option<&str> {
        self.choices.first()?.stop_sequence.as_deref()
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
        // The service tier is of the whole answer.
        let of_choice = |choice: &ChoiceState| {
            let mut counts = self.counts;
            counts.merge(&choice.counts);
            counts.settled()
        };
        let mut begun = self.begun();
        if let (Some(only), None) = (begun.next(), begun.next()) {
            return of_choice(only);
        }
        let each = self.begun().filter_map(of_choice);
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

    /// Returns the defects of the choices of the last event, or of the plain reply. A caller that
    /// passes it on rewrites them.
    #[must_use]
    pub fn defects(&self) -> &[Defects] {
        &self.defects
    }

    /// Returns true if the last event has a usage.
    #[must_use]
    pub fn has_usage(&self) -> bool {
        self.has_usage
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

    /// Returns true if the last event has no list of choices, over which clients iterate.
    #[must_use]
    pub fn lacks_choices(&self) -> bool {
        self.lacks_choices
    }

    /// Returns the choice whose texts the last event continues, if it does nothing else.
    #[must_use]
    pub fn text_place(&self) -> Option<TextPlace> {
        self.text_place
    }

    /// Reads an event as the one that had this place, with another content and other reasoning.
    /// Returns false, and reads nothing, if such an event may be an error or change the service tier by
    /// now.
    #[must_use]
    pub fn continue_text(&mut self, place: TextPlace, content: &str, reasoning: [&str; 2]) -> bool {
        if place.revision != self.tiers {
            return false;
        }
        let choice = self.choices.get_mut(place.item);
        let Some(choice) = choice.filter(|choice| choice.finish.is_none()) else {
            return false;
        };
        let is_empty = content.is_empty() && reasoning.iter().all(|text| text.is_empty());
        choice.has_content |= !is_empty;
        choice.text += content.len();
        let lengths = [content, reasoning[0], reasoning[1]].map(str::len);
        self.content_length += lengths.iter().sum::<usize>() as u64;
        true
    }

    /// Returns true if the events so far have content, or the end of it. The role of a choice, an
    /// empty text, the results of a filter and events of the server's own do not count.
    #[must_use]
    pub fn has_content(&self) -> bool {
        let has_content = |choice: &ChoiceState| choice.has_content || choice.finish.is_some();
        !self.other_content.is_empty() || self.choices.iter().any(has_content)
    }

    /// Returns the number of choices that have begun.
    #[must_use]
    pub fn choices(&self) -> usize {
        self.begun().count()
    }

    /// Returns true if choice 0 has begun, which is the one that emits updates.
    #[must_use]
    pub fn has_first(&self) -> bool {
        self.choices.first().is_some_and(|first| first.has_begun)
    }

    /// Returns true if a limit truncated any choice.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        let is_cut = |choice: &ChoiceState| choice.finish == Some(Finish::Length);
        self.choices.iter().any(is_cut)
    }

    fn begun(&self) -> impl Iterator<Item = &ChoiceState> {
        self.choices.iter().filter(|choice| choice.has_begun)
    }

    /// Parses a chunk and notes its token counts, also if it reports an error.
    fn chunk<'a>(&mut self, data: &'a str) -> Result<Chunk<'a>, ReadError> {
        // Some servers send empty lines before a reply, to keep the connection alive.
        let data = data.trim_ascii_start();
        if !data.starts_with('{') {
            return Err(ReadError::Malformed("not a JSON object".to_owned()));
        }
        let chunk: Chunk<'_> = json(data)?;
        let tier = self.counts.service_tier();
        chunk.note_counts(&mut self.counts);
        self.tiers += usize::from(self.counts.service_tier() != tier);
        if chunk.is_error() {
            return Err(ReadError::Reported(data.to_owned()));
        }
        match chunk.error_of_choice() {
            Some(error) => Err(ReadError::Reported(error)),
            None => Ok(chunk),
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
        self.has_usage = chunk.usage.0.is_some();
        self.has_usage_alone = !has_choices && self.has_usage;
        self.lacks_object = chunk.lacks_object();
        self.lacks_choices = chunk.choices.is_none();
        self.defects.clear();
        let is_whole = chunk.is_whole();
        let continued = chunk.continued();
        let choices = chunk.choices.unwrap_or_default();
        let form = Form {
            is_reply,
            is_whole,
            is_alone: choices.len() == 1,
        };
        for (place, choice) in choices.into_iter().enumerate() {
            self.choice(place, choice, form, out)?;
        }
        let unsettled = |usage: Counts| usage.unsettled(&self.tokens()?);
        self.unsettled_usage = chunk.usage.0.and_then(unsettled);
        let item = continued.and_then(|index| bounded(index).ok());
        self.text_place = item.map(|item| TextPlace {
            item,
            revision: self.tiers,
            ..TextPlace::default()
        });
        Ok(())
    }

    fn choice<'a>(
        &mut self,
        place: usize,
        mut choice: Choice<'a>,
        form: Form,
        out: &mut Vec<Update<'a>>,
    ) -> Result<(), ReadError> {
        let index = form.index(&choice, place)?;
        if self.choices.len() <= index {
            self.choices.resize_with(index + 1, ChoiceState::default);
        }
        let state = &mut self.choices[index];
        if let Some(counts) = &choice.usage.0 {
            state.counts.merge(counts);
        }
        if std::mem::replace(&mut state.has_begun, true) && form.is_reply {
            return Err(ReadError::Contradiction("two choices with one index"));
        }
        if form.is_whole && !form.is_reply && state.has_content {
            state.drop_repetition(&mut choice)?;
        }
        if form.is_reply && choice.is_bare() {
            return Err(ReadError::Malformed(
                "a choice without a message".to_owned(),
            ));
        }
        let mut defects = Defects {
            place,
            lacks_index: !form.is_reply && choice.index.0.is_none(),
            lacks_delta: choice.is_bare(),
            has_message: !form.is_reply && choice.delta.is_none() && choice.message.is_some(),
            ..Defects::default()
        };
        let stop_sequence = choice.stop_sequence().map(str::to_owned);
        let before = out.len();
        let mut has_calls = false;
        out.extend(choice.logprobs().filter(|_| state.finish.is_none()));
        if let Some(delta) = choice.delta.or(choice.message.map(|message| *message)) {
            delta.note_other_content(&mut self.other_content);
            has_calls = delta.tool_calls.iter().flatten().next().is_some();
            let others = &mut self.other_content;
            state.delta(delta, form.is_reply, others, &mut defects, out)?;
        }
        defects.has_old_finish =
            state.has_old_call && choice.finish_reason.get() == Some("function_call");
        let has_content = out[before..].iter().any(|update| !update.is_opaque());
        if state.finish.is_some() && (has_calls || has_content) {
            return Err(ReadError::Contradiction(AFTER_FINISH));
        }
        if !choice.finish_reason.or_empty().is_empty() {
            state.calls.announce(out);
        }
        self.content_length += out[before..].iter().map(Update::length).sum::<u64>();
        state.has_content |= has_calls || has_content;
        state.text += text_length(&out[before..]);
        if !defects.is_none() {
            self.defects.push(defects);
        }
        if index > 0 {
            out.truncate(before);
        }
        match choice.finish_reason.or_empty() {
            "" => Ok(()),
            reason => {
                state.stop_sequence = stop_sequence.or(state.stop_sequence.take());
                state.end(reason)
            }
        }
    }
}

/// The form of an event that has choices.
#[derive(Clone, Copy)]
struct Form {
    is_reply: bool,
    /// True for a plain reply by its own account.
    is_whole: bool,
    /// True if there is one choice.
    is_alone: bool,
}

impl Form {
    /// The index of the choice at a position. Without one, it is the only one, or one of a complete
    /// list.
    fn index(self, choice: &Choice<'_>, place: usize) -> Result<usize, ReadError> {
        match choice.index.0 {
            Some(index) => bounded(index),
            None if self.is_reply || self.is_alone => bounded(place as u64),
            None => Err(ReadError::Malformed(
                "several choices, of which one has no index".to_owned(),
            )),
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
    /// The stop sequence that matched, if the server names it.
    stop_sequence: Option<String>,
    /// True if its call is a `function_call`.
    has_old_call: bool,
    has_begun: bool,
    has_content: bool,
    /// The length of the text.
    text: usize,
}

impl ChoiceState {
    /// Drops the message of a finished choice without a delta: some servers end a stream with the
    /// whole reply, which repeats the deltas.
    fn drop_repetition(&self, choice: &mut Choice<'_>) -> Result<(), ReadError> {
        let is_finished = !choice.finish_reason.or_empty().is_empty();
        let message = choice.message.take_if(|_| is_finished);
        let Some(message) = message.filter(|_| choice.delta.is_none()) else {
            return Ok(());
        };
        let (mut repeated, mut others) = (Vec::new(), Vec::new());
        Self::default().delta(
            *message,
            true,
            &mut others,
            &mut Defects::default(),
            &mut repeated,
        )?;
        if text_length(&repeated) == self.text {
            Ok(())
        } else {
            Err(ReadError::Contradiction(
                "a whole reply that differs from its deltas",
            ))
        }
    }

    fn delta<'a>(
        &mut self,
        mut delta: Delta<'a>,
        is_reply: bool,
        others: &mut Vec<OtherContent>,
        defects: &mut Defects,
        out: &mut Vec<Update<'a>>,
    ) -> Result<(), ReadError> {
        let before = out.len();
        push(delta.take_reasoning(), Update::Reasoning, out);
        let beside = out.len() - before;
        if delta.content(others, out)? {
            let content = listed(beside, before, out);
            defects.content = Some(content);
        }
        let opaque = delta.opaque();
        push(delta.refusal.0, Update::Refusal, out);
        if out.len() > before {
            let mut calls = Vec::new();
            self.calls.announce(&mut calls);
            out.splice(before..before, calls);
        }
        out.extend(opaque);
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
            let function = piece.function.0.as_ref().filter(|_| is_reply);
            let lacks_arguments = function.is_some_and(|function| function.arguments.is_null());
            let mut odd = self.calls.piece(piece, position, is_only, out)?;
            if lacks_arguments {
                // Clients parse them
                // (<https://github.com/braintrustdata/braintrust-sdk-javascript/pull/1061>).
                let odd = odd.get_or_insert_with(|| CallDefects::of_reply(position));
                odd.arguments = Some("{}".to_owned());
            }
            defects.calls.extend(odd);
        }
        self.has_old_call |= old_form.is_some();
        if let Some(function) = old_form {
            let arguments = function.arguments.text().into_owned();
            let piece = Piece {
                function: Members(Some(function)),
                ..Piece::default()
            };
            let odd = self.calls.piece(piece, 0, true, out)?;
            defects.calls.extend(odd.map(|odd| CallDefects {
                place: None,
                arguments: Some(arguments),
                ..odd
            }));
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
                has_begun: true,
                ..ChoiceState::default()
            });
        }
    }
    reader.tokens()
}

/// Joins the texts of a content that is a list. From `before` on, `out` has `beside` updates of the
/// reasoning beside the content, and then the updates of the list. Reasoning in the list that
/// repeats the reasoning beside it is removed.
fn listed(beside: usize, before: usize, out: &mut Vec<Update<'_>>) -> ListedContent {
    let joined = |updates: &[Update<'_>], is_text: bool| {
        let text = |update: &Update<'_>| match update {
            Update::Text(text) if is_text => text.to_string(),
            Update::Reasoning(text) if !is_text => text.to_string(),
            _ => String::new(),
        };
        updates.iter().map(text).collect::<String>()
    };
    let list = before + beside;
    let text = joined(&out[list..], true);
    let own = joined(&out[list..], false);
    let is_repeated = own == joined(&out[before..list], false);
    if is_repeated && beside > 0 {
        let is_kept = |update: &Update<'_>| !matches!(update, Update::Reasoning(_));
        let tail: Vec<_> = out.drain(list..).filter(is_kept).collect();
        out.extend(tail);
    }
    let reasoning = (!own.is_empty() && !is_repeated).then(|| joined(&out[before..], false));
    ListedContent { text, reasoning }
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
