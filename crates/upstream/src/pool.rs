//! The pool of idle connections.
//!
//! On a pooled connection the last response was read to its end, and no byte came after it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use crate::http1::Http1Connection;

/// The idle connections to one host.
#[derive(Default)]
pub(crate) struct Pool {
    connections: Mutex<HostConnections>,
}

#[derive(Default)]
struct HostConnections {
    /// Ordered by idle time, longest first.
    idle: VecDeque<Idle>,
    has_sweeper: bool,
}

struct Idle {
    connection: Box<Http1Connection>,
    since: Instant,
}

impl Pool {
    /// Takes the most recently used connection that is still open.
    pub(crate) fn take(&self) -> Option<Box<Http1Connection>> {
        loop {
            let mut idle = self.connections().idle.pop_back()?;
            if idle.since.elapsed() < MAX_AGE && idle.connection.is_idle() {
                return Some(idle.connection);
            }
        }
    }

    /// The number of idle connections.
    pub(crate) fn len(&self) -> usize {
        self.connections().idle.len()
    }

    /// Adds a connection, if another request can be sent over it.
    pub(crate) fn put(self: &Arc<Self>, mut connection: Box<Http1Connection>) {
        if !connection.is_idle() {
            return;
        }
        let mut connections = self.connections();
        if connections.idle.len() == MAX_IDLE {
            connections.idle.pop_front();
        }
        connections.idle.push_back(Idle {
            connection,
            since: Instant::now(),
        });
        if !connections.has_sweeper
            && let Ok(runtime) = Handle::try_current()
        {
            connections.has_sweeper = true;
            runtime.spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Drops connections that are too old or closed. Returns true if any are left.
    fn evict_idle(&self) -> bool {
        let mut connections = self.connections();
        connections
            .idle
            .retain_mut(|idle| idle.since.elapsed() < MAX_AGE && idle.connection.is_idle());
        connections.has_sweeper = !connections.idle.is_empty();
        connections.has_sweeper
    }

    /// Locks the pool. A panic cannot leave it in an inconsistent state.
    fn connections(&self) -> MutexGuard<'_, HostConnections> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Evicts connections periodically: no task drives an idle connection, so nothing else notices that
/// its host has closed it.
async fn sweep(pool: Weak<Pool>) {
    loop {
        sleep(SWEEP_INTERVAL).await;
        match pool.upgrade() {
            Some(pool) if pool.evict_idle() => {}
            _ => return,
        }
    }
}

/// The maximum time that a connection may be idle.
const MAX_AGE: Duration = Duration::from_secs(90);
/// The maximum number of idle connections.
const MAX_IDLE: usize = 256;
/// The interval between evictions.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
