//! Limits: size, time, concurrency, and allowed hosts.

use std::collections::BTreeSet;
use std::time::Duration;

use sluicegate_fetch::{FetchError, Mode, Options};
use tokio::time::{Instant, timeout};

use crate::world::{PUBLIC_NAT64, Reply, World, png, redirect, response};

const URL: &str = "https://ok.example/a";
const CAP: usize = 64 << 10;

/// Fetches with a limit of [`CAP`] bytes. Returns the length of the body.
async fn fetch(reply: Reply) -> Result<usize, FetchError> {
    let world = World::new();
    world.reply("ok.example/a", reply);
    let fetcher = world.fetcher_with(Options {
        max_bytes: CAP,
        ..world.options()
    });
    fetcher.fetch(URL).await.map(|picture| picture.bytes.len())
}

fn body(size: usize) -> Vec<u8> {
    let mut body = png(1, 1);
    body.resize(size, 0);
    body
}

fn without_length(body: &[u8]) -> Vec<u8> {
    [b"HTTP/1.1 200 OK\r\n\r\n", body].concat()
}

fn chunked(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n",
        body.len()
    );
    [head.as_bytes(), body, b"\r\n0\r\n\r\n"].concat()
}

/// The size of an image is limited exactly, whatever the framing.
#[tokio::test]
async fn f07_a_body_may_be_as_large_as_the_cap_and_no_larger() {
    for write in [
        |body: &[u8]| response("200 OK", &[], body),
        without_length,
        chunked,
    ] {
        assert_eq!(fetch(Reply::Bytes(write(&body(CAP)))).await, Ok(CAP));
        assert_eq!(
            fetch(Reply::Bytes(write(&body(CAP + 1)))).await,
            Err(FetchError::TooLarge)
        );
    }
}

/// A declared length over the limit is rejected before the body is read.
#[tokio::test(start_paused = true)]
async fn f07_a_length_over_the_cap_is_refused_before_the_body() {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", CAP + 1);
    assert_eq!(
        fetch(Reply::Stall(head.into_bytes())).await,
        Err(FetchError::TooLarge)
    );
}

/// A wrong declared length does not bypass the limit.
#[tokio::test]
async fn f07_a_length_that_is_a_lie_is_of_no_use() {
    let more = b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n";
    assert_eq!(
        fetch(Reply::Bytes([more, &png(1, 1)[..]].concat()))
            .await
            .unwrap_err()
            .reason(),
        "unreachable"
    );
    let less = b"HTTP/1.1 200 OK\r\nContent-Length: 33\r\n\r\n";
    assert_eq!(
        fetch(Reply::Endless(
            [less, &png(1, 1)[..]].concat(),
            vec![0; 999]
        ))
        .await,
        Ok(33)
    );
}

/// An endless body is aborted at the limit.
#[tokio::test]
async fn f07_an_endless_body_ends_at_the_cap() {
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    assert_eq!(
        fetch(Reply::Endless(head, b"3\r\nabc\r\n".repeat(500))).await,
        Err(FetchError::TooLarge)
    );
    let head = b"HTTP/1.1 200 OK\r\n".to_vec();
    assert_eq!(
        fetch(Reply::Endless(head, b"A: b\r\n".to_vec()))
            .await
            .unwrap_err()
            .reason(),
        "unreachable"
    );
}

