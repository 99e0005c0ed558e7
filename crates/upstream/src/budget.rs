//! The retry budget: retries are limited to a share of the requests, so that they cannot make an
//! overload worse.

/// A token bucket. Every request adds a tenth of a token, every retry takes one token.
#[derive(Debug)]
pub(crate) struct Budget {
    /// In tenths of a token.
    level: u32,
}

impl Budget {
    /// Creates a full bucket, so that the first failures are retried too.
    pub(crate) const fn new() -> Self {
        Self { level: CAPACITY }
    }

    /// Adds the share of one request.
    pub(crate) fn deposit(&mut self) {
        self.level = (self.level + 1).min(CAPACITY);
    }

    /// Takes the token for a retry. Returns false if less than one token is left.
    #[must_use]
    pub(crate) fn withdraw(&mut self) -> bool {
        let has_token = self.level >= TOKEN;
        if has_token {
            self.level -= TOKEN;
        }
        has_token
    }
}

/// The number of requests that pay for one retry.
const TOKEN: u32 = 10;
/// The maximum level: ten retries.
const CAPACITY: u32 = 10 * TOKEN;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ten_can_be_saved_up_and_no_more() {
        let mut budget = Budget::new();
        (0..1_000).for_each(|_| budget.deposit());
        assert_eq!((0..100).filter(|_| budget.withdraw()).count(), 10);
        (0..9).for_each(|_| budget.deposit());
        assert!(!budget.withdraw());
        budget.deposit();
        assert!(budget.withdraw());
    }

    proptest! {
        /// Any sequence of requests has at most ten retries more than a tenth of its requests.
        #[test]
        fn retries_are_a_tenth(retries in vec(any::<bool>(), 0..2_000), from in 0..2_000usize) {
            let mut budget = Budget::new();
            let mut taken = 0;
            for (at, needs_retry) in retries.iter().enumerate() {
                budget.deposit();
                let is_retried = *needs_retry && budget.withdraw();
                taken += u32::from(is_retried && at >= from);
            }
            let requests = retries.len().saturating_sub(from) as u32;
            prop_assert!(taken <= 10 + requests / 10);
        }
    }
}
