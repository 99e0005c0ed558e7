//! Responses of hosts, and how they are handled.

use picture::Format;
use sluicegate_fetch::{FetchError, Options};

use crate::world::{Certificate, Reply, World, jpeg, png, redirect, response, webp};

const URL: &str = "https://ok.example/a";

async fn fetch(reply: Vec<u8>) -> Result<Format, FetchError> {
    let world = World::new();
    world.reply("ok.example/a", Reply::Bytes(reply));
    world.fetch(URL).await.map(|picture| picture.head.format)
}

async fn fetch_body(body: &[u8]) -> Result<Format, FetchError> {
    fetch(response("200 OK", &[], body)).await
}

#[tokio::test]
async fn a_picture_comes_back_as_it_was_sent() {
    for (body, format) in [
        (png(7, 5), Format::Png),
        (jpeg(7, 5), Format::Jpeg),
        (webp(7, 5), Format::Webp),
    ] {
        let world = World::new();
        world.reply("ok.example/a", Reply::Bytes(response("200 OK", &[], &body)));
        let picture = world.fetch(URL).await.unwrap();
        assert_eq!(
            (picture.head.format, picture.head.width, picture.head.height),
            (format, 7, 5)
        );
        assert_eq!(picture.bytes, body);
    }
}

#[tokio::test]
async fn exactly_these_headers_are_sent() {
    let world = World::new();
    world.reply(
        "ok.example/a?b=c%20d",
        Reply::Bytes(response("200 OK", &[], &png(1, 1))),
    );
    world
        .fetch("https://OK.example.:443/a?b=c%20d")
        .await
        .unwrap();
    let request = concat!(
        "GET /a?b=c%20d HTTP/1.1\r\n",
        "host: ok.example\r\n",
        "user-agent: sluicegate/",
        env!("CARGO_PKG_VERSION"),
        "\r\n",
        "accept: image/png,image/jpeg,image/webp\r\n",
        "accept-encoding: identity\r\n\r\n",
    );
    assert_eq!(world.take_requests(), [request]);
}

/// The format of an image is detected by its first bytes, not by its media type.
#[tokio::test]
async fn f08_the_first_bytes_decide_and_not_the_media_type() {
    let headers = [
        ("Content-Type", "text/html"),
        ("Content-Encoding", "identity"),
    ];
    assert_eq!(
        fetch(response("200 OK", &headers, &png(1, 1))).await,
        Ok(Format::Png)
    );
    let headers = [("Content-Type", "image/png")];
    assert_eq!(
        fetch(response("200 OK", &headers, b"<!doctype html>")).await,
        Err(FetchError::Kind)
    );
}

/// Pages, SVG, JSON and polyglots are rejected.
#[tokio::test]
async fn f08_non_image_bodies_are_rejected() {
    let bodies: [&[u8]; 9] = [
        b"",
        b"{}",
        b"<!doctype html><img>",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"GIF89a\x05\x00\x07\x00\x00\x00\x00",
        // A page followed by an image: the image must not be found.
        b"<script>\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0",
        b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0",
        b"%PDF-1.7",
        b"\x89PNG\r\n\x1a\n",
    ];
    for body in bodies {
        assert_eq!(
            fetch_body(body).await,
            Err(FetchError::Kind),
            "{}",
            body.escape_ascii()
        );
    }
    assert_eq!(
        fetch_body(&png(50_000, 50_000)).await,
        Err(FetchError::Kind)
    );
    assert_eq!(fetch_body(&png(0, 1)).await, Err(FetchError::Kind));
}

#[tokio::test]
async fn only_200_is_an_answer() {
    for (status, code) in [
        ("201 Created", 201),
        ("206 Partial", 206),
        ("300 Many", 300),
        ("404 No", 404),
        ("500 Oh", 500),
    ] {
        assert_eq!(
            fetch(response(status, &[], &png(1, 1))).await,
            Err(FetchError::Status(code))
        );
    }
    assert_eq!(
        fetch(b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec()).await,
        Err(FetchError::Status(304))
    );
    assert_eq!(
        fetch(b"HTTP/1.1 101 Other\r\nUpgrade: a\r\n\r\n".to_vec())
            .await
            .unwrap_err()
            .reason(),
        "status"
    );
}

