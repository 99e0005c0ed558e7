//! The head of a response: status, headers, and the framing of the body.

use std::mem::MaybeUninit;

use http::StatusCode;
use httparse::{Header, ParserConfig, Response, Status};

use crate::http1::body::Framing;
use crate::http1::error::Invalid;

/// The headers of a response, borrowed from the bytes that were read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers<'a>(&'a [Header<'a>]);

impl<'a> Headers<'a> {
    /// Returns the values of all headers with this name.
    pub(crate) fn all(self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.0
            .iter()
            .filter(move |header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value)
    }

    /// Returns the value of the first header with this name.
    pub(crate) fn get(self, name: &str) -> Option<&'a [u8]> {
        self.all(name).next()
    }

    /// Returns the value of the first header with this name, if it is visible ASCII.
    pub(crate) fn text(self, name: &str) -> Option<&'a str> {
        text(self.get(name)?)
    }

    fn has(self, name: &str) -> bool {
        self.get(name).is_some()
    }
}

/// The result of reading the bytes at the start of a response.
#[derive(Debug)]
pub(crate) enum Parsed<T> {
    /// The head is not complete yet. The first `skipped` bytes are of interim responses.
    Incomplete { skipped: usize },
    /// The head was read.
    Complete(Head<T>),
}

/// A complete head.
#[derive(Debug)]
pub(crate) struct Head<T> {
    /// The number of bytes up to the body.
    pub(crate) length: usize,
    /// The framing of the body.
    pub(crate) framing: Framing,
    /// True if the host keeps the connection open, and the end of the body is not ambiguous.
    pub(crate) may_reuse: bool,
    /// The part of the head that the caller has asked for.
    pub(crate) facts: T,
}

/// Parses a head, and skips the interim responses before it. `has_body` is false for the response
/// to a `HEAD` request. Calls `facts` with the status and the headers.
///
/// # Errors
/// When the head is invalid or too large.
pub(crate) fn parse<T>(
    bytes: &[u8],
    has_body: bool,
    facts: impl Fn(StatusCode, Headers<'_>) -> T,
) -> Result<Parsed<T>, Invalid> {
    let mut skipped = 0;
    loop {
        let bytes = &bytes[skipped..];
        let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let mut response = Response::new(&mut []);
        let parsed = ParserConfig::default()
            .parse_response_with_uninit_headers(&mut response, bytes, &mut headers)
            .map_err(Invalid::Head)?;
        let length = match parsed {
            Status::Complete(length) if length <= MAX_HEAD => length,
            Status::Partial if bytes.len() < MAX_HEAD => return Ok(Parsed::Incomplete { skipped }),
            _ => return Err(Invalid::TooLarge),
        };
        let status = response
            .code
            .and_then(|code| StatusCode::from_u16(code).ok())
            .ok_or(Invalid::Status)?;
        if status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS {
            skipped += length;
            continue;
        }
        let headers = Headers(response.headers);
        let is_1_1 = response.version == Some(1);
        return Ok(Parsed::Complete(Head {
            length: skipped + length,
            framing: framing(status, is_1_1, has_body, headers)?,
            may_reuse: may_reuse(status, is_1_1, headers),
            facts: facts(status, headers),
        }));
    }
}

/// Returns false if the head that begins `bytes` cannot be complete, because the bytes from `new` on
/// do not end it: it need not be parsed again for every few bytes.
pub(crate) fn may_be_complete(bytes: &[u8], new: usize) -> bool {
    let bytes = &bytes[new.saturating_sub(3)..];
    let mut after_line_ends = bytes
        .iter()
        .zip(1..)
        .filter(|(byte, _)| **byte == b'\n')
        .map(|(_, next)| &bytes[next..]);
    after_line_ends.any(|rest| rest.starts_with(b"\n") || rest.starts_with(b"\r\n"))
}

/// The framing of a body (RFC 9112 §6.3).
fn framing(
    status: StatusCode,
    is_1_1: bool,
    has_body: bool,
    headers: Headers<'_>,
) -> Result<Framing, Invalid> {
    if !has_body || matches!(status.as_u16(), 101 | 204 | 304) {
        return Ok(Framing::Length(0));
    }
    match headers.all(TRANSFER_ENCODING).last() {
        Some(_) if !is_1_1 => Err(Invalid::TransferEncoding),
        Some(codings) if is_chunked(codings) => Ok(Framing::chunked()),
        Some(_) => Ok(Framing::UntilClose),
        None if headers.has(CONTENT_LENGTH) => content_length(headers).map(Framing::Length),
        None => Ok(Framing::UntilClose),
    }
}

/// Returns true if `chunked` is the last coding.
fn is_chunked(codings: &[u8]) -> bool {
    let last = options(codings).last();
    last.is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked"))
}

/// Parses `Content-Length`, which may be repeated with the same value.
fn content_length(headers: Headers<'_>) -> Result<u64, Invalid> {
    let mut length = None;
    for value in headers.all(CONTENT_LENGTH) {
        for value in elements(value) {
            let parsed =
                number(value).filter(|parsed| length.is_none_or(|length| length == *parsed));
            length = Some(parsed.ok_or(Invalid::ContentLength)?);
        }
    }
    length.ok_or(Invalid::ContentLength)
}

/// Returns true if another request can be sent after this response. With two framings it is
/// ambiguous where the next response starts.
fn may_reuse(status: StatusCode, is_1_1: bool, headers: Headers<'_>) -> bool {
    let says = |option: &[u8]| {
        let mut values = headers.all("connection").flat_map(options);
        values.any(|value| value.eq_ignore_ascii_case(option))
    };
    let is_kept = !says(b"close") && (is_1_1 || says(b"keep-alive"));
    let has_two_framings = headers.has(TRANSFER_ENCODING) && headers.has(CONTENT_LENGTH);
    is_kept && !has_two_framings && status != StatusCode::SWITCHING_PROTOCOLS
}

/// Returns the options in a header value. A value with bytes outside of visible ASCII has none.
fn options(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let value = is_visible(value).then_some(value);
    value.into_iter().flat_map(elements)
}

/// Returns the elements of a header value that is a list.
fn elements(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// Parses a number that consists of digits only.
fn number(digits: &[u8]) -> Option<u64> {
    let digit = |sum: u64, byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| byte - b'0')?;
        sum.checked_mul(10)?.checked_add(digit.into())
    };
    let digits = (!digits.is_empty()).then_some(digits)?;
    digits.iter().try_fold(0, digit)
}

/// Returns a header value as text, if it is visible ASCII.
pub(crate) fn text(value: &[u8]) -> Option<&str> {
    let value = is_visible(value).then_some(value)?;
    std::str::from_utf8(value).ok()
}

fn is_visible(value: &[u8]) -> bool {
    let is_visible = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
    value.iter().all(is_visible)
}

const CONTENT_LENGTH: &str = "content-length";
const TRANSFER_ENCODING: &str = "transfer-encoding";
/// The maximum number of headers.
const MAX_HEADERS: usize = 100;
/// The maximum size of a response head, in bytes.
pub(crate) const MAX_HEAD: usize = 64 << 10;
