//! Access to the admin address: the hosts by which it is called, the pages that may call it, and the key
//! or the session of the caller.

use std::net::IpAddr;
use std::str::FromStr as _;

use auth::{Credentials, Key, KeyHash};
use http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use crate::sessions::{self, Credential, Sessions};

/// The rules of access to the admin address. By default, nobody has access to the admin API.
#[derive(Debug, Default)]
pub struct AdminAccess {
    /// The hash of the key; `None` if there is no admin API.
    pub key: Option<KeyHash>,
    /// The names of this host, besides `localhost`.
    pub hosts: Vec<String>,
    /// The sessions of the console.
    pub sessions: Sessions,
}

/// The reason why a request is not admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoAccess {
    /// The host is not one of this gateway. A page of the web may have had its name resolved to this
    /// address.
    Host,
    /// The request comes from a page of another origin.
    Origin,
    /// There is no admin API.
    Disabled,
    /// The key is missing or not valid, as this sentence says.
    Key(String),
}

impl AdminAccess {
    /// Admits a request with the right host, and with the admin key or a session of the console.
    ///
    /// # Errors
    /// Returns the first reason not to, in the order of [`NoAccess`].
    pub(crate) fn check(&self, headers: &HeaderMap, method: &Method) -> Result<(), NoAccess> {
        match headers.contains_key(AUTHORIZATION) || session_secret(headers).is_none() {
            true => {
                self.check_origin(headers)?;
                self.check_key(headers)
            }
            false => self.check_session(headers, method),
        }
    }

    /// Admits a request with a session of the console. A request that changes something needs a header
    /// that no form of another page can set, besides the origin that browsers state.
    pub(crate) fn check_session(
        &self,
        headers: &HeaderMap,
        method: &Method,
    ) -> Result<(), NoAccess> {
        self.check_origin(headers)?;
        self.session_of(headers)?;
        let is_read = [Method::GET, Method::HEAD].contains(method);
        match is_read || headers.contains_key(FROM_CONSOLE) {
            true => Ok(()),
            false => Err(NoAccess::Origin),
        }
    }

    /// The end of the session of a request, in Unix seconds.
    pub(crate) fn session_of(&self, headers: &HeaderMap) -> Result<i64, NoAccess> {
        let session = session_secret(headers).and_then(|secret| self.sessions.find(secret));
        session.ok_or_else(|| NoAccess::Key("There is no session; sign in.".to_owned()))
    }

    /// Begins a session for the admin key, or for a one-time token.
    pub(crate) fn sign_in(&self, credential: Credential<'_>) -> Result<Key, NoAccess> {
        match credential {
            Credential::Key(key) => {
                let known = self.key.ok_or(NoAccess::Disabled)?;
                // Hashes are compared in constant time.
                let presented = Key::parse(key).ok();
                match presented.is_some_and(|key| KeyHash::of(&key) == known) {
                    true => Ok(self.sessions.begin()),
                    false => Err(NoAccess::Key("The admin key is not valid.".to_owned())),
                }
            }
            Credential::Token(token) => self.sessions.redeem(token).ok_or_else(|| {
                let message = "This link was used before, or the gateway has started again since.";
                NoAccess::Key(message.to_owned())
            }),
        }
    }

    /// Ends the session of a request.
    pub(crate) fn sign_out(&self, headers: &HeaderMap) {
        if let Some(secret) = session_secret(headers) {
            self.sessions.end(secret);
        }
    }

    /// Admits a request with the right host that no page of another origin has sent.
    pub(crate) fn check_origin(&self, headers: &HeaderMap) -> Result<(), NoAccess> {
        if !self.is_own_host(headers) {
            return Err(NoAccess::Host);
        }
        match has_own_origin(headers) {
            true => Ok(()),
            false => Err(NoAccess::Origin),
        }
    }

