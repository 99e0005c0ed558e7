//! One HTTP/1.1 connection. The caller that sends or reads drives it: there is no separate task, so
//! dropping it closes it.

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
use net::Connection;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::coalescing_waker::CoalescingWaker;
use crate::outgoing::RequestBody;

pub(crate) struct Http1Connection {
    sender: SendRequest<RequestBody>,
    /// `None` once it has ended: hyper notifies the waiting futures only when it is dropped.
    connection: Option<Http>,
    waker: CoalescingWaker,
    received: Arc<AtomicBool>,
}

type Http = Pin<Box<http1::Connection<TokioIo<CountingIo>, RequestBody>>>;

/// A connection that ended before the head of a response.
pub(crate) struct ConnectionEnded {
    pub(crate) error: hyper::Error,
    /// True if the host may have received a part of the request.
    pub(crate) was_written: bool,
}

impl Http1Connection {
    pub(crate) async fn open(io: Box<dyn Connection>) -> hyper::Result<Self> {
        let received = Arc::default();
        let io = CountingIo {
            io,
            received: Arc::clone(&received),
        };
        // hyper rejects more than 100 headers by default.
        let mut builder = http1::Builder::new();
        builder.max_header_size(MAX_HEAD).max_buf_size(MAX_HEAD);
        let (sender, connection) = builder.handshake(TokioIo::new(io)).await?;
        Ok(Self {
            sender,
            connection: Some(Box::pin(connection)),
            waker: CoalescingWaker::default(),
            received,
        })
    }

    /// Sends a request and returns the head of its response.
    pub(crate) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, ConnectionEnded> {
        self.received.store(false, Ordering::Relaxed);
        let mut response = pin!(self.sender.try_send_request(request));
        let Self {
            connection, waker, ..
        } = self;
        let sent = poll_fn(|cx| {
            waker.poll(cx, |cx| {
                drive(connection, cx, |cx| response.as_mut().poll(cx))
            })
        });
        sent.await.map_err(|mut unsent| ConnectionEnded {
            was_written: unsent.take_message().is_none(),
            error: unsent.into_error(),
        })
    }

    /// Returns true if at least one byte was received since the last request was sent.
    pub(crate) fn has_received(&self) -> bool {
        self.received.load(Ordering::Relaxed)
    }

    /// Polls `response`, and drives the connection while it is pending.
    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut response: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let Self {
            connection, waker, ..
        } = self;
        waker.poll(cx, |cx| drive(connection, cx, &mut response))
    }

    /// Returns true if another request can be sent: the last response was read to its end, no byte
    /// came after it, and the host has not closed the connection.
    pub(crate) fn is_idle(&mut self) -> bool {
        let nothing = self.poll(&mut Context::from_waker(Waker::noop()), |_| {
            Poll::<()>::Pending
        });
        nothing.is_pending() && self.connection.is_some() && self.sender.is_ready()
    }
}

/// Describes a connection error for logs, without any of the data that was sent over the
/// connection.
pub(crate) fn describe(error: &hyper::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Polls `response`; if it is pending, reads and writes on the connection and polls `response` once
/// more.
fn drive<T>(
    connection: &mut Option<Http>,
    cx: &mut Context<'_>,
    mut response: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    let polled = response(cx);
    if polled.is_ready() {
        return polled;
    }
    if connection
        .as_mut()
        .is_some_and(|connection| connection.as_mut().poll(cx).is_ready())
    {
        *connection = None;
    }
    response(cx)
}

/// An I/O wrapper that records that bytes were received.
struct CountingIo {
    io: Box<dyn Connection>,
    received: Arc<AtomicBool>,
}

impl AsyncRead for CountingIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.received.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl AsyncWrite for CountingIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
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
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}

/// The maximum size of a response head, in bytes.
const MAX_HEAD: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::net::SocketAddr;
    use std::sync::Mutex;
    use std::time::Duration;

    use bytes::Bytes;
    use tokio::time::timeout;

    use super::*;
    use crate::outgoing::Payload;

    /// Chunks to be read; an empty one is the end of the stream.
    type Inbox = Arc<Mutex<VecDeque<&'static [u8]>>>;

    /// A connection whose peer sends the next of its responses at each write.
    struct Script {
        inbox: Inbox,
        responses: VecDeque<&'static [u8]>,
    }

    impl AsyncRead for Script {
        fn poll_read(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
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
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            let response = self.responses.pop_front();
            self.inbox.lock().unwrap().extend(response);
            Poll::Ready(Ok(buf.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl Connection for Script {
        fn peer(&self) -> io::Result<SocketAddr> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    fn request() -> Request<RequestBody> {
        Request::post("/")
            .body(RequestBody::new(&Payload::from(Bytes::from_static(b"{}"))))
            .unwrap()
    }

    /// Sends a second request over a connection. The peer sends `before` ahead of it, and `after`
    /// once it was written. Returns how it failed, and whether any byte was received.
    async fn second(
        before: Option<&'static [u8]>,
        after: &'static [u8],
    ) -> (ConnectionEnded, bool) {
        let inbox = Inbox::default();
        let script = Script {
            inbox: Arc::clone(&inbox),
            responses: VecDeque::from([RESPONSE, after]),
        };
        let mut connection = Http1Connection::open(Box::new(script)).await.unwrap();
        assert_eq!(connection.send(request()).await.ok().unwrap().status(), 200);
        assert!(connection.is_idle());
        inbox.lock().unwrap().extend(before);
        let sent = timeout(Duration::from_secs(20), connection.send(request())).await;
        let ended = sent.expect("the end is reported at once").err().unwrap();
        (ended, connection.has_received())
    }

    #[tokio::test]
    async fn a_connection_that_closed_before_it_was_written_to_is_told_apart() {
        let (ended, has_received) = second(Some(b""), RESPONSE).await;
        assert!(!ended.was_written && !has_received, "{}", ended.error);
        let (ended, has_received) = second(None, b"").await;
        assert!(ended.was_written && !has_received, "{}", ended.error);
    }

    #[tokio::test]
    async fn bytes_that_come_before_a_request_are_no_answer_to_it() {
        let (ended, has_received) = second(Some(RESPONSE), b"").await;
        assert!(!ended.was_written && has_received, "{}", ended.error);
    }

    const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
}
