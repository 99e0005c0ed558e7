//! H: requests with invalid or ambiguous HTTP framing.

use std::fmt::Write as _;

use simulator::{Protocol, Simulator};
use testkit::requests::{self, ask};
use testkit::{CLIENT_KEY, Config, Connection, Gateway, Received, await_that, exchange};

use crate::GATEWAY;

/// The text of a valid request body.
fn question() -> String {
    ask(Protocol::Chat, "chat", "Hello.", false).to_string()
}

/// A request with these header lines, followed by `rest`.
fn post(lines: &str, rest: &str) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\n{KEY}{CLIENT_KEY}\r\n{lines}\r\n{rest}"
    )
}

/// A request for the models list with these header lines.
fn list(lines: &str) -> String {
    format!("GET /v1/models HTTP/1.1\r\nhost: gateway\r\n{KEY}{CLIENT_KEY}\r\n{lines}\r\n")
}

/// A request with its correct Content-Length and these header lines.
fn whole(lines: &str) -> String {
    let body = question();
    post(&format!("content-length: {}\r\n{lines}", body.len()), &body)
}

fn bad_heads(gateway: &Gateway) -> f64 {
    gateway.sum("sluicegate_connections_ended_total{reason=\"bad_head\"}")
}

fn chunked(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
}

/// If a request has both Transfer-Encoding and Content-Length, the transfer coding applies and the
/// connection is closed after the response.
#[test]
fn h01_a_length_beside_chunks_is_not_seen() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let rest = chunked(&question()) + &list("");
    for lines in [
        "content-length: 3\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 3\r\n",
    ] {
        let received = exchange(gateway.address(), post(lines, &rest));
        assert_eq!(received.statuses(), [200], "{lines}");
        assert!(received.has("connection: close"), "{}", received.text());
    }
    let asked = simulator.requests();
    assert_eq!(asked.len(), 2);
    assert!(
        asked
            .iter()
            .all(|request| request.header("transfer-encoding").is_none())
    );
    assert!(
        asked.iter().all(
            |request| request.header("content-length") == Some(&request.body.len().to_string())
        )
    );
}

/// Invalid or repeated Content-Length headers are rejected with 400, the connection is closed, and
/// the rejection is counted.
#[test]
fn h02_a_length_is_one_number() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let lengths = [
        "5, 5",
        "+5",
        "-1",
        "0x5",
        "18446744073709551616",
        "5 5",
        "",
        "five",
    ];
    for length in lengths {
        let received = exchange(
            gateway.address(),
            post(&format!("content-length: {length}\r\n"), "hello"),
        );
        assert_eq!(received.statuses(), [400], "{length}");
    }
    let twice = exchange(
        gateway.address(),
        post("content-length: 5\r\ncontent-length: 6\r\n", "hello!"),
    );
    assert_eq!(twice.statuses(), [400]);
    await_that("each is counted", || {
        bad_heads(&gateway) == lengths.len() as f64 + 1.0
    });
    assert_eq!(simulator.requests().len(), 0);
}

/// Any Transfer-Encoding other than exactly `chunked` is rejected with 400, and the connection is
/// closed.
#[test]
fn h03_a_body_is_chunked_and_nothing_else() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let rest = chunked(&question()) + &list("");
    for coding in ["identity", "xchunked", "chunked, gzip", "gzip", ""] {
        let received = exchange(
            gateway.address(),
            post(&format!("transfer-encoding: {coding}\r\n"), &rest),
        );
        assert_eq!(received.statuses(), [400], "{coding}");
    }
    let chunked_twice = "chunked\r\ntransfer-encoding: chunked";
    for coding in [
        "gzip, chunked",
        "chunked, chunked",
        "identity, chunked",
        chunked_twice,
    ] {
        let received = exchange(
            gateway.address(),
            post(&format!("transfer-encoding: {coding}\r\n"), &rest),
        );
        assert_eq!(received.statuses(), [400], "{coding}");
        assert!(
            received.has("\"invalid_value\"") && received.has("connection: close"),
            "{coding}: {}",
            received.text()
        );
    }
    assert_eq!(simulator.requests().len(), 0);
}

