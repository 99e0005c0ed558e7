//! Connections that wait for a next request.
//!
//! What is in here has been read to the end of its last answer, and nothing has come after it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use crate::http1::Http1Connection;

/// The idle connections to one host.
#[derive(Default)]
pub(crate) struct Pool {
    shelf: Mutex<HostConnections>,
}

#[derive(Default)]
struct HostConnections {
    /// The one that waits longest is the first.
    idle: VecDeque<Idle>,
    has_sweeper: bool,
}

struct Idle {
    link: Http1Connection,
    since: Instant,
}

impl Pool {
    /// The connection that was used last, if it still stands.
    pub(crate) fn take(&self) -> Option<Http1Connection> {
        loop {
            let mut idle = self.shelf().idle.pop_back()?;
            if idle.since.elapsed() < MAX_AGE && idle.link.is_idle() {
                return Some(idle.link);
            }
        }
    }

    /// Keeps a connection, if a next request can be sent over it.
    pub(crate) fn put(self: &Arc<Self>, mut link: Http1Connection) {
        if !link.is_idle() {
            return;
        }
        let mut shelf = self.shelf();
        if shelf.idle.len() == MAX_IDLE {
            shelf.idle.pop_front();
        }
        shelf.idle.push_back(Idle { link, since: Instant::now() });
        if !shelf.has_sweeper
            && let Ok(runtime) = Handle::try_current()
        {
            shelf.has_sweeper = true;
            runtime.spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Drops what nobody will take any more. Says whether something is left.
    fn tidy(&self) -> bool {
        let mut shelf = self.shelf();
        shelf.idle.retain_mut(|idle| idle.since.elapsed() < MAX_AGE && idle.link.is_idle());
        shelf.has_sweeper = !shelf.idle.is_empty();
        shelf.has_sweeper
    }

    /// No panic leaves the shelf half changed.
    fn shelf(&self) -> MutexGuard<'_, HostConnections> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Idle connections are driven by nobody, so somebody must see that their other side has closed them.
async fn sweep(pool: Weak<Pool>) {
    loop {
        sleep(SWEEP).await;
        match pool.upgrade() {
            Some(pool) if pool.tidy() => {}
            _ => return,
        }
    }
}

/// The longest that a connection waits for its next request.
const MAX_AGE: Duration = Duration::from_secs(90);
/// The most connections that wait.
const MAX_IDLE: usize = 256;
/// How often they are looked after.
const SWEEP: Duration = Duration::from_secs(1);
