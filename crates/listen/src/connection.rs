//! Serves a client connection over HTTP/1 or HTTP/2, with its limits.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::FutureExt as _;
use gateway::connection::client_body::tracked_client_body;
use gateway::connection::state::{ConnectionState, HttpEnd};
use gateway::service;
use gateway::state::GatewayState;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use websocket::handshake::{self, Opening};

use crate::coalescing_waker::CoalescingWaker;
use crate::head_timer::HeadTimer;
use crate::http2;
use crate::timeout_io::TimeoutIo;

/// Serves one client connection to its end, and counts it. It is closed after the open requests when
/// `close` is ready. `reset` makes closing the socket of a client that does not read in time a reset.
pub async fn serve_connection<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    state: &Arc<GatewayState>,
    socket: S,
    reset: fn(&S),
    close: impl Future<Output = ()> + Send,
) {
    let connection = Arc::<ConnectionState>::default();
    // Boxed, because each wrapping future would reserve its size again.
    let served = Box::pin(http_connection(state, socket, &connection, reset, close));
    drive(state, &connection, served).await;
}

/// Drives a connection to its end and counts it.
async fn drive(
    state: &GatewayState,
    connection: &ConnectionState,
    served: impl Future<Output = hyper::Result<()>> + Unpin,
) {
    state.metrics.connections.inc();
    let served = coalesce_wakes(served).await;
    let end = match &served {
        Err(error) if error.is_parse() || http2::is_violation(error) => HttpEnd::Violation,
        Err(error) if error.is_timeout() => HttpEnd::Timeout,
        _ => HttpEnd::Closed,
    };
    let reason = connection.close_reason(end);
    if let Err(error) = served {
        tracing::debug!(%error, "connection ended");
    }
    state.metrics.connection_closed(reason);
}

/// Creates the future that serves a client connection: over HTTP/1, or over HTTP/2 if it begins with
/// the preface of that. `close` is ready when the connection has to be closed after the open requests.
/// `reset` is applied to the socket of a client that does not read in time.
fn http_connection<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    state: &Arc<GatewayState>,
    socket: S,
    connection: &Arc<ConnectionState>,
    reset: fn(&S),
    close: impl Future<Output = ()> + Send,
) -> impl Future<Output = hyper::Result<()>> + Send {
    let limits = &state.limits;
    let idle = limits.idle_timeout;
    let timer = HeadTimer::new(Arc::clone(connection), limits.head_timeout);
    let buffer = limits.head_bytes();
    let socket = TimeoutIo::new(
        socket,
        Arc::clone(connection),
        limits.first_byte,
        limits.write_stall,
        reset,
    );
    let (state, connection) = (Arc::clone(state), Arc::clone(connection));
    // The WebSocket that the connection is to become.
    let opening = Arc::<Mutex<Option<Opening>>>::default();
    let service = {
        let (state, connection) = (Arc::clone(&state), Arc::clone(&connection));
        let opening = Arc::clone(&opening);
        service_fn(move |request: Request<Incoming>| {
            let state = Arc::clone(&state);
            let connection = Arc::clone(&connection);
            let opening = Arc::clone(&opening);
            let request = request.map(|body| tracked_client_body(body, Arc::clone(&connection)));
            // Boxed, so that its memory is freed with the response: otherwise the connection would
            // reserve it for its lifetime.
            service::boxed(|| async move {
                Ok::<_, Infallible>(handshake::answer(&state, request, &connection, &opening).await)
            })
        })
    };
    let mut http1 = http1::Builder::new()
        .timer(timer)
        .header_read_timeout(idle)
        .max_buf_size(buffer)
        .max_header_size(buffer)
        .serve_connection(TokioIo::new(socket), service);
    // `http1` is used where the block has captured it: a binding would reserve its memory again.
    async move {
        let mut close = pin!(close.fuse());
        let mut is_closing = false;
        let ended = poll_fn(|cx| {
            // A request that has arrived is read before the connection is closed.
            let polled = Pin::new(&mut http1).poll(cx);
            if polled.is_ready() || is_closing || close.as_mut().poll(cx).is_pending() {
                return polled;
            }
            is_closing = true;
            Pin::new(&mut http1).graceful_shutdown();
            Pin::new(&mut http1).poll(cx)
        })
        .await;
        let opening = opening
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let (Ok(()), Some(opening)) = (&ended, opening) {
            let parts = http1.into_parts();
            let (socket, read) = (parts.io.into_inner(), parts.read_buf);
            // Boxed for the same reason as below.
            let served = websocket::serve(&state, &connection, opening, (socket, read), close);
            Box::pin(served).await;
            return Ok(());
        }
        match ended {
            Err(error) if error.is_parse_version_h2() && state.limits.http2_streams > 0 => {}
            ended => return ended,
        }
        let parts = http1.into_parts();
        let mut socket = parts.io.into_inner();
        socket.begin_http2(parts.read_buf);
        // Boxed, so that connections over HTTP/1 do not reserve its memory.
        Box::pin(http2::serve(state, socket, connection, close)).await
    }
}

/// Awaits `work`, whose parts wake each other, without a pass through the scheduler for each
/// wake-up.
async fn coalesce_wakes<F: Future + Unpin>(mut work: F) -> F::Output {
    let waker = CoalescingWaker::default();
    poll_fn(|cx| waker.poll(cx, |cx| Pin::new(&mut work).poll(cx))).await
}
