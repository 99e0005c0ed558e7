//! The revocation of a key together with its running streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The mark of a key of the store that its running streams are to be ended. The requests of the key
/// share it.
#[derive(Clone, Debug, Default)]
pub struct Revocation(Arc<AtomicBool>);

impl Revocation {
    /// Ends the streams as soon as their connections are woken.
    pub fn end_streams(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Returns true if the key was revoked together with its streams.
    pub fn ends_streams(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
