//! The form of an event that is repeated with other values.
//!
//! The events of a stream that continue a text have the same bytes, but for the text, a number and
//! the like. A [`Form`] is made of one that a reader has read, and recognizes the next one by its
//! bytes, so that it need not be parsed.

use std::ops::Range;

use crate::Splice;

/// A member whose value may differ from event to event.
#[derive(Clone, Copy, Debug)]
pub struct Varying {
    path: &'static [&'static str],
    is_number: bool,
}

impl Varying {
    /// A text at this path. A text with escapes is not of the form.
    #[must_use]
    pub const fn text(path: &'static [&'static str]) -> Self {
        Self {
            path,
            is_number: false,
        }
    }

    /// A number at this path: an integer from 0.
    #[must_use]
    pub const fn number(path: &'static [&'static str]) -> Self {
        Self {
            path,
            is_number: true,
        }
    }

    /// The range of the value in a document, without its quotes, if it is as expected.
    fn find(self, splice: &Splice<'_>, document: &str) -> Option<Range<usize>> {
        let found = splice.range_of(self.path)?;
        let start = found.start + usize::from(!self.is_number);
        let is_text = document.as_bytes()[found.start] == b'"';
        let end = self.end(document.as_bytes(), start)?;
        (is_text != self.is_number && end + usize::from(is_text) == found.end).then_some(start..end)
    }

    /// Returns the end of the value that starts at `start`. Returns `None` for a text with escapes
    /// or control characters, and for a number that is not an integer of JSON.
    #[inline]
    fn end(self, document: &[u8], start: usize) -> Option<usize> {
        let rest = document.get(start..)?;
        if !self.is_number {
            let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | ..b' ');
            let length = rest.iter().position(ends)?;
            return (rest[length] == b'"').then_some(start + length);
        }
        let length = rest.iter().position(|byte| !byte.is_ascii_digit())?;
        let is_plain = length == 1 || rest[0] != b'0';
        (is_plain && (1..=MAX_DIGITS).contains(&length)).then_some(start + length)
    }
}

/// The form of an event: its bytes but for the values that vary, and its edits.
///
/// ```
/// use sluicegate_wire::Splice;
/// use sluicegate_wire::lenient::{Form, Varying};
///
/// const VARYING: &[Varying] = &[Varying::text(&["delta"]), Varying::number(&["n"])];
///
/// let event = r#"{"n":1,"model":"theirs","delta":"Hel"}"#;
/// let mut edits = Splice::new(event.as_bytes());
/// edits.replace(&["model"], br#""ours""#);
/// let form = Form::of(event, &edits, VARYING).ok_or("no form")?;
///
/// let next = r#"{"n":2,"model":"theirs","delta":"lo"}"#;
/// let values = form.read(next).ok_or("another form")?;
/// assert_eq!((values.text(0), values.number(1)), ("lo", Some(2)));
/// let mut out = Vec::new();
/// form.write(&values, &mut out);
/// assert_eq!(out, br#"{"n":2,"model":"ours","delta":"lo"}"#);
/// assert!(form.read(r#"{"n":2,"model":"other","delta":"lo"}"#).is_none());
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug)]
pub struct Form {
    parts: Vec<Part>,
    end: Literal,
}

/// Bytes that are the same in every event of a form, and a value that varies.
#[derive(Debug)]
struct Part {
    before: Literal,
    /// The position of the value in the list of those that vary.
    slot: usize,
    varying: Varying,
}

/// Bytes that are the same in every event of a form.
#[derive(Debug)]
struct Literal {
    read: Box<[u8]>,
    /// The same with the edits.
    written: Box<[u8]>,
}

/// The values of an event that vary between the events of its form, in the order of the list from
/// which the form was made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Values<'a>([Option<&'a str>; MAX_VARYING]);

