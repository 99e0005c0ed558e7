//! Every rejected range, in every notation, by URL, DNS and redirect: only public addresses are
//! ever dialed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use sluicegate_fetch::Fetcher;

use crate::world::{PUBLIC, PUBLIC_NAT64, PUBLIC_V6, Reply, World, png, redirect, response};

/// No notation of a rejected address, in a URL or in a redirect, is resolved or dialed.
#[tokio::test]
async fn f02_f03_no_spelling_of_an_address_reaches_it() {
    let mut check = Check::new();
    for text in literals() {
        check.literal(&text).await;
        check.redirected_to_literal(&text).await;
    }
    assert!(check.cases > 3_000, "{}", check.cases);
}

/// No DNS response, mixed, changing or behind a redirect, leads to a rejected address.
#[tokio::test]
async fn f02_f04_no_answer_of_the_dns_reaches_a_refused_address() {
    let mut check = Check::new();
    for address in answers() {
        check.answer(&[address]).await;
        check.answer(&[public(), address]).await;
        check.answer(&[address, public()]).await;
        check.redirected_to_answer(address).await;
        check.rebound(address).await;
    }
    assert!(check.cases > 2_000, "{}", check.cases);
}

#[test]
fn there_are_more_than_five_thousand_cases() {
    let (literals, answers) = (literals().len(), answers().len());
    assert!(
        2 * literals + 5 * answers > 5_000,
        "2 x {literals} + 5 x {answers}"
    );
}

#[tokio::test]
async fn a_public_address_is_dialled_in_each_of_its_forms() {
    let world = World::new();
    world.reply(
        "ok.example/",
        Reply::Bytes(response("200 OK", &[], &png(1, 1))),
    );
    for (form, dialed) in [
        ("93.184.215.14", PUBLIC),
        ("::ffff:93.184.215.14", PUBLIC),
        ("64:ff9b::93.184.215.14", PUBLIC_NAT64),
        ("2606:4700::1111", PUBLIC_V6),
    ] {
        world.name(
            "ok.example",
            &[&[SocketAddr::new(form.parse().unwrap(), 443)]],
        );
        world.fetch("https://ok.example/").await.unwrap();
        assert_eq!(world.take_dialed(), [dialed.parse().unwrap()], "{form}");
    }
}

/// Runs and counts cases.
struct Check {
    world: World,
    fetcher: Fetcher,
    cases: usize,
}

impl Check {
    fn new() -> Self {
        let world = World::new();
        // A URL that is parsed as this name, with an address hidden in it, gets no image.
        world.name("ok.example", &[&[public()]]);
        Self {
            fetcher: world.fetcher(),
            world,
            cases: 0,
        }
    }

    /// A URL from a client.
    async fn literal(&mut self, text: &str) {
        self.assert_rejected(&format!("https://{text}"), 0, text)
            .await;
        assert!(
            self.world.take_lookups().is_empty(),
            "{text}: rejected before the DNS lookup"
        );
    }

    /// A redirect of a public host to a URL.
    async fn redirected_to_literal(&mut self, text: &str) {
        self.world
            .reply("r.ok.example/", redirect(302, &format!("https://{text}")));
        self.assert_rejected("https://r.ok.example/", 1, text).await;
        assert_eq!(self.world.take_lookups(), ["r.ok.example"], "{text}");
    }

    /// A name with these addresses.
    async fn answer(&mut self, addresses: &[SocketAddr]) {
        self.world.name("a.ok.example", &[addresses]);
        self.assert_rejected("https://a.ok.example/", 0, &format!("{addresses:?}"))
            .await;
        assert_eq!(self.world.take_lookups(), ["a.ok.example"], "{addresses:?}");
    }

    /// A redirect of a public host to a name with this address.
    async fn redirected_to_answer(&mut self, address: SocketAddr) {
        self.world.name("a.ok.example", &[&[address]]);
        self.world
            .reply("r.ok.example/", redirect(302, "https://a.ok.example/"));
        self.assert_rejected("https://r.ok.example/", 1, &address.to_string())
            .await;
        assert_eq!(
            self.world.take_lookups(),
            ["r.ok.example", "a.ok.example"],
            "{address}"
        );
    }

