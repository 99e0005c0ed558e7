//! Streams an answer to the client, relayed or translated.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use engine::EngineError;
use futures_util::Stream;
use http::Response;
use http_body::Body as _;
use tokio::time::{Instant, timeout};
use translate::relay::{End, Guard};
use upstream::IncomingBody;
use upstream::relay::Relay;
use wire::ApiError;

use super::events::{self, Events, Fault, Telling, Timing, Told};
use super::format::Manner;
use super::{Body, name_dropped};
use crate::answer::engine_events::Steps;
use crate::attempt::{Coming, Started};
use crate::outcome::Ending;
use crate::record::Record;
use crate::refusal::Refusal;
use crate::state::ServerState;

/// A pending attempt: it resolves once a target has started to answer.
pub(crate) type Attempt<M> = Pin<Box<dyn Future<Output = Result<Started<M>, Refusal>> + Send>>;

/// Streams the answer of an attempt. A failure is reported as an HTTP status for at most one keep-alive interval; once
/// the answer has started, or that interval has passed, the status is 200 and a failure is an event of the stream.
///
/// # Errors
/// Returns the refusal of an attempt that fails within the keep-alive interval.
pub(crate) async fn stream<M: Manner>(
    mut attempt: Attempt<M>,
    waiting: M::Waiting,
    state: &ServerState,
    record: &mut Option<Record>,
    deadline: Instant,
) -> Result<Response<Body>, Refusal> {
    let keep_alive = state.limits.keep_alive;
    let (source, dropped) = match timeout(keep_alive, &mut attempt).await {
        Ok(begun) => {
            let mut begun = Box::new(begun?);
            let dropped = std::mem::take(&mut begun.dropped);
            (Source::Started(begun), dropped)
        }
        Err(_) => (Source::Waiting(attempt), Vec::new()),
    };
    let Some(mut record) = record.take() else { return Err(ApiError::server_error().into()) };
    record.status = 200;
    let (timing, abort) = (Timing { keep_alive, deadline }, state.lifecycle.abort_signal());
    let voice = Voice::<M>::Waiting(waiting);
    let mut response = events::response(Events::new(source, voice, &timing, abort, record));
    name_dropped(response.headers_mut(), &dropped);
    Ok(response)
}

/// The source of an answer's steps.
pub(crate) enum Source<M: Manner> {
    /// An answer that has started and of which nothing was written yet.
    Started(Box<Started<M>>),
    /// An attempt that is still pending.
    Waiting(Attempt<M>),
    /// The neutral events of a model.
    Neutral(Steps<M::Event>),
    /// The response body of an upstream that uses the client's protocol.
    Relay(IncomingBody),
    /// The end: there are no more steps.
    Ended,
}

/// One step of an answer.
pub(crate) enum Step<M: Manner> {
    /// A model starts to answer; with the idle timeout of its events.
    Neutral(M::Traits, Option<Duration>),
    /// A relayed upstream starts to answer.
    Relay(Box<Opening<M::Relay>>),
    /// A neutral event of a model.
    Event(M::Event),
    /// Bytes of a relayed upstream.
    Bytes(Bytes),
    /// The complete stream of a relayed upstream.
    Told(Bytes, End),
}

/// The beginning of a relayed stream.
pub(crate) struct Opening<S> {
    guard: Box<Guard<S>>,
    bytes: Vec<u8>,
    end: Option<End>,
    patience: Option<Duration>,
}

impl<M: Manner> Source<M> {
    /// Switches to the events or the body of a started answer, and returns its first step.
    fn begin(&mut self, begun: Started<M>) -> Option<Step<M>> {
        let Started { answer, idle_timeout: patience, .. } = begun;
        match answer {
            Coming::Neutral(steps, settled) => {
                *self = Self::Neutral(steps);
                Some(Step::Neutral(settled, patience))
            }
            Coming::Relay(relay) => {
                let Relay { guard, opening, end, body } = *relay;
                *self = Self::Relay(body);
                Some(Step::Relay(Box::new(Opening { guard: Box::new(guard), bytes: opening, end, patience })))
            }
            Coming::Told(bytes, end) => {
                *self = Self::Ended;
                Some(Step::Told(bytes, end))
            }
            // Unary replies are handled elsewhere; a streaming request never gets one.
            Coming::Whole(_) => None,
        }
    }
}

