//! The requests of clients, and their exchange with the gateway over either version of HTTP or a WebSocket.

use serde_json::Value;
use simulator::Protocol;
use testkit::requests::{Question, ask, path};
use testkit::{CLIENT_KEY, Response};

use crate::fault::{Fault, Leave, Spot};

/// A request.
pub(crate) struct ClientRequest {
    pub(crate) path: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

/// The parts of a request that were sent.
pub(crate) struct Sent {
    /// True if its head was.
    pub(crate) head: bool,
    /// True if all of it was.
    pub(crate) whole: bool,
}

/// A request and its response on a connection.
pub(crate) trait ClientExchange {
    /// Sends the request up to a position, or all of it.
    async fn send(&mut self, up_to: Option<Spot>) -> Sent;

    /// Reads until the response is complete, or `enough` bytes are there, or nothing more arrives.
    async fn read(&mut self, enough: usize);

    /// Leaves before the end. A client that stays goes on with its request in `read`.
    async fn leave(&mut self, how: Leave);

    /// The response, as far as it was read. `None` without a head.
    fn response(self) -> Option<Response>;
}

impl ClientRequest {
    /// The request of a fault, with headers that must not be forwarded.
    pub(crate) fn new(fault: &Fault) -> Self {
        let (path, (kind, mut body)) = match fault.client {
            Protocol::Images => (
                fault.drawing.path(),
                fault
                    .drawing
                    .request(&fault.model, &fault.nonce(), fault.stream),
            ),
            client => (
                path(client),
                ("application/json", words(fault).to_string().into_bytes()),
            ),
        };
        let coding = fault.encode_request(&mut body);
        let mut headers = vec![
            ("authorization", format!("Bearer {CLIENT_KEY}")),
            ("content-type", kind.to_owned()),
            ("anthropic-version", "2023-06-01".to_owned()),
            ("cookie", "session=private".to_owned()),
            ("x-forwarded-for", "203.0.113.9".to_owned()),
            ("content-length", body.len().to_string()),
        ];
        headers.extend(coding.map(|coding| ("content-encoding", coding.to_owned())));
        Self {
            path,
            headers,
            body,
        }
    }
}

fn words(fault: &Fault) -> Value {
    if let Some(strict) = &fault.strict {
        return strict.asked(fault);
    }
    match fault.question {
        Question::Text => ask(fault.client, &fault.model, &fault.nonce(), fault.stream),
        question => question.body(fault.client, &fault.model, fault.stream),
    }
}
