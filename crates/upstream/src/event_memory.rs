//! The memory for long events. An event is buffered until it is complete, and may be a picture of
//! many megabytes: what events take above a size that every stream may use comes out of one budget
//! for all streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use engine::EngineError;

/// The budget for the long events of all streams. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct EventMemory(Arc<AtomicUsize>);

/// The memory that one stream holds of the budget.
#[derive(Debug)]
pub(crate) struct Lease {
    memory: EventMemory,
    held: usize,
}

impl EventMemory {
    /// Returns an empty lease.
    pub(crate) fn lease(&self) -> Lease {
        Lease {
            memory: self.clone(),
            held: 0,
        }
    }
}

impl Lease {
    /// Adapts the lease to a stream that has buffered this many bytes of an event.
    ///
    /// # Errors
    /// [`EngineError::Overloaded`] when the budget is exhausted.
    pub(crate) fn resize(&mut self, buffered: usize) -> Result<(), EngineError> {
        let needed = buffered.saturating_sub(FREE);
        if needed == self.held {
            return Ok(());
        }
        let held = self.held;
        let resized = |all: usize| Some(all - held + needed).filter(|all| *all <= ALL);
        let taken = &self.memory.0;
        // Relaxed: the count protects no other data.
        if taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, resized)
            .is_err()
        {
            return Err(EngineError::Overloaded {
                retry_after: None,
                reported: None,
            });
        }
        self.held = needed;
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.held, Ordering::Relaxed);
    }
}

/// The size up to which an event does not count, in bytes.
const FREE: usize = 1 << 20;
/// The budget of all streams, in bytes.
const ALL: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_events_share_a_budget_and_short_ones_need_none() {
        let memory = EventMemory::default();
        let taken = || memory.0.load(Ordering::Relaxed);
        let mut short = memory.lease();
        short.resize(1 << 20).unwrap();
        assert_eq!(taken(), 0);
        let mut long: Vec<_> = (0..9).map(|_| memory.lease()).collect();
        for lease in &mut long[..8] {
            lease.resize(33 << 20).unwrap();
        }
        assert_eq!(taken(), 256 << 20);
        let full = long[8].resize((1 << 20) + 1);
        assert!(matches!(full, Err(EngineError::Overloaded { .. })));
        short.resize(1 << 20).unwrap();
        long[0].resize(100).unwrap();
        long[8].resize(33 << 20).unwrap();
        drop(long);
        assert_eq!(taken(), 0);
    }
}
