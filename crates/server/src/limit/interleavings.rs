//! The permits in every interleaving of threads, by loom: it runs the same file on locks of its own.

#[path = "permits.rs"]
#[allow(clippy::duplicate_mod, reason = "on other locks it is another module")]
mod permits;

/// What loom watches: that references are counted rightly is not in question.
mod sync {
    pub(super) use std::sync::{Arc, PoisonError};

    pub(super) use loom::sync::{Mutex, MutexGuard};
}

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::model::Builder;
use loom::thread;
use permits::{Limiter, Permit};

/// What becomes of a request that has a permit. All give it back, from where they are.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    /// It is over where it began.
    Cancelled,
    /// Its body, and the permit with it, ends on another thread.
    Finished,
}

/// In any interleaving of taking, cancelling and finishing there are never more permits out than the limits allow, and
/// in the end all are back.
#[test]
fn o04_permits_are_never_above_the_limit_and_all_come_back() {
    // The limit for each key is below the one over all, the same, and above it.
    for (all, of_key) in [(2, 1), (3, 2), (2, 2), (1, 2)] {
        explore(Limits { all, of_key }, &["a", "a", "b"]);
    }
}

/// The same with more requests of one key than its several permits.
#[test]
fn o04_a_key_with_several_permits_never_has_more() {
    for keys in [&["a", "a", "a"][..], &["a", "a", "a", "b"]] {
        explore(Limits { all: 3, of_key: 2 }, keys);
    }
    // Two of them may come when one of two has ended: the other one still counts.
    explore(Limits { all: 4, of_key: 2 }, &["a", "a", "a", "a"]);
}

/// Runs a request of each of these keys at once, in every interleaving; of four, in those with few preemptions.
fn explore(limits: Limits, keys: &'static [&'static str]) {
    let mut model = Builder::new();
    model.preemption_bound = (keys.len() > 3).then_some(2);
    for fate in FATES {
        model.check(move || {
            let limiter = Arc::new(Limiter::new(limits.all, limits.of_key));
            let held = Arc::new(Held::new(limits));
            let requests = keys.iter().enumerate().map(|(place, key)| {
                let (limiter, held) = (Arc::clone(&limiter), Arc::clone(&held));
                move || request(&limiter, &held, key, fate(place))
            });
            let mut requests: Vec<_> = requests.collect();
            let last = requests.pop().unwrap();
            let threads: Vec<_> = requests.into_iter().map(thread::spawn).collect();
            let mine = last();
            let theirs = threads.into_iter().map(|thread| thread.join().unwrap());
            let kept: Vec<_> = theirs.chain([mine]).flatten().collect();
            if (0..keys.len()).all(|place| fate(place) == Fate::Finished) {
                let of = |key| keys.iter().filter(|other| **other == key).count().min(limits.of_key);
                assert_eq!(kept.len(), limits.all.min(of("a") + of("b")), "nobody is refused who need not be");
            }
            kept.into_iter().for_each(|(permit, key)| held.end(permit, key));
            assert_eq!((limiter.taken(), limiter.keys()), (0, 0), "all are back");
            let most = limits.all.min(limits.of_key);
            let again: Vec<_> = (0..=most).map(|_| limiter.take("a")).collect();
            assert_eq!(again.iter().flatten().count(), most, "and can be taken, as many as there were");
        });
    }
}

/// Of two that ask for the last permit at once exactly one gets it.
#[test]
fn o04_the_last_permit_goes_to_one() {
    loom::model(|| {
        let limiter = Arc::new(Limiter::new(1, 1));
        let other = Arc::clone(&limiter);
        let thread = thread::spawn(move || other.take("b"));
        let permits = [limiter.take("a"), thread.join().unwrap()];
        assert_eq!((permits.iter().flatten().count(), limiter.taken()), (1, 1));
        drop(permits);
        assert_eq!(limiter.taken(), 0);
    });
}

/// One request, from its permit to its end; the permit where that is elsewhere.
fn request(limiter: &Limiter, held: &Held, key: &'static str, fate: Fate) -> Option<(Permit, &'static str)> {
    let permit = limiter.take(key)?;
    held.note(key);
    match fate {
        Fate::Finished => Some((permit, key)),
        Fate::Cancelled => {
            held.end(permit, key);
            None
        }
    }
}

/// How many permits there are, over all and for each key.
#[derive(Clone, Copy)]
struct Limits {
    all: usize,
    of_key: usize,
}

/// The permits that the test knows to be out: of the key `a`, and of all. One is noted after it was taken and forgotten
/// before it goes back, so that what is noted never exceeds what is out.
struct Held {
    limits: Limits,
    of_a: AtomicUsize,
    all: AtomicUsize,
}

impl Held {
    fn new(limits: Limits) -> Self {
        Self { limits, of_a: AtomicUsize::new(0), all: AtomicUsize::new(0) }
    }

    fn note(&self, key: &str) {
        let of_a = self.of_a.fetch_add(usize::from(key == "a"), Ordering::SeqCst) + usize::from(key == "a");
        let all = self.all.fetch_add(1, Ordering::SeqCst) + 1;
        let Limits { all: most, of_key } = self.limits;
        assert!(all <= most && of_a <= of_key, "{all} out, {of_a} of them of one key");
    }

    fn end(&self, permit: Permit, key: &str) {
        self.of_a.fetch_sub(usize::from(key == "a"), Ordering::SeqCst);
        self.all.fetch_sub(1, Ordering::SeqCst);
        drop(permit);
    }
}

/// What becomes of the request at a place: all end alike, or by turns.
const FATES: [fn(usize) -> Fate; 3] =
    [|_| Fate::Cancelled, |_| Fate::Finished, |place| if place % 2 == 0 { Fate::Cancelled } else { Fate::Finished }];
