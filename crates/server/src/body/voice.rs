//! Telling an answer as a stream, by whichever road it comes.

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
use super::plain::Steps;
use super::{Body, name_dropped};
use crate::attempt::{Coming, Started};
use crate::gateway::Gateway;
use crate::outcome::Ending;
use crate::record::Record;
use crate::refusal::Refusal;

/// Getting an answer, which goes on until one has begun.
pub(crate) type Attempt<M> = Pin<Box<dyn Future<Output = Result<Started<M>, Refusal>> + Send>>;

/// Streams the answer that an attempt comes to. Until something is known to come a failure is still a status; then,
/// and after a while in any case, the status is 200.
///
/// # Errors
/// When the attempt fails within that while.
pub(crate) async fn stream<M: Manner>(
    mut attempt: Attempt<M>,
    waiting: M::Waiting,
    gateway: &Gateway,
    record: &mut Option<Record>,
    deadline: Instant,
) -> Result<Response<Body>, Refusal> {
    let silence = gateway.limits.keep_alive;
    let (source, dropped) = match timeout(silence, &mut attempt).await {
        Ok(begun) => {
            let mut begun = Box::new(begun?);
            let dropped = std::mem::take(&mut begun.dropped);
            (Source::Started(begun), dropped)
        }
        Err(_) => (Source::Waiting(attempt), Vec::new()),
    };
    let Some(mut record) = record.take() else { return Err(ApiError::server_error().into()) };
    record.status = 200;
    let (timing, cut) = (Timing { silence, deadline }, gateway.lifecycle.cut());
    let voice = Voice::<M>::Waiting(waiting);
    let mut response = events::response(Events::new(source, voice, &timing, cut, record));
    name_dropped(response.headers_mut(), &dropped);
    Ok(response)
}

/// Where an answer comes from.
pub(crate) enum Source<M: Manner> {
    /// It has begun, and was not told of yet.
    Started(Box<Started<M>>),
    /// It has not begun yet.
    Waiting(Attempt<M>),
    /// What a model does.
    Neutral(Steps<M::Event>),
    /// What an upstream of the client's own protocol says.
    Relay(IncomingBody),
    /// Nothing more.
    Ended,
}

/// One step of an answer.
pub(crate) enum Step<M: Manner> {
    /// A model begins to answer.
    Neutral(M::Traits, Option<Duration>),
    /// An upstream begins to answer.
    Relay(Box<Opening<M::Relay>>),
    /// What a model does.
    Event(M::Event),
    /// What an upstream says.
    Bytes(Bytes),
    /// All that an upstream says.
    Told(Bytes, End),
}

/// What an upstream of the client's own protocol said first.
pub(crate) struct Opening<S> {
    guard: Box<Guard<S>>,
    bytes: Vec<u8>,
    end: Option<End>,
    patience: Option<Duration>,
}

impl<M: Manner> Source<M> {
    /// Goes on to what a begun answer has to say, and tells how it begins.
    fn begin(&mut self, begun: Started<M>) -> Option<Step<M>> {
        let Started { answer, patience, .. } = begun;
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
            // Whole replies are for those who do not stream.
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

/// What tells an answer.
pub(crate) enum Voice<M: Manner> {
    /// Nothing was said yet: by which road it comes is not known.
    Waiting(M::Waiting),
    /// The doings of a model are told in the client's protocol.
    Neutral(M::Teller, Option<Duration>),
    /// An upstream is let speak.
    Relay(Box<Guard<M::Relay>>, Option<Duration>),
    /// Between two of them.
    Changing,
}

impl<M: Manner> Voice<M> {
    fn open(&mut self, settled: M::Traits, patience: Option<Duration>, out: &mut Vec<u8>) -> Told {
        if let Self::Waiting(waiting) = std::mem::replace(self, Self::Changing) {
            *self = Self::Neutral(M::open(waiting, settled, out), patience);
        }
        Told::Opening
    }

    /// An upstream begins to answer, and may have ended already.
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
            _ => Err(EngineError::Internal("the engine ended without an end".to_owned()).into()),
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
