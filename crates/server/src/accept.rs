//! Who is let in, and how the door is closed.
//!
//! Closing a listener resets who waits in its queue, and who has sent the last packet of a handshake that has not come
//! yet: to both it looks as if they were connected, and perhaps they have asked already. So newcomers are turned away
//! first, and the listener is closed only when nobody can be on the way any more.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use crate::gateway::Gateway;
use crate::metrics::Metrics;

/// Hands everyone who comes to `admit`, with the place that they take, until the gateway is draining.
pub(crate) async fn all(
    listener: TcpListener,
    gateway: Arc<Gateway>,
    places: Arc<Semaphore>,
    admit: impl Fn(TcpStream, OwnedSemaphorePermit),
) {
    let newcomers = async {
        loop {
            // Past the cap nothing more is accepted: newcomers wait in the system's queue.
            let Some(place) = place(&places, &gateway.metrics).await else { return };
            let Some(socket) = next(&listener).await else { continue };
            admit(socket, place);
        }
    };
    let closed = async {
        gateway.lifecycle.closing().await;
        if let Err(error) = turn_newcomers_away(&listener) {
            tracing::debug!(%error, "newcomers cannot be turned away before the listener is closed");
            return;
        }
        gateway.lifecycle.draining().await;
    };
    tokio::select! {
        biased;
        () = closed => {}
        () = newcomers => {}
    }
    for socket in queued(listener) {
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { return };
        admit(socket, place);
    }
}

/// The next connection. A failure to accept, as when the system is out of descriptors, is waited out.
pub(crate) async fn next(listener: &TcpListener) -> Option<TcpStream> {
    match listener.accept().await {
        Ok((socket, _)) => Some(socket),
        Err(error) if is_about_one_connection(&error) => None,
        Err(error) => {
            tracing::warn!(%error, "cannot accept connections just now");
            sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

/// A place for one more connection, waited for when all are taken.
async fn place(places: &Arc<Semaphore>, metrics: &Metrics) -> Option<OwnedSemaphorePermit> {
    if let Ok(place) = Arc::clone(places).try_acquire_owned() {
        return Some(place);
    }
    metrics.connections_full();
    Arc::clone(places).acquire_owned().await.ok()
}

/// Lets the first packets of newcomers fall, but not those of who has begun to connect. Whoever comes now tries again
/// after a second, as after any lost packet, and then finds the listener closed, or another process's.
#[cfg(target_os = "linux")]
fn turn_newcomers_away(listener: &TcpListener) -> io::Result<()> {
    use socket2::{SockFilter, SockRef};

    // In the kernel's language: the flags of a TCP header are its 14th byte, and SYN is the second of them.
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

/// No other system is known to be able to.
#[cfg(not(target_os = "linux"))]
fn turn_newcomers_away(_: &TcpListener) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Those who wait in the system's queue, and then the listener is closed.
fn queued(listener: TcpListener) -> impl Iterator<Item = TcpStream> {
    let listener = listener.into_std().ok();
    std::iter::from_fn(move || {
        let (socket, _) = listener.as_ref()?.accept().ok()?;
        socket.set_nonblocking(true).ok()?;
        TcpStream::from_std(socket).ok()
    })
}

fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionRefused | ConnectionAborted | ConnectionReset)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net;

    use super::*;

    /// The system itself takes connections until the listener is closed: who has come before is taken out of its queue,
    /// and nobody is left in there to be reset.
    #[tokio::test]
    #[allow(clippy::disallowed_methods, reason = "the listener of the test is dialled, on loopback")]
    async fn newcomers_are_turned_away_and_the_queue_is_emptied() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let early = net::TcpStream::connect(address).unwrap();
        turn_newcomers_away(&listener).unwrap();
        let late = net::TcpStream::connect_timeout(&address, Duration::from_millis(50));
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let queued: Vec<_> = queued(listener).map(|socket| socket.peer_addr().unwrap()).collect();
        assert_eq!(queued, [early.local_addr().unwrap()]);
        let after = net::TcpStream::connect(address);
        assert_eq!(after.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }
}