impl<'a> Values<'a> {
    /// Returns the text that is number `slot` in the list; empty if the form has none that varies.
    #[must_use]
    #[inline]
    pub fn text(&self, slot: usize) -> &'a str {
        self.0.get(slot).copied().flatten().unwrap_or_default()
    }

    /// Returns the number that is number `slot` in the list, if the form has one that varies.
    #[must_use]
    #[inline]
    pub fn number(&self, slot: usize) -> Option<u64> {
        self.0.get(slot).copied().flatten()?.parse().ok()
    }
}

impl Form {
    /// Makes a form of an event, which a reader has accepted, and its edits. Only the first
    /// [`MAX_VARYING`] members of a list may vary; those that are absent do not.
    ///
    /// Returns `None` for an event that is long or has an escape, by which a member may have another
    /// name than its bytes say, and for edits of values that vary.
    #[must_use]
    pub fn of(document: &str, edits: &Splice<'_>, varying: &[Varying]) -> Option<Self> {
        if document.len() > MAX_LENGTH || memchr::memchr(b'\\', document.as_bytes()).is_some() {
            return None;
        }
        let mut values: Vec<_> = varying
            .iter()
            .take(MAX_VARYING)
            .enumerate()
            .filter_map(|(slot, varying)| Some((varying.find(edits, document)?, slot, *varying)))
            .collect();
        values.sort_by_key(|(range, ..)| range.start);
        let (mut parts, mut at, mut edits) = (Vec::new(), 0, edits.edits());
        for (range, slot, varying) in values {
            let before = Literal::of(document, at..range.start, &mut edits);
            parts.push(Part {
                before,
                slot,
                varying,
            });
            at = range.end;
        }
        let end = Literal::of(document, at..document.len(), &mut edits);
        edits.is_empty().then_some(Self { parts, end })
    }

    /// Returns the values of an event, if it is of this form.
    #[must_use]
    pub fn read<'a>(&self, document: &'a str) -> Option<Values<'a>> {
        let (mut values, mut at) = (Values::default(), 0);
        let bytes = document.as_bytes();
        for part in &self.parts {
            if !bytes[at..].starts_with(&part.before.read) {
                return None;
            }
            let start = at + part.before.read.len();
            at = part.varying.end(bytes, start)?;
            values.0[part.slot] = Some(document.get(start..at)?);
        }
        (bytes[at..] == *self.end.read).then_some(values)
    }

    /// Appends an event of this form with these values to `out`, with the edits.
    pub fn write(&self, values: &Values<'_>, out: &mut Vec<u8>) {
        for part in &self.parts {
            out.extend_from_slice(&part.before.written);
            out.extend_from_slice(values.text(part.slot).as_bytes());
        }
        out.extend_from_slice(&self.end.written);
    }
}

impl Literal {
    /// The bytes of a range of a document. Takes the edits within it from the front of `edits`.
    fn of(document: &str, range: Range<usize>, edits: &mut &[(Range<usize>, Vec<u8>)]) -> Self {
        let bytes = document.as_bytes();
        let (mut written, mut at) = (Vec::new(), range.start);
        while let Some(((edited, value), rest)) = edits.split_first() {
            if edited.start < at || edited.end > range.end {
                break;
            }
            written.extend_from_slice(&bytes[at..edited.start]);
            written.extend_from_slice(value);
            (at, *edits) = (edited.end, rest);
        }
        written.extend_from_slice(&bytes[at..range.end]);
        Self {
            read: bytes[range].into(),
            written: written.into(),
        }
    }
}

/// The place of a text in an answer that an event continues, as its reader counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextPlace {
    /// The number of the choice, the item or the block.
    pub item: usize,
    /// The number of the text in it.
    pub part: usize,
    /// The number of changes after which the place was found: it is unknown after others.
    pub revision: usize,
}

/// The number of members of a form that may vary.
pub const MAX_VARYING: usize = 5;
/// The length of the longest event with a form.
const MAX_LENGTH: usize = 2048;
/// The number of digits up to which every number fits into 64 bits.
const MAX_DIGITS: usize = 19;

