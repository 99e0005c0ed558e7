//! Reads request bodies within limits of size, time and memory.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::pieces::Pieces;
use crate::config::Limits;
use crate::refusal::Refusal;

/// The memory budget for request bodies, shared by all requests.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Semaphore>);

/// The memory that one body holds of the budget. It is released when the last clone is dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Share(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
struct Held {
    permit: Option<OwnedSemaphorePermit>,
    bytes: usize,
}

/// A completely read body, and its share of the budget.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) bytes: Bytes,
    pub(crate) share: Share,
}

/// A request body that is read chunk by chunk.
pub(crate) struct Incoming<B> {
    body: Pin<Box<B>>,
    left: usize,
    idle: Duration,
    /// The time by which the next chunk must arrive to keep the minimum rate; each chunk extends
    /// it.
    due: Instant,
    /// The minimum rate, in bytes per second.
    rate: u64,
    deadline: Instant,
    budget: Budget,
    /// The share of the budget, which grows while the body is read.
    pub(crate) share: Share,
}

impl Budget {
    /// Creates a budget of this many bytes, rounded down to blocks.
    pub(crate) fn new(bytes: u64) -> Self {
        let blocks = usize::try_from(bytes / BLOCK as u64).unwrap_or(usize::MAX);
        Self(Arc::new(Semaphore::new(blocks.min(Semaphore::MAX_PERMITS))))
    }
}

impl Share {
    /// Takes this many more bytes from `budget`, or returns 503 if it is exhausted.
    pub(crate) fn grow(&self, bytes: usize, budget: &Budget) -> Result<(), Refusal> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = (held.bytes + bytes).div_ceil(BLOCK) - held.bytes.div_ceil(BLOCK);
        let blocks = u32::try_from(missing).map_err(|_| Refusal::too_large())?;
        let more = Arc::clone(&budget.0)
            .try_acquire_many_owned(blocks)
            .map_err(|_| Refusal::overloaded())?;
        held.bytes += bytes;
        match &mut held.permit {
            Some(permit) => permit.merge(more),
            None => held.permit = Some(more),
        }
        Ok(())
    }

    /// Returns this many bytes to the budget.
    pub(crate) fn shrink(&self, bytes: usize) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = held.bytes.saturating_sub(bytes);
        let blocks = held.bytes.div_ceil(BLOCK) - left.div_ceil(BLOCK);
        held.bytes = left;
        drop(held.permit.as_mut().and_then(|permit| permit.split(blocks)));
    }
}

impl<B: Body<Data = Bytes, Error: Error>> Incoming<B> {
    /// Prepares to read a body of at most `limit` bytes; its timeouts start now.
    pub(crate) fn new(body: B, limit: usize, limits: &Limits, budget: &Budget) -> Self {
        let now = Instant::now();
        Self {
            body: Box::pin(body),
            left: limit,
            idle: limits.body_idle,
            due: now + limits.body_grace,
            rate: limits.body_rate.as_u64().max(1),
            deadline: now + limits.body_timeout,
            budget: budget.clone(),
            share: Share::default(),
        }
    }

    /// Reads the next chunk; `None` at the end. Returns 413 over the limit, 408 on a timeout, 503
    /// if the budget is exhausted, and 400 if the body is truncated.
    pub(crate) async fn next_chunk(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            let until = self.deadline.min(self.due).min(Instant::now() + self.idle);
            let frame = timeout_at(until, self.body.frame())
                .await
                .map_err(|_| Refusal::slow_upload())?;
            let Some(frame) = frame else { return Ok(None) };
            let Ok(chunk) = frame.map_err(|error| body_error(&error))?.into_data() else {
                continue;
            };
            self.left = self
                .left
                .checked_sub(chunk.len())
                .ok_or_else(Refusal::too_large)?;
            self.share.grow(chunk.len(), &self.budget)?;
            self.due += Duration::from_secs_f64(chunk.len() as f64 / self.rate as f64);
            return Ok(Some(chunk));
        }
    }

    /// Reads the complete body. Its errors are those of [`Incoming::next_chunk`].
    pub(crate) async fn collect(mut self) -> Result<Upload, Refusal> {
        let mut pieces = Pieces::default();
        while let Some(chunk) = self.next_chunk().await? {
            pieces.push(chunk);
        }
        Ok(Upload {
            bytes: pieces.join(),
            share: self.share,
        })
    }
}

/// Returns the refusal for a body that failed: the client has disconnected, or its HTTP is
/// malformed.
fn body_error(error: &dyn Error) -> Refusal {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.downcast_ref().is_some_and(is_connection_error) {
            return Refusal::client_gone();
        }
        cause = error.source();
    }
    Refusal::broken_upload()
}

/// Returns true if the connection failed, rather than the bytes received over it being malformed.
fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, TimedOut, UnexpectedEof,
    };
    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | TimedOut | UnexpectedEof
    )
}

