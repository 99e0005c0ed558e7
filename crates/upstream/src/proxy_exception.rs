//! The hosts of `NO_PROXY`, in every form that curl
//! (<https://curl.se/libcurl/c/CURLOPT_NOPROXY.html>) and Go
//! (<https://pkg.go.dev/golang.org/x/net/http/httpproxy>) accept.

use std::net::IpAddr;

/// An entry of the list: some hosts, at all of their ports or at one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProxyException {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    All,
    /// The host of this name, in lower case, and its subdomains.
    Domain(String),
    /// The subdomains alone.
    Subdomains(String),
    /// The addresses that share the given number of leading bits with this address.
    Network(IpAddr, u32),
}

impl ProxyException {
    /// Reads a list, whose entries are separated by commas or white space.
    pub(crate) fn list(text: &str) -> impl Iterator<Item = Self> {
        let entries = text.split(|c: char| c == ',' || c.is_ascii_whitespace());
        entries.filter(|entry| !entry.is_empty()).map(Self::parse)
    }

    /// Returns true if a request to this host, a name or an address without brackets, needs no
    /// proxy.
    pub(crate) fn has(&self, host: &str, port: u16) -> bool {
        self.port.is_none_or(|only| only == port) && self.hosts.has(host)
    }

    fn parse(entry: &str) -> Self {
        if let Some(hosts) = Hosts::network(entry) {
            return Self { hosts, port: None };
        }
        let with_port = entry
            .rsplit_once(':')
            .and_then(|(host, port)| Some((host, Some(port.parse().ok()?))));
        let (host, port) = with_port.unwrap_or((entry, None));
        let hosts = Hosts::network(host).unwrap_or_else(|| Hosts::named(host));
        Self { hosts, port }
    }
}

impl Hosts {
    /// Reads an address, which may be in brackets, or a network.
    fn network(text: &str) -> Option<Self> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let in_brackets = address
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let address: IpAddr = in_brackets.unwrap_or(address).parse().ok()?;
        let most = bits(address).1;
        let length = length.map_or(Some(most), |length| length.parse().ok())?;
        (length <= most).then_some(Self::Network(address, length))
    }

    fn named(name: &str) -> Self {
        let name = without_root(name).to_ascii_lowercase();
        if name == "*" {
            Self::All
        } else if let Some(domain) = name.strip_prefix("*.") {
            Self::Subdomains(domain.to_owned())
        } else {
            Self::Domain(name.trim_start_matches('.').to_owned())
        }
    }

    fn has(&self, host: &str) -> bool {
        match self {
            Self::All => true,
            Self::Domain(domain) => {
                let rest = without_root(host).strip_suffix(domain.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            Self::Subdomains(domain) => {
                let rest = without_root(host).strip_suffix(domain.as_str());
                rest.is_some_and(|rest| rest.ends_with('.'))
            }
            Self::Network(network, length) => {
                let Ok(address) = host.parse::<IpAddr>() else {
                    return false;
                };
                // An IPv4 address may be written as an IPv6 address.
                let network = (bits(*network), *length);
                same_network(bits(address), network)
                    || same_network(bits(address.to_canonical()), network)
            }
        }
    }
}

/// Returns true if an address, as its bits and their number, is of a network.
fn same_network(address: (u128, u32), ((network, most), length): ((u128, u32), u32)) -> bool {
    let differing = address.0 ^ network;
    address.1 == most && differing.checked_shr(most - length).unwrap_or(0) == 0
}

/// Returns the bits of an address, and their number.
fn bits(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (address.to_bits().into(), u32::BITS),
        IpAddr::V6(address) => (address.to_bits(), u128::BITS),
    }
}

/// Removes the dot after a name that is complete.
fn without_root(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if the host and port need no proxy.
    fn is_excepted(list: &str, host: &str, port: u16) -> bool {
        ProxyException::list(list).any(|exception| exception.has(host, port))
    }

    #[test]
    fn names_stand_for_their_subdomains() {
        for (list, excepted, others) in [
            (
                "a.test",
                &["a.test", "b.a.test"][..],
                &["ba.test", "test"][..],
            ),
            (".a.test", &["a.test", "b.a.test"], &["ba.test"]),
            (
                "*.a.test",
                &["b.a.test", "c.b.a.test"],
                &["a.test", "ba.test"],
            ),
            ("A.Test.", &["a.test", "a.test.", "b.a.test"], &["a.tes"]),
            (
                "x, a.test\tb.test,,c.test ",
                &["a.test", "b.test", "c.test"],
                &["d.test"],
            ),
            ("*", &["a.test", "10.0.0.1", "::1"], &[]),
            ("x,*", &["a.test"], &[]),
            ("", &[], &["a.test"]),
            ("a.test/8", &[], &["a.test"]),
        ] {
            for host in excepted {
                assert!(is_excepted(list, host, 443), "{list:?}: {host}");
            }
            for host in others {
                assert!(!is_excepted(list, host, 443), "{list:?}: {host}");
            }
        }
    }

    #[test]
    fn networks_have_the_addresses_with_their_bits() {
        for (list, excepted, others) in [
            (
                "10.1.2.3",
                &["10.1.2.3"][..],
                &["10.1.2.4", "110.1.2.3"][..],
            ),
            (
                "10.0.0.0/8",
                &["10.0.0.1", "10.255.0.0"],
                &["11.0.0.1", "::1"],
            ),
            ("10.1.2.3/31", &["10.1.2.2", "10.1.2.3"], &["10.1.2.4"]),
            ("0.0.0.0/0", &["10.1.2.3", "::ffff:10.1.2.3"], &["fd00::1"]),
            ("10.0.0.0/33,10.0.0.0/x", &[], &["10.0.0.0"]),
            ("::1", &["::1"], &["::2"]),
            ("[::1]", &["::1"], &["::2"]),
            (
                "FD00::/8",
                &["fd00::1", "fdff::1"],
                &["fe00::1", "253.0.0.1"],
            ),
            ("::/0", &["::1"], &["10.0.0.1"]),
        ] {
            for host in excepted {
                assert!(is_excepted(list, host, 443), "{list:?}: {host}");
            }
            for host in others {
                assert!(!is_excepted(list, host, 443), "{list:?}: {host}");
            }
        }
    }

    #[test]
    fn a_port_restricts_an_entry() {
        for (list, host) in [
            ("a.test:8080", "a.test"),
            (".a.test:8080", "b.a.test"),
            ("*.a.test:8080", "b.a.test"),
            ("10.1.2.3:8080", "10.1.2.3"),
            ("[::1]:8080", "::1"),
            ("*:8080", "c.test"),
        ] {
            assert!(is_excepted(list, host, 8080), "{list}");
            assert!(!is_excepted(list, host, 80), "{list}");
        }
    }
}
