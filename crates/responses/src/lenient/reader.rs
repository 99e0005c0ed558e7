//! The reader of a stream.

use wire::lenient::{Counts, OtherContent, ReadError, TextPlace, Tokens, Update, parse, required};

use super::defects::{ChangedId, IdOwner, Missing};
use super::event::{Event, Response};
use super::items::{Items, Place};
use super::kind::{ItemKind, PartKind, Piece};

/// Reads a stream, event by event.
///
/// ```
/// use sluicegate_responses::lenient::{Finish, Reader, Update};
///
/// let mut reader = Reader::new();
/// let mut updates = Vec::new();
/// for data in [
///     r#"{"type":"response.created","response":{}}"#,
///     r#"{"type":"response.output_text.delta","delta":"Hello."}"#,
///     r#"{"type":"response.completed","response":{"status":"completed"}}"#,
/// ] {
///     reader.event(data, &mut updates)?;
/// }
/// assert_eq!(updates, [Update::Text("Hello.".into())]);
/// assert_eq!(reader.finish(), Some(Finish::Completed));
/// # Ok::<(), sluicegate_responses::lenient::ReadError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Reader {
    items: Items,
    /// The number of the next event, if events are numbered.
    next: Option<u64>,
    counts: Counts,
    /// The counts that the usage of the last event should have.
    unsettled_usage: Option<[u64; 3]>,
    content_length: u64,
    finish: Option<Finish>,
    missing: Missing,
    /// The first id of the response.
    id: Option<String>,
    changed_ids: Vec<ChangedId>,
    done_item: Option<usize>,
    text_place: Option<TextPlace>,
}

/// The end of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// The answer is complete.
    Completed,
    /// The limit on the output truncated it, or something else that the server does not name.
    MaxOutputTokens,
    /// A filter truncated it.
    ContentFilter,
}

