//! One admitted attempt against a host; reports its result to the circuit breaker exactly once.

use std::sync::Arc;

use http::StatusCode;

use crate::breaker::{Breaker, Outcome, Ticket};
use crate::host::Host;

/// One admitted attempt. Dropped before it was settled, it reports an unknown outcome to the
/// circuit breaker.
pub(crate) struct HostAttempt {
    pub(crate) host: Arc<Host>,
    ticket: Option<Ticket>,
}

impl HostAttempt {
    /// Returns an attempt, if the circuit breaker of `host` admits one.
    pub(crate) fn admit(host: &Arc<Host>) -> Option<Self> {
        let ticket = host.breaker(Breaker::admit)?;
        Some(Self::new(host, ticket))
    }

    /// Returns an attempt whatever the state of the circuit breaker is, for a request that no other
    /// host can serve.
    pub(crate) fn admit_always(host: &Arc<Host>) -> Self {
        Self::new(host, host.breaker(Breaker::admit_always))
    }

    fn new(host: &Arc<Host>, ticket: Ticket) -> Self {
        Self {
            host: Arc::clone(host),
            ticket: Some(ticket),
        }
    }

    /// Settles the attempt by the status of the response. A broken body is no failure of the
    /// host: the next request gets another one.
    pub(crate) fn settle_by_status(&mut self, status: StatusCode) {
        self.settle(match status.as_u16() {
            502..=504 => Outcome::Failure,
            500..=599 => Outcome::Unknown,
            _ => Outcome::Success,
        });
    }

    /// Reports the outcome to the circuit breaker, unless one was reported before.
    pub(crate) fn settle(&mut self, outcome: Outcome) {
        if let Some(ticket) = self.ticket.take() {
            self.host
                .breaker(|breaker, now| breaker.settle(ticket, outcome, now));
        }
    }
}

impl Drop for HostAttempt {
    fn drop(&mut self) {
        self.settle(Outcome::Unknown);
    }
}
