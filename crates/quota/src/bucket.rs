//! A token bucket with debt, in exact integers.

/// A bucket of requests or tokens that refills evenly, up to the amount of one minute.
///
/// Its level is counted in grains, 60,000,000 per unit: a limit of one unit a minute gains one
/// grain a microsecond, so refilling never rounds. The level is negative while there is debt, which
/// comes from requests that used more than they had reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    per_minute: u64,
    /// In grains, at the time `filled`.
    level: i64,
    /// In microseconds since the start.
    filled: u64,
}

impl Bucket {
    /// Creates a full bucket for `per_minute` units.
    pub(crate) fn full(per_minute: u64, now: u64) -> Self {
        Self {
            per_minute,
            level: grains(per_minute),
            filled: now,
        }
    }

    /// Adds the grains gained since the last call, and changes the limit to `per_minute` units. A
    /// clock that went back adds nothing.
    pub(crate) fn fill(&mut self, per_minute: u64, now: u64) {
        let elapsed = now.saturating_sub(self.filled);
        let gained = i128::from(elapsed) * i128::from(self.per_minute);
        let level = (i128::from(self.level) + gained).min(grains(self.per_minute).into());
        self.level = i64::try_from(level).unwrap_or(i64::MAX);
        self.filled = self.filled.max(now);
        if self.per_minute != per_minute {
            self.set_limit(per_minute);
        }
    }

    /// Changes the limit. The used units stay used; but units within the former limit are no debt
    /// under a lower one, whose refill would take many minutes to pay it.
    fn set_limit(&mut self, per_minute: u64) {
        let used = grains(self.per_minute).saturating_sub(self.level);
        let debt = self.level.min(0);
        self.level = grains(per_minute).saturating_sub(used).max(debt);
        self.per_minute = per_minute;
    }

    /// Returns the limit in units per minute.
    pub(crate) fn per_minute(&self) -> u64 {
        self.per_minute
    }

    /// Returns true if the bucket holds `units`.
    pub(crate) fn holds(&self, units: u64) -> bool {
        self.level >= grains(units)
    }

    /// Returns true if nothing is used.
    pub(crate) fn is_full(&self) -> bool {
        self.holds(self.per_minute)
    }

    /// Takes `units`, which may leave the bucket in debt.
    pub(crate) fn take(&mut self, units: u64) {
        self.level = self.level.saturating_sub(grains(units));
    }

    /// Releases `units` that were taken and not used. The next [`Bucket::fill`] removes the excess
    /// above the limit.
    pub(crate) fn release(&mut self, units: u64) {
        self.level = self.level.saturating_add(grains(units));
    }

    /// Returns the whole units that can be taken.
    pub(crate) fn remaining(&self) -> u64 {
        u64::try_from(self.level / GRAINS).unwrap_or(0)
    }

    /// Returns the microseconds until the bucket holds `units`; 0 if it does. `units` is at most
    /// the limit.
    pub(crate) fn until(&self, units: u64) -> u64 {
        let missing = i128::from(grains(units)) - i128::from(self.level);
        let missing = u128::try_from(missing).unwrap_or(0);
        let wait = missing.div_ceil(u128::from(self.per_minute.max(1)));
        u64::try_from(wait).unwrap_or(u64::MAX)
    }

    /// Returns the microseconds until nothing is used.
    pub(crate) fn until_full(&self) -> u64 {
        self.until(self.per_minute)
    }
}

fn grains(units: u64) -> i64 {
    i64::try_from(units)
        .unwrap_or(i64::MAX)
        .saturating_mul(GRAINS)
}

/// The grains of a unit: the microseconds of a minute.
const GRAINS: i64 = 60_000_000;

