//! The wall clock and the source of random bits: the only module that reads them from the system.

use std::cell::RefCell;
use std::time::{Duration, UNIX_EPOCH};

/// The current time since the Unix epoch. Timers do not use it: they run on tokio's monotonic clock.
#[allow(
    clippy::disallowed_methods,
    reason = "row 5 reads the clock, here alone"
)]
pub fn since_epoch() -> Duration {
    let now = std::time::SystemTime::now();
    now.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The current time in Unix seconds.
pub fn unix_seconds() -> i64 {
    i64::try_from(since_epoch().as_secs()).unwrap_or(i64::MAX)
}

/// The current time in Unix milliseconds.
pub fn unix_ms() -> i64 {
    i64::try_from(since_epoch().as_millis()).unwrap_or(i64::MAX)
}

/// The current time for a log line.
#[allow(
    clippy::disallowed_methods,
    reason = "row 5 reads the clock, here alone"
)]
pub fn timestamp() -> jiff::Timestamp {
    std::time::SystemTime::now().try_into().unwrap_or_default()
}

/// Returns random bytes from the operating system.
pub(crate) fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes)
}

/// Returns 128 random bits for an identifier. They are read from the system in batches, because a
/// system call costs more than the bits do.
pub fn random_bits() -> u128 {
    BITS.with_borrow_mut(|bits| {
        bits.pop().unwrap_or_else(|| {
            // Cannot fail in practice: generating keys at start-up would have failed before.
            let bytes = random::<{ 16 * BATCH }>().unwrap_or([0; 16 * BATCH]);
            bits.extend(
                bytes
                    .as_chunks()
                    .0
                    .iter()
                    .map(|bytes| u128::from_ne_bytes(*bytes)),
            );
            bits.pop().unwrap_or_default()
        })
    })
}

thread_local! {
    /// Random bits that are not used yet.
    static BITS: RefCell<Vec<u128>> = const { RefCell::new(Vec::new()) };
}

const BATCH: usize = 32;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_bits_are_handed_out_twice() {
        let drawn: HashSet<u128> = (0..100).map(|_| random_bits()).collect();
        assert_eq!(drawn.len(), 100);
    }
}
