//! A response body that streams the events of an answer.
//!
//! ```text
//!             a target has started            the last event
//!   pending ───────────────────────► streaming ─────────────► ended, with the outcome of the answer
//!      │                                 │
//!      │ no target answers,              │ the source fails, deadline,
//!      │ deadline, shutdown, revocation, │ shutdown, revocation,
//!      │ panic                           │ panic
//!      └──────────────┬──────────────────┘
//!                     ▼
//!               failure event ──► ended, with the outcome of the failure
//! ```
//!
//! It pulls the answer only as fast as the client reads. It owns the record and the permit, so both
//! end with it: when the last byte has been taken, or when the client disconnects and hyper drops
//! the body. Whatever happens to the engine, the client gets exactly one terminal event.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use pin_project_lite::pin_project;
use relay::End;
use telemetry::outcome::Outcome;
use tokio::time::Instant;
use wire::ApiError;

use super::Aborted;
use super::buffered::MAX_FRAME;
use crate::exchange::answer::{AnswerStream, Progress, StreamFailure};
use crate::exchange::record::Record;

pin_project! {
    /// The body of a streamed answer in the client's protocol.
    pub(crate) struct Events {
        // `None` once the last event or the failure is written.
        stream: Option<Box<dyn AnswerStream>>,
        buffer: Vec<u8>,
        // Encoded bytes that are not handed out yet, and how the answer ends after them.
        rest: Bytes,
        ending: Option<End>,
        keep_alive: Duration,
        // When something was last written to the client.
        last_write: Instant,
        // True if a frame was handed out since the source was last polled, or it was not polled
        // yet: the time that the client took to read is no silence of the source.
        was_taken: bool,
        // When a keep-alive may be due. It is moved only then, and not for each event, because
        // events are frequent.
        keep_alive_at: Instant,
        // The deadline of the first event; from then on `end`, the deadline of the complete stream.
        deadline: Instant,
        end: Instant,
        // True if the timer of the connection has fired for a deadline or a keep-alive.
        has_fired: bool,
        // The outcome of a shutdown, a lost lease, a revocation or an operator's command.
        abort: Pin<Box<dyn Future<Output = Outcome> + Send>>,
        // Work since the task last yielded: bytes, plus a fixed cost for each step.
        work: usize,
        record: Record,
    }

    impl PinnedDrop for Events {
        /// The client has disconnected, unless the answer has ended.
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if let Some(stream) = this.stream {
                this.record.counts = stream.counts();
            }
        }
    }
}

/// The times of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// The silence after which the client gets a keep-alive.
    pub(crate) keep_alive: Duration,
    /// The deadline of the first event with content.
    pub(crate) first_event: Instant,
    /// The deadline of the complete stream.
    pub(crate) end: Instant,
}

