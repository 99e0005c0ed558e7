//! The retry budget: retries are a share of the requests, so that they cannot make an overload worse.

/// A bucket of tokens. Every request puts a tenth of one in, every retry takes a whole one out.
#[derive(Debug)]
pub struct Budget {
    /// In tenths of a token.
    level: u32,
}

impl Budget {
    /// A full bucket: the first failures of a quiet hour are retried, too.
    #[must_use]
    pub const fn new() -> Self {
        Self { level: CAPACITY }
    }

    /// A request was made.
    pub fn deposit(&mut self) {
        self.level = (self.level + 1).min(CAPACITY);
    }

    /// Takes the token for a retry, if there is one.
    #[must_use]
    pub fn withdraw(&mut self) -> bool {
        let has_one = self.level >= TOKEN;
        if has_one {
            self.level -= TOKEN;
        }
        has_one
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new()
    }
}

/// One retry for so many requests.
const TOKEN: u32 = 10;
/// Ten retries can be saved up.
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
        /// In any stretch of time there are at most ten retries more than a tenth of its requests.
        #[test]
        fn retries_are_a_tenth(retries in vec(any::<bool>(), 0..2_000), from in 0..2_000usize) {
            let mut budget = Budget::new();
            let mut taken = 0;
            for (at, wants) in retries.iter().enumerate() {
                budget.deposit();
                let has = *wants && budget.withdraw();
                taken += u32::from(has && at >= from);
            }
            let requests = retries.len().saturating_sub(from) as u32;
            prop_assert!(taken <= 10 + requests / 10);
        }
    }
}
