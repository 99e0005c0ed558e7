//! Answering with one reply.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use engine::EngineError;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Response};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt, StreamBody};
use images::Fold;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};
use upstream::{Passing, Pictures};
use wire::ApiError;

use super::asking::ForPictures;
use super::read::Asked;
use super::tell::Teller;
use crate::attempt::{self, Begun, Coming};
use crate::body::{Aborted, Body, plain};
use crate::endpoints::json_bytes;
use crate::gateway::Caller;
use crate::limit::Permit;
use crate::outcome::Outcome;
use crate::record::Record;
use crate::refusal::Refusal;

/// The reply: an upstream's own, or the fold of the stream that would have been.
pub(super) async fn answer(
    caller: Caller<'_>,
    asked: Asked,
    permit: Permit,
    deadline: Instant,
) -> Result<Response<Body>, Refusal> {
    let Caller { gateway, policy, key, record } = caller;
    let (operation, count) = (asked.operation, u32::try_from(asked.generation.count()).unwrap_or(1));
    let served = record.as_ref().map(|record| Arc::clone(&record.served)).unwrap_or_default();
    let targets = policy.routes.of(&asked.model);
    let asking = ForPictures::new(asked, gateway, &key.name, deadline);
    let Begun { answer, .. } = attempt::begin(asking, targets, Arc::clone(gateway), served, deadline).await?;
    match answer {
        Coming::Neutral(steps, pictures) => {
            let fold = Fold::new(operation, Some(count));
            let reply = reply(steps, Teller::new(pictures), fold, record.as_mut());
            timeout_at(deadline, reply).await.map_err(|_| Refusal::timeout())?
        }
        Coming::Whole(Pictures::Whole(body, end)) => {
            if let Some(record) = record {
                record.finish(end.into());
            }
            Ok(json_bytes(body))
        }
        Coming::Whole(Pictures::Passing(passing)) => Ok(pass(passing, record.take(), permit, deadline)),
        // Streams are for those who asked for one.
        Coming::Relay(_) | Coming::Told(..) => Err(ApiError::server_error().into()),
    }
}

/// A long reply of an upstream, as it comes.
fn pass(passing: Passing, mut record: Option<Record>, permit: Permit, deadline: Instant) -> Response<Body> {
    if let Some(record) = &mut record {
        record.status = 200;
    }
    let length = passing.size_hint().exact();
    let mut response = Response::new(
        Recorded { passing, record, permit: Some(permit), deadline: Box::pin(sleep_until(deadline)) }.boxed_unsync(),
    );
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(length) = length {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

/// A reply on its way, with the permit and the record that end with it.
struct Recorded {
    passing: Passing,
    record: Option<Record>,
    permit: Option<Permit>,
    /// When the whole of it has to be there.
    deadline: Pin<Box<Sleep>>,
}

impl Recorded {
    /// Who reads it learns of a failure by a connection that breaks off: nothing was said yet that is untrue.
    fn abort(&mut self, error: &EngineError) -> Aborted {
        if let Some(record) = &mut self.record {
            record.cause = Some(error.to_string());
            record.end(Outcome::of_failure(error));
        }
        Aborted
    }
}

impl http_body::Body for Recorded {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        if self.deadline.as_mut().poll(cx).is_ready() {
            let late = EngineError::Timeout("the reply was not whole in time".to_owned());
            return Poll::Ready(Some(Err(self.abort(&late))));
        }
        let frame = ready!(Pin::new(&mut self.passing).poll_frame(cx)).transpose();
        let frame = frame.map_err(|error| self.abort(&error));
        if matches!(frame, Ok(None)) || self.passing.is_at_end() {
            if let Some(record) = &mut self.record {
                record.end(Outcome::Completed);
            }
            self.permit.take();
        }
        Poll::Ready(frame.transpose())
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.passing.size_hint()
    }
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
    let length: usize = frames.iter().map(Bytes::len).sum();
    let frames = frames.into_iter().map(|bytes| Ok(Frame::data(bytes)));
    let mut response = Response::new(StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    Ok(response)
}

/// Where the empty pictures of a frame are: inside of their quotation marks.
fn holes(frame: &[u8]) -> impl Iterator<Item = usize> {
    memchr::memmem::find_iter(frame, EMPTY).map(|at| at + EMPTY.len() - 1)
}

/// A picture that was taken out. No text of a reply can hold this: quotation marks in it are escaped.
const EMPTY: &[u8] = br#""b64_json":"""#;
