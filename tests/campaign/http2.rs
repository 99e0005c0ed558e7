//! The client's side of HTTP/2 (RFC 9113): streams on a connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use testkit::http2::{Frame, kind};
use testkit::{End, Response};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use crate::client::{ClientExchange, ClientRequest, Sent};
use crate::fault::{Fault, Leave, Spot};
use crate::pipe::Pipe;
use crate::visit::LONG;

/// An open connection. It is closed with `GOAWAY` when all copies and their exchanges are dropped.
#[derive(Clone)]
pub(crate) struct Http2Connection {
    requests: SendRequest<Bytes>,
    driver: AbortHandle,
    goaway: Arc<GoAway>,
}

/// The wish to send `GOAWAY` while streams are open, for which `h2` has no method.
#[derive(Default)]
struct GoAway {
    is_wanted: AtomicBool,
    driver: Notify,
}

impl Http2Connection {
    /// Opens a connection with a window of `at_once` bytes for each stream.
    pub(crate) async fn open(pipe: Pipe, at_once: usize) -> Self {
        let goaway = Arc::<GoAway>::default();
        let socket = Socket {
            pipe,
            goaway: Arc::clone(&goaway),
            frame: &[],
        };
        let (requests, connection) = Builder::new()
            .initial_window_size(at_once as u32)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(socket)
            .await
            .expect("the gateway reads the preface");
        let wanted = Arc::clone(&goaway);
        let driver = tokio::spawn(async move {
            let mut connection = connection;
            tokio::select! {
                // The exchanges report errors.
                _ = &mut connection => return,
                () = wanted.driver.notified() => {}
            }
            let _ = connection.await;
        });
        Self {
            requests,
            driver: driver.abort_handle(),
            goaway,
        }
    }

    fn send_goaway(&self) {
        self.goaway.is_wanted.store(true, Ordering::Relaxed);
        self.goaway.driver.notify_one();
    }
}

/// The socket of a client, which writes `GOAWAY` between two frames of `h2`.
struct Socket {
    pipe: Pipe,
    goaway: Arc<GoAway>,
    /// The rest of a `GOAWAY` that is being written.
    frame: &'static [u8],
}

impl Socket {
    fn poll_goaway(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.frame.is_empty() {
            let written = ready!(Pin::new(&mut self.pipe).poll_write(cx, self.frame))?;
            self.frame = &self.frame[written..];
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_read(cx, into)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_goaway(cx))?;
        Pin::new(&mut self.pipe).poll_write(cx, bytes)
    }

    /// `h2` flushes after it has written whole frames.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.goaway.is_wanted.swap(false, Ordering::Relaxed) {
            self.frame = GOAWAY;
        }
        ready!(self.poll_goaway(cx))?;
        Pin::new(&mut self.pipe).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_shutdown(cx)
    }
}

/// A request and its response on a stream.
pub(crate) struct Http2Exchange {
    connection: Http2Connection,
    request: ClientRequest,
    /// The number of bytes of the request in a frame.
    at_once: usize,
    /// The number of bytes of the response after which the client sends `GOAWAY`.
    goaway: Option<usize>,
    upload: Option<SendStream<Bytes>>,
    is_half_sent: bool,
    /// Ready with the head of the response.
    head: Option<ResponseFuture>,
    /// The response, as far as it was read, and the rest of its body.
    response: Option<(Response, RecvStream)>,
}

impl Http2Exchange {
    pub(crate) fn new(connection: Http2Connection, fault: &Fault) -> Self {
        let request = ClientRequest::new(fault);
        Self {
            connection,
            request,
            at_once: fault.pace.at_once,
            goaway: fault.transport.goaway().map(|spot| spot.of(LONG)),
            upload: None,
            is_half_sent: false,
            head: None,
            response: None,
        }
    }

    /// Sends the head of the request, and a part of the body. The error is the end of the connection.
    async fn try_send(&mut self, end: usize) -> Result<(), h2::Error> {
        let ClientRequest {
            path,
            headers,
            body,
        } = &self.request;
        let mut head = http::Request::post(format!("http://gateway{path}"));
        for (name, value) in headers {
            head = head.header(*name, value);
        }
        let head = head.body(()).expect("a valid head");
        let mut requests = self.connection.requests.clone().ready().await?;
        let (response, mut upload) = requests.send_request(head, false)?;
        self.head = Some(response);
        for piece in body[..end].chunks(self.at_once) {
            upload.send_data(Bytes::copy_from_slice(piece), false)?;
        }
        self.is_half_sent = end < body.len();
        if !self.is_half_sent {
            upload.send_data(Bytes::new(), true)?;
        }
        self.upload = Some(upload);
        Ok(())
    }

