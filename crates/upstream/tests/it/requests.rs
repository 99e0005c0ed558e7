//! Requests as an upstream receives them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use network::{Received, World, ok, options, post, send_once, url};
use sluicegate_upstream::{Credential, Options, OptionsError, Outgoing, Upstream};

/// Sends a request with `options`, and returns it as the server received it.
async fn sent(options: Options, request: &Outgoing) -> Received {
    let world = World::default();
    let seen = Arc::new(Mutex::new(None));
    let written = Arc::clone(&seen);
    world.serve("a.example", move |_, mut peer| {
        let written = Arc::clone(&written);
        async move {
            *written.lock().unwrap() = peer.request().await;
            peer.send(ok("{}")).await;
        }
    });
    send_once(&world.upstream(options), request).await.unwrap();
    let received = seen.lock().unwrap().take();
    received.unwrap()
}

fn header(value: &'static str) -> HeaderValue {
    HeaderValue::from_static(value)
}

/// An upstream receives exactly the documented headers.
#[tokio::test]
async fn p01_exactly_these_headers_are_sent() {
    let mut options = options();
    options.credential = Some(Credential::bearer("sk-theirs").unwrap());
    options
        .headers
        .insert("anthropic-version", header("2023-06-01"));
    let mut request = post(r#"{"a":1}"#);
    let received = sent(options.clone(), &request).await;
    let expected = concat!(
        "POST /v1/responses HTTP/1.1\r\n",
        "anthropic-version: 2023-06-01\r\n",
        "host: a.example\r\n",
        "user-agent: sluicegate/",
        env!("CARGO_PKG_VERSION"),
        "\r\n",
        "accept-encoding: identity\r\n",
        "accept: application/json\r\n",
        "content-type: application/json\r\n",
        "authorization: Bearer sk-theirs\r\n",
        "content-length: 7\r\n\r\n",
    );
    assert_eq!(
        received,
        Received {
            head: expected.to_owned(),
            body: r#"{"a":1}"#.to_owned()
        }
    );

    request.accept_stream = true;
    request.content_type = header("multipart/form-data; boundary=b");
    request
        .headers
        .insert("anthropic-version", header("2024-01-01"));
    let received = sent(options, &request).await;
    let expected = expected
        .replace("accept: application/json", "accept: text/event-stream")
        .replace(
            "content-type: application/json",
            "content-type: multipart/form-data; boundary=b",
        )
        .replace("2023-06-01", "2024-01-01");
    assert_eq!(received.head, expected);
}

#[tokio::test]
async fn client_headers_cannot_override_gateway_headers() {
    let mut options = options();
    options.credential = Some(Credential::x_api_key("theirs").unwrap());
    let plain = sent(options.clone(), &post("{}")).await;
    let mut request = post("{}");
    let forged: HeaderMap = [
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "x-api-key",
        "accept",
        "accept-encoding",
        "content-type",
        "user-agent",
        "te",
        "upgrade",
        "expect",
    ]
    .into_iter()
    .map(|name| (name.parse().unwrap(), header("chunked")))
    .collect();
    request.headers = forged;
    assert_eq!(sent(options, &request).await, plain);
    assert!(
        plain.head.contains("\r\nx-api-key: theirs\r\n"),
        "{}",
        plain.head
    );
}

/// A key may be in a header of any name, which no header of a request replaces.
#[tokio::test]
async fn the_key_is_sent_in_the_header_of_the_operator() {
    let mut options = options();
    let name = HeaderName::from_static("api-key");
    options.credential = Some(Credential::header(name, "theirs").unwrap());
    let mut request = post("{}");
    request.headers.insert("api-key", header("a-clients"));
    let head = sent(options, &request).await.head;
    assert!(head.contains("\r\napi-key: theirs\r\n"), "{head}");
    assert!(!head.contains("authorization") && !head.contains("a-clients"));
}

/// A replaced key is sent from then on, and the one before is still redacted.
#[tokio::test]
async fn a_key_can_be_replaced() {
    let world = World::default();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let written = Arc::clone(&seen);
    world.serve("a.example", move |_, mut peer| {
        let written = Arc::clone(&written);
        async move {
            while let Some(request) = peer.request().await {
                written.lock().unwrap().push(request.head);
                peer.send(ok("{}")).await;
            }
        }
    });
    let mut options = options();
    options.credential = Some(Credential::bearer("first-key").unwrap());
    let upstream = world.upstream(options);
    for key in ["first-key", "second-key", "third-key"] {
        upstream.replace_credential(Credential::bearer(key).unwrap());
        send_once(&upstream, &post("{}")).await.unwrap();
        let head = seen.lock().unwrap().pop().unwrap();
        let line = format!("\r\nauthorization: Bearer {key}\r\n");
        assert!(head.contains(&line), "{head}");
    }
    let mut text = "third-key second-key.".to_owned();
    upstream.redact(&mut text);
    assert_eq!(text, "[key] [key].");
}

/// Without a configured key a request carries no credential, and never the client's.
#[tokio::test]
async fn p02_client_credentials_are_never_forwarded() {
    let mut request = post("{}");
    for name in ["authorization", "x-api-key", "cookie"] {
        request.headers.insert(name, header("a-clients"));
    }
    let received = sent(options(), &request).await;
    assert!(!received.head.contains("a-clients"), "{}", received.head);
    assert_eq!(received, sent(options(), &post("{}")).await);
}

#[tokio::test]
async fn a_header_that_is_repeated_is_sent_as_often() {
    let mut options = options();
    options
        .headers
        .insert("anthropic-beta", header("of-the-operator"));
    let mut request = post("{}");
    for value in ["one", "other"] {
        request.headers.append("anthropic-beta", header(value));
    }
    let head = sent(options, &request).await.head;
    assert!(
        head.contains("anthropic-beta: one\r\nanthropic-beta: other\r\n"),
        "{head}"
    );
    assert!(!head.contains("of-the-operator"), "{head}");
}

#[tokio::test]
async fn the_path_is_appended_to_the_base_url() {
    for (base, target) in [
        ("http://a.example", "/responses"),
        ("http://a.example/", "/responses"),
        ("http://a.example/v1/", "/v1/responses"),
        (
            "http://a.example/open%20ai/v1?api-version=1",
            "/open%20ai/v1/responses?api-version=1",
        ),
    ] {
        let received = sent(
            Options {
                base_url: url(base),
                ..options()
            },
            &post("{}"),
        )
        .await;
        assert_eq!(
            received.head.lines().next(),
            Some(format!("POST {target} HTTP/1.1").as_str()),
            "{base}"
        );
    }
    let received = sent(
        Options {
            base_url: url("http://a.example:8000"),
            ..options()
        },
        &post("{}"),
    )
    .await;
    assert!(
        received.head.contains("\r\nhost: a.example:8000\r\n"),
        "{}",
        received.head
    );
}

#[tokio::test]
async fn a_body_in_pieces_is_one_body() {
    let mut request = post("");
    let pieces = [
        "{\"model\":\"",
        "",
        "theirs",
        "\",\"input\":\"",
        &"x".repeat(100_000),
        "\"}",
        "",
    ];
    request.body = pieces
        .map(|piece| Bytes::copy_from_slice(piece.as_bytes()))
        .to_vec()
        .into();
    let received = sent(options(), &request).await;
    assert_eq!(received.body, pieces.concat());
    assert!(
        received
            .head
            .contains(&format!("content-length: {}\r\n", received.body.len())),
        "{}",
        received.head
    );
    request.body = Bytes::new().into();
    assert_eq!(sent(options(), &request).await.body, "");
}

#[test]
fn secrets_are_not_shown() {
    let mut options = Options {
        credential: Some(Credential::bearer("canary-1").unwrap()),
        base_url: url("http://a.example/v1?key=canary-2"),
        ..options()
    };
    options.headers.insert("x-theirs", header("canary-3"));
    let request = post("canary-4");
    let shown = format!("{options:?} {:?} {request:?}", options.credential);
    assert!(!shown.contains("canary"), "{shown}");
}

/// The upstream's API key is redacted in its error texts, also where a text was truncated.
#[test]
fn p07_a_key_that_is_repeated_is_taken_out() {
    let credential = Some(Credential::bearer("their-secret").unwrap());
    let upstream = Upstream::new(Options {
        credential,
        ..options()
    })
    .unwrap();
    let redacted = |text: &str| {
        let mut text = text.to_owned();
        upstream.redact(&mut text);
        text
    };
    assert_eq!(
        redacted("Not Bearer their-secret, their-secret!"),
        "Not Bearer [key], [key]!"
    );
    assert_eq!(redacted("It was their-secr"), "It was [key]");
    for harmless in ["", "It was the", "their secret"] {
        assert_eq!(redacted(harmless), harmless);
    }
}

#[test]
fn invalid_options_are_reported_by_name() {
    let error = |options: Options| Upstream::new(options).err().map(|error| error.to_string());
    let base = |base: &str| Options {
        base_url: url(base),
        ..options()
    };
    assert_eq!(error(options()), None);
    let scheme = "`base_url` has the scheme `ftp`; `http` and `https` are accepted.";
    assert_eq!(error(base("ftp://a.example")).as_deref(), Some(scheme));
    let user = "`base_url` has a user or password; it must not have one.";
    assert_eq!(
        error(base("http://me:secret@a.example")).as_deref(),
        Some(user)
    );
    let fragment = "`fallback_base_url` has a fragment; it must not have one.";
    let fallback = Options {
        fallback_base_url: Some(url("http://b.example/#a")),
        ..options()
    };
    assert_eq!(error(fallback).as_deref(), Some(fragment));
    let zero = Options {
        head_timeout: Duration::ZERO,
        ..options()
    };
    assert_eq!(
        error(zero).as_deref(),
        Some("`head_timeout` is 0ns; a time above 0 and of a day at most is accepted.")
    );
    let mut endless = options();
    endless.breaker.open = Duration::MAX;
    assert!(error(endless).unwrap().starts_with("`breaker.open` is "));
    let mut attempts = options();
    attempts.breaker.attempts = 0;
    assert_eq!(
        error(attempts).as_deref(),
        Some("`breaker.attempts` is 0; 1 and more are accepted.")
    );
    for percent in [0, 101] {
        let mut share = options();
        share.breaker.failure_percent = percent;
        assert_eq!(
            error(share),
            Some(format!(
                "`breaker.failure_percent` is {percent}; 1 to 100 are accepted."
            ))
        );
    }
    let mut own = options();
    own.headers.insert("host", header("b.example"));
    assert_eq!(
        error(own).as_deref(),
        Some("`headers` has `host`, which the gateway sets itself.")
    );
    for name in [
        "set-cookie",
        "content-length",
        "content-type",
        "connection",
        "x-should-retry",
    ] {
        let passed = Options {
            pass_headers: vec![HeaderName::from_static(name)],
            ..options()
        };
        let sentence = format!(
            "`pass_headers` has `{name}`, which is not passed on: it concerns the connection, the content or a session, or the gateway sets it itself."
        );
        assert_eq!(error(passed), Some(sentence));
    }
    let refused = Credential::header(HeaderName::from_static("host"), "theirs").err();
    assert_eq!(
        refused.map(|error| error.to_string()).as_deref(),
        Some("`auth` has the header `host`, which the gateway sets itself.")
    );
    let roots = Options {
        roots: Some(b"no PEM".to_vec()),
        ..options()
    };
    assert_eq!(
        error(roots).as_deref(),
        Some("`ca_file` has no certificate; certificates in PEM are accepted.")
    );
    for key in ["", "a b", "ab\r\nx: y", "ä"] {
        assert_eq!(
            Credential::bearer(key).err(),
            Some(OptionsError::Credential),
            "{key:?}"
        );
    }
}

/// Some front ends refuse a POST without a length (RFC 9110 §8.6). Other methods have none.
#[tokio::test]
async fn a_post_without_a_body_has_its_length() {
    for (method, length) in [
        (Method::POST, "content-length: 0\r\n"),
        (Method::GET, ""),
        (Method::DELETE, ""),
    ] {
        let mut request = post("");
        request.method = method.clone();
        let received = sent(options(), &request).await;
        assert!(
            received
                .head
                .ends_with(&format!("content-type: application/json\r\n{length}\r\n")),
            "{method}: {received:?}"
        );
    }
}
