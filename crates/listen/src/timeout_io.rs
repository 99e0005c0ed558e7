//! A socket wrapper with first-byte and write timeouts, and a lingering close (RFC 9112 §9.6). Over
//! HTTP/2 it also watches for floods of frames.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use gateway::connection::state::ConnectionState;
use telemetry::close_reason::CloseReason;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::frame_meter::{FrameMeter, PREFACE};

/// A socket whose first read and whose writes time out.
///
/// If the response ends before the request is completely received, closing at once would reset the
/// connection and could lose the response in flight. So a lingering close reads and discards for a
/// moment first (RFC 9112 §9.6).
pub(crate) struct TimeoutIo<S> {
    socket: S,
    connection: Arc<ConnectionState>,
    /// The first bytes, as long as they may be the preface of HTTP/2, which hyper recognizes only if
    /// it is received at once. `None` once it is clear.
    opening: Option<BytesMut>,
    /// Bytes that were received and are still to be read.
    received: Bytes,
    /// Watches the frames of HTTP/2.
    frames: Option<FrameMeter>,
    write_timeout: Duration,
    /// Makes closing the socket reset the connection.
    reset: fn(&S),
    /// Boxed, because hyper requires `Unpin`.
    timer: Pin<Box<Sleep>>,
    purpose: TimerPurpose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimerPurpose {
    None,
    FirstByte,
    Write,
    LingeringClose,
}

impl<S> TimeoutIo<S> {
    /// Wraps `socket`. The first byte has to be received within `first_byte`, and a write may make
    /// no progress for at most `write_timeout`. After a write timeout `reset` is called, because
    /// the system would otherwise keep the unsent data for as long as the client stays connected.
    pub(crate) fn new(
        socket: S,
        connection: Arc<ConnectionState>,
        first_byte: Duration,
        write_timeout: Duration,
        reset: fn(&S),
    ) -> Self {
        Self {
            socket,
            connection,
            opening: Some(BytesMut::new()),
            received: Bytes::new(),
            frames: None,
            write_timeout,
            reset,
            timer: Box::pin(sleep(first_byte)),
            purpose: TimerPurpose::FirstByte,
        }
    }

    /// Goes on with HTTP/2 after the preface, which is in the bytes that were read so far.
    pub(crate) fn begin_http2(&mut self, read: Bytes) {
        self.received = read;
        self.frames = Some(FrameMeter::new());
    }

    fn start_timer(&mut self, purpose: TimerPurpose, timeout: Duration) {
        self.purpose = purpose;
        self.timer.as_mut().reset(Instant::now() + timeout);
    }

    /// Passes on the result of a write, or fails after the write timeout.
    fn finish_write<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            // hyper may flush at any time, even before the first byte.
            if self.purpose == TimerPurpose::Write {
                self.purpose = TimerPurpose::None;
            }
            return written;
        }
        if self.purpose != TimerPurpose::Write {
            self.start_timer(TimerPurpose::Write, self.write_timeout);
        }
        ready!(self.timer.as_mut().poll(cx));
        self.connection.close(CloseReason::SlowReader);
        (self.reset)(&self.socket);
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "write timeout: the client does not read",
        )))
    }
}

impl<S: AsyncRead + Unpin> TimeoutIo<S> {
    /// Reads what was received before, or else from the socket.
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while let Some(opening) = &mut self.opening {
            let mut space = [0; PREFACE.len()];
            let mut next = ReadBuf::new(&mut space[opening.len()..]);
            ready!(Pin::new(&mut self.socket).poll_read(cx, &mut next))?;
            opening.extend_from_slice(next.filled());
            let is_open = !next.filled().is_empty() && opening.len() < PREFACE.len();
            if !is_open || !PREFACE.starts_with(opening) {
                self.received = self.opening.take().unwrap_or_default().freeze();
            }
        }
        if self.received.is_empty() {
            return Pin::new(&mut self.socket).poll_read(cx, into);
        }
        let taken = self.received.len().min(into.remaining());
        into.put_slice(&self.received[..taken]);
        self.received.advance(taken);
        Poll::Ready(Ok(()))
    }

    /// Discards received bytes until the client stops sending, or the time is up.
    fn linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut space = [MaybeUninit::uninit(); 8 * 1024];
        loop {
            let mut discarded = ReadBuf::uninit(&mut space);
            if self.timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            let read = ready!(Pin::new(&mut self.socket).poll_read(cx, &mut discarded));
            if read.is_err() || discarded.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TimeoutIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.finish_write(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, pieces);
        self.finish_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(cx);
        self.finish_write(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.purpose != TimerPurpose::LingeringClose {
            let shut = Pin::new(&mut self.socket).poll_shutdown(cx);
            ready!(self.finish_write(cx, shut))?;
            if !self.connection.is_mid_request() {
                return Poll::Ready(Ok(()));
            }
            self.start_timer(TimerPurpose::LingeringClose, LINGER_TIMEOUT);
        }
        self.linger(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = self.poll_receive(cx, into);
        if into.filled().len() > before {
            self.connection.note_bytes();
        }
        if let Some(frames) = &mut self.frames
            && frames.note(&into.filled()[before..]).is_err()
        {
            self.connection.close(CloseReason::Flood);
            return Poll::Ready(Err(io::Error::other("flood of HTTP/2 frames")));
        }
        if self.purpose == TimerPurpose::FirstByte {
            if read.is_ready() {
                self.purpose = TimerPurpose::None;
                return read;
            }
            ready!(self.timer.as_mut().poll(cx));
            self.connection.close(CloseReason::NoFirstByte);
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "timeout: the client sent nothing",
            )));
        }
        read
    }
}