/// The kind of an event, for those who pass it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// It has the response object, such as `response.created`.
    Response,
    /// It ends the answer.
    End,
    /// It has content.
    Content,
    /// It is newer than this reader.
    Unknown,
    /// `[DONE]`, which some servers send and no client expects.
    Done,
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
        let before = out.len();
        let kind = self.read(data, out)?;
        self.content_length += out[before..].iter().map(Update::length).sum::<u64>();
        Ok(kind)
    }

    fn read<'a>(&mut self, data: &'a str, out: &mut Vec<Update<'a>>) -> Result<Kind, ReadError> {
        self.missing = Missing::default();
        self.changed_ids.clear();
        self.done_item = None;
        self.text_place = None;
        let data = data.trim_matches([' ', '\t', '\n', '\r']);
        if data == "[DONE]" {
            return Ok(Kind::Done);
        }
        let event: Event<'_> = parse(data)?;
        self.note_counts(event.usage());
        if event.is_error() {
            return Err(ReadError::Reported(data.to_owned()));
        }
        if event.is_foreign() {
            return Ok(Kind::Unknown);
        }
        self.number(event.sequence_number.0)?;
        let kind = required(event.kind.0.clone(), "type")?;
        let Some(kind) = kind.strip_prefix("response.") else {
            return Ok(Kind::Unknown);
        };
        match kind {
            "created" | "in_progress" | "queued" => {
                let lacks_output = |response: &Response<'_>| response.output.is_none();
                self.missing.output = event.response.as_ref().is_none_or(lacks_output);
                self.note_response_id(event.response.as_ref());
                Ok(Kind::Response)
            }
            "completed" | "incomplete" => {
                let response = required(event.response, "response")?;
                if response.is_failure() {
                    return Err(ReadError::Reported(data.to_owned()));
                }
                self.missing.output = response.output.as_ref().is_none_or(Vec::is_empty);
                self.note_response_id(Some(&response));
                let is_incomplete = kind == "incomplete";
                if !is_incomplete && response.status.get() == Some("incomplete") {
                    return Err(ReadError::Contradiction(
                        "response.completed with the status 'incomplete'",
                    ));
                }
                self.end(response, is_incomplete, out)?;
                Ok(Kind::End)
            }
            _ => self.content(kind, event, out),
        }
    }

    /// Reads a plain reply, which has to be finished.
    ///
    /// # Errors
    /// As for [`Reader::event`], and if it is not finished.
    pub fn reply<'a>(&mut self, body: &'a str, out: &mut Vec<Update<'a>>) -> Result<(), ReadError> {
        let response: Response<'a> = parse(body)?;
        self.note_counts(response.counts());
        if parse::<Event<'_>>(body)?.is_error() || response.is_failure() {
            return Err(ReadError::Reported(body.to_owned()));
        }
        required(response.output.as_ref(), "output")?;
        match response.status.get() {
            Some("completed" | "incomplete") => self.end(response, false, out),
            _ => Err(ReadError::Truncated),
        }
    }

    /// Returns how the answer ended, once it has.
    #[must_use]
    pub fn finish(&self) -> Option<Finish> {
        self.finish
    }

    /// Returns true if any call has begun.
    #[must_use]
    pub fn has_calls(&self) -> bool {
        self.items.has_calls()
    }

    /// Returns the kinds of content that the answer has and that this reader has no updates for.
    #[must_use]
    pub fn other_content(&self) -> &[OtherContent] {
        self.items.others()
    }

    /// Returns the settled token counts so far, also after an error.
    #[must_use]
    pub fn tokens(&self) -> Option<Tokens> {
        self.counts.settled()
    }

    /// Returns the settled counts of the prompt, the answer and their sum, if the usage of the last
    /// event or of the reply has others. Whoever passes it on writes these, so that they add up.
    #[must_use]
    pub fn unsettled_usage(&self) -> Option<[u64; 3]> {
        self.unsettled_usage
    }

    /// Notes the token counts of an event or of a reply, also if it reports an error.
    fn note_counts(&mut self, usage: Option<Counts>) {
        self.unsettled_usage = usage.and_then(|counts| {
            self.counts.merge(&counts);
            counts.unsettled(&self.counts.settled()?)
        });
    }

    /// Returns the length of all texts, thoughts and arguments so far, in bytes.
    #[must_use]
    pub fn content_length(&self) -> u64 {
        self.content_length
    }

    /// Returns the members that the last event lacks.
    #[must_use]
    pub fn missing(&self) -> Missing {
        self.missing
    }

    /// Returns the ids of the last event that differ from those before.
    #[must_use]
    pub fn changed_ids(&self) -> &[ChangedId] {
        &self.changed_ids
    }

    /// Returns the index by which clients find the item that the last event completes.
    #[must_use]
    pub fn done_item(&self) -> Option<usize> {
        self.done_item
    }

    /// Returns true if a piece of a text belongs before one that came earlier, by the indexes of
    /// their items and parts.
    #[must_use]
    pub fn breaks_order(&self) -> bool {
        self.items.breaks_order()
    }

    /// Returns the part whose text the last event continues.
    #[must_use]
    pub fn text_place(&self) -> Option<TextPlace> {
        self.text_place
    }

    /// Reads an event as the one that had this place, with another number and text. Returns false,
    /// and reads nothing, if such an event may be an error or have another place by now.
    #[must_use]
    pub fn continue_text(&mut self, place: TextPlace, number: Option<u64>, text: &str) -> bool {
        if number != self.next || !self.items.continue_text(place, text) {
            return false;
        }
        self.next = number.map(|number| number.saturating_add(1));
        self.content_length += text.len() as u64;
        true
    }

    /// Returns the number of the event after the last one.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.next.unwrap_or_default()
    }

    /// Checks the number of an event. Some servers do not number them.
    fn number(&mut self, number: Option<u64>) -> Result<(), ReadError> {
        let Some(number) = number else { return Ok(()) };
        if self.next.is_some_and(|next| next != number) {
            return Err(ReadError::Contradiction(
                "an event is missing or repeated, by its sequence_number",
            ));
        }
        self.next = Some(number.saturating_add(1));
        Ok(())
    }

    fn content<'a>(
        &mut self,
        kind: &str,
        event: Event<'a>,
        out: &mut Vec<Update<'a>>,
    ) -> Result<Kind, ReadError> {
        let index = event.output_index.0;
        match kind {
            "output_item.added" | "output_item.done" => {
                let item = required(event.item, "item")?;
                let is_done = kind == "output_item.done";
                let place = self.items.begin(index, &item, is_done)?;
                self.note_place(index, place);
                self.items
                    .note_ids(place, IdOwner::Item, &item, &mut self.changed_ids);
                self.done_item = is_done.then(|| self.items.shown(place));
                self.items.item(place, item, is_done, out)?;
            }
            "function_call_arguments.delta" => {
                let place = self.find(&event, None)?;
                self.items
                    .arguments(place, required(event.delta.0, "delta")?, out)?;
            }
            "function_call_arguments.done" => {
                let arguments = event.arguments.text();
                let id = event.item_id.get();
                let place = match self.items.misplaced_call(index, id, &arguments) {
                    Some(place) => self.note(&event, place),
                    None => self.find(&event, Some(ItemKind::Call))?,
                };
                self.items.complete_arguments(place, arguments, out)?;
            }
            _ => return self.part(kind, event, out),
        }
        Ok(Kind::Content)
    }

    fn part<'a>(
        &mut self,
        kind: &str,
        event: Event<'a>,
        out: &mut Vec<Update<'a>>,
    ) -> Result<Kind, ReadError> {
        let Some((name, step)) = kind.rsplit_once('.') else {
            return Ok(Kind::Unknown);
        };
        if matches!(name, "content_part" | "reasoning_part") {
            self.frame(step, &event)?;
        }
        if name.starts_with("audio") {
            self.items.note_other(OtherContent::Audio);
        }
        let Some(kind) = PartKind::of_event(name) else {
            return Ok(Kind::Unknown);
        };
        let place = self.find(&event, (step == "done").then(|| kind.item()))?;
        let own = event.part(kind);
        let part = (kind, own);
        let index = match step {
            "delta" => {
                let piece = Piece {
                    logprobs: event.logprobs,
                    text: required(event.delta.0, "delta")?,
                };
                let index = self.items.delta(place, part, piece, out)?;
                self.text_place = self.items.text_place(place, part);
                index
            }
            "done" => {
                let piece = Piece {
                    logprobs: event.logprobs,
                    text: required(event.complete(), "text")?,
                };
                self.items.complete(place, part, piece, out)?
            }
            _ => return Ok(Kind::Unknown),
        };
        let missing = (own != Some(index)).then_some(index);
        match kind {
            PartKind::Summary => self.missing.summary_index = missing,
            _ => self.missing.content_index = missing,
        }
        Ok(Kind::Content)
    }

    /// Reads an event that announces or ends a part, whose text is in other events.
    fn frame(&mut self, step: &str, event: &Event<'_>) -> Result<(), ReadError> {
        let own = event.part(PartKind::Text);
        self.missing.content_index = own.is_none().then_some(0);
        let (index, id) = (event.output_index.0, event.item_id.get());
        let part = event.content_part.0.as_ref();
        let kind = part.and_then(|part| PartKind::of_part(part.kind.or_empty()));
        let ended = kind.filter(|_| step == "done").map(PartKind::item);
        let Some(place) = self.items.known(index, id, ended) else {
            return Ok(());
        };
        self.note(event, place);
        let (Some(kind), Some(own)) = (kind, own) else {
            return Ok(());
        };
        if step == "added" {
            self.items.announce(place, kind, own)?;
        }
        let shown = self.items.shown_part(place, kind, Some(own));
        self.missing.content_index = (shown != own).then_some(shown);
        Ok(())
    }

    /// Finds the item of an event, which ends a part of an item of the kind `ended`, if any. Notes its
    /// place and its id.
    fn find(&mut self, event: &Event<'_>, ended: Option<ItemKind>) -> Result<Place, ReadError> {
        let (index, id) = (event.output_index.0, event.item_id.get());
        let place = self.items.find(index, id, ended)?;
        Ok(self.note(event, place))
    }

    /// Notes the place of an event's item if the event does not say it, and its id if the event has
    /// another one.
    fn note(&mut self, event: &Event<'_>, place: Place) -> Place {
        self.note_place(event.output_index.0, place);
        let id = event.item_id.get();
        let first = id.and_then(|id| self.items.changed_id(place, id));
        self.changed_ids
            .extend(first.map(|first| ChangedId::new(IdOwner::Event, "item_id", first)));
        place
    }

    fn note_response_id(&mut self, response: Option<&Response<'_>>) {
        let Some(id) = response.and_then(|response| response.id.get()) else {
            return;
        };
        let first = self.id.get_or_insert_with(|| id.to_owned());
        if first != id {
            self.changed_ids
                .push(ChangedId::new(IdOwner::Response, "id", first));
        }
    }

    fn note_place(&mut self, index: Option<u64>, place: Place) {
        let shown = self.items.shown(place);
        self.missing.output_index = (index != Some(shown as u64)).then_some(shown);
    }

    /// Handles the final response. `is_incomplete` is true if its event is
    /// `response.incomplete`.
    fn end<'a>(
        &mut self,
        response: Response<'a>,
        is_incomplete: bool,
        out: &mut Vec<Update<'a>>,
    ) -> Result<(), ReadError> {
        let status = response.status.get().unwrap_or("completed");
        let is_final = match status {
            "incomplete" => true,
            "completed" => !is_incomplete || response.status.get().is_none(),
            _ => false,
        };
        if !is_final {
            return Err(ReadError::Contradiction(
                "a final response with another status",
            ));
        }
        let reason = response
            .incomplete_details
            .0
            .and_then(|details| details.reason.0);
        let is_incomplete = is_incomplete || status == "incomplete";
        let finish = match reason.as_deref() {
            Some(_) if !is_incomplete => {
                return Err(ReadError::Contradiction(
                    "the reason of an incomplete response in a completed one",
                ));
            }
            Some("content_filter") => Finish::ContentFilter,
            _ if is_incomplete => Finish::MaxOutputTokens,
            _ => Finish::Completed,
        };
        let output = response.output.unwrap_or_default();
        let is_partial = output
            .iter()
            .any(|item| item.status.get() == Some("incomplete"));
        self.items.output(output, &mut self.changed_ids, out)?;
        if finish == Finish::Completed {
            if is_partial {
                return Err(ReadError::Contradiction(
                    "an incomplete item in a completed response",
                ));
            }
            self.items.check()?;
        }
        self.finish = Some(finish);
        Ok(())
    }
}

/// Reads the token counts of a plain reply, also of one that [`Reader::reply`] rejects: it has used
/// them all the same.
#[must_use]
pub fn reported_tokens(body: &str) -> Option<Tokens> {
    parse::<Response<'_>>(body).ok()?.counts()?.settled()
}
