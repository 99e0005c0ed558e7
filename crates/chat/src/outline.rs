//! Reads the facts that relaying a plain request depends on, if it has the most frequent form.
//!
//! It judges nothing on its own: [`Request::read`] and
//! [`Request::validate`](crate::Request::validate) accept every request that it accepts, by the
//! rules of any model.

use wire::{Cursor, MAX_VALUES};

use crate::request::Request;
use crate::seen::Seen;
use crate::skim::messages;

/// The facts about a plain request that its relaying depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outline<'a> {
    /// The id of the model.
    pub model: &'a str,
    /// The most tokens of the answer, if the request limits them.
    pub output_limit: Option<u64>,
}

impl Request {
    /// Reads a request for a single plain completion, without building it. It is for callers that
    /// forward the document as it is, and takes a fraction of the time of [`Request::read`].
    ///
    /// Returns `None` for a request that has to be read with [`Request::read`]: one with a member
    /// or a message in a form that is not frequent, such as tools or an image, one for a stream,
    /// and one that is not valid in any way.
    ///
    /// ```
    /// let body = br#"{"model":"m","messages":[{"role":"user","content":"Hi."}],"max_tokens":9}"#;
    /// let outline = sluicegate_chat::Request::outline(body).unwrap();
    /// assert_eq!((outline.model, outline.output_limit), ("m", Some(9)));
    /// assert!(sluicegate_chat::Request::outline(br#"{"model":"m","messages":[]}"#).is_none());
    /// ```
    #[must_use]
    pub fn outline(body: &[u8]) -> Option<Outline<'_>> {
        // A value takes a byte at least.
        if body.len() > MAX_VALUES {
            return None;
        }
        let mut cursor = Cursor::new(body)?;
        let (mut model, mut output_limit) = (None, None);
        let (mut has_messages, mut seen) = (false, Seen::default());
        cursor.members(|cursor, member| match member.name {
            b"model" => {
                seen.once(0)?;
                model = Some(cursor.text()?).filter(|id| !id.is_empty());
                Some(())
            }
            b"messages" => {
                has_messages = true;
                seen.once(1).and_then(|()| messages(cursor))
            }
            b"stream" => seen.once(2).and_then(|()| cursor.word("false")),
            // Under both names there may be different limits.
            b"max_tokens" | b"max_completion_tokens" => {
                seen.once(3)?;
                output_limit = Some(cursor.count()?);
                (1..=MAX_INTEGER).contains(&output_limit?).then_some(())
            }
            b"temperature" => seen.once(4).and_then(|()| number(cursor, 0.0..=2.0)),
            b"top_p" => seen.once(5).and_then(|()| number(cursor, 0.0..=1.0)),
            b"n" => (seen.once(6).and(cursor.count())? == 1).then_some(()),
            b"seed" => (seen.once(7).and(cursor.count())? <= MAX_INTEGER).then_some(()),
            b"user" => seen.once(8).and(cursor.string()).map(drop),
            b"stop" => seen.once(9).and(cursor.string()).map(drop),
            _ => None,
        })?;
        cursor.end()?;
        let model = str::from_utf8(model?).ok()?;
        has_messages.then_some(Outline {
            model,
            output_limit,
        })
    }
}

/// Moves over a number in this range.
fn number(cursor: &mut Cursor<'_>, range: std::ops::RangeInclusive<f64>) -> Option<()> {
    let text = str::from_utf8(cursor.number()?).ok()?;
    range.contains(&text.parse().ok()?).then_some(())
}

const MAX_INTEGER: u64 = i64::MAX as u64;
