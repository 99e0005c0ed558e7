//! The HTTP rules for a request's head that hyper does not enforce.

use std::str::FromStr;

use bytesize::ByteSize;
use http::header::{
    CONNECTION, HOST, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};
use http_body::Body;

use crate::exchange::refusal::Refusal;
use crate::request::routing::RESPONSES;
use crate::state::GatewayState;

/// Checks a head before the request is routed. Returns 414 for a target that is too long, 400 for a
/// transfer coding or a host that violates RFC 9112, 405 for a request without a path, such as
/// CONNECT, and 426 for a WebSocket of Responses that cannot be opened. Any other upgrade is ignored
/// (RFC 9110 §7.8).
pub(crate) fn check(request: &Request<impl Body>, state: &GatewayState) -> Result<(), Refusal> {
    check_length(request.uri(), state.limits.target)?;
    check_coding(request.headers())?;
    check_host(request.headers(), request.version())?;
    if request.method() == Method::CONNECT || request.uri().path() == "*" {
        return Err(Refusal::no_path(request.method()));
    }
    if wants_websocket(request) && !(state.websocket.enabled && is_handshake(request)) {
        return Err(Refusal::websocket());
    }
    Ok(())
}

/// True for a request of a WebSocket on the path of Responses.
pub(crate) fn wants_websocket<B>(request: &Request<B>) -> bool {
    request.uri().path() == RESPONSES && lists(request.headers(), &UPGRADE, "websocket")
}

/// True for a handshake as RFC 6455 §4.2.1 requires it.
fn is_handshake(request: &Request<impl Body>) -> bool {
    let headers = request.headers();
    request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && request.body().is_end_stream()
        && lists(headers, &CONNECTION, "upgrade")
        && headers.contains_key(SEC_WEBSOCKET_KEY)
        && headers.get(SEC_WEBSOCKET_VERSION) == Some(&HeaderValue::from_static("13"))
}

/// True if a header, which is a list, has this member.
fn lists(headers: &HeaderMap, name: &HeaderName, member: &str) -> bool {
    let lines = headers.get_all(name).into_iter();
    lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .any(|found| found.trim().eq_ignore_ascii_case(member))
}

fn check_length(target: &Uri, limit: ByteSize) -> Result<(), Refusal> {
    let length = target
        .path_and_query()
        .map_or(0, |path| path.as_str().len());
    if length as u64 > limit.as_u64() {
        Err(Refusal::target_too_long())
    } else {
        Ok(())
    }
}

/// Accepts only the chunked coding. Other codings before it would change where the body ends for
/// servers that know them (RFC 9112 §6.1).
fn check_coding(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).into_iter();
    let is_chunked = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(coding), None) if is_chunked(coding) => Ok(()),
        _ => Err(Refusal::transfer_coding()),
    }
}

/// Accepts exactly one valid host. It is not used here, but a host that servers read in different
/// ways is a sign of an attack (RFC 9112 §3.2).
fn check_host(headers: &HeaderMap, version: Version) -> Result<(), Refusal> {
    let mut hosts = headers.get_all(HOST).into_iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if version < Version::HTTP_11 => Ok(()),
        (Some(host), None) if is_host(host) => Ok(()),
        _ => Err(Refusal::host()),
    }
}

fn is_host(value: &HeaderValue) -> bool {
    is_usual_host(value.as_bytes()) || is_authority(value)
}

/// Returns true for a name or an IPv4 address with or without a port. Nearly every request has such
/// a host, and unlike parsing an [`Authority`], this check copies nothing.
fn is_usual_host(value: &[u8]) -> bool {
    let (host, port) = match value.iter().position(|byte| *byte == b':') {
        Some(colon) => (&value[..colon], Some(&value[colon + 1..])),
        None => (value, None),
    };
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let is_port = |port: &[u8]| {
        let digit = |sum: u32, byte: &u8| sum * 10 + u32::from(byte - b'0');
        (1..6).contains(&port.len())
            && port.iter().all(u8::is_ascii_digit)
            && port.iter().fold(0, digit) <= u32::from(u16::MAX)
    };
    !host.is_empty() && host.iter().all(is_of_name) && port.is_none_or(is_port)
}

fn is_authority(value: &HeaderValue) -> bool {
    let Some(authority) = value
        .to_str()
        .ok()
        .and_then(|text| Authority::from_str(text).ok())
    else {
        return false;
    };
    let text = authority.as_str();
    let host = authority.host();
    !host.is_empty() && !text.contains('@') && (text == host || authority.port_u16().is_some())
}

#[cfg(test)]
mod tests {
    use config::Config;
    use policy::Policy;
    use proptest::prelude::*;

    use super::*;
    use crate::state::Parts;

