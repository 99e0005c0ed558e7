//! The loss of a lease whose requests have to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The loss of a lease. The requests that were admitted under the lease share it, and have to end
/// when it has happened.
#[derive(Clone, Debug, Default)]
pub struct LeaseLoss(Arc<AtomicBool>);

impl LeaseLoss {
    /// Notes that the lease is lost.
    pub fn happen(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Returns true if the lease is lost.
    #[must_use]
    pub fn has_happened(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
