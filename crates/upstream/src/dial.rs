//! From addresses to a connection: the one place that opens connections to upstreams.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::resolve::BoxFuture;

/// Opens connections.
pub trait Dial: Send + Sync {
    /// Connects to this address.
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Connection>>>;
}

/// An open connection.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Plain TCP: no proxy, whatever the environment says.
pub(crate) struct Tcp;

impl Dial for Tcp {
    #[allow(clippy::disallowed_methods, reason = "upstreams are the operator's, and dialled here alone")]
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}

/// The first connection that stands, to any of `addresses`: each has a head start before the next is tried beside it,
/// and one that fails makes room at once (RFC 8305 §5).
pub(crate) async fn dial_any(dialer: &dyn Dial, addresses: Vec<SocketAddr>) -> io::Result<Box<dyn Connection>> {
    let mut waiting = interleave(addresses).into_iter().take(MAX_ADDRESSES);
    let mut dials = FuturesUnordered::new();
    let mut why = io::Error::other("the name has no address");
    loop {
        match waiting.next() {
            Some(address) => dials.push(dialer.dial(address)),
            None if dials.is_empty() => return Err(why),
            None => {}
        }
        tokio::select! {
            Some(dialled) = dials.next() => match dialled {
                Ok(connection) => return Ok(connection),
                Err(error) => why = error,
            },
            () = sleep(HEAD_START), if waiting.len() > 0 => {}
        }
    }
}

/// The families of addresses by turns, beginning with the first one's: one family may be broken as a whole.
fn interleave(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (one, other): (Vec<_>, Vec<_>) = addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let longest = one.len().max(other.len());
    let turn = |at: usize| one.get(at).into_iter().chain(other.get(at)).copied();
    (0..longest).flat_map(turn).collect()
}

/// The "Connection Attempt Delay" of RFC 8305.
const HEAD_START: Duration = Duration::from_millis(250);
/// The most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 16;
