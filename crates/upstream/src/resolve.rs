//! From a name to addresses.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// A future on the heap.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Looks names up.
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

#[allow(clippy::disallowed_methods, reason = "names of upstreams are the operator's, and looked up here alone")]
fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((host, port).to_socket_addrs()?.collect())
}

/// The most threads that wait for the system, for each upstream.
const MAX_THREADS: usize = 16;
