//! The parts of the head of a response that the log and the client get to see.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::http1::head::{Headers, text};

/// The part of a response's head that is for the log and for the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseMeta {
    /// The upstream's own id of the request, if it has sent one that is safe to log.
    pub request_id: Option<Box<str>>,
    /// The headers of the response that [`Options::pass_headers`](crate::Options::pass_headers)
    /// names. `None` if the response has no such header.
    pub passed: Option<Box<HeaderMap>>,
}

impl ResponseMeta {
    pub(crate) fn of(headers: Headers<'_>, pass: &[HeaderName]) -> Self {
        Self {
            request_id: request_id(headers),
            passed: passed(headers, pass),
        }
    }
}

fn request_id(headers: Headers<'_>) -> Option<Box<str>> {
    let value = REQUEST_IDS.iter().find_map(|name| headers.get(name))?;
    let id = text(value)?;
    let is_safe =
        (1..=MAX_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
    is_safe.then(|| id.into())
}

fn passed(headers: Headers<'_>, pass: &[HeaderName]) -> Option<Box<HeaderMap>> {
    let mut passed = None;
    for name in pass {
        for value in headers.all(name.as_str()) {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                let passed: &mut Box<HeaderMap> = passed.get_or_insert_default();
                passed.append(name, value);
            }
        }
    }
    passed
}

/// The headers in which servers send their id of a request, the usual one first:
/// [OpenAI](https://platform.openai.com/docs/api-reference/debugging-requests),
/// [Anthropic](https://docs.anthropic.com/en/api/errors#request-id), Azure API Management, AWS,
/// Google and [OpenRouter](https://openrouter.ai/docs/api-reference/overview).
const REQUEST_IDS: [&str; 6] = [
    "x-request-id",
    "request-id",
    "apim-request-id",
    "x-amzn-requestid",
    "x-goog-request-id",
    "x-generation-id",
];
/// The longest id that is logged, in bytes.
const MAX_ID: usize = 128;
