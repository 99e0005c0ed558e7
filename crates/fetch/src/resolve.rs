//! From a name to addresses.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// A future on the heap.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Looks names up. It judges nothing: what it finds is checked by who asks.
pub trait Resolve: Send + Sync {
    /// All addresses of `host`, with `port`.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>>;
}

/// The resolver of the system, its hosts file and search list included.
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
            let thread = threads.acquire_owned().await.map_err(io::Error::other)?;
            let host = host.to_owned();
            let look_up = move || {
                // The system cannot be told to stop. A thread is free when it is done, not when nobody waits.
                let _thread = thread;
                addresses(&host, port)
            };
            spawn_blocking(look_up).await?
        })
    }
}

#[allow(clippy::disallowed_methods, reason = "names of users are looked up here alone")]
fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((host, port).to_socket_addrs()?.collect())
}

/// The most threads that wait for the system. Whoever does not get one in time has not found the name.
const MAX_THREADS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    /// What the hosts file says is an answer like any other, and is judged like one.
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
