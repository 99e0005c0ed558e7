//! TCP dialing: the only place that opens connections.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_rustls::TlsStream;

/// A dialer, which opens connections.
pub trait Dial: Send + Sync {
    /// Connects to exactly this address.
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Connection>>>;
}

/// An open connection. A wrapper should forward `poll_write_vectored` and `is_write_vectored`:
/// without them each part of a request body is a write of its own.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {
    /// Returns the address of the peer.
    ///
    /// # Errors
    /// When the connection is closed, or has no such address, as in memory.
    fn peer(&self) -> io::Result<SocketAddr>;
}

impl Connection for TcpStream {
    fn peer(&self) -> io::Result<SocketAddr> {
        self.peer_addr()
    }
}

impl<C: Connection + ?Sized> Connection for Box<C> {
    fn peer(&self) -> io::Result<SocketAddr> {
        (**self).peer()
    }
}

impl<C: Connection> Connection for TlsStream<C> {
    fn peer(&self) -> io::Result<SocketAddr> {
        self.get_ref().0.peer()
    }
}

/// Plain TCP: connects to any address.
#[derive(Clone, Copy, Debug)]
pub struct Tcp;

impl Dial for Tcp {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Connection>>> {
        Box::pin(async move { Ok(Box::new(connect(address).await?) as Box<dyn Connection>) })
    }
}

/// Connects to exactly this address over TCP. Proxy settings of the environment are ignored.
///
/// # Errors
/// When nothing listens there, or it cannot be reached.
#[allow(
    clippy::disallowed_methods,
    reason = "connections are opened only here"
)]
pub async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Connects to the first of `addresses` that accepts a connection. Attempts are staggered: the next
/// address is tried in parallel after a delay, or at once if an attempt fails (Happy Eyeballs, RFC
/// 8305 §5).
///
/// # Errors
/// The last one, when none of the first [`MAX_ADDRESSES`] accepts a connection.
pub async fn dial_any(
    dialer: &dyn Dial,
    addresses: Vec<SocketAddr>,
) -> io::Result<Box<dyn Connection>> {
    let mut pending = interleave(addresses).into_iter().take(MAX_ADDRESSES);
    let mut dials = FuturesUnordered::new();
    let mut last_error = io::Error::other("the name has no address");
    loop {
        match pending.next() {
            Some(address) => dials.push(dialer.dial(address)),
            None if dials.is_empty() => return Err(last_error),
            None => {}
        }
        tokio::select! {
            Some(dialed) = dials.next() => match dialed {
                Ok(connection) => return Ok(connection),
                Err(error) => last_error = error,
            },
            () = sleep(ATTEMPT_DELAY), if pending.len() > 0 => {}
        }
    }
}

/// Alternates between IPv6 and IPv4 addresses, starting with the family of the first one: one
/// family may be unreachable altogether.
fn interleave(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = addresses
        .into_iter()
        .partition(|address| address.is_ipv6() == first_is_v6);
    let longest = first.len().max(second.len());
    let pair = |at: usize| first.get(at).into_iter().chain(second.get(at)).copied();
    (0..longest).flat_map(pair).collect()
}

/// The "Connection Attempt Delay" of RFC 8305 §5.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// The maximum number of addresses of a name that are tried.
pub const MAX_ADDRESSES: usize = 16;
