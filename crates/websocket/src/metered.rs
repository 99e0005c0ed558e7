//! A socket that counts the bytes of messages that are not complete.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use gateway::exchange::body::budget::Share;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// A socket whose unfinished messages are counted: they take memory of the budget for bodies, and
/// have to be complete in time, as the bodies of requests.
pub(crate) struct Metered<S> {
    socket: S,
    share: Share,
    /// The bytes that were read and belong to no complete message.
    unfinished: usize,
    /// The time at which the first of them was read.
    began: Option<Instant>,
    last_read: Instant,
    /// True if the budget has no memory for the message.
    is_exhausted: bool,
}

impl<S> Metered<S> {
    /// Wraps a socket after the first `read` bytes of its messages.
    pub(crate) fn new(socket: S, share: Share, read: usize) -> Self {
        let now = Instant::now();
        let mut metered = Self {
            socket,
            share,
            unfinished: 0,
            began: None,
            last_read: now,
            is_exhausted: false,
        };
        metered.note(read);
        metered
    }

    fn note(&mut self, read: usize) {
        self.last_read = Instant::now();
        if read > 0 {
            self.began.get_or_insert(self.last_read);
            self.unfinished += read;
            self.is_exhausted |= self.share.grow(read).is_err();
        }
    }

    /// Notes that a message of this many bytes is complete. Returns the bytes to the budget.
    pub(crate) fn finish(&mut self, bytes: usize) {
        let bytes = bytes.min(self.unfinished);
        self.share.shrink(bytes);
        self.unfinished -= bytes;
        self.began = (self.unfinished > 0).then(Instant::now);
    }

    /// The time at which the first byte of an unfinished message was read.
    pub(crate) fn began(&self) -> Option<Instant> {
        self.began
    }

    /// The time of the latest read.
    pub(crate) fn last_read(&self) -> Instant {
        self.last_read
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_exhausted {
            return Poll::Ready(Err(io::Error::other("no memory for the message")));
        }
        let before = into.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, into))?;
        self.note(into.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
