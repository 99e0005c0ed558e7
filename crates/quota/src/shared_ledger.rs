//! A ledger that many threads share.

use std::ops::DerefMut;
use std::sync::{Arc, PoisonError};
#[cfg(not(test))]
use std::sync::{Mutex, MutexGuard};

#[cfg(test)]
use crate::interleavings::lock::{Mutex, MutexGuard};
use crate::leased_limit::LeaseLoss;
use crate::ledger::{Admission, Ledger};
use crate::request::{Claim, Demand, Now, Refused, Remaining, Used};

/// A [`Ledger`] behind a lock. It never waits: a request that does not fit is refused.
#[derive(Debug, Default)]
pub struct SharedLedger {
    ledger: Arc<Mutex<Ledger>>,
}

/// The admission of a request. Dropping it releases its place and its reservations; [`Permit::end`]
/// also counts its usage.
#[derive(Debug)]
pub struct Permit {
    ledger: Arc<Mutex<Ledger>>,
    /// `None` once it has ended.
    admission: Option<Admission>,
}

impl SharedLedger {
    /// Creates a ledger without limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Admits a request if all its limits have room for it, as [`Ledger::admit`] does.
    ///
    /// # Errors
    /// Returns the first limit that has no room.
    pub fn admit(
        &self,
        claims: &[Claim<'_>],
        demand: impl FnOnce(Option<u64>) -> Demand,
        now: Now,
    ) -> Result<Permit, Refused> {
        let admission = lock(&self.ledger).admit(claims, demand, now)?;
        Ok(Permit {
            ledger: Arc::clone(&self.ledger),
            admission: Some(admission),
        })
    }

    /// Locks the ledger for all its other operations. The guard must not be held across an await:
    /// every request needs the ledger.
    #[must_use]
    pub fn lock(&self) -> impl DerefMut<Target = Ledger> {
        lock(&self.ledger)
    }
}

impl Permit {
    /// Returns the remaining rates, as of the admission.
    #[must_use]
    pub fn remaining(&self) -> Remaining {
        let admission = self.admission.as_ref();
        admission.map(Admission::remaining).unwrap_or_default()
    }

    /// Returns true if the ledger had to be polled after the admission.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.admission.as_ref().is_some_and(Admission::is_due)
    }

    /// Returns true if the request was admitted although the store of a limit granted nothing, as
    /// [`Admission::is_degraded`] does.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        let admission = self.admission.as_ref();
        admission.is_some_and(Admission::is_degraded)
    }

    /// Releases the place of the request and keeps its reservation, as [`Ledger::release_place`]
    /// does. Returns true if the ledger has to be polled now.
    pub fn release_place(&mut self) -> bool {
        let admission = self.admission.as_mut();
        admission.is_some_and(|admission| lock(&self.ledger).release_place(admission))
    }

    /// Returns the losses of the leases with which the request has to end.
    #[must_use]
    pub fn losses(&self) -> &[LeaseLoss] {
        let admission = self.admission.as_ref();
        admission.map(Admission::losses).unwrap_or_default()
    }

    /// Ends the request, and counts its usage. Returns true if the ledger has to be polled now.
    pub fn end(mut self, used: Used, now: Now) -> bool {
        let admission = self.admission.take();
        admission.is_some_and(|admission| lock(&self.ledger).end(admission, used, now))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(admission) = self.admission.take() {
            let mut ledger = lock(&self.ledger);
            let now = ledger.latest();
            ledger.end(admission, Used::default(), now);
        }
    }
}

/// Ignores poisoning: no code panics while the counts are inconsistent.
fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}
