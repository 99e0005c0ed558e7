//! H16: clients of HTTP/2 that send floods of frames, read nothing, or say nothing.
//!
//! Frames, stream states, windows and header blocks (RFC 9113 §4 to §6, RFC 7541) are checked by the
//! crate `h2`, whose own tests send each violation; `h15_violations_of_http2_are_turned_away` samples
//! them, to see that they are counted. What depends on the gateway is tested here and in
//! `http2_requests`:
//!
//! - §3.4, the preface: it is found by hyper's HTTP/1 and passed on.
//! - §5.1.2, streams beyond the limit, and §5.4, streams that end with an error: their numbers.
//! - §6.3 to §6.10, floods of each type of frame. `WINDOW_UPDATE` is not counted: it is not answered,
//!   and costs no more than the same bytes of data.
//! - §6.9, windows that stay closed, and connections whose bytes are not taken.
//! - §8.1 and §8.3, requests: their sizes, their headers, and the host.

use std::fs;

use simulator::{Protocol, Simulator, scenario};
use testkit::http2::{
    ACK, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, Frame, Http2, PADDED, PREFACE, header_block,
    kind,
};
use testkit::requests::ask;
use testkit::{CLIENT_KEY, Connection, End, Gateway, await_that};

use crate::GATEWAY;

/// The head of a request for a stream.
fn head(stream: u32) -> Frame {
    Frame::head(0, stream, &headers(&format!("Bearer {CLIENT_KEY}")))
}

fn headers(authorization: &str) -> [(&str, &str); 6] {
    [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "gateway"),
        (":path", "/v1/chat/completions"),
        ("authorization", authorization),
        ("content-type", "application/json"),
    ]
}

fn body(stream: u32) -> Frame {
    let body = ask(Protocol::Chat, "chat", "Hello.", true).to_string();
    Frame::new(kind::DATA, END_STREAM, stream, body)
}

/// The number of connections that have ended for this reason.
fn ended(gateway: &Gateway, reason: &str) -> f64 {
    gateway.sum(&format!(
        "sluicegate_connections_ended_total{{reason=\"{reason}\"}}"
    ))
}

/// The resident memory of the gateway, in KiB.
fn resident(gateway: &Gateway) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", gateway.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

#[track_caller]
fn is_served(gateway: &Gateway) {
    let question = ask(Protocol::Chat, "chat", "Hello.", false);
    assert_eq!(gateway.ask(Protocol::Chat, &question).status, 200);
}

/// A connection with a flood of frames is closed: by the gateway's own count, or with
/// `ENHANCE_YOUR_CALM`. Memory does not grow, and other clients are served.
#[test]
fn h16_floods_of_frames_close_their_connection() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let ping = Frame::new(kind::PING, 0, 0, [7; 8]).bytes();
    let settings = Frame::new(kind::SETTINGS, 0, 0, []).bytes();
    let priority = Frame::new(kind::PRIORITY, 0, 1, [0, 0, 0, 0, 7]).bytes();
    let unknown = Frame::new(0x2a, 0, 0, []).bytes();
    is_served(&gateway);
    let before = resident(&gateway);
    let floods = [
        ("ping", ping),
        ("settings", settings),
        ("priority", priority),
        ("unknown", unknown),
    ];
    for (place, (name, frame)) in floods.iter().enumerate() {
        let mut client = Http2::open(gateway.address(), &[]);
        client.flood(&frame.repeat(1000), 100);
        client.rest();
        await_that(name, || ended(&gateway, "flood") == place as f64 + 1.0);
        is_served(&gateway);
    }
    let grown = resident(&gateway).saturating_sub(before);
    assert!(grown < 8 << 10, "{grown} KiB");
}

