//! The memory for long events. An event is buffered until it is complete, and may be a picture of
//! many megabytes. Every stream may use a small size; the bytes of an event above that size come
//! out of one budget for all streams. The streams of one client can take half of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::EngineError;

/// The budget for the long events of all streams. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct EventMemory(Arc<Mutex<Taken>>);

/// The bytes that are taken from the budget.
#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// By client; clients that hold nothing have no entry.
    of_clients: HashMap<Arc<str>, usize>,
}

/// The memory that one stream holds of the budget.
#[derive(Debug)]
pub(crate) struct Lease {
    memory: EventMemory,
    client: Arc<str>,
    held: usize,
}

impl EventMemory {
    /// Returns an empty lease of this client.
    pub(crate) fn lease(&self, client: Arc<str>) -> Lease {
        Lease {
            memory: self.clone(),
            client,
            held: 0,
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// Replaces the number of bytes that a stream of the client holds. Returns false, and changes
    /// nothing, if the budget or the part of the client is exhausted.
    fn replace(&mut self, client: &Arc<str>, held: usize, needed: usize) -> bool {
        let all = self.all - held + needed;
        let of_client = self.of_clients.get(client).copied().unwrap_or_default();
        let of_client = of_client - held + needed;
        if needed > held && (all > ALL || of_client > PER_CLIENT) {
            return false;
        }
        self.all = all;
        if of_client == 0 {
            self.of_clients.remove(client);
        } else {
            self.of_clients.insert(Arc::clone(client), of_client);
        }
        true
    }
}

impl Lease {
    /// Adapts the lease to a stream that has buffered this many bytes of an event.
    ///
    /// # Errors
    /// [`EngineError::Overloaded`] when the budget, or the part of the client, is exhausted.
    pub(crate) fn resize(&mut self, buffered: usize) -> Result<(), EngineError> {
        let needed = buffered.saturating_sub(FREE);
        if needed == self.held {
            return Ok(());
        }
        if !self.memory.taken().replace(&self.client, self.held, needed) {
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
        if self.held > 0 {
            self.memory.taken().replace(&self.client, self.held, 0);
        }
    }
}

/// The size up to which an event does not count, in bytes.
const FREE: usize = 1 << 20;
/// The budget of all streams, in bytes.
const ALL: usize = 256 << 20;
/// The part of it that the streams of one client can take, which has room for several of the largest
/// events.
const PER_CLIENT: usize = ALL / 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn is_full(lease: &mut Lease, buffered: usize) -> bool {
        matches!(lease.resize(buffered), Err(EngineError::Overloaded { .. }))
    }

    #[test]
    fn long_events_share_a_budget_and_short_ones_need_none() {
        let memory = EventMemory::default();
        let taken = || memory.taken().all;
        let mut short = memory.lease("short".into());
        short.resize(1 << 20).unwrap();
        assert_eq!(taken(), 0);
        let clients = ["a", "a", "a", "a", "b", "b", "b", "b", "c"];
        let mut long: Vec<_> = clients
            .iter()
            .map(|client| memory.lease((*client).into()))
            .collect();
        for lease in &mut long[..8] {
            lease.resize(33 << 20).unwrap();
        }
        assert_eq!(taken(), 256 << 20);
        assert!(is_full(&mut long[8], (1 << 20) + 1));
        short.resize(1 << 20).unwrap();
        long[0].resize(100).unwrap();
        long[8].resize(33 << 20).unwrap();
        drop(long);
        assert_eq!(taken(), 0);
        assert!(memory.taken().of_clients.is_empty());
    }

    #[test]
    fn the_long_events_of_one_client_leave_room_for_others() {
        let memory = EventMemory::default();
        let mut greedy: Vec<_> = (0..60).map(|_| memory.lease("greedy".into())).collect();
        let failed = greedy
            .iter_mut()
            .filter_map(|lease| is_full(lease, 7 << 20).then_some(()));
        // 21 times 6 MiB are within 128 MiB.
        assert_eq!(failed.count(), 39);
        let mut modest = memory.lease("modest".into());
        modest.resize(32 << 20).unwrap();
        assert!(is_full(&mut greedy[59], 7 << 20));
        greedy[0].resize(0).unwrap();
        greedy[59].resize(7 << 20).unwrap();
        // An event that gets shorter always has room.
        greedy[59].resize(6 << 20).unwrap();
    }
}
