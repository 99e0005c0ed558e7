//! Truncation of caller-supplied values that are quoted in error messages.

/// Truncates a caller-supplied value to 64 characters, so that an error message can quote it.
///
/// ```
/// assert_eq!(sluicegate_wire::truncate_for_error("sepia"), "sepia");
/// assert_eq!(sluicegate_wire::truncate_for_error(&"é".repeat(1000)), "é".repeat(64));
/// ```
#[must_use]
pub fn truncate_for_error(value: &str) -> &str {
    value
        .char_indices()
        .nth(MAX_CHARS)
        .map_or(value, |(end, _)| &value[..end])
}

const MAX_CHARS: usize = 64;
