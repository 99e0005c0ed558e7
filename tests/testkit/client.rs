//! A raw HTTP/1.1 client: it sends bytes exactly as given and reports everything that it receives.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A response, possibly truncated.
#[derive(Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The headers, with names in lower case, in the order of the response.
    pub headers: Vec<(String, String)>,
    /// The body, as far as it was received. Of a chunked one the complete chunks.
    pub body: Vec<u8>,
    /// The end of the body.
    pub end: End,
    /// The sizes of the chunks of a chunked body.
    sizes: Vec<usize>,
}

/// The end of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The body is complete, by the framing of the head.
    Complete,
    /// A FIN before the end of the body.
    Closed,
    /// A RST before the end of the body.
    Reset,
}

impl Response {
    /// A complete response.
    pub fn new(status: u16, headers: Vec<(String, String)>, body: Vec<u8>) -> Self {
        Self {
            status,
            headers,
            sizes: Vec::new(),
            body,
            end: End::Complete,
        }
    }

    /// Parses the bytes of one response, complete or not. Returns `None` without a complete head.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let head = reader.head().ok()?;
        let response = reader.body_of(head);
        assert!(
            !response.is_complete() || reader.rest().0.is_empty(),
            "bytes behind the body"
        );
        Some(response)
    }

    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// True if the body came to its proper end.
    pub fn is_complete(&self) -> bool {
        self.end == End::Complete
    }

    /// True if it is a stream of events.
    pub fn is_stream(&self) -> bool {
        self.status == 200
            && self
                .header("content-type")
                .is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// The chunks of a chunked body.
    pub fn chunks(&self) -> Vec<&[u8]> {
        let mut rest = &self.body[..];
        let mut chunk = |size: &usize| {
            let (chunk, after) = rest.split_at(*size);
            rest = after;
            chunk
        };
        self.sizes.iter().map(&mut chunk).collect()
    }

    /// The body as text.
    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("bodies are UTF-8")
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

/// A reader of responses.
struct Reader<R> {
    from: R,
    input: Vec<u8>,
    /// The part of `input` that was parsed already.
    parsed: usize,
}

impl<R: Read> Reader<R> {
    fn new(from: R) -> Self {
        Self {
            from,
            input: Vec::new(),
            parsed: 0,
        }
    }

    /// Reads the next head. The error is the end of the connection.
    fn head(&mut self) -> Result<Response, End> {
        let mut line = || {
            self.line()
                .map(|line| String::from_utf8(line).expect("a head is text"))
        };
        let status = line()?
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .expect("a status line");
        let mut headers = Vec::new();
        loop {
            let line = line()?;
            if line.is_empty() {
                return Ok(Response::new(status, headers, Vec::new()));
            }
            let (name, value) = line.split_once(':').expect("a header has a colon");
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// Reads the body that belongs to a head.
    fn body_of(&mut self, mut response: Response) -> Response {
        if response.header("transfer-encoding") == Some("chunked") {
            response.end = loop {
                match self.chunk() {
                    Ok(chunk) if chunk.is_empty() => break End::Complete,
                    Ok(chunk) => {
                        response.sizes.push(chunk.len());
                        response.body.extend(chunk);
                    }
                    Err(end) => break end,
                }
            };
        } else if let Some(length) = response.header("content-length") {
            let length = length.parse().expect("a length");
            response.end = self.fill(length).err().unwrap_or(End::Complete);
            response.body = self.take(length);
        } else if !matches!(response.status, 100..=199 | 204 | 304) {
            (response.body, response.end) = self.rest();
        }
        response
    }

    /// Reads the next chunk of a chunked body; the last one is empty.
    fn chunk(&mut self) -> Result<Vec<u8>, End> {
        let size = self.line()?;
        let size = std::str::from_utf8(&size)
            .ok()
            .and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.expect("the size of a chunk");
        self.fill(size + 2)?;
        let mut chunk = self.take(size + 2);
        assert_eq!(chunk.split_off(size), b"\r\n");
        Ok(chunk)
    }

    /// Reads until the connection ends.
    fn rest(&mut self) -> (Vec<u8>, End) {
        let end = self.fill(usize::MAX).expect_err("an end");
        (self.take(usize::MAX), end)
    }

    fn line(&mut self) -> Result<Vec<u8>, End> {
        loop {
            let unparsed = &self.input[self.parsed..];
            if let Some(end) = unparsed.windows(2).position(|pair| pair == b"\r\n") {
                let mut line = self.take(end + 2);
                line.truncate(end);
                return Ok(line);
            }
            self.fill(unparsed.len() + 1)?;
        }
    }

    /// Reads until so many bytes are unparsed.
    fn fill(&mut self, length: usize) -> Result<(), End> {
        while self.input.len() - self.parsed < length {
            self.input.drain(..std::mem::take(&mut self.parsed));
            let before = self.input.len();
            self.input.resize(before + READ_SIZE, 0);
            let read = self.from.read(&mut self.input[before..]);
            self.input
                .truncate(before + read.as_ref().map_or(0, |read| *read));
            match read {
                Ok(0) => return Err(End::Closed),
                Ok(_) => {}
                // A process that was paused: nothing was read.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Err(End::Reset),
                Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&self.input)),
            }
        }
        Ok(())
    }

    /// Takes so many unparsed bytes, or as many as there are.
    fn take(&mut self, length: usize) -> Vec<u8> {
        let taken = &self.input[self.parsed..];
        let taken = taken[..length.min(taken.len())].to_vec();
        self.parsed += taken.len();
        taken
    }
}

/// An open connection.
pub struct Connection(Reader<TcpStream>);

impl Connection {
    /// Opens a connection.
    #[track_caller]
    pub fn open(address: SocketAddr) -> Self {
        Self::open_within(GUARD, address).expect("the server accepts")
    }

    /// Opens a connection, or returns `None` if the server accepts none. A server that shuts down
    /// drops the SYNs of new clients, so on loopback a connection that is not established at once
    /// never is.
    pub fn try_open(address: SocketAddr) -> Option<Self> {
        Self::open_within(Duration::from_millis(50), address)
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "the server under test is dialled, on loopback"
    )]
    fn open_within(patience: Duration, address: SocketAddr) -> Option<Self> {
        let socket = TcpStream::connect_timeout(&address, patience).ok()?;
        socket
            .set_read_timeout(Some(GUARD))
            .expect("a timeout can be set");
        socket.set_nodelay(true).expect("a socket can send at once");
        Some(Self(Reader::new(socket)))
    }

    /// Sends bytes. The server has to accept all of them.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0
            .from
            .write_all(bytes.as_ref())
            .expect("the server reads");
    }

    /// Sends a POST request with a body of JSON.
    #[track_caller]
    pub fn post(&mut self, path: &str, body: &Value) {
        self.send(Request::post(path, body).bytes());
    }

    /// Sends as much as the server accepts; returns true if that was everything.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.0.from.write_all(bytes.as_ref()).is_ok()
    }

    /// The next response, read to its end.
    #[track_caller]
    pub fn response(&mut self) -> Response {
        self.response_after_head(|| {})
    }

    /// Reads the next response to its end, and calls `then` between head and body.
    #[track_caller]
    pub fn response_after_head(&mut self, then: impl FnOnce()) -> Response {
        let head = self.head().expect("the server answers");
        then();
        self.body_of(head)
    }

    /// Reads the head of the next response. The error is the end of the connection.
    pub fn head(&mut self) -> Result<Response, End> {
        self.0.head()
    }

    /// Reads the body that belongs to a head.
    pub fn body_of(&mut self, head: Response) -> Response {
        self.0.body_of(head)
    }

    /// Reads the next chunk of a chunked body: empty at its end. The error is the end of the
    /// connection.
    pub fn chunk(&mut self) -> Result<Vec<u8>, End> {
        self.0.chunk()
    }

    /// Reads exactly so many bytes.
    #[track_caller]
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        self.0.fill(length).expect("so many bytes");
        self.0.take(length)
    }

    /// Reads until the connection ends. Returns the bytes and the end.
    pub fn rest(&mut self) -> (Vec<u8>, End) {
        self.0.rest()
    }

    /// Waits for the end of the connection; returns true if nothing is received before it.
    pub fn is_closed(&mut self) -> bool {
        self.rest().0.is_empty()
    }

    /// Waits for the end of the connection; returns true if nothing is received before it and it is
    /// a FIN.
    pub fn is_ended(&mut self) -> bool {
        self.rest() == (Vec::new(), End::Closed)
    }

    /// Reads until the server closes the connection, which it has to do without a reset.
    #[track_caller]
    pub fn received_until_closed(&mut self) -> Received {
        let (received, end) = self.rest();
        assert_eq!(
            end,
            End::Closed,
            "after {}",
            String::from_utf8_lossy(&received)
        );
        Received(received)
    }

    /// Sends `bytes` one at a time, each after a moment in which nothing was received, and returns
    /// the bytes that were received until the connection ended.
    #[track_caller]
    pub fn drip(&mut self, bytes: impl IntoIterator<Item = u8>) -> Received {
        let socket = &mut self.0.from;
        let (mut received, mut space) = (Vec::new(), [0; 4096]);
        socket
            .set_read_timeout(Some(MOMENT))
            .expect("a timeout can be set");
        for byte in bytes {
            match socket.read(&mut space) {
                Ok(0) => return Received(received),
                Ok(read) => received.extend_from_slice(&space[..read]),
                // The server may have closed already, which the next read shows.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    drop(socket.write_all(&[byte]));
                }
                Err(_) => return Received(received),
            }
        }
        panic!("the gateway takes all of it");
    }

    /// Half-closes the connection, so that more can still be read.
    pub fn finish(&mut self) {
        self.0
            .from
            .shutdown(Shutdown::Write)
            .expect("an open socket");
    }

    /// Shuts the socket down and closes it, whatever is open.
    pub fn disconnect(self, how: Shutdown) {
        let _ = self.0.from.shutdown(how);
    }

    /// Waits for bytes and drops the socket without reading them, which resets the connection.
    pub fn reset_unread(self) {
        assert!(self.0.from.peek(&mut [0]).expect("bytes") > 0);
    }
}

