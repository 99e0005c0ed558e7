//! Answers an image request with a stream.

use std::task::{Context, Poll, ready};

use answer::Answer;
use answer::Relay;
use catalog::Protocol;
use engine::ImageStream;
use http::Response;
use images::Event;
use policy::limit::{Counts, Pictures};
use policy::targets::{Backend, Target, UpstreamTarget};
use relay::{End, Images};
use upstream::ResponseMeta;
use wire::{ApiError, ErrorBody};

use super::dispatch::ImageDispatch;
use super::encode::ImageEncoder;
use super::read::ParsedRequest;
use crate::exchange::answer::engine_events::poll_event;
use crate::exchange::answer::pending::{StartedStream, started};
use crate::exchange::answer::started::Started;
use crate::exchange::answer::{AnswerStream, Progress, StreamFailure};
use crate::exchange::refusal::Refusal;
use crate::request::attempt::{self, Dispatch, StartResult, TargetFailure, Turn};
use crate::request::outgoing;
use crate::request::reply::{self, ReplyBody};
use crate::state::Caller;

struct StreamingDispatch(ImageDispatch);

impl Dispatch for StreamingDispatch {
    const PROTOCOL: Protocol = Protocol::ImagesGenerations;
    type Answer = StartedStream<()>;

    async fn start(&mut self, target: &Target, turn: Turn) -> StartResult<Self::Answer> {
        let answer = match &target.backend {
            Backend::Embedded => {
                let (events, pictures) = Box::pin(self.0.embedded(turn)).await?;
                started(TranslatedImages {
                    encoder: ImageEncoder::new(pictures),
                    events,
                })
            }
            Backend::Upstream(server) => self.relay(server, target, turn).await?,
        };
        Ok(Started {
            dropped: self.0.dropped_at(target),
            answer,
        })
    }

    fn take_meta(&mut self) -> ResponseMeta {
        std::mem::take(&mut self.0.meta)
    }
}

impl StreamingDispatch {
    /// Relays a streamed answer, and converts a unary one into a stream.
    async fn relay(
        &mut self,
        server: &UpstreamTarget,
        target: &Target,
        turn: Turn,
    ) -> Result<StartedStream<()>, TargetFailure> {
        let outgoing = self.0.outgoing(server, target, &turn).await?;
        let (deadline, meta) = (self.0.deadline, &mut self.0.meta);
        let answer =
            outgoing::send_and_classify(server, &outgoing, deadline, turn.effort(), meta).await?;
        let request = &self.0.parsed;
        match answer {
            Answer::Events(first, body) => {
                let protocol = Images::new(request.operation, request.count());
                let (model, asked) = (&request.model, &self.0.asked);
                let relay = Relay::begin(first, body, protocol, model, asked).await;
                Ok(started(relay.map_err(TargetFailure::of)?))
            }
            Answer::Json(body) => {
                self.0.note_reply(&body);
                let body = self.0.with_bytes(body).await?;
                let stream = relay::reply_as_stream(&body, request.operation, request.count());
                let (events, end) = stream.map_err(TargetFailure::of)?;
                let pictures = relay::pictures_of_reply(&body).into();
                Ok(started(CompleteImages {
                    events,
                    end,
                    pictures,
                }))
            }
        }
    }
}

/// Streams the answer to a request.
pub(super) async fn answer(
    parsed: ParsedRequest,
    targets: Vec<Target>,
    caller: &Caller<'_>,
) -> Result<Response<ReplyBody>, Refusal> {
    let dispatch = StreamingDispatch(ImageDispatch::new(parsed, caller));
    let attempt = attempt::first_successful_target(dispatch, targets, caller);
    reply::stream(
        Box::pin(attempt),
        (),
        |(), error, out| fail(error, out),
        caller,
    )
    .await
}

/// A streamed answer that is encoded from the events of an engine. It has no opening events.
struct TranslatedImages {
    encoder: ImageEncoder,
    events: ImageStream,
}

impl AnswerStream for TranslatedImages {
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Progress, StreamFailure>> {
        let event = ready!(poll_event(&mut self.events, cx))?;
        let (encoded, ending) = self.encoder.encode(&event);
        // The image is freed before it is serialized.
        drop(event);
        if let Some(encoded) = encoded {
            encoded.write(out);
        }
        Poll::Ready(Ok(ending.map_or(Progress::Written, Progress::Ended)))
    }

    fn counts(&self) -> Counts {
        self.encoder.counts()
    }

    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        if let Some(event) = self.encoder.pictures.fail(error) {
            event.write(out);
        }
    }
}

/// The stream of a unary reply, which is complete before it is written.
struct CompleteImages {
    events: Vec<u8>,
    end: End,
    pictures: Pictures,
}

impl AnswerStream for CompleteImages {
    fn poll_write(
        &mut self,
        _: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Progress, StreamFailure>> {
        out.append(&mut self.events);
        Poll::Ready(Ok(Progress::Ended(self.end)))
    }

    fn counts(&self) -> Counts {
        Counts {
            usage: self.end.usage,
            pictures: self.pictures.clone(),
            ..Counts::default()
        }
    }

    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        fail(error, out);
    }
}

/// Writes the failure of an answer without events so far.
fn fail(error: &ApiError, out: &mut Vec<u8>) {
    let ErrorBody { error } = vendor::in_stream(error).body();
    Event::Error(ErrorBody { error }).write(out);
}