impl Events {
    /// Creates the body of an answer, which fails with a timeout at either deadline.
    pub(crate) fn new(
        stream: Box<dyn AnswerStream>,
        times: Times,
        abort: impl Future<Output = Outcome> + Send + 'static,
        record: Record,
    ) -> Self {
        let now = Instant::now();
        Self {
            stream: Some(stream),
            buffer: Vec::new(),
            rest: Bytes::new(),
            ending: None,
            keep_alive: times.keep_alive,
            last_write: now,
            was_taken: true,
            keep_alive_at: now + times.keep_alive,
            deadline: times.first_event.min(times.end),
            end: times.end,
            has_fired: false,
            abort: Box::pin(abort),
            work: 0,
            record,
        }
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        loop {
            let this = self.as_mut().project();
            if !this.buffer.is_empty() {
                // The next event is probably as long.
                let room = this.buffer.len().next_multiple_of(256).min(MAX_ROOM);
                let room = if this.stream.is_some() { room } else { 0 };
                let written = std::mem::replace(this.buffer, Vec::with_capacity(room));
                *this.rest = written.into();
                return Poll::Ready(Some(Ok(self.next_frame())));
            }
            if !this.rest.is_empty() {
                return Poll::Ready(Some(self.next_frame_in_time(cx)));
            }
            if let Some(ending) = this.ending.take() {
                this.record.finish(ending);
            }
            if this.stream.is_none() {
                this.record.release_permit();
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

impl Events {
    /// Returns the next frame of a long event. A slow client may still be reading it at the
    /// deadline or at the end of a shutdown; a failure event cannot be written inside of another
    /// event, so the body is aborted then.
    fn next_frame_in_time(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Result<Frame<Bytes>, Aborted> {
        let Some(outcome) = self.as_mut().expired(cx) else {
            return Ok(self.next_frame());
        };
        let cause =
            "timeout, shutdown, lost lease or revocation before an event was sent completely"
                .to_owned();
        let this = self.project();
        if let Some(stream) = this.stream.take() {
            this.record.counts = stream.counts();
        }
        this.rest.clear();
        this.ending.take();
        this.record.cause = Some(cause.clone());
        this.record.end(outcome);
        Err(Aborted { outcome, cause })
    }

    /// Returns the outcome of a stream that must end now, because of a shutdown, a lost lease, a
    /// revocation of its key, or its deadline.
    fn expired(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Option<Outcome> {
        let this = self.project();
        if let Poll::Ready(outcome) = this.abort.as_mut().poll(cx) {
            return Some(outcome);
        }
        // One look at the timer serves both times.
        let next = (*this.deadline).min(*this.keep_alive_at);
        *this.has_fired = this.record.connection.timer.poll(cx, next).is_ready();
        let is_late = *this.has_fired && *this.deadline <= Instant::now();
        if is_late && this.record.targets.has_opened() && *this.deadline < *this.end {
            // The target has sent events, so that its first content has the time of streams.
            *this.deadline = *this.end;
            return None;
        }
        is_late.then_some(Outcome::Timeout)
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
            self.as_mut().project().record.metrics.panicked();
            let cause = Some("panic in the response stream".to_owned());
            self.fail(StreamFailure {
                error: ApiError::server_error(),
                cause,
                outcome: Outcome::Internal,
            });
            Poll::Ready(())
        })
    }

    /// Waits for the abort, the deadline, the timer or the next event, and writes the effect to the
    /// buffer.
    fn poll_next_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(outcome) = self.as_mut().expired(cx) {
            self.fail(StreamFailure {
                error: ApiError::server_error(),
                cause: None,
                outcome,
            });
            return Poll::Ready(());
        }
        let this = self.as_mut().project();
        let Some(stream) = this.stream else {
            return Poll::Ready(());
        };
        if std::mem::take(this.was_taken) {
            *this.last_write = Instant::now();
        }
        if std::mem::take(this.has_fired) {
            // The timer comes before the stream, because a source may be always ready with bytes
            // and never with an event.
            self.on_timer();
            return Poll::Ready(());
        }
        match ready!(stream.poll_write(cx, this.buffer)) {
            Ok(progress) => self.note(progress),
            Err(failure) => self.fail(failure),
        }
        Poll::Ready(())
    }

    /// Writes a keep-alive if one is due, and sets the time of the next one.
    fn on_timer(self: Pin<&mut Self>) {
        let this = self.project();
        let now = Instant::now();
        if let Some(stream) = this.stream
            && *this.last_write + *this.keep_alive <= now
        {
            stream.keep_alive(this.buffer);
            *this.last_write = now;
        }
        *this.keep_alive_at = *this.last_write + *this.keep_alive;
    }

    /// Notes the progress of the stream, and the time of the write.
    fn note(self: Pin<&mut Self>, progress: Progress) {
        let this = self.project();
        match progress {
            Progress::Skipped => return,
            Progress::Started(stream) => {
                *this.stream = Some(stream);
                return;
            }
            Progress::Opened => {}
            Progress::Written | Progress::Ended(_) => this.record.targets.count_event(),
        }
        let now = Instant::now();
        *this.last_write = now;
        if !matches!(progress, Progress::Opened) && this.record.first_event.is_none() {
            this.record.first_event = Some(now);
            *this.deadline = *this.end;
        }
        if let Progress::Ended(ending) = progress {
            *this.ending = Some(ending);
            if let Some(stream) = this.stream.take() {
                this.record.counts = stream.counts();
                stream.finish();
            }
        }
    }

    fn fail(self: Pin<&mut Self>, failure: StreamFailure) {
        let this = self.project();
        this.record.code = Some(failure.error.code);
        this.record.cause = failure.cause;
        this.record.end(failure.outcome);
        if let Some(mut stream) = this.stream.take() {
            this.record.counts = stream.counts();
            stream.fail(&failure.error, this.buffer);
        }
    }
}

/// The work after which the task yields: a thread forwards this many bytes in some tens of
/// microseconds.
const MAX_WORK: usize = 8 << 10;
/// The most room for an event that waits for it.
const MAX_ROOM: usize = 1 << 10;
/// The work that a step counts for, in addition to its bytes.
const STEP_COST: usize = 512;

#[cfg(test)]
mod tests;
