//! One HTTP connection. Whoever asks or reads drives it: there is no task beside, so dropping it closes it.

use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::coalescing_waker::CoalescingWaker;
use crate::dial::Connection;
use crate::outgoing::Sending;

pub(crate) struct Http1Connection {
    sender: SendRequest<Sending>,
    /// None when it is over. Only by dropping it do those learn of it who wait.
    connection: Option<Http>,
    bell: CoalescingWaker,
    heard: Arc<AtomicBool>,
}

type Http = Pin<Box<http1::Connection<TokioIo<CountingIo>, Sending>>>;

/// The connection ended where an answer should have been.
pub(crate) struct Ended {
    pub(crate) error: hyper::Error,
    /// Whether the host may have seen something of the request.
    pub(crate) was_written: bool,
}

impl Http1Connection {
    pub(crate) async fn open(io: Box<dyn Connection>) -> hyper::Result<Self> {
        let heard = Arc::default();
        let wire = CountingIo { io, heard: Arc::clone(&heard) };
        // More than 100 headers are refused by default.
        let mut builder = http1::Builder::new();
        builder.max_header_size(MAX_HEAD).max_buf_size(MAX_HEAD);
        let (sender, connection) = builder.handshake(TokioIo::new(wire)).await?;
        Ok(Self { sender, connection: Some(Box::pin(connection)), bell: CoalescingWaker::new(), heard })
    }

    /// Sends a request; is there when the head of the answer is.
    pub(crate) async fn send(&mut self, request: Request<Sending>) -> Result<Response<Incoming>, Ended> {
        self.heard.store(false, Ordering::Relaxed);
        let mut response = pin!(self.sender.try_send_request(request));
        let Self { connection, bell, .. } = self;
        let sent = poll_fn(|cx| bell.poll(cx, |cx| drive(connection, cx, |cx| response.as_mut().poll(cx))));
        sent.await.map_err(|mut ended| Ended { was_written: ended.take_message().is_none(), error: ended.into_error() })
    }

    /// Whether a single byte came since the last request was sent.
    pub(crate) fn was_heard(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }

    /// Polls for something of an answer, and reads and writes what can be at once as long as that is not there.
    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut answer: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let Self { connection, bell, .. } = self;
        bell.poll(cx, |cx| drive(connection, cx, &mut answer))
    }

    /// Whether a next request can be sent: the last answer was read to its end, nothing came after it, and the other
    /// side has not closed.
    pub(crate) fn is_idle(&mut self) -> bool {
        let nothing = self.poll(&mut Context::from_waker(Waker::noop()), |_| Poll::<()>::Pending);
        nothing.is_pending() && self.connection.is_some() && self.sender.is_ready()
    }
}

/// What went wrong on a connection, for the log: nothing of what was sent over it.
pub(crate) fn describe(error: &hyper::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn drive<T>(
    connection: &mut Option<Http>,
    cx: &mut Context<'_>,
    mut answer: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    let polled = answer(cx);
    if polled.is_ready() {
        return polled;
    }
    if connection.as_mut().is_some_and(|connection| connection.as_mut().poll(cx).is_ready()) {
        *connection = None;
    }
    answer(cx)
}

/// A connection that notes that it was read from.
struct CountingIo {
    io: Box<dyn Connection>,
    heard: Arc<AtomicBool>,
}

impl AsyncRead for CountingIo {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.heard.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl AsyncWrite for CountingIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

/// The largest head of an answer, in bytes.
const MAX_HEAD: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;
    use std::time::Duration;

    use bytes::Bytes;
    use tokio::time::timeout;

    use super::*;
    use crate::Payload;

    /// What there is to be read; an empty piece is the end.
    type Inbox = Arc<Mutex<VecDeque<&'static [u8]>>>;

    /// A connection whose other side says the next of these when it is written to.
    struct Script {
        inbox: Inbox,
        answers: VecDeque<&'static [u8]>,
    }

    impl AsyncRead for Script {
        fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            match self.inbox.lock().unwrap().pop_front() {
                Some(bytes) => {
                    buf.put_slice(bytes);
                    Poll::Ready(Ok(()))
                }
                None => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
            }
        }
    }

    impl AsyncWrite for Script {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            let answer = self.answers.pop_front();
            self.inbox.lock().unwrap().extend(answer);
            Poll::Ready(Ok(buf.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn request() -> Request<Sending> {
        Request::post("/").body(Sending::new(&Payload::from(Bytes::from_static(b"{}")))).unwrap()
    }

    /// How the second request over a link ends, to which `before` is said as it is sent, and `after` when it was
    /// written; and whether anything was heard.
    async fn second(before: Option<&'static [u8]>, after: &'static [u8]) -> (Ended, bool) {
        let inbox = Inbox::default();
        let script = Script { inbox: Arc::clone(&inbox), answers: VecDeque::from([ANSWER, after]) };
        let mut link = Http1Connection::open(Box::new(script)).await.unwrap();
        assert_eq!(link.send(request()).await.ok().unwrap().status(), 200);
        assert!(link.is_idle());
        inbox.lock().unwrap().extend(before);
        let sent = timeout(Duration::from_secs(20), link.send(request())).await;
        let ended = sent.expect("an end is told at once").err().unwrap();
        (ended, link.was_heard())
    }

    #[tokio::test]
    async fn a_connection_that_closed_before_it_was_written_to_is_told_apart() {
        let (ended, was_heard) = second(Some(b""), ANSWER).await;
        assert!(!ended.was_written && !was_heard, "{}", ended.error);
        let (ended, was_heard) = second(None, b"").await;
        assert!(ended.was_written && !was_heard, "{}", ended.error);
    }

    #[tokio::test]
    async fn bytes_that_come_before_a_request_are_no_answer_to_it() {
        let (ended, was_heard) = second(Some(ANSWER), b"").await;
        assert!(!ended.was_written && was_heard, "{}", ended.error);
    }

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
}
