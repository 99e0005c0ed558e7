//! Whole replies with pictures, which are many megabytes: they pass without being held.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use engine::{EngineError, Usage};
use http_body::{Body, Frame, SizeHint};
use translate::outbound::failure;
use translate::relay::{self, End, Images};

use crate::answer::{next, said_of_failure};
use crate::top_level::TopLevelScanner;
use crate::{Incoming, IncomingBody, Upstream};

/// A whole reply with pictures.
#[derive(Debug)]
pub enum ImageReply {
    /// A short one, which was read.
    Whole(Bytes, End),
    /// A long one, which is on its way.
    StreamingReply(StreamingReply),
}

/// A long reply on its way. It fails when it breaks off, also where its framing does not tell, when an `error` comes
/// after its pictures, and when it ends without any.
#[derive(Debug)]
pub struct StreamingReply {
    /// What came first, in reverse.
    begun: Vec<Bytes>,
    body: IncomingBody,
    left: Option<u64>,
    members: TopLevelScanner,
    usage: Arc<OnceLock<Usage>>,
}

impl ImageReply {
    /// Reads as much of an answer as tells whether it is one of success: a long one as far as its pictures, if these
    /// begin within what is read of an error.
    ///
    /// # Errors
    /// What an error means, by its status or within a reply of status 200.
    pub async fn read(incoming: Incoming, upstream: &Upstream) -> Result<Self, EngineError> {
        let Incoming { status, retry_after, mut body, .. } = incoming;
        if !status.is_success() {
            return Err(failure(status.as_u16(), &said_of_failure(body, upstream).await, retry_after));
        }
        let length = body.size_hint().exact();
        let (mut begun, mut read, mut members) = (Vec::new(), 0, TopLevelScanner::default());
        let is_success = |members: &TopLevelScanner| members.has_pictures() && !members.has_error();
        let most = upstream.error_body() as u64;
        // One that is here to its last byte is judged as a whole, however long.
        while read < SHORT || length == Some(read) || (read < most && !is_success(&members)) {
            let Some(piece) = next(&mut body).await? else {
                let whole = Bytes::from(begun.concat());
                let (_, end) = relay::reply::<Images>(&whole, "")?;
                return Ok(Self::Whole(whole, end));
            };
            read += piece.len() as u64;
            members.read(&piece);
            begun.push(piece);
        }
        if members.has_error() {
            return Err(EngineError::Upstream("a long error in a reply with status 200".to_owned()));
        }
        if begun.iter().flatten().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
            return Err(EngineError::Upstream("a reply that is no JSON object".to_owned()));
        }
        begun.reverse();
        let (members, usage) = (TopLevelScanner::default(), Arc::default());
        Ok(Self::StreamingReply(StreamingReply { begun, body, left: length, members, usage }))
    }
}

impl StreamingReply {
    /// Whether all of it was handed out.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.left == Some(0)
    }

    /// The token usage, which is set once the whole reply was handed out and if it has any.
    #[must_use]
    pub fn usage(&self) -> Arc<OnceLock<Usage>> {
        Arc::clone(&self.usage)
    }

    /// What is wrong with what was read.
    fn fault(&self) -> Option<EngineError> {
        let is_broken = self.is_at_end() && !self.members.is_closed();
        if is_broken {
            Some(broken())
        } else if self.members.has_error() {
            Some(EngineError::Upstream("an error after the pictures of a reply with status 200".to_owned()))
        } else if self.members.is_closed() && !self.members.has_pictures() {
            Some(EngineError::Upstream("a long reply without pictures".to_owned()))
        } else {
            None
        }
    }
}

impl Body for StreamingReply {
    type Data = Bytes;
    type Error = EngineError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, EngineError>>> {
        loop {
            let piece = match self.begun.pop() {
                Some(piece) => piece,
                None => match ready!(Pin::new(&mut self.body).poll_frame(cx)).transpose()? {
                    Some(frame) => match frame.into_data() {
                        Ok(piece) => piece,
                        Err(_) => continue,
                    },
                    None if self.members.is_closed() => return Poll::Ready(None),
                    None => return Poll::Ready(Some(Err(broken()))),
                },
            };
            self.left = self.left.map(|left| left.saturating_sub(piece.len() as u64));
            self.members.read(&piece);
            if self.members.is_closed()
                && let Some(usage) = relay::usage(self.members.usage())
            {
                self.usage.get_or_init(|| usage);
            }
            // With its last byte a reply would count as whole.
            return Poll::Ready(Some(self.fault().map_or_else(|| Ok(Frame::data(piece)), Err)));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_at_end()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map(SizeHint::with_exact).unwrap_or_default()
    }
}

fn broken() -> EngineError {
    EngineError::Truncated("a reply that ends before its JSON does".to_owned())
}

/// So much is read before a reply counts as a long one: errors are short.
const SHORT: u64 = 16 << 10;
