//! The state of an attempt at a target, which its answer goes on to change.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use engine::TextEvent;

use crate::reported::{Report, Reported};

/// A target that is asked, and what it has sent so far.
#[derive(Debug, Default)]
pub struct Asked {
    /// The place of the target while it is asked and has not failed, plus one; 0 without such a target.
    place: AtomicUsize,
    /// The fields that the target could not be given, which are known before it has begun to answer.
    losses: RwLock<Vec<String>>,
    /// The kinds of content of the answer that the client's protocol cannot express.
    left_out: RwLock<Vec<&'static str>>,
    /// The usage and the images that the target has reported.
    pub reported: Reported,
    /// The length of the translated content that the target has sent, in bytes.
    content: AtomicU64,
    /// True if the target has sent events, but no content yet.
    opened: AtomicBool,
}

impl Asked {
    /// Notes that the target at this place among the targets of its model is asked.
    pub fn begin(&self, place: usize) {
        self.place.store(place + 1, Ordering::Relaxed);
        self.opened.store(false, Ordering::Relaxed);
    }

    /// Notes that the target has failed or was cancelled. Returns its place.
    pub fn end(&self) -> Option<usize> {
        self.opened.store(false, Ordering::Relaxed);
        self.place.swap(0, Ordering::Relaxed).checked_sub(1)
    }

    /// Returns the place of the target, while it is asked and has not failed.
    pub fn place(&self) -> Option<usize> {
        self.place.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Notes that the target has sent events without content.
    pub fn set_opened(&self) {
        self.opened.store(true, Ordering::Relaxed);
    }

    /// Returns true if the target has sent events, so that the wait for its content has the deadline of
    /// streams.
    pub fn has_opened(&self) -> bool {
        self.opened.load(Ordering::Relaxed)
    }

    /// Sets the fields that the target cannot be given.
    pub fn lose(&self, names: &[String]) {
        names.clone_into(&mut self.losses.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns the fields that the target could not be given.
    pub fn losses(&self) -> Vec<String> {
        let losses = self.losses.read().unwrap_or_else(PoisonError::into_inner);
        losses.clone()
    }

    /// Returns the kinds of content of the answer that the client's protocol cannot express.
    pub fn left_out(&self) -> RwLockReadGuard<'_, Vec<&'static str>> {
        self.left_out.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the length of an event, or the kind of content that it leaves out, if it is such an event.
    pub fn note(&self, event: &TextEvent) {
        self.content.fetch_add(event.length(), Ordering::Relaxed);
        if let TextEvent::LeftOut(kind) = event {
            let mut kinds = self
                .left_out
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            kinds.push(kind);
        }
    }

    /// Returns what the target has reported and the length of its content, and forgets both.
    #[must_use]
    pub fn take(&self) -> (Report, u64) {
        (
            self.reported.take(),
            self.content.swap(0, Ordering::Relaxed),
        )
    }
}