/// A body with a content encoding is rejected.
#[tokio::test]
async fn f07_a_packed_body_is_refused() {
    for coding in ["gzip", "br", "deflate", "identity, gzip", "zstd"] {
        let encoded = response("200 OK", &[("Content-Encoding", coding)], &png(1, 1));
        assert_eq!(fetch(encoded).await, Err(FetchError::Encoding), "{coding}");
    }
    let twice = response(
        "200 OK",
        &[
            ("Content-Encoding", "identity"),
            ("Content-Encoding", "gzip"),
        ],
        &png(1, 1),
    );
    assert_eq!(fetch(twice).await, Err(FetchError::Encoding));
}

/// Some servers send the header without a coding. Case does not matter (RFC 9110 §8.4.1).
#[tokio::test]
async fn a_body_without_a_coding_is_read() {
    for coding in ["", "Identity"] {
        let plain = response("200 OK", &[("Content-Encoding", coding)], &png(1, 1));
        assert_eq!(fetch(plain).await, Ok(Format::Png), "{coding}");
    }
}

#[tokio::test]
async fn non_http_responses_are_rejected() {
    for bytes in [
        &b""[..],
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    ] {
        assert_eq!(
            fetch(bytes.to_vec()).await.unwrap_err().reason(),
            "unreachable",
            "{}",
            bytes.escape_ascii()
        );
    }
}

/// A certificate that is expired, untrusted or of another name fails before a request is sent.
#[tokio::test]
async fn f06_a_host_must_show_that_it_is_the_one_of_the_url() {
    for certificate in [
        Certificate::OfAnotherName,
        Certificate::Expired,
        Certificate::OfAnotherCa,
    ] {
        let world = World::with(certificate);
        world.reply(
            "ok.example/a",
            Reply::Bytes(response("200 OK", &[], &png(1, 1))),
        );
        assert_eq!(world.fetch(URL).await, Err(FetchError::Tls));
        assert!(world.take_requests().is_empty());
    }
}

/// A valid certificate of one host is rejected for another.
#[tokio::test]
async fn f06_the_certificate_is_held_against_the_name_of_the_url() {
    let world = World::new();
    world.reply(
        "another.example/a",
        Reply::Bytes(response("200 OK", &[], &png(1, 1))),
    );
    assert_eq!(
        world.fetch("https://another.example/a").await,
        Err(FetchError::Tls)
    );
    assert!(world.take_requests().is_empty());
}

#[tokio::test]
async fn the_roots_of_the_web_do_not_vouch_for_a_made_up_host() {
    let world = World::new();
    world.reply(
        "ok.example/a",
        Reply::Bytes(response("200 OK", &[], &png(1, 1))),
    );
    assert_eq!(
        world.fetcher_with(Options::default()).fetch(URL).await,
        Err(FetchError::Tls)
    );
}

/// The peer must have the address that was validated.
#[tokio::test]
async fn f04_the_other_end_must_be_who_was_dialled() {
    let world = World::new();
    world.reply(
        "ok.example/a",
        Reply::Bytes(response("200 OK", &[], &png(1, 1))),
    );
    world.peer("10.0.0.1:443");
    assert_eq!(world.fetch(URL).await.unwrap_err().reason(), "address");
    assert!(world.take_requests().is_empty());
}

/// A client gets the same message for all errors that depend on the network.
#[tokio::test]
async fn f09_a_client_cannot_distinguish_network_causes() {
    let world = World::new();
    world.name("private.ok.example", &[&["10.0.0.1:443".parse().unwrap()]]);
    world.name(
        "closed.ok.example",
        &[&["93.184.215.15:443".parse().unwrap()]],
    );
    world.name("empty.ok.example", &[&[]]);
    world.reply("ok.example/moved", redirect(302, "https://10.0.0.1/"));
    let mut messages = Vec::new();
    for (url, reason) in [
        ("private.ok.example", "address"),
        ("closed.ok.example", "unreachable"),
        ("empty.ok.example", "unreachable"),
        ("unknown.ok.example", "unreachable"),
        ("ok.example/absent", "status"),
        ("ok.example/moved", "redirect"),
    ] {
        let error = world.fetch(&format!("https://{url}")).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{url}");
        messages.push(error.client_message("https://ok.example/"));
    }
    messages.dedup();
    assert_eq!(messages.len(), 1, "{messages:?}");
}
