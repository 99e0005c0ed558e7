//! Classifies headers: those that only the gateway sets, and those that are passed on.

use http::HeaderName;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING,
    CONTENT_LENGTH, CONTENT_TYPE, COOKIE, DATE, HOST, LOCATION, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, RETRY_AFTER, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    USER_AGENT, WWW_AUTHENTICATE,
};

/// Returns true if only the gateway sets this header: it concerns the connection, the framing, or
/// the content type of the request or of the response.
pub(crate) fn is_ours(name: &HeaderName) -> bool {
    OURS.contains(name)
}

/// Returns true if a header of a response may be passed on to a client.
pub(crate) fn may_pass(name: &HeaderName) -> bool {
    !is_ours(name) && !CREDENTIALS.contains(name) && !NOT_PASSED.contains(name)
}

/// The content coding that stands for no encoding.
pub(crate) const IDENTITY: &str = "identity";
pub(crate) const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

const OURS: [HeaderName; 15] = [
    ACCEPT,
    ACCEPT_ENCODING,
    CONNECTION,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    HOST,
    HeaderName::from_static("expect"),
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    USER_AGENT,
];
/// Headers that carry credentials: only the operator sets them.
pub(crate) const CREDENTIALS: [HeaderName; 3] = [AUTHORIZATION, COOKIE, X_API_KEY];
/// Response headers that concern the content, a session or this hop, or that the gateway sets itself.
const NOT_PASSED: [HeaderName; 14] = [
    CACHE_CONTROL,
    CONTENT_ENCODING,
    DATE,
    LOCATION,
    PROXY_AUTHENTICATE,
    RETRY_AFTER,
    SET_COOKIE,
    WWW_AUTHENTICATE,
    HeaderName::from_static("retry-after-ms"),
    HeaderName::from_static("x-accel-buffering"),
    HeaderName::from_static("x-content-type-options"),
    HeaderName::from_static("x-should-retry"),
    HeaderName::from_static("x-sluicegate-dropped"),
    HeaderName::from_static("x-sluicegate-estimated"),
];
