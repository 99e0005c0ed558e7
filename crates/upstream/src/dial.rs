//! TCP dialing: the only place that opens connections to upstreams.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::resolve::BoxFuture;

/// A dialer, which opens connections.
pub trait Dial: Send + Sync {
    /// Connects to this address.
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Connection>>>;
}

/// An open connection.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Plain TCP. Proxy settings of the environment are ignored.
pub(crate) struct Tcp;

impl Dial for Tcp {
    #[allow(clippy::disallowed_methods, reason = "upstreams are the operator's, and dialed only here")]
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}

/// Connects to the first of `addresses` that accepts a connection. Attempts are staggered: the next address is tried in
/// parallel after a delay, or at once if an attempt fails (Happy Eyeballs, RFC 8305 §5).
pub(crate) async fn dial_any(dialer: &dyn Dial, addresses: Vec<SocketAddr>) -> io::Result<Box<dyn Connection>> {
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

/// Alternates between IPv6 and IPv4 addresses, starting with the family of the first one: one family may be unreachable
/// altogether.
fn interleave(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let longest = first.len().max(second.len());
    let pair = |at: usize| first.get(at).into_iter().chain(second.get(at)).copied();
    (0..longest).flat_map(pair).collect()
}

/// The "Connection Attempt Delay" of RFC 8305 §5.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// The maximum number of addresses of a name that are tried.
const MAX_ADDRESSES: usize = 16;
