//! A raw HTTP/1.1 client that sends requests exactly as given and reports what it received.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A response, read to its end.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Names in lower case, in the order of the response.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// True if the body came to its proper end.
    pub(crate) complete: bool,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("bodies are UTF-8")
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

/// An open connection.
pub(crate) struct Connection {
    reader: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        Self::open_within(GUARD, address).expect("the server accepts")
    }

    /// Opens a connection, or returns `None` if the server accepts none. A server that shuts down drops the SYNs of
    /// new clients, so on loopback a connection that is not established at once never is.
    pub(crate) fn try_open(address: SocketAddr) -> Option<Self> {
        Self::open_within(Duration::from_millis(50), address)
    }

    #[allow(clippy::disallowed_methods, reason = "the server under test is dialled, on loopback")]
    fn open_within(patience: Duration, address: SocketAddr) -> Option<Self> {
        let socket = TcpStream::connect_timeout(&address, patience).ok()?;
        socket.set_read_timeout(Some(GUARD)).expect("a timeout can be set");
        socket.set_nodelay(true).expect("a socket can send at once");
        Some(Self { reader: BufReader::new(socket) })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).expect("the server reads");
    }

    /// Sends as much as the server accepts; returns true if that was everything.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.reader.get_mut().write_all(bytes).is_ok()
    }

    /// The status and the headers of the next response.
    pub(crate) fn head(&mut self) -> (u16, Vec<(String, String)>) {
        let status = self.line();
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        (status.expect("a status line"), headers)
    }

    /// The next response, read to its end.
    pub(crate) fn response(&mut self) -> Response {
        self.response_after_head(|| {})
    }

    /// Reads the next response to its end, and calls `then` between head and body.
    pub(crate) fn response_after_head(&mut self, then: impl FnOnce()) -> Response {
        let (status, headers) = self.head();
        then();
        let mut response = Response { status, headers, body: Vec::new(), complete: false };
        if response.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk() {
                if chunk.is_empty() {
                    response.complete = true;
                    break;
                }
                response.body.extend(chunk);
            }
        } else {
            let length = response.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            response.body.resize(length, 0);
            response.complete = self.reader.read_exact(&mut response.body).is_ok();
        }
        response
    }

    /// The next chunk of a chunked body: empty at its end, `None` when the connection broke.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let mut size = String::new();
        self.reader.read_line(&mut size).ok().filter(|read| *read > 0)?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk).ok()?;
        chunk.truncate(size);
        Some(chunk)
    }

    /// Waits until the server closes the connection; returns true if it does.
    pub(crate) fn is_closed(&mut self) -> bool {
        matches!(self.reader.read(&mut [0; 1]), Ok(0) | Err(_))
    }

    /// Waits until the server closes the connection; returns true for a FIN, false for a RST.
    pub(crate) fn is_ended(&mut self) -> bool {
        matches!(self.reader.read(&mut [0; 1]), Ok(0))
    }

    /// Closes the connection abruptly.
    pub(crate) fn vanish(self, how: Shutdown) {
        let _ = self.reader.get_ref().shutdown(how);
    }

    /// Waits for the end of the connection; returns true if it is reset, false if it is closed.
    pub(crate) fn await_reset(&mut self) -> bool {
        let ended = std::io::copy(&mut self.reader, &mut std::io::sink());
        ended.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("the server answers");
        line.trim_end().to_owned()
    }
}

/// A request to send.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Request {
    pub(crate) fn get(path: &str) -> Self {
        Self { method: "GET".into(), path: path.into(), headers: Vec::new(), body: None }
    }

    pub(crate) fn post(path: &str, body: &Value) -> Self {
        Self::post_bytes(path, body.to_string().as_bytes()).header("content-type", "application/json")
    }

    pub(crate) fn post_bytes(path: &str, body: &[u8]) -> Self {
        Self { method: "POST".into(), body: Some(body.to_vec()), ..Self::get(path) }
    }

    pub(crate) fn method(self, method: &str) -> Self {
        Self { method: method.into(), ..self }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn bearer(self, key: &str) -> Self {
        self.header("authorization", &format!("Bearer {key}"))
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{} {} HTTP/1.1\r\nhost: gateway\r\n", self.method, self.path).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend(format!("{name}: {value}\r\n").bytes());
        }
        if let Some(body) = &self.body {
            bytes.extend(format!("content-length: {}\r\n", body.len()).bytes());
        }
        bytes.extend(b"\r\n");
        bytes.extend(self.body.iter().flatten());
        bytes
    }

    pub(crate) fn send(&self, address: SocketAddr) -> Response {
        let mut connection = Connection::open(address);
        connection.send(&self.bytes());
        connection.response()
    }
}

/// A body with some of its members changed.
pub(crate) fn changed(mut body: Value, change: &Value) -> Value {
    for (name, value) in change.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body
}

/// An upper bound against hanging, longer than anything takes.
const GUARD: Duration = Duration::from_secs(120);
