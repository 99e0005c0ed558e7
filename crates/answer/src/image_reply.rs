//! Complete replies with images. They can be many megabytes, so long ones are streamed without
//! being buffered.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use engine::EngineError;
use http_body::{Body, Frame};
use relay::{End, ImageScanner, Images, RelayProtocol};
use upstream::{Incoming, IncomingBody};

use crate::answer::{MAX_ERROR_BODY, successful_body};
use crate::opening::{Content, Opening};
use crate::reported::Reported;

/// A complete reply with images.
#[derive(Debug)]
pub enum ImageReply {
    /// A short reply, buffered.
    Whole(Bytes, End),
    /// A long reply, which is still being read.
    StreamingReply(StreamingReply),
}

/// A long reply that is being read. It fails when it is truncated, even if the framing of the body
/// does not show it, when it has an `error` after its images, when one of them is no picture, and
/// when it ends without images. Its length is not known before its end, because the base64 of an
/// image may have to be repaired.
#[derive(Debug)]
pub struct StreamingReply {
    /// The chunks that were read to classify the reply, in reverse order. The scanner has read them.
    buffered: Vec<Bytes>,
    body: IncomingBody,
    /// True if an image among the first bytes has only its URL.
    pub has_url: bool,
    scanner: Box<ImageScanner>,
    /// The usage and the images of the reply, set once all of it was returned, or it has failed.
    pub reported: Arc<Reported>,
}

impl ImageReply {
    /// Reads as much of a response as is needed to know that it is a success: a long one up to its
    /// images, if these start within the maximum size of an error body. The usage and the images of
    /// a short one are passed to `reported`, even if it is rejected.
    ///
    /// # Errors
    /// The error that the status stands for, or the one in a reply with status 200.
    pub async fn read(incoming: Incoming, reported: &Reported) -> Result<Self, EngineError> {
        let mut body = successful_body(incoming).await?;
        let Opening { content, bytes } = Opening::read(&mut body, false).await?;
        if content != Content::Json {
            return Err(EngineError::Upstream(
                "image reply is not a JSON object".to_owned(),
            ));
        }
        let mut read = bytes.len() as u64;
        let length = body.length().map(|rest| rest + read);
        let mut scanner = ImageScanner::default();
        let mut buffered = vec![scanner.read(bytes)];
        // Images that are URLs are buffered as well, for callers that need their bytes.
        let is_success = |scanner: &ImageScanner| {
            scanner.has_images() && !scanner.has_error() && !scanner.has_url()
        };
        // A reply that was received to its last byte is parsed as a whole, however long it is.
        while read < MAX_SHORT_REPLY
            || length == Some(read)
            || (read < MAX_ERROR_BODY as u64 && !is_success(&scanner))
        {
            let Some(chunk) = body.chunk().await? else {
                let reply = Bytes::from(buffered.concat());
                reported.set_usage(Images::usage_of_reply(&reply));
                reported.set_pictures(relay::pictures_of_reply(&reply));
                let (_, end) = relay::reply::<Images>(&reply, "")?;
                // Padding that was removed from between letters is not in the reply any more.
                scanner.check(true)?;
                return Ok(Self::Whole(reply, end));
            };
            read += chunk.len() as u64;
            buffered.push(scanner.read(chunk));
        }
        if scanner.has_error() {
            return Err(EngineError::Upstream(
                "long error in a reply with status 200".to_owned(),
            ));
        }
        scanner.check(false)?;
        buffered.reverse();
        let reply = StreamingReply {
            buffered,
            body,
            has_url: scanner.has_url(),
            scanner: Box::new(scanner),
            reported: Arc::default(),
        };
        Ok(Self::StreamingReply(reply))
    }
}

impl StreamingReply {
    fn report(&self) {
        self.reported.set_usage(self.scanner.usage());
        self.reported.set_pictures(self.scanner.pictures());
    }
}

impl Body for StreamingReply {
    type Data = Bytes;
    type Error = EngineError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, EngineError>>> {
        let mut chunk = self.buffered.pop().unwrap_or_default();
        // The scanner may remove all bytes of a chunk.
        while chunk.is_empty() {
            match ready!(self.body.poll_chunk(cx)) {
                Ok(Some(received)) => chunk = self.scanner.read(received),
                end => {
                    self.report();
                    let end = end.and_then(|_| self.scanner.check(true));
                    return Poll::Ready(end.err().map(Err));
                }
            }
        }
        let checked = self.scanner.check(false);
        if checked.is_err() || (self.buffered.is_empty() && self.scanner.is_closed()) {
            self.report();
        }
        // After a failure the reply has no end, so that the client does not take it for complete.
        Poll::Ready(Some(checked.map(|()| Frame::data(chunk))))
    }
}

/// The size up to which every reply is buffered, in bytes: errors are short.
const MAX_SHORT_REPLY: u64 = 16 << 10;