impl<M: Manner> Stream for Source<M> {
    type Item = Result<Step<M>, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut *self {
            Self::Neutral(steps) => {
                let step = ready!(steps.as_mut().poll_next(cx));
                Poll::Ready(step.map(|step| step.map(Step::Event).map_err(Fault::from)))
            }
            Self::Relay(body) => loop {
                let Some(frame) = ready!(Pin::new(&mut *body).poll_frame(cx)).transpose()? else {
                    return Poll::Ready(None);
                };
                if let Ok(bytes) = frame.into_data() {
                    return Poll::Ready(Some(Ok(Step::Bytes(bytes))));
                }
            },
            Self::Waiting(attempt) => {
                let begun = ready!(attempt.as_mut().poll(cx))?;
                Poll::Ready(self.begin(begun).map(Ok))
            }
            Self::Started(_) => {
                let Self::Started(begun) = std::mem::replace(&mut *self, Self::Ended) else { return Poll::Ready(None) };
                Poll::Ready(self.begin(*begun).map(Ok))
            }
            Self::Ended => Poll::Ready(None),
        }
    }
}

/// The writer of an answer stream.
///
/// It is `Waiting` until the first step, and then `Neutral` or `Relay` to the end.
pub(crate) enum Voice<M: Manner> {
    /// Nothing was written yet: it is not known whether the answer is relayed or translated.
    Waiting(M::Waiting),
    /// Neutral events are encoded in the client's protocol.
    Neutral(M::Teller, Option<Duration>),
    /// Upstream bytes are relayed unchanged, and checked by the guard.
    Relay(Box<Guard<M::Relay>>, Option<Duration>),
    /// A placeholder during the change of state.
    Changing,
}

impl<M: Manner> Voice<M> {
    fn open(&mut self, settled: M::Traits, patience: Option<Duration>, out: &mut Vec<u8>) -> Told {
        if let Self::Waiting(waiting) = std::mem::replace(self, Self::Changing) {
            *self = Self::Neutral(M::open(waiting, settled, out), patience);
        }
        Told::Opening
    }

    /// Starts to relay an upstream, whose stream may have ended already.
    fn relay(&mut self, opening: Opening<M::Relay>, out: &mut Vec<u8>) -> Told {
        let Opening { guard, mut bytes, end, patience } = opening;
        out.append(&mut bytes);
        *self = Self::Relay(guard, patience);
        end.map_or(Told::More, |end| Told::End(end.into()))
    }
}

impl<M: Manner> Telling for Voice<M> {
    type Step = Step<M>;
    type Source = Source<M>;

    fn step(&mut self, step: Step<M>, out: &mut Vec<u8>) -> Result<Told, Fault> {
        match (step, &mut *self) {
            (Step::Neutral(settled, patience), _) => Ok(self.open(settled, patience, out)),
            (Step::Relay(opening), _) => Ok(self.relay(*opening, out)),
            (Step::Told(bytes, end), _) => {
                out.extend_from_slice(&bytes);
                Ok(Told::End(end.into()))
            }
            (Step::Event(event), Self::Neutral(teller, _)) => {
                Ok(M::tell(teller, event, out).map_or(Told::More, Told::End))
            }
            (Step::Bytes(bytes), Self::Relay(guard, _)) => {
                let before = out.len();
                let end = guard.feed(bytes, out)?;
                let told = if out.len() > before { Told::More } else { Told::Nothing };
                Ok(end.map_or(told, |end| Told::End(end.into())))
            }
            _ => Ok(Told::Nothing),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<Ending, Fault> {
        match self {
            Self::Relay(guard, _) => Ok(guard.finish(out)?.into()),
            _ => Err(EngineError::Internal("stream ended without a terminal event".to_owned()).into()),
        }
    }

    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        match self {
            Self::Waiting(waiting) => M::fail_waiting(waiting, error, out),
            Self::Neutral(teller, _) => M::fail(teller, error, out),
            Self::Relay(guard, _) => guard.fail(error, out),
            Self::Changing => {}
        }
    }

    fn keep_alive(&self, out: &mut Vec<u8>) {
        match self {
            Self::Waiting(_) | Self::Changing => sse::comment("keep-alive", out),
            Self::Neutral(teller, _) => M::keep_alive(teller, out),
            Self::Relay(guard, _) => guard.keep_alive(out),
        }
    }

    fn patience(&self) -> Option<Duration> {
        match self {
            Self::Neutral(_, patience) | Self::Relay(_, patience) => *patience,
            Self::Waiting(_) | Self::Changing => None,
        }
    }

    fn settle(source: Source<M>) {
        if let Source::Relay(body) = source {
            body.drain();
        }
    }
}