    fn check_key(&self, headers: &HeaderMap) -> Result<(), NoAccess> {
        let known = self.key.ok_or(NoAccess::Disabled)?;
        let values = headers.get_all(AUTHORIZATION).into_iter();
        let values = values.map(HeaderValue::as_bytes);
        let credentials = Credentials::from_headers(values, [])
            .map_err(|denied| NoAccess::Key(denied.to_string()))?;
        // Hashes are compared in constant time.
        let mut presented = credentials.keys().map(KeyHash::of);
        match presented.any(|hash| hash == known) {
            true => Ok(()),
            false => Err(NoAccess::Key("The admin key is not valid.".to_owned())),
        }
    }

    /// Returns true if a probe is meant for this gateway, or does not say for whom: simple probes of
    /// HTTP/1.0 have no host, which a browser always sends.
    pub(crate) fn admits_probe(&self, headers: &HeaderMap) -> bool {
        !headers.contains_key(HOST) || self.check_origin(headers).is_ok()
    }

    /// Returns true if there is one host, and it is an address or a name of this gateway. A page of
    /// the web can have its own name resolved to any address, but it cannot choose an address as its
    /// name, so probes and scrapes by any address of this host are admitted.
    fn is_own_host(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(HOST).into_iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return false;
        };
        let authority = value.to_str().ok().map(Authority::from_str);
        let Some(Ok(authority)) = authority else {
            return false;
        };
        let host = without_brackets(authority.host());
        let own = |name: &str| without_brackets(name).eq_ignore_ascii_case(host);
        match host.parse::<IpAddr>() {
            Ok(ip) => !ip.is_unspecified(),
            Err(_) => own("localhost") || self.hosts.iter().any(|name| own(name)),
        }
    }
}

/// True if a request states no origin, or the origin of this address: its host and port as they are in
/// `Host`.
fn has_own_origin(headers: &HeaderMap) -> bool {
    let mut origins = headers.get_all(ORIGIN).into_iter();
    let (origin, None) = (origins.next(), origins.next()) else {
        return false;
    };
    let Some(origin) = origin else { return true };
    let authority = origin.to_str().ok().and_then(|origin| {
        let rest = origin.strip_prefix("http://");
        rest.or_else(|| origin.strip_prefix("https://"))
    });
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    authority
        .zip(host)
        .is_some_and(|(authority, host)| authority.eq_ignore_ascii_case(host))
}

/// The secret of the session that a request belongs to.
fn session_secret(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).into_iter();
    let cookies = cookies.filter_map(|cookies| cookies.to_str().ok());
    let mut pairs = cookies
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let found = pairs.find(|(name, _)| *name == sessions::COOKIE);
    found.map(|(_, secret)| secret)
}

/// The header of requests of the console that change something.
const FROM_CONSOLE: HeaderName = HeaderName::from_static("x-sluicegate-console");

/// Returns a name or address without the brackets of IPv6.
fn without_brackets(host: &str) -> &str {
    host.trim_matches(['[', ']'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(hosts: &[&'static str]) -> HeaderMap {
        let values = hosts
            .iter()
            .map(|host| (HOST, HeaderValue::from_static(host)));
        values.collect()
    }

    #[test]
    fn only_names_and_addresses_of_this_host_are_accepted() {
        let access = AdminAccess {
            hosts: vec!["gate.example".to_owned()],
            ..AdminAccess::default()
        };
        for host in [
            "localhost",
            "LocalHost:9090",
            "127.0.0.1:9090",
            "127.9.9.9",
            "[::1]:9090",
            "10.0.0.5:9090",
            "gate.example:80",
            "[fd00::1]:9090",
            "192.168.1.7:9090",
        ] {
            assert!(access.is_own_host(&headers(&[host])), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.5.evil.example:9090",
            "0.0.0.0",
            "[::]:9090",
            "",
        ] {
            assert!(!access.is_own_host(&headers(&[host])), "{host}");
        }
        for (hosts, is_probe) in [(&[][..], true), (&["localhost", "localhost"], false)] {
            assert!(!access.is_own_host(&headers(hosts)));
            assert_eq!(access.admits_probe(&headers(hosts)), is_probe);
        }
    }
}
