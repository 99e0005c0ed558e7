//! The requests in flight, from their admission to their last byte.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;

use super::report::ReceivedAt;

/// The requests in flight.
#[derive(Debug, Default)]
pub struct LiveRequests(Mutex<Registered>);

#[derive(Debug, Default)]
struct Registered {
    next: u64,
    all: BTreeMap<u64, Arc<LiveRequest>>,
}

/// A request in flight.
#[derive(Debug)]
pub struct LiveRequest {
    /// The gateway's id of the request.
    pub id: String,
    /// The time at which it was received, in Unix milliseconds.
    pub at_ms: i64,
    /// The time at which it was received.
    pub started: Instant,
    /// The endpoint, from a closed list.
    pub route: &'static str,
    /// The name of the key.
    pub key: Arc<str>,
    /// The client's name of the model.
    pub model: String,
    /// True if it asks for a stream.
    pub stream: bool,
    is_admitted: AtomicBool,
    target: Mutex<Option<String>>,
    events: AtomicU64,
    is_ended: AtomicBool,
}

/// The registration of a request in flight, which ends when it is dropped.
#[derive(Debug)]
pub struct Registration {
    requests: Arc<LiveRequests>,
    number: u64,
    request: Arc<LiveRequest>,
}

/// A request in flight, as operators see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "LiveRequest")]
pub struct LiveView {
    /// The gateway's id of the request.
    request_id: String,
    /// The time at which it was received.
    at: ReceivedAt,
    /// The endpoint, from a closed list.
    route: &'static str,
    /// The name of the key.
    key: String,
    /// The client's name of the model.
    model: String,
    /// True if it asks for a stream.
    stream: bool,
    /// The state.
    state: LiveState,
    /// The target that is asked or answers: the name of an upstream, or `embedded`.
    target: Option<String>,
    /// The events of the answer that were sent to the client so far; about one for each token.
    events: u64,
    /// The time since it was received, in milliseconds.
    age_ms: u64,
}

/// The state of a request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LiveState {
    /// It waits for a limit.
    Waiting,
    /// A target is asked, and has not begun to answer.
    Asking,
    /// Events of the answer are sent to the client.
    Streaming,
}

impl LiveRequests {
    /// Registers a request until the registration is dropped.
    pub fn register(self: &Arc<Self>, request: LiveRequest) -> Registration {
        let request = Arc::new(request);
        let mut registered = self.lock();
        let number = registered.next;
        registered.next += 1;
        registered.all.insert(number, Arc::clone(&request));
        Registration {
            requests: Arc::clone(self),
            number,
            request,
        }
    }

    /// The requests in flight, oldest first.
    pub fn list(&self) -> Vec<LiveView> {
        let requests: Vec<_> = self.lock().all.values().cloned().collect();
        requests.iter().map(|request| request.view()).collect()
    }

    /// Marks a request as ended by an operator. Returns false if it is not in flight. The task that
    /// answers it has to be woken.
    pub fn end(&self, id: &str) -> bool {
        let registered = self.lock();
        let request = registered.all.values().find(|request| request.id == id);
        let Some(request) = request else { return false };
        request.is_ended.store(true, Ordering::SeqCst);
        true
    }

    fn lock(&self) -> MutexGuard<'_, Registered> {
        // No step of a change panics halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveRequest {
    /// A request that was received now.
    pub fn new(id: String, route: &'static str, key: Arc<str>, model: String) -> Self {
        Self {
            id,
            at_ms: 0,
            started: Instant::now(),
            route,
            key,
            model,
            stream: false,
            is_admitted: AtomicBool::new(false),
            target: Mutex::new(None),
            events: AtomicU64::new(0),
            is_ended: AtomicBool::new(false),
        }
    }

    /// Notes that the limits have admitted the request.
    pub fn set_admitted(&self) {
        self.is_admitted.store(true, Ordering::Relaxed);
    }

    /// Notes the target that is asked.
    pub fn set_target(&self, name: &str) {
        let mut target = self.target.lock().unwrap_or_else(PoisonError::into_inner);
        *target = Some(name.to_owned());
    }

    /// Counts an event of the answer.
    pub fn count_event(&self) {
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    /// True once an operator has ended the request.
    pub fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::SeqCst)
    }

    fn view(&self) -> LiveView {
        let events = self.events.load(Ordering::Relaxed);
        let target = self.target.lock().unwrap_or_else(PoisonError::into_inner);
        let state = match self.is_admitted.load(Ordering::Relaxed) {
            false => LiveState::Waiting,
            true if events == 0 => LiveState::Asking,
            true => LiveState::Streaming,
        };
        LiveView {
            request_id: self.id.clone(),
            at: ReceivedAt(self.at_ms),
            route: self.route,
            key: self.key.to_string(),
            model: self.model.clone(),
            stream: self.stream,
            state,
            target: target.clone(),
            events,
            age_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl Registration {
    /// The registered request.
    pub fn request(&self) -> &Arc<LiveRequest> {
        &self.request
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let removed = self.requests.lock().all.remove(&self.number);
        // Freed without the lock.
        drop(removed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: &str) -> LiveRequest {
        LiveRequest::new(id.to_owned(), "chat", "team".into(), "small".to_owned())
    }

    fn states(requests: &LiveRequests) -> Vec<(String, LiveState)> {
        let views = requests.list().into_iter();
        views.map(|view| (view.request_id, view.state)).collect()
    }

    #[tokio::test]
    async fn a_request_is_listed_until_its_registration_is_dropped() {
        let requests = Arc::new(LiveRequests::default());
        let first = requests.register(request("req_1"));
        let second = requests.register(request("req_2"));
        second.request().set_admitted();
        assert_eq!(
            states(&requests),
            [
                ("req_1".to_owned(), LiveState::Waiting),
                ("req_2".to_owned(), LiveState::Asking)
            ]
        );
        second.request().count_event();
        drop(first);
        assert_eq!(
            states(&requests),
            [("req_2".to_owned(), LiveState::Streaming)]
        );
    }

    #[tokio::test]
    async fn only_a_request_in_flight_can_be_ended() {
        let requests = Arc::new(LiveRequests::default());
        let registration = requests.register(request("req_1"));
        assert!(!requests.end("req_2"));
        assert!(!registration.request().is_ended());
        assert!(requests.end("req_1"));
        assert!(registration.request().is_ended());
        drop(registration);
        assert!(!requests.end("req_1"));
    }
}
