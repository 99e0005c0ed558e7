//! Checks after every step of a simulated world.

use quota::{Holding, Loan};

use super::World;
use super::truth::Truth;

impl World {
    pub(super) fn check(&self) {
        let capacity = self.plan.loan.capacity();
        let leased = || {
            let numbered = self.replicas.iter().enumerate();
            numbered
                .filter(|(place, replica)| replica.holding.is_leased(self.local(*place)))
                .map(|(_, replica)| &replica.holding)
        };
        let held: u64 = leased().map(Holding::held).sum();
        match self.plan.loan {
            Loan::Permits { cap } => {
                assert!(held <= cap, "{held} permits are held of {cap}");
                let in_use: u64 = leased().map(Holding::in_use).sum();
                if self.plan.end_with_lease {
                    assert!(in_use <= cap, "{in_use} permits are in use of {cap}");
                }
            }
            Loan::Bucket { .. } => {
                // In all, no more than the bucket at the start and what has flowed off since.
                let flowed = Truth::flows(self.now, &self.plan.loan);
                let reserved = self.truth.reserved;
                assert!(
                    reserved <= capacity + flowed,
                    "{reserved} is given of {capacity} + {flowed}"
                );
                // And in no time more than a bucket at its start and what flows off in that time.
                let level = self.truth.level();
                assert!(
                    self.plan.clock_is_set || level <= capacity as i64,
                    "a bucket of {capacity} is filled to {level}"
                );
            }
            Loan::Budget { amount, .. } => {
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
