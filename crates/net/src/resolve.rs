//! DNS resolution.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// A DNS resolver. It does not validate addresses: its callers do.
pub trait Resolve: Send + Sync {
    /// Returns all addresses of `host`, with `port`.
    fn resolve<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>>;
}

/// The system's resolver, including its hosts file and search list.
///
/// A lookup blocks a thread, and cannot be canceled. A lookup beyond the limit of threads waits for
/// one.
#[derive(Debug)]
pub struct SystemResolver {
    threads: usize,
    per_name: bool,
    /// The free threads of each name, or of all together under the empty name.
    free: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl SystemResolver {
    /// Creates a resolver with at most `threads` blocked threads.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self {
            threads,
            per_name: false,
            free: Mutex::default(),
        }
    }

    /// Creates a resolver with at most `threads` blocked threads per name, so that a lookup that
    /// hangs does not block other names. It is for a fixed set of names: each is remembered.
    #[must_use]
    pub fn per_name(threads: usize) -> Self {
        Self {
            threads,
            per_name: true,
            free: Mutex::default(),
        }
    }

    fn free(&self, host: &str) -> Arc<Semaphore> {
        let name = if self.per_name { host } else { "" };
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(
            free.entry(name.to_owned())
                .or_insert_with(|| Arc::new(Semaphore::new(self.threads))),
        )
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(
        &'a self,
        host: &'a str,
        port: u16,
    ) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move {
            let permit = self
                .free(host)
                .acquire_owned()
                .await
                .map_err(io::Error::other)?;
            let host = host.to_owned();
            let look_up = move || {
                // A lookup cannot be canceled: its thread is free when it returns, not when the
                // caller gives up.
                let _permit = permit;
                addresses(&host, port)
            };
            spawn_blocking(look_up).await?
        })
    }
}

#[allow(clippy::disallowed_methods, reason = "names are resolved only here")]
fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok((host, port).to_socket_addrs()?.collect())
}

/// The timeout of a DNS lookup. Callers apply it.
pub const RESOLVE_TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries of the hosts file are returned, and validated like any other address.
    #[tokio::test]
    async fn f10_the_hosts_file_is_read() {
        let own = SystemResolver::new(1)
            .resolve("localhost", 443)
            .await
            .unwrap();
        assert!(
            !own.is_empty()
                && own
                    .iter()
                    .all(|own| own.ip().is_loopback() && own.port() == 443),
            "{own:?}"
        );
    }

    #[tokio::test]
    async fn a_thread_comes_back() {
        for resolver in [SystemResolver::new(2), SystemResolver::per_name(2)] {
            for _ in 0..=2 {
                assert!(resolver.resolve("localhost", 443).await.is_ok());
            }
        }
    }
}
