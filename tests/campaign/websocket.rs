//! The client's side of a WebSocket (RFC 6455): one request of the Responses API on a connection.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use http::Request;
use serde_json::{Value, json};
use testkit::events::ends;
use testkit::{End, Response};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{Frame, FrameSocket};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::client::{ClientExchange, ClientRequest, Sent};
use crate::fault::{Fault, Leave, Spot};
use crate::pipe::Pipe;

/// Opens a WebSocket with the headers of the request of a fault.
///
/// # Panics
/// If the gateway refuses it.
pub(crate) async fn open(pipe: Pipe, fault: &Fault) -> WebSocketStream<Pipe> {
    let mut head = Request::get("ws://gateway/v1/responses")
        .header("host", "gateway")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", KEY);
    for (name, value) in ClientRequest::new(fault).headers {
        if !name.starts_with("content-") {
            head = head.header(name, value);
        }
    }
    let head = head.body(()).expect("a valid head");
    let (socket, _) = client_async(head, pipe)
        .await
        .expect("the gateway opens a WebSocket");
    socket
}

/// A request and the messages of its response.
pub(crate) struct WebSocketExchange {
    /// `None` once the connection is closed.
    socket: Option<WebSocketStream<Pipe>>,
    /// The frame of the request.
    request: Vec<u8>,
    /// The number of bytes of the request that are written at once.
    at_once: usize,
    is_half_sent: bool,
    /// True if the client has left before the end.
    has_left: bool,
    /// The messages so far, as the response of HTTP that has the same events or the same error.
    response: Option<Response>,
}

impl WebSocketExchange {
    pub(crate) fn new(socket: WebSocketStream<Pipe>, fault: &Fault) -> Self {
        let body = ClientRequest::new(fault).body;
        let mut event: Value = serde_json::from_slice(&body).expect("a request is JSON");
        let members = event.as_object_mut().expect("a request is an object");
        members.remove("stream");
        members.insert("type".to_owned(), "response.create".into());
        let mut frame = text_frame(event.to_string());
        frame.header_mut().mask = Some(MASK);
        Self {
            socket: Some(socket),
            request: written(frame),
            at_once: fault.pace.at_once,
            is_half_sent: false,
            has_left: false,
            response: None,
        }
    }

    /// Takes a message of the gateway. The client closes the connection after the last one, and reads on.
    async fn take(&mut self, message: &str) {
        if self.response.is_none()
            && let Some(refusal) = refusal(message)
        {
            self.response = Some(refusal);
        } else {
            let event = event(message);
            let response = self.response.get_or_insert_with(begun_stream);
            if ends(&event) > 0 {
                response.end = End::Complete;
            }
            response.body.extend(event);
        }
        let is_complete = self.response.as_ref().is_some_and(Response::is_complete);
        if let Some(socket) = self.socket.as_mut().filter(|_| is_complete) {
            // The gateway may have closed the connection already.
            let _ = socket.close(None).await;
        }
    }

    /// Reads to the end without answers to pings: within the request, they would be a part of it.
    async fn read_silently(&mut self) {
        if let Some(mut socket) = self.socket.take() {
            let mut bytes = Vec::new();
            // The connection may end with a reset.
            let _ = socket.get_mut().read_to_end(&mut bytes).await;
            for message in messages(&bytes) {
                self.take(&message).await;
            }
        }
    }

    /// The number of bytes of the response so far.
    fn received(&self) -> usize {
        self.response
            .as_ref()
            .map_or(0, |response| response.body.len())
    }
}

impl ClientExchange for WebSocketExchange {
    async fn send(&mut self, up_to: Option<Spot>) -> Sent {
        let whole = self.request.len();
        let end = up_to.map_or(whole, |spot| spot.of(whole));
        if let Some(socket) = &mut self.socket {
            for piece in self.request[..end].chunks(self.at_once) {
                // The gateway may have closed the connection already.
                if socket.get_mut().write_all(piece).await.is_err() {
                    break;
                }
            }
        }
        self.is_half_sent = end < whole;
        Sent {
            // A part of a message is no request.
            head: end == whole,
            whole: end == whole,
        }
    }

