//! The time of day and random bits: the one place that asks the system for them.

use std::time::UNIX_EPOCH;

/// Now, in Unix seconds. Timers do not use it: they run on tokio's monotonic clock.
#[allow(clippy::disallowed_methods, reason = "row 5 reads the clock, here alone")]
pub(crate) fn unix_seconds() -> i64 {
    let now = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

/// Random bytes from the system.
pub(crate) fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes)
}

/// 128 random bits for an identifier.
pub(crate) fn random_bits() -> u128 {
    // A system that ran without randomness at start-up would not have got this far: keys were drawn from it.
    u128::from_ne_bytes(random().unwrap_or_default())
}
