//! The parts of the head of a response that the log and the client get to see.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The part of a response's head that is for the log and for the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseMeta {
    /// The upstream's own id of the request, if it has sent one that is safe to log.
    pub request_id: Option<Box<str>>,
    /// The headers of the response that [`Options::pass_headers`](crate::Options::pass_headers)
    /// names. `None` if there are none.
    pub passed: Option<Box<HeaderMap>>,
}

impl ResponseMeta {
    pub(crate) fn of(headers: &HeaderMap, pass: &[HeaderName]) -> Self {
        Self {
            request_id: request_id(headers),
            passed: passed(headers, pass),
        }
    }
}

fn request_id(headers: &HeaderMap) -> Option<Box<str>> {
    let value = REQUEST_IDS.iter().find_map(|name| headers.get(name))?;
    let id = value.to_str().ok()?;
    let is_safe =
        (1..=MAX_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
    is_safe.then(|| id.into())
}

/// Copies the values, because a shared one would keep the whole head in memory.
fn passed(headers: &HeaderMap, pass: &[HeaderName]) -> Option<Box<HeaderMap>> {
    let mut passed = None;
    for name in pass {
        for value in headers.get_all(name) {
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
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
const REQUEST_IDS: [HeaderName; 6] = [
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("request-id"),
    HeaderName::from_static("apim-request-id"),
    HeaderName::from_static("x-amzn-requestid"),
    HeaderName::from_static("x-goog-request-id"),
    HeaderName::from_static("x-generation-id"),
];
/// The longest id that is logged, in bytes.
const MAX_ID: usize = 128;
