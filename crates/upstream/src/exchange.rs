//! One exchange with a host: sends the request of an admitted attempt, and checks the head of the
//! response.

use std::sync::Arc;

use engine::EngineError;
use tokio::time::Instant;

use crate::breaker::Outcome;
use crate::failure::Failure;
use crate::host_attempt::HostAttempt;
use crate::incoming::{Incoming, IncomingBody};
use crate::outgoing::Outgoing;
use crate::response_head::ResponseHead;
use crate::source::Source;
use crate::{retry_after, websocket};

/// Sends the request over HTTP, or over a WebSocket if the client and the host have one, and waits for the
/// head of the response, until `deadline` at the latest.
pub(crate) async fn exchange(
    mut attempt: HostAttempt,
    outgoing: &Outgoing,
    deadline: Instant,
) -> Result<Incoming, Failure> {
    let exchanged = match &outgoing.sockets {
        // Boxed, because it is rare, and large because of TLS.
        Some(sockets) if attempt.host.has_websocket => {
            let exchange = websocket::exchange(&attempt.host, sockets, outgoing, deadline);
            Box::pin(exchange).await
        }
        _ => attempt.host.exchange(outgoing, deadline).await,
    };
    match exchanged.and_then(|(source, head)| check(&head).map(|()| (source, head))) {
        Ok((source, head)) => Ok(incoming(attempt, outgoing, source, head)),
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
    outgoing: &Outgoing,
    source: Source,
    head: ResponseHead,
) -> Incoming {
    attempt.settle_by_status(head.status);
    let (host, client) = (Arc::clone(&attempt.host), Arc::clone(&outgoing.client));
    Incoming {
        status: head.status,
        is_event_stream: head.is_event_stream,
        is_encoded: head.coding.is_err(),
        retry_after: head.retry_delay.map(retry_after::clamp),
        meta: head.meta,
        body: IncomingBody::new(source, host, client, head.coding.unwrap_or_default()),
        retry_delay: head.retry_delay,
    }
}

/// Rejects successful responses that cannot be decoded. Of all others the status says enough.
fn check(head: &ResponseHead) -> Result<(), Failure> {
    let rejected = |why: String| Err(Failure::unanswered(EngineError::Upstream(why)));
    if head.status.is_informational() {
        return rejected(format!("unexpected status {}", head.status));
    }
    if let Err(unsupported) = &head.coding
        && head.status.is_success()
    {
        return rejected(unsupported.to_string());
    }
    Ok(())
}
