//! A gateway whose upstream holds every request until the test releases it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use simulator::{Play, Request as Asked, Simulator, honest};

use crate::client::{Connection, Request, Response};
use crate::house::House;
use crate::server::await_that;

/// The gateway and its upstream, which speaks every protocol.
pub(crate) struct Gate {
    pub(crate) house: House,
    simulator: Simulator,
    /// The next request is answered at once, so that the test of one that should have been refused fails and does not wait.
    is_open: Arc<AtomicBool>,
    /// How many requests the upstream has held so far. It is counted once it is decided that a request is held: the
    /// simulator lists it before.
    held: Arc<AtomicUsize>,
}

impl Gate {
    /// A gateway with these limits.
    pub(crate) fn new(limits: &str) -> Self {
        let is_open = Arc::<AtomicBool>::default();
        let opened = Arc::clone(&is_open);
        let held = Arc::<AtomicUsize>::default();
        let holding = Arc::clone(&held);
        let behave = move |request: &Asked| {
            if opened.load(Ordering::SeqCst) {
                return honest::answer(request);
            }
            holding.fetch_add(1, Ordering::SeqCst);
            Play::new().gate().then(honest::answer(request))
        };
        let simulator = Simulator::start(behave).unwrap();
        Self { house: House::before(&simulator, "their-model", limits, ""), simulator, is_open, held }
    }

    /// Sends a request that the gateway accepts, and waits until the upstream has it.
    #[track_caller]
    pub(crate) fn hold(&self, request: &Request) -> Connection {
        let before = self.held.load(Ordering::SeqCst);
        let mut connection = Connection::open(self.house.address());
        connection.send(&request.bytes());
        await_that("the upstream holds the request", || self.held.load(Ordering::SeqCst) > before);
        connection
    }

    /// Sends a request that the gateway refuses without its upstream.
    #[track_caller]
    pub(crate) fn refuse(&self, request: &Request) -> Response {
        let asked = self.simulator.requests().len();
        self.is_open.store(true, Ordering::SeqCst);
        let response = request.send(self.house.address());
        self.is_open.store(false, Ordering::SeqCst);
        assert_eq!(self.simulator.requests().len(), asked, "no upstream is asked: {}", response.text());
        response
    }

    /// Releases these requests, which are all that are held, and waits until their permits are back.
    #[track_caller]
    pub(crate) fn release(&self, mut held: Vec<Connection>) {
        assert_eq!(self.house.gateway.metric("sluicegate_in_flight"), held.len() as f64);
        held.iter().for_each(|_| self.simulator.release());
        assert!(held.iter_mut().all(|connection| connection.response().status == 200));
        self.house.gateway.await_quiet();
    }
}
