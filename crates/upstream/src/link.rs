//! One HTTP connection. Whoever asks or reads drives it: there is no task beside, so dropping it closes it.

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

use crate::dial::Connection;
use crate::outgoing::Sending;

pub(crate) struct Link {
    sender: SendRequest<Sending>,
    connection: Pin<Box<http1::Connection<TokioIo<Wire>, Sending>>>,
    is_over: bool,
    heard: Arc<AtomicBool>,
}

impl Link {
    pub(crate) async fn open(io: Box<dyn Connection>) -> hyper::Result<Self> {
        let heard = Arc::default();
        let wire = Wire { io, heard: Arc::clone(&heard) };
        // More than 100 headers are refused by default.
        let (sender, connection) = http1::Builder::new().max_buf_size(MAX_HEAD).handshake(TokioIo::new(wire)).await?;
        Ok(Self { sender, connection: Box::pin(connection), is_over: false, heard })
    }

    /// Sends a request; is there when the head of the answer is.
    pub(crate) async fn send(&mut self, request: Request<Sending>) -> hyper::Result<Response<Incoming>> {
        self.heard.store(false, Ordering::Relaxed);
        let mut response = pin!(self.sender.send_request(request));
        std::future::poll_fn(|cx| {
            self.drive(cx);
            response.as_mut().poll(cx)
        })
        .await
    }

    /// Whether a single byte came since the last request was sent.
    pub(crate) fn was_heard(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }

    /// Reads and writes what can be at once.
    pub(crate) fn drive(&mut self, cx: &mut Context<'_>) {
        if !self.is_over {
            self.is_over = self.connection.as_mut().poll(cx).is_ready();
        }
    }

    /// Whether a next request can be sent: the last answer was read to its end, nothing came after it, and the other
    /// side has not closed.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        !self.is_over && self.sender.is_ready()
    }
}

/// A connection that notes that it was read from.
struct Wire {
    io: Box<dyn Connection>,
    heard: Arc<AtomicBool>,
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.heard.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl AsyncWrite for Wire {
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
