//! The JSON of log lines. Clients and upstreams choose some of the texts, which must neither break a
//! line nor change how a terminal or an editor shows it.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// Appends a value. One that cannot be serialized is left out.
pub(super) fn write(value: impl Serialize, out: &mut Vec<u8>) {
    let _ = value.serialize(&mut Serializer::with_formatter(out, Escaping));
}

/// Escapes more characters than JSON requires.
struct Escaping;

impl Formatter for Escaping {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut written = 0;
        for (at, found) in fragment.match_indices(is_escaped) {
            out.write_all(&fragment.as_bytes()[written..at])?;
            found
                .encode_utf16()
                .try_for_each(|unit| write!(out, "\\u{unit:04x}"))?;
            written = at + found.len();
        }
        out.write_all(&fragment.as_bytes()[written..])
    }
}

/// Returns true for control characters, for the separators of lines and paragraphs, which some
/// programs take for the end of a line, and for the controls of the writing direction
/// (<https://www.unicode.org/reports/tr9/#Directional_Formatting_Characters>).
fn is_escaped(c: char) -> bool {
    matches!(
        c,
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}'
    ) || c.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p04_no_text_breaks_a_line_or_turns_its_direction() {
        for (text, written) in [
            ("m\u{f6}del \u{1f600}", "\"m\u{f6}del \u{1f600}\""),
            ("a\u{2028}b\u{2029}", r#""a\u2028b\u2029""#),
            ("\u{7f}\u{85}\u{9b}x", r#""\u007f\u0085\u009bx""#),
            ("\u{202e}\"\n", r#""\u202e\"\n""#),
            ("\u{2066}\u{61c}", r#""\u2066\u061c""#),
        ] {
            let mut out = Vec::new();
            write(text, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), written);
        }
    }
}