/// The unit of the budget, in bytes.
const BLOCK: usize = 1024;

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::task::{Context, Poll};

    use bytesize::ByteSize;
    use futures_util::StreamExt;
    use http_body::Frame;
    use http_body_util::{Full, StreamBody};

    use super::*;

    const LONG: Duration = Duration::from_secs(1000);

    /// A body that returns these chunks and then ends, or stalls forever if the flag is set.
    struct Script(Vec<&'static [u8]>, bool);

    impl Body for Script {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match (self.0.is_empty(), self.1) {
                (false, _) => {
                    Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(self.0.remove(0))))))
                }
                (true, false) => Poll::Ready(None),
                (true, true) => Poll::Pending,
            }
        }
    }

    async fn code(
        body: impl Body<Data = Bytes, Error: Error>,
        limit: usize,
        budget: &Budget,
    ) -> Result<Bytes, &'static str> {
        let limits = Limits {
            body_idle: Duration::from_secs(1),
            ..Limits::default()
        };
        let upload = Incoming::new(body, limit, &limits, budget).collect().await;
        upload
            .map(|upload| upload.bytes)
            .map_err(|refusal| refusal.error.code)
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_is_exact_and_pieces_are_joined_in_order() {
        let budget = Budget::new(1 << 20);
        assert_eq!(
            code(Script(vec![b"ab", b"", b"c", b"de"], false), 5, &budget).await,
            Ok(Bytes::from("abcde"))
        );
        assert_eq!(
            code(Script(vec![b"ab", b"cd", b"ef"], false), 5, &budget).await,
            Err("request_too_large")
        );
        assert_eq!(
            code(Full::new(Bytes::from_static(b"abcdef")), 5, &budget).await,
            Err("request_too_large")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stalls_is_given_up() {
        let budget = Budget::new(1 << 20);
        let started = Instant::now();
        assert_eq!(
            code(Script(vec![b"ab"], true), 5, &budget).await,
            Err("request_timeout")
        );
        assert_eq!(started.elapsed(), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_has_its_time_however_steadily_it_comes() {
        let budget = Budget::new(1 << 20);
        let limits = Limits {
            body_rate: ByteSize::b(1),
            body_timeout: Duration::from_secs(50),
            ..Limits::default()
        };
        let started = Instant::now();
        let late = Incoming::new(slow(100), 100, &limits, &budget)
            .collect()
            .await;
        assert_eq!(
            (late.unwrap_err().error.code, started.elapsed().as_secs()),
            ("request_timeout", 50)
        );
    }

    /// Returns a body of single bytes, one per second.
    fn slow(bytes: usize) -> impl Body<Data = Bytes, Error = Infallible> {
        StreamBody::new(futures_util::stream::iter(0..bytes).then(|_| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(Frame::data(Bytes::from_static(b"x")))
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_keeps_its_pace_or_is_given_up() {
        let budget = Budget::new(1 << 20);
        let limits = |rate| Limits {
            body_rate: ByteSize::b(rate),
            body_timeout: LONG,
            ..Limits::default()
        };
        let at_pace = Incoming::new(slow(100), 100, &limits(1), &budget)
            .collect()
            .await;
        assert_eq!(at_pace.unwrap().bytes.len(), 100);
        let started = Instant::now();
        let behind = Incoming::new(slow(100), 100, &limits(2), &budget)
            .collect()
            .await;
        assert_eq!(behind.unwrap_err().error.code, "request_timeout");
        // Ten seconds of grace, and half a second for each byte received.
        assert_eq!(started.elapsed().as_secs(), 19);
    }

    #[tokio::test(start_paused = true)]
    async fn memory_goes_back_to_the_budget() {
        let budget = Budget::new(2048);
        let limits = Limits::default();
        let held = Incoming::new(Script(vec![&[0; 2000]], false), 4096, &limits, &budget)
            .collect()
            .await
            .unwrap();
        assert_eq!(
            code(Script(vec![b"a"], false), 5, &budget).await,
            Err("service_unavailable")
        );
        drop(held);
        assert!(code(Script(vec![b"a"], false), 5, &budget).await.is_ok());
    }

    /// Memory that a body returns before its end is available to other bodies at once.
    #[test]
    fn a_share_shrinks() {
        let (budget, share, other) = (Budget::new(4096), Share::default(), Share::default());
        share.grow(4096, &budget).unwrap();
        assert!(other.grow(1, &budget).is_err());
        share.shrink(1024);
        other.grow(1024, &budget).unwrap();
        assert!(other.grow(1, &budget).is_err());
        share.shrink(3072);
        other.grow(3072, &budget).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn small_pieces_take_no_more_of_the_budget_than_they_are() {
        let budget = Budget::new(1024);
        assert!(
            code(Script(vec![b"a"; 1000], false), 2000, &budget)
                .await
                .is_ok()
        );
    }
}
