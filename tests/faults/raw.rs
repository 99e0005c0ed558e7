//! A raw TCP client that sends arbitrary bytes and reports everything it receives.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A connection on which anything may be sent.
pub(crate) struct Raw(TcpStream);

/// Everything a gateway sent on a connection until it closed.
#[derive(Debug)]
pub(crate) struct Received(Vec<u8>);

impl Raw {
    #[allow(clippy::disallowed_methods, reason = "the server under test is dialled, on loopback")]
    pub(crate) fn open(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("the server accepts");
        socket.set_nodelay(true).expect("a socket can send at once");
        socket.set_read_timeout(Some(GUARD)).expect("a timeout can be set");
        Self(socket)
    }

    /// Sends bytes; returns false if the other side no longer accepts them.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.0.write_all(bytes.as_ref()).is_ok()
    }

    /// Reads until the gateway closes the connection, which it has to do without a reset.
    #[track_caller]
    pub(crate) fn read_to_end(&mut self) -> Received {
        let mut received = Vec::new();
        let result = self.0.read_to_end(&mut received);
        assert!(result.is_ok(), "{result:?} after {}", String::from_utf8_lossy(&received));
        Received(received)
    }

    /// Reads until the connection ends in any way.
    #[track_caller]
    pub(crate) fn await_end(&mut self) -> Received {
        let mut received = Vec::new();
        let waits = |error: &std::io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(!self.0.read_to_end(&mut received).is_err_and(|error| waits(&error)), "the gateway does not close");
        Received(received)
    }

    /// Sends `bytes` one at a time, each after a moment in which nothing was received, and returns what was received
    /// until the connection ended.
    #[track_caller]
    pub(crate) fn drip(&mut self, bytes: impl IntoIterator<Item = u8>) -> Received {
        let (mut received, mut space) = (Vec::new(), [0; 4096]);
        self.0.set_read_timeout(Some(MOMENT)).expect("a timeout can be set");
        for byte in bytes {
            match self.0.read(&mut space) {
                Ok(0) => return Received(received),
                Ok(read) => received.extend_from_slice(&space[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => drop(self.send([byte])),
                Err(_) => return Received(received),
            }
        }
        panic!("the gateway takes all of it");
    }
}

impl Received {
    /// The statuses of the responses.
    pub(crate) fn statuses(&self) -> Vec<u16> {
        let text = String::from_utf8_lossy(&self.0);
        let lines = text.split("HTTP/1.").skip(1).map(|response| response.get(2..5).expect("a status"));
        lines.map(|status| status.parse().expect("a status")).collect()
    }

    /// Returns true if the received bytes contain `text`.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.text().contains(text)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

/// Sends these bytes and returns what the gateway sent until it closed.
#[track_caller]
pub(crate) fn exchange(address: SocketAddr, bytes: impl AsRef<[u8]>) -> Received {
    let mut raw = Raw::open(address);
    raw.send(bytes);
    raw.read_to_end()
}

/// An upper bound against hanging, longer than anything takes.
const GUARD: Duration = Duration::from_secs(60);
/// The pause between two bytes of a slow client.
const MOMENT: Duration = Duration::from_millis(20);
