//! Tests connections that end before a request or its response.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;

use super::*;
use crate::outgoing::Payload;

/// Chunks to be read; an empty one is the end of the stream.
type Inbox = Arc<Mutex<VecDeque<&'static [u8]>>>;

/// A connection whose peer sends the next of its responses at each write.
struct Script {
    inbox: Inbox,
    responses: VecDeque<&'static [u8]>,
}

impl AsyncRead for Script {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut inbox = self.inbox.lock().unwrap();
        match inbox.pop_front() {
            Some(bytes) => {
                let (bytes, rest) = bytes.split_at(bytes.len().min(buf.remaining()));
                buf.put_slice(bytes);
                if !rest.is_empty() {
                    inbox.push_front(rest);
                }
                Poll::Ready(Ok(()))
            }
            None => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

impl AsyncWrite for Script {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let response = self.responses.pop_front();
        self.inbox.lock().unwrap().extend(response);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Connection for Script {
    fn peer(&self) -> io::Result<SocketAddr> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Sends a request and returns the status of its response.
async fn send(connection: &mut Http1Connection) -> Result<u16, ConnectionEnded> {
    let body = Payload::from(Bytes::from_static(b"{}"));
    let request = Unsent::new(b"POST / HTTP/1.1\r\n\r\n".to_vec(), &body);
    connection
        .send(request, true, |status, _| status.as_u16())
        .await
}

/// Sends a second request over a connection. The peer sends `before` ahead of it, and `after`
/// once it was written. Returns how it failed, and whether any byte was received.
async fn second(before: Option<&'static [u8]>, after: &'static [u8]) -> (ConnectionEnded, bool) {
    let inbox = Inbox::default();
    let script = Script {
        inbox: Arc::clone(&inbox),
        responses: VecDeque::from([RESPONSE, after]),
    };
    let mut connection = Http1Connection::new(Box::new(script), Duration::ZERO);
    assert_eq!(send(&mut connection).await.ok(), Some(200));
    assert!(connection.is_idle());
    inbox.lock().unwrap().extend(before);
    let sent = timeout(Duration::from_secs(20), send(&mut connection)).await;
    let ended = sent.expect("the end is reported at once").err().unwrap();
    (ended, connection.has_received())
}

#[tokio::test]
async fn connection_closed_before_the_request_has_its_own_error() {
    let (ended, has_received) = second(Some(b""), RESPONSE).await;
    assert!(!ended.was_written && !has_received, "{}", ended.error);
    let (ended, has_received) = second(None, b"").await;
    assert!(ended.was_written && !has_received, "{}", ended.error);
}

#[tokio::test]
async fn bytes_that_come_before_a_request_are_no_answer_to_it() {
    let (ended, has_received) = second(Some(RESPONSE), b"").await;
    assert!(!ended.was_written && has_received, "{}", ended.error);
}

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
