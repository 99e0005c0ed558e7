//! One HTTP/1.1 connection. The caller that sends or reads drives it: there is no separate task, so
//! dropping it closes it. While it waits, it holds no memory for reading or writing.

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
    /// The bytes of an incomplete head.
    head: Vec<u8>,
    body: Body,
    connect_time: Duration,
    /// The timer for all waits of its requests and responses.
    pub(crate) timer: LazyTimer,
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
            head: Vec::new(),
            body: Body::new(Framing::Length(0)),
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
        if let Some(error) = self.transport.interruption() {
            return Err(ConnectionEnded {
                error,
                was_written: false,
            });
        }
        self.transport.unsent = Some(request);
        std::future::poll_fn(|cx| self.poll_head(cx, has_body, &facts))
            .await
            .map_err(|error| ConnectionEnded {
                error,
                was_written: true,
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
        let transport = &mut self.transport;
        transport.may_reuse
            && transport.unsent.is_none()
            && self.body.is_end()
            && transport.interruption().is_none()
    }

    /// Returns true once the body was returned completely.
    pub(crate) fn is_end(&self) -> bool {
        self.body.is_end()
    }

    /// The number of bytes of the body that are left to be returned, if the head has declared it.
    pub(crate) fn length(&self) -> Option<u64> {
        self.body.length()
    }

    /// Polls for the next piece of the body, which is `None` at the end. All data of one read is
    /// one piece.
    pub(crate) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Http1Error>> {
        self.transport.poll_body(cx, &mut self.body)
    }

    /// Writes the rest of the request, and reads until the head of the response is complete: a host
    /// may respond before it has received all of the request.
    fn poll_head<T>(
        &mut self,
        cx: &mut Context<'_>,
        has_body: bool,
        facts: &impl Fn(StatusCode, Headers<'_>) -> T,
    ) -> Poll<Result<T, Http1Error>> {
        let written = self.transport.poll_write(cx);
        let head = scratch::with(|scratch| self.poll_read_head(cx, scratch, has_body, facts));
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
            let before = self.head.len();
            let taken = if before == 0 {
                self.take_head(received, has_body, facts)?
            } else {
                self.head.extend_from_slice(received);
                if self.head.len() < head::MAX_HEAD && !head::may_be_complete(&self.head, before) {
                    continue;
                }
                let mut head = std::mem::take(&mut self.head);
                self.take_head(&mut head, has_body, facts)?
            };
            if let Some(facts) = taken {
                return Poll::Ready(Ok(facts));
            }
        }
    }

    /// Takes a head, and the part of the body that follows it. Returns `None` if it is incomplete.
    fn take_head<T>(
        &mut self,
        bytes: &mut [u8],
        has_body: bool,
        facts: &impl Fn(StatusCode, Headers<'_>) -> T,
    ) -> Result<Option<T>, Invalid> {
        let head = match head::parse(bytes, has_body, facts)? {
            Parsed::Complete(head) => head,
            Parsed::Incomplete { skipped } => {
                self.head = bytes[skipped..].to_vec();
                return Ok(None);
            }
        };
        self.body = Body::new(head.framing);
        self.transport.may_reuse &= head.may_reuse;
        let received = &mut bytes[head.length..];
        self.body.first = self.transport.decode(&mut self.body, received);
        Ok(Some(head.facts))
    }
}
