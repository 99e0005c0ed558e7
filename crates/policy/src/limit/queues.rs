//! The requests that wait for a quota which has a queue.
//!
//! The first one of a queue has the *turn*: it alone asks the ledger again, whenever a request of
//! the quota has ended. Once it is admitted or gives up, the turn goes to the next one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quota::{FairQueue, LimitId};
use tokio::sync::futures::Notified;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Notify, oneshot};

/// The queues of all quotas.
#[derive(Debug, Default)]
pub(super) struct Queues {
    queues: Mutex<HashMap<QueueId, Queue>>,
    /// The requests that wait, including those that have the turn.
    waiting: AtomicUsize,
    tickets: AtomicU64,
}

/// The identity of a queue: a quota, and the key if it counts each key by itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct QueueId {
    pub(super) limit: LimitId,
    pub(super) scope: String,
}

#[derive(Debug, Default)]
struct Queue {
    /// The requests behind the one that has the turn.
    waiting: FairQueue<Waiter>,
    /// Wakes the one that has the turn.
    changed: Arc<Notify>,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    turn: oneshot::Sender<()>,
}

/// The queues of the quotas for which a request releases something when it ends.
#[derive(Debug)]
pub(super) struct QueuesToWake {
    pub(super) queues: Arc<Queues>,
    pub(super) ids: Vec<QueueId>,
}

/// The place of a request in a queue. Dropping it leaves the queue, and passes the turn on.
#[derive(Debug)]
pub(super) struct Place<'a> {
    queues: &'a Queues,
    id: QueueId,
    key: &'a str,
    ticket: u64,
    changed: Arc<Notify>,
    /// `None` once the request has the turn.
    turn: Option<oneshot::Receiver<()>>,
    /// True if the place was taken away for a request of another key.
    is_displaced: bool,
}

impl Queues {
    /// Returns the number of requests that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Returns true if requests wait in a queue.
    pub(super) fn has(&self, id: &QueueId) -> bool {
        self.lock().contains_key(id)
    }

    /// Lets a request of a key wait in a queue. If `depth` requests wait already, it takes the
    /// place of the newest request of the key that has the most waiting; if its own key has as
    /// many, it is refused.
    pub(super) fn join<'a>(&'a self, id: QueueId, key: &'a str, depth: usize) -> Option<Place<'a>> {
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        let (changed, turn) = match self.lock().entry(id.clone()) {
            Entry::Vacant(vacant) => (Arc::clone(&vacant.insert(Queue::default()).changed), None),
            Entry::Occupied(mut occupied) => {
                let Queue { waiting, changed } = occupied.get_mut();
                // The one that has the turn waits as well.
                if waiting.len() + 1 >= depth {
                    waiting.displace(key)?;
                }
                let (turn, receiver) = oneshot::channel();
                waiting.push(key, Waiter { ticket, turn });
                (Arc::clone(changed), Some(receiver))
            }
        };
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Some(Place {
            queues: self,
            id,
            key,
            ticket,
            changed,
            turn,
            is_displaced: false,
        })
    }

    /// Notes that the quotas have changed.
    pub(super) fn note_change(&self) {
        let queues = self.lock();
        queues
            .values()
            .for_each(|queue| queue.changed.notify_waiters());
    }

    /// Gives the turn to the next request of a queue, or removes the queue.
    fn pass_on(&self, id: &QueueId) {
        let mut queues = self.lock();
        let Some(queue) = queues.get_mut(id) else {
            return;
        };
        while let Some(waiter) = queue.waiting.pop() {
            if waiter.turn.send(()).is_ok() {
                return;
            }
        }
        queues.remove(id);
    }

    /// Ignores poisoning: no code panics while a queue is inconsistent.
    fn lock(&self) -> MutexGuard<'_, HashMap<QueueId, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueuesToWake {
    /// Lets the requests that have the turn try again.
    pub(super) fn wake(&self) {
        if self.queues.waiting() > 0 {
            let queues = self.queues.lock();
            let of_ids = self.ids.iter().filter_map(|id| queues.get(id));
            of_ids.for_each(|queue| queue.changed.notify_waiters());
        }
    }
}