    async fn read(&mut self, enough: usize) {
        if self.is_half_sent {
            return self.read_silently().await;
        }
        while self.received() < enough
            && let Some(socket) = &mut self.socket
        {
            match socket.next().await {
                Some(Ok(Message::Text(message))) => self.take(&message).await,
                Some(Ok(_)) => {}
                Some(Err(_)) | None => self.socket = None,
            }
        }
    }

    async fn leave(&mut self, how: Leave) {
        self.has_left = how != Leave::Still;
        match (how, &mut self.socket) {
            (Leave::Close, socket) => *socket = None,
            (Leave::Reset, socket) => {
                if let Some(socket) = socket.take() {
                    socket.into_inner().reset();
                }
            }
            (Leave::HalfClose, Some(socket)) => socket.get_mut().half_close().await,
            (Leave::HalfClose, None) | (Leave::Still, _) => {}
        }
    }

    fn response(self) -> Option<Response> {
        self.response.filter(|_| !self.has_left)
    }
}

/// The body of a stream with the messages in these bytes, which follow the head of a handshake.
pub(crate) fn body(bytes: &[u8]) -> Vec<u8> {
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let frames = head.map_or(&[][..], |head| &bytes[head + 4..]);
    let messages = messages(frames).into_iter();
    messages.flat_map(|message| event(&message)).collect()
}

/// The complete messages in frames of the gateway.
fn messages(frames: &[u8]) -> Vec<String> {
    let mut frames = FrameSocket::new(frames);
    let frames = std::iter::from_fn(|| frames.read(None).ok().flatten());
    let texts = frames.filter(|frame| frame.header().opcode == OpCode::Data(Data::Text));
    let text = |frame: Frame| String::from_utf8_lossy(frame.payload()).into_owned();
    texts.map(text).collect()
}

/// A stream of events that has just begun.
fn begun_stream() -> Response {
    let kind = "text/event-stream; charset=utf-8";
    let headers = vec![("content-type".to_owned(), kind.to_owned())];
    let mut response = Response::new(200, headers, Vec::new());
    response.end = End::Closed;
    response
}

/// The refusal that a message reports, which has the status, the error and some headers of HTTP.
fn refusal(message: &str) -> Option<Response> {
    let mut event: Value = serde_json::from_str(message).ok()?;
    let members = event.as_object_mut()?;
    let status = members.remove("status")?.as_u64()?;
    let headers = members.remove("headers").unwrap_or_else(|| json!({}));
    let headers: BTreeMap<String, String> = serde_json::from_value(headers).ok()?;
    let content_type = ("content-type".to_owned(), "application/json".to_owned());
    (members.remove("type")? == "error").then(|| {
        let headers = headers.into_iter().chain([content_type]).collect();
        Response::new(status as u16, headers, json!(members).to_string().into())
    })
}

/// A message as an event of a stream.
fn event(message: &str) -> Vec<u8> {
    let lines = message.split('\n').map(|line| format!("data: {line}\n"));
    lines.chain(["\n".to_owned()]).collect::<String>().into()
}

/// A message in a single frame.
fn text_frame(message: String) -> Frame {
    Frame::message(message, OpCode::Data(Data::Text), true)
}

/// The bytes of a frame.
fn written(frame: Frame) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame
        .format(&mut bytes)
        .expect("a buffer can be written to");
    bytes
}

/// The key of every handshake, from RFC 6455 §1.3.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
/// The mask of every request, from RFC 6455 §5.7.
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

#[cfg(test)]
mod tests {
    use simulator::Protocol;
    use tokio_tungstenite::accept_async;

    use super::*;
    use crate::fault::{Kind, Transport};
    use crate::pipe::{Count, pair};

    fn over_websocket() -> Fault {
        let mut fault = Fault::planted(Protocol::Responses, Protocol::Chat, true, Kind::Nothing);
        fault.transport = Transport::WebSocket;
        fault
    }