/// An HTTP/1.0 request with a transfer coding, or with a body delimited by the end of the
/// connection, is rejected with 400.
#[test]
fn h04_an_old_request_has_a_length_or_no_body() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let old = |lines: &str, rest: &str| post(lines, rest).replacen("HTTP/1.1", "HTTP/1.0", 1);
    let coded = exchange(
        gateway.address(),
        old("transfer-encoding: chunked\r\n", &chunked(&question())),
    );
    assert_eq!(coded.statuses(), [400]);
    let endless = exchange(gateway.address(), old("", &question()));
    assert_eq!(endless.statuses(), [400]);
    assert_eq!(simulator.requests().len(), 0);
    let body = question();
    let good = exchange(
        gateway.address(),
        old(&format!("content-length: {}\r\n", body.len()), &body),
    );
    assert_eq!(good.statuses(), [200]);
}

/// A malformed chunk is rejected with 400, and the connection is closed.
#[test]
fn h05_chunks_have_a_size_and_an_end() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let extension = format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(17 << 10));
    for body in [
        "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        "0_2e\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "\r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhello!\r\n0\r\n\r\n",
        &extension,
    ] {
        let received = exchange(
            gateway.address(),
            post("transfer-encoding: chunked\r\n", body),
        );
        assert_eq!(received.statuses(), [400], "{body:.40}");
        assert!(
            received.has("connection: close"),
            "{body:.40}: {}",
            received.text()
        );
    }
    assert_eq!(simulator.requests().len(), 0);
}

/// A body in chunks of one byte is accepted.
#[test]
fn h05_chunks_may_be_of_one_byte() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let mut body = String::new();
    for byte in format!("{}{}", question(), " ".repeat(100_000)).chars() {
        write!(body, "1\r\n{byte}\r\n").unwrap();
    }
    let received = exchange(
        gateway.address(),
        post(
            "transfer-encoding: chunked\r\nconnection: close\r\n",
            &(body + "0\r\n\r\n"),
        ),
    );
    assert_eq!(received.statuses(), [200]);
}

/// A missing, repeated or ambiguous Host header is rejected with 400. A valid one changes nothing.
#[test]
fn h06_there_is_one_host_and_it_decides_nothing() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let get = |lines: &str| format!("GET /v1/models HTTP/1.1\r\n{lines}connection: close\r\n\r\n");
    for lines in [
        "",
        "host: a\r\nhost: a\r\n",
        "host: a\r\nhost: b\r\n",
        "host:\r\n",
        "host: a/#@b\r\n",
        "host: user:secret@a\r\n",
        "host: a:99999\r\n",
        "host: a:port\r\n",
        "host: a b\r\n",
        "host: [::1\r\n",
    ] {
        let received = exchange(
            gateway.address(),
            get(&format!("{lines}{KEY}{CLIENT_KEY}\r\n")),
        );
        assert_eq!(received.statuses(), [400], "{lines}");
        assert!(
            received.has("\"invalid_value\""),
            "{lines}: {}",
            received.text()
        );
    }
    for host in [
        "a",
        "127.0.0.1",
        "[::1]:1",
        "api.openai.com",
        "localhost:9090",
        "xn--a.example:65535",
    ] {
        assert_eq!(
            exchange(gateway.address(), get(&format!("host: {host}\r\n"))).statuses(),
            [401],
            "{host}"
        );
        let with_key = get(&format!("host: {host}\r\n{KEY}{CLIENT_KEY}\r\n"));
        assert_eq!(
            exchange(gateway.address(), with_key).statuses(),
            [200],
            "{host}"
        );
    }
}

/// Only the path of a request target is used for routing. CONNECT, TRACE and unknown methods are
/// rejected with 405 and `Allow`, and the connection is closed.
#[test]
fn h07_other_targets_and_methods() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let send = |line: &str| {
        exchange(
            gateway.address(),
            list("connection: close\r\n").replacen("GET /v1/models HTTP/1.1", line, 1),
        )
    };
    assert_eq!(
        send("GET http://elsewhere.example/v1/models HTTP/1.1").statuses(),
        [200]
    );
    assert_eq!(
        send("GET http://gateway/v1/nope HTTP/1.1").statuses(),
        [404]
    );
    for line in [
        "OPTIONS *",
        "CONNECT example.org:443",
        "CONNECT gateway",
        "TRACE /v1/models",
        "BREW /v1/models",
        "get /v1/models",
    ] {
        let bytes = list("").replacen("GET /v1/models", line, 1) + &list("");
        let received = exchange(gateway.address(), bytes);
        assert_eq!(received.statuses(), [405], "{line}");
        assert!(
            received.has("\r\nallow: GET") && received.has("connection: close"),
            "{line}: {}",
            received.text()
        );
    }
}

