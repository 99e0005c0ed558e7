//! Any bytes as an address, and as the URL of a picture: an accepted address is public, in every
//! notation of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fetch::address::check as judge;
use fetch::target::{Target, log_form};

/// Checks one input; a panic is a finding.
pub fn check(bytes: &[u8]) {
    if let Some(first) = bytes.first_chunk() {
        judge_v4(Ipv4Addr::from_octets(*first));
    }
    if let Some(first) = bytes.first_chunk() {
        judge_v6(Ipv6Addr::from_octets(*first));
    }
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    if let Ok(address) = text.parse::<IpAddr>() {
        assert_eq!(judge(address), judge(address.to_canonical()));
        let host = if address.is_ipv6() {
            format!("[{address}]")
        } else {
            address.to_string()
        };
        assert!(
            Target::parse(&format!("https://{host}/")).is_err(),
            "an address is no name"
        );
    }
    follow(text);
    if let Ok(base) = Target::parse("https://ok.example/a/b?c") {
        base.join(text).iter().for_each(hold);
    }
}

/// An address that is embedded in another is refused in the same cases as the address itself.
fn judge_v4(address: Ipv4Addr) {
    let plain = judge(address.into());
    assert_eq!(plain, judge(address.to_ipv6_mapped().into()), "mapped");
    let bits = u128::from(address.to_bits());
    let wrapped = |bits: u128| judge(Ipv6Addr::from_bits(bits).into());
    assert_eq!(plain, wrapped(0x64_ff9b << 96 | bits), "NAT64");
    assert!(wrapped(bits).is_err(), "compatible");
    assert!(wrapped(0x2002 << 112 | bits << 80).is_err(), "6to4");
    let is_near = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast();
    let is_none = address.is_unspecified() || address.is_broadcast() || address.is_documentation();
    assert!(
        plain.is_err() || !is_near && !is_none,
        "{address} is public"
    );
}

fn judge_v6(address: Ipv6Addr) {
    if judge(address.into()).is_ok() {
        let is_wrapped =
            address.to_ipv4_mapped().is_some() || address.segments()[..2] == [0x64, 0xff9b];
        assert!(
            is_wrapped || address.segments()[0] >> 13 == 1,
            "{address} is global unicast"
        );
    }
}

fn follow(text: &str) {
    assert!(log_form(text).len() <= 256);
    if let Ok(target) = Target::parse(text) {
        hold(&target);
        assert_eq!(
            Target::parse(target.url().as_str()).as_ref(),
            Ok(&target),
            "read again, it is the same"
        );
    }
}

fn hold(target: &Target) {
    let url = target.url();
    assert_eq!(
        (url.scheme(), url.port_or_known_default()),
        ("https", Some(443))
    );
    assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none());
    assert!(target.host().parse::<IpAddr>().is_err() && target.host().contains('.'));
    assert!(
        !log_form(url.as_str()).contains('?'),
        "the query is not logged"
    );
}
