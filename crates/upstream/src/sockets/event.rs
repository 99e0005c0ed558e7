//! The events of a server.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sse::EventName;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use wire::lenient::Text;

/// An event of a server: the data of an event of the same stream over HTTP.
pub(crate) struct Event {
    text: Utf8Bytes,
    /// Its type; empty if it has none.
    kind: String,
}

/// An error that stands for an HTTP response.
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) code: Option<String>,
    /// The headers, by their names in lower case.
    headers: BTreeMap<String, String>,
}

impl Refusal {
    /// Returns a header, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

#[derive(Deserialize)]
struct KindView<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

#[derive(Deserialize)]
struct EndView<'a> {
    #[serde(borrow)]
    response: IdView<'a>,
}

#[derive(Deserialize)]
struct IdView<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
}

/// Codex reads these members too:
/// <https://github.com/openai/codex/blob/main/codex-rs/codex-api/src/endpoint/responses_websocket.rs>.
#[derive(Deserialize)]
struct RefusalView<'a> {
    #[serde(alias = "status_code")]
    status: u16,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    headers: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CodeView<'a> {
    #[serde(borrow, default)]
    code: Text<'a>,
}

impl Event {
    pub(crate) fn new(text: Utf8Bytes) -> Self {
        let view = serde_json::from_str::<KindView<'_>>(&text);
        let kind = view.map_or_else(|_| String::new(), |view| view.kind.into_owned());
        Self { text, kind }
    }

    /// Returns the refusal of an error that has a status. Without one it is an event of a stream.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        if self.kind != ERROR {
            return None;
        }
        let view: RefusalView<'_> = serde_json::from_str(&self.text).ok()?;
        let status = StatusCode::from_u16(view.status).ok()?;
        let code = view.error.and_then(|error| {
            let error: CodeView<'_> = serde_json::from_str(error.get()).ok()?;
            error.code.get().map(str::to_owned)
        });
        Some(Refusal {
            status,
            code,
            headers: view.headers.map(headers).unwrap_or_default(),
        })
    }

    /// True for a refusal with this code.
    pub(crate) fn is_refusal_with(&self, code: &str) -> bool {
        let refusal = self.refusal();
        refusal.is_some_and(|refusal| refusal.code.as_deref() == Some(code))
    }

    /// Returns the id of the response that the event completes, unless it has failed.
    pub(crate) fn response_id(&self) -> Option<String> {
        if !CONTINUED.contains(&&*self.kind) {
            return None;
        }
        let view: EndView<'_> = serde_json::from_str(&self.text).ok()?;
        Some(view.response.id.into_owned())
    }

    /// True for the last event of a response.
    pub(crate) fn is_end(&self) -> bool {
        ENDS.contains(&&*self.kind)
    }

    /// The event in the form of an event stream.
    pub(crate) fn encoded(&self) -> Bytes {
        let Self { text, kind } = self;
        let mut out = Vec::with_capacity(text.len() + kind.len() + FRAMING);
        sse::encode(EventName::new(kind).ok(), text, &mut out);
        out.into()
    }

    /// The event as it was sent.
    pub(crate) fn into_bytes(self) -> Bytes {
        self.text.into()
    }
}

/// Reads headers, whose values are texts or numbers.
fn headers(json: &RawValue) -> BTreeMap<String, String> {
    let headers: BTreeMap<String, Value> = serde_json::from_str(json.get()).unwrap_or_default();
    let text = |value| match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let headers = headers.into_iter();
    headers
        .filter_map(|(name, value)| Some((name.to_ascii_lowercase(), text(value)?)))
        .collect()
}

const ERROR: &str = "error";
const ENDS: [&str; 4] = [
    "response.completed",
    "response.incomplete",
    "response.failed",
    ERROR,
];
/// The events that end a response which can be continued.
const CONTINUED: [&str; 2] = ["response.completed", "response.incomplete"];
/// The length of the names of an event's lines.
const FRAMING: usize = 32;