/// All bytes that were received on a connection.
#[derive(Debug)]
pub struct Received(pub Vec<u8>);

impl Received {
    /// The statuses of the responses.
    pub fn statuses(&self) -> Vec<u16> {
        let text = self.text();
        let lines = text
            .split("HTTP/1.")
            .skip(1)
            // Not a status line, but the protocol in a header.
            .filter(|response| response.get(1..2) == Some(" "))
            .map(|response| response.get(2..5).expect("a status"));
        lines
            .map(|status| status.parse().expect("a status"))
            .collect()
    }

    /// Returns true if the received bytes contain `text`.
    pub fn has(&self, text: &str) -> bool {
        self.text().contains(text)
    }

    /// The received bytes as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

/// Sends these bytes and returns everything that is received until the server closes the
/// connection.
#[track_caller]
pub fn exchange(address: SocketAddr, bytes: impl AsRef<[u8]>) -> Received {
    let mut connection = Connection::open(address);
    // A server that refuses a request early does not read the rest of it.
    connection.try_send(bytes);
    connection.received_until_closed()
}

/// A request to send.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Request {
    /// A GET request.
    pub fn get(path: &str) -> Self {
        Self {
            method: "GET".into(),
            path: path.into(),
            headers: Vec::new(),
            body: None,
        }
    }

