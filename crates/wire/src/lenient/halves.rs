//! Surrogate pairs that a server cuts between two events.
//!
//! A text of JavaScript can be cut within a character outside of the Basic Multilingual Plane. Then
//! one event ends in the first half of a surrogate pair, and the next one begins with the second:
//! <https://tc39.es/ecma262/#sec-json.stringify> writes each of them as an escape of its own.

use memchr::memchr;

use super::ReadError;
use crate::splice::members::Members;
use crate::{Cursor, Splice};

/// The first halves of surrogate pairs, which wait for the second ones.
///
/// ```
/// use sluicegate_wire::lenient::{Halves, ReadError};
///
/// let mut halves = Halves::default();
/// assert_eq!(halves.join(br#"{"index":0,"delta":"a\ud83d"}"#)?.as_deref(), Some(&br#"{"index":0,"delta":"a"}"#[..]));
/// assert_eq!(halves.join(br#"{"index":1,"delta":"b"}"#)?, None);
/// let joined = halves.join(br#"{"index":0,"delta":"\ude00c"}"#)?;
/// assert_eq!(joined.as_deref(), Some(&br#"{"index":0,"delta":"\ud83d\ude00c"}"#[..]));
/// assert!(halves.is_empty());
/// # Ok::<(), ReadError>(())
/// ```
#[derive(Debug, Default)]
pub struct Halves {
    waiting: Vec<Half>,
}

/// A first half.
#[derive(Debug)]
struct Half {
    /// The names and the indexes that lead to its text.
    place: String,
    escape: Vec<u8>,
}

impl Halves {
    /// Returns true if no half waits.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Moves the first half at the end of a text to the event that has the second one. Returns the
    /// event as it is then, or `None` if it stays as it is.
    ///
    /// # Errors
    /// If a text goes on without the second half.
    pub fn join(&mut self, event: &[u8]) -> Result<Option<Vec<u8>>, ReadError> {
        if self.waiting.is_empty() && !has_first_half(event) {
            return Ok(None);
        }
        let mut walk = Walk {
            document: event,
            place: place_of(event),
            edits: Splice::new(event),
            halves: self,
        };
        walk.value(0, "", MAX_DEPTH)?;
        let edits = walk.edits;
        Ok((!edits.is_empty()).then(|| edits.to_vec()))
    }

    /// Checks that no text ends in a first half.
    ///
    /// # Errors
    /// If one does.
    pub fn finish(&self) -> Result<(), ReadError> {
        if self.is_empty() { Ok(()) } else { Err(LONE) }
    }
}

/// A walk through the texts of an event.
struct Walk<'a, 'h> {
    document: &'a [u8],
    place: String,
    edits: Splice<'a>,
    halves: &'h mut Halves,
}

