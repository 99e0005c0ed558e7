//! The streams of an HTTP/2 connection: their tasks, and their response bodies.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use gateway::connection::state::ConnectionState;
use gateway::exchange::body::{Aborted, Body, whole};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::rt::Executor;
use telemetry::close_reason::CloseReason;
use tokio::time::Instant;

/// Runs the streams of a connection, each in a task of its own, and knows if there are any.
#[derive(Clone)]
pub(super) struct Streams {
    connection: Arc<ConnectionState>,
    write_stall: Duration,
    open: Arc<Mutex<Open>>,
}

struct Open {
    streams: usize,
    /// The time at which the last stream has ended.
    last_end: Instant,
}

/// A stream whose request is being answered.
pub(super) struct Stream {
    /// The state of the stream.
    pub(super) state: Arc<ConnectionState>,
    /// The time since which a part of the response waits for the client to read. hyper takes a part
    /// from the body when the client has room for the part before.
    waiting: Mutex<Option<Instant>>,
}

tokio::task_local! {
    static CURRENT: Arc<Stream>;
}

/// Returns the stream of the current task.
pub(super) fn current() -> Arc<Stream> {
    CURRENT.with(Arc::clone)
}

impl Streams {
    /// The streams of a connection that was just opened. A client that does not read a part of a
    /// response within `write_stall` gets a reset of its stream.
    pub(super) fn new(connection: Arc<ConnectionState>, write_stall: Duration) -> Self {
        let open = Open {
            streams: 0,
            last_end: Instant::now(),
        };
        Self {
            connection,
            write_stall,
            open: Arc::new(Mutex::new(open)),
        }
    }

    /// Ready when there was no stream for this time.
    pub(super) fn poll_idle(&self, cx: &mut Context<'_>, time: Duration) -> Poll<()> {
        loop {
            let idle_since = self.idle_since().unwrap_or_else(Instant::now);
            ready!(self.connection.timer.poll(cx, idle_since + time));
            // A stream may have begun and ended since the timer was set.
            let idle_since = self.idle_since();
            if idle_since.is_some_and(|since| since + time <= Instant::now()) {
                return Poll::Ready(());
            }
        }
    }

    /// The time since which there is no stream; `None` if there is one.
    fn idle_since(&self) -> Option<Instant> {
        let open = self.open();
        (open.streams == 0).then_some(open.last_end)
    }

    /// Lets the idle time begin now.
    pub(super) fn begin_idle(&self) {
        self.open().last_end = Instant::now();
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // No step of a change panics halfway.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, exchange: F) {
        let stream = Arc::new(Stream {
            state: Arc::new(ConnectionState::stream(&self.connection)),
            waiting: Mutex::default(),
        });
        let open = OpenStream::new(self.clone());
        let write_stall = self.write_stall;
        let task = async move {
            let (_open, stream) = (open, current());
            let mut exchange = pin!(exchange);
            // Dropping an exchange that is not complete resets the stream.
            poll_fn(|cx| match exchange.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => stream.poll_stalled(cx, write_stall),
            })
            .await;
        };
        tokio::spawn(CURRENT.scope(stream, task));
    }
}

/// A stream that counts as open.
struct OpenStream(Streams);

impl OpenStream {
    fn new(streams: Streams) -> Self {
        streams.open().streams += 1;
        Self(streams)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut open = self.0.open();
        open.streams -= 1;
        open.last_end = Instant::now();
    }
}

impl Stream {
    fn waiting(&self) -> MutexGuard<'_, Option<Instant>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ready when a part of the response has waited for too long.
    fn poll_stalled(&self, cx: &mut Context<'_>, write_stall: Duration) -> Poll<()> {
        let Some(since) = *self.waiting() else {
            return Poll::Pending;
        };
        ready!(self.state.timer.poll(cx, since + write_stall));
        self.state.close(CloseReason::SlowReader);
        Poll::Ready(())
    }
}

/// The body of a response, in parts of at most one frame.
pub(super) struct StreamBody {
    body: Body,
    /// The part of a frame that is not taken yet.
    rest: Bytes,
    stream: Option<Arc<Stream>>,
}

impl StreamBody {
    pub(super) fn new(body: Body, stream: Arc<Stream>) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            stream: Some(stream),
        }
    }

    pub(super) fn empty() -> Self {
        Self {
            body: whole(Bytes::new()),
            rest: Bytes::new(),
            stream: None,
        }
    }

    fn set_waiting(&self, since: Option<Instant>) {
        if let Some(stream) = &self.stream {
            *stream.waiting() = since;
        }
    }
}

impl HttpBody for StreamBody {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        let this = &mut *self;
        this.set_waiting(None);
        while this.rest.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                end => return Poll::Ready(end),
            }
        }
        this.set_waiting(Some(Instant::now()));
        let part = this.rest.split_to(this.rest.len().min(MAX_PART));
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.rest.is_empty() {
            true => self.body.size_hint(),
            false => SizeHint::default(),
        }
    }
}

/// The largest frame that every client accepts (RFC 9113 §4.2).
const MAX_PART: usize = 16 << 10;