    /// DNS rebinding: a name that is public at the first lookup and not at the second. The second
    /// lookup is made for a redirect to the same name, and is validated like the first.
    async fn rebound(&mut self, address: SocketAddr) {
        self.world.name("b.ok.example", &[&[public()], &[address]]);
        self.world.reply("b.ok.example/", redirect(307, "/again"));
        self.world.reply(
            "b.ok.example/again",
            Reply::Bytes(response("200 OK", &[], &png(1, 1))),
        );
        self.assert_rejected("https://b.ok.example/", 1, &address.to_string())
            .await;
        assert_eq!(self.world.take_lookups(), ["b.ok.example"; 2], "{address}");
    }

    /// Expects the fetch to fail after `dials` connections, all to the public host.
    async fn assert_rejected(&mut self, url: &str, dials: usize, case: &str) {
        self.cases += 1;
        let error = self.fetcher.fetch(url).await.map(|_| ()).unwrap_err();
        assert!(
            ["url", "address", "redirect"].contains(&error.reason()),
            "{case}: {error}"
        );
        assert_eq!(self.world.take_dialed(), vec![public(); dials], "{case}");
    }
}

/// Texts to follow `https://`.
fn literals() -> Vec<String> {
    let v4 = V4
        .iter()
        .flat_map(|range| sample_v4(range))
        .flat_map(spellings_v4);
    let v6 = V6
        .iter()
        .flat_map(|range| sample_v6(range))
        .flat_map(spellings_v6);
    v4.chain(v6).collect()
}

/// Addresses that a lookup may return.
fn answers() -> Vec<SocketAddr> {
    let v4 = V4
        .iter()
        .flat_map(|range| sample_v4(range))
        .flat_map(|address| {
            let wrapped = wrappings(address).into_iter().map(IpAddr::V6);
            std::iter::once(IpAddr::V4(address)).chain(wrapped)
        });
    let v6 = V6.iter().flat_map(|range| sample_v6(range)).map(IpAddr::V6);
    v4.chain(v6)
        .map(|address| SocketAddr::new(address, 443))
        .collect()
}

/// The first, the middle and the last address of a range.
fn sample_v4(range: &str) -> Vec<Ipv4Addr> {
    let (network, prefix) = range.split_once('/').unwrap();
    let first = network.parse::<Ipv4Addr>().unwrap().to_bits();
    let size = (1_u64 << (32 - prefix.parse::<u32>().unwrap())) - 1;
    let mut sample: Vec<_> = [0, size / 2, size]
        .map(|step| Ipv4Addr::from_bits(first + step as u32))
        .into();
    sample.dedup();
    sample
}

fn sample_v6(range: &str) -> Vec<Ipv6Addr> {
    let (network, prefix) = range.split_once('/').unwrap();
    let first = network.parse::<Ipv6Addr>().unwrap().to_bits();
    let size = u128::MAX.checked_shr(prefix.parse().unwrap()).unwrap_or(0);
    let mut sample: Vec<_> = [0, size / 2, size]
        .map(|step| Ipv6Addr::from_bits(first + step))
        .into();
    sample.dedup();
    sample
}

/// IPv6 addresses that hold an IPv4 address.
fn wrappings(address: Ipv4Addr) -> [Ipv6Addr; 7] {
    let bits = u128::from(address.to_bits());
    [
        0xffff << 32 | bits,                            // mapped
        bits,                                           // compatible
        0x2002 << 112 | bits << 80,                     // 6to4
        0x64_ff9b << 96 | bits,                         // NAT64
        0x64_ff9b_0001 << 80 | bits,                    // NAT64 of a site
        0x2001 << 112 | u128::from(!address.to_bits()), // Teredo
        0xffff << 48 | bits,                            // translated (RFC 2765)
    ]
    .map(Ipv6Addr::from_bits)
}