/// The largest limit per minute, and the largest amount that is taken at once, in units. Twice as
/// much still fits in the level.
pub(crate) const MAX_PER_MINUTE: u64 = 50_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn it_fills_evenly_up_to_its_limit() {
        let mut bucket = Bucket::full(6, 0);
        (0..6).for_each(|_| bucket.take(1));
        assert!(!bucket.holds(1));
        assert_eq!(bucket.until(1), 10 * SECOND);
        bucket.fill(6, 10 * SECOND - 1);
        assert!(!bucket.holds(1), "one microsecond is missing");
        assert_eq!(bucket.until(1), 1);
        bucket.fill(6, 10 * SECOND);
        assert!(bucket.holds(1) && !bucket.holds(2));
        bucket.fill(6, 3_600 * SECOND);
        assert_eq!(bucket.remaining(), 6);
    }

    /// Many small fills add up to one large one: nothing is lost to rounding.
    #[test]
    fn filling_often_loses_nothing() {
        let mut bucket = Bucket::full(7, 0);
        bucket.take(7);
        // 8,571,428 µs are just short of one unit at 7 a minute, and one more completes it.
        for now in (0..=8_571_428).step_by(11) {
            bucket.fill(7, now);
        }
        bucket.fill(7, 8_571_428);
        assert_eq!(bucket.remaining(), 0);
        bucket.fill(7, 8_571_429);
        assert_eq!(bucket.remaining(), 1);
    }

    #[test]
    fn debt_is_paid_before_anything_can_be_taken() {
        let mut bucket = Bucket::full(60, 0);
        bucket.take(100);
        assert_eq!((bucket.remaining(), bucket.until(0)), (0, 40 * SECOND));
        bucket.fill(60, 40 * SECOND);
        assert!(bucket.holds(0) && !bucket.holds(1));
        bucket.fill(60, 41 * SECOND);
        assert!(bucket.holds(1));
    }

    #[test]
    fn changed_limit_keeps_the_used_units() {
        let of_100 = |used| {
            let mut bucket = Bucket::full(100, 0);
            bucket.take(used);
            bucket
        };
        for (used, limit, remaining, wait) in [
            (90, 1_000, 910, 0),
            (90, 95, 5, 0),
            // No debt: one unit at 50 a minute takes 1.2 s.
            (90, 50, 0, 1_200_000),
            // 20 units of debt, under each limit: 21 units take 25.2 s at 50 a minute.
            (120, 1_000, 880, 0),
            (120, 110, 0, 6_000_000),
            (120, 50, 0, 25_200_000),
        ] {
            let mut bucket = of_100(used);
            bucket.fill(limit, 0);
            let found = (bucket.remaining(), bucket.until(1));
            assert_eq!(found, (remaining, wait), "{used} used, limit {limit}");
        }
        // The units refill at the former limit until it is changed: 50 in 30 s, then 20 in 12 s.
        let mut bucket = of_100(90);
        bucket.fill(100, 30 * SECOND);
        bucket.fill(100, 30 * SECOND);
        assert_eq!(bucket.remaining(), 60);
        let mut bucket = of_100(90);
        bucket.fill(60, 30 * SECOND);
        assert_eq!(bucket.remaining(), 20);
        bucket.fill(60, 42 * SECOND);
        assert_eq!(bucket.remaining(), 32);
    }

    #[test]
    fn a_clock_that_goes_back_adds_nothing() {
        let mut bucket = Bucket::full(60, 100 * SECOND);
        bucket.take(60);
        bucket.fill(60, 0);
        bucket.fill(60, 100 * SECOND);
        assert_eq!(bucket.remaining(), 0);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut bucket = Bucket::full(MAX_PER_MINUTE, 0);
        bucket.take(u64::MAX);
        bucket.take(u64::MAX);
        bucket.fill(MAX_PER_MINUTE, u64::MAX);
        assert_eq!(bucket.remaining(), MAX_PER_MINUTE);
        bucket.release(u64::MAX);
        bucket.fill(MAX_PER_MINUTE, u64::MAX);
        assert_eq!(bucket.remaining(), MAX_PER_MINUTE);
    }
}
