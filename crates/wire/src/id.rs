//! Identifiers: a prefix and 128 bits that the caller drew.

use std::fmt::Write as _;

/// `resp_0f1e…`: `prefix`, an underscore and 32 hexadecimal digits. Randomness is the caller's.
///
/// ```
/// assert_eq!(sluicegate_wire::id("req", 0x2a), "req_0000000000000000000000000000002a");
/// ```
#[must_use]
pub fn id(prefix: &str, bits: u128) -> String {
    let mut text = String::with_capacity(prefix.len() + 33);
    // Writing to a String cannot fail.
    let _ = write!(text, "{prefix}_{bits:032x}");
    text
}
