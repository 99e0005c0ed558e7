//! Checks after every step of a simulated world.

use quota::{LeasedLimitSpec, LeasedShare};

use super::truth::Truth;
use super::{LEASE, World};

impl World {
    /// Returns the number of running requests that must not exceed the cap. If requests end with
    /// their lease, all requests count, except at a process that sleeps past its lease. Otherwise,
    /// requests that take less than half of a lease count, wherever they run.
    fn running(&self) -> u64 {
        if self.plan.end_with_lease {
            let awake = self.replicas.iter().enumerate().filter(|(place, replica)| {
                replica.share.is_leased(self.local(*place)) || replica.paused_until + 2 < self.now
            });
            return awake.map(|(_, replica)| replica.open.len() as u64).sum();
        }
        match self.plan.longest <= LEASE / 2 {
            true => self
                .served
                .iter()
                .filter(|(ends, _)| *ends > self.now)
                .count() as u64,
            false => 0,
        }
    }

    pub(super) fn check(&self) {
        let capacity = self.plan.spec.capacity();
        let leased = || {
            let numbered = self.replicas.iter().enumerate();
            numbered
                .filter(|(place, replica)| replica.share.is_leased(self.local(*place)))
                .map(|(_, replica)| &replica.share)
        };
        let held: u64 = leased().map(LeasedShare::held).sum();
        match self.plan.spec {
            LeasedLimitSpec::Permits { cap } => {
                assert!(held <= cap, "{held} permits are held of {cap}");
                let running = self.running();
                assert!(running <= cap, "{running} requests run with {cap} permits");
            }
            LeasedLimitSpec::Bucket { .. } => {
                // In all, no more is given out than the bucket at the start, one bucket for each
                // loss of data, and the amount that has drained since.
                let buckets = capacity * (1 + self.counts.losses);
                let drained_ms = Truth::flows(self.now, &self.plan.spec);
                let reserved = self.truth.reserved;
                assert!(
                    reserved <= buckets + drained_ms,
                    "{reserved} is given of {buckets} + {drained_ms}"
                );
                // In any span of time, no more is given out than a bucket at its start, one bucket
                // for each loss, and the amount that drains in that span.
                let level = self.truth.level();
                assert!(
                    self.plan.clock_is_set || level <= capacity as i64,
                    "a bucket of {capacity} is filled to {level}"
                );
            }
            LeasedLimitSpec::Budget { amount, .. } => {
                let spent = self.truth.reserved;
                assert!(spent <= amount, "{spent} was admitted of {amount}");
                assert!(
                    spent + held <= amount,
                    "{held} is held, {spent} spent of {amount}"
                );
            }
        }
    }
}