    /// Reads the head of the response, if it was not read before.
    async fn read_head(&mut self) {
        let Some(head) = &mut self.head else {
            return;
        };
        let head = head.await;
        self.head = None;
        self.response = head.ok().map(|head| {
            let (head, body) = head.into_parts();
            let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into();
            let headers = head.headers.iter();
            let headers = headers.map(|(name, value)| (name.to_string(), text(value)));
            let mut response = Response::new(head.status.as_u16(), headers.collect(), Vec::new());
            response.end = End::Closed;
            (response, body)
        });
    }
}

impl ClientExchange for Http2Exchange {
    async fn send(&mut self, up_to: Option<Spot>) -> Sent {
        let whole = self.request.body.len();
        let end = up_to.map_or(whole, |spot| spot.of(whole));
        // The gateway may have closed the connection already.
        let _ = self.try_send(end).await;
        Sent {
            head: true,
            whole: end == whole,
        }
    }

    async fn read(&mut self, enough: usize) {
        if enough > 0 {
            self.read_head().await;
        }
        let Some((response, body)) = &mut self.response else {
            return;
        };
        while response.body.len() < enough && response.end == End::Closed {
            match body.data().await {
                None => response.end = End::Complete,
                Some(Err(_)) => response.end = End::Reset,
                Some(Ok(data)) => {
                    response.body.extend(&data);
                    // A stream that has ended has no window.
                    let _ = body.flow_control().release_capacity(data.len());
                }
            }
            if self.goaway.is_some_and(|at| at <= response.body.len()) {
                self.goaway = None;
                self.connection.send_goaway();
            }
        }
    }

    async fn leave(&mut self, how: Leave) {
        // The clock is paused: it advances when all that can be written is.
        sleep(WRITTEN).await;
        match (how, &mut self.upload) {
            (Leave::Reset, Some(upload)) => upload.send_reset(Reason::CANCEL),
            (Leave::HalfClose, Some(upload)) if self.is_half_sent => {
                // The gateway may have reset the stream already.
                let _ = upload.send_data(Bytes::new(), true);
            }
            (Leave::HalfClose, _) => self.connection.send_goaway(),
            (Leave::Close, _) => self.connection.driver.abort(),
            (Leave::Reset | Leave::Still, _) => {}
        }
    }

    fn response(self) -> Option<Response> {
        self.response.map(|(response, _)| response)
    }
}

/// The body of the first response on a connection, as far as it is in these bytes.
pub(crate) fn first_body(bytes: &[u8]) -> Vec<u8> {
    let frames = Frame::all(bytes).into_iter();
    let data = frames.filter(|frame| frame.kind == kind::DATA && frame.stream == 1);
    data.flat_map(|frame| frame.payload).collect()
}

/// `GOAWAY` without an error: no stream of the server was processed.
const GOAWAY: &[u8] = b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0";
/// More than all responses on a connection: one that is not read does not hold up another.
const CONNECTION_WINDOW: u32 = 1 << 20;
/// The time for what was sent to be written.
const WRITTEN: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use simulator::Protocol;
    use testkit::http2::PREFACE;

    use super::*;
    use crate::fault::{Kind, Transport};
    use crate::pipe::{Count, Recorder, pair};

    /// `GOAWAY` is a frame between others, also on a connection that takes a few bytes at once, and
    /// the response is read to its end.
    #[tokio::test]
    async fn goaway_is_sent_within_a_response() {
        let (recorder, mut fault) = (
            Recorder::default(),
            Fault::planted(Protocol::Chat, Protocol::Chat, true, Kind::Nothing),
        );
        fault.transport = Transport::Http2 {
            goaway: Some(Spot::MIDDLE),
        };
        let tape = recorder.next();
        let (served, client) = pair(20, &Count::default());
        let server = tokio::spawn(async move {
            let mut connection = h2::server::handshake(served).await.unwrap();
            while let Some(request) = connection.accept().await {
                let (_, mut respond) = request.unwrap();
                let response = http::Response::new(());
                let mut body = respond.send_response(response, false).unwrap();
                body.send_data(vec![b'x'; 5_000].into(), true).unwrap();
            }
        });
        let connection = Http2Connection::open(client.recorded(recorder), 100).await;
        let mut exchange = Http2Exchange::new(connection, &fault);
        exchange.send(None).await;
        exchange.read(usize::MAX).await;
        let response = exchange.response().unwrap();
        server.await.unwrap();
        assert_eq!((response.end, response.body.len()), (End::Complete, 5_000));
        let written = tape.written().bytes;
        let frames = Frame::all(&written[PREFACE.len()..]);
        let lengths = frames.iter().map(|frame| frame.bytes().len());
        assert_eq!(PREFACE.len() + lengths.sum::<usize>(), written.len());
        let kinds: Vec<_> = frames.iter().map(|frame| frame.kind).collect();
        let goaway = kinds.iter().position(|kind| *kind == kind::GOAWAY);
        assert!(
            kinds[goaway.unwrap()..].contains(&kind::WINDOW_UPDATE),
            "{kinds:?}"
        );
    }
}
