//! One admitted attempt against a host; reports its result to the circuit breaker exactly once.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use engine::EngineError;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, RETRY_AFTER, TRANSFER_ENCODING};
use http::{HeaderMap, Response, StatusCode};
use tokio::time::Instant;

use crate::breaker::{Breaker, Outcome, Ticket};
use crate::headers::IDENTITY;
use crate::host::Host;
use crate::http1::Http1Connection;
use crate::incoming::{Incoming, IncomingBody, MediaKind};
use crate::outgoing::Outgoing;
use crate::{Failure, retry_after};

/// One admitted attempt. Dropped before it was settled, it reports an unknown outcome to the circuit breaker.
pub(crate) struct HostAttempt {
    host: Arc<Host>,
    ticket: Option<Ticket>,
}

/// A response, and the delay of its `Retry-After`.
pub(crate) struct Answer {
    pub(crate) incoming: Incoming,
    pub(crate) delay: Option<Duration>,
}

impl HostAttempt {
    pub(crate) fn new(host: Arc<Host>, ticket: Ticket) -> Self {
        Self { host, ticket: Some(ticket) }
    }

    /// Sends the request and waits for the head of the response, until `deadline` at the latest.
    pub(crate) async fn send(mut self, outgoing: &Outgoing, deadline: Instant) -> Result<Answer, Failure> {
        let exchanged = self.host.exchange(outgoing, deadline).await;
        match exchanged.and_then(|(connection, response)| check(&response).map(|()| (connection, response))) {
            Ok((connection, response)) => Ok(self.into_answer(connection, response)),
            Err(failure) => {
                // A caller's deadline that is shorter than the host's timeouts does not show that the host has failed.
                let is_past_deadline = Instant::now() >= deadline;
                self.settle(if is_past_deadline { Outcome::Unknown } else { Outcome::Failure });
                Err(failure)
            }
        }
    }

    fn into_answer(mut self, connection: Http1Connection, response: Response<hyper::body::Incoming>) -> Answer {
        let (head, body) = response.into_parts();
        self.settle_by_status(head.status);
        // With both framings it is ambiguous where the next response starts: the connection is not reused.
        let framings = [CONTENT_LENGTH, TRANSFER_ENCODING];
        let may_reuse = !framings.iter().all(|framing| head.headers.contains_key(framing));
        let delay = retry_delay(&head.headers);
        let incoming = Incoming {
            status: head.status,
            kind: MediaKind::of(&head.headers),
            retry_after: delay.map(retry_after::clamp),
            body: IncomingBody::new(body, connection, may_reuse, self),
        };
        Answer { incoming, delay }
    }

    /// Settles the attempt if the status is decisive. A success is otherwise known only at the end of the body; a probe
    /// does not wait for that, because it may be minutes away.
    fn settle_by_status(&mut self, status: StatusCode) {
        if status.is_server_error() {
            self.settle(Outcome::Failure);
        } else if !status.is_success() {
            self.settle(Outcome::Success);
        } else if self.ticket.as_ref().is_some_and(Ticket::is_probe) {
            self.settle(Outcome::Success);
            self.ticket = self.host.breaker(Breaker::admit);
        }
    }

    /// Reports the outcome to the circuit breaker, unless one was reported before.
    pub(crate) fn settle(&mut self, outcome: Outcome) {
        if let Some(ticket) = self.ticket.take() {
            self.host.breaker(|breaker, now| breaker.settle(ticket, outcome, now));
        }
    }

    pub(crate) fn host(&self) -> &Host {
        &self.host
    }
}

impl Drop for HostAttempt {
    fn drop(&mut self) {
        self.settle(Outcome::Unknown);
    }
}

/// Rejects responses that cannot be decoded.
fn check(response: &Response<hyper::body::Incoming>) -> Result<(), Failure> {
    let rejected = |why: String| Err(Failure::unanswered(EngineError::Upstream(why)));
    if response.status().is_informational() {
        return rejected(format!("unexpected status {}", response.status()));
    }
    if response.headers().get_all(CONTENT_ENCODING).iter().any(|coding| coding != IDENTITY) {
        return rejected("unsupported content encoding".to_owned());
    }
    Ok(())
}

fn retry_delay(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?;
    #[allow(clippy::disallowed_methods, reason = "Retry-After may be a date of the wall clock")]
    retry_after::parse(value, SystemTime::now())
}
