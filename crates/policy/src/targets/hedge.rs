//! The hedges of a model: requests that are sent to a second target while the first one is slow.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use config::upstream::hedge::Hedge as Settings;

/// The hedges of a model, and the budget for them. Each request adds a part of a hedge to the budget, so
/// that at no time more than the configured percentage of all requests was hedged.
#[derive(Debug)]
pub struct Hedge {
    pub(super) settings: Settings,
    /// The hedges that may be sent, in hundredths.
    budget: AtomicU32,
}

impl Hedge {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            budget: AtomicU32::new(0),
        }
    }

    /// The time after which a request without content is hedged.
    pub fn after(&self) -> Duration {
        self.settings.after
    }

    /// Adds the part of one request to the budget.
    pub fn earn(&self) {
        self.add(self.settings.percent);
    }

    /// Takes a hedge from the budget. Returns false if the budget has none.
    pub fn spend(&self) -> bool {
        let spent = |budget: u32| budget.checked_sub(HEDGE);
        self.budget
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent)
            .is_ok()
    }

    /// Returns a hedge that was not sent to the budget.
    pub fn refund(&self) {
        self.add(HEDGE);
    }

    fn add(&self, hundredths: u32) {
        let added = |budget: u32| Some(budget.saturating_add(hundredths).min(MOST));
        let _ = self
            .budget
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, added);
    }
}

/// One hedge, in hundredths.
const HEDGE: u32 = 100;
/// The most that the budget holds: after a quiet time, this many hedges can follow each other.
const MOST: u32 = 10 * HEDGE;

#[cfg(test)]
mod tests {
    use super::*;

    fn hedge(percent: u32) -> Hedge {
        Hedge::new(Settings {
            after: Duration::from_secs(2),
            percent,
        })
    }

    /// Sends `requests`, which would all be hedged, and counts the hedges.
    fn hedged(hedge: &Hedge, requests: usize) -> usize {
        let each = (0..requests).filter(|_| {
            hedge.earn();
            hedge.spend()
        });
        each.count()
    }

    #[test]
    fn at_most_the_percentage_of_all_requests_is_hedged() {
        assert_eq!(hedged(&hedge(10), 9), 0);
        assert_eq!(hedged(&hedge(10), 100), 10);
        assert_eq!(hedged(&hedge(5), 1_000), 50);
        assert_eq!(hedged(&hedge(1), 99), 0);
        assert_eq!(hedged(&hedge(100), 7), 7);
    }

    #[test]
    fn the_budget_holds_ten_hedges() {
        let hedge = hedge(50);
        (0..1_000).for_each(|_| hedge.earn());
        assert_eq!((0..20).filter(|_| hedge.spend()).count(), 10);
    }

    #[test]
    fn a_hedge_that_was_not_sent_stays_in_the_budget() {
        let hedge = hedge(100);
        hedge.earn();
        assert!(hedge.spend() && !hedge.spend());
        hedge.refund();
        assert!(hedge.spend() && !hedge.spend());
    }
}