/// Upgrade requests are ignored on every path but `/v1/responses`, and the bytes that follow are a
/// separate request that needs its own key.
#[test]
fn h08_nothing_is_upgraded() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let second = list("connection: close\r\n").replacen(CLIENT_KEY, "nobody", 1);
    for lines in [
        "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-key: x3JJHMbDL1EzLkh9GBhXDw==\r\n",
        "upgrade: h2c\r\nconnection: upgrade, http2-settings\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n",
    ] {
        assert_eq!(
            exchange(gateway.address(), list(lines) + &second).statuses(),
            [200, 401],
            "{lines}"
        );
        let body = question();
        let head = format!("{lines}content-length: {}\r\n", body.len());
        assert_eq!(
            exchange(gateway.address(), post(&head, &body) + &second).statuses(),
            [200, 401],
            "{lines}"
        );
    }
    assert_eq!(simulator.requests().len(), 2);
}

/// Where WebSockets are off, a client that asks for one on the path of Responses gets 426 with the
/// protocol that is supported (RFC 9110, section 15.5.22), whatever its key; bytes after it are a
/// separate request.
#[test]
fn h08_a_websocket_of_responses_is_refused_with_426() {
    let simulator = Simulator::honest().unwrap();
    let off = "[websocket]\nenabled = false";
    let gateway = Config::before(&simulator, "", "")
        .section(off)
        .start(GATEWAY);
    let upgrade = "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: x3JJHMbDL1EzLkh9GBhXDw==\r\n";
    let second = list("connection: close\r\n");
    let get = list(upgrade).replacen("/v1/models", "/v1/responses", 1);
    let body = question();
    let length = format!("{upgrade}content-length: {}\r\n", body.len());
    let posted = post(&length, &body).replacen("/v1/chat/completions", "/v1/responses", 1);
    for request in [get.clone(), posted, get.replacen(CLIENT_KEY, "nobody", 1)] {
        let received = exchange(gateway.address(), request + &second);
        assert_eq!(received.statuses()[0], 426, "{}", received.text());
        for part in [
            "\r\nupgrade: HTTP/1.1\r\n",
            "\r\nconnection: upgrade\r\n",
            "\"type\":\"invalid_request_error\"",
            "\"code\":\"upgrade_required\"",
        ] {
            assert!(received.has(part), "{part}: {}", received.text());
        }
    }
    assert_eq!(simulator.requests().len(), 0);
}

/// Paths are matched exactly: a path that merely resembles a route is rejected with 404, and no
/// check of the key is bypassed.
#[test]
fn h09_only_exact_paths_lead_anywhere() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let statuses = |path: &str, key: &str| {
        let request = list("connection: close\r\n")
            .replacen("/v1/models", path, 1)
            .replacen(CLIENT_KEY, key, 1);
        exchange(gateway.address(), request).statuses()
    };
    for path in [
        "/v1//models",
        "//v1/models",
        "/v1/models/",
        "/v1/%6dodels",
        "/v1/models%00",
        "/v1/x/../models",
        "/./v1/models",
        "/v1/models;a",
        "/V1/models",
        "/v1/Models",
        "/v1\\models",
        "/metrics",
        "/livez",
        "/",
    ] {
        assert_eq!(
            (statuses(path, CLIENT_KEY), statuses(path, "nobody")),
            (vec![404], vec![404]),
            "{path}"
        );
    }
    for path in ["/v1/models\0", "v1/models", "/v1/mod els"] {
        assert_eq!(
            (statuses(path, CLIENT_KEY), statuses(path, "nobody")),
            (vec![400], vec![400]),
            "{path}"
        );
    }
    // The library that parses request targets drops the fragment, which no client may send.
    for path in ["/v1/models", "/v1/models?limit=1", "/v1/models#part"] {
        assert_eq!(
            (statuses(path, CLIENT_KEY), statuses(path, "nobody")),
            (vec![200], vec![401]),
            "{path}"
        );
    }
}

