//! A socket that gives up on a client which sends nothing or takes nothing, and hears out one that is told no.

use std::future::Future;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::connection_state::{CloseReason, ConnectionState};

/// A socket whose first byte has to come in time, and whose writes fail once none of them made progress for a while.
///
/// A client that is answered in the midst of what it sends is heard out for a moment after the last byte of the answer:
/// to close at once would reset the connection, and the answer would be lost on its way (RFC 9112 §9.6).
pub(crate) struct TimeoutIo<S> {
    socket: S,
    line: Arc<ConnectionState>,
    stall: Duration,
    /// Takes the socket away from its client without a goodbye.
    reset: fn(&S),
    /// Boxed, because hyper wants to move what it writes to.
    timer: Pin<Box<Sleep>>,
    timed: Timed,
}

/// What the timer runs for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timed {
    Nothing,
    FirstByte,
    Write,
    HearingOut,
}

impl<S> TimeoutIo<S> {
    /// Guards `socket`: for its first byte it waits as long as `first_byte`, for a write as long as `stall`. After
    /// that the system would keep what was not read for as long as the client is there: `reset` lets it go.
    pub(crate) fn new(
        socket: S,
        line: Arc<ConnectionState>,
        first_byte: Duration,
        stall: Duration,
        reset: fn(&S),
    ) -> Self {
        Self { socket, line, stall, reset, timer: Box::pin(sleep(first_byte)), timed: Timed::FirstByte }
    }

    fn time(&mut self, what: Timed, limit: Duration) {
        self.timed = what;
        self.timer.as_mut().reset(Instant::now() + limit);
    }

    /// Passes on what came of a write, or fails when it has waited too long.
    fn judge<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            // hyper flushes at any time, before the first byte too.
            if self.timed == Timed::Write {
                self.timed = Timed::Nothing;
            }
            return written;
        }
        if self.timed != Timed::Write {
            self.time(Timed::Write, self.stall);
        }
        ready!(self.timer.as_mut().poll(cx));
        self.line.give_up(CloseReason::SlowReader);
        (self.reset)(&self.socket);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncRead + Unpin> TimeoutIo<S> {
    /// Waits until the client sends no more, or the time for that is over.
    fn hear_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut space = [MaybeUninit::uninit(); 8 * 1024];
        loop {
            let mut unwanted = ReadBuf::uninit(&mut space);
            if self.timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            let read = ready!(Pin::new(&mut self.socket).poll_read(cx, &mut unwanted));
            if read.is_err() || unwanted.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TimeoutIo<S> {
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
        if self.timed != Timed::HearingOut {
            let shut = Pin::new(&mut self.socket).poll_shutdown(cx);
            ready!(self.judge(cx, shut))?;
            if !self.line.is_midway() {
                return Poll::Ready(Ok(()));
            }
            self.time(Timed::HearingOut, HEARING_OUT);
        }
        self.hear_out(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutIo<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.socket).poll_read(cx, into);
        if into.filled().len() > before {
            self.line.hear();
        }
        if self.timed == Timed::FirstByte {
            if read.is_ready() {
                self.timed = Timed::Nothing;
                return read;
            }
            ready!(self.timer.as_mut().poll(cx));
            self.line.give_up(CloseReason::NoFirstByte);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client says nothing")));
        }
        read
    }
}

/// How long a client may go on sending after it was told no.
const HEARING_OUT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);
    const FIRST: Duration = Duration::from_secs(10);

    /// A guarded socket with room for eight bytes on their way, what is known of its line, and the client's end.
    fn guarded() -> (TimeoutIo<DuplexStream>, Arc<ConnectionState>, DuplexStream) {
        let ((ours, theirs), line) = (duplex(8), Arc::<ConnectionState>::default());
        (TimeoutIo::new(ours, Arc::clone(&line), FIRST, LIMIT, |_| {}), line, theirs)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_nothing_is_given_up() {
        let (mut guarded, line, _theirs) = guarded();
        let begun = Instant::now();
        guarded.flush().await.unwrap();
        let error = guarded.read_u8().await.unwrap_err();
        assert_eq!((error.kind(), begun.elapsed()), (io::ErrorKind::TimedOut, FIRST));
        assert_eq!(line.parting(&Ok(())), CloseReason::NoFirstByte);
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_first_byte_a_client_may_be_silent() {
        let (mut guarded, _, mut theirs) = guarded();
        theirs.write_u8(1).await.unwrap();
        assert_eq!(guarded.read_u8().await.unwrap(), 1);
        let later = tokio::spawn(async move {
            sleep(10 * FIRST).await;
            theirs.write_u8(2).await
        });
        assert_eq!(guarded.read_u8().await.unwrap(), 2);
        later.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_told_no_is_heard_out() {
        let (mut guarded, _, mut theirs) = guarded();
        theirs.write_u8(1).await.unwrap();
        guarded.read_u8().await.unwrap();
        let client = tokio::spawn(async move {
            theirs.write_all(&[2; 100]).await.unwrap();
            theirs.read_u8().await.unwrap_err().kind()
        });
        let begun = Instant::now();
        guarded.shutdown().await.unwrap();
        assert!(begun.elapsed() < HEARING_OUT, "until the client is done");
        assert_eq!(client.await.unwrap(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_not_heard_for_ever() {
        let (mut guarded, line, mut theirs) = guarded();
        theirs.write_u8(1).await.unwrap();
        guarded.read_u8().await.unwrap();
        let begun = Instant::now();
        guarded.shutdown().await.unwrap();
        assert_eq!(begun.elapsed(), HEARING_OUT);
        assert!(line.is_midway());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (mut guarded, line, _theirs) = guarded();
        let begun = Instant::now();
        let error = guarded.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!((error.kind(), begun.elapsed()), (io::ErrorKind::TimedOut, LIMIT));
        assert_eq!(line.parting(&Ok(())), CloseReason::SlowReader);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_is_served_as_long_as_it_takes_something() {
        let (mut guarded, _, mut theirs) = guarded();
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
