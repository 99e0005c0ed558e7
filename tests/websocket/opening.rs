//! The handshake of a WebSocket.

use serde_json::Value;
use simulator::Simulator;
use testkit::websocket::{Socket, bearer};
use testkit::{CLIENT_KEY, Config, Connection, IMAGES};

use crate::GATEWAY;

/// The status and the error of a handshake that is refused.
fn refused(gateway: &testkit::Gateway, headers: &[(&'static str, &str)]) -> (u16, String) {
    let response = Socket::try_open(gateway.address(), headers).err().unwrap();
    let body: Value = serde_json::from_slice(response.body().as_ref().unwrap()).unwrap();
    let code = body["error"]["code"].as_str().unwrap();
    (response.status().as_u16(), code.to_owned())
}

/// The key is checked before a connection becomes a WebSocket: without a valid one of the scope `text`
/// there is none.
#[test]
fn h08_a02_a05_a_handshake_needs_a_key_for_text() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let of = |key: &str| refused(&gateway, &[("authorization", &bearer(key))]);
    assert_eq!(of("nobody"), (401, "invalid_api_key".to_owned()));
    assert_eq!(refused(&gateway, &[]).0, 401);
    assert_eq!(of(IMAGES).0, 403);
    drop(Socket::open(&gateway, CLIENT_KEY));
    gateway.await_quiet();
    let opened = gateway.sum_of("sluicegate_requests_total{", "route=\"websocket\"");
    assert_eq!(opened, 4.0);
}

/// Where WebSockets are off, a handshake is refused with 426 and an error that says so. Codex changes to HTTP at once on 426, and only on it.
#[test]
fn h08_an_operator_can_turn_websockets_off() {
    let simulator = Simulator::honest().unwrap();
    let off = "[websocket]\nenabled = false";
    let gateway = Config::before(&simulator, "", "")
        .section(off)
        .start(GATEWAY);
    let authorized = [("authorization", &*bearer(CLIENT_KEY))];
    assert_eq!(
        refused(&gateway, &authorized),
        (426, "upgrade_required".to_owned())
    );
}

/// A connection becomes a WebSocket by the handshake of RFC 6455, and what follows is no request of
/// HTTP. Section 1.3 has this key and the value that accepts it.
#[test]
fn h08_a_handshake_is_that_of_the_rfc() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let handshake = |lines: &str| {
        let mut connection = Connection::open(gateway.address());
        connection.send(format!(
            "GET /v1/responses HTTP/1.1\r\nhost: gateway\r\nauthorization: {}\r\n{lines}\r\n",
            bearer(CLIENT_KEY)
        ));
        connection
    };
    let right = "connection: keep-alive, Upgrade\r\nupgrade: WebSocket\r\n\
                 sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                 sec-websocket-extensions: permessage-deflate\r\nsec-websocket-protocol: chat\r\n";
    let mut opened = handshake(right);
    let head = opened.head().unwrap();
    assert_eq!(head.status, 101);
    for (name, value) in [
        ("connection", Some("upgrade")),
        ("upgrade", Some("websocket")),
        ("sec-websocket-accept", Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")),
        ("sec-websocket-extensions", None),
        ("sec-websocket-protocol", None),
        ("content-length", None),
    ] {
        assert_eq!(head.header(name), value, "{name}");
    }
    // A frame of a client has to be masked: close code 1002.
    opened.send("GET /v1/models HTTP/1.1\r\nhost: gateway\r\n\r\n");
    let (rest, _) = opened.rest();
    assert_eq!(rest[..4], [0x88, rest.len() as u8 - 2, 0x03, 0xea]);

    for wrong in [
        right.replace("Upgrade\r\n", "\r\n"),
        right.replace("version: 13", "version: 8"),
        right.replace("sec-websocket-key", "sec-websocket-lock"),
        format!("{right}content-length: 1\r\n"),
    ] {
        let head = handshake(&wrong).head().unwrap();
        assert_eq!(head.status, 426, "{wrong}");
        assert_eq!(head.header("sec-websocket-version"), Some("13"));
    }
}
