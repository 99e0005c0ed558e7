//! Finds the source text that a mutation quotes, however it is formatted.
//!
//! White space and the comma before a closing bracket are ignored, because rustfmt changes them
//! whenever a line gets longer or shorter.

use std::ops::Range;

/// The places of `quoted` in `text`, as ranges of bytes from its first to its last character.
pub(super) fn places(text: &str, quoted: &str) -> Vec<Range<usize>> {
    // A comma at the end of the quotation may be one that is ignored in the text.
    let quoted = quoted.trim_end();
    let body = quoted.strip_suffix(',').unwrap_or(quoted);
    let end = &quoted[body.len()..];
    let body: Vec<_> = significant(body).iter().map(|(_, char)| *char).collect();
    let characters = significant(text);
    let range = |window: &[(usize, char)]| {
        let (last, char) = window.last()?;
        let behind = last + char.len_utf8();
        let rest = match end {
            "" => &text[behind..],
            end => text[behind..].trim_start().strip_prefix(end)?,
        };
        Some(window[0].0..text.len() - rest.len())
    };
    let windows = characters.windows(body.len().max(1));
    let found = windows.filter(|window| window.iter().map(|(_, char)| char).eq(&body));
    found.filter_map(range).collect()
}

/// The characters that rustfmt does not change, with their positions.
fn significant(text: &str) -> Vec<(usize, char)> {
    let characters = text.char_indices();
    let characters = characters.filter(|(_, char)| !char.is_whitespace());
    let all: Vec<_> = characters.collect();
    let is_bracket = |next: Option<&(usize, char)>| matches!(next, Some((_, ')' | ']' | '}')));
    let places = (0..all.len()).filter(|at| all[*at].1 != ',' || !is_bracket(all.get(at + 1)));
    places.map(|at| all[at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'a>(text: &'a str, quoted: &str) -> Vec<&'a str> {
        places(text, quoted)
            .into_iter()
            .map(|place| &text[place])
            .collect()
    }

    #[test]
    fn text_is_found_in_any_format() {
        let text = "if ended(\n    one,\n    two,\n) {\n    return;\n}\n";
        assert_eq!(
            found(text, "if ended(one, two) {"),
            ["if ended(\n    one,\n    two,\n) {"]
        );
        assert_eq!(found(text, "\n  return;\n"), ["return;"]);
        assert_eq!(found("(a, b)(a,b)", "a, b"), ["a, b", "a,b"]);
        assert_eq!(found("é(ü,)", "(ü)"), ["(ü,)"]);
        assert_eq!(found("(b ,\n), b", "b,"), ["b ,"]);
        assert_eq!(found(text, "ended(two)"), [""; 0]);
        assert_eq!(found(text, " "), [""; 0]);
    }
}
