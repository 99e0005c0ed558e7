//! A streamed answer that is kept once it is complete.

use std::borrow::Cow;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use memchr::memmem;
use policy::limit::Counts;
use serde::Deserialize;
use serde_json::value::RawValue;
use sse::{Decoder, EventName, Limits};
use wire::{ApiError, Splice};

use super::Keeping;
use crate::exchange::answer::{AnswerStream, Progress, StreamFailure};

/// A stream of Responses whose answer is kept.
///
/// It reads the events that were written for the client, so that relayed and translated answers are
/// kept alike, and it sets the members of their response objects that are about the store.
pub(super) struct KeptStream {
    stream: Box<dyn AnswerStream>,
    /// `None` once another stream has taken its place.
    keeping: Option<Box<Keeping>>,
    /// The output items that are done.
    items: Vec<Box<str>>,
}

#[derive(Deserialize)]
struct EventView<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
}

impl KeptStream {
    pub(super) fn new(stream: Box<dyn AnswerStream>, keeping: Box<Keeping>) -> Self {
        Self {
            stream,
            keeping: Some(keeping),
            items: Vec::new(),
        }
    }

    /// Reads the events in `out` from this position on, and edits those with a response.
    fn read(&mut self, out: &mut Vec<u8>, from: usize) {
        let Some(keeping) = &self.keeping else { return };
        // Most events are deltas, which are not of interest.
        if !NAMES
            .iter()
            .any(|name| memmem::find(&out[from..], name).is_some())
        {
            return;
        }
        let events = Bytes::from(out.split_off(from));
        let mut decoder = Decoder::with_limits(Limits {
            line: events.len(),
            event: events.len(),
        });
        decoder.feed(events);
        while let Some(Ok(event)) = decoder.poll() {
            match edited(keeping, &mut self.items, &event.data()) {
                Some(data) => sse::encode(EventName::new(&event.name()).ok(), &data, out),
                None => out.extend_from_slice(event.raw()),
            }
        }
    }
}

/// Returns the data of an event with a response as the client gets it. Keeps the response if it is
/// the final one.
fn edited(keeping: &Keeping, items: &mut Vec<Box<str>>, data: &str) -> Option<String> {
    let event: EventView<'_> = serde_json::from_str(data).ok()?;
    if event.kind == "response.output_item.done" {
        items.extend(event.item.map(|item| item.get().into()));
        return None;
    }
    let response = event.response?.get();
    let is_kept = match &*event.kind {
        "response.completed" | "response.incomplete" => keeping.keep(response, items),
        "response.failed" => false,
        _ => keeping.is_stored,
    };
    let mut splice = Splice::new(data.as_bytes());
    keeping.mark(&mut splice, &["response"], is_kept);
    String::from_utf8(splice.to_vec()).ok()
}

impl AnswerStream for KeptStream {
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Progress, StreamFailure>> {
        let before = out.len();
        let written = ready!(self.stream.poll_write(cx, out));
        // There may be events before a failure.
        self.read(out, before);
        Poll::Ready(Ok(match (written?, self.keeping.take()) {
            (Progress::Started(stream), Some(keeping)) => {
                Progress::Started(Box::new(Self::new(stream, keeping)))
            }
            (progress, keeping) => {
                self.keeping = keeping;
                progress
            }
        }))
    }

    fn counts(&self) -> Counts {
        self.stream.counts()
    }

    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        self.stream.fail(error, out);
    }

    fn keep_alive(&self, out: &mut Vec<u8>) {
        self.stream.keep_alive(out);
    }

    fn finish(self: Box<Self>) {
        self.stream.finish();
    }
}

/// Parts of the events of interest: those with a response, or with an item that is done.
const NAMES: [&[u8]; 2] = [b"\"response\"", b"\"response.output_item.done\""];