#[cfg(test)]
mod tests {
    use super::*;

    const VARYING: &[Varying] = &[
        Varying::text(&["a", "b"]),
        Varying::number(&["n"]),
        Varying::text(&["none"]),
    ];
    const EVENT: &str = r#"{"n": 10,"a":{"b":"x"},"c":true}"#;

    fn form(event: &str) -> Option<Form> {
        Form::of(event, &Splice::new(event.as_bytes()), VARYING)
    }

    #[test]
    fn other_values_are_of_the_form() {
        let form = form(EVENT).unwrap();
        for (text, number, digits) in [
            ("", 0, "0"),
            ("\u{e9} \u{7f}'", 7, "7"),
            ("n\":", 1, ""),
            ("x", u64::MAX / 2, "9223372036854775807"),
        ] {
            let event = format!(r#"{{"n": {digits},"a":{{"b":"{text}"}},"c":true}}"#);
            let values = form.read(&event);
            if digits.is_empty() {
                assert!(values.is_none(), "{event}");
                continue;
            }
            let values = values.unwrap();
            assert_eq!((values.text(0), values.number(1)), (text, Some(number)));
            assert_eq!((values.text(2), values.number(2)), ("", None));
            let mut out = Vec::new();
            form.write(&values, &mut out);
            assert_eq!(out, event.as_bytes());
        }
    }

    #[test]
    fn any_other_event_is_not_of_the_form() {
        let form = form(EVENT).unwrap();
        for event in [
            "",
            "{",
            r#"{"n": 10,"a":{"b":"x"},"c":true} "#,
            r#"{"n": 10,"a":{"b":"x"},"c":tru"#,
            r#"{"n": 10,"a":{"b":"x\n"},"c":true}"#,
            "{\"n\": 10,\"a\":{\"b\":\"x\t\"},\"c\":true}",
            r#"{"n": 10,"a":{"b":"x","b":"x"},"c":true}"#,
            r#"{"n": 10,"a":{"b":null},"c":true}"#,
            r#"{"n": 10,"a":{"b":"x"#,
            r#"{"n": 01,"a":{"b":"x"},"c":true}"#,
            r#"{"n": 1.0,"a":{"b":"x"},"c":true}"#,
            r#"{"n": 1e1,"a":{"b":"x"},"c":true}"#,
            r#"{"n": -1,"a":{"b":"x"},"c":true}"#,
            r#"{"n": 10000000000000000000,"a":{"b":"x"},"c":true}"#,
        ] {
            assert!(form.read(event).is_none(), "{event}");
        }
    }

    #[test]
    fn a_value_of_another_kind_does_not_vary() {
        let event = r#"{"n":"1","a":{"b":2}}"#;
        let form = form(event).unwrap();
        assert!(form.read(event).is_some());
        assert!(form.read(r#"{"n":"2","a":{"b":2}}"#).is_none());
        assert!(form.read(r#"{"n":"1","a":{"b":3}}"#).is_none());
    }

    #[test]
    fn an_event_with_an_escape_or_an_edited_value_has_no_form() {
        assert!(form(r#"{"n":1,"c":"\u0061"}"#).is_none());
        let mut edits = Splice::new(EVENT.as_bytes());
        edits.replace(&["a", "b"], b"\"y\"");
        assert!(Form::of(EVENT, &edits, VARYING).is_none());
    }

    #[test]
    fn edits_on_both_sides_of_a_value_are_written() {
        let mut edits = Splice::new(EVENT.as_bytes());
        edits.set("first", b"1");
        edits.add_missing(&["a"], &[("d", "2")]);
        edits.replace(&["c"], b"false");
        let form = Form::of(EVENT, &edits, VARYING).unwrap();
        let mut out = Vec::new();
        form.write(&form.read(EVENT).unwrap(), &mut out);
        assert_eq!(out, edits.to_vec());
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"first":1,"n": 10,"a":{"d":2,"b":"x"},"c":false}"#
        );
    }
}