/// Floods that begin requests end with `GOAWAY` and the error `ENHANCE_YOUR_CALM`.
#[test]
fn h16_floods_of_heads_and_data_get_enhance_your_calm() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let block = header_block(&headers("Bearer nobody"));
    let begun = Frame::new(kind::HEADERS, 0, 1, block).bytes();
    let more = Frame::new(kind::CONTINUATION, 0, 1, [0, 1, b'x', 1, b'y']).bytes();
    let nothing = Frame::new(kind::CONTINUATION, 0, 1, []).bytes();
    let empty = Frame::new(kind::DATA, 0, 1, []).bytes();
    let padding = Frame::new(kind::DATA, PADDED, 1, [3, 0, 0, 0]).bytes();
    is_served(&gateway);
    let before = resident(&gateway);
    for (place, (name, first, repeated)) in [
        ("CONTINUATION without end", begun.clone(), more),
        ("empty CONTINUATION", begun, nothing),
        ("empty DATA", head(1).bytes(), empty),
        ("DATA of padding", head(1).bytes(), padding),
    ]
    .iter()
    .enumerate()
    {
        let mut client = Http2::open(gateway.address(), &[]);
        client.flood(first, 1);
        client.flood(&repeated.repeat(1000), 100);
        let (frames, _) = client.rest();
        let goaway = frames.iter().find(|frame| frame.kind == kind::GOAWAY);
        assert_eq!(
            goaway.and_then(Frame::error_code),
            Some(ENHANCE_YOUR_CALM),
            "{name}: {frames:?}"
        );
        await_that(name, || ended(&gateway, "bad_head") == place as f64 + 1.0);
        is_served(&gateway);
    }
    let grown = resident(&gateway).saturating_sub(before);
    assert!(grown < 8 << 10, "{grown} KiB");
    gateway.await_quiet();
}

/// A client that cancels each request as soon as it has sent it (CVE-2023-44487) is disconnected, and
/// no permit is lost.
#[test]
fn h16_rapid_reset_closes_the_connection() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    is_served(&gateway);
    let before = resident(&gateway);
    let mut client = Http2::open(gateway.address(), &[]);
    let cancel = [0, 0, 0, 8];
    for first in (1..20_000).step_by(200) {
        let pairs = (first..first + 200).step_by(2).flat_map(|stream| {
            let reset = Frame::new(kind::RST_STREAM, 0, stream, cancel);
            [head(stream).bytes(), reset.bytes()].concat()
        });
        client.flood(&pairs.collect::<Vec<_>>(), 1);
    }
    client.rest();
    await_that("it is disconnected", || {
        ended(&gateway, "flood") + ended(&gateway, "bad_head") == 1.0
    });
    gateway.await_quiet();
    is_served(&gateway);
    let grown = resident(&gateway).saturating_sub(before);
    assert!(grown < 8 << 10, "{grown} KiB");
}

/// A client that makes the gateway reset each request (CVE-2025-8671) is disconnected, and no permit is
/// lost.
#[test]
fn h16_streams_that_the_client_makes_fail_close_the_connection() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    is_served(&gateway);
    let before = resident(&gateway);
    let mut client = Http2::open(gateway.address(), &[]);
    const TOO_MUCH: [u8; 4] = [0x7f, 0xff, 0xff, 0xff];
    for stream in (1..2_000).step_by(2) {
        let overflow = Frame::new(kind::WINDOW_UPDATE, 0, stream, TOO_MUCH);
        let frames = [head(stream), body(stream), overflow];
        client.flood(&frames.map(|frame| frame.bytes()).concat(), 1);
    }
    let (frames, _) = client.rest();
    let goaway = frames.iter().find(|frame| frame.kind == kind::GOAWAY);
    assert_eq!(goaway.and_then(Frame::error_code), Some(ENHANCE_YOUR_CALM));
    await_that("it is counted", || ended(&gateway, "bad_head") == 1.0);
    gateway.await_quiet();
    is_served(&gateway);
    let grown = resident(&gateway).saturating_sub(before);
    assert!(grown < 8 << 10, "{grown} KiB");
}

