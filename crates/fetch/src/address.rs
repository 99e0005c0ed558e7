//! Validates the addresses of untrusted URLs: only hosts on the public internet may be dialed.
//!
//! The rejected ranges are taken from the IANA special-purpose address registries (RFC 6890 and its
//! successors); internal addresses of cloud providers are rejected too. Nothing here does I/O.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

/// A rejected address. The DNS of the host is at fault, or the sender of a URL who probes the
/// network of the gateway. `Display` completes "the address is refused: ".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("it is {0}")]
pub struct Refused(pub(crate) &'static str);

/// Accepts the addresses of public hosts.
///
/// An IPv6 address that [`unwrapped`] maps to an IPv4 address is judged by the latter. Every other
/// IPv6 form of an IPv4 address is rejected.
///
/// ```
/// use sluicegate_fetch::address::check;
///
/// assert!(check([93, 184, 215, 14].into()).is_ok());
/// assert_eq!(check([169, 254, 169, 254].into()).unwrap_err().to_string(), "it is link-local");
/// ```
///
/// # Errors
/// When the address is not global unicast, or is an internal address of a cloud provider.
pub fn check(address: IpAddr) -> Result<(), Refused> {
    let address = match unwrapped(address) {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) if !GLOBAL_UNICAST.contains(address) => {
            return Err(Refused("outside of the IPv6 global unicast range"));
        }
        IpAddr::V6(address) => address,
    };
    let matching = REFUSED.iter().find(|range| range.contains(address));
    matching.map_or(Ok(()), |range| Err(Refused(range.kind)))
}

/// Returns the IPv4 address that an IPv4-mapped (RFC 4291 §2.5.5.2) or NAT64 (RFC 6052 §2.1)
/// address stands for, and any other unchanged.
#[must_use]
pub fn unwrapped(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if NAT64.contains(address) => {
            let [.., a, b, c, d] = address.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        other => other,
    }
}

/// A CIDR range: the addresses that share the first `prefix` bits of `network`. IPv4 addresses are
/// in their IPv4-mapped form.
struct Range {
    network: Ipv6Addr,
    prefix: u32,
    kind: &'static str,
}

impl Range {
    const fn contains(&self, address: Ipv6Addr) -> bool {
        (address.to_bits() ^ self.network.to_bits()) >> (u128::BITS - self.prefix) == 0
    }
}

/// Addresses `a.b.c.d/prefix`; the prefix is 0 to 32.
const fn v4([a, b, c, d]: [u8; 4], prefix: u32, kind: &'static str) -> Range {
    Range {
        network: Ipv4Addr::new(a, b, c, d).to_ipv6_mapped(),
        prefix: 96 + prefix,
        kind,
    }
}

/// Addresses `a:b:c::/prefix`; the prefix is 1 to 128.
const fn v6([a, b, c]: [u16; 3], prefix: u32, kind: &'static str) -> Range {
    Range {
        network: Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0),
        prefix,
        kind,
    }
}

/// The IPv6 global unicast range (RFC 4291 §2.4). Loopback, IPv4-compatible, local and multicast
/// addresses are outside.
const GLOBAL_UNICAST: Range = v6([0x2000, 0, 0], 3, "global unicast");

/// The prefix by which IPv6-only networks reach IPv4 hosts. Rejecting it would make most IPv4 hosts
/// unreachable there.
const NAT64: Range = v6([0x64, 0xff9b, 0], 96, "translated");

/// The rejected ranges: the IPv4 ranges, and the IPv6 ranges within [`GLOBAL_UNICAST`].
const REFUSED: &[Range] = &[
    v4([0, 0, 0, 0], 8, "this network"),
    v4([10, 0, 0, 0], 8, "private"),
    v4([100, 64, 0, 0], 10, "shared by a carrier"),
    v4([127, 0, 0, 0], 8, "loopback"),
    v4([168, 63, 129, 16], 32, "a cloud's own host"),
    v4([169, 254, 0, 0], 16, "link-local"),
    v4([172, 16, 0, 0], 12, "private"),
    v4([192, 0, 0, 0], 24, "kept for protocols"),
    v4([192, 0, 2, 0], 24, "for documentation"),
    v4([192, 88, 99, 0], 24, "a 6to4 relay"),
    v4([192, 168, 0, 0], 16, "private"),
    v4([198, 18, 0, 0], 15, "for benchmarks"),
    v4([198, 51, 100, 0], 24, "for documentation"),
    v4([203, 0, 113, 0], 24, "for documentation"),
    v4([224, 0, 0, 0], 4, "multicast"),
    v4([240, 0, 0, 0], 4, "reserved or broadcast"),
    v6([0x2001, 0, 0], 23, "kept for protocols"),
    v6([0x2001, 0xdb8, 0], 32, "for documentation"),
    v6([0x2002, 0, 0], 16, "a 6to4 tunnel"),
    v6([0x3fff, 0, 0], 20, "for documentation"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(address: &str) -> bool {
        check(address.parse().unwrap()).is_err()
    }

    #[test]
    fn hosts_of_the_public_internet_pass() {
        let global = [
            "1.1.1.1",
            "8.8.8.8",
            "93.184.215.14",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "168.63.129.17",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2000::1",
            "2001:200::1",
            "2001:db7::1",
            "2001:db9::1",
            "2003::1",
            "2606:4700::1111",
            "2a00:1450::8a",
            "3ffe::1",
            "3fff:1000::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
        ];
        for address in global {
            assert!(!is_refused(address), "{address}");
        }
    }

    /// Every address that is not global unicast is rejected.
    #[test]
    fn f02_everything_else_is_refused() {
        let refused = [
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.0",
            "192.168.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:0:127.0.0.1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:1ff::1",
            "2001:db8::1",
            "2002:808:808::1",
            "3fff::1",
            "3fff:fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        for address in refused {
            assert!(is_refused(address), "{address}");
        }
    }

    /// A wrapped IPv4 address is judged like the address itself.
    #[test]
    fn f02_f03_wrapped_ipv4_address_is_judged_as_ipv4() {
        for (address, refused) in [
            ("127.0.0.1", true),
            ("168.63.129.16", true),
            ("9.9.9.9", false),
        ] {
            for wrap in ["::ffff:", "64:ff9b::"] {
                assert_eq!(
                    is_refused(&format!("{wrap}{address}")),
                    refused,
                    "{wrap}{address}"
                );
            }
        }
        assert_eq!(
            unwrapped("64:ff9b::7f00:1".parse().unwrap()),
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        );
        assert_eq!(
            unwrapped("::ffff:7f00:1".parse().unwrap()),
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        );
    }

    #[test]
    fn the_range_is_named() {
        assert_eq!(
            check(Ipv4Addr::LOCALHOST.into()).unwrap_err().to_string(),
            "it is loopback"
        );
    }
}
