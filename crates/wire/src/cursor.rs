//! A cursor over a JSON document, for readers of its most frequent form.

mod blocks;
mod ranges;

use std::ops::Range;

/// A position in a JSON document that moves over one token or value at a time, without a copy.
///
/// It knows less than JSON: every method returns `None` where the document is not JSON, and also
/// at forms that are rare, such as exponents, long numbers or halves of surrogate pairs. A reader
/// that gets `None` leaves the document to a complete parser.
///
/// ```
/// let mut cursor = sluicegate_wire::Cursor::new(br#"{"n": 7, "other": [1.5, "\n"]}"#).unwrap();
/// let mut n = None;
/// cursor.members(|cursor, member| match member.name {
///     b"n" => cursor.count().map(|count| n = Some(count)),
///     _ => cursor.skip(1),
/// });
/// assert_eq!((n, cursor.end()), (Some(7), Some(())));
/// ```
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    /// The bytes that are left of the document.
    rest: &'a [u8],
    /// The length of the document.
    length: usize,
}

/// The beginning of a member of an object.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// The name.
    pub name: &'a [u8],
    /// The position of the name, with its quote.
    pub start: usize,
    /// The position of the comma before it; `None` for the first member.
    pub comma: Option<usize>,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the start of `document`. Returns `None` if that is not UTF-8.
    #[must_use]
    pub fn new(document: &'a [u8]) -> Option<Self> {
        // Nearly every short document is ASCII, which is found out faster.
        let is_text = document.is_ascii() || simdutf8::basic::from_utf8(document).is_ok();
        is_text.then_some(Self {
            rest: document,
            length: document.len(),
        })
    }

    /// Returns the position, in bytes.
    #[must_use]
    pub fn at(&self) -> usize {
        self.length - self.rest.len()
    }

    /// Moves over white space, and returns the byte behind it.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        match self.rest {
            [first, ..] if *first > b' ' => Some(*first),
            _ => self.skip_space(),
        }
    }

    /// Moves over white space, and returns the byte behind it.
    #[inline(never)]
    fn skip_space(&mut self) -> Option<u8> {
        while let [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] = self.rest {
            self.rest = rest;
        }
        self.rest.first().copied()
    }

    /// Moves over white space and over `byte`, if that is the next one. Returns true if it is.
    #[inline]
    pub fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        if let Some((_, rest)) = self.rest.split_first().filter(|_| is_next) {
            self.rest = rest;
        }
        is_next
    }

    /// Moves over `byte` and the white space before it.
    #[inline]
    pub fn expect(&mut self, byte: u8) -> Option<()> {
        self.take(byte).then_some(())
    }

    /// Moves over one of the words `null`, `true` and `false`.
    #[inline]
    pub fn word(&mut self, word: &str) -> Option<()> {
        self.peek();
        self.rest = self.rest.strip_prefix(word.as_bytes())?;
        Some(())
    }

    /// Moves to the end of the document, if nothing but white space is left.
    pub fn end(&mut self) -> Option<()> {
        self.peek().is_none().then_some(())
    }

    /// Reads a text without escapes.
    #[inline]
    pub fn text(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let (text, rest) = self.rest.split_at_checked(run(self.rest))?;
        let [b'"', rest @ ..] = rest else { return None };
        self.rest = rest;
        Some(text)
    }

    /// Moves over a text, which may have escapes, and returns its range with its quotes.
    pub fn string(&mut self) -> Option<Range<usize>> {
        self.peek();
        let start = self.at();
        self.expect(b'"')?;
        // Next is the closing quote, something malformed, or the end of the document.
        self.rest = &self.rest[blocks::inner(self.rest)..];
        loop {
            self.rest = match self.rest {
                [b'"', rest @ ..] => {
                    self.rest = rest;
                    return Some(start..self.at());
                }
                [b'\\', escape @ ..] => after_escape(escape)?,
                rest => match run(rest) {
                    0 => return None,
                    length => &rest[length..],
                },
            }
        }
    }

    /// Reads a whole number of at most 19 digits.
    pub fn count(&mut self) -> Option<u64> {
        self.peek();
        let digits = self.digits()?;
        let value = |sum, digit: &u8| sum * 10 + u64::from(digit - b'0');
        (digits.len() == 1 || digits[0] != b'0').then(|| digits.iter().fold(0, value))
    }

    /// Moves over an object. `visit` gets each member, and has to move over its value.
    #[inline]
    pub fn members(
        &mut self,
        mut visit: impl FnMut(&mut Self, Member<'a>) -> Option<()>,
    ) -> Option<()> {
        self.expect(b'{')?;
        if self.take(b'}') {
            return Some(());
        }
        let mut comma = None;
        loop {
            self.peek();
            let start = self.at();
            let name = self.text()?;
            self.expect(b':')?;
            visit(self, Member { name, start, comma })?;
            if !self.take(b',') {
                return self.expect(b'}');
            }
            comma = Some(self.at() - 1);
        }
    }

    /// Moves over an array. `visit` has to move over each of its values.
    #[inline]
    pub fn elements(&mut self, mut visit: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.expect(b'[')?;
        if self.take(b']') {
            return Some(());
        }
        loop {
            visit(self)?;
            if !self.take(b',') {
                return self.expect(b']');
            }
        }
    }

    /// Moves over any value in which at most `depth` arrays and objects are nested.
    pub fn skip(&mut self, depth: u8) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b'{' => {
                let inner = depth.checked_sub(1)?;
                self.members(|cursor, _| cursor.skip(inner))
            }
            b'[' => {
                let inner = depth.checked_sub(1)?;
                self.elements(|cursor| cursor.skip(inner))
            }
            b'n' => self.word("null"),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            _ => self.decimal(),
        }
    }

    /// Reads a number without an exponent.
    pub fn number(&mut self) -> Option<&'a [u8]> {
        self.peek();
        let before = self.rest;
        self.decimal()?;
        Some(&before[..before.len() - self.rest.len()])
    }

    /// Moves over a number without an exponent.
    fn decimal(&mut self) -> Option<()> {
        self.take(b'-');
        let digits = self.digits()?;
        if digits.len() > 1 && digits[0] == b'0' {
            return None;
        }
        if let [b'.', rest @ ..] = self.rest {
            self.rest = rest;
            self.digits()?;
        }
        Some(())
    }

    /// Moves over 1 to 19 digits.
    #[inline]
    fn digits(&mut self) -> Option<&'a [u8]> {
        let is_digit = |byte: &&u8| byte.is_ascii_digit();
        let length = self.rest.iter().take_while(is_digit).count();
        let (digits, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        (1..=19).contains(&length).then_some(digits)
    }
}