    /// The response that a client reads if a gateway sends these messages, and closes the connection.
    async fn response(messages: &'static [&'static str]) -> Response {
        let fault = over_websocket();
        let (served, client) = pair(64, &Count::default());
        let server = tokio::spawn(async move {
            let mut socket = accept_async(served).await.unwrap();
            let request = socket.next().await.unwrap().unwrap();
            for message in messages {
                let frame = written(text_frame((*message).to_owned()));
                socket.get_mut().write_all(&frame).await.unwrap();
            }
            request.into_text().unwrap().to_string()
        });
        let mut exchange = WebSocketExchange::new(open(client, &fault).await, &fault);
        assert!(exchange.send(None).await.whole);
        exchange.read(usize::MAX).await;
        let request: Value = serde_json::from_str(&server.await.unwrap()).unwrap();
        assert_eq!(request["type"], "response.create");
        assert_eq!(
            (&request["model"], request.get("stream")),
            (&json!("chat"), None)
        );
        exchange.response().unwrap()
    }

    /// A stream ends with its last event. What follows is there for the judge.
    #[tokio::test]
    async fn messages_are_events_of_a_stream() {
        const CREATED: &str = r#"{"type":"response.created"}"#;
        const FAILED: &str = r#"{"type":"response.failed"}"#;
        let begun = response(&[CREATED]).await;
        assert_eq!((begun.is_stream(), begun.end), (true, End::Closed));
        assert_eq!(begun.text(), "data: {\"type\":\"response.created\"}\n\n");
        let ended = response(&[CREATED, FAILED, CREATED]).await;
        assert_eq!(ended.end, End::Complete);
        assert_eq!(
            testkit::events::events(&ended.body),
            [CREATED, FAILED, CREATED].map(str::as_bytes)
        );
    }

    /// An error instead of a response has the status, the headers and the body of HTTP; within one it is an
    /// event.
    #[tokio::test]
    async fn an_error_is_a_refusal() {
        const ERROR: &str = r#"{"type":"error","status":502,"headers":{"retry-after":"7"},"error":{"code":"upstream_error"}}"#;
        let refused = response(&[ERROR]).await;
        assert_eq!((refused.status, refused.end), (502, End::Complete));
        assert_eq!(refused.header("retry-after"), Some("7"));
        assert_eq!(refused.text(), r#"{"error":{"code":"upstream_error"}}"#);
        let failed = response(&["{}", ERROR]).await;
        assert_eq!((failed.status, failed.end), (200, End::Complete));
    }

    /// A client that stays within its request does not answer a ping there.
    #[tokio::test]
    async fn no_frame_is_within_another() {
        let fault = over_websocket();
        let (served, client) = pair(1 << 16, &Count::default());
        let server = tokio::spawn(async move {
            let mut pipe = accept_async(served).await.unwrap().into_inner();
            let mut received = vec![pipe.read_u8().await.unwrap()];
            pipe.write_all(b"\x89\x00\x81\x02{}").await.unwrap();
            pipe.shutdown().await.unwrap();
            pipe.read_to_end(&mut received).await.unwrap();
            received
        });
        let mut exchange = WebSocketExchange::new(open(client, &fault).await, &fault);
        let half = exchange.request[..Spot::MIDDLE.of(exchange.request.len())].to_vec();
        let sent = exchange.send(Some(Spot::MIDDLE)).await;
        assert!(!sent.head && !sent.whole);
        exchange.read(usize::MAX).await;
        assert_eq!(server.await.unwrap(), half);
        assert_eq!(exchange.response().unwrap().text(), "data: {}\n\n");
    }

    /// The messages before the end of these bytes, which may be in the middle of a frame.
    #[test]
    fn a_body_has_the_whole_messages() {
        let head = "HTTP/1.1 101 Switching Protocols\r\n\r\n";
        assert_eq!(body(&head.as_bytes()[..20]), b"");
        let bytes = [head.as_bytes(), b"\x81\x02{}\x89\x00\x81\x03{\n}\x81\x02{"].concat();
        assert_eq!(body(&bytes), b"data: {}\n\ndata: {\ndata: }\n\n");
    }
}
