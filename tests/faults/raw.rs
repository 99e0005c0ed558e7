//! A client that minds no rule: it sends bytes as they are, and reports all that comes back.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A connection on which anything may be sent.
pub(crate) struct Raw(TcpStream);

/// All that a gateway said on a connection until it closed.
#[derive(Debug)]
pub(crate) struct Said(Vec<u8>);

impl Raw {
    #[allow(clippy::disallowed_methods, reason = "the server under test is dialled, on loopback")]
    pub(crate) fn open(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("the server accepts");
        socket.set_nodelay(true).expect("a socket can send at once");
        socket.set_read_timeout(Some(GUARD)).expect("a timeout can be set");
        Self(socket)
    }

    /// Sends what the other side takes.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.0.write_all(bytes.as_ref()).is_ok()
    }

    /// What is said until the gateway closes, which it has to do without a reset.
    #[track_caller]
    pub(crate) fn hear(&mut self) -> Said {
        let mut said = Vec::new();
        let heard = self.0.read_to_end(&mut said);
        assert!(heard.is_ok(), "{heard:?} after {}", String::from_utf8_lossy(&said));
        Said(said)
    }

    /// Waits for the end, of whichever kind.
    #[track_caller]
    pub(crate) fn await_end(&mut self) -> Said {
        let mut said = Vec::new();
        let waits = |error: &std::io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(!self.0.read_to_end(&mut said).is_err_and(|error| waits(&error)), "the gateway does not close");
        Said(said)
    }

    /// Sends `bytes` one at a time, each after a moment in which nothing came: what is said until the connection ends.
    #[track_caller]
    pub(crate) fn drip(&mut self, bytes: impl IntoIterator<Item = u8>) -> Said {
        let (mut said, mut space) = (Vec::new(), [0; 4096]);
        self.0.set_read_timeout(Some(MOMENT)).expect("a timeout can be set");
        for byte in bytes {
            match self.0.read(&mut space) {
                Ok(0) => return Said(said),
                Ok(read) => said.extend_from_slice(&space[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => drop(self.send([byte])),
                Err(_) => return Said(said),
            }
        }
        panic!("the gateway takes all of it");
    }
}

impl Said {
    /// The statuses of its responses.
    pub(crate) fn statuses(&self) -> Vec<u16> {
        let text = String::from_utf8_lossy(&self.0);
        let lines = text.split("HTTP/1.").skip(1).map(|response| response.get(2..5).expect("a status"));
        lines.map(|status| status.parse().expect("a status")).collect()
    }

    /// Whether this is among it.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.text().contains(text)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

/// What a gateway says to these bytes until it closes.
#[track_caller]
pub(crate) fn say(address: SocketAddr, bytes: impl AsRef<[u8]>) -> Said {
    let mut raw = Raw::open(address);
    raw.send(bytes);
    raw.hear()
}

/// Longer than anything takes: a guard against hanging, not a measure.
const GUARD: Duration = Duration::from_secs(60);
/// Between two bytes of a slow client.
const MOMENT: Duration = Duration::from_millis(20);
