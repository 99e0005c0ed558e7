//! Paces the input of multer, which would buffer everything at once and search for a part's headers
//! without a limit.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;

use crate::exchange::refusal::Refusal;

/// The pace at which multer is fed, shared by the feeding stream and the reader of parts.
#[derive(Clone, Default)]
pub(super) struct Pace(Arc<State>);

#[derive(Default)]
struct State {
    /// True if multer must parse its buffer before it gets more.
    hold: AtomicBool,
    /// The bytes of the current part's headers that multer has parsed.
    parsed: AtomicUsize,
    /// The length of the chunk after them, which multer may not have parsed yet.
    last: AtomicUsize,
}

impl Pace {
    /// Makes multer parse its buffer before it gets more.
    pub(super) fn hold(&self) {
        self.0.hold.store(true, Ordering::Relaxed);
    }

    /// Notes that multer starts to search for the headers of a part.
    pub(super) fn begin_head(&self) {
        self.hold();
        self.0.parsed.store(0, Ordering::Relaxed);
        self.0.last.store(0, Ordering::Relaxed);
    }

    /// Notes that multer has found the headers of a part.
    pub(super) fn end_head(&self) {
        self.0.parsed.store(IN_DATA, Ordering::Relaxed);
    }

    /// Waits until multer has parsed its buffer and polls for more.
    pub(super) async fn wait_for_parser(&self) {
        poll_fn(|cx| {
            if !self.0.hold.swap(false, Ordering::Relaxed) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Notes that a chunk of this many bytes was passed to multer.
    pub(super) fn record(&self, bytes: usize) {
        self.hold();
        let last = self.0.last.swap(bytes, Ordering::Relaxed);
        let parsed = self.0.parsed.load(Ordering::Relaxed);
        if parsed != IN_DATA {
            self.0.parsed.store(
                parsed.saturating_add(last).min(IN_DATA - 1),
                Ordering::Relaxed,
            );
        }
    }

    /// Refuses the form if multer has parsed too many bytes without finding the end of a part's
    /// headers.
    pub(super) fn check_head(&self) -> Result<(), Refusal> {
        match self.0.parsed.load(Ordering::Relaxed) {
            MAX_HEAD..IN_DATA => Err(Refusal::malformed_form(
                "the head of a part is too long, or its boundary never comes",
            )),
            _ => Ok(()),
        }
    }
}

/// The maximum length of a part's headers with the boundary before them, in bytes; the last chunk
/// is not counted.
pub(super) const MAX_HEAD: usize = 8 * 1024;
/// The value of `parsed` while multer is not searching for headers.
const IN_DATA: usize = usize::MAX;
