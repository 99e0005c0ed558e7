//! The events of clients, and those that the server sends besides the events of responses.
//!
//! The guide is [WebSocket mode](https://developers.openai.com/api/docs/guides/websocket-mode).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use gateway::exchange::refusal::Refusal;
use http::HeaderMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use wire::lenient::Text;
use wire::{ApiError, Path, Violations};

/// The stream of a connection that a response belongs to: a name, or the one without a name.
pub(crate) type Lane = Option<Arc<str>>;

wire::read_objects!(ClientEvent);

/// An event of a client, with the members that concern the connection. The gateway reads the others.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub(crate) struct ClientEvent {
    #[serde(rename = "type")]
    pub(crate) kind: Kind,
    #[serde(default)]
    stream_id: Option<String>,
    /// False for a request that prepares a response without one.
    #[serde(default)]
    pub(crate) generate: Option<bool>,
    #[serde(default)]
    pub(crate) background: Option<bool>,
    #[serde(default)]
    pub(crate) previous_response_id: Option<String>,
}

wire::open_enum! {
    /// The type of an event of a client.
    pub(crate) enum Kind {
        /// Asks for a response.
        Create = "response.create",
        /// Adds input to a response that is running.
        Steer = "response.steer",
    }
}

#[derive(Serialize)]
struct ErrorEvent<'a, E> {
    #[serde(rename = "type")]
    kind: &'static str,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_id: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<&'static str, &'a str>,
    error: E,
}

#[derive(Deserialize)]
struct ErrorBody<'a> {
    #[serde(borrow)]
    error: &'a RawValue,
}

#[derive(Deserialize)]
struct CodeBody<'a> {
    #[serde(borrow)]
    error: CodeView<'a>,
}

#[derive(Deserialize)]
struct CodeView<'a> {
    #[serde(borrow, default)]
    code: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Steer<'a> {
    #[serde(borrow)]
    previous_response_id: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

impl ClientEvent {
    /// Reads an event.
    ///
    /// # Errors
    /// Returns 400 for an event that is not valid JSON, or of an unknown type.
    pub(crate) fn read(text: &str) -> Result<Self, ApiError> {
        let event: Self = wire::read(text.as_bytes())?;
        if !event.kind.is_known() {
            let mut found = Violations::default();
            found.unknown_word(&Path::ROOT.key("type"), event.kind.as_str(), Kind::KNOWN);
            return Err(found.into());
        }
        Ok(event)
    }

    /// Returns the stream that the event is for.
    ///
    /// # Errors
    /// Returns 400 for a name in another form than the guide has.
    pub(crate) fn lane(&self) -> Result<Lane, ApiError> {
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        match self.stream_id.as_deref() {
            None => Ok(None),
            Some(id) if (1..=256).contains(&id.len()) && id.bytes().all(is_of_name) => {
                Ok(Some(id.into()))
            }
            Some(_) => Err(Refusal::stream_id().error),
        }
    }
}

/// The error of a stream beyond the number that a connection may have.
pub(crate) fn too_many_streams() -> ApiError {
    Refusal::too_many_streams(MAX_STREAMS).error
}

/// The error of a connection that is as old as it may become.
pub(crate) fn too_old(minutes: u64) -> ApiError {
    Refusal::websocket_too_old(minutes).error
}

/// The error of a request in the background, which has no events to send.
pub(crate) fn no_background() -> ApiError {
    Refusal::no_background().error
}

/// The error of a request that arrives while the gateway shuts down.
pub(crate) fn stopping() -> ApiError {
    Refusal::overloaded("the gateway shuts down").error
}

/// Returns the event of an error.
pub(crate) fn error(lane: &Lane, error: &ApiError) -> String {
    let seconds = error.retry_after.map(|seconds| seconds.to_string());
    let headers = seconds
        .iter()
        .map(|seconds| (RETRY_AFTER, seconds.as_str()));
    error_event(
        lane,
        error.kind.status(),
        headers.collect(),
        error.body().error,
    )
}

/// Returns the event of a response of HTTP that has another status than 200. The headers that say
/// when to try again are in the event, where Codex reads them:
/// <https://github.com/openai/codex/blob/main/codex-rs/codex-api/src/endpoint/responses_websocket.rs>.
pub(crate) fn refused(lane: &Lane, status: u16, headers: &HeaderMap, body: &[u8]) -> String {
    let value = |name: &'static str| Some((name, headers.get(name)?.to_str().ok()?));
    let headers = RETRY_HEADERS.into_iter().filter_map(value).collect();
    match serde_json::from_slice::<ErrorBody<'_>>(body) {
        Ok(ErrorBody { error }) => error_event(lane, status, headers, error),
        Err(_) => error(lane, &ApiError::server_error()),
    }
}

/// True for the body of an error that says that the continued response is unknown.
pub(crate) fn is_about_previous(body: &[u8]) -> bool {
    let body = serde_json::from_slice::<CodeBody<'_>>(body);
    body.is_ok_and(|body| body.error.code.get() == Some("previous_response_not_found"))
}

fn error_event<'a>(
    lane: &'a Lane,
    status: u16,
    headers: BTreeMap<&'static str, &'a str>,
    error: impl Serialize,
) -> String {
    let event = ErrorEvent {
        kind: "error",
        status,
        stream_id: lane.as_deref(),
        headers,
        error,
    };
    // Strings and JSON can always be serialized.
    serde_json::to_string(&event).unwrap_or_default()
}

