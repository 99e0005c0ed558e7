//! Reads the clock; the only place in this crate that does.

use std::time::Instant;

#[allow(
    clippy::disallowed_methods,
    reason = "row 5 reads the clock, here alone"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
