//! The rate at which a replica spends its share.

/// Measures the amount that is spent in a span of time, so that as much can be requested in
/// advance.
#[derive(Debug, Default)]
pub(super) struct SpendingRate {
    /// The start of the present span, in microseconds.
    since: u64,
    /// The amount that was spent before `since`.
    before: u64,
    /// The amount of the last span that was measured.
    last: u64,
}

impl SpendingRate {
    /// Returns the amount that the next span is expected to take; `used` is the amount spent so
    /// far. The result is as much as in the last whole span, or as in the present one if that is
    /// more already: otherwise each of many short intervals between lease requests would look like
    /// a slow start.
    pub(super) fn expected(&mut self, used: u64, now: u64, span: u64) -> u64 {
        let spent = used.saturating_sub(self.before);
        let elapsed = now.saturating_sub(self.since);
        if elapsed < span {
            return self.last.max(spent);
        }
        let in_a_span = u128::from(spent) * u128::from(span) / u128::from(elapsed.max(1));
        self.last = u64::try_from(in_a_span).unwrap_or(u64::MAX);
        self.begin(used, now);
        self.last
    }

    /// Begins a span, in which `used` counts from this number.
    pub(super) fn begin(&mut self, used: u64, now: u64) {
        self.since = now;
        self.before = used;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: u64 = 500_000;

    fn at(millis: u64) -> u64 {
        millis * 1_000
    }

    #[test]
    fn a_long_interval_counts_by_its_part() {
        let mut pace = SpendingRate::default();
        pace.begin(100, at(1_000));
        assert_eq!(pace.expected(1_100, at(3_000), SPAN), 250);
    }

    #[test]
    fn short_intervals_count_together() {
        let mut pace = SpendingRate::default();
        pace.begin(0, at(0));
        let expected = (1..=6).map(|step| pace.expected(10 * step, at(100 * step), SPAN));
        let expected: Vec<_> = expected.collect();
        assert_eq!(expected, [10, 20, 30, 40, 50, 50]);
    }

    #[test]
    fn returned_amount_does_not_count_as_spent() {
        let mut pace = SpendingRate::default();
        pace.begin(100, at(0));
        assert_eq!(pace.expected(40, at(100), SPAN), 0);
        assert_eq!(pace.expected(40, at(500), SPAN), 0);
        assert_eq!(pace.expected(70, at(600), SPAN), 30);
    }
}
