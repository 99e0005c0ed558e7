//! The forms of the events of a stream that continue its texts, which are relayed without being
//! parsed.

use std::ops::Range;

use wire::Splice;
use wire::lenient::{Form, TextPlace};

use super::RelayProtocol;

/// The forms of events that were relayed, for those that follow.
#[derive(Debug)]
pub(super) struct Forms {
    known: Vec<Known>,
    /// The form of the last event that had one.
    last: usize,
    /// The number of further forms that are learned before one of them is met again.
    tries: u8,
}

/// The form of an event that was relayed under its own name.
#[derive(Debug)]
struct Known {
    name: Box<str>,
    form: Form,
    place: TextPlace,
}

impl Forms {
    pub(super) fn new() -> Self {
        Self {
            known: Vec::new(),
            last: 0,
            tries: MAX_TRIES,
        }
    }

    /// Returns an empty list that never learns a form.
    pub(super) fn none() -> Self {
        Self {
            tries: 0,
            ..Self::new()
        }
    }

    /// Relays an event if it is of a known form. Returns false, and does nothing, if it is not, or
    /// if it may be more than the next piece of a text.
    #[inline]
    pub(super) fn relay<S: RelayProtocol>(
        &mut self,
        protocol: &mut S,
        event: &sse::Event<'_>,
        data: &str,
        out: &mut Vec<u8>,
    ) -> bool {
        if self.known.is_empty() {
            return false;
        }
        let Some(line) = event.data_range() else {
            return false;
        };
        let name = event.name();
        let (later, first) = (self.last..self.known.len(), 0..self.last);
        for at in later.chain(first) {
            let known = &self.known[at];
            if *known.name != *name {
                continue;
            }
            let Some(values) = known.form.read(data) else {
                continue;
            };
            if protocol.continue_text(known.place, &values) {
                (self.last, self.tries) = (at, MAX_TRIES);
                let raw = event.raw();
                out.reserve(raw.len() + ROOM);
                out.extend_from_slice(&raw[..line.start]);
                self.known[at].form.write(&values, out);
                out.extend_from_slice(&raw[line.end..]);
                return true;
            }
        }
        false
    }

    /// Learns the form of an event that was relayed with these edits, if it did no more than
    /// continue a text.
    pub(super) fn learn<S: RelayProtocol>(
        &mut self,
        protocol: &S,
        event: &sse::Event<'_>,
        data: &str,
        edits: &Splice<'_>,
    ) {
        let is_line = |line: Range<usize>| event.raw()[line] == *data.as_bytes();
        if self.tries == 0 || !event.data_range().is_some_and(is_line) {
            return;
        }
        let Some(place) = protocol.text_place(data) else {
            return;
        };
        let Some(form) = Form::of(data, edits, S::VARYING) else {
            return;
        };
        self.tries -= 1;
        let name = event.name().into();
        let known = Known { name, form, place };
        if self.known.len() < MAX_FORMS {
            self.last = self.known.len();
            self.known.push(known);
        } else {
            self.last = (self.last + 1) % MAX_FORMS;
            self.known[self.last] = known;
        }
    }
}

/// The number of forms that are known at once: choices and kinds of text may alternate.
const MAX_FORMS: usize = 4;
/// The number of forms that are learned without a match before learning stops: some servers change
/// more than the text in every event.
const MAX_TRIES: u8 = 16;
/// Room for the edits of an event.
const ROOM: usize = 64;

#[cfg(test)]
mod tests {
    use super::super::{Chat, Guard, Messages, Responses};
    use super::*;

    /// Relays events with a text each, after a start, and returns the number of forms that were
    /// learned: those that are of a known form are not learned again.
    fn learned<S: RelayProtocol>(protocol: S, start: &[&str], delta: &str) -> usize {
        let mut guard = Guard::new(protocol, "ours".to_owned());
        let texts = ["Hello", " there", "", "\u{e9}", "!"];
        let deltas = (start.len()..).zip(texts).map(|(number, text)| {
            let delta = delta.replace("<text>", text);
            delta.replace("<n>", &number.to_string())
        });
        let mut out = Vec::new();
        for event in start.iter().map(|event| (*event).to_owned()).chain(deltas) {
            guard.feed(event.into(), &mut out).unwrap();
        }
        let known = &guard.relayed.forms.known;
        known.len()
    }

    #[test]
    fn deltas_of_one_text_have_one_form() {
        let chat = "data: {\"id\":\"c\",\"created\":<n>,\"model\":\"theirs\",\"choices\":[{\"index\":0,\
            \"delta\":{\"content\":\"<text>\"},\"finish_reason\":null}],\"obfuscation\":\"<text>\"}\n\n";
        assert_eq!(learned(Chat::default(), &[], chat), 1);
        let start = "event: response.created\ndata: {\"type\":\"response.created\",\
            \"sequence_number\":0,\"response\":{\"model\":\"theirs\"}}\n\n";
        let delta = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\
            \"sequence_number\":<n>,\"item_id\":\"i\",\"output_index\":0,\"content_index\":0,\
            \"delta\":\"<text>\"}\n\n";
        assert_eq!(learned(Responses::default(), &[start], delta), 1);
        let start = [
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n",
            "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\
                \"content_block\":{\"type\":\"text\"}}\n\n",
        ];
        let delta = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\
            \"delta\":{\"type\":\"text_delta\",\"text\":\"<text>\"}}\n\n";
        assert_eq!(learned(Messages::default(), &start, delta), 1);
    }

    #[test]
    fn forms_that_never_return_are_no_longer_learned() {
        let delta =
            "data: {\"id\":\"c<n>\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
        let mut guard = Guard::new(Chat::default(), "ours".to_owned());
        let mut out = Vec::new();
        for number in 0..100 {
            let event = delta.replace("<n>", &number.to_string());
            guard.feed(event.into(), &mut out).unwrap();
        }
        assert_eq!(guard.relayed.forms.tries, 0);
        assert_eq!(guard.relayed.forms.known.len(), 4);
    }
}
