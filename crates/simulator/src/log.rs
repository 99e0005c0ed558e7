//! What has happened so far, and waiting for more.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::clock;
use crate::inbound::Message;
use crate::request::Request;

/// What has happened so far.
#[derive(Default)]
pub(crate) struct Log {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The newest requests.
    requests: VecDeque<Request>,
    /// Requests so far, those that are no longer kept as well.
    count: usize,
    /// The sum of the bodies that are kept.
    kept_bytes: usize,
    /// When each connection ended.
    connections: Vec<Option<Instant>>,
    open: usize,
}

impl Log {
    /// Notes a new connection and gives it its number.
    pub(crate) fn connected(&self) -> usize {
        self.change(|state| {
            state.connections.push(None);
            state.open += 1;
            state.connections.len() - 1
        })
    }

    /// Notes the end of a connection, seen at `at`.
    pub(crate) fn disconnected(&self, connection: usize, at: Instant) {
        self.change(|state| {
            state.connections[connection] = Some(at);
            state.open -= 1;
        });
    }

    /// Notes a request and gives it its number.
    pub(crate) fn asked(&self, connection: usize, nth_on_connection: usize, message: Message) -> Request {
        let Message { method, path, headers, body } = message;
        let at = clock::now();
        self.change(|state| {
            let number = state.count;
            let request = Request { number, connection, nth_on_connection, method, path, headers, body, at };
            state.keep(request.clone());
            request
        })
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.lock().requests.iter().cloned().collect()
    }

    pub(crate) fn connections(&self) -> usize {
        self.lock().connections.len()
    }

    pub(crate) fn open_connections(&self) -> usize {
        self.lock().open
    }

    pub(crate) fn wait_for_requests(&self, count: usize, within: Duration) -> bool {
        self.wait(within, |state| (state.count >= count).then_some(())).is_some()
    }

    pub(crate) fn wait_for_close(&self, request: usize, within: Duration) -> Option<Instant> {
        self.wait(within, |state| state.connections[state.request(request)?.connection])
    }

    /// Waits until `look` finds something, but not for longer than `within`.
    fn wait<T>(&self, within: Duration, look: impl Fn(&State) -> Option<T>) -> Option<T> {
        let waits = |state: &mut State| look(state).is_none();
        let waited = self.changed.wait_timeout_while(self.lock(), within, waits);
        look(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_all();
        changed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Keeps a request, and lets go of the oldest when there are too many.
    fn keep(&mut self, request: Request) {
        self.count += 1;
        self.kept_bytes += request.body.len();
        self.requests.push_back(request);
        while self.requests.len() > 1 && (self.requests.len() > KEPT || self.kept_bytes > KEPT_BYTES) {
            self.kept_bytes -= self.requests.pop_front().map_or(0, |oldest| oldest.body.len());
        }
    }

    fn request(&self, number: usize) -> Option<&Request> {
        let oldest = self.requests.front()?.number;
        self.requests.get(number.checked_sub(oldest)?)
    }
}

/// As many requests are kept; far more than a test sends, and little to a bench.
const KEPT: usize = 16_384;

/// As much of their bodies is kept.
const KEPT_BYTES: usize = 256 << 20;
