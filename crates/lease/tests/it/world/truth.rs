//! The true spending in a simulated world.

use std::collections::VecDeque;

use quota::LeasedLimitSpec;

use super::{LEASE, MAX_DRIFT_PPM, Time};

/// The store hears of a refund with the next ask of its replica, which is sent within a lease and is
/// ignored if it travels for longer than a lease and a tenth. Until then the bucket flows as if nothing
/// had come back.
const UNTOLD: Time = 2 * LEASE + LEASE / 10;

/// The true spending.
#[derive(Debug, Default)]
pub(super) struct Truth {
    /// All that was taken, less refunds, without what exceeded its reservation.
    pub(super) reserved: u64,
    /// The figure of the accounting store: reservations of open requests, and what others have spent.
    pub(super) accounted: u64,
    /// A bucket that hears of everything that is taken at once, and of refunds as late as the store may.
    /// Below zero it has refunds of what had flowed off already, which can be spent at any time, and the
    /// bucket that each loss of data adds.
    filled: i64,
    filled_at: Time,
    /// The refunds that are not in it yet.
    untold: VecDeque<(Time, u64)>,
}

impl Truth {
    /// Returns what flows off in `time` by the fastest clock.
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
