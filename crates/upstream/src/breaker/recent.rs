//! The outcomes of recent requests.

use std::time::{Duration, Instant};

/// The outcomes of the last window, counted in slices of time. The oldest slice is dropped as a
/// whole.
#[derive(Debug, Default)]
pub(super) struct Recent {
    slices: [Count; SLICES],
    /// The current slice, and its start.
    at: usize,
    since: Option<Instant>,
}

/// A number of attempts, and of the failures among them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) attempts: u32,
    pub(super) failures: u32,
}

impl Recent {
    /// Adds an attempt at `now`, and drops those that are older than `window`.
    pub(super) fn record(&mut self, is_failure: bool, window: Duration, now: Instant) {
        let since = *self.since.get_or_insert(now);
        let elapsed = now.saturating_duration_since(since);
        let width = (window / SLICES as u32).max(Duration::from_nanos(1));
        if elapsed >= window {
            // Nothing that was counted is that recent.
            *self = Self {
                since: Some(now),
                ..Self::default()
            };
        } else if elapsed >= width {
            self.advance(elapsed, width, since);
        }
        let current = &mut self.slices[self.at];
        current.attempts = current.attempts.saturating_add(1);
        current.failures = current.failures.saturating_add(u32::from(is_failure));
    }

    /// Begins the slices whose time has come, fewer than there are.
    fn advance(&mut self, mut elapsed: Duration, width: Duration, mut since: Instant) {
        while elapsed >= width {
            self.at = (self.at + 1) % SLICES;
            self.slices[self.at] = Count::default();
            elapsed -= width;
            since += width;
        }
        self.since = Some(since);
    }

    /// Returns the numbers of the whole window.
    pub(super) fn sum(&self) -> Count {
        let add = |sum: Count, slice: &Count| Count {
            attempts: sum.attempts.saturating_add(slice.attempts),
            failures: sum.failures.saturating_add(slice.failures),
        };
        self.slices.iter().fold(Count::default(), add)
    }
}

/// The number of slices of a window.
const SLICES: usize = 10;