impl Walk<'_, '_> {
    /// Walks through the value at a position. `name` is the name of the member that contains it.
    fn value(&mut self, at: usize, name: &str, depth: usize) -> Result<(), ReadError> {
        let document = self.document;
        let mut cursor = Cursor::of_bytes(document, at);
        let first = cursor.peek();
        let start = cursor.at();
        match first {
            Some(b'"') if TEXTS.contains(&name) => {
                let end = cursor.pass_value().map_or(start + 1, |range| range.end - 1);
                self.text(start + 1, end)
            }
            Some(b'{') if depth > 0 => {
                for member in Members::new(document, start + 1) {
                    let name: String =
                        serde_json::from_slice(&document[member.name]).unwrap_or_default();
                    // Servers cut a token wherever they like.
                    if name != "logprobs" {
                        self.at(&name, |walk| {
                            walk.value(member.value.start, &name, depth - 1)
                        })?;
                    }
                }
                Ok(())
            }
            Some(b'[') if depth > 0 => {
                for (position, start) in elements(document, start).enumerate() {
                    let index = number_of(document, start).unwrap_or_else(|| position.to_string());
                    self.at(&index, |walk| walk.value(start, name, depth - 1))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn at(
        &mut self,
        step: &str,
        walk: impl FnOnce(&mut Self) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let length = self.place.len();
        self.place.push('.');
        self.place.push_str(step);
        let walked = walk(self);
        self.place.truncate(length);
        walked
    }

    /// Handles the text between these positions.
    fn text(&mut self, start: usize, end: usize) -> Result<(), ReadError> {
        let text = self.document.get(start..end).unwrap_or_default();
        let waiting = &mut self.halves.waiting;
        let known = waiting.iter().position(|half| half.place == self.place);
        if let Some(known) = known.filter(|_| !text.is_empty()) {
            if !is_half(text, b"cdefCDEF") {
                return Err(LONE);
            }
            let half = waiting.swap_remove(known);
            self.edits.edit(start..start, half.escape);
        }
        let last = text.len().saturating_sub(ESCAPE);
        let is_escaped = text[..last].iter().rev().take_while(|byte| **byte == b'\\');
        if is_half(&text[last..], FIRST) && is_escaped.count() % 2 == 0 {
            waiting.push(Half {
                place: self.place.clone(),
                escape: text[last..].to_vec(),
            });
            self.edits.edit(start + last..end, Vec::new());
        }
        Ok(())
    }
}

/// Returns the place of an event: its type, its indexes, and its item id if it has no
/// `output_index`.
fn place_of(event: &[u8]) -> String {
    let members = Members::of_object(event, 0);
    let mut values: [&[u8]; PLACES.len()] = Default::default();
    for member in members.into_iter().flatten() {
        let name: String = serde_json::from_slice(&event[member.name]).unwrap_or_default();
        if let Some(place) = PLACES.iter().position(|place| *place == name) {
            values[place] = &event[member.value];
        }
    }
    // An item has an index or an id, and some servers change the id.
    if !values[1].is_empty() {
        values[0] = b"";
    }
    String::from_utf8_lossy(&values.join(&b' ')).into_owned()
}

/// The positions of the elements of the array at a position.
fn elements(document: &[u8], start: usize) -> impl Iterator<Item = usize> {
    let mut cursor = Cursor::of_bytes(document, start + 1);
    let mut has_ended = false;
    std::iter::from_fn(move || {
        if has_ended {
            return None;
        }
        let element = cursor.pass_value();
        let element = element.filter(|range| document[range.start] != b']')?;
        has_ended = !cursor.take(b',');
        Some(element.start)
    })
}

/// The `index` of the object at a position.
fn number_of(document: &[u8], at: usize) -> Option<String> {
    let mut members = Members::of_object(document, at)?;
    let index = members.find(|member| document[member.name.clone()] == *b"\"index\"")?;
    Some(String::from_utf8_lossy(&document[index.value]).into_owned())
}

/// Returns true if a text begins with the escape of a half with one of these digits.
fn is_half(text: &[u8], digits: &[u8]) -> bool {
    matches!(text, [b'\\', b'u', b'd' | b'D', digit, _, _, ..] if digits.contains(digit))
}

/// Returns true if a text may end in a first half.
fn has_first_half(event: &[u8]) -> bool {
    let mut rest = event;
    while let Some(at) = memchr(b'\\', rest) {
        let escape = &rest[at..];
        if is_half(escape, FIRST) && escape.get(ESCAPE) == Some(&b'"') {
            return true;
        }
        rest = escape.get(2..).unwrap_or_default();
    }
    false
}

const LONE: ReadError = ReadError::Contradiction("half of a surrogate pair without the other half");
/// The digits of a first half behind its `d`.
const FIRST: &[u8] = b"89abAB";
/// The length of an escape.
const ESCAPE: usize = 6;
/// The nesting of a text, which bounds the recursion.
const MAX_DEPTH: usize = 12;
/// The names of members with texts that are pieces.
const TEXTS: [&str; 9] = [
    "content",
    "reasoning_content",
    "reasoning",
    "thinking",
    "refusal",
    "text",
    "delta",
    "arguments",
    "partial_json",
];
/// The members that make up the place of an event.
const PLACES: [&str; 6] = [
    "item_id",
    "output_index",
    "content_index",
    "summary_index",
    "index",
    "type",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(events: &[&str]) -> Result<Vec<String>, ReadError> {
        let mut halves = Halves::default();
        let mut all = Vec::new();
        for event in events {
            let joined = halves.join(event.as_bytes())?;
            let joined = joined.unwrap_or_else(|| event.as_bytes().to_vec());
            all.push(String::from_utf8(joined).unwrap());
        }
        halves.finish().map(|()| all)
    }

    #[test]
    fn a_half_waits_for_the_other_of_its_choice_and_call() {
        let events = [
            r#"{"choices":[{"index":1,"delta":{"content":"a\uD83D"}},{"index":0,"delta":{"content":"b\ud83c"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"","tool_calls":[{"index":2,"function":{"arguments":"\"\ud83d"}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"\udf0d"}}]}"#,
            r#"{"choices":[{"index":1,"delta":{"content":"\ude00\ud83d"}}]}"#,
            r#"{"choices":[{"index":1,"delta":{"content":"\ude01"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":2,"function":{"arguments":"\ude02\""}}]}}]}"#,
        ];
        assert_eq!(
            joined(&events).unwrap(),
            [
                r#"{"choices":[{"index":1,"delta":{"content":"a"}},{"index":0,"delta":{"content":"b"}}]}"#,
                r#"{"choices":[{"index":0,"delta":{"content":"","tool_calls":[{"index":2,"function":{"arguments":"\""}}]}}]}"#,
                r#"{"choices":[{"index":0,"delta":{"content":"\ud83c\udf0d"}}]}"#,
                r#"{"choices":[{"index":1,"delta":{"content":"\uD83D\ude00"}}]}"#,
                r#"{"choices":[{"index":1,"delta":{"content":"\ud83d\ude01"}}]}"#,
                r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":2,"function":{"arguments":"\ud83d\ude02\""}}]}}]}"#,
            ]
        );
    }

    #[test]
    fn a_half_without_the_other_is_a_contradiction() {
        let first = r#"{"delta":"\ud83d"}"#;
        for events in [
            &[first][..],
            &[first, r#"{"delta":"a"}"#],
            &[first, r#"{"delta":"\ud83d"}"#],
            &[first, r#"{"type":"x","delta":"\ude00"}"#],
            &[first, r#"{"content_index":1,"delta":"\ude00"}"#],
        ] {
            assert_eq!(joined(events), Err(LONE), "{events:?}");
        }
    }

    #[test]
    fn whole_pairs_and_escaped_backslashes_stay() {
        for event in [
            r#"{"delta":"\ud83d\ude00"}"#,
            r#"{"delta":"\\ud83d"}"#,
            r#"{"other":"\ud83d"}"#,
            r#"{"choices":[{"logprobs":{"content":[{"text":"\ud83d"}]}}]}"#,
            r#"{"delta":"\ude00"}"#,
            r#"{"delta":"\ud83d"#,
            r#"[[[[[[[[[[[[[["\ud83d"]]]]]]]]]]]]]]"#,
        ] {
            assert_eq!(joined(&[event]).unwrap(), [event]);
        }
    }
}