/// Returns the answer to a `response.steer`: it is not supported, in the words of the
/// [reference](https://developers.openai.com/api/reference/resources/responses/websocket-events).
pub(crate) fn steering_failed(text: &str) -> String {
    let steer = serde_json::from_str::<Steer<'_>>(text).unwrap_or_default();
    let id = steer.previous_response_id.map_or("\"\"", RawValue::get);
    let input = steer.input.map_or("[]", RawValue::get);
    format!(
        r#"{{"type":"response.steer.failed","sequence_number":0,"steer":{{"previous_response_id":{id},"input":{input}}},"error":{{"type":"invalid_request_error","code":"steering_not_supported","message":"Steering is not supported; send a response.create after the response."}}}}"#
    )
}

/// Adds the name of its stream to an event, which is a JSON object.
pub(crate) fn with_lane<'a>(lane: &Lane, event: Cow<'a, str>) -> Cow<'a, str> {
    match (lane, event.strip_prefix('{')) {
        (Some(lane), Some(rest)) => {
            let comma = if rest.trim_start().starts_with('}') {
                ""
            } else {
                ","
            };
            // The characters of a name need no escapes.
            format!(r#"{{"stream_id":"{lane}"{comma}{rest}"#).into()
        }
        _ => event,
    }
}

const RETRY_AFTER: &str = "retry-after";
const RETRY_HEADERS: [&str; 3] = [RETRY_AFTER, "retry-after-ms", "x-should-retry"];
/// The number of named streams of a connection, as in the guide.
pub(crate) const MAX_STREAMS: usize = 32;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn code(text: &str) -> (&'static str, Option<String>) {
        let read = ClientEvent::read(text).and_then(|event| event.lane());
        let error = read.unwrap_err();
        (error.code, error.param)
    }

    #[test]
    fn an_event_has_a_known_type() {
        for (text, expected) in [
            ("{", ("invalid_json", None)),
            ("[]", ("invalid_json", None)),
            ("{}", ("missing_required_parameter", Some("type"))),
            (
                r#"{"type":"response.cancel"}"#,
                ("invalid_value", Some("type")),
            ),
            (
                r#"{"type":"response.create","stream_id":""}"#,
                ("invalid_stream_id", Some("stream_id")),
            ),
            (
                r#"{"type":"response.create","stream_id":"a b"}"#,
                ("invalid_stream_id", Some("stream_id")),
            ),
        ] {
            let (expected, param) = expected;
            assert_eq!(code(text), (expected, param.map(str::to_owned)), "{text}");
        }
        let event = ClientEvent::read(r#"{"type":"response.create","stream_id":null,"x":1}"#);
        let event = event.unwrap();
        assert_eq!((event.lane().unwrap(), event.kind), (None, Kind::Create));
    }

    /// The examples of the guide, with the members in another order.
    #[test]
    fn errors_have_the_form_of_the_guide() {
        let parsed = |text: String| serde_json::from_str::<Value>(&text).unwrap();
        assert_eq!(
            parsed(error(&Some("agent_33".into()), &too_many_streams())),
            json!({
                "type": "error",
                "status": 400,
                "stream_id": "agent_33",
                "error": {
                    "type": "invalid_request_error",
                    "code": "websocket_stream_limit_reached",
                    "message": "This WebSocket connection has reached its maximum number of \
                                distinct stream IDs (32). Reuse an existing stream_id or open a \
                                new WebSocket connection.",
                    "param": "stream_id",
                },
            })
        );
        assert_eq!(
            parsed(error(&None, &too_old(60))),
            json!({
                "type": "error",
                "status": 400,
                "error": {
                    "type": "invalid_request_error",
                    "code": "websocket_connection_limit_reached",
                    "message": "Responses websocket connection limit reached (60 minutes). Create \
                                a new websocket connection to continue.",
                    "param": null,
                },
            })
        );
    }

    #[test]
    fn a_refusal_of_http_keeps_its_error() {
        let body = br#"{"error":{"message":"No.","code":"x","n":1.50}}"#;
        let none = HeaderMap::new();
        assert_eq!(
            refused(&None, 429, &none, body),
            r#"{"type":"error","status":429,"error":{"message":"No.","code":"x","n":1.50}}"#
        );
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", "7".parse().unwrap());
        headers.insert("retry-after-ms", "6500".parse().unwrap());
        headers.insert("content-type", "application/json".parse().unwrap());
        assert_eq!(
            refused(&None, 429, &headers, br#"{"error":{}}"#),
            r#"{"type":"error","status":429,"headers":{"retry-after":"7","retry-after-ms":"6500"},"error":{}}"#
        );
        let broken = refused(&None, 502, &none, b"<html>");
        let broken: Value = serde_json::from_str(&broken).unwrap();
        assert_eq!(broken["error"]["code"], "server_error");
    }

    #[test]
    fn an_event_gets_the_name_of_its_stream() {
        let named = Some("main".into());
        for (event, expected) in [
            (r#"{"a":1}"#, r#"{"stream_id":"main","a":1}"#),
            ("{ }", r#"{"stream_id":"main" }"#),
        ] {
            assert_eq!(with_lane(&named, event.into()), expected);
            assert_eq!(with_lane(&None, event.into()), event);
        }
    }

    #[test]
    fn steering_is_refused_with_what_was_sent() {
        let steer = r#"{"type":"response.steer","previous_response_id":"resp_1","input":"Stop."}"#;
        let failed: Value = serde_json::from_str(&steering_failed(steer)).unwrap();
        assert_eq!(failed["type"], "response.steer.failed");
        assert_eq!(failed["error"]["code"], "steering_not_supported");
        assert_eq!(
            failed["steer"],
            json!({ "previous_response_id": "resp_1", "input": "Stop." })
        );
    }
}