/// A head that is short on the wire, and long once its references are resolved, is not kept: the
/// connection is closed.
#[test]
fn h16_a_head_of_references_is_not_expanded() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    is_served(&gateway);
    let before = resident(&gateway);
    // An entry of the table (RFC 7541 §6.2.1), and references to it (§6.1): 40 MiB in 14 KiB.
    let mut entry = header_block(&[("x", &"y".repeat(4_000))]);
    entry[0] = 0x40;
    let references = vec![0x80 | 62; 10_000];
    let block = [header_block(&headers("Bearer nobody")), entry, references].concat();
    let mut client = Http2::open(gateway.address(), &[]);
    let bomb = Frame::new(kind::HEADERS, END_STREAM | END_HEADERS, 1, block);
    client.flood(&bomb.bytes(), 1);
    let (frames, _) = client.rest();
    assert!(
        frames.iter().any(|frame| frame.kind == kind::GOAWAY),
        "{frames:?}"
    );
    await_that("it is counted", || ended(&gateway, "bad_head") == 1.0);
    let grown = resident(&gateway).saturating_sub(before);
    assert!(grown < 8 << 10, "{grown} KiB");
}

/// A client that opens streams beyond the limit gets them refused, and is disconnected if it goes on.
#[test]
fn h16_streams_beyond_the_limit_are_refused() {
    let (gateway, _simulator) = GATEWAY.with_upstream("http2_streams = 4\n");
    let mut client = Http2::open(gateway.address(), &[]);
    for stream in (1..=11).step_by(2) {
        client.send(&head(stream));
    }
    let refused = [
        client.next_of(kind::RST_STREAM),
        client.next_of(kind::RST_STREAM),
    ];
    const REFUSED_STREAM: u32 = 7;
    assert_eq!(
        refused.map(|frame| (frame.stream, frame.error_code())),
        [(9, Some(REFUSED_STREAM)), (11, Some(REFUSED_STREAM))]
    );
    for stream in (13..1000).step_by(2) {
        client.flood(&head(stream).bytes(), 1);
    }
    let (frames, _) = client.rest();
    let goaway = frames.iter().find(|frame| frame.kind == kind::GOAWAY);
    assert_eq!(goaway.and_then(Frame::error_code), Some(ENHANCE_YOUR_CALM));
    gateway.await_quiet();
}

/// Streams of a client that opens no window are reset after `write_stall`. Until then they wait with
/// little memory, and upstreams are not read ahead.
#[test]
fn h16_c03_streams_that_are_not_read_are_reset() {
    const STREAMS: u32 = 32;
    const INITIAL_WINDOW_SIZE: u16 = 4;
    let scenario = scenario::named("endless-deltas").unwrap();
    let simulator = Simulator::start(move |request| scenario.play(request)).unwrap();
    let gateway = GATEWAY.before(&simulator, "write_stall = \"5s\"\n", "");
    let before = resident(&gateway);
    let mut client = Http2::open(gateway.address(), &[(INITIAL_WINDOW_SIZE, 0)]);
    let streams = (1..2 * STREAMS).step_by(2);
    for stream in streams.clone() {
        client.send(&head(stream));
        client.send(&body(stream));
    }
    await_that("all are admitted", || {
        gateway.metric("sluicegate_in_flight") == f64::from(STREAMS)
    });
    let grown = resident(&gateway).saturating_sub(before);
    assert!(grown < 16 << 10, "{grown} KiB");
    let mut reset: Vec<_> = streams
        .clone()
        .map(|_| client.next_of(kind::RST_STREAM).stream)
        .collect();
    reset.sort_unstable();
    assert_eq!(reset, streams.collect::<Vec<_>>());
    gateway.await_quiet();
    await_that("the outcomes are logged", || {
        let log = gateway.log.lock().unwrap();
        log.matches("\"outcome\":\"slow_reader\"").count() == STREAMS as usize
    });
    is_answered(&mut client);
}