    proptest! {
        /// A host that is accepted without being parsed is a valid authority.
        #[test]
        fn a_usual_host_is_an_authority(host in "([a-zA-Z0-9.-]{0,9}(:[0-9]{0,6})?|([a-zA-Z0-9.:-]|[ -~]){0,12})") {
            let value = HeaderValue::from_str(&host).unwrap();
            prop_assert!(!is_usual_host(value.as_bytes()) || is_authority(&value), "{host}");
        }
    }

    #[test]
    fn names_and_addresses_are_usual() {
        for host in ["gateway", "gateway:8080", "127.0.0.1:65535", "a-b.example"] {
            assert!(is_usual_host(host.as_bytes()), "{host}");
        }
        for host in [
            "",
            ":1",
            "gateway:",
            "gateway:65536",
            "a:1:2",
            "a b",
            "u@h",
            "[::1]",
        ] {
            assert!(!is_usual_host(host.as_bytes()), "{host}");
        }
    }

    fn code(request: http::request::Builder) -> Option<&'static str> {
        let config = Config::default();
        let (policy, _) = Policy::read(&config, false, upstream::Network::default()).unwrap();
        let state = GatewayState::new(Parts::new(&config, policy));
        check(&request.body(String::new()).unwrap(), &state)
            .err()
            .map(|refusal| refusal.error.code)
    }

    fn request() -> http::request::Builder {
        Request::post("/v1/responses").header(HOST, "gateway")
    }

    #[test]
    fn a_host_is_a_name_or_an_address_and_at_most_a_port() {
        for host in [
            "gateway",
            "gateway:8080",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:65535",
            "a-b.example",
        ] {
            assert_eq!(code(Request::get("/").header(HOST, host)), None, "{host}");
        }
        for host in [
            "",
            " ",
            "a/#@b",
            "user@gateway",
            "gateway:",
            "gateway:x",
            "gateway:65536",
            "a b",
            "a?b",
        ] {
            assert_eq!(
                code(Request::get("/").header(HOST, host)),
                Some("invalid_value"),
                "{host}"
            );
        }
    }

    #[test]
    fn there_is_one_host_and_only_the_oldest_clients_go_without() {
        assert_eq!(
            code(request().header(HOST, "gateway")),
            Some("invalid_value")
        );
        assert_eq!(code(Request::get("/")), Some("invalid_value"));
        assert_eq!(code(Request::get("/").version(Version::HTTP_10)), None);
    }

    #[test]
    fn a_body_is_chunked_or_not_coded_at_all() {
        assert_eq!(code(request().header(TRANSFER_ENCODING, "Chunked")), None);
        for coding in [
            "gzip, chunked",
            "chunked, chunked",
            "identity",
            "xchunked",
            "chunked;x",
        ] {
            assert_eq!(
                code(request().header(TRANSFER_ENCODING, coding)),
                Some("invalid_value"),
                "{coding}"
            );
        }
        let twice = request()
            .header(TRANSFER_ENCODING, "chunked")
            .header(TRANSFER_ENCODING, "chunked");
        assert_eq!(code(twice), Some("invalid_value"));
    }

    #[test]
    fn a_websocket_of_responses_needs_a_handshake() {
        let upgrade = |to| request().header(UPGRADE, to);
        let handshake = |method, to| {
            let request = upgrade(to)
                .method(method)
                .header(SEC_WEBSOCKET_VERSION, "13");
            let request = request.header(SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==");
            request.header(CONNECTION, "keep-alive, Upgrade")
        };
        for to in ["websocket", "WebSocket", "h2c, websocket"] {
            assert_eq!(code(upgrade(to)), Some("upgrade_required"), "{to}");
            let posted = handshake(Method::POST, to);
            assert_eq!(code(posted), Some("upgrade_required"), "{to}");
            let older = handshake(Method::GET, to).version(Version::HTTP_10);
            assert_eq!(code(older), Some("upgrade_required"), "{to}");
            assert_eq!(code(handshake(Method::GET, to)), None, "{to}");
        }
        for to in ["h2c", "", "websockets"] {
            assert_eq!(code(upgrade(to)), None, "{to}");
        }
        let elsewhere = Request::post("/v1/messages").header(HOST, "gateway");
        assert_eq!(code(elsewhere.header(UPGRADE, "websocket")), None);
    }

    #[test]
    fn a_request_is_about_a_path_of_bounded_length() {
        let host = |request: http::request::Builder| code(request.header(HOST, "gateway"));
        assert_eq!(host(Request::options("*")), Some("method_not_allowed"));
        assert_eq!(
            host(Request::connect("example.org:443")),
            Some("method_not_allowed")
        );
        assert_eq!(host(Request::get(format!("/{}", "x".repeat(8191)))), None);
        assert_eq!(
            host(Request::get(format!("/{}", "x".repeat(8192)))),
            Some("target_too_long")
        );
    }
}
