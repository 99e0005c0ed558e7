//! Writes the headers of a request to an upstream.

use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::credential::Credential;
use crate::headers::{CREDENTIALS, IDENTITY, is_ours};
use crate::outgoing::Outgoing;

/// Returns the headers of every request to the host `authority`: the operator's, overridden by the
/// gateway's own.
pub(crate) fn for_host(authority: HeaderValue, operator_headers: &HeaderMap) -> HeaderMap {
    let mut headers = operator_headers.clone();
    headers.insert(HOST, authority);
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(IDENTITY));
    headers.insert(ACCEPT, HeaderValue::from_static(JSON));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    headers
}

/// Writes the headers of one request to `head`: those of the host, and its own except for
/// credentials and headers that only the gateway sets. `credential` has replaced the host's.
pub(crate) fn write(
    head: &mut Vec<u8>,
    host_headers: &HeaderMap,
    credential: Option<&Credential>,
    outgoing: &Outgoing,
) {
    // The key may be in a header of any name; its value is marked as sensitive.
    let is_key = |name| {
        host_headers
            .get(name)
            .is_some_and(HeaderValue::is_sensitive)
    };
    let own: Vec<_> = outgoing
        .headers
        .keys()
        .filter(|name| !is_ours(name) && !CREDENTIALS.contains(name) && !is_key(*name))
        .collect();
    let write_own = |head: &mut Vec<u8>, name: &HeaderName| {
        let values = outgoing.headers.get_all(name);
        values
            .iter()
            .for_each(|value| write_line(head, name, value.as_bytes()));
    };
    let mut previous = None;
    for (name, value) in host_headers {
        let is_repeated = previous.replace(name) == Some(name);
        if own.contains(&name) {
            if !is_repeated {
                write_own(head, name);
            }
            continue;
        }
        let value = match credential {
            Some(credential) if credential.name == *name => credential.value.as_bytes(),
            _ if *name == CONTENT_TYPE => outgoing.content_type.as_bytes(),
            _ if *name == ACCEPT && outgoing.accept_stream => EVENT_STREAM.as_bytes(),
            _ => value.as_bytes(),
        };
        write_line(head, name, value);
    }
    for name in own {
        if !host_headers.contains_key(name) {
            write_own(head, name);
        }
    }
}

fn write_line(head: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    head.extend_from_slice(name.as_str().as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

const AGENT: &str = concat!("sluicegate/", env!("CARGO_PKG_VERSION"));
const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";
