//! The log of requests and connections, which tests can wait on.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::request::Request;

/// The requests and connections so far. Connections add to it from any thread.
#[derive(Default)]
pub(crate) struct Log {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
pub(crate) struct State {
    /// The newest requests.
    requests: VecDeque<Request>,
    /// Number of requests so far, including those that are no longer kept.
    pub(crate) count: usize,
    /// Total size of the kept bodies.
    kept_bytes: usize,
    /// The time at which each connection ended.
    pub(crate) connections: Vec<Option<Instant>>,
}

impl Log {
    /// Records a new connection and returns its number.
    pub(crate) fn connected(&self) -> usize {
        self.change(|state| {
            state.connections.push(None);
            state.connections.len() - 1
        })
    }

    /// Records the end of a connection, noticed at `at`.
    pub(crate) fn disconnected(&self, connection: usize, at: Instant) {
        self.change(|state| state.connections[connection] = Some(at));
    }

    /// Records a request and assigns its numbers.
    pub(crate) fn record(
        &self,
        connection: usize,
        nth_on_connection: usize,
        request: Request,
    ) -> Request {
        self.change(|state| {
            let request = Request {
                number: state.count,
                connection,
                nth_on_connection,
                ..request
            };
            state.keep(request.clone());
            request
        })
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.lock().requests.iter().cloned().collect()
    }

    /// Waits until `look` finds something. Returns `None` on timeout.
    pub(crate) fn wait<T>(
        &self,
        within: Duration,
        look: impl Fn(&State) -> Option<T>,
    ) -> Option<T> {
        let waits = |state: &mut State| look(state).is_none();
        let waited = self.changed.wait_timeout_while(self.lock(), within, waits);
        look(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_all();
        changed
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Keeps a request, and drops the oldest ones if there are too many.
    fn keep(&mut self, request: Request) {
        self.count += 1;
        self.kept_bytes += request.body.len();
        self.requests.push_back(request);
        while self.requests.len() > 1
            && (self.requests.len() > MAX_KEPT || self.kept_bytes > MAX_KEPT_BYTES)
        {
            self.kept_bytes -= self
                .requests
                .pop_front()
                .map_or(0, |oldest| oldest.body.len());
        }
    }

    pub(crate) fn request(&self, number: usize) -> Option<&Request> {
        let oldest = self.requests.front()?.number;
        self.requests.get(number.checked_sub(oldest)?)
    }
}

/// Maximum number of kept requests: far more than a test sends, and little memory in a bench.
const MAX_KEPT: usize = 16_384;

/// Maximum total size of their bodies.
const MAX_KEPT_BYTES: usize = 256 << 20;
