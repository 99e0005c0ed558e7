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

use loom::thread;
use permits::{Limiter, Permit};

/// What becomes of a request that has a permit. All give it back, from where they are.
#[derive(Clone, Copy)]
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
    for fates in [[Fate::Cancelled; 3], [Fate::Finished; 3], [Fate::Cancelled, Fate::Finished, Fate::Cancelled]] {
        loom::model(move || {
            let limiter = Arc::new(Limiter::new(SIZE, PER_KEY));
            let held = Arc::new(Held::default());
            let [first, second, third] = [0, 1, 2].map(|place| {
                let (limiter, held) = (Arc::clone(&limiter), Arc::clone(&held));
                move || request(&limiter, &held, ["a", "a", "b"][place], fates[place])
            });
            let threads = [thread::spawn(first), thread::spawn(second)];
            let mine = third();
            let theirs = threads.map(|thread| thread.join().unwrap());
            theirs.into_iter().chain([mine]).flatten().for_each(|(permit, key)| held.end(permit, key));
            assert_eq!((limiter.taken(), limiter.keys()), (0, 0), "all are back");
            let again = ["a", "b"].map(|key| limiter.take(key));
            assert!(again.iter().all(Option::is_some), "and can be taken");
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

/// The permits that the test knows to be out: of the key `a`, and of all. One is noted after it was taken and forgotten
/// before it goes back, so that what is noted never exceeds what is out.
#[derive(Default)]
struct Held {
    of_a: AtomicUsize,
    all: AtomicUsize,
}

impl Held {
    fn note(&self, key: &str) {
        let of_a = self.of_a.fetch_add(usize::from(key == "a"), Ordering::SeqCst) + usize::from(key == "a");
        let all = self.all.fetch_add(1, Ordering::SeqCst) + 1;
        assert!(all <= SIZE && of_a <= PER_KEY, "{all} out, {of_a} of them of one key");
    }

    fn end(&self, permit: Permit, key: &str) {
        self.of_a.fetch_sub(usize::from(key == "a"), Ordering::SeqCst);
        self.all.fetch_sub(1, Ordering::SeqCst);
        drop(permit);
    }
}

const SIZE: usize = 2;
const PER_KEY: usize = 1;
