//! The events of a server.

use std::borrow::Cow;

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use sse::EventName;
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// An event of a server: the data of an event of the same stream over HTTP.
pub(crate) struct Event(Utf8Bytes);

/// The status of an HTTP response that an error stands for.
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// True if the server accepts no more requests over this socket because of its age.
    pub(crate) is_too_old: bool,
}

#[derive(Deserialize)]
struct KindView<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

#[derive(Deserialize)]
struct RefusalView<'a> {
    status: u16,
    #[serde(borrow, default)]
    error: Option<CodeView<'a>>,
}

#[derive(Deserialize)]
struct CodeView<'a> {
    #[serde(borrow, default)]
    code: Option<Cow<'a, str>>,
}

impl Event {
    pub(crate) fn new(text: Utf8Bytes) -> Self {
        Self(text)
    }

    /// Returns the refusal of an error that has a status. Without one it is an event of a stream.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        if self.kind()? != ERROR {
            return None;
        }
        let view: RefusalView<'_> = serde_json::from_str(&self.0).ok()?;
        let status = StatusCode::from_u16(view.status).ok()?;
        let code = view.error.and_then(|error| error.code);
        Some(Refusal {
            status,
            is_too_old: code.as_deref() == Some(TOO_OLD),
        })
    }

    /// True for the last event of a response.
    pub(crate) fn is_end(&self) -> bool {
        self.kind().is_some_and(|kind| ENDS.contains(&&*kind))
    }

    /// The event in the form of an event stream.
    pub(crate) fn encoded(&self) -> Bytes {
        let kind = self.kind().unwrap_or_default();
        let mut out = Vec::with_capacity(self.0.len() + kind.len() + FRAMING);
        sse::encode(EventName::new(&kind).ok(), &self.0, &mut out);
        out.into()
    }

    /// The event as it was sent.
    pub(crate) fn into_bytes(self) -> Bytes {
        self.0.into()
    }

    fn kind(&self) -> Option<Cow<'_, str>> {
        let view: KindView<'_> = serde_json::from_str(&self.0).ok()?;
        Some(view.kind)
    }
}

const ERROR: &str = "error";
const ENDS: [&str; 4] = [
    "response.completed",
    "response.incomplete",
    "response.failed",
    ERROR,
];
/// The code of the error at the end of the time that a server gives a connection, an hour for OpenAI.
const TOO_OLD: &str = "websocket_connection_limit_reached";
/// The length of the names of an event's lines.
const FRAMING: usize = 32;
