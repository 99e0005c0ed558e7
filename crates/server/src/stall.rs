//! A socket that gives up on a client which takes nothing: its permit is wanted elsewhere.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A socket whose writes fail once none of them made progress for a while.
pub(crate) struct Guarded<S> {
    socket: S,
    limit: Duration,
    /// Runs while a write waits. Boxed, because hyper wants to move what it writes to.
    timer: Pin<Box<Sleep>>,
    waits: bool,
}

impl<S> Guarded<S> {
    /// Guards `socket`: a write may wait for `limit`.
    pub(crate) fn new(socket: S, limit: Duration) -> Self {
        Self { socket, limit, timer: Box::pin(sleep(limit)), waits: false }
    }

    /// Passes on what came of a write, or fails when it has waited too long.
    fn judge<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waits = false;
            return written;
        }
        if !self.waits {
            self.waits = true;
            self.timer.as_mut().reset(Instant::now() + self.limit);
        }
        ready!(self.timer.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.judge(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, pieces);
        self.judge(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(cx);
        self.judge(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.socket).poll_shutdown(cx);
        self.judge(cx, shut)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, into)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (ours, _theirs) = duplex(8);
        let mut guarded = Guarded::new(ours, LIMIT);
        let begun = Instant::now();
        let error = guarded.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!((error.kind(), begun.elapsed()), (io::ErrorKind::TimedOut, LIMIT));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_is_served_as_long_as_it_takes_something() {
        let (ours, mut theirs) = duplex(8);
        let mut guarded = Guarded::new(ours, LIMIT);
        let reader = tokio::spawn(async move {
            let mut read = 0;
            while read < 100 {
                sleep(LIMIT - Duration::from_secs(1)).await;
                read += theirs.read(&mut [0; 8]).await.unwrap();
            }
            read
        });
        guarded.write_all(&[0; 100]).await.unwrap();
        assert_eq!(reader.await.unwrap(), 100);
    }
}