    /// A POST request with a body of JSON.
    pub fn post(path: &str, body: &Value) -> Self {
        Self::post_bytes(path, body.to_string().as_bytes())
            .header("content-type", "application/json")
    }

    /// A POST request with a body of any bytes and no `Content-Type`.
    pub fn post_bytes(path: &str, body: &[u8]) -> Self {
        Self {
            method: "POST".into(),
            body: Some(body.to_vec()),
            ..Self::get(path)
        }
    }

    /// Replaces the method.
    pub fn method(self, method: &str) -> Self {
        Self {
            method: method.into(),
            ..self
        }
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds an API key.
    pub fn bearer(self, key: &str) -> Self {
        self.header("authorization", &format!("Bearer {key}"))
    }

    /// The bytes of the request.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!(
            "{} {} HTTP/1.1\r\nhost: localhost\r\n",
            self.method, self.path
        )
        .into_bytes();
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

    /// Sends the request on a new connection, and reads the response.
    #[track_caller]
    pub fn send(&self, address: SocketAddr) -> Response {
        let mut connection = Connection::open(address);
        connection.send(self.bytes());
        connection.response()
    }
}

/// A body with some of its members changed.
pub fn changed(mut body: Value, change: &Value) -> Value {
    for (name, value) in change.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body
}

/// An upper bound against hanging, longer than anything takes.
pub const GUARD: Duration = Duration::from_secs(300);
/// The pause between two bytes of a slow client.
const MOMENT: Duration = Duration::from_millis(20);
const READ_SIZE: usize = 64 << 10;
