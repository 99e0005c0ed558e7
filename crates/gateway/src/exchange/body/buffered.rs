//! A response body that is completely in memory, sent in frames of bounded size.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;

use super::Body;

/// A buffered body. Its frames are small, so that the bytes that the client has not read yet are
/// still held here and not in the socket's buffers.
pub(crate) struct Buffered {
    first: Bytes,
    more: VecDeque<Bytes>,
}

impl From<Bytes> for Buffered {
    fn from(bytes: Bytes) -> Self {
        Self {
            first: bytes,
            more: VecDeque::new(),
        }
    }
}

/// A body of these bytes, in order, without joining them.
impl From<Vec<Bytes>> for Buffered {
    fn from(pieces: Vec<Bytes>) -> Self {
        Self {
            first: Bytes::new(),
            more: pieces.into(),
        }
    }
}

impl Buffered {
    /// Returns true if the body fits into a single frame.
    pub(crate) fn is_short(&self) -> bool {
        self.len() <= MAX_FRAME
    }

    /// Returns the bytes of the body in one piece.
    pub(crate) fn into_bytes(self) -> Bytes {
        if self.more.is_empty() {
            return self.first;
        }
        let pieces: Vec<_> = std::iter::once(self.first).chain(self.more).collect();
        pieces.concat().into()
    }

    pub(crate) fn into_body(self) -> Body {
        self.map_err(|never| match never {}).boxed_unsync()
    }

    fn len(&self) -> usize {
        self.first.len() + self.more.iter().map(Bytes::len).sum::<usize>()
    }
}

impl HttpBody for Buffered {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        while self.first.is_empty() {
            let Some(next) = self.more.pop_front() else {
                return Poll::Ready(None);
            };
            self.first = next;
        }
        let length = self.first.len().min(MAX_FRAME);
        Poll::Ready(Some(Ok(Frame::data(self.first.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.more.iter().all(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len() as u64)
    }
}

/// The largest frame of a body, in bytes.
pub(super) const MAX_FRAME: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_reply_is_taken_at_once() {
        let of = |length| Buffered::from(Bytes::from(vec![0; length]));
        assert!(of(MAX_FRAME).is_short() && !of(MAX_FRAME + 1).is_short());
        assert!(of(0).is_end_stream() && Buffered::from(vec![Bytes::new()]).is_end_stream());
    }
}
