//! Telling an answer as a stream, by whichever road it comes.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use engine::{TextEvent, TextStream};
use futures_util::Stream;
use http_body::Body as _;
use translate::inbound::Answer;
use translate::relay::{End, Guard};
use upstream::IncomingBody;
use upstream::relay::{Relay, Relayed};
use wire::ApiError;

use super::attempt::{Begun, Coming};
use super::{TextEndpoint, ending};
use crate::body::events::{Ending, Fault, Telling, Told};
use crate::clock;
use crate::refusal::Refusal;

/// Where an answer comes from.
pub(crate) enum Source<D: TextEndpoint> {
    /// It has begun, and was not told of yet.
    Begun(Begun<D>),
    /// It has not begun yet.
    Waiting(Pin<Box<dyn Future<Output = Result<Begun<D>, Refusal>> + Send>>),
    /// What a model does.
    Neutral(TextStream),
    /// What an upstream of the client's own protocol says.
    Relay(IncomingBody),
    /// Nothing more.
    Ended,
}

/// One step of an answer.
pub(crate) enum Step<D: TextEndpoint> {
    /// A model begins to answer.
    Neutral(Option<Duration>),
    /// An upstream begins to answer, so.
    Relay(Box<Opening<D>>),
    /// What a model does.
    Event(TextEvent),
    /// What an upstream says.
    Bytes(Bytes),
}

/// What an upstream of the client's own protocol said first.
pub(crate) struct Opening<D: TextEndpoint> {
    guard: Guard<D::Relay>,
    bytes: Vec<u8>,
    end: Option<End>,
    patience: Option<Duration>,
}

impl<D: TextEndpoint> Source<D> {
    /// Goes on to what a begun answer has to say, and how it begins.
    fn begin(&mut self, begun: Begun<D>) -> Option<Step<D>> {
        let Begun { answer, patience, .. } = begun;
        match answer {
            Coming::Neutral(events) => {
                *self = Self::Neutral(events);
                Some(Step::Neutral(patience))
            }
            Coming::Relayed(relayed) => match *relayed {
                Relayed::Stream(Relay { guard, opening, end, body }) => {
                    *self = Self::Relay(body);
                    Some(Step::Relay(Box::new(Opening { guard, bytes: opening, end, patience })))
                }
                Relayed::Neutral(events) => {
                    *self = Self::Neutral(upstream::said(events));
                    Some(Step::Neutral(patience))
                }
                // Whole replies are asked for by those who do not stream.
                Relayed::Whole(..) => None,
            },
        }
    }
}

impl<D: TextEndpoint> Stream for Source<D> {
    type Item = Result<Step<D>, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut *self {
            Self::Neutral(events) => {
                let event = ready!(events.as_mut().poll_next(cx));
                Poll::Ready(event.map(|event| event.map(Step::Event).map_err(Fault::from)))
            }
            Self::Relay(body) => loop {
                match ready!(Pin::new(&mut *body).poll_frame(cx)).transpose()? {
                    None => return Poll::Ready(None),
                    Some(frame) => {
                        if let Ok(bytes) = frame.into_data() {
                            return Poll::Ready(Some(Ok(Step::Bytes(bytes))));
                        }
                    }
                }
            },
            Self::Waiting(attempt) => {
                let begun = ready!(attempt.as_mut().poll(cx))?;
                Poll::Ready(self.begin(begun).map(Ok))
            }
            Self::Begun(_) => {
                let Self::Begun(begun) = std::mem::replace(&mut *self, Self::Ended) else { return Poll::Ready(None) };
                Poll::Ready(self.begin(begun).map(Ok))
            }
            Self::Ended => Poll::Ready(None),
        }
    }
}

/// What tells an answer.
pub(crate) enum Voice<D: TextEndpoint> {
    /// Nothing was said yet: whether by neutral words is not known.
    Waiting(Answer<D>),
    /// The doings of a model are told in the client's protocol.
    Neutral(Answer<D>, Option<Duration>),
    /// An upstream is let speak.
    Relay(Guard<D::Relay>, Option<Duration>),
    /// Between two of them.
    Changing,
}

impl<D: TextEndpoint> Voice<D> {
    /// A model begins to answer: the opening events go out at once.
    fn open(&mut self, patience: Option<Duration>, out: &mut Vec<u8>) -> Told {
        if let Self::Waiting(mut answer) = std::mem::replace(self, Self::Changing) {
            answer.open(out);
            *self = Self::Neutral(answer, patience);
        }
        Told::Opening
    }

    /// An upstream begins to answer, and may have ended already.
    fn relay(&mut self, opening: Opening<D>, out: &mut Vec<u8>) -> Told {
        let Opening { guard, mut bytes, end, patience } = opening;
        out.append(&mut bytes);
        *self = Self::Relay(guard, patience);
        end.map_or(Told::More, |end| Told::End(end.into()))
    }
}

impl<D: TextEndpoint> Telling for Voice<D> {
    type Step = Step<D>;
    type Source = Source<D>;

    fn step(&mut self, step: Step<D>, out: &mut Vec<u8>) -> Result<Told, Fault> {
        match (step, &mut *self) {
            (Step::Neutral(patience), _) => Ok(self.open(patience, out)),
            (Step::Relay(opening), _) => Ok(self.relay(*opening, out)),
            (Step::Event(event), Self::Neutral(answer, _)) => {
                let ended = ending(&event);
                answer.event(event, clock::unix_seconds(), out);
                Ok(ended.map_or(Told::More, Told::End))
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
            _ => Err(engine::EngineError::Truncated("the engine ended without an end".to_owned()).into()),
        }
    }

    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        match self {
            Self::Waiting(answer) | Self::Neutral(answer, _) => answer.fail(error, out),
            Self::Relay(guard, _) => guard.fail(error, out),
            Self::Changing => {}
        }
    }

    fn keep_alive(&self, out: &mut Vec<u8>) {
        match self {
            Self::Waiting(_) | Self::Changing => sse::comment("keep-alive", out),
            Self::Neutral(answer, _) => answer.keep_alive(out),
            Self::Relay(guard, _) => guard.keep_alive(out),
        }
    }

    fn patience(&self) -> Option<Duration> {
        match self {
            Self::Neutral(_, patience) | Self::Relay(_, patience) => *patience,
            Self::Waiting(_) | Self::Changing => None,
        }
    }

    fn settle(source: Source<D>) {
        if let Source::Relay(body) = source {
            body.drain();
        }
    }
}
