//! From the leave to ask a host to its answer. What became of it is told to the breaker, once.

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

/// HostAttempt to ask a host once. Dropped, it tells the breaker that nobody waited.
pub(crate) struct HostAttempt {
    host: Arc<Host>,
    ticket: Option<Ticket>,
}

/// An answer, and for how long the host asks to be left alone.
pub(crate) struct Answer {
    pub(crate) incoming: Incoming,
    pub(crate) pause: Option<Duration>,
}

impl HostAttempt {
    pub(crate) fn new(host: Arc<Host>, ticket: Ticket) -> Self {
        Self { host, ticket: Some(ticket) }
    }

    /// Asks, until `deadline` at the latest.
    pub(crate) async fn ask(mut self, outgoing: &Outgoing, deadline: Instant) -> Result<Answer, Failure> {
        let exchanged = self.host.exchange(outgoing, deadline).await;
        match exchanged.and_then(|(link, response)| check(&response).map(|()| (link, response))) {
            Ok((link, response)) => Ok(self.answered(link, response)),
            Err(failure) => {
                // Whose deadline was shorter than the host's limits cannot say that the host has failed.
                let was_cut = Instant::now() >= deadline;
                self.settle(if was_cut { Outcome::Unknown } else { Outcome::Failure });
                Err(failure)
            }
        }
    }

    fn answered(mut self, link: Http1Connection, response: Response<hyper::body::Incoming>) -> Answer {
        let (head, body) = response.into_parts();
        self.judge(head.status);
        // Two framings are one too many to know where a next answer would begin.
        let framings = [CONTENT_LENGTH, TRANSFER_ENCODING];
        let is_clear = !framings.iter().all(|framing| head.headers.contains_key(framing));
        let pause = pause(&head.headers);
        let incoming = Incoming {
            status: head.status,
            kind: MediaKind::of(&head.headers),
            retry_after: pause.map(retry_after::clamp),
            body: IncomingBody::new(body, link, is_clear, self),
        };
        Answer { incoming, pause }
    }

    /// What a status says of the host. A success is known at the end of its body only; but a probe need not wait for
    /// that, which may be minutes away.
    fn judge(&mut self, status: StatusCode) {
        if status.is_server_error() {
            self.settle(Outcome::Failure);
        } else if !status.is_success() {
            self.settle(Outcome::Success);
        } else if self.ticket.as_ref().is_some_and(Ticket::is_probe) {
            self.settle(Outcome::Success);
            self.ticket = self.host.breaker(Breaker::admit);
        }
    }

    /// Tells the breaker, if it was not told.
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

/// Refuses answers that nobody could read.
fn check(response: &Response<hyper::body::Incoming>) -> Result<(), Failure> {
    let refused = |why: String| Err(Failure::unanswered(EngineError::Upstream(why)));
    if response.status().is_informational() {
        return refused(format!("it answered {}", response.status()));
    }
    if response.headers().get_all(CONTENT_ENCODING).iter().any(|coding| coding != IDENTITY) {
        return refused("its answer has a content encoding".to_owned());
    }
    Ok(())
}

fn pause(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?;
    #[allow(clippy::disallowed_methods, reason = "a date in an answer is a date on the wall")]
    retry_after::parse(value, SystemTime::now())
}
