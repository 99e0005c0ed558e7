//! DNS resolution.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A DNS resolver.
pub trait Resolve: Send + Sync {
    /// Returns all addresses of `host`, with `port`.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>>;
}

/// The system's resolver, including its hosts file and search list.
#[derive(Default)]
pub(crate) struct System {
    /// Limits the threads per name, so that a lookup that hangs does not block other names. The names are the
    /// operator's, and few.
    threads: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl System {
    fn threads(&self, host: &str) -> Arc<Semaphore> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        match threads.get(host) {
            Some(of_host) => Arc::clone(of_host),
            None => Arc::clone(threads.entry(host.to_owned()).or_insert(Arc::new(Semaphore::new(MAX_THREADS)))),
        }
    }
}

impl Resolve for System {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move {
            let permit = self.threads(host).acquire_owned().await.map_err(io::Error::other)?;
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

#[allow(clippy::disallowed_methods, reason = "names of upstreams are the operator's, and resolved only here")]
fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((host, port).to_socket_addrs()?.collect())
}

/// The maximum number of blocking lookup threads per name.
const MAX_THREADS: usize = 16;