/// Returns the rest behind an escape. `escape` begins behind the backslash.
#[inline]
fn after_escape(escape: &[u8]) -> Option<&[u8]> {
    match escape {
        [letter, rest @ ..] if SHORT_ESCAPES[usize::from(*letter)] => Some(rest),
        [b'u', rest @ ..] => after_code(rest),
        _ => None,
    }
}

/// Returns the rest behind the digits of an escape. Surrogate pairs are left to a complete parser.
fn after_code(rest: &[u8]) -> Option<&[u8]> {
    let (digits, rest) = rest.split_first_chunk::<4>()?;
    let code = digits.iter().try_fold(0, |code, digit| {
        Some(code * 16 + char::from(*digit).to_digit(16)?)
    });
    char::from_u32(code?).map(|_| rest)
}

/// Returns the number of bytes before the first quote, backslash or control character.
#[inline]
fn run(text: &[u8]) -> usize {
    let mut rest = text;
    while let Some((word, after)) = rest.split_first_chunk() {
        let found = special(*word);
        if found != 0 {
            return text.len() - rest.len() + found.trailing_zeros() as usize / 8;
        }
        rest = after;
    }
    let is_plain = |byte: &&u8| **byte >= 0x20 && !matches!(**byte, b'"' | b'\\');
    text.len() - rest.len() + rest.iter().take_while(is_plain).count()
}

/// Marks the first byte that is a quote, a backslash or a control character, by its highest bit.
#[inline]
fn special(word: [u8; 8]) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    // All bytes at once, each with a borrow into its highest bit if it is found. With bit 1 flipped,
    // a quote is next to the control characters, and a space is not. A borrow can only mark bytes
    // behind the first one that is found.
    let word = u64::from_le_bytes(word);
    let quote_or_control = (word ^ (ONES * 2)).wrapping_sub(ONES * 0x21);
    let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    (quote_or_control | backslash) & !word & (ONES << 7)
}

