//! A stream of events as a response body.
//!
//! It pulls the engine only as fast as the client reads. It owns the permit and the record, so both end with it:
//! when the last event is out, or when the client is gone and hyper drops it. Whatever happens to the engine, the
//! client gets exactly one terminal event.

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

use super::buffered::AT_ONCE;
use super::{Aborted, plain};
use crate::lifecycle::AbortSignal;
use crate::outcome::{Ending, Outcome};
use crate::record::Record;
use crate::refusal::Refusal;

/// What turns the doings of an engine, or the bytes of an upstream, into the bytes of a stream.
pub(crate) trait Telling {
    /// One thing that is done.
    type Step;
    /// Where the steps come from, pulled one at a time.
    type Source: Stream<Item = Result<Self::Step, Fault>> + Send + Unpin;

    /// Takes a step and tells it.
    ///
    /// # Errors
    /// When the step itself is a failure, which is still to be told.
    fn step(&mut self, step: Self::Step, out: &mut Vec<u8>) -> Result<Told, Fault>;

    /// Takes the end of the source, when none of its steps was the last.
    ///
    /// # Errors
    /// When that is no end.
    fn end(&mut self, _: &mut Vec<u8>) -> Result<Ending, Fault> {
        Err(EngineError::Internal("the engine ended without an end".to_owned()).into())
    }

    /// Tells the failure that ends the stream.
    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>);

    /// Tells that a silent stream is open.
    fn keep_alive(&self, out: &mut Vec<u8>);

    /// How long the source may go without a step. Nothing: for ever.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// Lets go of a source whose last step was told.
    fn settle(source: Self::Source) {
        drop(source);
    }
}

/// What a step told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// That an answer begins, and nothing of it.
    Opening,
    /// Some of the answer.
    More,
    /// Nothing that the client sees.
    Nothing,
    /// The last of it.
    End(Ending),
}

/// Why an answer that was begun does not go on.
#[derive(Debug)]
pub(crate) struct Fault {
    /// What the client is told.
    pub(crate) error: ApiError,
    /// What the log says beyond that.
    pub(crate) cause: Option<String>,
    /// How the answer ended.
    pub(crate) outcome: Outcome,
}

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Self {
        let (told, outcome) = (translate::api_error(&error), Outcome::of_failure(&error));
        Self { error: told, cause: plain::cause(&error), outcome }
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        let outcome = Outcome::of_refusal(&refusal.error);
        Self { error: refusal.error, cause: refusal.cause, outcome }
    }
}

