//! The client's side of HTTP/1.1: one request on a connection.

use testkit::Response;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::{ClientExchange, ClientRequest, Sent};
use crate::fault::{Fault, Leave, Spot};
use crate::pipe::Pipe;

/// A request and its response.
pub(crate) struct Http1Exchange {
    /// `None` once the client has closed it.
    pipe: Option<Pipe>,
    request: Vec<u8>,
    /// The length of the head.
    head: usize,
    /// The number of bytes that are written and read at once.
    at_once: usize,
    received: Vec<u8>,
}

impl Http1Exchange {
    pub(crate) fn new(pipe: Pipe, fault: &Fault) -> Self {
        let ClientRequest {
            path,
            headers,
            body,
        } = ClientRequest::new(fault);
        let headers = headers.into_iter();
        let headers = headers.map(|(name, value)| format!("{name}: {value}\r\n"));
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: gateway\r\n{}\r\n",
            headers.collect::<String>()
        );
        Self {
            pipe: Some(pipe),
            head: head.len(),
            request: [head.into_bytes(), body].concat(),
            at_once: fault.pace.at_once,
            received: Vec::new(),
        }
    }
}

impl ClientExchange for Http1Exchange {
    async fn send(&mut self, up_to: Option<Spot>) -> Sent {
        let whole = self.request.len();
        let end = up_to.map_or(whole, |spot| spot.of(whole));
        if let Some(pipe) = &mut self.pipe {
            for piece in self.request[..end].chunks(self.at_once) {
                // The gateway may have answered and closed already.
                if pipe.write_all(piece).await.is_err() {
                    break;
                }
            }
        }
        Sent {
            head: end >= self.head,
            whole: end == whole,
        }
    }

    async fn read(&mut self, enough: usize) {
        let Some(pipe) = &mut self.pipe else {
            return;
        };
        let mut buffer = vec![0; self.at_once];
        while self.received.len() < enough && !ends(&self.received) {
            match pipe.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(read) => self.received.extend(&buffer[..read]),
            }
        }
    }

    async fn leave(&mut self, how: Leave) {
        match (how, &mut self.pipe) {
            (Leave::Close, _) => self.pipe = None,
            (Leave::Reset, pipe) => {
                if let Some(pipe) = pipe.take() {
                    pipe.reset();
                }
            }
            (Leave::HalfClose, Some(pipe)) => pipe.half_close().await,
            (Leave::HalfClose, None) | (Leave::Still, _) => {}
        }
    }

    fn response(self) -> Option<Response> {
        Response::parse(&self.received)
    }
}

/// Returns true if a response is complete, by a cheap check.
fn ends(bytes: &[u8]) -> bool {
    let is_near =
        bytes.ends_with(b"0\r\n\r\n") || bytes.ends_with(b"}") || bytes.ends_with(b"\r\n\r\n");
    is_near && Response::parse(bytes).is_some_and(|response| response.is_complete())
}