/// True for each character that is an escape with the backslash before it. A table, because a long
/// text may have thousands of escapes.
const SHORT_ESCAPES: [bool; 256] = {
    let mut table = [false; 256];
    let mut all: &[u8] = b"\"\\/bfnrt";
    while let [escape, rest @ ..] = all {
        table[*escape as usize] = true;
        all = rest;
    }
    table
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;
    use strategies::json_value;

    use super::*;

    /// Returns the length of a text with its quotes, which it looks at byte by byte.
    fn length(document: &[u8]) -> Option<usize> {
        let mut rest = document.strip_prefix(b"\"")?;
        loop {
            rest = match rest {
                [b'"', rest @ ..] => return Some(document.len() - rest.len()),
                [
                    b'\\',
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't',
                    rest @ ..,
                ] => rest,
                [b'\\', b'u', rest @ ..] => after_code(rest)?,
                [b'\\' | ..b' ', ..] | [] => return None,
                [_, rest @ ..] => rest,
            };
        }
    }

    fn skips(document: &str) -> bool {
        let mut cursor = Cursor::new(document.as_bytes()).unwrap();
        cursor.skip(8).and_then(|()| cursor.end()).is_some()
    }

    #[test]
    fn rare_forms_and_invalid_json_are_not_skipped() {
        for (document, is_skipped) in [
            ("0", true),
            (" -1.50 ", true),
            ("{ }", true),
            ("[1 , [ ]]", true),
            (r#"{"a" : null,"b":[true,false]}"#, true),
            (r#""\"\\\/\b\f\n\r\t\u00e9""#, true),
            ("\"\u{e9}\u{1f600}\u{7f}\"", true),
            ("", false),
            ("-", false),
            ("01", false),
            ("1.", false),
            ("1e3", false),
            ("12345678901234567890", false),
            ("nul", false),
            ("nullx", false),
            ("{,}", false),
            (r#"{"a":1,}"#, false),
            (r#"{"a"}"#, false),
            (r#"{"\u0061":1}"#, false),
            ("[1,]", false),
            ("[1 2]", false),
            (r#""\ud83d\ude00""#, false),
            (r#""\u+123""#, false),
            (r#""\u00e""#, false),
            (r#""\x""#, false),
            ("\"a\nb\"", false),
            ("\"abcdefgh\u{1}\"", false),
            ("\"abcdefgh", false),
            (
                "\"a text of more than sixteen words, the end of which is found at once, xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"",
                true,
            ),
            (
                "\"a text of more than sixteen wordsxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, in which there\nis a line feed\"",
                false,
            ),
            (
                "\"a text of more than sixteen wordsxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, in which there \\n is an escape\"",
                true,
            ),
            (
                "\"a text of more than sixteen wordsxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, which has no end",
                false,
            ),
            ("\"\\", false),
            ("\u{c}1", false),
            ("[[[[[[[[1]]]]]]]]", true),
            ("[[[[[[[[[1]]]]]]]]]", false),
        ] {
            assert_eq!(skips(document), is_skipped, "{document}");
        }
    }

    #[test]
    fn a_document_that_is_not_utf_8_has_no_cursor() {
        assert!(Cursor::new(b"\"caf\xc3\xa9\"").is_some());
        assert!(Cursor::new(b"\"caf\xe9\"").is_none());
    }

    #[test]
    fn texts_and_counts_are_read() {
        let mut cursor = Cursor::new(b" \"a text of some length\" 18 ").unwrap();
        assert_eq!(cursor.text(), Some(&b"a text of some length"[..]));
        assert_eq!((cursor.count(), cursor.end()), (Some(18), Some(())));
        for document in [r#""a\nb""#, "\"", "\"a", "a", ""] {
            assert_eq!(
                Cursor::new(document.as_bytes()).unwrap().text(),
                None,
                "{document}"
            );
        }
        let longest = "9999999999999999999";
        assert_eq!(
            Cursor::new(longest.as_bytes()).unwrap().count(),
            Some(9_999_999_999_999_999_999)
        );
        for document in ["00", "-1", "x", "", "10000000000000000000"] {
            assert_eq!(
                Cursor::new(document.as_bytes()).unwrap().count(),
                None,
                "{document}"
            );
        }
    }

    proptest! {
        /// Blocks of a text are passed over as its single bytes are, wherever its escapes are.
        #[test]
        fn long_texts_are_skipped_as_their_bytes_are(
            pieces in prop::collection::vec(
                (prop_oneof!["[ -~&&[^\"\\\\]]{0,90}", "[a\u{e9}\u{6771}]{0,9}", ""], prop_oneof![
                    9 => r#"\\["\\/bfnrt]"#,
                    4 => r"\\u[0-9a-cA-C]{4}",
                    1 => r"\\u[0-9a-fg]{3,4}",
                    1 => "[\"\u{1}\n]",
                    1 => r"\\[a-z0]",
                ]),
                0..9,
            ),
            behind in "[\\\\\",\n a-z]{0,150}",
        ) {
            let text: String = pieces.into_iter().flat_map(|(plain, escape)| [plain, escape]).collect();
            let document = format!("\"{text}\"{behind}");
            let mut cursor = Cursor::new(document.as_bytes()).unwrap();
            let range = cursor.string();
            prop_assert_eq!(range.as_ref().map(ExactSizeIterator::len), length(document.as_bytes()));
            prop_assert!(range.is_none_or(|range| cursor.at() == range.end));
        }

        #[test]
        fn documents_without_rare_forms_are_skipped(value in json_value(), is_pretty: bool) {
            let text = if is_pretty { format!("{value:#}") } else { value.to_string() };
            let has_escaped_name = text.contains("\\\"") || text.contains("\\\\");
            let has_long_number = text.split(|c: char| !c.is_ascii_digit()).any(|run| run.len() > 19);
            prop_assume!(!has_escaped_name && !has_long_number);
            prop_assert!(skips(&text), "{}", text);
        }

        /// A document that the cursor skips is valid JSON for a parser, also after random changes.
        #[test]
        fn skipped_documents_are_valid_json(
            value in json_value(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), "[\\PC\u{1}\n\"\\\\,:{}\\[\\]0-9.eEu-]?"), 0..3),
        ) {
            let mut letters: Vec<String> = value.to_string().chars().map(String::from).collect();
            for (at, letter) in changes {
                let at = at.index(letters.len());
                letters[at] = letter;
            }
            let text = letters.concat();
            if skips(&text) {
                prop_assert!(serde_json::from_str::<Value>(&text).is_ok(), "{}", text);
            }
        }
    }
}
