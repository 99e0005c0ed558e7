//! TCP dialing that refuses this machine.

use std::io;
use std::net::SocketAddr;

use net::{BoxFuture, Connection, Dial};

/// TCP to any machine but this one.
pub(crate) struct RemoteTcp;

impl Dial for RemoteTcp {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let stream = net::connect(address).await?;
            // Equal local and peer addresses mean that the peer is this machine, which may have
            // public addresses.
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

    /// A connection to an address of this machine is refused.
    #[tokio::test]
    async fn f12_the_machine_itself_is_not_talked_to() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let refused = RemoteTcp
            .dial(listener.local_addr().unwrap())
            .await
            .err()
            .unwrap();
        assert_eq!(refused.to_string(), "the address is this machine's own");
    }

    /// A proxy of the environment is ignored: the address itself is dialed.
    #[test]
    fn f10_a_proxy_of_the_environment_is_not_asked() {
        let proxy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        proxy.set_nonblocking(true).unwrap();
        let url = format!("http://{}", proxy.local_addr().unwrap());
        // Runs the test above in a process with such an environment.
        let mut dials = std::process::Command::new(std::env::current_exe().unwrap());
        for name in [
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "http_proxy",
            "https_proxy",
            "all_proxy",
        ] {
            dials.env(name, &url);
        }
        let dialed = dials
            .args([
                "--exact",
                "dial::tests::f12_the_machine_itself_is_not_talked_to",
            ])
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&dialed.stdout);
        assert!(
            dialed.status.success() && stdout.contains("1 passed"),
            "{stdout}"
        );
        assert_eq!(
            proxy.accept().unwrap_err().kind(),
            io::ErrorKind::WouldBlock,
            "the proxy got no connection"
        );
    }
}
