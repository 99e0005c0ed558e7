//! Texts that PostgreSQL accepts in a column with an index.

/// The longest text in bytes: an entry of an index has at most 2,704, and may have two texts.
const MAX_LEN: usize = 1000;

/// Returns a text without NUL, which PostgreSQL does not store, cut off at [`MAX_LEN`]. A client can
/// name a model as it likes.
pub(super) fn plain(text: impl AsRef<str>) -> String {
    let text = text.as_ref();
    let mut end = text.len().min(MAX_LEN);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].replace('\0', "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_off_between_two_characters_and_has_no_nul() {
        assert_eq!(plain("a\0b"), "a?b");
        let long = format!("{}é", "x".repeat(998));
        assert_eq!(plain(&long), long);
        assert_eq!(plain(format!("x{long}")), "x".repeat(999));
        assert_eq!(plain("\0".repeat(1001)), "?".repeat(1000));
    }
}
