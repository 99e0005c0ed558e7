//! Finds the source text that a mutation quotes, however it is formatted.
//!
//! White space and the comma before a closing bracket are ignored, because rustfmt changes them
//! whenever a line gets longer or shorter.

use std::ops::Range;

/// The places of `quoted` in `text`, as ranges of bytes from its first to its last character.
pub(super) fn places(text: &str, quoted: &str) -> Vec<Range<usize>> {
    // A comma at the end of the quotation may be one that is ignored in the text.
    let quoted = quoted.trim_end();
    let (body, end) = quoted
        .strip_suffix(',')
        .map_or((quoted, ""), |body| (body, ","));
    let body: Vec<char> = significant(body)
        .into_iter()
        .map(|(_, char)| char)
        .collect();
    if body.is_empty() {
        return Vec::new();
    }
    let characters = significant(text);
    let range = |window: &[(usize, char)]| {
        let (start, (last, char)) = (window.first()?.0, window.last()?);
        let behind = last + char.len_utf8();
        let rest = text[behind..].trim_start();
        rest.starts_with(end).then(|| {
            start..if end.is_empty() {
                behind
            } else {
                text.len() - rest.len() + end.len()
            }
        })
    };
    let is_here = |window: &&[(usize, char)]| window.iter().map(|(_, char)| char).eq(&body);
    characters
        .windows(body.len())
        .filter(is_here)
        .filter_map(range)
        .collect()
}

/// The characters that rustfmt does not change, with their positions.
fn significant(text: &str) -> Vec<(usize, char)> {
    let all: Vec<_> = text
        .char_indices()
        .filter(|(_, char)| !char.is_whitespace())
        .collect();
    let next = all
        .iter()
        .skip(1)
        .map(|(_, char)| Some(*char))
        .chain([None]);
    let is_trailing = |char, next| char == ',' && matches!(next, Some(')' | ']' | '}'));
    all.iter()
        .zip(next)
        .filter(|((_, char), next)| !is_trailing(*char, *next))
        .map(|(at, _)| *at)
        .collect()
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
