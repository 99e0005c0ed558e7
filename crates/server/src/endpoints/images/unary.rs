//! Answers an image request that is not streamed.

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
use crate::answer::engine_events;
use crate::attempt::{self, Coming, Started};
use crate::body::buffered::in_pieces;
use crate::body::delivered::delivered;
use crate::body::{Aborted, Body};
use crate::endpoints::{json_bytes, json_reply, unserializable};
use crate::outcome::Outcome;
use crate::record::Record;
use crate::refusal::Refusal;
use crate::state::{Caller, ServerState};

/// Returns the reply of an upstream, or folds the events of the engine into one.
pub(super) async fn answer(
    caller: Caller<'_>,
    parsed: ParsedRequest,
    deadline: Instant,
) -> Result<Response<Body>, Refusal> {
    let Caller { state, policy, key, record } = caller;
    let (operation, count) = (parsed.operation, u32::try_from(parsed.generation.count()).unwrap_or(1));
    let served = record.as_ref().map(|record| Arc::clone(&record.served_by)).unwrap_or_default();
    let targets = policy.routes.select(&parsed.model);
    let dispatch = ImageDispatch::new(parsed, state, &key.name, deadline);
    let Started { answer, .. } =
        attempt::first_successful_target(dispatch, targets, Arc::clone(state), served, deadline).await?;
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
        Coming::Whole(ImageReply::StreamingReply(passing)) => Ok(forward(passing, state, record, deadline)),
        // A request that is not streamed never gets a stream.
        Coming::Relay(_) | Coming::Told(..) => Err(ApiError::server_error().into()),
    }
}

/// Forwards a long reply of an upstream without buffering it.
fn forward(
    passing: StreamingReply,
    state: &ServerState,
    record: &mut Option<Record>,
    deadline: Instant,
) -> Response<Body> {
    let usage = passing.usage();
    let body = passing.map_err(|error| Aborted::new(Outcome::of_failure(&error), error.to_string())).boxed_unsync();
    let mut response = json_reply(body);
    if let Some(mut record) = record.take() {
        record.status = response.status().as_u16();
        record.relayed_usage = Some(usage);
        response = response.map(|body| delivered(body, record, deadline, state.lifecycle.abort_signal()));
    }
    response
}

/// Folds the events of the engine into a reply.
async fn reply(
    steps: engine::ImageStream,
    mut teller: Teller,
    mut fold: Fold,
    record: Option<&mut Record>,
) -> Result<Response<Body>, Refusal> {
    let take = |step| {
        let (event, ending) = teller.take(&step);
        drop(step);
        // The fold accepts every event of our own encoder; if it refused one, the reply would be incomplete.
        let kept = event.is_none_or(|event| fold.push(event).is_ok());
        ending.filter(|_| kept)
    };
    engine_events::gather(steps, None, record, take).await?;
    let reply = fold.finish().map_err(|error| Refusal::internal(error.to_string()))?;
    framed(reply)
}

/// Serializes the reply around its images, which are not copied again.
fn framed(mut reply: images::Response) -> Result<Response<Body>, Refusal> {
    let pictures: Vec<_> =
        reply.data.iter_mut().map(|image| Bytes::from(std::mem::take(&mut image.b64_json))).collect();
    let frame = Bytes::from(serde_json::to_vec(&reply).map_err(unserializable)?);
    let mut frames = Vec::new();
    let mut from = 0;
    for (at, picture) in image_offsets(&frame).zip(pictures) {
        frames.extend([frame.slice(from..at), picture]);
        from = at;
    }
    frames.push(frame.slice(from..));
    Ok(json_reply(in_pieces(frames)))
}

/// Returns the offsets between the quotation marks of the empty images in a serialized reply.
fn image_offsets(frame: &[u8]) -> impl Iterator<Item = usize> {
    memchr::memmem::find_iter(frame, EMPTY).map(|at| at + EMPTY.len() - 1)
}

/// The serialized form of an image that was taken out. It cannot occur inside of a string, where quotation marks are
/// escaped.
const EMPTY: &[u8] = br#""b64_json":"""#;
