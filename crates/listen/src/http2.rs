//! Serves a connection over HTTP/2 (RFC 9113), after hyper's HTTP/1 has found its preface.
//!
//! ```text
//!   the task of the connection ──► frames, windows, pings, the idle timeout, GOAWAY
//!      │ spawns
//!      └─► a task for each stream ──► one request and its response, with a timer and an abort of its own
//! ```

mod streams;

use std::convert::Infallible;
use std::error::Error as _;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::FusedFuture;
use gateway::connection::client_body::tracked_client_body;
use gateway::connection::state::ConnectionState;
use gateway::cors;
use gateway::exchange::body::Body;
use gateway::service;
use gateway::state::GatewayState;
use http::header::{CONTENT_LENGTH, HOST};
use http::uri::Authority;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use telemetry::close_reason::CloseReason;
use tokio::io::{AsyncRead, AsyncWrite};

use self::streams::{StreamBody, Streams};
use crate::timeout_io::TimeoutIo;

/// Serves a connection to its end. It is closed with `GOAWAY` when `close` is ready, when the gateway
/// stops, or when it is idle; open streams continue.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    state: Arc<GatewayState>,
    socket: TimeoutIo<S>,
    connection: Arc<ConnectionState>,
    mut close: Pin<&mut (impl FusedFuture<Output = ()> + Send)>,
) -> hyper::Result<()> {
    let streams = Streams::new(Arc::clone(&connection), state.limits.write_stall);
    let service = {
        let state = Arc::clone(&state);
        service_fn(move |request: Request<Incoming>| {
            let state = Arc::clone(&state);
            async move { Ok::<_, Infallible>(answer(&state, request).await) }
        })
    };
    let mut http2 = builder(&state, &streams).serve_connection(TokioIo::new(socket), service);
    let mut is_closing = false;
    let ended = poll_fn(|cx| {
        loop {
            if let Poll::Ready(ended) = Pin::new(&mut http2).poll(cx) {
                return Poll::Ready(ended);
            }
            let is_stopping = state.lifecycle.is_stopping() || close.as_mut().poll(cx).is_ready();
            let idle_time = match is_closing {
                true => CLOSE_TIME,
                false => state.limits.idle_timeout,
            };
            match (is_closing, streams.poll_idle(cx, idle_time)) {
                (true, Poll::Ready(())) => return Poll::Ready(Ok(())),
                (false, Poll::Ready(())) => connection.close(CloseReason::Idle),
                (false, Poll::Pending) if is_stopping => {}
                _ => return Poll::Pending,
            }
            is_closing = true;
            streams.begin_idle();
            Pin::new(&mut http2).graceful_shutdown();
        }
    })
    .await;
    if ended.as_ref().is_err_and(hyper::Error::is_timeout) {
        connection.close(CloseReason::Unresponsive);
    }
    ended
}

/// Returns true if a connection has ended because its client violates the protocol.
pub(crate) fn is_violation(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref());
    cause.is_some_and(|cause: &h2::Error| cause.is_go_away() && cause.is_library())
}

/// The limits of a connection. hyper has defaults for most of them, which are not part of its
/// promises.
fn builder(state: &GatewayState, streams: &Streams) -> http2::Builder<Streams> {
    let limits = &state.limits;
    let mut builder = http2::Builder::new(streams.clone());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.http2_streams)
        // A head is refused with 431 above this size, as over HTTP/1. It also bounds the number of
        // `CONTINUATION` frames.
        .max_header_list_size(u32::try_from(limits.head_bytes()).unwrap_or(u32::MAX))
        // The bytes that a client can send before the gateway reads them: for one body, and for all of
        // a connection. Bodies are read at once, so the windows bound the speed over long distances.
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        // The bytes that may wait in a stream for a client that does not read. More stays in the body,
        // which is read only as fast as the client reads.
        .max_send_buf_size(SEND_BUFFER)
        // Streams that a client cancels before they were accepted, and streams that violate the
        // protocol, are work without a request: beyond these numbers the connection is closed.
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_local_error_reset_streams(MAX_STREAM_ERRORS)
        // A client that is gone without a word answers no ping, and neither does one that is stuck in
        // the middle of a head: nothing else may be sent there.
        .keep_alive_interval(limits.head_timeout / 2)
        .keep_alive_timeout(limits.head_timeout / 2);
    builder
}

/// Answers the request of a stream.
async fn answer(state: &Arc<GatewayState>, mut request: Request<Incoming>) -> Response<StreamBody> {
    let stream = streams::current();
    let is_head = request.method() == Method::HEAD;
    if request.headers().len() > MAX_HEADERS {
        let mut response = Response::new(StreamBody::empty());
        *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return response;
    }
    set_host(&mut request);
    let connection = Arc::clone(&stream.state);
    let request = request.map(|body| tracked_client_body(body, Arc::clone(&connection)));
    // Boxed, so that its memory is freed with the response.
    let answered = service::boxed(|| cors::answer(state, request, &connection)).await;
    match is_head {
        true => without_body(answered),
        false => answered.map(|body| StreamBody::new(body, stream)),
    }
}

/// Returns a response to `HEAD`: the head of the response to `GET`, and no body (RFC 9110 §9.3.2).
/// hyper leaves out the body over HTTP/1 only.
fn without_body(response: Response<Body>) -> Response<StreamBody> {
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact() {
        head.headers.insert(CONTENT_LENGTH, length.into());
    }
    Response::from_parts(head, StreamBody::empty())
}

/// Makes `:authority` the host, as it is over HTTP/1 (RFC 9113 §8.3.1). A `Host` that differs from it
/// stays beside it, and is refused as a second one.
fn set_host<B>(request: &mut Request<B>) {
    let authority = request.uri().authority().map(Authority::as_str);
    let Some(Ok(host)) = authority.map(HeaderValue::from_str) else {
        return;
    };
    if request.headers().get(HOST) != Some(&host) {
        request.headers_mut().append(HOST, host);
    }
}

/// The time for which a connection that is being closed stays open without a stream: a client that
/// does not confirm the end could otherwise keep it.
const CLOSE_TIME: Duration = Duration::from_secs(5);
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 1 << 20;
const SEND_BUFFER: usize = 64 << 10;
const MAX_PENDING_RESETS: usize = 20;
const MAX_STREAM_ERRORS: usize = 100;
/// The number of headers that hyper accepts over HTTP/1.
const MAX_HEADERS: usize = 100;
