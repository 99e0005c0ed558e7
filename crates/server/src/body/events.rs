//! A stream of events as a response body.
//!
//! It pulls the engine only as fast as the client reads. It owns the permit and the record, so both end with it:
//! when the last event is out, or when the client is gone and hyper drops it. Whatever happens to the engine, the
//! client gets exactly one terminal event.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use engine::{EngineError, Usage};
use futures_util::Stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use wire::ApiError;

use crate::lifecycle::Cut;
use crate::limit::Permit;
use crate::outcome::Outcome;
use crate::record::Record;

/// What turns the doings of an engine into the bytes of a stream.
pub(crate) trait Telling {
    /// One thing that the engine does.
    type Step;

    /// Tells what opens the stream.
    fn open(&mut self, out: &mut Vec<u8>);

    /// Tells a step, and how the answer ended when this was its last.
    fn step(&mut self, step: Self::Step, out: &mut Vec<u8>) -> Option<Ending>;

    /// Tells the failure that ends the stream.
    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>);

    /// Tells that a silent stream is open.
    fn keep_alive(&self, out: &mut Vec<u8>);
}

/// How an answer ended that an engine brought to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Whole or cut.
    pub(crate) outcome: Outcome,
    /// What it took, when that is known.
    pub(crate) usage: Option<Usage>,
}

/// What an engine does, pulled one step at a time.
pub(crate) type Steps<S> = Pin<Box<dyn Stream<Item = Result<S, EngineError>> + Send>>;

pin_project! {
    /// The answer of an engine in the client's protocol, event by event.
    pub(crate) struct Events<T: Telling> {
        source: Steps<T::Step>,
        answer: T,
        buffer: Vec<u8>,
        ended: bool,
        silence: Duration,
        #[pin]
        keep_alive: Sleep,
        #[pin]
        deadline: Sleep,
        cut: Pin<Box<dyn Future<Output = ()> + Send>>,
        record: Record,
        permit: Option<Permit>,
    }
}

/// When a stream says something by itself.
#[derive(Clone, Debug)]
pub(crate) struct Timing {
    /// After so much silence it says that it is alive.
    pub(crate) silence: Duration,
    /// Then it gives up.
    pub(crate) deadline: Instant,
}

impl<T: Telling> Events<T> {
    /// The stream of an accepted generation; its opening events go out at once.
    pub(crate) fn new(
        source: Steps<T::Step>,
        mut answer: T,
        timing: &Timing,
        cut: Cut,
        record: Record,
        permit: Permit,
    ) -> Self {
        let mut buffer = Vec::new();
        answer.open(&mut buffer);
        Self {
            source,
            answer,
            buffer,
            ended: false,
            silence: timing.silence,
            keep_alive: sleep(timing.silence),
            deadline: sleep_until(timing.deadline),
            cut: Box::pin(cut.wait()),
            record,
            permit: Some(permit),
        }
    }
}

impl<T: Telling> Body for Events<T> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            let this = self.as_mut().project();
            if !this.buffer.is_empty() {
                let bytes = Bytes::from(std::mem::take(this.buffer));
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if *this.ended {
                this.permit.take();
                return Poll::Ready(None);
            }
            ready!(self.as_mut().poll_next_step(cx));
        }
    }
}

impl<T: Telling> Events<T> {
    /// Waits for whatever comes first, and takes it into the buffer.
    fn poll_next_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.as_mut().project();
        if this.cut.as_mut().poll(cx).is_ready() {
            self.fail(&ApiError::server_error(), Outcome::Shutdown);
        } else if this.deadline.poll(cx).is_ready() {
            self.fail(&ApiError::server_error(), Outcome::Timeout);
        } else if let Poll::Ready(step) = this.source.as_mut().poll_next(cx) {
            self.step(step);
        } else {
            let mut this = self.project();
            ready!(this.keep_alive.as_mut().poll(cx));
            this.answer.keep_alive(this.buffer);
            this.keep_alive.reset(Instant::now() + *this.silence);
        }
        Poll::Ready(())
    }

    fn step(mut self: Pin<&mut Self>, step: Option<Result<T::Step, EngineError>>) {
        match step {
            Some(Ok(step)) => self.take(step),
            Some(Err(error)) => {
                self.as_mut().project().record.cause = Some(error.to_string());
                self.fail(&translate::api_error(&error), Outcome::of_failure(&error));
            }
            None => self.fail(&ApiError::server_error(), Outcome::Truncated),
        }
    }

    fn take(self: Pin<&mut Self>, step: T::Step) {
        let mut this = self.project();
        this.record.first_event.get_or_insert_with(Instant::now);
        if let Some(ending) = this.answer.step(step, this.buffer) {
            *this.ended = true;
            this.record.finish(ending);
        }
        this.keep_alive.as_mut().reset(Instant::now() + *this.silence);
    }

    fn fail(self: Pin<&mut Self>, error: &ApiError, outcome: Outcome) {
        let this = self.project();
        *this.ended = true;
        this.record.code = Some(error.code);
        this.record.end(outcome);
        this.answer.fail(error, this.buffer);
    }
}

/// A stream as a response.
pub(crate) fn response<B>(events: B) -> Response<super::Body>
where
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    let mut response = Response::new(events.boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

#[cfg(test)]
mod tests;
