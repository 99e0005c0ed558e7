//! Ends an answer before a stop sequence of its request, for upstreams that do not take it.

use std::collections::VecDeque;

use engine::{Stop, TextEvent, Usage};
use wire::Json;

/// Finds stop sequences in the text of an answer, and cuts the answer off before the first one.
///
/// Text that may be the beginning of a stop sequence is held back until more of it is known. The
/// pieces in which the text arrives make no difference.
///
/// ```
/// use engine::{Stop, TextEvent};
/// use sluicegate_translate::outbound::StopFilter;
///
/// let (mut filter, mut out) = (StopFilter::new(vec!["END".to_owned()], false), Vec::new());
/// filter.event(TextEvent::Text("Hello. E".to_owned()), &mut out);
/// assert_eq!(out, [TextEvent::Text("Hello. ".to_owned())]);
/// filter.event(TextEvent::Text("ND And so on".to_owned()), &mut out);
/// let stop = Stop::StopText("END".to_owned());
/// assert_eq!(out[1..], [TextEvent::Finished { stop, usage: None }]);
/// ```
#[derive(Debug)]
pub struct StopFilter {
    searches: Vec<Search>,
    /// The pieces of text that are held back, each with the log probabilities of its tokens.
    held: VecDeque<(Option<Vec<Json>>, String)>,
    /// The log probabilities of the next piece of text.
    logprobs: Option<Vec<Json>>,
    /// True if the end is reported only with the usage of the whole answer.
    waits_for_usage: bool,
    /// The stop sequence that was found.
    found: Option<String>,
    has_ended: bool,
}

impl StopFilter {
    /// Creates a filter for these stop sequences. After the first one of them, the answer ends at
    /// once, or only once the upstream reports its usage.
    #[must_use]
    pub fn new(stops: Vec<String>, waits_for_usage: bool) -> Self {
        Self {
            searches: stops.into_iter().map(Search::new).collect(),
            held: VecDeque::new(),
            logprobs: None,
            waits_for_usage,
            found: None,
            has_ended: false,
        }
    }

    /// Reads an event, and appends the events that can be passed on.
    pub fn event(&mut self, event: TextEvent, out: &mut Vec<TextEvent>) {
        match event {
            _ if self.has_ended => {}
            TextEvent::Finished { usage, .. } if self.found.is_some() => self.end(usage, out),
            _ if self.found.is_some() => {}
            TextEvent::Logprobs(tokens) => self.logprobs = Some(tokens),
            TextEvent::Text(text) if text.is_empty() => {}
            TextEvent::Text(text) => self.text(text, out),
            other => {
                self.release(usize::MAX, out);
                out.extend(self.logprobs.take().map(TextEvent::Logprobs));
                self.searches.iter_mut().for_each(Search::restart);
                self.has_ended = matches!(other, TextEvent::Finished { .. });
                out.push(other);
            }
        }
    }

    /// Returns true after the last event of the answer. Further bytes of the upstream are not needed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn text(&mut self, text: String, out: &mut Vec<TextEvent>) {
        let before: usize = self.held.iter().map(|(_, text)| text.len()).sum();
        let found = self.find(&text);
        let length = before + text.len();
        self.held.push_back((self.logprobs.take(), text));
        let Some((end, stop)) = found else {
            let begun = self.searches.iter().map(|search| search.matched).max();
            return self.release(length - begun.unwrap_or_default(), out);
        };
        self.release(before + end - stop.len(), out);
        self.held.clear();
        self.found = Some(stop);
        if !self.waits_for_usage {
            self.end(None, out);
        }
    }

    /// Returns the first stop sequence that this piece of text completes, with its end in the piece.
    /// Of several with the same end it is the longest.
    fn find(&mut self, text: &str) -> Option<(usize, String)> {
        for (at, byte) in text.bytes().enumerate() {
            let complete = self
                .searches
                .iter_mut()
                .filter_map(|search| search.step(byte));
            // All searches have to read the byte.
            let longest = complete.fold("", |longest, stop| match stop.len() > longest.len() {
                true => stop,
                false => longest,
            });
            if !longest.is_empty() {
                return Some((at + 1, longest.to_owned()));
            }
        }
        None
    }

    /// Passes on the first `length` bytes of the text that is held back.
    fn release(&mut self, mut length: usize, out: &mut Vec<TextEvent>) {
        while length > 0
            && let Some((logprobs, mut text)) = self.held.pop_front()
        {
            out.extend(logprobs.map(TextEvent::Logprobs));
            if text.len() > length {
                let rest = text.split_off(length);
                self.held.push_front((None, rest));
            }
            length -= text.len().min(length);
            out.push(TextEvent::Text(text));
        }
    }

    fn end(&mut self, usage: Option<Usage>, out: &mut Vec<TextEvent>) {
        let stop = Stop::StopText(self.found.clone().unwrap_or_default());
        out.push(TextEvent::Finished { stop, usage });
        self.has_ended = true;
    }
}

/// The search for one stop sequence, by the algorithm of Knuth, Morris and Pratt: the time for a byte
/// does not depend on the length of the sequence.
#[derive(Debug)]
struct Search {
    stop: String,
    /// For each beginning of the sequence, the length of the longest shorter one with which it ends.
    borders: Vec<usize>,
    /// The length of the beginning of the sequence with which the text so far ends.
    matched: usize,
}