/// A client that opens all windows, and takes nothing from its socket, is reset after `write_stall`.
#[test]
fn h16_c03_a_connection_that_takes_nothing_is_reset() {
    const INITIAL_WINDOW_SIZE: u16 = 4;
    const LARGEST: u32 = 0x7fff_ffff;
    let scenario = scenario::named("endless-deltas").unwrap();
    let simulator = Simulator::start(move |request| scenario.play(request)).unwrap();
    let limits = "write_stall = \"500ms\"\nsend_buffer = \"64KiB\"";
    let gateway = GATEWAY.before(&simulator, limits, "");
    let mut client = Http2::open(gateway.address(), &[(INITIAL_WINDOW_SIZE, LARGEST)]);
    let rest = (LARGEST - 0xffff).to_be_bytes();
    client.send(&Frame::new(kind::WINDOW_UPDATE, 0, 0, rest));
    for stream in [1, 3] {
        client.send(&head(stream));
        client.send(&body(stream));
    }
    await_that("it is counted", || ended(&gateway, "slow_reader") == 1.0);
    gateway.await_quiet();
    assert_eq!(client.rest().1, End::Reset);
}

/// Asserts that a connection is open: a ping is confirmed.
#[track_caller]
fn is_answered(client: &mut Http2) {
    client.send(&Frame::new(kind::PING, 0, 0, *b"question"));
    loop {
        let pong = client.next_of(kind::PING);
        if pong.flags == ACK && pong.payload == b"question" {
            return;
        }
    }
}

/// A connection without requests is closed with `GOAWAY` after `idle_timeout`, and counted as idle.
#[test]
fn an_idle_connection_over_http2_gets_goaway() {
    let (gateway, _simulator) = GATEWAY.with_upstream("idle_timeout = \"300ms\"\n");
    let mut client = Http2::open(gateway.address(), &[]);
    // The gateway asks if the client has seen it, with a ping.
    let mut errors = Vec::new();
    let mut is_asked = false;
    while errors.is_empty() || !is_asked {
        let frame = client.frame();
        errors.extend(frame.error_code());
        if frame.kind == kind::PING {
            client.send(&Frame::new(kind::PING, ACK, 0, frame.payload));
            is_asked = true;
        }
    }
    let (last, _) = client.rest();
    errors.extend(last.iter().filter_map(Frame::error_code));
    assert!(errors.iter().all(|error| *error == 0), "{errors:?}");
    await_that("it is counted", || ended(&gateway, "idle") == 1.0);
}

/// A client that answers no ping is disconnected, also one that has begun a head and sends no more of
/// it.
#[test]
fn l02_a_client_that_answers_no_ping_is_disconnected() {
    let (gateway, _simulator) = GATEWAY.with_upstream("head_timeout = \"600ms\"\n");
    let mut silent = Http2::open(gateway.address(), &[]);
    let mut stuck = Http2::open(gateway.address(), &[]);
    let block = header_block(&headers("Bearer nobody"));
    stuck.send(&Frame::new(kind::HEADERS, END_STREAM, 1, block));
    for client in [&mut silent, &mut stuck] {
        client.rest();
    }
    await_that("both are counted", || {
        ended(&gateway, "unresponsive") == 2.0
    });
}

/// Frames that violate the protocol end the connection, and are counted.
#[test]
fn h15_violations_of_http2_are_turned_away() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let too_long = Frame::new(kind::DATA, 0, 1, vec![0; 20_000]);
    let no_stream = Frame::new(kind::DATA, 0, 1, *b"x");
    let even = Frame::head(END_STREAM | END_HEADERS, 2, &headers("Bearer nobody"));
    let overflow = Frame::new(kind::WINDOW_UPDATE, 0, 0, [0x7f, 0xff, 0xff, 0xff]);
    let frames = [too_long, no_stream, even, overflow];
    for frame in &frames {
        let mut client = Http2::open(gateway.address(), &[]);
        client.flood(&frame.bytes(), 1);
        let (received, _) = client.rest();
        assert!(
            received.iter().any(|frame| frame.kind == kind::GOAWAY),
            "{frame:?}: {received:?}"
        );
    }
    let mut other = Connection::open(gateway.address());
    other.try_send([&PREFACE[..18], b"XX\r\n\r\n"].concat());
    other.rest();
    await_that("each is counted", || {
        ended(&gateway, "bad_head") == frames.len() as f64 + 1.0
    });
}
