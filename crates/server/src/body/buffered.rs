//! A reply that is all there, handed out piece by piece.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;

use super::Body;

/// A body that is all there.
pub(crate) fn whole(bytes: Bytes) -> Body {
    Whole { first: bytes, more: VecDeque::new() }.map_err(|never| match never {}).boxed_unsync()
}

/// A body that is all there, in pieces.
pub(crate) fn in_pieces(pieces: Vec<Bytes>) -> Body {
    Whole { first: Bytes::new(), more: pieces.into() }.map_err(|never| match never {}).boxed_unsync()
}

/// Bytes that are handed out piece by piece, so that what a client has not taken is known to be here.
struct Whole {
    first: Bytes,
    more: VecDeque<Bytes>,
}

impl HttpBody for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        while self.first.is_empty() {
            let Some(next) = self.more.pop_front() else { return Poll::Ready(None) };
            self.first = next;
        }
        let length = self.first.len().min(AT_ONCE);
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

/// Whether a body is taken in one go, as soon as it is there.
pub(crate) fn is_short(body: &Body) -> bool {
    body.size_hint().upper().is_some_and(|length| length <= AT_ONCE as u64)
}

/// So much is handed to the socket at once.
pub(super) const AT_ONCE: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_reply_is_taken_at_once() {
        assert!(is_short(&whole(vec![0; AT_ONCE].into())) && !is_short(&whole(vec![0; AT_ONCE + 1].into())));
        assert!(whole(Bytes::new()).is_end_stream() && in_pieces(vec![Bytes::new()]).is_end_stream());
    }
}
