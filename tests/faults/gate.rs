//! A gateway whose upstream holds every request until the test releases it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use simulator::{Play, Request as Asked, Simulator, honest};
use testkit::upstreams::GUARD;
use testkit::{Connection, Gateway, Request, Response};

use crate::GATEWAY;

/// The gateway and its upstream, which supports every protocol.
pub(crate) struct Gate {
    gateway: Gateway,
    simulator: Simulator,
    /// The number of requests that [`Gate::hold`] has sent. Any other is answered at once, so that
    /// a test that expects a refusal fails instead of waiting.
    held: Arc<AtomicUsize>,
}

impl Gate {
    /// A gateway with these limits.
    pub(crate) fn new(limits: &str) -> Self {
        let held = Arc::<AtomicUsize>::default();
        let expected = Arc::clone(&held);
        let behave = move |request: &Asked| match request.number < expected.load(Ordering::Relaxed)
        {
            true => Play::new().gate().then(honest::answer(request)),
            false => honest::answer(request),
        };
        let simulator = Simulator::start(behave).unwrap();
        Self {
            gateway: GATEWAY.before(&simulator, limits, ""),
            simulator,
            held,
        }
    }

    /// Sends a request that the gateway accepts, and waits until the upstream has it.
    #[track_caller]
    pub(crate) fn hold(&self, request: &Request) -> Connection {
        let held = self.held.fetch_add(1, Ordering::Relaxed) + 1;
        let mut connection = Connection::open(self.gateway.address());
        connection.send(request.bytes());
        assert!(
            self.simulator.wait_for_requests(held, GUARD),
            "the gateway accepts the request"
        );
        connection
    }

    /// Sends a request that the gateway refuses without its upstream.
    #[track_caller]
    pub(crate) fn refuse(&self, request: &Request) -> Response {
        let before = self.simulator.requests().len();
        let response = request.send(self.gateway.address());
        assert_eq!(
            self.simulator.requests().len(),
            before,
            "no upstream request is sent: {}",
            response.text()
        );
        response
    }

    /// Releases these requests, which are all that are held, and waits until their permits are
    /// back.
    #[track_caller]
    pub(crate) fn release(&self, mut held: Vec<Connection>) {
        assert_eq!(
            self.gateway.metric("sluicegate_in_flight"),
            held.len() as f64
        );
        held.iter().for_each(|_| self.simulator.release());
        assert!(
            held.iter_mut()
                .all(|connection| connection.response().status == 200)
        );
        self.gateway.await_quiet();
    }
}