/// A host that stalls or drips times out after fifteen seconds.
#[tokio::test(start_paused = true)]
async fn f07_whoever_stalls_or_drips_is_left_after_fifteen_seconds() {
    let partial = b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n\x89PNG".to_vec();
    let drip = Reply::Slow(response("200 OK", &[], &png(1, 1)), Duration::from_secs(1));
    for reply in [Reply::Stall(Vec::new()), Reply::Stall(partial), drip] {
        let start = Instant::now();
        assert_eq!(fetch(reply).await, Err(FetchError::Timeout));
        assert_eq!(start.elapsed().as_secs(), 15);
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_is_for_all_redirects_together() {
    let world = World::new();
    let drip = response("302 Found", &[("Location", "/a")], b"");
    world.reply(
        "ok.example/a",
        Reply::Slow(drip, Duration::from_millis(100)),
    );
    let start = Instant::now();
    assert_eq!(world.fetch(URL).await, Err(FetchError::Timeout));
    assert_eq!(start.elapsed().as_secs(), 15);
    assert!(world.take_requests().len() > 1);
}

/// A fetch over the limit of concurrent fetches is rejected, and finished fetches free their slots.
#[tokio::test(start_paused = true)]
async fn f11_excess_fetch_is_rejected_and_slots_are_released() {
    let world = World::new();
    world.reply("ok.example/a", Reply::Stall(Vec::new()));
    let fetcher = world.fetcher_with(Options {
        at_once: 1,
        ..world.options()
    });
    let other = fetcher.clone();
    let (first, second) = tokio::join!(fetcher.fetch(URL), other.fetch(URL));
    assert_eq!(
        (first, second),
        (Err(FetchError::Timeout), Err(FetchError::Busy))
    );
    assert_eq!(
        other.fetch(URL).await,
        Err(FetchError::Timeout),
        "the slot is free again"
    );
}

#[tokio::test(start_paused = true)]
async fn c05_dropped_fetch_closes_its_connection_and_frees_its_slot() {
    let world = World::new();
    world.reply(
        "ok.example/a",
        Reply::Stall(b"HTTP/1.1 200 OK\r\n".to_vec()),
    );
    let fetcher = world.fetcher_with(Options {
        at_once: 1,
        ..world.options()
    });
    for _ in 0..2 {
        assert!(
            timeout(Duration::from_secs(1), fetcher.fetch(URL))
                .await
                .is_err(),
            "the fetch was in progress"
        );
        timeout(Duration::from_secs(1), world.closed())
            .await
            .expect("the connection is closed");
    }
}

/// Nothing is resolved or dialed when fetching is disabled.
#[tokio::test]
async fn f14_nothing_is_fetched_when_it_is_off() {
    let world = World::new();
    world.reply(
        "ok.example/a",
        Reply::Bytes(response("200 OK", &[], &png(1, 1))),
    );
    let fetcher = world.fetcher_with(Options {
        mode: Mode::Off,
        ..world.options()
    });
    assert_eq!(fetcher.fetch(URL).await, Err(FetchError::Off));
    assert!(world.take_lookups().is_empty());
}

#[tokio::test]
async fn a_list_names_all_hosts_that_are_asked() {
    let world = World::new();
    let picture = || Reply::Bytes(response("200 OK", &[], &png(1, 1)));
    for url in ["ok.example/a", "other.ok.example/"] {
        world.reply(url, picture());
    }
    world.reply(
        "ok.example/away",
        redirect(302, "https://other.ok.example/"),
    );
    world.name("in.ok.example", &[&["10.0.0.1:443".parse().unwrap()]]);
    let hosts = BTreeSet::from(["ok.example", "in.ok.example", "127.0.0.1"].map(str::to_owned));
    let fetcher = world.fetcher_with(Options {
        mode: Mode::AllowList(hosts),
        ..world.options()
    });
    assert!(fetcher.fetch(URL).await.is_ok());
    assert_eq!(
        fetcher.fetch("https://other.ok.example/").await,
        Err(FetchError::NotListed)
    );
    assert_eq!(
        fetcher
            .fetch("https://ok.example/away")
            .await
            .unwrap_err()
            .reason(),
        "redirect"
    );
    assert_eq!(
        fetcher
            .fetch("https://in.ok.example/")
            .await
            .unwrap_err()
            .reason(),
        "address",
        "the allow list does not allow private addresses"
    );
    assert_eq!(
        fetcher
            .fetch("https://127.0.0.1/")
            .await
            .unwrap_err()
            .reason(),
        "url"
    );
}

/// Names that resolve to the gateway's own listeners are rejected.
#[tokio::test]
async fn f12_the_gateway_does_not_ask_itself() {
    for own in [
        "93.184.215.14:443",
        "93.184.215.14:8080",
        "[::ffff:93.184.215.14]:443",
    ] {
        let world = World::new();
        world.reply(
            "ok.example/a",
            Reply::Bytes(response("200 OK", &[], &png(1, 1))),
        );
        let fetcher = world.fetcher_with(Options {
            listeners: vec![own.parse().unwrap()],
            ..world.options()
        });
        assert_eq!(
            fetcher.fetch(URL).await.unwrap_err().reason(),
            "address",
            "{own}"
        );
        world.name("ok.example", &[&[PUBLIC_NAT64.parse().unwrap()]]);
        assert_eq!(
            fetcher.fetch(URL).await.unwrap_err().reason(),
            "address",
            "{own} as NAT64"
        );
        assert!(world.take_dialed().is_empty());
    }
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_does_not_answer() {
    let world = World::new();
    world.reply(
        "ok.example/a",
        Reply::Bytes(response("200 OK", &[], &png(1, 1))),
    );
    let (closed, open) = (
        "93.184.215.15:443".parse().unwrap(),
        "93.184.215.14:443".parse().unwrap(),
    );
    world.name("ok.example", &[&[closed, open]]);
    assert!(world.fetch(URL).await.is_ok());
    assert_eq!(world.take_dialed(), [closed, open]);
    world.name("ok.example", &[&[closed; 40]]);
    assert_eq!(world.fetch(URL).await.unwrap_err().reason(), "unreachable");
    assert_eq!(world.take_dialed().len(), 16);
}
