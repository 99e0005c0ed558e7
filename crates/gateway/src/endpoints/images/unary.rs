//! Answers an image request that is not streamed.

use std::sync::Arc;

use answer::{ImageReply, StreamingReply};
use bytes::Bytes;
use catalog::Protocol;
use engine::{EngineError, ImageStream};
use http::Response;
use http_body_util::BodyExt;
use images::Fold;
use policy::targets::{Backend, Target};
use telemetry::outcome::Outcome;
use tokio::time::timeout_at;
use translate::inbound::Pictures;
use upstream::ResponseMeta;

use super::dispatch::ImageDispatch;
use super::encode::ImageEncoder;
use super::read::ParsedRequest;
use crate::exchange::answer::engine_events::fold_recorded;
use crate::exchange::answer::started::Started;
use crate::exchange::body::Aborted;
use crate::exchange::record::Record;
use crate::exchange::refusal::Refusal;
use crate::request::attempt::{self, Dispatch, StartResult, TargetFailure, Turn};
use crate::request::reply::{ReplyBody, json_bytes, json_reply, name_dropped, unserializable};
use crate::state::Caller;

struct UnaryDispatch(ImageDispatch);

enum UnaryAnswer {
    Translated(ImageStream, Pictures),
    Relayed(ImageReply),
}

impl Dispatch for UnaryDispatch {
    const PROTOCOL: Protocol = Protocol::ImagesGenerations;
    type Answer = UnaryAnswer;

    async fn start(&mut self, target: &Target, turn: Turn) -> StartResult<UnaryAnswer> {
        let answer = match &target.backend {
            Backend::Embedded => {
                let (events, pictures) = Box::pin(self.0.embedded(turn)).await?;
                UnaryAnswer::Translated(events, pictures)
            }
            Backend::Upstream(server) => {
                let outgoing = self.0.outgoing(server, target, &turn).await?;
                let incoming = server
                    .send_to_upstream(&outgoing, self.0.deadline, turn.effort())
                    .await;
                let mut incoming = incoming.map_err(TargetFailure::of)?;
                self.0.meta = std::mem::take(&mut incoming.meta);
                let reply = ImageReply::read(incoming, &self.0.asked.reported).await;
                let reply = reply.map_err(TargetFailure::of)?;
                UnaryAnswer::Relayed(self.with_bytes(reply).await?)
            }
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

impl UnaryDispatch {
    /// Returns the reply with the bytes of its images: no client can ask for URLs.
    async fn with_bytes(&self, reply: ImageReply) -> Result<ImageReply, TargetFailure> {
        match reply {
            ImageReply::Whole(body, end) => {
                let body = self.0.with_bytes(body).await?;
                Ok(ImageReply::Whole(body, end))
            }
            ImageReply::StreamingReply(reply) if reply.has_url => {
                let cause = "the URLs of the images in the reply are too long to be fetched";
                Err(TargetFailure::of(EngineError::Upstream(cause.to_owned())))
            }
            reply @ ImageReply::StreamingReply(_) => Ok(reply),
        }
    }
}

/// Returns the reply of an upstream, or folds the events of the engine into one.
pub(super) async fn answer(
    parsed: ParsedRequest,
    targets: Vec<Target>,
    caller: Caller<'_>,
) -> Result<Response<ReplyBody>, Refusal> {
    let fold = Fold::new(parsed.operation, Some(parsed.count()));
    let dispatch = UnaryDispatch(ImageDispatch::new(parsed, &caller));
    let Started { dropped, answer } =
        attempt::first_successful_target(dispatch, targets, &caller).await?;
    let mut response = match answer {
        UnaryAnswer::Translated(events, pictures) => {
            let reply = fold_reply(events, ImageEncoder::new(pictures), fold, caller.record);
            timeout_at(caller.deadline, reply)
                .await
                .map_err(|_| Refusal::timeout())??
        }
        UnaryAnswer::Relayed(ImageReply::Whole(body, end)) => {
            caller.record.finish(end);
            json_bytes(body)
        }
        UnaryAnswer::Relayed(ImageReply::StreamingReply(reply)) => forward(reply, caller.record),
    };
    name_dropped(response.headers_mut(), &dropped);
    Ok(response)
}

/// Forwards a long reply of an upstream without buffering it.
fn forward(reply: StreamingReply, record: &mut Record) -> Response<ReplyBody> {
    record.relayed = Some(Arc::clone(&reply.reported));
    let body = reply.map_err(|error| Aborted {
        outcome: Outcome::of_failure(&error),
        cause: error.to_string(),
    });
    json_reply(ReplyBody::Forwarded(body.boxed_unsync()))
}

async fn fold_reply(
    events: ImageStream,
    mut encoder: ImageEncoder,
    mut fold: Fold,
    record: &mut Record,
) -> Result<Response<ReplyBody>, Refusal> {
    let take = |event| {
        let (encoded, ending) = encoder.encode(&event);
        drop(event);
        // The fold accepts every event of our own encoder; if it refused one, the reply would be
        // incomplete.
        let kept = encoded.is_none_or(|event| fold.push(event).is_ok());
        ending.filter(|_| kept)
    };
    let folded = fold_recorded(events, record, take).await;
    record.counts.pictures = encoder.counts().pictures;
    folded?;
    framed(
        fold.finish()
            .map_err(|error| Refusal::internal(error.to_string()))?,
    )
}

/// Serializes the reply around its images, which are not copied again.
fn framed(mut reply: images::Response) -> Result<Response<ReplyBody>, Refusal> {
    let pictures: Vec<_> = reply
        .data
        .iter_mut()
        .map(|image| Bytes::from(std::mem::take(&mut image.b64_json)))
        .collect();
    let frame = Bytes::from(serde_json::to_vec(&reply).map_err(unserializable)?);
    let mut frames = Vec::new();
    let mut from = 0;
    for (at, picture) in image_offsets(&frame).zip(pictures) {
        frames.extend([frame.slice(from..at), picture]);
        from = at;
    }
    frames.push(frame.slice(from..));
    Ok(json_reply(ReplyBody::Buffered(frames.into())))
}

/// Returns the offsets between the quotation marks of the empty images in a serialized reply.
fn image_offsets(frame: &[u8]) -> impl Iterator<Item = usize> {
    memchr::memmem::find_iter(frame, EMPTY).map(|at| at + EMPTY.len() - 1)
}

/// The serialized form of an image that was taken out. It cannot occur inside of a string, where
/// quotation marks are escaped.
const EMPTY: &[u8] = br#""b64_json":"""#;
