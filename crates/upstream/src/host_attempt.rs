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
        Some(Self {
            host: Arc::clone(host),
            ticket: Some(ticket),
        })
    }

    /// Settles the attempt if the status is decisive. A success is otherwise known only at the end
    /// of the body; a probe does not wait for that, because it may be minutes away.
    pub(crate) fn settle_by_status(&mut self, status: StatusCode) {
        if status.is_server_error() {
            self.settle(Outcome::Failure);
        } else if !status.is_success() {
            self.settle(Outcome::Success);
        } else if self.ticket.as_ref().is_some_and(|ticket| ticket.is_probe) {
            self.settle(Outcome::Success);
            self.ticket = self.host.breaker(Breaker::admit);
        }
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
