//! One HTTP/1.1 connection. The caller that sends or reads drives it: there is no separate task, so
//! dropping it closes it. While it waits, it holds no memory for reading or writing.
//!
//! ```text
//!         send                 head complete               last byte
//!   Idle ──────► AwaitingHead ───────────────► ReadingBody ─────────► Idle, or Ended if no other
//!    │           │        ▲ │ 1xx, a part       │     ▲ │ a piece           request can be sent
//!    │           │        └─┘                   │     └─┘
//!    │ bytes,    │ close, reset,                │ close, reset,
//!    │ close     │ invalid head                 │ violation
//!    └───────────┴────────────► Failed ◄────────┘
//! ```
//!
//! In every phase but `Idle`, a part of the request may be unsent: a host may respond before it has
//! received all of it.

pub(crate) mod body;
pub(crate) mod chunked;
mod decoded;
pub(crate) mod error;
pub(crate) mod head;
mod scratch;
mod transport;
pub(crate) mod unsent;

#[cfg(test)]
mod differential;
#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use net::{Connection, LazyTimer};

use crate::http1::body::{Body, Framing};
use crate::http1::error::{Http1Error, Invalid};
use crate::http1::head::{Headers, Parsed};
use crate::http1::transport::Transport;
use crate::http1::unsent::Unsent;

pub(crate) struct Http1Connection {
    transport: Transport,
    phase: Phase,
    connect_time: Duration,
    /// The timer for all waits of its requests and responses.
    pub(crate) timer: LazyTimer,
}

/// The phase of a connection.
enum Phase {
    /// Another request can be sent.
    Idle,
    /// A request is being sent, and its response has no complete head yet.
    AwaitingHead,
    /// The head was returned, and the body was not returned to its end.
    ReadingBody(Body),
    /// The response was returned to its end. No other request can be sent.
    Ended,
    /// The connection has failed, or the host has violated the protocol.
    Failed,
}

/// A connection that ended before the head of a response.
pub(crate) struct ConnectionEnded {
    pub(crate) error: Http1Error,
    /// True if the host may have received a part of the request.
    pub(crate) was_written: bool,
}

impl Http1Connection {
    /// Boxed, because it is passed on with every request.
    pub(crate) fn new(io: Box<dyn Connection>, connect_time: Duration) -> Box<Self> {
        Box::new(Self {
            transport: Transport::new(io),
            phase: Phase::Idle,
            connect_time,
            timer: LazyTimer::default(),
        })
    }

