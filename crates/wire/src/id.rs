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
    id_with_separator(prefix, '_', bits)
}

/// Formats an identifier as [`id`] does, with a separator of its protocol: `chatcmpl-0f1e…`.
#[must_use]
pub fn id_with_separator(prefix: &str, separator: char, bits: u128) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(prefix.len() + separator.len_utf8() + 32);
    text.push_str(prefix);
    text.push(separator);
    // Not with the formatter, which takes ten times as long: each request has several of these.
    for byte in bits.to_be_bytes() {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_digits_are_written_in_order() {
        assert_eq!(
            id("resp", 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210),
            "resp_0123456789abcdeffedcba9876543210"
        );
        assert_eq!(
            id_with_separator("chatcmpl", '-', 0x2a),
            "chatcmpl-0000000000000000000000000000002a"
        );
        assert_eq!(id("", u128::MAX), format!("_{}", "f".repeat(32)));
    }
}
