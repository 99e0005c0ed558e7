//! From a name to addresses.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

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
#[derive(Default)]
pub(crate) struct System {
    /// The threads of each name, so that one which hangs keeps no other waiting. The names are the operator's, and few.
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
            let thread = self.threads(host).acquire_owned().await.map_err(io::Error::other)?;
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

/// The most threads that wait for the system, for each name.
const MAX_THREADS: usize = 16;
