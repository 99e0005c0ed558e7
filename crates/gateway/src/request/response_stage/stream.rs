//! A streamed response that is read while it is written for the client.

use std::borrow::Cow;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use memchr::memmem;
use policy::limit::Counts;
use serde::Deserialize;
use serde_json::value::RawValue;
use sse::{Decoder, EventName, Limits};
use wire::{ApiError, Splice};

use super::{OriginPlan, StorePlan};
use crate::exchange::answer::{AnswerStream, Progress, StreamFailure};

/// A stream of Responses with a stage, which reads the events that were written for the client, so that
/// relayed and translated responses are handled alike.
pub(super) struct StagedStream {
    stream: Box<dyn AnswerStream>,
    /// `None` if it needs no further event, or another stream has taken the place of this one.
    stage: Option<StreamStage>,
}

/// The stage that the events of a stream pass.
pub(super) enum StreamStage {
    /// Stores the response once it is complete, and sets the members of each response object that are
    /// about the store.
    Store {
        plan: Box<StorePlan>,
        /// The output items that are done.
        items: Vec<Box<str>>,
    },
    /// Notes the origin of the response with the first event that has one.
    NoteOrigin(OriginPlan),
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

impl StreamStage {
    pub(super) fn store(plan: StorePlan) -> Self {
        Self::Store {
            plan: Box::new(plan),
            items: Vec::new(),
        }
    }

    /// Reads the data of an event. Returns its data as the client gets it, if it differs, and true if
    /// no further event is needed.
    fn event(&mut self, data: &str) -> (Option<String>, bool) {
        match self {
            Self::Store { plan, items } => (edited(plan, items, data), false),
            Self::NoteOrigin(plan) => (None, plan.event(data)),
        }
    }
}

impl StagedStream {
    pub(super) fn new(stream: Box<dyn AnswerStream>, stage: StreamStage) -> Self {
        Self {
            stream,
            stage: Some(stage),
        }
    }

    /// Reads the events in `out` from this position on, and edits them.
    fn read(&mut self, out: &mut Vec<u8>, from: usize) {
        let is_of_interest = |name: &&[u8]| memmem::find(&out[from..], name).is_some();
        // Most events are deltas, which are not of interest.
        if self.stage.is_none() || !NAMES.iter().any(is_of_interest) {
            return;
        }
        let events = Bytes::from(out.split_off(from));
        let mut decoder = Decoder::with_limits(Limits {
            line: events.len(),
            event: events.len(),
        });
        decoder.feed(events);
        while let Some(Ok(event)) = decoder.poll() {
            let stage = self.stage.as_mut();
            let (edited, is_done) = stage.map_or((None, false), |stage| stage.event(&event.data()));
            match edited {
                Some(data) => sse::encode(EventName::new(&event.name()).ok(), &data, out),
                None => out.extend_from_slice(event.raw()),
            }
            if is_done {
                self.stage = None;
            }
        }
    }
}

/// Returns the data of an event with a response as the client gets it. Keeps the response if it is
/// the final one.
fn edited(plan: &StorePlan, items: &mut Vec<Box<str>>, data: &str) -> Option<String> {
    let event: EventView<'_> = serde_json::from_str(data).ok()?;
    if event.kind == "response.output_item.done" {
        items.extend(event.item.map(|item| item.get().into()));
        return None;
    }
    let response = event.response?.get();
    let is_kept = match &*event.kind {
        "response.completed" | "response.incomplete" => plan.keep(response, items),
        "response.failed" => false,
        _ => plan.is_stored,
    };
    let mut splice = Splice::new(data.as_bytes());
    plan.mark(&mut splice, &["response"], is_kept);
    String::from_utf8(splice.to_vec()).ok()
}

impl AnswerStream for StagedStream {
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Progress, StreamFailure>> {
        let before = out.len();
        let written = ready!(self.stream.poll_write(cx, out));
        // There may be events before a failure.
        self.read(out, before);
        Poll::Ready(Ok(match (written?, self.stage.take()) {
            (Progress::Started(stream), Some(stage)) => {
                Progress::Started(Box::new(Self::new(stream, stage)))
            }
            (progress, stage) => {
                self.stage = stage;
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
