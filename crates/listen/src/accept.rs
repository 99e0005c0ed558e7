//! The accept loop, and closing the listener without resetting queued connections.
//!
//! Closing a listener resets the connections in its backlog and the handshakes whose last packet is
//! still in flight. Their clients believe that they are connected, and may already have sent a
//! request. So new SYNs are dropped first, and the listener is closed only when no handshake can be
//! in progress any more.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use gateway::state::GatewayState;
use policy::lifecycle::Phase;
use telemetry::metrics::Metrics;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

/// Passes every accepted connection, with its permit, to `admit` until the gateway is draining.
pub(crate) async fn accept_loop(
    listener: TcpListener,
    state: Arc<GatewayState>,
    permits: Arc<Semaphore>,
    admit: impl Fn(TcpStream, OwnedSemaphorePermit),
) {
    let accepting = async {
        loop {
            // At the connection limit nothing more is accepted: new connections wait in the
            // backlog.
            let Some(permit) = acquire_permit(&permits, &state.metrics).await else {
                return;
            };
            let Some(socket) = next(&listener).await else {
                continue;
            };
            admit(socket, permit);
        }
    };
    let closing = async {
        state.lifecycle.reached(Phase::Closing).await;
        if let Err(error) = drop_new_syns(&listener) {
            tracing::debug!(%error, "cannot drop new SYNs before the listener is closed");
            return;
        }
        state.lifecycle.reached(Phase::Draining).await;
    };
    tokio::select! {
        biased;
        () = closing => {}
        () = accepting => {}
    }
    for socket in drain_backlog(listener) {
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
            return;
        };
        admit(socket, permit);
    }
}

/// Accepts the next connection. Waits a moment after an error such as running out of file
/// descriptors.
pub(crate) async fn next(listener: &TcpListener) -> Option<TcpStream> {
    match listener.accept().await {
        Ok((socket, _)) => Some(socket),
        Err(error) if concerns_one_connection(&error) => None,
        Err(error) => {
            tracing::warn!(%error, "cannot accept connections, retrying");
            sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

/// Acquires the permit of one more connection, waiting if none is free.
async fn acquire_permit(
    permits: &Arc<Semaphore>,
    metrics: &Metrics,
) -> Option<OwnedSemaphorePermit> {
    if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
        return Some(permit);
    }
    metrics.connections_full.inc();
    Arc::clone(permits).acquire_owned().await.ok()
}

/// Drops new SYNs while letting handshakes in progress complete. A client that connects now
/// retransmits its SYN after a second, as after any lost packet, and then finds the listener
/// closed, or the listener of another process.
#[cfg(target_os = "linux")]
fn drop_new_syns(listener: &TcpListener) -> io::Result<()> {
    use socket2::{SockFilter, SockRef};

    // A classic BPF program: the flags of a TCP header are its 14th byte, and SYN is the second of
    // them.
    const LOAD_BYTE: u16 = 0x30;
    const SKIP_UNLESS_SET: u16 = 0x45;
    const RETURN: u16 = 0x06;
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    SockRef::from(listener).attach_filter(&[
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS),
        SockFilter::new(SKIP_UNLESS_SET, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ])
}

/// Not supported: no equivalent is known on other systems.
#[cfg(not(target_os = "linux"))]
fn drop_new_syns(_: &TcpListener) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the connections that are left in the backlog, and then closes the listener.
fn drain_backlog(listener: TcpListener) -> impl Iterator<Item = TcpStream> {
    let listener = listener.into_std().ok();
    std::iter::from_fn(move || {
        let (socket, _) = listener.as_ref()?.accept().ok()?;
        socket.set_nonblocking(true).ok()?;
        TcpStream::from_std(socket).ok()
    })
}

fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionRefused | ConnectionAborted | ConnectionReset
    )
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net;

    use super::*;

    /// The kernel completes handshakes until the listener is closed: connections that were
    /// established before are taken from the backlog, and none is left there to be reset.
    #[tokio::test]
    #[allow(
        clippy::disallowed_methods,
        reason = "the listener of the test is dialled, on loopback"
    )]
    async fn newcomers_are_turned_away_and_the_queue_is_emptied() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let early = net::TcpStream::connect(address).unwrap();
        drop_new_syns(&listener).unwrap();
        let late = net::TcpStream::connect_timeout(&address, Duration::from_millis(50));
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let queued: Vec<_> = drain_backlog(listener)
            .map(|socket| socket.peer_addr().unwrap())
            .collect();
        assert_eq!(queued, [early.local_addr().unwrap()]);
        let after = net::TcpStream::connect(address);
        assert_eq!(after.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }
}
