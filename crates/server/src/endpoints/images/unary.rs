//! Answering with one reply.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt;
use images::Fold;
use tokio::time::{Instant, timeout_at};
use upstream::{ImageReply, StreamingReply};
use wire::ApiError;

use super::dispatch::ImageDispatch;
use super::encode::Teller;
use super::read::ParsedRequest;
use crate::attempt::{self, Coming, Started};
use crate::body::buffered::in_pieces;
use crate::body::delivered::delivered;
use crate::body::{Aborted, Body, plain};
use crate::endpoints::{json_bytes, json_reply};
use crate::gateway::{Caller, Gateway};
use crate::outcome::Outcome;
use crate::record::Record;
use crate::refusal::Refusal;

/// The reply: an upstream's own, or the fold of the stream that would have been.
pub(super) async fn answer(
    caller: Caller<'_>,
    asked: ParsedRequest,
    deadline: Instant,
) -> Result<Response<Body>, Refusal> {
    let Caller { gateway, policy, key, record } = caller;
    let (operation, count) = (asked.operation, u32::try_from(asked.generation.count()).unwrap_or(1));
    let served = record.as_ref().map(|record| Arc::clone(&record.served)).unwrap_or_default();
    let targets = policy.routes.of(&asked.model);
    let asking = ImageDispatch::new(asked, gateway, &key.name, deadline);
    let Started { answer, .. } = attempt::begin(asking, targets, Arc::clone(gateway), served, deadline).await?;
    match answer {
        Coming::Neutral(steps, pictures) => {
            let fold = Fold::new(operation, Some(count));
            let reply = reply(steps, Teller::new(pictures), fold, record.as_mut());
            timeout_at(deadline, reply).await.map_err(|_| Refusal::timeout())?
        }
        Coming::Whole(ImageReply::Whole(body, end)) => {
            if let Some(record) = record {
                record.finish(end.into());
            }
            Ok(json_bytes(body))
        }
        Coming::Whole(ImageReply::StreamingReply(passing)) => Ok(pass(passing, gateway, record, deadline)),
        // Streams are for those who asked for one.
        Coming::Relay(_) | Coming::Told(..) => Err(ApiError::server_error().into()),
    }
}

/// A long reply of an upstream, as it comes.
fn pass(passing: StreamingReply, gateway: &Gateway, record: &mut Option<Record>, deadline: Instant) -> Response<Body> {
    let usage = passing.usage();
    let body = passing.map_err(|error| Aborted::new(Outcome::of_failure(&error), error.to_string())).boxed_unsync();
    let mut response = json_reply(body);
    if let Some(mut record) = record.take() {
        record.status = response.status().as_u16();
        record.passing_usage = Some(usage);
        response = response.map(|body| delivered(body, record, deadline, gateway.lifecycle.cut()));
    }
    response
}

/// The fold of the stream that would have been.
async fn reply(
    steps: engine::ImageStream,
    mut teller: Teller,
    mut fold: Fold,
    record: Option<&mut Record>,
) -> Result<Response<Body>, Refusal> {
    let take = |step| {
        let (event, ending) = teller.take(&step);
        drop(step);
        // An event of our own encoder is never refused; were it, the fold would not be whole.
        let kept = event.is_none_or(|event| fold.push(event).is_ok());
        ending.filter(|_| kept)
    };
    plain::gather(steps, None, record, take).await?;
    let reply =
        fold.finish().map_err(|error| Refusal { cause: Some(error.to_string()), ..ApiError::server_error().into() })?;
    framed(reply)
}

/// The reply as JSON, in which the pictures lie where they were made: they are not copied once more.
fn framed(mut reply: images::Response) -> Result<Response<Body>, Refusal> {
    let pictures: Vec<_> =
        reply.data.iter_mut().map(|image| Bytes::from(std::mem::take(&mut image.b64_json))).collect();
    let cause = |error| Refusal {
        cause: Some(format!("a reply has no JSON form: {error}")),
        ..ApiError::server_error().into()
    };
    let frame = Bytes::from(serde_json::to_vec(&reply).map_err(cause)?);
    let mut frames = Vec::new();
    let mut from = 0;
    for (at, picture) in holes(&frame).zip(pictures) {
        frames.extend([frame.slice(from..at), picture]);
        from = at;
    }
    frames.push(frame.slice(from..));
    Ok(json_reply(in_pieces(frames)))
}

/// Where the empty pictures of a frame are: inside of their quotation marks.
fn holes(frame: &[u8]) -> impl Iterator<Item = usize> {
    memchr::memmem::find_iter(frame, EMPTY).map(|at| at + EMPTY.len() - 1)
}

/// A picture that was taken out. No text of a reply can hold this: quotation marks in it are escaped.
const EMPTY: &[u8] = br#""b64_json":"""#;
