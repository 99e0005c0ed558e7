//! Identifiers made of a prefix and 128 random bits from the caller.

/// Formats an identifier such as `resp_0f1e…`: `prefix`, an underscore and 32 hexadecimal digits.
///
/// The caller supplies the random bits.
///
/// ```
/// assert_eq!(sluicegate_wire::id("req", 0x2a), "req_0000000000000000000000000000002a");
/// ```
#[must_use]
pub fn id(prefix: &str, bits: u128) -> String {
    format!("{prefix}_{bits:032x}")
}
