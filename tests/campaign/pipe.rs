//! Connections in memory that can be reset.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use simulator::Socket;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadBuf, duplex};
use upstream::Connection;

/// One side of a connection. Dropping it closes the connection.
pub(crate) struct Pipe {
    stream: DuplexStream,
    /// True if closing this side is a reset.
    resets: Arc<AtomicBool>,
    /// True if closing the other side is a reset.
    is_reset: Arc<AtomicBool>,
    /// Counts sides of the gateway.
    _counted: Option<Counted>,
    /// Records the bytes that this side writes.
    recorder: Option<Recorder>,
}

/// Records the bytes that one side of a connection writes, on one tape after another.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Mutex<Tape>>);

impl Recorder {
    /// Starts a new tape, and returns it.
    pub(crate) fn next(&self) -> Tape {
        let tape = Tape::default();
        lock(&self.0).clone_from(&tape);
        tape
    }

    /// The current tape.
    fn tape(&self) -> Tape {
        lock(&self.0).clone()
    }
}

/// A record of written bytes.
#[derive(Clone, Default)]
pub(crate) struct Tape(Arc<Mutex<Written>>);

/// The bytes that were written, and how the connection ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    pub(crate) bytes: Vec<u8>,
    /// True if the side that wrote them closed or reset the connection.
    pub(crate) is_closed: bool,
}

impl Tape {
    /// Everything that is on it so far.
    pub(crate) fn written(&self) -> Written {
        lock(&self.0).clone()
    }

    fn add(&self, bytes: &[u8]) {
        lock(&self.0).bytes.extend(bytes);
    }

    fn close(&self) {
        lock(&self.0).is_closed = true;
    }
}

fn lock<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of connection sides that the gateway holds.
#[derive(Clone, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

struct Counted(Count);

impl Count {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Both sides of a new connection with this capacity in each direction: the gateway's, and the
/// other.
pub(crate) fn pair(capacity: usize, count: &Count) -> (Pipe, Pipe) {
    let (one, other) = duplex(capacity);
    let (here, there) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    count.0.fetch_add(1, Ordering::Relaxed);
    let counted = Some(Counted(count.clone()));
    let gateways = Pipe {
        stream: one,
        resets: Arc::clone(&here),
        is_reset: Arc::clone(&there),
        _counted: counted,
        recorder: None,
    };
    (
        gateways,
        Pipe {
            stream: other,
            resets: there,
            is_reset: here,
            _counted: None,
            recorder: None,
        },
    )
}

impl Pipe {
    /// Records the bytes that this side writes from now on.
    pub(crate) fn recorded(self, recorder: Recorder) -> Self {
        Self {
            recorder: Some(recorder),
            ..self
        }
    }

    fn note_close(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.tape().close();
        }
    }

    /// Half-closes the connection.
    pub(crate) async fn half_close(&mut self) {
        // The other side may be closed already.
        let _ = self.stream.shutdown().await;
    }

    /// Closes the connection with a reset.
    pub(crate) fn reset(self) {
        self.resets.store(true, Ordering::Relaxed);
    }
}

impl Connection for Pipe {
    fn peer(&self) -> io::Result<SocketAddr> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Socket for Pipe {
    fn reset_at_close(&self) -> io::Result<()> {
        self.resets.store(true, Ordering::Relaxed);
        self.note_close();
        Ok(())
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, into))?;
        // Data that was sent before a reset is read first, as from a socket.
        let is_end = into.filled().len() == before && into.remaining() > 0;
        if is_end && self.is_reset.load(Ordering::Relaxed) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        if let Some(recorder) = &self.recorder {
            recorder.tape().add(&bytes[..written]);
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.note_close();
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
