//! The files of the console. Their text is no secret: everything that the page shows needs a session.

use ::console::{CONTENT_SECURITY_POLICY, File};
use gateway::exchange::body::whole;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY as CSP, CONTENT_TYPE,
    ETAG, IF_NONE_MATCH, REFERRER_POLICY, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

use crate::api::Answer;
use crate::api::failure::Failure;

/// Serves a file: compressed if the browser accepts that, and without its content if the browser has it.
pub(super) fn serve(file: &'static File, method: &Method, headers: &HeaderMap) -> Answer {
    if ![Method::GET, Method::HEAD].contains(method) {
        return Err(Failure::method(method, file.name, "GET, HEAD"));
    }
    let content = file.content();
    let is_compressed = accepts_gzip(headers);
    let encoded = match is_compressed {
        true => &content.gzip,
        false => &content.plain,
    };
    let is_known = items(headers, &IF_NONE_MATCH)
        .any(|tag| tag == "*" || tag.trim_start_matches("W/") == encoded.tag);
    let body = match is_known || method == Method::HEAD {
        true => b"".as_slice(),
        false => &encoded.bytes[..],
    };
    let mut response = Response::new(whole(body.into()));
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let encoding = is_compressed.then_some((CONTENT_ENCODING, "gzip"));
    let all = [
        (CONTENT_TYPE, file.media_type),
        (CSP, CONTENT_SECURITY_POLICY),
        (REFERRER_POLICY, "no-referrer"),
        // A new version of the gateway has new files.
        (CACHE_CONTROL, "no-cache"),
        (VARY, "accept-encoding"),
        (ETAG, encoded.tag.as_str()),
    ];
    for (name, value) in all.into_iter().chain(encoding) {
        let value = HeaderValue::from_str(value).map_err(Failure::internal)?;
        response.headers_mut().insert(name, value);
    }
    Ok(response)
}

/// True if the client accepts gzip, by its name or by a wildcard, with a weight of more than zero
/// ([RFC 9110](https://www.rfc-editor.org/rfc/rfc9110.html#name-accept-encoding)).
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let weight_of = |wanted: &str| {
        items(headers, &ACCEPT_ENCODING).find_map(|item| {
            let (coding, weight) = item.split_once(';').unwrap_or((item, "q=1"));
            let weight = weight.trim().trim_start_matches("q=").parse::<f32>();
            let is_it = coding.trim().eq_ignore_ascii_case(wanted);
            is_it.then_some(weight.unwrap_or_default())
        })
    };
    weight_of("gzip")
        .or_else(|| weight_of("*"))
        .is_some_and(|weight| weight > 0.0)
}

/// The items of a header that is a list.
fn items<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter();
    let values = values.filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_accepted_by_its_name_or_a_wildcard() {
        for (accepted, expected) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("gzip; q=1.0", true),
            ("*", true),
            ("gzip;q=0, *", false),
            ("gzip;q=0.000", false),
            ("gzip;q=many", false),
            ("identity", false),
            ("br, *;q=0", false),
            ("", false),
        ] {
            let value = HeaderValue::from_static(accepted);
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, value)]);
            assert_eq!(accepts_gzip(&headers), expected, "{accepted:?}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
