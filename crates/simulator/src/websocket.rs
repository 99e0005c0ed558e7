//! The Responses API over WebSocket: messages of a client are requests, and the events of a reply
//! are messages.

use std::io::{self, Cursor};

use bytes::{Buf, Bytes, BytesMut};
use memchr::memmem;
use serde_json::Value;
use tokio::io::AsyncRead;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{Frame, FrameHeader};

use crate::inbound::read_more;
use crate::play::{Framing, Play, Step};
use crate::request::Request;

impl Play {
    /// The reply to a handshake that switches to a WebSocket. Each text message that follows is a
    /// request with the path and the headers of the handshake, whose reply is sent as messages: the
    /// data of an event is one, and a reply with another status than 200 is an event with that
    /// status. [`Step::Bytes`] has frames.
    pub fn websocket(handshake: &Request) -> Self {
        let key = handshake.header("sec-websocket-key").unwrap_or_default();
        let headers = [
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-accept", &*derive_accept_key(key.as_bytes())),
        ];
        Self::new().head(101, &headers, Framing::Bare)
    }

    /// True if the connection is a WebSocket afterwards.
    pub(crate) fn switches(&self) -> bool {
        matches!(self.steps.first(), Some(Step::Head(head, _)) if head.starts_with(b"HTTP/1.1 101"))
    }

    /// Returns the play that sends this reply as messages.
    pub(crate) fn as_messages(&self) -> Self {
        let mut writer = Writer::default();
        let mut written = |steps: &[Step]| {
            let steps = steps.iter().map(|step| writer.step(step));
            steps.collect()
        };
        Self {
            steps: written(&self.steps),
            forever: written(&self.forever),
        }
    }
}

/// Turns the body of a reply into messages.
#[derive(Default)]
struct Writer {
    /// The status, unless it is 200.
    refusal: Option<u16>,
    retry_after: Option<String>,
    /// The bytes of an event that is not complete.
    partial: Vec<u8>,
}

impl Writer {
    fn step(&mut self, step: &Step) -> Step {
        match step {
            Step::Head(head, _) => {
                let status = head.get(9..12).unwrap_or_default();
                let status = str::from_utf8(status).ok().and_then(|it| it.parse().ok());
                self.refusal = status.filter(|status| *status != 200);
                let head = String::from_utf8_lossy(head);
                let mut lines = head.lines();
                let retry_after = lines.find_map(|line| line.strip_prefix("retry-after: "));
                self.retry_after = retry_after.map(str::to_owned);
                Step::Bytes(Bytes::new())
            }
            Step::Body(body) => Step::Bytes(self.messages(body).into()),
            Step::End => Step::Bytes(Bytes::new()),
            other => other.clone(),
        }
    }

    fn messages(&mut self, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(status) = self.refusal {
            let mut event: Value = serde_json::from_slice(body).unwrap_or_default();
            event["type"] = "error".into();
            event["status"] = status.into();
            if let Some(seconds) = &self.retry_after {
                event["headers"]["retry-after"] = seconds.as_str().into();
            }
            message(&event.to_string(), &mut out);
            return out;
        }
        self.partial.extend_from_slice(body);
        while let Some(end) = memmem::find(&self.partial, b"\n\n") {
            let event: Vec<u8> = self.partial.drain(..end + 2).collect();
            let event = String::from_utf8_lossy(&event);
            let data = event.lines().find_map(|line| line.strip_prefix("data: "));
            if let Some(data) = data {
                message(data, &mut out);
            }
        }
        out
    }
}

/// Appends a text message.
fn message(text: &str, out: &mut Vec<u8>) {
    let frame = Frame::message(text.to_owned(), OpCode::Data(Data::Text), true);
    // Writing to memory does not fail.
    let _ = frame.format(out);
}

/// Reads the next message. Returns `None` if the peer closes the WebSocket or its connection.
///
/// # Errors
/// If the peer sends an invalid frame.
pub(crate) async fn read(
    socket: &mut (impl AsyncRead + Unpin),
    input: &mut BytesMut,
) -> io::Result<Option<Bytes>> {
    let mut message = BytesMut::new();
    loop {
        let Some((header, payload)) = frame(input)? else {
            if !read_more(socket, input).await? {
                return Ok(None);
            }
            continue;
        };
        match header.opcode {
            OpCode::Control(Control::Close) => return Ok(None),
            OpCode::Control(_) => continue,
            OpCode::Data(_) => message.unsplit(payload),
        }
        if header.is_final {
            return Ok(Some(message.freeze()));
        }
    }
}

/// Removes a complete frame from the input.
fn frame(input: &mut BytesMut) -> io::Result<Option<(FrameHeader, BytesMut)>> {
    let mut cursor = Cursor::new(&input[..]);
    let parsed = FrameHeader::parse(&mut cursor).map_err(io::Error::other)?;
    let start = cursor.position() as usize;
    let Some((header, length)) = parsed else {
        return Ok(None);
    };
    let length = usize::try_from(length).map_err(io::Error::other)?;
    if input.len() - start < length {
        return Ok(None);
    }
    input.advance(start);
    let mut payload = input.split_to(length);
    let mask = header.mask.unwrap_or_default().into_iter().cycle();
    payload
        .iter_mut()
        .zip(mask)
        .for_each(|(byte, mask)| *byte ^= mask);
    Ok(Some((header, payload)))
}
