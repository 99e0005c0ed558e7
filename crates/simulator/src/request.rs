//! A request, as it came.

use std::time::Instant;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use crate::honest::form::Form;

/// A request, as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its place among all requests, from 0.
    pub number: usize,
    /// The place of its connection among all connections, from 0.
    pub connection: usize,
    /// Its place among the requests of its connection, from 0.
    pub nth_on_connection: usize,
    /// As sent: `POST`.
    pub method: String,
    /// The request target as sent, with its query: `/v1/responses?x=1`.
    pub path: String,
    /// Names in lower case, in the order in which they came; bytes outside UTF-8 are replaced.
    pub headers: Vec<(String, String)>,
    /// Without its transfer coding.
    pub body: Bytes,
    /// When the last byte of it had come.
    pub at: Instant,
}

impl Request {
    /// The first header of this name, which is given in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null when it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The model that is asked for, in JSON or in a form; empty when none is.
    #[must_use]
    pub fn model(&self) -> String {
        self.brief().model.unwrap_or_default()
    }

    /// Whether a stream is asked for, in JSON or in a form.
    #[must_use]
    pub fn streams(&self) -> bool {
        self.brief().stream.unwrap_or_default()
    }

    /// What is spoken on the path, whatever stands before it: `/v1/messages` and `/anthropic/v1/messages` are Messages.
    #[must_use]
    pub fn protocol(&self) -> Option<Protocol> {
        let path = self.route();
        let ends = |end: &str| path.ends_with(end);
        match () {
            () if ends("/responses") => Some(Protocol::Responses),
            () if ends("/chat/completions") => Some(Protocol::Chat),
            () if ends("/messages") || ends("/messages/count_tokens") => Some(Protocol::Messages),
            () if ends("/images/generations") || ends("/images/edits") => Some(Protocol::Images),
            () => None,
        }
    }

    /// The path without its query.
    pub(crate) fn route(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    fn brief(&self) -> Brief {
        match Form::of(self) {
            Some(form) => {
                Brief { model: form.text("model"), stream: form.text("stream").map(|stream| stream == "true") }
            }
            None => serde_json::from_slice(&self.body).unwrap_or_default(),
        }
    }
}

/// The protocols that are spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// `POST …/responses`.
    Responses,
    /// `POST …/chat/completions`.
    Chat,
    /// `POST …/messages` and `POST …/messages/count_tokens`.
    Messages,
    /// `POST …/images/generations` and `POST …/images/edits`.
    Images,
}

/// What can be told of a body without reading all of it.
#[derive(Default, Deserialize)]
struct Brief {
    model: Option<String>,
    stream: Option<bool>,
}