/// A malformed header line is rejected with 400, and the connection is closed.
#[test]
fn h10_header_lines_are_name_and_value() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    for line in [
        &b"x-a: b\r\n c"[..],
        b"x-a: b\r\n\tc",
        b"x-a : b",
        b" x-a: b",
        b"x-a: b\0c",
        b"x-a: b\rc",
        b"x-\x80: b",
        b"\xff: b",
        b"x-a",
        b": b",
        b"x a: b",
    ] {
        let head = whole("").into_bytes();
        let at = head
            .windows(2)
            .position(|window| window == b"\r\n")
            .unwrap()
            + 2;
        let received = exchange(
            gateway.address(),
            [&head[..at], line, b"\r\n", &head[at..]].concat(),
        );
        assert_eq!(
            received.statuses(),
            [400],
            "{}",
            String::from_utf8_lossy(line)
        );
    }
    assert_eq!(simulator.requests().len(), 0);
}

/// A head whose lines end with a bare LF is parsed like one whose lines end with CRLF.
#[test]
fn h11_a_line_may_end_with_a_line_feed() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    for request in [
        list("connection: close\r\n"),
        whole("connection: close\r\n"),
        list("").replacen(CLIENT_KEY, "nobody", 1),
    ] {
        let request = if request.contains("close") {
            request
        } else {
            request.replacen("GET", "PUT", 1)
        };
        let proper = exchange(gateway.address(), &request).statuses();
        assert_eq!(
            exchange(gateway.address(), request.replace("\r\n", "\n")).statuses(),
            proper,
            "{request}"
        );
    }
}

/// Pipelined requests are answered in order, and after an invalid one nothing more is read.
#[test]
fn h12_requests_may_come_at_once() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let good = list("") + &whole("") + &list("connection: close\r\n");
    assert_eq!(
        exchange(gateway.address(), &good).statuses(),
        [200, 200, 200]
    );
    let bad = list("") + "NONSENSE\r\n\r\n" + &list("");
    assert_eq!(exchange(gateway.address(), bad).statuses(), [200, 400]);
    for cut in (1..good.len()).step_by(7) {
        let mut raw = Connection::open(gateway.address());
        raw.try_send(&good[..cut]);
        raw.try_send(&good[cut..]);
        assert_eq!(
            raw.received_until_closed().statuses(),
            [200, 200, 200],
            "cut at {cut}"
        );
    }
}

/// An unread body is discarded or closes the connection; it is never parsed as the next request.
#[test]
fn h12_an_unread_body_is_no_request() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    for length in [10, 1 << 10, 40 << 10, 100 << 10, 1 << 20] {
        let smuggled = list("connection: close\r\n");
        let body = smuggled.repeat(length / smuggled.len() + 1);
        let unread = post(&format!("content-length: {}\r\n", body.len()), &body)
            .replacen(CLIENT_KEY, "nobody", 1);
        let statuses =
            exchange(gateway.address(), unread + &list("connection: close\r\n")).statuses();
        assert!(
            statuses == [401] || statuses == [401, 200],
            "{length}: {statuses:?}"
        );
    }
    assert_eq!(simulator.requests().len(), 0);
}

/// A response that precedes the body of its request has `Connection: close`, so that the client sends
/// its next request on another connection.
#[test]
fn h12_an_answer_before_the_body_announces_the_close() {
    let gateway = GATEWAY.with_upstream("").0;
    for (key, content_type) in [("nobody", "application/json"), (CLIENT_KEY, "text/html")] {
        let lines = format!("content-type: {content_type}\r\ncontent-length: 13\r\n");
        let head = post(&lines, "").replacen(CLIENT_KEY, key, 1);
        let mut connection = Connection::open(gateway.address());
        connection.send(head.as_bytes());
        let response = connection.response();
        assert!(matches!(response.status, 401 | 415), "{}", response.text());
        assert_eq!(response.header("connection"), Some("close"));
    }
}

/// A request is handled the same in however many pieces it arrives.
#[test]
fn h13_a_request_may_come_in_any_two_pieces() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let bytes = requests::request(
        Protocol::Chat,
        &ask(Protocol::Chat, "chat", "Hello.", false),
    )
    .bytes();
    let whole = {
        let mut connection = Connection::open(gateway.address());
        connection.send(&bytes);
        connection.response()
    };
    assert_eq!(whole.status, 200);
    for cut in 1..bytes.len() {
        let mut connection = Connection::open(gateway.address());
        connection.send(&bytes[..cut]);
        connection.send(&bytes[cut..]);
        let response = connection.response();
        assert_eq!(
            (response.status, response.body.len()),
            (200, whole.body.len()),
            "cut at {cut}"
        );
    }
    // A megabyte is more than is ever read at once.
    let long = requests::request(
        Protocol::Chat,
        &ask(Protocol::Chat, "chat", &"Hello. ".repeat(150_000), false),
    )
    .bytes();
    let mut connection = Connection::open(gateway.address());
    connection.send(&long);
    assert_eq!(connection.response().status, 200);
}

