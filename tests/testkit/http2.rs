//! A raw HTTP/2 client: it sends frames exactly as given, and reports those that it receives.
//!
//! Headers are encoded as literals, without a table and without Huffman codes (RFC 7541 §6.2.2), and are
//! not decoded: tests of what a response says use a client that knows the protocol.

use std::net::SocketAddr;

use crate::client::{Connection, End};

/// A frame (RFC 9113 §4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The type.
    pub kind: u8,
    /// The flags.
    pub flags: u8,
    /// The stream; 0 for the connection.
    pub stream: u32,
    /// The payload.
    pub payload: Vec<u8>,
}

/// The types of frames, as RFC 9113 §6 numbers them.
pub mod kind {
    #![allow(missing_docs, reason = "the names are from the RFC")]
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// The flag of the last frame of a stream.
pub const END_STREAM: u8 = 1;
/// The flag of a confirmation of `SETTINGS` or `PING`.
pub const ACK: u8 = 1;
/// The flag of the last frame of a head.
pub const END_HEADERS: u8 = 4;
/// The flag of a frame with padding.
pub const PADDED: u8 = 8;
/// The error code with which a flood is answered (RFC 9113 §7).
pub const ENHANCE_YOUR_CALM: u32 = 11;
/// The preface of a connection (RFC 9113 §3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

impl Frame {
    /// A frame.
    pub fn new(kind: u8, flags: u8, stream: u32, payload: impl Into<Vec<u8>>) -> Self {
        Self {
            kind,
            flags,
            stream,
            payload: payload.into(),
        }
    }

    /// The head of a request, which is complete.
    pub fn head(flags: u8, stream: u32, headers: &[(&str, &str)]) -> Self {
        Self::new(
            kind::HEADERS,
            flags | END_HEADERS,
            stream,
            header_block(headers),
        )
    }

    /// The bytes of the frame.
    pub fn bytes(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len()).expect("a short frame");
        let mut bytes = length.to_be_bytes()[1..].to_vec();
        bytes.extend([self.kind, self.flags]);
        bytes.extend(self.stream.to_be_bytes());
        bytes.extend(&self.payload);
        bytes
    }

    /// The error code of `RST_STREAM` or `GOAWAY`.
    pub fn error_code(&self) -> Option<u32> {
        let at = match self.kind {
            kind::RST_STREAM => 0,
            kind::GOAWAY => 4,
            _ => return None,
        };
        let code = self.payload.get(at..at + 4)?;
        Some(u32::from_be_bytes(code.try_into().ok()?))
    }

    /// All complete frames in these bytes.
    pub fn all(mut bytes: &[u8]) -> Vec<Self> {
        let mut frames = Vec::new();
        while let Some((frame, rest)) = Self::first(bytes) {
            frames.push(frame);
            bytes = rest;
        }
        frames
    }

    fn first(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (head, rest) = bytes.split_at_checked(9)?;
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let (payload, rest) = rest.split_at_checked(length)?;
        let stream = u32::from_be_bytes(head[5..].try_into().ok()?);
        Some((Self::new(head[3], head[4], stream, payload), rest))
    }
}

/// A block of headers, each as a literal.
pub fn header_block(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(0);
        for text in [name, value] {
            block.extend(integer(text.len()));
            block.extend(text.as_bytes());
        }
    }
    block
}

/// An integer with a prefix of seven bits (RFC 7541 §5.1).
fn integer(mut number: usize) -> Vec<u8> {
    if number < 127 {
        return vec![number as u8];
    }
    let mut bytes = vec![127];
    number -= 127;
    while number >= 128 {
        bytes.push((number % 128) as u8 | 128);
        number /= 128;
    }
    bytes.push(number as u8);
    bytes
}

/// An open connection.
pub struct Http2(Connection);

impl Http2 {
    /// Opens a connection, with these settings: each an identifier and a value.
    #[track_caller]
    pub fn open(address: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let mut payload = Vec::new();
        for (identifier, value) in settings {
            payload.extend(identifier.to_be_bytes());
            payload.extend(value.to_be_bytes());
        }
        let settings = Frame::new(kind::SETTINGS, 0, 0, payload);
        let mut connection = Connection::open(address);
        connection.send([PREFACE, &settings.bytes()].concat());
        Self(connection)
    }

    /// Sends a frame.
    #[track_caller]
    pub fn send(&mut self, frame: &Frame) {
        self.0.send(frame.bytes());
    }

    /// Sends these bytes again and again, at most so many times, until the server closes the
    /// connection.
    pub fn flood(&mut self, bytes: &[u8], times: usize) {
        for _ in 0..times {
            if !self.0.try_send(bytes) {
                return;
            }
        }
    }

    /// Reads the next frame.
    #[track_caller]
    pub fn frame(&mut self) -> Frame {
        let head = self.0.bytes(9);
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let frame = [head, self.0.bytes(length)].concat();
        Frame::first(&frame).expect("a complete frame").0
    }

    /// Reads frames up to one of this type, and returns that one.
    #[track_caller]
    pub fn next_of(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.frame();
            if frame.kind == kind {
                return frame;
            }
        }
    }

    /// Reads until the connection ends. Returns the frames and the end.
    pub fn rest(&mut self) -> (Vec<Frame>, End) {
        let (bytes, end) = self.0.rest();
        (Frame::all(&bytes), end)
    }
}
