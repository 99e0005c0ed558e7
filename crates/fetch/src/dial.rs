//! From an address to a connection: the one place that opens connections for strangers.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::resolve::BoxFuture;

/// Opens connections.
pub trait Dial: Send + Sync {
    /// Connects to exactly this address.
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Connection>>>;
}

/// An open connection.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {
    /// Who is at its other end.
    ///
    /// # Errors
    /// When the connection is gone.
    fn peer(&self) -> io::Result<SocketAddr>;
}

impl Connection for TcpStream {
    fn peer(&self) -> io::Result<SocketAddr> {
        self.peer_addr()
    }
}

/// Plain TCP: no proxy, whatever the environment says.
pub(crate) struct Tcp;

impl Dial for Tcp {
    #[allow(clippy::disallowed_methods, reason = "the address was checked, and this is the one place to dial it")]
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            // Both ends on one address are one machine: ours, which need not know its public addresses otherwise.
            if stream.local_addr()?.ip() == stream.peer_addr()?.ip() {
                return Err(io::Error::other("the address is this machine's own"));
            }
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// An address of this machine is not talked to.
    #[tokio::test]
    async fn f12_the_machine_itself_is_not_talked_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let refused = Tcp.dial(listener.local_addr().unwrap()).await.err().unwrap();
        assert_eq!(refused.to_string(), "the address is this machine's own");
    }

    /// A proxy that the environment names is not asked: the address itself is dialled.
    #[test]
    fn f10_a_proxy_of_the_environment_is_not_asked() {
        let proxy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        proxy.set_nonblocking(true).unwrap();
        let url = format!("http://{}", proxy.local_addr().unwrap());
        // The test above once more, where there is such an environment.
        let mut dials = std::process::Command::new(std::env::current_exe().unwrap());
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
            dials.env(name, &url);
        }
        let dialled = dials.args(["--exact", "dial::tests::f12_the_machine_itself_is_not_talked_to"]).output().unwrap();
        let told = String::from_utf8_lossy(&dialled.stdout);
        assert!(dialled.status.success() && told.contains("1 passed"), "{told}");
        assert_eq!(proxy.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock, "nobody came");
    }
}
