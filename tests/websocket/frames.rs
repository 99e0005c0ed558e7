//! A client that writes and reads the bytes of frames itself
//! ([RFC 6455, section 5.2](https://www.rfc-editor.org/rfc/rfc6455#section-5.2)), so that it can send invalid ones.

use std::net::SocketAddr;

use testkit::websocket::bearer;
use testkit::{CLIENT_KEY, Connection};

/// The first byte of a frame: FIN and an opcode.
pub(crate) const TEXT: u8 = 0x81;
pub(crate) const BINARY: u8 = 0x82;
pub(crate) const CLOSE: u8 = 0x88;
pub(crate) const PING: u8 = 0x89;
pub(crate) const PONG: u8 = 0x8a;
/// The last frame of a message in fragments.
pub(crate) const LAST: u8 = 0x80;
/// The same without FIN: a fragment that others follow.
pub(crate) const FIRST_OF_TEXT: u8 = 0x01;
pub(crate) const NEXT: u8 = 0x00;

/// Returns a frame with a mask, as clients send them.
pub(crate) fn frame(first: u8, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    let mut bytes = header(first, payload.len() as u64);
    bytes.extend(MASK);
    bytes.extend(payload.iter().zip(MASK.iter().cycle()).map(|(a, b)| a ^ b));
    bytes
}

/// Returns the beginning of a frame, up to the mask, with the length that its payload is to have.
pub(crate) fn header(first: u8, length: u64) -> Vec<u8> {
    let mut bytes = vec![first];
    if let Ok(short @ 0..=125) = u8::try_from(length) {
        bytes.push(0x80 | short);
    } else if let Ok(medium) = u16::try_from(length) {
        bytes.push(0x80 | 126);
        bytes.extend(medium.to_be_bytes());
    } else {
        bytes.push(0x80 | 127);
        bytes.extend(length.to_be_bytes());
    }
    bytes
}

/// Sends the handshake of a WebSocket, and returns the connection before the response is read.
pub(crate) fn shake_hands(address: SocketAddr) -> Connection {
    let mut connection = Connection::open(address);
    connection.send(format!(
        "GET /v1/responses HTTP/1.1\r\nhost: gateway\r\nauthorization: {}\r\nconnection: Upgrade\r\n\
         upgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        bearer(CLIENT_KEY)
    ));
    connection
}

/// Opens a WebSocket.
#[track_caller]
pub(crate) fn open(address: SocketAddr) -> Connection {
    let mut connection = shake_hands(address);
    assert_eq!(connection.head().map(|head| head.status), Ok(101));
    connection
}

/// Parses the frames of a server, which have no mask: the first byte and the payload of each.
#[track_caller]
pub(crate) fn frames(mut bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let mut frames = Vec::new();
    while let [first, length, rest @ ..] = bytes {
        let (length, rest) = match (length, rest) {
            (0..=125, rest) => (usize::from(*length), rest),
            (126, [a, b, rest @ ..]) => (u16::from_be_bytes([*a, *b]).into(), rest),
            (127, [0, 0, 0, 0, a, b, c, d, rest @ ..]) => {
                (u32::from_be_bytes([*a, *b, *c, *d]) as usize, rest)
            }
            _ => panic!("a frame with a mask, or an incomplete one"),
        };
        let (payload, rest) = rest.split_at(length);
        frames.push((*first, payload));
        bytes = rest;
    }
    frames
}

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