pin_project! {
    /// An answer in the client's protocol, event by event.
    pub(crate) struct Events<T: Telling> {
        source: Option<T::Source>,
        answer: T,
        buffer: Vec<u8>,
        // What was told and is not handed out yet, and how the answer ends with it.
        rest: Bytes,
        ending: Option<Ending>,
        silence: Duration,
        // When something was written last, and when the source told something last.
        spoke: Instant,
        heard: Instant,
        // Whether something was handed out since the source was asked last: how long a client takes is no silence.
        was_taken: bool,
        // Comes when one of them is too long ago; it is set anew only then, since events are many.
        #[pin]
        watch: Sleep,
        #[pin]
        deadline: Sleep,
        cut: Pin<Box<dyn Future<Output = ()> + Send>>,
        // What was done since others had their turn: bytes, and something for each step.
        turn: usize,
        record: Record,
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
    /// The stream of an answer that was begun.
    pub(crate) fn new(source: T::Source, answer: T, timing: &Timing, cut: AbortSignal, record: Record) -> Self {
        let now = Instant::now();
        let first = answer.patience().map_or(timing.silence, |patience| patience.min(timing.silence));
        Self {
            source: Some(source),
            answer,
            buffer: Vec::new(),
            rest: Bytes::new(),
            ending: None,
            silence: timing.silence,
            spoke: now,
            heard: now,
            was_taken: false,
            watch: sleep_until(now + first),
            deadline: sleep_until(timing.deadline),
            cut: Box::pin(cut.wait()),
            turn: 0,
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
                return Poll::Ready(Some(Ok(self.piece())));
            }
            if !this.rest.is_empty() {
                return Poll::Ready(Some(self.next_piece(cx)));
            }
            if let Some(ending) = this.ending.take() {
                this.record.finish(ending);
            }
            if this.source.is_none() {
                this.record.permit.take();
                return Poll::Ready(None);
            }
            // A stream that never pauses would keep its thread to itself.
            if *this.turn >= TURN {
                *this.turn = 0;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            *this.turn += STEP;
            if self.as_mut().poll_guarded(cx).is_pending() {
                *self.project().turn = 0;
                return Poll::Pending;
            }
        }
    }
}

impl<T: Telling> Events<T> {
    /// Goes on with what was begun to be handed out. There can be much of it, and a client that takes it slowly: what is
    /// over meanwhile cannot be told any more, so it breaks off.
    fn next_piece(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Result<Frame<Bytes>, Aborted> {
        let Some(outcome) = self.as_mut().over(cx) else { return Ok(self.piece()) };
        let aborted = Aborted::new(outcome, "an event was not taken whole in time");
        let this = self.project();
        this.source.take();
        this.rest.clear();
        this.ending.take();
        this.record.cause = Some(aborted.cause.clone());
        this.record.end(aborted.outcome);
        Err(aborted)
    }

    /// Whether there is no more time for the stream, and why not.
    fn over(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Option<Outcome> {
        let this = self.project();
        if this.cut.as_mut().poll(cx).is_ready() {
            Some(Outcome::Shutdown)
        } else if this.deadline.poll(cx).is_ready() {
            Some(Outcome::Timeout)
        } else {
            None
        }
    }

    /// Hands out some of what was told.
    fn piece(self: Pin<&mut Self>) -> Frame<Bytes> {
        let this = self.project();
        let piece = this.rest.split_to(this.rest.len().min(AT_ONCE));
        *this.turn += piece.len();
        *this.was_taken = true;
        if this.rest.is_empty()
            && let Some(ending) = this.ending.take()
        {
            this.record.finish(ending);
        }
        Frame::data(piece)
    }

    /// As [`Events::poll_next_step`], with a panic turned into the failure that ends the stream.
    fn poll_guarded(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let polled = catch_unwind(AssertUnwindSafe(|| self.as_mut().poll_next_step(cx)));
        polled.unwrap_or_else(|_| {
            self.as_mut().project().record.panicked();
            let cause = Some("a panic".to_owned());
            self.fail(Fault { error: ApiError::server_error(), cause, outcome: Outcome::Internal });
            Poll::Ready(())
        })
    }

    /// Waits for whatever comes first, and takes it into the buffer.
    fn poll_next_step(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(outcome) = self.as_mut().over(cx) {
            self.fail(Fault { error: ApiError::server_error(), cause: None, outcome });
            return Poll::Ready(());
        }
        let mut this = self.as_mut().project();
        let Some(source) = this.source else { return Poll::Ready(()) };
        if std::mem::take(this.was_taken) {
            let now = Instant::now();
            *this.heard += now - *this.spoke;
            *this.spoke = now;
        }
        if this.watch.as_mut().poll(cx).is_ready() {
            // Before the source: one that always has something, and never an event, is waited for no longer.
            self.look_around();
        } else {
            let step = ready!(Pin::new(source).poll_next(cx));
            self.step(step);
        }
        Poll::Ready(())
    }

    /// Gives up a source that has told nothing for too long, and says something when nothing was said for long.
    fn look_around(mut self: Pin<&mut Self>) {
        let this = self.as_mut().project();
        let now = Instant::now();
        if this.answer.patience().is_some_and(|patience| *this.heard + patience <= now) {
            return self.fail(EngineError::Timeout("no event for too long".to_owned()).into());
        }
        if *this.spoke + *this.silence <= now {
            this.answer.keep_alive(this.buffer);
            *this.spoke = now;
        }
        self.keep_watch();
    }

    /// Sets when there is something to be looked at next.
    fn keep_watch(self: Pin<&mut Self>) {
        let mut this = self.project();
        let speak = *this.spoke + *this.silence;
        let give_up = this.answer.patience().map(|patience| *this.heard + patience);
        this.watch.as_mut().reset(give_up.map_or(speak, |at| at.min(speak)));
    }

    fn step(mut self: Pin<&mut Self>, step: Option<Result<T::Step, Fault>>) {
        let this = self.as_mut().project();
        let patience = this.answer.patience();
        let told = match step {
            Some(step) => step.and_then(|step| this.answer.step(step, this.buffer)),
            None => this.answer.end(this.buffer).map(Told::End),
        };
        let is_other = this.answer.patience() != patience;
        match told {
            Ok(told) => self.as_mut().note(told),
            Err(fault) => self.as_mut().fail(fault),
        }
        if is_other {
            self.keep_watch();
        }
    }

    fn note(self: Pin<&mut Self>, told: Told) {
        if told == Told::Nothing {
            return;
        }
        let this = self.project();
        let now = Instant::now();
        (*this.spoke, *this.heard) = (now, now);
        if told != Told::Opening {
            this.record.first_event.get_or_insert(now);
        }
        if let Told::End(ending) = told {
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

/// A stream as a response.
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

/// After so much it is the turn of others: what a thread passes on in some tens of microseconds.
const TURN: usize = 8 << 10;
/// What a step counts beside its bytes.
const STEP: usize = 512;

#[cfg(test)]
mod tests;
