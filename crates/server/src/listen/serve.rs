//! Accepts and serves connections, and shuts down gracefully.
//!
//! ```text
//! serving ──stop──► lame duck ───────────► closing ───────────────► draining ──deadline──► aborting
//!                   still accepts, not     drops new SYNs, accepts   listeners closed,      open streams get a failure
//!                   ready, each response   handshakes in progress    open responses         event, requests without an
//!                   closes its connection  and their requests        continue               answer a 503
//! ```

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use admin::admin::Admin;
use gateway::connection::state::{ConnectionState, HttpEnd, TrackedBody};
use gateway::service;
use gateway::state::GatewayState;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use policy::lifecycle::Phase;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::accept;
use super::coalescing_waker::CoalescingWaker;
use super::head_timer::HeadTimer;
use super::timeout_io::TimeoutIo;

/// The kind of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Requested by a load balancer or supervisor: the gateway keeps accepting for a while, until
    /// its clients have noticed.
    Graceful,
    /// Requested interactively.
    Immediate,
}

/// Serves until `stop` resolves, then shuts down.
pub(crate) async fn serve(
    state: Arc<GatewayState>,
    listeners: Vec<TcpListener>,
    admin: Option<(TcpListener, Admin)>,
    stop: impl Future<Output = Stop>,
) {
    let connections = Arc::new(Semaphore::new(state.limits.connections));
    let graceful = Arc::new(GracefulShutdown::new());
    let accepting: Vec<_> = listeners
        .into_iter()
        .map(|listener| {
            let state = Arc::clone(&state);
            let graceful = Arc::clone(&graceful);
            tokio::spawn(accept::accept_loop(
                listener,
                Arc::clone(&state),
                Arc::clone(&connections),
                move |socket, permit| {
                    admit(socket, permit, &state, &graceful);
                },
            ))
        })
        .collect();
    let admin =
        admin.map(|(listener, admin)| tokio::spawn(accept_admin(listener, Arc::new(admin))));

    let kind = stop.await;
    state.lifecycle.enter(Phase::LameDuck);
    if kind == Stop::Graceful {
        sleep(state.limits.lame_duck).await;
    }
    let deadline = Instant::now() + state.limits.drain;
    if kind == Stop::Graceful {
        state.lifecycle.enter(Phase::Closing);
        sleep_until(deadline.min(Instant::now() + ARRIVAL_TIME)).await;
    }
    state.lifecycle.enter(Phase::Draining);
    for task in accepting {
        // The task closes the listener and drops its reference to `graceful`.
        let _ = task.await;
    }
    // Connections that were accepted last get time for their first read: one without any bytes is
    // closed as idle.
    sleep_until(deadline.min(Instant::now() + FIRST_READ_TIME)).await;
    if let Some(graceful) = Arc::into_inner(graceful) {
        drain(&state, graceful, deadline).await;
    }
    if let Some(admin) = admin {
        admin.abort();
    }
}

async fn drain(state: &GatewayState, graceful: GracefulShutdown, deadline: Instant) {
    let mut closed = pin!(graceful.shutdown());
    if timeout_at(deadline, &mut closed).await.is_err() {
        state.lifecycle.enter(Phase::Aborting);
        // The failure events are written immediately; this is the time to send them.
        let _ = timeout(ABORT_FLUSH_TIMEOUT, closed).await;
    }
}

/// Spawns a task that serves the connection.
fn admit(
    socket: TcpStream,
    permit: OwnedSemaphorePermit,
    state: &Arc<GatewayState>,
    graceful: &GracefulShutdown,
) {
    let _ = socket.set_nodelay(true);
    let state = Arc::clone(state);
    let connection = Arc::<ConnectionState>::default();
    // Boxed, because each wrapping future would reserve its size again.
    let served = Box::pin(graceful.watch(http_connection(&state, socket, &connection, reset)));
    tokio::spawn(async move {
        drive(&state, &connection, served).await;
        drop(permit);
    });
}

/// Makes closing the socket send a reset and discard unsent data.
fn reset(socket: &TcpStream) {
    let _ = socket.set_zero_linger();
}

/// Drives a connection to its end and counts it.
pub(crate) async fn drive(
    state: &GatewayState,
    connection: &ConnectionState,
    served: impl Future<Output = hyper::Result<()>> + Unpin,
) {
    state.metrics.connections.inc();
    let served = coalesce_wakes(served).await;
    let end = match &served {
        Err(error) if error.is_parse() => HttpEnd::Violation,
        Err(error) if error.is_timeout() => HttpEnd::Timeout,
        _ => HttpEnd::Closed,
    };
    let reason = connection.close_reason(end);
    if let Err(error) = served {
        tracing::debug!(%error, "connection ended");
    }
    state.metrics.connection_closed(reason);
}

/// Creates the future that serves a client connection over HTTP/1, with its limits. `reset` is
/// applied to the socket of a client that does not read in time.
pub(crate) fn http_connection<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    state: &Arc<GatewayState>,
    socket: S,
    connection: &Arc<ConnectionState>,
    reset: fn(&S),
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + Send + 'static {
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
    let state = Arc::clone(state);
    let connection = Arc::clone(connection);
    let service = service_fn(move |request: Request<Incoming>| {
        let state = Arc::clone(&state);
        let connection = Arc::clone(&connection);
        let request = request.map(|body| TrackedBody::new(body, Arc::clone(&connection)));
        // Boxed, so that its memory is freed with the response: otherwise the connection would
        // reserve it for its lifetime.
        service::boxed(|| async move {
            Ok::<_, Infallible>(service::answer(&state, request, &connection).await)
        })
    });
    http1::Builder::new()
        .timer(timer)
        .header_read_timeout(idle)
        .max_buf_size(buffer)
        .max_header_size(buffer)
        .serve_connection(TokioIo::new(socket), service)
}

/// Awaits `work`, whose parts wake each other, without a pass through the scheduler for each
/// wake-up.
async fn coalesce_wakes<F: Future + Unpin>(mut work: F) -> F::Output {
    let waker = CoalescingWaker::default();
    poll_fn(|cx| waker.poll(cx, |cx| Pin::new(&mut work).poll(cx))).await
}

async fn accept_admin(listener: TcpListener, admin: Arc<Admin>) {
    loop {
        let Some(socket) = accept::next(&listener).await else {
            continue;
        };
        let idle = admin.state.limits.idle_timeout;
        let admin = Arc::clone(&admin);
        let connection = Arc::<ConnectionState>::default();
        let service = service_fn(move |request: Request<Incoming>| {
            let (admin, connection) = (Arc::clone(&admin), Arc::clone(&connection));
            let request = request.map(|body| TrackedBody::new(body, Arc::clone(&connection)));
            async move { Ok::<_, Infallible>(admin.answer(request, &connection).await) }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(idle)
            .serve_connection(TokioIo::new(socket), service);
        tokio::spawn(async move { served.await.ok() });
    }
}

/// The time for a handshake or a first request in flight to arrive.
const ARRIVAL_TIME: Duration = Duration::from_millis(500);
/// The time until a new connection has been read from.
const FIRST_READ_TIME: Duration = Duration::from_millis(50);
/// The time for failure events to be sent after the drain deadline.
const ABORT_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
