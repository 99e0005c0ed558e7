//! One exchange with a host: sends the request of an admitted attempt, and checks the head of the
//! response.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use engine::EngineError;
use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, TRANSFER_ENCODING,
};
use http::{HeaderMap, Response};
use tokio::time::Instant;

use crate::breaker::Outcome;
use crate::failure::Failure;
use crate::headers::IDENTITY;
use crate::host_attempt::HostAttempt;
use crate::http1::Http1Connection;
use crate::incoming::{Incoming, IncomingBody};
use crate::outgoing::Outgoing;
use crate::response_meta::ResponseMeta;
use crate::retry_after;

/// Sends the request and waits for the head of the response, until `deadline` at the latest.
pub(crate) async fn exchange(
    mut attempt: HostAttempt,
    outgoing: &Outgoing,
    deadline: Instant,
) -> Result<Incoming, Failure> {
    let exchanged = attempt.host.exchange(outgoing, deadline).await;
    match exchanged
        .and_then(|(connection, response)| check(&response).map(|()| (connection, response)))
    {
        Ok((connection, response)) => Ok(incoming(attempt, connection, response)),
        Err(failure) => {
            // A caller's deadline that is shorter than the host's timeouts does not show that the
            // host has failed.
            let is_past_deadline = Instant::now() >= deadline;
            attempt.settle(if is_past_deadline {
                Outcome::Unknown
            } else {
                failure.outcome
            });
            Err(failure)
        }
    }
}

fn incoming(
    mut attempt: HostAttempt,
    connection: Http1Connection,
    response: Response<hyper::body::Incoming>,
) -> Incoming {
    let (head, body) = response.into_parts();
    attempt.settle_by_status(head.status);
    // With both framings it is ambiguous where the next response starts: the connection is not
    // reused.
    let framings = [CONTENT_LENGTH, TRANSFER_ENCODING];
    let may_reuse = !framings
        .iter()
        .all(|framing| head.headers.contains_key(framing));
    let retry_delay = retry_delay(&head.headers);
    Incoming {
        status: head.status,
        is_event_stream: is_event_stream(&head.headers),
        retry_after: retry_delay.map(retry_after::clamp),
        meta: ResponseMeta::of(&head.headers, &attempt.host.pass_headers),
        body: IncomingBody::new(body, connection, may_reuse, Arc::clone(&attempt.host)),
        retry_delay,
    }
}

/// Rejects responses that cannot be decoded.
fn check(response: &Response<hyper::body::Incoming>) -> Result<(), Failure> {
    let rejected = |why: String| Err(Failure::unanswered(EngineError::Upstream(why)));
    if response.status().is_informational() {
        return rejected(format!("unexpected status {}", response.status()));
    }
    if response
        .headers()
        .get_all(CONTENT_ENCODING)
        .iter()
        .any(|coding| coding != IDENTITY)
    {
        return rejected("unsupported content encoding".to_owned());
    }
    Ok(())
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("text/event-stream")
}

fn retry_delay(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?;
    #[allow(
        clippy::disallowed_methods,
        reason = "Retry-After may be a date of the wall clock"
    )]
    retry_after::parse(value, SystemTime::now())
}
