//! The true spending in a simulated world.

use quota::Loan;

use super::{MAX_DRIFT_PPM, Time};

/// The true spending.
#[derive(Debug, Default)]
pub(super) struct Truth {
    /// All that was taken, less refunds, without what exceeded its reservation.
    pub(super) reserved: u64,
    /// The figure of the accounting store: reservations of open requests, and what others have spent.
    pub(super) accounted: u64,
    /// A bucket that hears of everything at once. Below zero it has refunds of what had flowed off
    /// already, which can be spent at any time.
    pub(super) level: i64,
    level_at: Time,
}

impl Truth {
    /// Returns what flows off in `time` by the fastest clock.
    pub(super) fn flows(time: Time, loan: &Loan) -> u64 {
        let rate = u128::from(loan.per_minute()) * u128::from(1_000_000 + MAX_DRIFT_PPM);
        (rate * u128::from(time) / 60_000_000_000_000) as u64
    }

    pub(super) fn taken(&mut self, amount: u64, loan: &Loan, now: Time) {
        let flowed = Self::flows(now - self.level_at, loan);
        self.level -= (flowed as i64).min(self.level.max(0));
        self.level += amount as i64;
        self.level_at = now;
        self.reserved += amount;
        self.accounted += amount;
    }

    pub(super) fn ended(&mut self, reserved: u64, spent: u64, loan: &Loan, now: Time) {
        self.taken(0, loan, now);
        self.accounted = self.accounted - reserved + spent;
        let refund = reserved.saturating_sub(spent);
        self.reserved -= refund;
        self.level -= refund as i64;
    }
}