    /// Sends a request, reads the head of its response, and returns the `facts` about the head.
    /// `has_body` is false for a `HEAD` request.
    pub(crate) async fn send<T>(
        &mut self,
        request: Unsent,
        has_body: bool,
        facts: impl Fn(StatusCode, Headers<'_>) -> T,
    ) -> Result<T, ConnectionEnded> {
        self.transport.has_received = false;
        if let Some(error) = self.interruption() {
            return Err(ConnectionEnded {
                error,
                was_written: false,
            });
        }
        self.transport.unsent = Some(request);
        self.phase = Phase::AwaitingHead;
        let mut partial = Vec::new();
        let head = poll_fn(|cx| self.poll_head(cx, &mut partial, has_body, &facts)).await;
        head.map_err(|error| {
            self.phase = Phase::Failed;
            ConnectionEnded {
                error,
                was_written: true,
            }
        })
    }

    /// Returns true if at least one byte was received since the last request was sent.
    pub(crate) fn has_received(&self) -> bool {
        self.transport.has_received
    }

    /// Returns the time that connecting has taken, with DNS and TLS.
    pub(crate) fn connect_time(&self) -> Duration {
        self.connect_time
    }

    /// Returns true if another request can be sent: the last response was read to its end, no byte
    /// came after it, and the host has not closed the connection.
    pub(crate) fn is_idle(&mut self) -> bool {
        matches!(self.phase, Phase::Idle) && self.interruption().is_none()
    }

    /// Returns true once the body was returned completely.
    pub(crate) fn is_end(&self) -> bool {
        matches!(self.phase, Phase::Idle | Phase::Ended)
    }

    /// The number of bytes of the body that are left to be returned, if the head has declared it.
    pub(crate) fn length(&self) -> Option<u64> {
        match &self.phase {
            Phase::ReadingBody(body) => body.length(),
            Phase::Idle | Phase::Ended => Some(0),
            Phase::AwaitingHead | Phase::Failed => None,
        }
    }

    /// Polls for the next piece of the body, which is `None` at the end. All data of one read is
    /// one piece.
    pub(crate) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Http1Error>> {
        let body = match &mut self.phase {
            Phase::ReadingBody(body) => body,
            Phase::Idle | Phase::Ended => return Poll::Ready(Ok(None)),
            // A body that has failed does not end as if it were complete.
            Phase::AwaitingHead | Phase::Failed => {
                return Poll::Ready(Err(Invalid::Truncated.into()));
            }
        };
        let polled = self.transport.poll_body(cx, body);
        match polled {
            Poll::Ready(Ok(_)) if body.is_end() => self.end_body(),
            Poll::Ready(Err(_)) => self.phase = Phase::Failed,
            Poll::Ready(Ok(_)) | Poll::Pending => {}
        }
        polled
    }

    /// Ends the response, whose body was returned completely.
    fn end_body(&mut self) {
        let is_idle = self.transport.may_reuse && self.transport.unsent.is_none();
        self.phase = if is_idle { Phase::Idle } else { Phase::Ended };
    }

    /// Returns an error if the host has sent bytes without a request, or the connection has ended
    /// or failed.
    fn interruption(&mut self) -> Option<Http1Error> {
        let interruption = self.transport.interruption();
        if interruption.is_some() {
            self.phase = Phase::Failed;
        }
        interruption
    }

    /// Writes the rest of the request, and reads until the head of the response is complete: a host
    /// may respond before it has received all of the request. `partial` keeps an incomplete head.
    fn poll_head<T>(
        &mut self,
        cx: &mut Context<'_>,
        partial: &mut Vec<u8>,
        has_body: bool,
        facts: &impl Fn(StatusCode, Headers<'_>) -> T,
    ) -> Poll<Result<T, Http1Error>> {
        let written = self.transport.poll_write(cx);
        let head =
            scratch::with(|scratch| self.poll_read_head(cx, scratch, partial, has_body, facts));
        match (written, head) {
            (_, Poll::Ready(Ok(head))) => Poll::Ready(Ok(head)),
            // A host that has closed the connection may have responded before.
            (Poll::Ready(Err(error)), _) => Poll::Ready(Err(error)),
            (_, head) => head,
        }
    }

    fn poll_read_head<T>(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
        partial: &mut Vec<u8>,
        has_body: bool,
        facts: &impl Fn(StatusCode, Headers<'_>) -> T,
    ) -> Poll<Result<T, Http1Error>> {
        loop {
            let received = ready!(self.transport.poll_read(cx, scratch))?;
            if received == 0 {
                return Poll::Ready(Err(Http1Error::Incomplete));
            }
            self.transport.has_received = true;
            let received = &mut scratch[..received];
            let before = partial.len();
            let mut joined;
            let bytes = if before == 0 {
                received
            } else {
                partial.extend_from_slice(received);
                if partial.len() < head::MAX_HEAD && !head::may_be_complete(partial, before) {
                    continue;
                }
                joined = std::mem::take(partial);
                &mut joined
            };
            match head::parse(bytes, has_body, facts)? {
                Parsed::Incomplete { skipped } => *partial = bytes[skipped..].to_vec(),
                Parsed::Complete(head) => {
                    self.transport.may_reuse &= head.may_reuse;
                    self.begin_body(head.framing, &mut bytes[head.length..]);
                    return Poll::Ready(Ok(head.facts));
                }
            }
        }
    }

    /// Begins the body, whose first bytes were received with the head.
    fn begin_body(&mut self, framing: Framing, received: &mut [u8]) {
        let mut body = Body::new(framing);
        body.first = self.transport.decode(&mut body, received);
        if body.is_end() {
            self.end_body();
        } else {
            self.phase = Phase::ReadingBody(body);
        }
    }
}
