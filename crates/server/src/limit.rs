//! The limits of concurrent requests, in total and per key.

mod permits;

pub(crate) use permits::{Limiter, Permit};

/// The synchronization primitives of the permits. Their loom test replaces them with loom's.
mod sync {
    pub(super) use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
}

#[cfg(test)]
mod interleavings;

#[cfg(test)]
mod tests {
    use super::*;

    /// One key cannot take the permits of all, neither for requests nor for fetches.
    #[test]
    fn f11_o07_one_key_cannot_take_what_is_anothers() {
        let limiter = Limiter::new(3, 2);
        let (first, second) = (limiter.take("a"), limiter.take("a"));
        assert!(first.is_some() && second.is_some() && limiter.take("a").is_none());
        let third = limiter.take("b");
        assert!(
            third.is_some() && limiter.take("b").is_none(),
            "three over all"
        );
        drop(first);
        assert_eq!(limiter.taken(), 2);
        assert!(limiter.take("b").is_some());
    }

    /// A refused request takes no permit.
    #[test]
    fn o04_a_refusal_takes_nothing() {
        let limiter = Limiter::new(1, 2);
        let held = limiter.take("a");
        for _ in 0..10 {
            assert!(limiter.take("b").is_none());
        }
        drop(held);
        assert!(limiter.take("b").is_some());
        assert_eq!(limiter.taken(), 0);
    }

    #[test]
    fn keys_without_requests_take_no_memory() {
        let limiter = Limiter::new(2, 1);
        for name in 0..100 {
            drop((limiter.take(&name.to_string()), limiter.take("other")));
        }
        assert_eq!(limiter.keys(), 0);
    }
}
