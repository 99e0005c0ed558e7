//! Feeding a parser of forms that would take all at once, and look for the head of a part without a bound.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;

use super::damaged;
use crate::refusal::Refusal;

/// How fast multer is fed, and how much while it looks for the head of a part.
#[derive(Clone, Default)]
pub(super) struct Pace(Arc<Seen>);

#[derive(Default)]
struct Seen {
    /// Whether it is to look at what it has first.
    hold: AtomicBool,
    /// Bytes of a head that it has looked at.
    looked_at: AtomicUsize,
    /// The piece after them, which it may not have.
    last: AtomicUsize,
}

impl Pace {
    /// Lets multer look at what it has, before it is given more.
    pub(super) fn hold(&self) {
        self.0.hold.store(true, Ordering::Relaxed);
    }

    /// Now it looks for the head of a part.
    pub(super) fn begin_head(&self) {
        self.hold();
        self.0.looked_at.store(0, Ordering::Relaxed);
        self.0.last.store(0, Ordering::Relaxed);
    }

    /// Now it has found one.
    pub(super) fn end_head(&self) {
        self.0.looked_at.store(IN_DATA, Ordering::Relaxed);
    }

    /// Comes when multer asks again, having looked.
    pub(super) async fn wanted(&self) {
        poll_fn(|cx| {
            if !self.0.hold.swap(false, Ordering::Relaxed) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// So many bytes were handed over.
    pub(super) fn went_by(&self, bytes: usize) {
        self.hold();
        let last = self.0.last.swap(bytes, Ordering::Relaxed);
        let looked_at = self.0.looked_at.load(Ordering::Relaxed);
        if looked_at != IN_DATA {
            self.0.looked_at.store(looked_at.saturating_add(last).min(IN_DATA - 1), Ordering::Relaxed);
        }
    }

    /// Whether the head that it looks for may go on.
    pub(super) fn check_head(&self) -> Result<(), Refusal> {
        match self.0.looked_at.load(Ordering::Relaxed) {
            MAX_HEAD..IN_DATA => Err(damaged("the head of a part is too long, or its boundary never comes")),
            _ => Ok(()),
        }
    }
}

/// The longest head of a part, its boundary included; the last piece of it is not counted.
pub(super) const MAX_HEAD: usize = 8 * 1024;
/// No head is being looked for.
const IN_DATA: usize = usize::MAX;
