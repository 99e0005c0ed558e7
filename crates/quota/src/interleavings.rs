//! Tests the shared ledger in every interleaving of threads with loom.

pub(crate) mod lock;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::model::Builder;
use loom::thread;

use crate::{Caps, Claim, Demand, LimitId, Now, Permit, SharedLedger};

/// The end of a request that has a permit. Each one releases it, on different threads.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// It ends on the thread where it started.
    Cancelled,
    /// Its body, and the permit with it, ends on another thread.
    Finished,
}

/// In any interleaving of taking, cancelling and finishing, there are never more permits taken than
/// the limits allow, and in the end all are released.
#[test]
fn o04_permits_are_never_above_the_limit_and_all_come_back() {
    // The limit per key is below the total, the same, and above it.
    for (all, of_key) in [(2, 1), (3, 2), (2, 2), (1, 2)] {
        explore(Limits { all, of_key }, &["a", "a", "b"]);
    }
}

/// The same with more requests of one key than it has permits.
#[test]
fn o04_a_key_with_several_permits_never_has_more() {
    for keys in [&["a", "a", "a"][..], &["a", "a", "a", "b"]] {
        explore(Limits { all: 3, of_key: 2 }, keys);
    }
    // Two of them may be admitted after one of two has ended: the other one still counts.
    explore(Limits { all: 4, of_key: 2 }, &["a", "a", "a", "a"]);
}

/// Runs one request for each of these keys concurrently, in every interleaving; for more than three
/// keys, only in interleavings with few preemptions.
fn explore(limits: Limits, keys: &'static [&'static str]) {
    let mut model = Builder::new();
    model.preemption_bound = (keys.len() > 3).then_some(2);
    for end in ENDS {
        model.check(move || {
            let limiter = Arc::new(Requests::new(limits.all, limits.of_key));
            let held = Arc::new(Held::new(limits));
            let requests = keys.iter().enumerate().map(|(index, key)| {
                let (limiter, held) = (Arc::clone(&limiter), Arc::clone(&held));
                move || request(&limiter, &held, key, end(index))
            });
            let mut requests: Vec<_> = requests.collect();
            let last = requests.pop().unwrap();
            let threads: Vec<_> = requests.into_iter().map(thread::spawn).collect();
            let mine = last();
            let theirs = threads.into_iter().map(|thread| thread.join().unwrap());
            let retained: Vec<_> = theirs.chain([mine]).flatten().collect();
            if (0..keys.len()).all(|index| end(index) == End::Finished) {
                let of = |key| {
                    keys.iter()
                        .filter(|other| **other == key)
                        .count()
                        .min(limits.of_key)
                };
                assert_eq!(
                    retained.len(),
                    limits.all.min(of("a") + of("b")),
                    "no request is refused needlessly"
                );
            }
            retained
                .into_iter()
                .for_each(|(permit, key)| held.end(permit, key));
            assert_eq!(
                (limiter.taken(), limiter.scopes_in_use()),
                (0, 0),
                "all are released"
            );
            let most = limits.all.min(limits.of_key);
            let again: Vec<_> = (0..=most).map(|_| limiter.take("a")).collect();
            assert_eq!(
                again.iter().flatten().count(),
                most,
                "and can be taken again"
            );
        });
    }
}

/// Exactly one of two concurrent requests gets the last permit.
#[test]
fn o04_the_last_permit_goes_to_one() {
    loom::model(|| {
        let limiter = Arc::new(Requests::new(1, 1));
        let other = Arc::clone(&limiter);
        let thread = thread::spawn(move || other.take("b"));
        let permits = [limiter.take("a"), thread.join().unwrap()];
        assert_eq!((permits.iter().flatten().count(), limiter.taken()), (1, 1));
        drop(permits);
        assert_eq!(limiter.taken(), 0);
    });
}

/// Runs one request. Returns its permit if it ends elsewhere.
fn request(
    limiter: &Requests,
    held: &Held,
    key: &'static str,
    end: End,
) -> Option<(Permit, &'static str)> {
    let permit = limiter.take(key)?;
    held.note(key);
    match end {
        End::Finished => Some((permit, key)),
        End::Cancelled => {
            held.end(permit, key);
            None
        }
    }
}

/// A limiter of requests at the same time, in total and per key.
struct Requests {
    ledger: SharedLedger,
    all: LimitId,
    of_key: LimitId,
}

impl Requests {
    fn new(all: usize, of_key: usize) -> Self {
        let ledger = lock::of_loom(SharedLedger::new);
        let caps = [("all", all), ("key", of_key)];
        let ids = ledger.lock().set_limits(
            caps.map(|(name, cap)| (name.into(), Caps::concurrency(cap as u64).into())),
        );
        Self {
            ledger,
            all: ids[0],
            of_key: ids[1],
        }
    }

    fn take(&self, key: &str) -> Option<Permit> {
        let claims = [(self.all, ""), (self.of_key, key)];
        let claims = claims.map(|(limit, scope)| Claim { limit, scope });
        let permit = self
            .ledger
            .admit(&claims, |_| Demand::default(), Now::default());
        permit.ok()
    }

    fn taken(&self) -> u64 {
        self.ledger.lock().in_use(Claim {
            limit: self.all,
            scope: "",
        })
    }

    /// Returns the number of scopes in which something is used.
    fn scopes_in_use(&self) -> usize {
        let mut ledger = self.ledger.lock();
        ledger.drop_idle(Now::default());
        ledger.len()
    }
}

/// The number of permits, in total and per key.
#[derive(Clone, Copy)]
struct Limits {
    all: usize,
    of_key: usize,
}

/// The permits that the test knows to be taken, for the key `a` and in total. A permit is noted
/// after it was taken and removed before it is released, so that the noted number never exceeds the
/// taken one.
struct Held {
    limits: Limits,
    of_a: AtomicUsize,
    all: AtomicUsize,
}

impl Held {
    fn new(limits: Limits) -> Self {
        Self {
            limits,
            of_a: AtomicUsize::new(0),
            all: AtomicUsize::new(0),
        }
    }

    fn note(&self, key: &str) {
        let of_a = self
            .of_a
            .fetch_add(usize::from(key == "a"), Ordering::SeqCst)
            + usize::from(key == "a");
        let all = self.all.fetch_add(1, Ordering::SeqCst) + 1;
        let Limits { all: most, of_key } = self.limits;
        assert!(
            all <= most && of_a <= of_key,
            "{all} taken, {of_a} of them by one key"
        );
    }

    fn end(&self, permit: Permit, key: &str) {
        self.of_a
            .fetch_sub(usize::from(key == "a"), Ordering::SeqCst);
        self.all.fetch_sub(1, Ordering::SeqCst);
        drop(permit);
    }
}

/// The ends of the requests by index: all the same, or alternating.
const ENDS: [fn(usize) -> End; 3] = [
    |_| End::Cancelled,
    |_| End::Finished,
    |index| {
        if index % 2 == 0 {
            End::Cancelled
        } else {
            End::Finished
        }
    },
];
