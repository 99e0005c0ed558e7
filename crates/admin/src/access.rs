//! Access to the admin address: the hosts by which it is called, and the key of the admin API.

use std::net::IpAddr;
use std::str::FromStr as _;

use auth::{Credentials, KeyHash};
use http::header::{AUTHORIZATION, HOST};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue};

/// The rules of access to the admin address. By default, nobody has access to the admin API.
#[derive(Debug, Default)]
pub struct AdminAccess {
    /// The hash of the key; `None` if there is no admin API.
    pub key: Option<KeyHash>,
    /// The names of this host, besides `localhost`.
    pub hosts: Vec<String>,
}

/// The reason why a request is not admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoAccess {
    /// The host is not one of this gateway. A page of the web may have had its name resolved to this
    /// address.
    Host,
    /// There is no admin API.
    Disabled,
    /// The key is missing or not valid, as this sentence says.
    Key(String),
}

impl AdminAccess {
    /// Admits a request with the right host and key.
    ///
    /// # Errors
    /// Returns the first reason not to, in the order of [`NoAccess`].
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), NoAccess> {
        if !self.is_own_host(headers) {
            return Err(NoAccess::Host);
        }
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
        !headers.contains_key(HOST) || self.is_own_host(headers)
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
            key: None,
            hosts: vec!["gate.example".to_owned()],
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
