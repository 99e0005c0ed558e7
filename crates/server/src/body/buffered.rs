//! A response body that is completely in memory, sent in frames of bounded size.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;

use super::Body;

/// Returns a body of these bytes.
pub(crate) fn whole(bytes: Bytes) -> Body {
    Buffered { first: bytes, more: VecDeque::new() }.map_err(|never| match never {}).boxed_unsync()
}

/// Returns a body of these bytes, in order, without joining them.
pub(crate) fn in_pieces(pieces: Vec<Bytes>) -> Body {
    Buffered { first: Bytes::new(), more: pieces.into() }.map_err(|never| match never {}).boxed_unsync()
}

/// A buffered body. Its frames are small, so that the bytes that the client has not read yet are still held here and
/// not in the socket's buffers.
struct Buffered {
    first: Bytes,
    more: VecDeque<Bytes>,
}

impl HttpBody for Buffered {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        while self.first.is_empty() {
            let Some(next) = self.more.pop_front() else { return Poll::Ready(None) };
            self.first = next;
        }
        let length = self.first.len().min(MAX_FRAME);
        Poll::Ready(Some(Ok(Frame::data(self.first.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.more.iter().all(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        let length = self.first.len() + self.more.iter().map(Bytes::len).sum::<usize>();
        SizeHint::with_exact(length as u64)
    }
}

/// Returns true if the body fits into a single frame.
pub(crate) fn is_short(body: &Body) -> bool {
    body.size_hint().upper().is_some_and(|length| length <= MAX_FRAME as u64)
}

/// The largest frame of a body, in bytes.
pub(super) const MAX_FRAME: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_reply_is_taken_at_once() {
        assert!(is_short(&whole(vec![0; MAX_FRAME].into())) && !is_short(&whole(vec![0; MAX_FRAME + 1].into())));
        assert!(whole(Bytes::new()).is_end_stream() && in_pieces(vec![Bytes::new()]).is_end_stream());
    }
}
