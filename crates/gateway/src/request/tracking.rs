//! Notes the upstream that answers a request.

use std::borrow::Cow;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use policy::limit::Counts;
use serde::Deserialize;
use sse::{Decoder, Limits};
use wire::ApiError;

use crate::exchange::answer::{AnswerStream, Progress, StreamFailure};
use crate::exchange::record::Targets;
use crate::request::reply::ReplyBody;
use crate::response_store::origins::Origin;
use crate::state::{Caller, GatewayState};

/// The state for noting where the response to a request comes from.
pub(crate) struct Tracking {
    state: Arc<GatewayState>,
    /// The id of the key.
    key: String,
    model: String,
    /// The target that answers, once known.
    targets: Arc<Targets>,
}

#[derive(Deserialize)]
struct ResponseView<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    /// True if the response is made in the background.
    #[serde(default)]
    background: Option<bool>,
    #[serde(borrow, default)]
    status: Cow<'a, str>,
}

#[derive(Deserialize)]
struct EventView<'a> {
    #[serde(borrow)]
    response: ResponseView<'a>,
}

impl Tracking {
    pub(crate) fn new(caller: &Caller<'_>, model: &str) -> Self {
        Self {
            state: Arc::clone(caller.state),
            key: caller.key.id.clone(),
            model: model.to_owned(),
            targets: Arc::clone(&caller.record.targets),
        }
    }

    /// Returns the response to the request, whose origin is noted as soon as its id is known.
    pub(crate) fn attach(self, response: Response<ReplyBody>) -> Response<ReplyBody> {
        response.map(|body| match body {
            ReplyBody::Buffered(body) => {
                let body = body.into_bytes();
                if let Ok(view) = serde_json::from_slice::<ResponseView<'_>>(&body) {
                    let is_finished = !matches!(&*view.status, "queued" | "in_progress");
                    self.note(&view, is_finished);
                }
                ReplyBody::Buffered(body.into())
            }
            ReplyBody::Stream(stream) => ReplyBody::Stream(Box::new(TrackedStream {
                stream,
                tracking: Some(self),
            })),
            forwarded @ ReplyBody::Forwarded(_) => forwarded,
        })
    }

    /// Notes a response, and whether it goes on in the background.
    fn note(&self, view: &ResponseView<'_>, is_finished: bool) {
        let ResponseView { id, background, .. } = view;
        if *background == Some(true) || !is_finished {
            let background = Arc::clone(&self.state.background);
            self.targets.set_in_background(background, id);
        }
        if let Some(served_by) = self.targets.served_by.get() {
            let origin = Origin {
                upstream: served_by.target.clone(),
                model: self.model.clone(),
            };
            self.state.origins.insert(&self.key, id, origin);
        }
    }
}

/// A stream whose origin is noted with its first event that has the response.
struct TrackedStream {
    stream: Box<dyn AnswerStream>,
    /// `None` once it is noted.
    tracking: Option<Tracking>,
}

impl TrackedStream {
    fn read(&mut self, events: &[u8]) {
        let Some(tracking) = &self.tracking else {
            return;
        };
        let mut decoder = Decoder::with_limits(Limits {
            line: events.len(),
            event: events.len(),
        });
        decoder.feed(Bytes::copy_from_slice(events));
        while let Some(Ok(event)) = decoder.poll() {
            if let Ok(view) = serde_json::from_slice::<EventView<'_>>(&event.data_bytes()) {
                // Each stream begins with an unfinished response.
                tracking.note(&view.response, true);
                self.tracking = None;
                return;
            }
        }
    }
}

impl AnswerStream for TrackedStream {
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Progress, StreamFailure>> {
        let before = out.len();
        let written = ready!(self.stream.poll_write(cx, out));
        if out.len() > before {
            self.read(&out[before..]);
        }
        Poll::Ready(Ok(match written? {
            Progress::Started(stream) => Progress::Started(Box::new(Self {
                stream,
                tracking: self.tracking.take(),
            })),
            progress => progress,
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
