//! A model server whose answer to every request is set beforehand.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A running model server.
pub(crate) struct Upstream {
    address: SocketAddr,
    /// The body of the next answers; `None` for the usual answer of the protocol.
    answer: Mutex<Option<String>>,
}

impl Upstream {
    /// Starts a model server on a port that the system chooses.
    pub(crate) async fn start() -> io::Result<Arc<Self>> {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let upstream = Arc::new(Self {
            address: listener.local_addr()?,
            answer: Mutex::new(None),
        });
        let accepting = Arc::clone(&upstream);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let upstream = Arc::clone(&accepting);
                // A failed connection ends the request, which the case reports.
                tokio::spawn(async move { upstream.serve(socket).await.ok() });
            }
        });
        Ok(upstream)
    }

    /// Sets the body of the next answers.
    pub(crate) fn answer_with(&self, answer: Option<String>) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }

    /// A gateway with a text model of each protocol, named after it, and an image model. The server
    /// of Chat takes no role `developer`, so that each such message is edited.
    pub(crate) fn configuration(&self) -> String {
        let mut config = benches::question::keyed("json_body = \"64MiB\"\n");
        for protocol in PROTOCOLS {
            let quirks = match protocol {
                "chat" => "quirks = { system_not_developer = true }\n",
                _ => "",
            };
            let (family, protocols) = match protocol {
                "images" => ("images", r#""images_generations", "images_edits""#),
                _ => ("text", r#""chat", "responses", "messages""#),
            };
            config += &format!(
                "[[upstreams]]\nname = \"{protocol}\"\nprotocol = \"{protocol}\"\n\
                 base_url = \"http://{}/v1\"\n{quirks}\
                 [[models]]\nid = \"{protocol}\"\nfamily = \"{family}\"\nprotocols = [{protocols}]\n\
                 targets = [{{ upstream = \"{protocol}\" }}]\n",
                self.address
            );
        }
        config
    }

    fn set_answer(&self) -> Option<String> {
        let answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        answer.clone()
    }

    async fn serve(&self, mut socket: TcpStream) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            let length = loop {
                if let Some(length) = whole_length(&buffer).filter(|length| *length <= buffer.len())
                {
                    break length;
                }
                if socket.read_buf(&mut buffer).await? == 0 {
                    return Ok(());
                }
            };
            let body = self.set_answer();
            let body = body.unwrap_or_else(|| usual(&buffer[..length]));
            let kind = match body.starts_with('{') {
                true => "application/json",
                false => "text/event-stream",
            };
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            socket.write_all((head + &body).as_bytes()).await?;
        }
    }
}

/// The length of a request, once its head is there. The gateway sends a length with each body.
fn whole_length(buffer: &[u8]) -> Option<usize> {
    let head = memmem::find(buffer, b"\r\n\r\n")? + 4;
    let text = str::from_utf8(&buffer[..head]).ok()?;
    let mut headers = text.lines().filter_map(|line| line.split_once(": "));
    let length = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    Some(head + length.map_or(Some(0), |(_, value)| value.parse().ok())?)
}

/// A short answer in the protocol of a request.
fn usual(request: &[u8]) -> String {
    let line = request.split(|byte| *byte == b'\r').next();
    let line = String::from_utf8_lossy(line.unwrap_or_default());
    match line.split(' ').nth(1).unwrap_or_default() {
        "/v1/chat/completions" => crate::answers::chat(r#""content":"Yes.""#),
        "/v1/messages" => crate::answers::messages(r#"{"type":"text","text":"Yes."}"#),
        "/v1/responses" => crate::answers::responses(crate::answers::MESSAGE),
        _ => r#"{"created":1,"data":[{"b64_json":"iVBORw0KGgo="}]}"#.to_owned(),
    }
}

const PROTOCOLS: [&str; 4] = ["chat", "messages", "responses", "images"];