/// The time for which a lingering close keeps reading.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use gateway::connection::state::HttpEnd;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);
    const FIRST: Duration = Duration::from_secs(10);

    /// A wrapped socket with a buffer of eight bytes, the state of its connection, and the client's
    /// end.
    fn wrapped() -> (TimeoutIo<DuplexStream>, Arc<ConnectionState>, DuplexStream) {
        let ((ours, peer), connection) = (duplex(8), Arc::<ConnectionState>::default());
        (
            TimeoutIo::new(ours, Arc::clone(&connection), FIRST, LIMIT, |_| {}),
            connection,
            peer,
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_nothing_is_given_up() {
        let (mut wrapped, connection, _peer) = wrapped();
        let started = Instant::now();
        wrapped.flush().await.unwrap();
        let error = wrapped.read_u8().await.unwrap_err();
        assert_eq!(
            (error.kind(), started.elapsed()),
            (io::ErrorKind::TimedOut, FIRST)
        );
        assert_eq!(
            connection.close_reason(HttpEnd::Closed),
            CloseReason::NoFirstByte
        );
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_first_byte_a_client_may_be_silent() {
        let (mut wrapped, _, mut peer) = wrapped();
        peer.write_u8(1).await.unwrap();
        assert_eq!(wrapped.read_u8().await.unwrap(), 1);
        let later = tokio::spawn(async move {
            sleep(10 * FIRST).await;
            peer.write_u8(2).await
        });
        assert_eq!(wrapped.read_u8().await.unwrap(), 2);
        later.await.unwrap().unwrap();
    }

    /// A request that begins like the preface is not held back for longer than it does.
    #[tokio::test(start_paused = true)]
    async fn the_preface_is_read_at_once_and_other_bytes_as_they_come() {
        for (sent, read) in [
            (&b"POST /"[..], &b"POST /"[..]),
            (PREFACE, PREFACE),
            (&b"PRI *"[..], &b""[..]),
        ] {
            let ((ours, mut peer), connection) = (duplex(64), Arc::default());
            let mut wrapped = TimeoutIo::new(ours, connection, FIRST, LIMIT, |_| {});
            let reader = tokio::spawn(async move {
                let mut buffer = [0; 64];
                let read = wrapped.read(&mut buffer).await;
                let read = read.map_or_else(|_| Vec::new(), |length| buffer[..length].to_vec());
                (wrapped, read)
            });
            for byte in sent {
                peer.write_u8(*byte).await.unwrap();
                sleep(Duration::from_millis(1)).await;
            }
            let (_open, first) = reader.await.unwrap();
            assert!(read.starts_with(&first), "{first:?}");
            assert_eq!(first.is_empty(), read.is_empty());
            if sent == PREFACE {
                assert_eq!(first, PREFACE);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_client_can_finish_sending_its_request() {
        let (mut wrapped, _, mut peer) = wrapped();
        peer.write_u8(1).await.unwrap();
        wrapped.read_u8().await.unwrap();
        let client = tokio::spawn(async move {
            peer.write_all(&[2; 100]).await.unwrap();
            peer.read_u8().await.unwrap_err().kind()
        });
        let started = Instant::now();
        wrapped.shutdown().await.unwrap();
        assert!(
            started.elapsed() < LINGER_TIMEOUT,
            "until the client is done"
        );
        assert_eq!(client.await.unwrap(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_request_is_not_read_for_ever() {
        let (mut wrapped, connection, mut peer) = wrapped();
        peer.write_u8(1).await.unwrap();
        wrapped.read_u8().await.unwrap();
        let started = Instant::now();
        wrapped.shutdown().await.unwrap();
        assert_eq!(started.elapsed(), LINGER_TIMEOUT);
        assert!(connection.is_mid_request());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (mut wrapped, connection, _peer) = wrapped();
        let started = Instant::now();
        let error = wrapped.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!(
            (error.kind(), started.elapsed()),
            (io::ErrorKind::TimedOut, LIMIT)
        );
        assert_eq!(
            connection.close_reason(HttpEnd::Closed),
            CloseReason::SlowReader
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_is_served_as_long_as_it_takes_something() {
        let (mut wrapped, _, mut peer) = wrapped();
        let reader = tokio::spawn(async move {
            let mut read = 0;
            while read < 100 {
                sleep(LIMIT - Duration::from_secs(1)).await;
                read += peer.read(&mut [0; 8]).await.unwrap();
            }
            read
        });
        wrapped.write_all(&[0; 100]).await.unwrap();
        assert_eq!(reader.await.unwrap(), 100);
    }
}