fn spellings_v4(address: Ipv4Addr) -> Vec<String> {
    let [a, b, c, d] = address.octets();
    let bits = address.to_bits();
    let hosts = [
        address.to_string(),
        format!("{address}."),
        bits.to_string(),
        format!("{bits:#x}"),
        format!("{bits:#X}").to_uppercase(),
        format!("0{bits:o}"),
        format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("000{a:o}.{b}.{c:#x}.{d}"),
        format!("{a}.{}", bits & 0xff_ffff),
        format!("{a:#x}.{}.", bits & 0xff_ffff),
        format!("{a}.{b}.{}", bits & 0xffff),
        percent(&address.to_string(), |_| true),
        percent(&address.to_string(), |c| c == '.'),
        address.to_string().replace('.', "\u{3002}"),
        shifted(&address.to_string(), fullwidth),
        shifted(&address.to_string(), circled),
    ];
    let wrapped = wrappings(address);
    let [mapped, ..] = wrapped;
    let bracketed = wrapped.iter().map(|address| format!("[{address}]"));
    let more = [
        format!("[::ffff:{address}]"),
        format!("[::FFFF:{:x}:{:x}]", bits >> 16, bits & 0xffff),
        format!("[{}]", full(mapped)),
        format!("[::{address}]"),
        format!("[{mapped}%25lo]"),
        format!("[{address}]"),
        format!("{address}:443"),
        format!("{address}:80"),
        format!("a@{address}"),
        format!("ok.example@{address}"),
        format!("ok.example:443@{address}"),
        format!("{address}#@ok.example"),
        format!("ok.example\\@{address}"),
        format!("{address}\\@ok.example"),
        format!("{address}\t"),
        format!("ok.example#@{address}"),
    ];
    hosts
        .into_iter()
        .chain(bracketed)
        .chain(more)
        .map(|host| host + "/latest")
        .collect()
}

fn spellings_v6(address: Ipv6Addr) -> Vec<String> {
    let full = full(address);
    [
        format!("[{address}]"),
        format!("[{full}]"),
        format!("[{}]", full.to_uppercase()),
        format!("[{address}]:443"),
        format!("[{address}%25lo]"),
        format!("[{address}%lo]"),
        format!("a@[{address}]"),
        format!("[{address}]#@ok.example"),
        format!("ok.example\\@[{address}]"),
        percent(&format!("[{address}]"), |_| true),
    ]
    .into()
}

fn full(address: Ipv6Addr) -> String {
    address
        .segments()
        .map(|segment| format!("{segment:04x}"))
        .join(":")
}

fn percent(text: &str, which: impl Fn(char) -> bool) -> String {
    let encode = |c: char| {
        if which(c) {
            format!("%{:02x}", u32::from(c))
        } else {
            c.to_string()
        }
    };
    text.chars().map(encode).collect()
}

fn shifted(text: &str, digit: impl Fn(u32) -> u32) -> String {
    let shift = |c: char| {
        c.to_digit(10)
            .and_then(|value| char::from_u32(digit(value)))
            .unwrap_or(c)
    };
    text.chars().map(shift).collect()
}

fn fullwidth(value: u32) -> u32 {
    0xff10 + value
}

fn circled(value: u32) -> u32 {
    if value == 0 { 0x24ea } else { 0x245f + value }
}

fn public() -> SocketAddr {
    PUBLIC.parse().unwrap()
}

const V4: &[&str] = &[
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "100.100.100.200/32",
    "127.0.0.0/8",
    "127.0.0.1/32",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "169.254.169.254/32",
    "169.254.170.2/32",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.0.192/32",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "255.255.255.255/32",
];

const V6: &[&str] = &[
    "::/128",
    "::1/128",
    "64:ff9b:1::/48",
    "100::/64",
    "2001::/23",
    "2001::/32",
    "2001:10::/28",
    "2001:20::/28",
    "2001:db8::/32",
    "3fff::/20",
    "2002::/16",
    "4000::/2",
    "5f00::/16",
    "8000::/1",
    "fc00::/7",
    "fd00:ec2::254/128",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
];
