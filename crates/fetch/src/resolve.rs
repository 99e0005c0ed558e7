//! DNS resolution.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A DNS resolver. It does not validate addresses: its callers do.
pub trait Resolve: Send + Sync {
    /// Returns all addresses of `host`, with `port`.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>>;
}

/// The system's resolver, including its hosts file and search list.
pub(crate) struct System {
    threads: Arc<Semaphore>,
}

impl System {
    pub(crate) fn new() -> Self {
        Self { threads: Arc::new(Semaphore::new(MAX_THREADS)) }
    }
}

impl Resolve for System {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move {
            let threads = Arc::clone(&self.threads);
            let permit = threads.acquire_owned().await.map_err(io::Error::other)?;
            let host = host.to_owned();
            let look_up = move || {
                // A lookup cannot be cancelled: its thread is free when it returns, not when the caller gives up.
                let _permit = permit;
                addresses(&host, port)
            };
            spawn_blocking(look_up).await?
        })
    }
}

#[allow(clippy::disallowed_methods, reason = "names of users are resolved only here")]
fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((host, port).to_socket_addrs()?.collect())
}

/// The maximum number of blocking lookup threads. A lookup that gets none in time fails.
const MAX_THREADS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries of the hosts file are returned, and validated like any other address.
    #[tokio::test]
    async fn f10_the_hosts_file_is_read() {
        let own = System::new().resolve("localhost", 443).await.unwrap();
        assert!(!own.is_empty() && own.iter().all(|own| own.ip().is_loopback() && own.port() == 443), "{own:?}");
    }

    #[tokio::test]
    async fn a_thread_comes_back() {
        let system = System::new();
        for _ in 0..=MAX_THREADS {
            assert!(system.resolve("localhost", 443).await.is_ok());
        }
    }
}
