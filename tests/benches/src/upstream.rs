//! The upstream of the benches: it writes prepared responses, so that its own cost does not affect
//! the measurement.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use memchr::memmem;
use simulator::{Request, honest};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use crate::question::{
    CHAT, CONVERSATION, ENDLESS, IDLE, MESSAGES, OTHER, OTHER_PATH, PICTURE, RESPONSES, SERVICE,
    SMALL, SMALL_MESSAGES, SMALL_RESPONSES,
};

/// A running upstream. Its connections live as long as the runtime.
pub struct Upstream {
    /// The address it listens on.
    pub address: SocketAddr,
    /// The times at which idle and endless streams were abandoned by their clients.
    pub left: UnboundedReceiver<Instant>,
}

impl Upstream {
    /// Starts an upstream on a port that the system chooses.
    pub async fn start() -> io::Result<Self> {
        Self::listen(None).await
    }

    /// Starts an upstream that takes a permit for each piece of a response but the first one. A
    /// client that adds one for each event that it receives gets every event by itself, however
    /// busy the machine is. The first events come together, because a gateway holds back events
    /// without content until some content has come. So do the last events: a gateway may hold back
    /// the one that reports the end of the answer until it has seen the end of the stream.
    pub async fn in_step(permits: Arc<Semaphore>) -> io::Result<Self> {
        Self::listen(Some(permits)).await
    }

    async fn listen(permits: Option<Arc<Semaphore>>) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let address = listener.local_addr()?;
        let (closed, left) = unbounded_channel();
        let mut answers = Answers::made();
        if permits.is_some() {
            join_ends(&mut answers.chat);
        }
        answers.permits = permits;
        tokio::spawn(accept(listener, Arc::new(answers), closed));
        Ok(Self { address, left })
    }
}

async fn accept(listener: TcpListener, answers: Arc<Answers>, closed: UnboundedSender<Instant>) {
    while let Ok((socket, _)) = listener.accept().await {
        // An error on a connection is a peer that disconnected.
        let (answers, closed) = (Arc::clone(&answers), closed.clone());
        tokio::spawn(async move { serve(socket, &answers, &closed).await.ok() });
    }
}

async fn serve(
    mut socket: TcpStream,
    answers: &Answers,
    closed: &UnboundedSender<Instant>,
) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = BytesMut::with_capacity(4096);
    loop {
        let Some(length) = request(&mut socket, &mut buffer).await? else {
            return Ok(());
        };
        let model = match is_of_its_path(&buffer[..length]) {
            true => model(&buffer[..length]).to_owned(),
            false => String::new(),
        };
        buffer.clear();
        if model == SERVICE {
            sleep(SERVICE_TIME).await;
        }
        for (number, piece) in answers.of(&model).iter().enumerate() {
            if let Some(permits) = answers.permits.as_ref().filter(|_| number > 0) {
                // The first piece has several events.
                let events = if number == 1 { OPENING as u32 } else { 1 };
                let permits = permits.acquire_many(events).await;
                permits.map_err(io::Error::other)?.forget();
            }
            socket.write_all(piece).await?;
            // A model takes time to answer; here, as long as the other tasks need for their turn.
            yield_now().await;
        }
        if model == ENDLESS {
            while socket.write_all(&answers.more).await.is_ok() {
                sleep(PACE).await;
            }
        }
        if model == IDLE {
            // No more requests are sent on this connection: the next read returns its end.
            let _ = socket.read_u8().await;
        }
        if model == IDLE || model == ENDLESS {
            let _ = closed.send(Instant::now());
            return Ok(());
        }
    }
}

/// Reads a request into an empty buffer; `None` at the end of the connection.
async fn request(socket: &mut TcpStream, buffer: &mut BytesMut) -> io::Result<Option<usize>> {
    loop {
        if let Some(length) = whole_length(buffer)
            && buffer.len() >= length
        {
            return Ok(Some(length));
        }
        if socket.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

/// The length of the message that begins here, once its head is complete.
fn whole_length(message: &[u8]) -> Option<usize> {
    let head = memmem::find(message, b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&message[..head]).ok()?;
    let body = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().ok())?
    });
    Some(head + body.unwrap_or(0))
}

/// Returns true if a request is sent to the path of its model.
fn is_of_its_path(request: &[u8]) -> bool {
    let line = request
        .split(|byte| *byte == b'\r')
        .next()
        .unwrap_or_default();
    memmem::find(line, OTHER_PATH.as_bytes()).is_some() == (model(request) == OTHER)
}

/// The model that a request names.
fn model(request: &[u8]) -> &str {
    let from = memmem::find(request, MODEL).map_or(request.len(), |at| at + MODEL.len());
    let name = request[from..]
        .split(|byte| *byte == b'"')
        .next()
        .unwrap_or_default();
    std::str::from_utf8(name).unwrap_or_default()
}

/// The response for each model, piece by piece.
struct Answers {
    small: Vec<Bytes>,
    small_responses: Vec<Bytes>,
    small_messages: Vec<Bytes>,
    chat: Vec<Bytes>,
    responses: Vec<Bytes>,
    messages: Vec<Bytes>,
    idle: Vec<Bytes>,
    /// The bytes that are repeated after the beginning of an endless stream.
    more: Bytes,
    picture: Vec<Bytes>,
    unknown: Vec<Bytes>,
    /// The permits for pieces, if a client paces them.
    permits: Option<Arc<Semaphore>>,
}

