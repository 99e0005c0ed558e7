//! Accepts and serves connections, and shuts down gracefully.
//!
//! ```text
//! serving ──stop──► lame duck ───────────► closing ───────────────► draining ──deadline──► aborting
//!                   still accepts, not     drops new SYNs, accepts   listeners closed,      open streams get a failure
//!                   ready, each response   handshakes in progress    open responses         event, requests without an
//!                   closes its connection  and their requests        continue               answer a 503
//! ```

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use admin::admin::Admin;
use gateway::connection::client_body::tracked_client_body;
use gateway::connection::state::ConnectionState;
use gateway::state::GatewayState;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use policy::lifecycle::Phase;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_rustls::server::TlsStream;

use crate::accept;
use crate::connection::serve_connection;
use crate::tls::TlsListener;

/// The kind of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Requested by a load balancer or supervisor: the gateway keeps accepting for a while, until
    /// its clients have noticed.
    Graceful,
    /// Requested interactively.
    Immediate,
}

/// The listeners of a gateway.
pub struct Listeners {
    /// The listeners for clients.
    pub clients: Vec<TcpListener>,
    /// The TLS that they share; `None` without TLS.
    pub tls: Option<TlsListener>,
    /// The listener of the admin address, if there is one.
    pub admin: Option<AdminListener>,
}

/// The listener of the admin address.
pub struct AdminListener {
    /// The listener.
    pub listener: TcpListener,
    /// Its TLS; `None` without TLS.
    pub tls: Option<TlsListener>,
    /// The service.
    pub admin: Admin,
}

/// Serves until `stop` resolves, then shuts down.
pub async fn serve(
    state: Arc<GatewayState>,
    listeners: Listeners,
    stop: impl Future<Output = Stop>,
) {
    let connections = Arc::new(Semaphore::new(state.limits.connections));
    // Closes the connections; each one has a receiver until its end.
    let (close, closing) = watch::channel(());
    let clients = Arc::new(Clients {
        state: Arc::clone(&state),
        tls: listeners.tls,
        closing,
    });
    let accepting: Vec<_> = listeners
        .clients
        .into_iter()
        .map(|listener| clients.accept(listener, Arc::clone(&connections)))
        .collect();
    let admin = listeners.admin.map(spawn_admin);

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
        // The task closes the listener and drops its reference to `clients`.
        let _ = task.await;
    }
    drop(clients);
    // Connections that were accepted last get time for their first read: one without any bytes is
    // closed as idle.
    sleep_until(deadline.min(Instant::now() + FIRST_READ_TIME)).await;
    drain(&state, close, deadline).await;
    if let Some(admin) = admin {
        admin.abort();
    }
}

async fn drain(state: &GatewayState, close: watch::Sender<()>, deadline: Instant) {
    let _ = close.send(());
    let mut closed = pin!(close.closed());
    if timeout_at(deadline, &mut closed).await.is_err() {
        state.lifecycle.enter(Phase::Aborting);
        // The failure events are written immediately; this is the time to send them.
        let _ = timeout(ABORT_FLUSH_TIMEOUT, closed).await;
    }
}

/// The state that the connections of clients share.
struct Clients {
    state: Arc<GatewayState>,
    tls: Option<TlsListener>,
    closing: watch::Receiver<()>,
}

// The tasks are spawned by plain functions: an `async fn` is compiled again by each crate that awaits it, and so would be
// all that it spawns.
impl Clients {
    /// Spawns a task that accepts connections until the gateway is draining.
    fn accept(self: &Arc<Self>, listener: TcpListener, permits: Arc<Semaphore>) -> JoinHandle<()> {
        let clients = Arc::clone(self);
        tokio::spawn(async move {
            let admit = |socket, permit| clients.admit(socket, permit);
            accept::accept_loop(listener, Arc::clone(&clients.state), permits, admit).await;
        })
    }

    /// Spawns a task that serves the connection.
    fn admit(self: &Arc<Self>, socket: TcpStream, permit: OwnedSemaphorePermit) {
        let _ = socket.set_nodelay(true);
        let mut closing = self.closing.clone();
        let clients = Arc::clone(self);
        tokio::spawn(async move {
            let close = async {
                let _ = closing.changed().await;
            };
            match &clients.tls {
                None => serve_connection(&clients.state, socket, reset, close).await,
                // Boxed, so that connections without TLS do not reserve its memory.
                Some(tls) => Box::pin(clients.serve_tls(tls, socket, close)).await,
            }
            drop(permit);
        });
    }

    async fn serve_tls(
        &self,
        tls: &TlsListener,
        socket: TcpStream,
        close: impl Future<Output = ()> + Send,
    ) {
        // A handshake in progress at a shutdown has its time.
        if let Some(stream) = tls.accept(socket).await {
            let reset = |stream: &TlsStream<TcpStream>| reset(stream.get_ref().0);
            serve_connection(&self.state, stream, reset, close).await;
        }
    }
}

/// Makes closing the socket send a reset and discard unsent data.
fn reset(socket: &TcpStream) {
    let _ = socket.set_zero_linger();
}

/// Spawns a task that accepts and serves connections to the admin address.
fn spawn_admin(admin: AdminListener) -> JoinHandle<()> {
    tokio::spawn(accept_admin(Arc::new(admin)))
}

async fn accept_admin(admin: Arc<AdminListener>) {
    loop {
        let Some(socket) = accept::next(&admin.listener).await else {
            continue;
        };
        let admin = Arc::clone(&admin);
        tokio::spawn(async move {
            match &admin.tls {
                None => serve_admin(socket, &admin).await,
                Some(tls) => {
                    if let Some(stream) = tls.accept(socket).await {
                        serve_admin(stream, &admin).await;
                    }
                }
            }
        });
    }
}

async fn serve_admin<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    socket: S,
    listener: &Arc<AdminListener>,
) {
    let connection = Arc::<ConnectionState>::default();
    let service = service_fn(move |request: Request<Incoming>| {
        let (listener, connection) = (Arc::clone(listener), Arc::clone(&connection));
        let request = request.map(|body| tracked_client_body(body, Arc::clone(&connection)));
        async move { Ok::<_, Infallible>(listener.admin.answer(request, &connection).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(listener.admin.state.limits.idle_timeout)
        .serve_connection(TokioIo::new(socket), service);
    // The client is gone, or has sent something else than HTTP.
    let _ = served.await;
}

/// The time for a handshake or a first request in flight to arrive.
const ARRIVAL_TIME: Duration = Duration::from_millis(500);
/// The time until a new connection has been read from.
const FIRST_READ_TIME: Duration = Duration::from_millis(50);
/// The time for failure events to be sent after the drain deadline.
const ABORT_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
