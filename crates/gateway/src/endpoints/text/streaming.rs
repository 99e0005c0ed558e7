//! Answers a text request with a stream.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use answer::{Asked, Relay, read_reply};
use catalog::Protocol;
use engine::TextStream;
use http::Response;
use policy::clock;
use policy::limit::Counts;
use policy::targets::Target;
use relay::RelayProtocol as _;
use translate::inbound::Answer;
use upstream::ResponseMeta;
use wire::ApiError;

use super::dispatch::{TextAnswer, TextDispatch};
use super::{TextEndpoint, ending};
use crate::exchange::answer::engine_events::poll_event;
use crate::exchange::answer::pending::{StartedStream, started};
use crate::exchange::answer::started::Started;
use crate::exchange::answer::{AnswerStream, Progress, StreamFailure};
use crate::exchange::refusal::Refusal;
use crate::request::attempt::{self, Dispatch, StartResult, TargetFailure, Turn};
use crate::request::reply::{self, ReplyBody};
use crate::state::Caller;

struct StreamingDispatch<D: TextEndpoint>(TextDispatch<D>);

impl<D: TextEndpoint> Dispatch for StreamingDispatch<D> {
    const PROTOCOL: Protocol = D::PROTOCOL;
    type Answer = StartedStream<Answer<D>>;

    async fn start(&mut self, target: &Target, turn: Turn) -> StartResult<Self::Answer> {
        let Started { dropped, answer } = self.0.start_on(target, turn).await?;
        let answer = match answer {
            TextAnswer::Translated(events) => translated(self.0.noted(events)),
            TextAnswer::Relayed(answer::Answer::Json(body)) => {
                let events = read_reply(&body, D::UPSTREAM_PROTOCOL, &self.0.asked.reported);
                let events = events.map_err(TargetFailure::of)?;
                translated(self.0.noted(answer::from_events(events)))
            }
            TextAnswer::Relayed(answer::Answer::Events(first, body)) => {
                let model = &self.0.parsed.model;
                let mut protocol = D::relay(self.0.parsed.notes);
                if let Some(marker) = self.0.marker.take() {
                    protocol.mark_seals(marker);
                }
                let relay = Relay::begin(first, body, protocol, model, &self.0.asked).await;
                started(relay.map_err(TargetFailure::of)?)
            }
        };
        Ok(Started { dropped, answer })
    }

    fn hedged(&self, first: &Target, asked: Arc<Asked>) -> Option<Self> {
        self.0.hedged(first, asked).map(Self)
    }

    fn leave_out_seals(&mut self, target: &Target) -> bool {
        self.0.leave_out_seals(target)
    }

    fn take_meta(&mut self) -> ResponseMeta {
        std::mem::take(&mut self.0.meta)
    }
}

/// Streams the answer to a request.
pub(super) async fn answer<D: TextEndpoint>(
    dispatch: TextDispatch<D>,
    targets: Vec<Target>,
    encoder: Answer<D>,
    caller: &Caller<'_>,
) -> Result<Response<ReplyBody>, Refusal> {
    let attempt = attempt::first_successful_target(StreamingDispatch(dispatch), targets, caller);
    reply::stream(Box::pin(attempt), encoder, Answer::fail, caller).await
}

fn translated<D: TextEndpoint>(events: TextStream) -> StartedStream<Answer<D>> {
    Box::new(move |encoder| Box::new(TranslatedText::new(encoder, events)))
}

/// A streamed answer that is encoded from the events of a model.
pub(crate) struct TranslatedText<D: TextEndpoint> {
    encoder: Answer<D>,
    events: TextStream,
    is_open: bool,
    /// The number of events so far. Their content is counted where they are [noted](TextDispatch::noted).
    count: u64,
}

impl<D: TextEndpoint> TranslatedText<D> {
    pub(crate) fn new(encoder: Answer<D>, events: TextStream) -> Self {
        Self {
            encoder,
            events,
            is_open: false,
            count: 0,
        }
    }
}

impl<D: TextEndpoint> AnswerStream for TranslatedText<D> {
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Progress, StreamFailure>> {
        if !self.is_open {
            self.is_open = true;
            self.encoder.open(out);
            return Poll::Ready(Ok(Progress::Opened));
        }
        let event = ready!(poll_event(&mut self.events, cx))?;
        self.count += 1;
        let ending = ending(&event);
        self.encoder.event(event, clock::unix_seconds(), out);
        Poll::Ready(Ok(ending.map_or(Progress::Written, Progress::Ended)))
    }

    fn counts(&self) -> Counts {
        Counts {
            events: self.count,
            ..Counts::default()
        }
    }

    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        self.encoder.fail(error, out);
    }

    fn keep_alive(&self, out: &mut Vec<u8>) {
        self.encoder.keep_alive(out);
    }
}
