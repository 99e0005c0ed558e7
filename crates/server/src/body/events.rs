//! A response body that streams events.
//!
//! It pulls the engine only as fast as the client reads. It owns the record and the permit, so both end with it: when
//! the last event has been sent, or when the client disconnects and hyper drops the body. Whatever happens to the
//! engine, the client gets exactly one terminal event.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use engine::EngineError;
use futures_util::Stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};
use wire::ApiError;

use super::Aborted;
use super::buffered::MAX_FRAME;
use crate::lifecycle::AbortSignal;
use crate::outcome::{Ending, Outcome};
use crate::record::Record;
use crate::refusal::{self, Refusal};

/// Encodes the events of an engine, or the bytes of an upstream, as the bytes of a stream.
pub(crate) trait Telling {
    /// An event, or a chunk of bytes.
    type Step;
    /// The source of the steps, which are pulled one at a time.
    type Source: Stream<Item = Result<Self::Step, Fault>> + Send + Unpin;

    /// Writes a step.
    ///
    /// # Errors
    /// Returns a fault, which is not written yet, if the step is a failure.
    fn step(&mut self, step: Self::Step, out: &mut Vec<u8>) -> Result<Told, Fault>;

    /// Handles the end of a source whose steps did not include the last one.
    ///
    /// # Errors
    /// Returns a fault if the stream is not complete.
    fn end(&mut self, _: &mut Vec<u8>) -> Result<Ending, Fault> {
        Err(EngineError::Internal("stream ended without a terminal event".to_owned()).into())
    }

    /// Writes the failure that ends the stream.
    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>);

    /// Writes a keep-alive.
    fn keep_alive(&self, out: &mut Vec<u8>);

    /// Returns the idle timeout: the longest time between two steps of the source. `None` means no limit.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// Releases a source whose last step has been written.
    fn settle(source: Self::Source) {
        drop(source);
    }
}

/// The effect of a step on the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The opening of an answer, without content.
    Opening,
    /// Content of the answer.
    More,
    /// Nothing visible to the client.
    Nothing,
    /// The end of the answer.
    End(Ending),
}

/// A failure of an answer that has started.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The error for the client.
    pub(crate) error: ApiError,
    /// The cause, for the log alone.
    pub(crate) cause: Option<String>,
    /// The outcome to record.
    pub(crate) outcome: Outcome,
}

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Self {
        let outcome = Outcome::of_failure(&error);
        Self { error: translate::api_error(&error), cause: refusal::cause(&error), outcome }
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        let outcome = Outcome::of_refusal(&refusal.error);
        Self { error: refusal.error, cause: refusal.cause, outcome }
    }
}

pin_project! {
    /// The body of a streamed answer in the client's protocol.
    pub(crate) struct Events<T: Telling> {
        source: Option<T::Source>,
        answer: T,
        buffer: Vec<u8>,
        // Encoded bytes that are not handed out yet, and how the answer ends after them.
        rest: Bytes,
        ending: Option<Ending>,
        keep_alive: Duration,
        // When something was last written to the client, and when the source last made progress.
        last_write: Instant,
        last_event: Instant,
        // True if a frame was handed out since the source was last polled: the time that the client took to read it
        // does not count as idle time of the source.
        was_taken: bool,
        // Fires when a keep-alive or the idle timeout may be due. It is not reset for each event, because events are
        // frequent: only when it fires, or when the idle timeout changes.
        #[pin]
        timer: Sleep,
        #[pin]
        deadline: Sleep,
        abort: Pin<Box<dyn Future<Output = ()> + Send>>,
        // Work since the task last yielded: bytes, plus a fixed cost for each step.
        work: usize,
        record: Record,
    }
}

/// The time limits of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Timing {
    /// The interval after which a silent stream gets a keep-alive.
    pub(crate) keep_alive: Duration,
    /// The time at which the stream fails with a timeout.
    pub(crate) deadline: Instant,
}

impl<T: Telling> Events<T> {
    /// Creates the body of an answer whose steps come from `source`.
    pub(crate) fn new(source: T::Source, answer: T, timing: &Timing, abort: AbortSignal, record: Record) -> Self {
        let now = Instant::now();
        let first = answer.patience().map_or(timing.keep_alive, |idle_timeout| idle_timeout.min(timing.keep_alive));
        Self {
            source: Some(source),
            answer,
            buffer: Vec::new(),
            rest: Bytes::new(),
            ending: None,
            keep_alive: timing.keep_alive,
            last_write: now,
            last_event: now,
            was_taken: false,
            timer: sleep_until(now + first),
            deadline: sleep_until(timing.deadline),
            abort: Box::pin(abort.wait()),
            work: 0,
            record,
        }
    }
}

impl<T: Telling> Body for Events<T> {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        loop {
            let this = self.as_mut().project();
            if !this.buffer.is_empty() {
                *this.rest = std::mem::take(this.buffer).into();
                return Poll::Ready(Some(Ok(self.next_frame())));
            }
            if !this.rest.is_empty() {
                return Poll::Ready(Some(self.next_frame_in_time(cx)));
            }
            if let Some(ending) = this.ending.take() {
                this.record.finish(ending);
            }
            if this.source.is_none() {
                this.record.permit.take();
                return Poll::Ready(None);
            }
            // Yields to other tasks, because a source that is always ready would occupy the thread.
            if *this.work >= MAX_WORK {
                *this.work = 0;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            *this.work += STEP_COST;
            if self.as_mut().poll_guarded(cx).is_pending() {
                *self.project().work = 0;
                return Poll::Pending;
            }
        }
    }
}