impl Answers {
    /// Builds responses with the simulator's text, which is like the text of a real server.
    fn made() -> Self {
        let ask = |path: &str, body: &'static str| honest::answer(&simulated(path, body));
        let small = ask(
            "/v1/chat/completions",
            r#"{"model":"small","messages":[{"role":"user","content":"hello"}]}"#,
        );
        let small_responses = ask(
            "/v1/responses",
            r#"{"model":"small-responses","input":"hello"}"#,
        );
        let small_messages = ask(
            "/v1/messages",
            r#"{"model":"small-messages","max_tokens":64,"messages":[{"role":"user","content":"hello"}]}"#,
        );
        let chat = ask(
            "/v1/chat/completions",
            r#"{"model":"chat-stream","stream":true,"messages":[{"role":"user","content":"count to 60"}]}"#,
        );
        let responses = ask(
            "/v1/responses",
            r#"{"model":"responses-stream","stream":true,"input":"count to 60"}"#,
        );
        let messages = ask(
            "/v1/messages",
            r#"{"model":"messages-stream","stream":true,"max_tokens":1024,"messages":[{"role":"user","content":"count to 60"}]}"#,
        );
        let chat = streamed(chat.pieces());
        Self {
            small: whole(&small.body_bytes()),
            small_responses: whole(&small_responses.body_bytes()),
            small_messages: whole(&small_messages.body_bytes()),
            idle: chat.iter().take(OPENING).cloned().collect(),
            more: chat.get(1).cloned().unwrap_or_default().repeat(16).into(),
            chat,
            responses: streamed(responses.pieces()),
            messages: streamed(messages.pieces()),
            picture: whole(picture().as_bytes()),
            unknown: vec![Bytes::from_static(
                b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            )],
            permits: None,
        }
    }

    fn of(&self, model: &str) -> &[Bytes] {
        match model {
            SMALL | SERVICE | OTHER | CONVERSATION => &self.small,
            SMALL_RESPONSES => &self.small_responses,
            SMALL_MESSAGES => &self.small_messages,
            CHAT => &self.chat,
            RESPONSES => &self.responses,
            MESSAGES => &self.messages,
            IDLE | ENDLESS => &self.idle,
            PICTURE => &self.picture,
            _ => &self.unknown,
        }
    }
}

fn simulated(path: &str, body: &'static str) -> Request {
    Request {
        number: 0,
        connection: 0,
        nth_on_connection: 0,
        method: "POST".to_owned(),
        path: path.to_owned(),
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: Bytes::from_static(body.as_bytes()),
        at: Instant::now().into_std(),
    }
}

/// A reply with one large picture.
fn picture() -> String {
    // The beginning of a PNG, repeated, and its end.
    let base64 = "iVBORw0KGgo+/AB9".repeat(PICTURE_SIZE / 16) + "AAAAAElFTkSuQmCC";
    format!(
        r#"{{"created":1700000000,"data":[{{"b64_json":"{base64}"}}],"usage":{{"input_tokens":8,"output_tokens":4096,"total_tokens":4104,"input_tokens_details":{{"text_tokens":8,"image_tokens":0}}}}}}"#
    )
}

fn whole(body: &[u8]) -> Vec<Bytes> {
    let head = format!(
        "{OK}content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    vec![Bytes::from([head.as_bytes(), body].concat())]
}

/// One chunk an event, the head with the first.
fn streamed<'a>(events: impl Iterator<Item = &'a Bytes>) -> Vec<Bytes> {
    let chunk =
        |event: &Bytes| [format!("{:x}\r\n", event.len()).as_bytes(), event, b"\r\n"].concat();
    let mut pieces: Vec<_> = events.map(chunk).collect();
    if let Some(first) = pieces.first_mut() {
        let head =
            format!("{OK}content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n");
        first.splice(..0, head.into_bytes());
    }
    pieces.push(b"0\r\n\r\n".to_vec());
    pieces.into_iter().map(Bytes::from).collect()
}

/// Joins the first pieces of a stream, up to its first content, and the last ones: its end and the
/// last chunk.
fn join_ends(pieces: &mut Vec<Bytes>) {
    let opening: Vec<_> = pieces.drain(..OPENING.min(pieces.len())).collect();
    pieces.insert(0, opening.concat().into());
    let end = pieces.split_off(pieces.len().saturating_sub(END));
    pieces.push(end.concat().into());
}

/// The pieces at the beginning of a Chat stream: the role, and the first content.
const OPENING: usize = 2;

/// The pieces at the end of a Chat stream: the finish reason, the usage, `[DONE]`, the last chunk.
const END: usize = 4;

/// The size of a picture in base64, typical for 1024 × 1024 pixels.
const PICTURE_SIZE: usize = 2_500_000;

/// The pause after each 16 events of an endless stream, which makes it as fast as the fastest
/// models.
const PACE: Duration = Duration::from_millis(64);

/// The time that the upstream takes for a response with a fixed duration.
pub const SERVICE_TIME: Duration = Duration::from_millis(100);

const MODEL: &[u8] = br#""model":""#;
const OK: &str = "HTTP/1.1 200 OK\r\ndate: Tue, 14 Nov 2023 22:13:20 GMT\r\nserver: bench\r\n";
