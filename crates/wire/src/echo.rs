//! What a message repeats of a caller's own words.

/// The beginning of a word or name of the caller's: as much as a message repeats of it, which is 64 characters.
///
/// ```
/// assert_eq!(sluicegate_wire::echo("sepia"), "sepia");
/// assert_eq!(sluicegate_wire::echo(&"é".repeat(1000)), "é".repeat(64));
/// ```
#[must_use]
pub fn echo(word: &str) -> &str {
    word.char_indices().nth(MOST).map_or(word, |(end, _)| &word[..end])
}

const MOST: usize = 64;
