//! Accept, serve, and stop in order.
//!
//! ```text
//! serving ──stop──► lame duck ───────────► closing ──────────────► draining ──deadline──► cut
//!                   still accepts, each    no newcomers, but who     listeners closed,      each open stream gets one
//!                   answer closes its      has begun to connect      open answers go on     failure event, what has not
//!                   connection, not ready  or to ask is served                              begun a 503
//! ```

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use upstream::CoalescingWaker;

use crate::connection_state::{ConnectionState, TrackedBody};
use crate::gateway::Gateway;
use crate::lifecycle::Phase;
use crate::timeout_io::TimeoutIo;
use crate::{accept, admin};

/// How a process is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// By whoever balances load onto it: it stays a while for those who have not heard yet.
    Graceful,
    /// By the person in front of it.
    Immediate,
}

/// Serves until `stop` comes, then stops in order.
pub(crate) async fn serve(
    gateway: Arc<Gateway>,
    listeners: Vec<TcpListener>,
    admin: Option<TcpListener>,
    stop: impl Future<Output = Stop>,
) {
    let connections = Arc::new(Semaphore::new(gateway.limits.connections));
    let graceful = Arc::new(GracefulShutdown::new());
    let accepting: Vec<_> = listeners
        .into_iter()
        .map(|listener| {
            let (gateway, graceful) = (Arc::clone(&gateway), Arc::clone(&graceful));
            tokio::spawn(accept::all(listener, Arc::clone(&gateway), Arc::clone(&connections), move |socket, place| {
                admit(socket, place, &gateway, &graceful);
            }))
        })
        .collect();
    let admin = admin.map(|listener| tokio::spawn(accept_admin(listener, Arc::clone(&gateway))));

    let how = stop.await;
    gateway.lifecycle.enter(Phase::LameDuck);
    if how == Stop::Graceful {
        sleep(gateway.limits.lame_duck).await;
    }
    let deadline = Instant::now() + gateway.limits.drain;
    if how == Stop::Graceful {
        gateway.lifecycle.enter(Phase::Closing);
        sleep_until(deadline.min(Instant::now() + ON_ITS_WAY)).await;
    }
    gateway.lifecycle.enter(Phase::Draining);
    for task in accepting {
        // Its end closes the listener, and gives back its hold on `graceful`.
        let _ = task.await;
    }
    // Who was let in last has its first bytes read: a connection without any is closed as idle.
    sleep_until(deadline.min(Instant::now() + FIRST_READ)).await;
    if let Some(graceful) = Arc::into_inner(graceful) {
        drain(&gateway, graceful, deadline).await;
    }
    if let Some(admin) = admin {
        admin.abort();
    }
}

async fn drain(gateway: &Gateway, graceful: GracefulShutdown, deadline: Instant) {
    let mut closed = pin!(graceful.shutdown());
    if timeout_at(deadline, &mut closed).await.is_err() {
        gateway.lifecycle.enter(Phase::Aborting);
        // The failure events are written at once; this is for their way through the sockets.
        let _ = timeout(LAST_WORDS, closed).await;
    }
}

/// Serves a connection in a task of its own.
fn admit(socket: TcpStream, place: OwnedSemaphorePermit, gateway: &Arc<Gateway>, graceful: &GracefulShutdown) {
    let _ = socket.set_nodelay(true);
    let (gateway, line) = (Arc::clone(gateway), Arc::<ConnectionState>::default());
    // Boxed, since each future that it is handed through would keep a place of its size.
    let served = Box::pin(graceful.watch(connection(&gateway, socket, &line, reset)));
    tokio::spawn(async move {
        attend(&gateway, &line, served).await;
        drop(place);
    });
}

/// Closes a socket with what was not sent, when it is dropped.
fn reset(socket: &TcpStream) {
    let _ = socket.set_zero_linger();
}

/// Serves a connection to its end.
pub(crate) async fn attend(
    gateway: &Gateway,
    line: &ConnectionState,
    served: impl Future<Output = hyper::Result<()>> + Unpin,
) {
    gateway.metrics.connection_opened();
    let served = at_once(served).await;
    let parting = line.parting(&served);
    if let Err(error) = served {
        tracing::debug!(%error, "connection ended");
    }
    gateway.metrics.connection_closed(parting);
}

/// A connection of a client that is still to be served: what HTTP and the limits ask of it is in here.
/// `reset` is what becomes of the socket of a client that does not read.
pub(crate) fn connection<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    gateway: &Arc<Gateway>,
    socket: S,
    line: &Arc<ConnectionState>,
    reset: fn(&S),
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + Send + 'static {
    let limits = &gateway.limits;
    let (head, buffer) = (limits.head_timeout, limits.head_bytes());
    let socket = TimeoutIo::new(socket, Arc::clone(line), limits.first_byte, limits.write_stall, reset);
    let (gateway, line) = (Arc::clone(gateway), Arc::clone(line));
    let service = service_fn(move |request: Request<Incoming>| {
        let gateway = Arc::clone(&gateway);
        let line = Arc::clone(&line);
        let request = request.map(|body| TrackedBody::new(body, Arc::clone(&line)));
        // Boxed, so that it is gone once there is an answer: the connection would keep its place for as long as it lives.
        Box::pin(async move { Ok::<_, Infallible>(gateway.answer_guarded(request, &line).await) })
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .max_buf_size(buffer)
        .max_header_size(buffer)
        .serve_connection(TokioIo::new(socket), service)
}

/// Awaits `work`, whose parts wake each other, without a turn of the scheduler for each time that they do.
async fn at_once<F: Future + Unpin>(mut work: F) -> F::Output {
    let bell = CoalescingWaker::new();
    poll_fn(|cx| bell.poll(cx, |cx| Pin::new(&mut work).poll(cx))).await
}

async fn accept_admin(listener: TcpListener, gateway: Arc<Gateway>) {
    loop {
        let Some(socket) = accept::next(&listener).await else { continue };
        let gateway = Arc::clone(&gateway);
        let service = service_fn(move |request| {
            let response = admin::answer(&gateway, &request);
            async move { Ok::<_, Infallible>(response) }
        });
        let served = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(socket), service);
        tokio::spawn(async move { served.await.ok() });
    }
}

/// How long a connection or a request may be on its way.
const ON_ITS_WAY: Duration = Duration::from_millis(500);
/// So long it takes at most until a new connection is read from.
const FIRST_READ: Duration = Duration::from_millis(50);
/// How long failure events may take to leave after the drain's deadline.
const LAST_WORDS: Duration = Duration::from_secs(1);