impl Search {
    /// An empty sequence is never found.
    fn new(stop: String) -> Self {
        let mut this = Self {
            borders: vec![0],
            matched: 0,
            stop,
        };
        for at in 1..this.stop.len() {
            this.advance(this.stop.as_bytes()[at]);
            this.borders.push(this.matched);
        }
        this.restart();
        this
    }

    fn restart(&mut self) {
        self.matched = 0;
    }

    /// Reads the next byte of the text. Returns the sequence if the byte completes it.
    fn step(&mut self, byte: u8) -> Option<&str> {
        self.advance(byte);
        let is_complete = self.matched == self.stop.len() && !self.stop.is_empty();
        is_complete.then_some(&*self.stop)
    }

    fn advance(&mut self, byte: u8) {
        let stop = self.stop.as_bytes();
        while self.matched > 0 && stop.get(self.matched) != Some(&byte) {
            self.matched = self.borders[self.matched - 1];
        }
        self.matched += usize::from(stop.get(self.matched) == Some(&byte));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text that is passed on, and the stop sequence that ends it.
    fn filtered(stops: &[String], pieces: &[String]) -> (String, Option<String>) {
        let mut filter = StopFilter::new(stops.to_vec(), false);
        let mut out = Vec::new();
        for piece in pieces {
            filter.event(TextEvent::Text(piece.clone()), &mut out);
        }
        let stop = Stop::End;
        filter.event(TextEvent::Finished { stop, usage: None }, &mut out);
        let Some(TextEvent::Finished { stop, .. }) = out.pop() else {
            panic!("no end");
        };
        let text = |event| match event {
            TextEvent::Text(text) => text,
            other => panic!("{other:?}"),
        };
        let text = out.into_iter().map(text).collect();
        match stop {
            Stop::StopText(stop) => (text, Some(stop)),
            _ => (text, None),
        }
    }

    /// The specification: the sequence with the first end, and of these the longest.
    fn expected(stops: &[String], text: &str) -> (String, Option<String>) {
        let ends = stops
            .iter()
            .filter(|stop| !stop.is_empty())
            .filter_map(|stop| {
                let start = text.find(stop.as_str())?;
                Some((start + stop.len(), start, stop))
            });
        match ends.min_by_key(|(end, start, _)| (*end, *start)) {
            Some((_, start, stop)) => (text[..start].to_owned(), Some(stop.clone())),
            None => (text.to_owned(), None),
        }
    }

    proptest! {
        #[test]
        fn the_first_stop_ends_the_text_however_it_is_cut(
            stops in prop::collection::vec("[abé]{0,4}", 0..4),
            pieces in prop::collection::vec("[abé]{0,5}", 0..8),
        ) {
            prop_assert_eq!(filtered(&stops, &pieces), expected(&stops, &pieces.concat()));
        }
    }

    fn text(text: &str) -> TextEvent {
        TextEvent::Text(text.to_owned())
    }

    fn logprobs(token: &str) -> TextEvent {
        TextEvent::Logprobs(vec![serde_json::from_str(token).unwrap()])
    }

    fn finished(stop: Stop, output: u64) -> TextEvent {
        let usage = Usage {
            output,
            ..Usage::default()
        };
        let usage = Some(usage).filter(|usage| usage.output > 0);
        TextEvent::Finished { stop, usage }
    }

    fn run(waits_for_usage: bool, events: &[TextEvent]) -> Vec<TextEvent> {
        let mut filter = StopFilter::new(vec!["END".to_owned()], waits_for_usage);
        let mut out = Vec::new();
        for event in events {
            filter.event(event.clone(), &mut out);
        }
        assert!(filter.has_ended());
        out
    }

    #[test]
    fn a_plain_answer_keeps_its_usage() {
        let events = [text("Hi.EN"), text("D or so"), finished(Stop::End, 7)];
        let end = finished(Stop::StopText("END".to_owned()), 7);
        assert_eq!(run(true, &events), [text("Hi."), end]);
    }

    #[test]
    fn a_stop_does_not_continue_behind_a_call() {
        let call = TextEvent::Call {
            id: "call_1".to_owned(),
            name: "f".to_owned(),
        };
        let events = [
            text("E"),
            call.clone(),
            text("ND"),
            finished(Stop::ToolCalls, 0),
        ];
        assert_eq!(run(false, &events), events);
    }

    #[test]
    fn log_probabilities_stay_before_their_text() {
        let events = [
            logprobs("1"),
            text("a E"),
            logprobs("2"),
            text("N"),
            logprobs("3"),
            text("Zb"),
            logprobs("4"),
            text("cEND"),
            logprobs("5"),
            text("d"),
        ];
        let end = finished(Stop::StopText("END".to_owned()), 0);
        assert_eq!(
            run(false, &events),
            [
                logprobs("1"),
                text("a "),
                text("E"),
                logprobs("2"),
                text("N"),
                logprobs("3"),
                text("Zb"),
                logprobs("4"),
                text("c"),
                end
            ]
        );
    }
}