impl Place<'_> {
    pub(super) fn id(&self) -> &QueueId {
        &self.id
    }

    /// Returns a future that ends after the next change from now on, also if it is polled later.
    pub(super) fn next_change(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Waits for the turn. Returns false if the place was taken away instead.
    pub(super) async fn turn(&mut self) -> bool {
        if let Some(turn) = &mut self.turn {
            // The sender is in the queue as long as this place is.
            self.is_displaced = turn.await.is_err();
            self.turn = None;
        }
        !self.is_displaced
    }

    /// Leaves the queue. Returns false if this request has the turn, even if it does not know yet.
    fn leave(&self) -> bool {
        let mut queues = self.queues.lock();
        let queue = queues.get_mut(&self.id);
        let is_this = |waiter: &Waiter| waiter.ticket == self.ticket;
        queue.is_some_and(|queue| queue.waiting.remove(self.key, is_this).is_some())
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.queues.waiting.fetch_sub(1, Ordering::Relaxed);
        // A request that does not know yet that its place was taken away finds the sender gone.
        if let Some(turn) = &mut self.turn {
            self.is_displaced = matches!(turn.try_recv(), Err(TryRecvError::Closed));
        }
        if !self.is_displaced && (self.turn.is_none() || !self.leave()) {
            self.queues.pass_on(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn id() -> QueueId {
        let ledger = quota::SharedLedger::new();
        let limits = ledger
            .lock()
            .set_limits([("q".into(), quota::Caps::concurrency(1).into())]);
        QueueId {
            limit: limits[0],
            scope: String::new(),
        }
    }

    fn has_turn(place: &mut Place<'_>) -> bool {
        place.turn().now_or_never() == Some(true)
    }

    #[test]
    fn the_turn_passes_from_key_to_key() {
        let queues = Queues::default();
        let join = |key| queues.join(id(), key, 10).unwrap();
        let (mut a1, mut a2, mut a3, mut b) = (join("a"), join("a"), join("a"), join("b"));
        assert!(has_turn(&mut a1) && !has_turn(&mut a2) && !has_turn(&mut b));
        drop(a1);
        assert!(has_turn(&mut a2) && !has_turn(&mut a3) && !has_turn(&mut b));
        drop(a2);
        assert!(has_turn(&mut b) && !has_turn(&mut a3));
        drop(b);
        assert!(has_turn(&mut a3));
        assert_eq!(queues.waiting(), 1);
        drop(a3);
        assert!(!queues.has(&id()) && queues.waiting() == 0);
    }

    /// A request whose client has left may have got the turn without knowing.
    #[test]
    fn the_turn_is_not_lost_with_a_request() {
        let queues = Queues::default();
        let join = || queues.join(id(), "a", 10).unwrap();
        let (first, second, mut third, fourth) = (join(), join(), join(), join());
        drop(fourth);
        drop(first);
        drop(second);
        assert!(has_turn(&mut third));
        drop(third);
        assert!(!queues.has(&id()));
    }

    #[test]
    fn full_queue_rejects_newcomers() {
        let queues = Queues::default();
        let first = queues.join(id(), "a", 2).unwrap();
        let second = queues.join(id(), "a", 2).unwrap();
        assert!(queues.join(id(), "a", 2).is_none());
        drop(second);
        assert!(queues.join(id(), "b", 2).is_some());
        drop(first);
    }

    /// A key that fills a queue keeps no place from another key.
    #[test]
    fn each_key_has_a_share_of_the_depth() {
        let queues = Queues::default();
        let join = |key| queues.join(id(), key, 5);
        let mut places: Vec<_> = (0..5).map(|_| join("a").unwrap()).collect();
        assert!(join("a").is_none());
        let (mut first, mut second) = (join("b").unwrap(), join("b").unwrap());
        assert!(join("b").is_none(), "two of four places behind the turn");
        let states = places.iter_mut().map(|place| place.turn().now_or_never());
        let expected = [Some(true), None, None, Some(false), Some(false)];
        assert_eq!(states.collect::<Vec<_>>(), expected);
        assert_eq!(queues.waiting(), 7);
        places.truncate(3);
        let mut places = places.into_iter();
        drop(places.next());
        let mut next = places.next().unwrap();
        assert!(has_turn(&mut next) && !has_turn(&mut first));
        drop(next);
        assert!(has_turn(&mut first) && !has_turn(&mut second));
        drop((first, second, places));
        assert!(!queues.has(&id()) && queues.waiting() == 0);
    }
}