impl<T: Telling> Events<T> {
    /// Returns the next frame of a long event. A slow client may still be reading it at the deadline or at the end of a
    /// shutdown; a failure event cannot be written inside of another event, so the body is aborted then.
    fn next_frame_in_time(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Result<Frame<Bytes>, Aborted> {
        let Some(outcome) = self.as_mut().expired(cx) else { return Ok(self.next_frame()) };
        let aborted = Aborted::new(outcome, "timeout or shutdown before an event was sent completely");
        let this = self.project();
        this.source.take();
        this.rest.clear();
        this.ending.take();
        this.record.cause = Some(aborted.cause.clone());
        this.record.end(aborted.outcome);
        Err(aborted)
    }

    /// Returns the outcome of a stream that must end now, because of a shutdown or its deadline.
    fn expired(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Option<Outcome> {
        let this = self.project();
        if this.abort.as_mut().poll(cx).is_ready() {
            Some(Outcome::Shutdown)
        } else if this.deadline.poll(cx).is_ready() {
            Some(Outcome::Timeout)
        } else {
            None
        }
    }

    /// Returns the next frame of the encoded bytes.
    fn next_frame(self: Pin<&mut Self>) -> Frame<Bytes> {
        let this = self.project();
        let data = this.rest.split_to(this.rest.len().min(MAX_FRAME));
        *this.work += data.len();
        *this.was_taken = true;
        if this.rest.is_empty()
            && let Some(ending) = this.ending.take()
        {
            this.record.finish(ending);
        }
        Frame::data(data)
    }

    /// Calls [`Events::poll_next_step`] and turns a panic into the failure that ends the stream.
    fn poll_guarded(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let polled = catch_unwind(AssertUnwindSafe(|| self.as_mut().poll_next_step(cx)));
        polled.unwrap_or_else(|_| {
            self.as_mut().project().record.panicked();
            let cause = Some("panic in the response stream".to_owned());
            self.fail(Fault { error: ApiError::server_error(), cause, outcome: Outcome::Internal });
            Poll::Ready(())
        })
    }

    /// Waits for the abort, the deadline, the timer or the next step, and writes the effect to the buffer.
    fn poll_next_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(outcome) = self.as_mut().expired(cx) {
            self.fail(Fault { error: ApiError::server_error(), cause: None, outcome });
            return Poll::Ready(());
        }
        let mut this = self.as_mut().project();
        let Some(source) = this.source else { return Poll::Ready(()) };
        if std::mem::take(this.was_taken) {
            let now = Instant::now();
            *this.last_event += now - *this.last_write;
            *this.last_write = now;
        }
        if this.timer.as_mut().poll(cx).is_ready() {
            // The timer comes before the source, so that the idle timeout also ends a source that is always ready with
            // bytes and never with an event.
            self.on_timer();
        } else {
            let step = ready!(Pin::new(source).poll_next(cx));
            self.step(step);
        }
        Poll::Ready(())
    }

    /// Fails the stream if the source has exceeded its idle timeout, and writes a keep-alive if one is due.
    fn on_timer(mut self: Pin<&mut Self>) {
        let this = self.as_mut().project();
        let now = Instant::now();
        if this.answer.patience().is_some_and(|idle_timeout| *this.last_event + idle_timeout <= now) {
            return self.fail(EngineError::Timeout("idle timeout: no event".to_owned()).into());
        }
        if *this.last_write + *this.keep_alive <= now {
            this.answer.keep_alive(this.buffer);
            *this.last_write = now;
        }
        self.reset_timer();
    }

    /// Sets the timer to the next keep-alive or the idle timeout, whichever is earlier.
    fn reset_timer(self: Pin<&mut Self>) {
        let mut this = self.project();
        let keep_alive = *this.last_write + *this.keep_alive;
        let idle = this.answer.patience().map(|idle_timeout| *this.last_event + idle_timeout);
        this.timer.as_mut().reset(idle.map_or(keep_alive, |at| at.min(keep_alive)));
    }

    fn step(mut self: Pin<&mut Self>, step: Option<Result<T::Step, Fault>>) {
        let this = self.as_mut().project();
        let idle_timeout = this.answer.patience();
        let written = match step {
            Some(step) => step.and_then(|step| this.answer.step(step, this.buffer)),
            None => this.answer.end(this.buffer).map(Told::End),
        };
        let has_changed = this.answer.patience() != idle_timeout;
        match written {
            Ok(written) => self.as_mut().note(written),
            Err(fault) => self.as_mut().fail(fault),
        }
        if has_changed {
            self.reset_timer();
        }
    }

    fn note(self: Pin<&mut Self>, written: Told) {
        if written == Told::Nothing {
            return;
        }
        let this = self.project();
        let now = Instant::now();
        (*this.last_write, *this.last_event) = (now, now);
        if written != Told::Opening {
            this.record.first_event.get_or_insert(now);
        }
        if let Told::End(ending) = written {
            *this.ending = Some(ending);
            if let Some(source) = this.source.take() {
                T::settle(source);
            }
        }
    }

    fn fail(self: Pin<&mut Self>, fault: Fault) {
        let this = self.project();
        this.source.take();
        this.record.code = Some(fault.error.code);
        this.record.cause = fault.cause;
        this.record.end(fault.outcome);
        this.answer.fail(&fault.error, this.buffer);
    }
}

/// Returns a `text/event-stream` response with this body.
pub(crate) fn response<B>(events: B) -> Response<super::Body>
where
    B: Body<Data = Bytes, Error = Aborted> + Send + 'static,
{
    let mut response = Response::new(events.boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// The work after which the task yields: a thread forwards this many bytes in some tens of microseconds.
const MAX_WORK: usize = 8 << 10;
/// The work that a step counts for, in addition to its bytes.
const STEP_COST: usize = 512;

#[cfg(test)]
mod tests;
