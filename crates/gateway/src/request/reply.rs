//! The replies of endpoints, before the record of their request is attached.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use serde::Serialize;
use telemetry::outcome::Outcome;
use tokio::time::Instant;

use crate::connection::state::OpenedBy;
use crate::exchange::answer::AnswerStream;
use crate::exchange::answer::pending::{Attempt, PendingAnswer, WriteFailure};
use crate::exchange::answer::started::Started;
use crate::exchange::body::Body;
use crate::exchange::body::buffered::Buffered;
use crate::exchange::body::delivered::delivered;
use crate::exchange::body::events::{Events, Times};
use crate::exchange::record::Record;
use crate::exchange::refusal::Refusal;
use crate::state::{Caller, GatewayState};

/// The body of a successful response.
pub(crate) enum ReplyBody {
    Buffered(Buffered),
    /// A body that is forwarded while it is received.
    Forwarded(Body),
    Stream(Box<dyn AnswerStream>),
}

impl ReplyBody {
    /// Returns the body with the record of its request, which ends with the last byte. A short
    /// reply is written at once, and none is written for `HEAD`, so the record ends here.
    pub(crate) fn into_body(self, mut record: Record, state: &GatewayState, is_head: bool) -> Body {
        let abort = record.aborting(&state.lifecycle);
        let deadline = state.deadline(&record);
        match self {
            Self::Buffered(body) if body.is_short() || is_head => {
                record.end(Outcome::Completed);
                body.into_body()
            }
            Self::Buffered(body) => delivered(body.into_body(), record, deadline, abort),
            Self::Forwarded(body) => delivered(body, record, deadline, abort),
            Self::Stream(stream) => {
                let times = Times {
                    keep_alive: state.limits.keep_alive,
                    first_event: deadline,
                    end: record.started + state.limits.stream_timeout,
                };
                Events::new(stream, times, abort, record).boxed_unsync()
            }
        }
    }
}

/// Returns a response of status 200 with `value` as JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<Response<ReplyBody>, Refusal> {
    Ok(json_bytes(
        serde_json::to_vec(value).map_err(unserializable)?.into(),
    ))
}

pub(crate) fn unserializable(error: serde_json::Error) -> Refusal {
    Refusal::internal(format!("failed to serialize the reply: {error}"))
}

/// Returns a response of status 200 with these bytes, which are JSON.
pub(crate) fn json_bytes(body: Bytes) -> Response<ReplyBody> {
    json_reply(ReplyBody::Buffered(body.into()))
}

/// Returns a response of status 200 with this body, which is JSON.
pub(crate) fn json_reply(body: ReplyBody) -> Response<ReplyBody> {
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Streams the answer of an attempt. A failure is an HTTP status for at most one keep-alive
/// interval; once the answer has started, or that interval has passed, the status is 200 and a
/// failure is an event of the stream.
pub(crate) async fn stream<E: Send + 'static>(
    mut attempt: Attempt<E>,
    encoder: E,
    write_failure: WriteFailure<E>,
    caller: &Caller<'_>,
) -> Result<Response<ReplyBody>, Refusal> {
    let patience = Instant::now() + caller.state.limits.keep_alive;
    let timer = &caller.record.connection.timer;
    let (answer, dropped) = match timer.timeout_at(patience, &mut attempt).await {
        Some(started) => {
            let Started { dropped, answer } = started?;
            (answer(encoder), dropped)
        }
        None => (
            PendingAnswer::boxed(attempt, encoder, write_failure),
            caller.record.targets.current().losses(),
        ),
    };
    let mut response = event_stream(ReplyBody::Stream(answer));
    name_dropped(response.headers_mut(), &dropped);
    Ok(response)
}

/// Returns the permission to open a WebSocket. The crate `websocket` completes the handshake.
pub(crate) fn switching_protocols(key: &Arc<str>) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Buffered(Bytes::new().into()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.extensions_mut().insert(OpenedBy(Arc::clone(key)));
    response
}

pub(crate) fn event_stream(body: ReplyBody) -> Response<ReplyBody> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}

/// Lists the request fields that the engine cannot be given in the `x-sluicegate-dropped` header.
pub(crate) fn name_dropped(headers: &mut HeaderMap, dropped: &[String]) {
    if dropped.is_empty() {
        return;
    }
    if let Ok(value) = HeaderValue::from_str(&dropped.join(", ")) {
        headers.insert(HeaderName::from_static("x-sluicegate-dropped"), value);
    }
}
