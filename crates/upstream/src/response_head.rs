//! The facts that are read from the head of a response.

use std::time::{Duration, SystemTime};

use coding::{Coding, Unsupported};
use http::{HeaderName, StatusCode};

use crate::http1::head::Headers;
use crate::response_meta::ResponseMeta;
use crate::retry_after;
use crate::sockets::Refusal;

/// The head of a response.
pub(crate) struct ResponseHead {
    pub(crate) status: StatusCode,
    /// True if the declared content type is `text/event-stream`.
    pub(crate) is_event_stream: bool,
    /// The coding of the content, if it has one.
    pub(crate) coding: Result<Option<Coding>, Unsupported>,
    /// The time after which a retry makes sense, as it was sent.
    pub(crate) retry_delay: Option<Duration>,
    pub(crate) meta: ResponseMeta,
}

impl ResponseHead {
    /// Reads a head. The headers that `pass` names are kept for the client.
    pub(crate) fn of(status: StatusCode, headers: Headers<'_>, pass: &[HeaderName]) -> Self {
        Self {
            status,
            is_event_stream: is_event_stream(headers),
            coding: Coding::of(headers.all("content-encoding")),
            retry_delay: retry_delay(|name| headers.text(name)),
            meta: ResponseMeta::of(headers, pass),
        }
    }

    /// The head that the first event of a response over a WebSocket stands for: of an event stream,
    /// or of a refusal.
    pub(crate) fn of_event(refusal: Option<&Refusal>) -> Self {
        Self {
            status: refusal.map_or(StatusCode::OK, |refusal| refusal.status),
            is_event_stream: refusal.is_none(),
            coding: Ok(None),
            retry_delay: refusal.and_then(|refusal| retry_delay(|name| refusal.header(name))),
            meta: ResponseMeta::default(),
        }
    }
}

fn is_event_stream(headers: Headers<'_>) -> bool {
    let value = headers.text("content-type").unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("text/event-stream")
}

/// Reads the header of milliseconds first, as the SDK of OpenAI does
/// (<https://github.com/openai/openai-python/blob/main/src/openai/_base_client.py>). Azure sends the other
/// one too.
fn retry_delay<'a>(header: impl Fn(&'static str) -> Option<&'a str>) -> Option<Duration> {
    let milliseconds = |name| retry_after::parse_milliseconds(header(name)?);
    milliseconds("retry-after-ms")
        .or_else(|| milliseconds("x-ms-retry-after-ms"))
        .or_else(|| delay(header("retry-after")?))
}

fn delay(retry_after: &str) -> Option<Duration> {
    #[allow(
        clippy::disallowed_methods,
        reason = "Retry-After may be a date of the wall clock"
    )]
    retry_after::parse(retry_after, SystemTime::now())
}