/// A client that sends `Expect: 100-continue` receives 100 Continue once if the body is wanted, and
/// otherwise only the refusal.
#[test]
fn h14_a_body_that_is_not_wanted_is_not_asked_for() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let expect = "expect: 100-continue\r\nconnection: close\r\n";
    let unknown = whole(expect).replacen(CLIENT_KEY, "nobody", 1);
    let head = |request: &str| {
        request
            .split_inclusive("\r\n\r\n")
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        exchange(gateway.address(), head(&unknown)).statuses(),
        [401]
    );
    let large = post(&format!("content-length: {}\r\n{expect}", 1_u64 << 40), "");
    assert_eq!(exchange(gateway.address(), large).statuses(), [413]);
    assert_eq!(
        exchange(gateway.address(), whole(expect)).statuses(),
        [100, 200]
    );
}

/// A client of another protocol than HTTP gets 400 or no response, and the connection is closed. So
/// does a client of HTTP/2 if that is turned off.
#[test]
fn h15_other_protocols_are_turned_away() {
    let (gateway, _simulator) = GATEWAY.with_upstream("http2_streams = 0\n");
    let client_hello = [
        &b"\x16\x03\x01\x00\xc4\x01\x00\x00\xc0\x03\x03"[..],
        &[7; 200],
    ]
    .concat();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64";
    for bytes in [
        &preface[..],
        &client_hello,
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\0\0\0\0\0\0\0\0",
    ] {
        let mut raw = Connection::open(gateway.address());
        raw.try_send(bytes);
        let statuses = Received(raw.rest().0).statuses();
        assert!(
            statuses.is_empty() || statuses == [400],
            "{bytes:?}: {statuses:?}"
        );
    }
    await_that("each is counted", || bad_heads(&gateway) == 4.0);
}

/// Trailers are not headers: they authenticate nothing and change nothing.
#[test]
fn h17_trailers_are_not_headers() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let body = question();
    let trailers = format!(
        "{KEY}{CLIENT_KEY}\r\ncontent-length: 5\r\nx-private: private\r\nhost: elsewhere\r\nconnection: close\r\n"
    );
    let rest = format!("{:x}\r\n{body}\r\n0\r\n{trailers}\r\n", body.len());
    let with_key = post(
        "transfer-encoding: chunked\r\ntrailer: authorization\r\n",
        &rest,
    );
    let without = with_key.replacen(&format!("{KEY}{CLIENT_KEY}\r\n"), "", 1);
    let last = list("connection: close\r\n");
    assert_eq!(
        exchange(gateway.address(), with_key + &last).statuses(),
        [200, 200]
    );
    assert_eq!(
        exchange(gateway.address(), without + &last).statuses()[0],
        401
    );
    let asked = simulator.requests();
    assert_eq!(asked.len(), 1);
    assert_eq!(
        (asked[0].header("x-private"), asked[0].body.is_empty()),
        (None, false)
    );
}

/// Header names listed in `Connection` neither remove headers nor forward them.
#[test]
fn h18_headers_of_one_hop() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let lines = "connection: authorization, x-foo, content-length, close\r\nx-foo: private\r\nte: trailers\r\n\
                 keep-alive: timeout=5\r\nproxy-connection: keep-alive\r\n";
    assert_eq!(exchange(gateway.address(), whole(lines)).statuses(), [200]);
    let keyless = whole(lines).replacen(&format!("{KEY}{CLIENT_KEY}\r\n"), "", 1);
    assert_eq!(exchange(gateway.address(), keyless).statuses(), [401]);
    let asked = simulator.requests();
    assert_eq!(asked.len(), 1);
    for name in [
        "connection",
        "x-foo",
        "te",
        "keep-alive",
        "proxy-connection",
    ] {
        assert_eq!(asked[0].header(name), None, "{name}");
    }
}

/// The start of the header that carries a key.
const KEY: &str = "authorization: Bearer ";
