//! The true spending in a simulated world.

use std::collections::VecDeque;

use quota::LeasedLimitSpec;

use super::{LEASE, MAX_DRIFT_PPM, Time};

/// The longest time until the store learns of a refund. A refund is reported with the next request
/// of its replica, which is sent within a lease and is ignored if it travels for longer than a
/// lease and a tenth. Until then, the bucket drains as if there were no refund.
const UNTOLD: Time = 2 * LEASE + LEASE / 10;

/// The true spending.
#[derive(Debug, Default)]
pub(super) struct Truth {
    /// The sum of all reservations less refunds, without spending above reservations.
    pub(super) reserved: u64,
    /// The figure of the accounting store: reservations of open requests, and the spending of ended
    /// ones.
    pub(super) accounted: u64,
    /// The level of a bucket that counts each reservation at once, and each refund as late as the
    /// store may learn of it. A negative level comes from refunds of amounts that had drained
    /// already, which can be spent at any time, and from the bucket that each loss of data adds.
    filled: i64,
    filled_at: Time,
    /// The refunds that are not subtracted from `filled` yet.
    untold: VecDeque<(Time, u64)>,
}

impl Truth {
    /// Returns the amount that drains in `time` by the fastest clock.
    pub(super) fn flows(time: Time, spec: &LeasedLimitSpec) -> u64 {
        let rate = u128::from(spec.per_minute()) * u128::from(1_000_000 + MAX_DRIFT_PPM);
        (rate * u128::from(time) / 60_000_000_000_000) as u64
    }

    pub(super) fn taken(&mut self, amount: u64, spec: &LeasedLimitSpec, now: Time) {
        let drained_ms = Self::flows(now - self.filled_at, spec);
        self.filled -= (drained_ms as i64).min(self.filled.max(0));
        self.filled += amount as i64;
        self.filled_at = now;
        while let Some((at, refund)) = self.untold.front() {
            if at + UNTOLD > now {
                break;
            }
            self.filled -= *refund as i64;
            self.untold.pop_front();
        }
        self.reserved += amount;
        self.accounted += amount;
    }

    pub(super) fn ended(&mut self, reserved: u64, spent: u64, spec: &LeasedLimitSpec, now: Time) {
        self.taken(0, spec, now);
        self.accounted = self.accounted - reserved + spent;
        let refund = reserved.saturating_sub(spent);
        self.reserved -= refund;
        self.untold.push_back((now, refund));
    }

    /// Adds the bucket that is full after a loss of data.
    pub(super) fn take_loss(&mut self, spec: &LeasedLimitSpec, now: Time) {
        self.taken(0, spec, now);
        self.filled -= spec.capacity() as i64;
    }

    /// Returns the level of the bucket, with all refunds.
    pub(super) fn level(&self) -> i64 {
        let untold: u64 = self.untold.iter().map(|(_, refund)| refund).sum();
        self.filled - untold as i64
    }
}
