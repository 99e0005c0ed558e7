//! Received requests, and the protocols that their paths select.

use std::time::Instant;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use crate::clock;
use crate::form::{self, Part};

/// A request as received.
#[derive(Clone, Debug)]
pub struct Request {
    /// Index among all requests, from 0.
    pub number: usize,
    /// Index of its connection among all connections, from 0.
    pub connection: usize,
    /// Index among the requests of its connection, from 0.
    pub nth_on_connection: usize,
    /// The method as sent: `POST`; `WEBSOCKET` for a message over a WebSocket.
    pub method: String,
    /// The request target as sent, with its query: `/v1/responses?x=1`.
    pub path: String,
    /// The headers in order, with names in lower case; invalid UTF-8 is replaced.
    pub headers: Vec<(String, String)>,
    /// The body, without its transfer coding.
    pub body: Bytes,
    /// The time at which its last byte had arrived.
    pub at: Instant,
}

impl Request {
    /// The first header with this name, compared without regard to case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null if it is not valid JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The requested model, in JSON or in a form; empty if it is missing.
    #[must_use]
    pub fn model(&self) -> String {
        self.summary().model.unwrap_or_default()
    }

    /// Returns true if a stream is requested, in JSON or in a form, or by a message over a WebSocket.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.summary().stream.unwrap_or_default() || self.is_message()
    }

    /// Returns true if it asks to switch to a WebSocket.
    #[must_use]
    pub fn is_handshake(&self) -> bool {
        self.method == "GET" && self.header("upgrade") == Some("websocket")
    }

    /// Returns true if it came as a message over a WebSocket.
    #[must_use]
    pub fn is_message(&self) -> bool {
        self.method == MESSAGE
    }

    /// The request that a message over the WebSocket of this handshake is.
    pub(crate) fn of_message(&self, body: Bytes) -> Self {
        Self {
            method: MESSAGE.to_owned(),
            body,
            at: clock::now(),
            ..self.clone()
        }
    }

    /// The protocol of the path, whatever its prefix: `/v1/messages` and `/anthropic/v1/messages`
    /// are Messages.
    #[must_use]
    pub fn protocol(&self) -> Option<Protocol> {
        let ends = |end: &str| self.route().ends_with(end);
        match () {
            () if ends("/responses") || ends("/responses/input_tokens") => {
                Some(Protocol::Responses)
            }
            () if ends("/chat/completions") => Some(Protocol::Chat),
            () if ends("/messages") || ends("/messages/count_tokens") => Some(Protocol::Messages),
            () if ends("/images/generations") || ends("/images/edits") => Some(Protocol::Images),
            () => None,
        }
    }

    /// The parts of the multipart form in the body. `None` if the body is not a form.
    pub(crate) fn form(&self) -> Option<Vec<Part>> {
        form::parse(self.header("content-type")?, &self.body)
    }

    /// The path without its query.
    pub(crate) fn route(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    fn summary(&self) -> Summary {
        let Some(form) = self.form() else {
            return serde_json::from_slice(&self.body).unwrap_or_default();
        };
        let text = |name: &str| {
            form.iter()
                .find(|part| part.name == name && !part.is_file)
                .map(Part::text)
        };
        Summary {
            model: text("model"),
            stream: text("stream").map(|stream| stream == "true"),
        }
    }
}

/// The supported protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// `POST …/responses` and `POST …/responses/input_tokens`.
    Responses,
    /// `POST …/chat/completions`.
    Chat,
    /// `POST …/messages` and `POST …/messages/count_tokens`.
    Messages,
    /// `POST …/images/generations` and `POST …/images/edits`.
    Images,
}

/// The method of a request that is a message over a WebSocket.
pub(crate) const MESSAGE: &str = "WEBSOCKET";

/// The fields that select a scenario, deserialized without the rest of the body.
#[derive(Default, Deserialize)]
struct Summary {
    model: Option<String>,
    stream: Option<bool>,
}
