//! Telling what an image engine does, as a stream and as a plain reply.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use engine::{ImageEvent, ImageStream, Usage};
use futures_util::Stream;
use http::HeaderValue;
use http::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use images::{Event, Fold, Operation};
use translate::inbound::Pictures;
use wire::ApiError;

use crate::body::events::{self, Ending, Fault, Told};
use crate::body::{Body, plain};
use crate::clock;
use crate::outcome::Outcome;
use crate::record::Record;
use crate::refusal::Refusal;

/// What an image engine does.
pub(super) struct Steps(pub(super) ImageStream);

impl Stream for Steps {
    type Item = Result<ImageEvent, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx).map_err(Fault::from)
    }
}

/// The answer in the client's protocol, picture by picture.
pub(super) struct Telling {
    pictures: Pictures,
    usage: Usage,
}

impl Telling {
    /// The answer before any picture.
    pub(super) fn new(pictures: Pictures) -> Self {
        Self { pictures, usage: Usage::default() }
    }

    fn take(&mut self, step: &ImageEvent) -> (Option<Event>, Option<Ending>) {
        if let ImageEvent::Finished { usage, .. } = step {
            self.usage.input += usage.input_text + usage.input_image;
            self.usage.output += usage.output_image;
        }
        let event = self.pictures.event(step, clock::unix_seconds());
        let ended = self.pictures.are_all_there();
        (event, ended.then_some(Ending { outcome: Outcome::Completed, usage: Some(self.usage) }))
    }
}

impl events::Telling for Telling {
    type Step = ImageEvent;
    type Source = Steps;

    fn step(&mut self, step: ImageEvent, out: &mut Vec<u8>) -> Result<Told, Fault> {
        let (event, ending) = self.take(&step);
        drop(step);
        if let Some(event) = event {
            event.write(out);
        }
        Ok(ending.map_or(Told::More, Told::End))
    }

    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        if let Some(event) = self.pictures.fail(error) {
            event.write(out);
        }
    }

    fn keep_alive(&self, out: &mut Vec<u8>) {
        sse::comment("keep-alive", out);
    }
}

/// The whole reply: the fold of the stream that would have been.
pub(super) async fn reply(
    steps: ImageStream,
    mut telling: Telling,
    (operation, count): (Operation, u32),
    record: Option<&mut Record>,
) -> Result<Response<Body>, Refusal> {
    let mut fold = Fold::new(operation, Some(count));
    let take = |step: ImageEvent| {
        let (event, ending) = telling.take(&step);
        drop(step);
        // An event of our own encoder is never refused; were it, the fold would not be whole.
        let kept = event.is_none_or(|event| fold.push(event).is_ok());
        ending.filter(|_| kept)
    };
    plain::gather(steps, None, record, take).await?;
    let reply =
        fold.finish().map_err(|error| Refusal { cause: Some(error.to_string()), ..ApiError::server_error().into() })?;
    whole(reply)
}

/// The reply as JSON, in which the pictures lie where they were made: they are not copied once more.
fn whole(mut reply: images::Response) -> Result<Response<Body>, Refusal> {
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
    headers.insert(http::header::CONTENT_LENGTH, HeaderValue::from(length));
    Ok(response)
}

/// Where the empty pictures of a frame are: inside of their quotation marks.
fn holes(frame: &[u8]) -> impl Iterator<Item = usize> {
    memchr::memmem::find_iter(frame, EMPTY).map(|at| at + EMPTY.len() - 1)
}

/// A picture that was taken out. No text of a reply can hold this: quotation marks in it are escaped.
const EMPTY: &[u8] = br#""b64_json":"""#;
