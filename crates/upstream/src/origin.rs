//! A parsed base URL: the host to connect to, and the base path of request targets.

use std::borrow::Cow;

use http::HeaderValue;
use http::uri::PathAndQuery;
use tokio_rustls::rustls::pki_types::ServerName;
use url::{Host, Position, Url};

use crate::options_error::OptionsError;

/// The host of an upstream, and the base path on it.
pub(crate) struct Origin {
    /// A DNS name, or an IP address without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The name that the certificate must have; `None` without TLS.
    pub(crate) tls: Option<ServerName<'static>>,
    /// The value of the `Host` header.
    pub(crate) authority: HeaderValue,
    path: String,
    query: String,
}

impl Origin {
    /// Parses the base URL of the setting `field`.
    pub(crate) fn new(url: &Url, field: &'static str) -> Result<Self, OptionsError> {
        let is_tls = match url.scheme() {
            "https" => true,
            "http" => false,
            other => return Err(OptionsError::Scheme(field, other.to_owned())),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(OptionsError::Part(field, "user or password"));
        }
        if url.fragment().is_some() {
            return Err(OptionsError::Part(field, "fragment"));
        }
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return Err(OptionsError::Host(field)),
        };
        let no_host = |_| OptionsError::Host(field);
        let tls = is_tls
            .then(|| ServerName::try_from(host.clone()))
            .transpose()
            .map_err(no_host)?;
        Ok(Self {
            port: url
                .port_or_known_default()
                .ok_or(OptionsError::Host(field))?,
            tls,
            // As the URL writes it: with the port, unless it is the default of the scheme.
            authority: HeaderValue::try_from(&url[Position::BeforeHost..Position::AfterPort])
                .map_err(|_| OptionsError::Host(field))?,
            path: url.path().trim_end_matches('/').to_owned(),
            query: url
                .query()
                .map(|query| format!("?{query}"))
                .unwrap_or_default(),
            host,
        })
    }

    /// Returns the request target for `path`.
    pub(crate) fn target(&self, path: &str) -> Result<String, http::Error> {
        let query = match path.contains('?') {
            true => self.query.replacen('?', "&", 1).into(),
            false => Cow::Borrowed(&*self.query),
        };
        let target = [&*self.path, path, &*query].concat();
        if is_plain(&target) {
            return Ok(target);
        }
        Ok(PathAndQuery::try_from(target)?.as_str().to_owned())
    }
}

/// Returns true for the target of nearly every request, which needs no parsing: it is valid and
/// written as it is.
fn is_plain(target: &str) -> bool {
    // From '-' to '9' are the hyphen, the dot, the slash and the digits.
    let is_of_path = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'-'..=b'9' | b'_');
    target.starts_with('/') && target.bytes().all(is_of_path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The parser would return every plain target unchanged.
        #[test]
        fn a_plain_target_is_parsed_to_itself(target in "/?[a-zA-Z0-9/_.~?#%-]{0,12}|[ -~]{0,6}") {
            let parsed = PathAndQuery::try_from(target.clone());
            let is_same = parsed.is_ok_and(|parsed| parsed.as_str() == target);
            prop_assert!(!is_plain(&target) || is_same, "{target}");
        }
    }

    #[test]
    fn the_paths_of_the_protocols_are_plain() {
        for path in [
            "/v1/chat/completions",
            "/v1/messages",
            "/v1/responses/resp_1",
        ] {
            assert!(is_plain(path), "{path}");
        }
        for target in [
            "",
            "*",
            "v1/models",
            "/v1/models?after=1",
            "/a#b",
            "/a b",
            "/%20",
        ] {
            assert!(!is_plain(target), "{target}");
        }
    }
}
