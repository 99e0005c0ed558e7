//! A client of the Responses API over WebSocket.

use std::net::{SocketAddr, TcpStream};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Response;
use tokio_tungstenite::tungstenite::{Error, HandshakeError, Message, WebSocket};

use crate::client::GUARD;
use crate::gateway::Gateway;

/// A connection of a client.
pub struct Socket {
    socket: WebSocket<TcpStream>,
}

impl Socket {
    /// Opens a connection with a key.
    #[track_caller]
    pub fn open(gateway: &Gateway, key: &str) -> Self {
        let opened = Self::try_open(gateway.address(), &[("authorization", &bearer(key))]);
        opened.unwrap_or_else(|refused| panic!("{refused:?}"))
    }

    /// Opens a connection with these headers, or returns the response that refuses it.
    #[allow(
        clippy::disallowed_methods,
        reason = "a client of the gateway, in a test"
    )]
    pub fn try_open(
        address: SocketAddr,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, Box<Response>> {
        let url = format!("ws://{address}/v1/responses");
        let mut request = url.into_client_request().unwrap();
        for (name, value) in headers {
            let headers = request.headers_mut();
            headers.insert(*name, value.parse().unwrap());
        }
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(GUARD)).unwrap();
        stream.set_nodelay(true).unwrap();
        match tokio_tungstenite::tungstenite::client(request, stream) {
            Ok((socket, _)) => Ok(Self { socket }),
            Err(HandshakeError::Failure(Error::Http(response))) => Err(response),
            Err(error) => panic!("{error}"),
        }
    }

    /// The socket itself.
    pub fn raw(&mut self) -> &mut WebSocket<TcpStream> {
        &mut self.socket
    }

    /// Sends a text.
    #[track_caller]
    pub fn text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).unwrap();
    }

    /// Sends a `response.create` with the members of a request, except for the members that only HTTP has.
    #[track_caller]
    pub fn create(&mut self, request: &Value) {
        let mut event = request.clone();
        let members = event.as_object_mut().unwrap();
        members.remove("stream");
        members.insert("type".to_owned(), "response.create".into());
        self.text(&event.to_string());
    }

    /// Receives the next event as it is sent.
    #[track_caller]
    pub fn event_text(&mut self) -> String {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => return text.to_string(),
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                other => panic!("no event: {other:?}"),
            }
        }
    }

    /// Receives the next event.
    #[track_caller]
    pub fn event(&mut self) -> Value {
        serde_json::from_str(&self.event_text()).unwrap()
    }

    /// Receives the events of a response to its end.
    #[track_caller]
    pub fn events(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            events.push(self.event());
            if is_end(&events[events.len() - 1]) {
                return events;
            }
        }
    }

    /// Sends a request, and returns the response that its last event has.
    #[track_caller]
    pub fn turn(&mut self, request: &Value) -> Value {
        self.create(request);
        let last = self.events().pop().unwrap();
        assert_eq!(last["type"], "response.completed", "{last}");
        last["response"].clone()
    }

    /// Sends a request that is refused, and returns the event.
    #[track_caller]
    pub fn refused(&mut self, request: &Value) -> Value {
        self.create(request);
        let event = self.event();
        assert_eq!(event["type"], "error", "{event}");
        event
    }

    /// Receives to the end of the connection. Returns the code of the close frame, and 1006 if there
    /// is none.
    pub fn close_code(&mut self) -> u16 {
        loop {
            match self.socket.read() {
                Ok(Message::Close(frame)) => {
                    // Sends the client's own close frame.
                    let _ = self.socket.flush();
                    return frame.map_or(1005, |frame| frame.code.into());
                }
                Ok(_) => {}
                Err(_) => return 1006,
            }
        }
    }
}

/// True for the last event of a response.
pub fn is_end(event: &Value) -> bool {
    let ends = [
        "response.completed",
        "response.incomplete",
        "response.failed",
        "error",
    ];
    ends.iter().any(|end| event["type"] == *end)
}

/// The value of the header `Authorization`.
pub fn bearer(key: &str) -> String {
    format!("Bearer {key}")
}

/// A message of the user.
pub fn message(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}
