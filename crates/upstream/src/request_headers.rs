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

/// The headers of every request to a host.
pub(crate) struct HostHeaders {
    headers: HeaderMap,
    /// The lines of a request for JSON, and of one for events, that has JSON and no headers of its
    /// own: nearly all have.
    usual_lines: [Vec<u8>; 2],
}

impl HostHeaders {
    pub(crate) fn new(headers: HeaderMap) -> Self {
        let own = HeaderMap::new();
        let usual_lines = [false, true].map(|accept_stream| {
            let mut lines = Vec::new();
            write(
                &mut lines,
                &headers,
                &own,
                (&JSON_TYPE, accept_stream),
                None,
            );
            lines
        });
        Self {
            headers,
            usual_lines,
        }
    }

    /// Returns the headers of one request, as [`HostHeaders::write`] writes them.
    pub(crate) fn merged(&self, credential: Option<&Credential>, outgoing: &Outgoing) -> HeaderMap {
        let mut merged = HeaderMap::new();
        let kind = (&outgoing.content_type, outgoing.accept_stream);
        each(
            &self.headers,
            &outgoing.headers,
            kind,
            credential,
            |name, value| {
                merged.append(name, value.clone());
            },
        );
        merged
    }

    /// Writes the headers of one request to `head`: the host headers, and the request's own headers
    /// except for credentials and headers that only the gateway sets. `credential` is sent in place
    /// of the credential in the host headers.
    pub(crate) fn write(
        &self,
        head: &mut Vec<u8>,
        credential: Option<&Credential>,
        outgoing: &Outgoing,
    ) {
        let Outgoing {
            headers,
            content_type,
            accept_stream,
            ..
        } = outgoing;
        if headers.is_empty() && credential.is_none() && *content_type == JSON_TYPE {
            head.extend_from_slice(&self.usual_lines[usize::from(*accept_stream)]);
        } else {
            let kind = (content_type, *accept_stream);
            write(head, &self.headers, headers, kind, credential);
        }
    }
}

fn write(
    head: &mut Vec<u8>,
    host_headers: &HeaderMap,
    own_headers: &HeaderMap,
    (content_type, accept_stream): (&HeaderValue, bool),
    credential: Option<&Credential>,
) {
    let write_line = |name: &HeaderName, value: &HeaderValue| {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            head.extend_from_slice(part);
        }
    };
    each(
        host_headers,
        own_headers,
        (content_type, accept_stream),
        credential,
        write_line,
    );
}

/// Visits the headers of one request in order.
fn each(
    host_headers: &HeaderMap,
    own_headers: &HeaderMap,
    (content_type, accept_stream): (&HeaderValue, bool),
    credential: Option<&Credential>,
    mut visit: impl FnMut(&HeaderName, &HeaderValue),
) {
    // The key may be in a header of any name; its value is marked as sensitive.
    let is_key = |name| {
        host_headers
            .get(name)
            .is_some_and(HeaderValue::is_sensitive)
    };
    let own: Vec<_> = own_headers
        .keys()
        .filter(|name| !is_ours(name) && !CREDENTIALS.contains(name) && !is_key(*name))
        .collect();
    let visit_own = |name: &HeaderName, visit: &mut dyn FnMut(&HeaderName, &HeaderValue)| {
        let values = own_headers.get_all(name);
        values.iter().for_each(|value| visit(name, value));
    };
    let mut previous = None;
    for (name, value) in host_headers {
        let is_repeated = previous.replace(name) == Some(name);
        if own.contains(&name) {
            if !is_repeated {
                visit_own(name, &mut visit);
            }
            continue;
        }
        let value = match credential {
            Some(credential) if credential.name == *name => &credential.value,
            _ if *name == CONTENT_TYPE => content_type,
            _ if *name == ACCEPT && accept_stream => &EVENT_STREAM,
            _ => value,
        };
        visit(name, value);
    }
    for name in own {
        if !host_headers.contains_key(name) {
            visit_own(name, &mut visit);
        }
    }
}

const AGENT: &str = concat!("sluicegate/", env!("CARGO_PKG_VERSION"));
const JSON: &str = "application/json";
const JSON_TYPE: HeaderValue = HeaderValue::from_static(JSON);
static EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
