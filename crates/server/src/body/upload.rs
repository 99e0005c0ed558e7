//! Reading a request's body within bounds of size, time and memory.

use std::pin::pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::config::Limits;
use crate::refusal::Refusal;

/// The memory set aside for bodies, shared by all requests that are uploading.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Semaphore>);

/// A body that was read whole, and its part of the budget.
#[derive(Debug)]
pub(crate) struct Upload {
    /// The bytes.
    pub(crate) bytes: Bytes,
    _share: Option<OwnedSemaphorePermit>,
}

impl Budget {
    /// A budget of so many bytes, counted in whole blocks.
    pub(crate) fn new(bytes: u64) -> Self {
        let blocks = usize::try_from(bytes / BLOCK as u64).unwrap_or(usize::MAX);
        Self(Arc::new(Semaphore::new(blocks.min(Semaphore::MAX_PERMITS))))
    }

    fn take(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let blocks = u32::try_from(bytes.div_ceil(BLOCK)).map_err(|_| Refusal::too_large())?;
        Arc::clone(&self.0).try_acquire_many_owned(blocks).map_err(|_| Refusal::overloaded())
    }
}

/// Reads a body of at most `limit` bytes.
///
/// # Errors
/// 413 past the limit, 408 when it does not come in time, 503 past the budget, 400 when it breaks off.
pub(crate) async fn read<B>(body: B, limit: usize, limits: &Limits, budget: &Budget) -> Result<Upload, Refusal>
where
    B: Body<Data = Bytes>,
{
    timeout(limits.body_timeout, gather(body, limit, limits, budget)).await.map_err(|_| Refusal::slow_upload())?
}

async fn gather<B>(body: B, limit: usize, limits: &Limits, budget: &Budget) -> Result<Upload, Refusal>
where
    B: Body<Data = Bytes>,
{
    let mut body = pin!(body);
    let mut pieces = Pieces::default();
    let mut share: Option<OwnedSemaphorePermit> = None;
    while let Some(frame) = timeout(limits.body_idle, body.frame()).await.map_err(|_| Refusal::slow_upload())? {
        let Ok(piece) = frame.map_err(|_| Refusal::broken_upload())?.into_data() else { continue };
        if piece.len() > limit.saturating_sub(pieces.len()) {
            return Err(Refusal::too_large());
        }
        let more = budget.take(piece.len())?;
        match &mut share {
            Some(share) => share.merge(more),
            None => share = Some(more),
        }
        pieces.push(piece);
    }
    Ok(Upload { bytes: pieces.join(), _share: share })
}

/// What has come: one piece as it came, more of them joined.
#[derive(Default)]
struct Pieces {
    first: Bytes,
    joined: BytesMut,
}

impl Pieces {
    fn len(&self) -> usize {
        self.first.len() + self.joined.len()
    }

    fn push(&mut self, piece: Bytes) {
        if self.first.is_empty() && self.joined.is_empty() {
            self.first = piece;
        } else {
            let first = std::mem::take(&mut self.first);
            self.joined.extend_from_slice(&first);
            self.joined.extend_from_slice(&piece);
        }
    }

    fn join(self) -> Bytes {
        if self.joined.is_empty() { self.first } else { self.joined.freeze() }
    }
}

/// What the budget is counted in.
const BLOCK: usize = 1024;

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

    use http_body::Frame;
    use http_body_util::Full;

    use super::*;

    /// A body that gives its pieces and then, perhaps, nothing more for ever.
    struct Script(Vec<&'static [u8]>, bool);

    impl Body for Script {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match (self.0.is_empty(), self.1) {
                (false, _) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(self.0.remove(0)))))),
                (true, false) => Poll::Ready(None),
                (true, true) => Poll::Pending,
            }
        }
    }

    async fn code(body: impl Body<Data = Bytes>, limit: usize, budget: &Budget) -> Result<Bytes, &'static str> {
        let limits = Limits { body_idle: Duration::from_secs(1), ..Limits::default() };
        read(body, limit, &limits, budget).await.map(|upload| upload.bytes).map_err(|refusal| refusal.error.code)
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_is_exact_and_pieces_are_joined_in_order() {
        let budget = Budget::new(1 << 20);
        assert_eq!(code(Script(vec![b"ab", b"", b"c", b"de"], false), 5, &budget).await, Ok(Bytes::from("abcde")));
        assert_eq!(code(Script(vec![b"ab", b"cd", b"ef"], false), 5, &budget).await, Err("request_too_large"));
        assert_eq!(code(Full::new(Bytes::from_static(b"abcdef")), 5, &budget).await, Err("request_too_large"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stalls_is_given_up() {
        let budget = Budget::new(1 << 20);
        assert_eq!(code(Script(vec![b"ab"], true), 5, &budget).await, Err("request_timeout"));
    }

    #[tokio::test(start_paused = true)]
    async fn memory_goes_back_to_the_budget() {
        let budget = Budget::new(2048);
        let limits = Limits::default();
        let held = read(Script(vec![&[0; 2000]], false), 4096, &limits, &budget).await.unwrap();
        assert_eq!(code(Script(vec![b"a"], false), 5, &budget).await, Err("service_unavailable"));
        drop(held);
        assert!(code(Script(vec![b"a"], false), 5, &budget).await.is_ok());
    }
}
