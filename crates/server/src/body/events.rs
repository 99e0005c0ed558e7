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
use engine::{EngineError, Stop, TextEvent, TextStream};
use http_body::{Body, Frame};
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use translate::inbound::{Answer, Dialect};
use wire::ApiError;

use crate::clock;
use crate::lifecycle::Cut;
use crate::limit::Permit;
use crate::outcome::Outcome;
use crate::record::Record;

pin_project! {
    /// The answer of an engine in the client's protocol, event by event.
    pub(crate) struct Events<D: Dialect> {
        source: TextStream,
        answer: Answer<D>,
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

impl<D: Dialect> Events<D> {
    /// The stream of an accepted generation; its opening events go out at once.
    pub(crate) fn new(
        source: TextStream,
        mut answer: Answer<D>,
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

impl<D: Dialect> Body for Events<D> {
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

impl<D: Dialect> Events<D> {
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

    fn step(mut self: Pin<&mut Self>, step: Option<Result<TextEvent, EngineError>>) {
        match step {
            Some(Ok(event)) => self.take(event),
            Some(Err(error)) => {
                self.as_mut().project().record.cause = Some(error.to_string());
                self.fail(&translate::api_error(&error), outcome_of(&error));
            }
            None => self.fail(&ApiError::server_error(), Outcome::Truncated),
        }
    }

    fn take(self: Pin<&mut Self>, event: TextEvent) {
        let mut this = self.project();
        this.record.first_event.get_or_insert_with(Instant::now);
        if let TextEvent::Finished { stop, usage } = &event {
            *this.ended = true;
            this.record.usage = *usage;
            this.record.end(outcome_of_stop(stop));
        }
        this.answer.event(event, clock::unix_seconds(), this.buffer);
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

/// How an answer ended whose generation failed.
pub(crate) fn outcome_of(error: &EngineError) -> Outcome {
    match error {
        EngineError::ContextLength { .. } | EngineError::Unsupported { .. } => Outcome::Refused,
        EngineError::Busy => Outcome::Shed,
        EngineError::Timeout(_) => Outcome::Timeout,
        _ => Outcome::EngineError,
    }
}

/// How an answer ended whose generation did.
pub(crate) fn outcome_of_stop(stop: &Stop) -> Outcome {
    match stop {
        Stop::MaxTokens | Stop::ContextFull => Outcome::Incomplete,
        _ => Outcome::Completed,
    }
}

#[cfg(test)]
mod tests;
