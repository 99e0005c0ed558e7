//! Reads a request without building its messages, if they have the most frequent forms.
//!
//! It judges nothing on its own. [`Request::read`] and
//! [`Request::validate`](crate::Request::validate) accept every message that it skips, by the rules
//! of any model; everything else is left to them.

use std::ops::Range;

use wire::{Cursor, MAX_VALUES};

use crate::request::Request;
use crate::seen::Seen;

impl Request {
    /// Reads a request, and leaves out its messages: a single empty one of the user takes their
    /// place. It is for callers that forward the document as it is, and saves them most of the time
    /// that a long conversation takes.
    ///
    /// Returns `None` for a request that has to be read with [`Request::read`]: one with a message
    /// in a form that is not frequent, such as an image or an unknown member, and one that is not
    /// valid in any way.
    ///
    /// ```
    /// let body = br#"{"model":"m","messages":[{"role":"user","content":"A long text."}],"n":2}"#;
    /// let request = sluicegate_chat::Request::skim(body).unwrap();
    /// assert_eq!((&*request.model, request.n), ("m", Some(2)));
    /// assert!(sluicegate_chat::Request::skim(br#"{"model":"m","messages":[]}"#).is_none());
    /// ```
    #[must_use]
    pub fn skim(body: &[u8]) -> Option<Self> {
        // A value takes a byte at least.
        if body.len() > MAX_VALUES {
            return None;
        }
        let Range { start, end } = range_of_messages(body)?;
        let without = [&body[..start], STAND_IN, &body[end..]].concat();
        Self::read(&without).ok()
    }
}

/// Returns the range of the messages, if all of them have the most frequent forms.
fn range_of_messages(body: &[u8]) -> Option<Range<usize>> {
    let mut cursor = Cursor::new(body)?;
    let (mut range, mut seen) = (None, Seen::default());
    cursor.members(|cursor, member| {
        if member.name != b"messages" {
            return cursor.skip(MAX_DEPTH);
        }
        seen.once(0)?;
        cursor.peek();
        let start = cursor.at();
        messages(cursor)?;
        range = Some(start..cursor.at());
        Some(())
    })?;
    cursor.end()?;
    range
}

/// Skips the messages. Returns `None` for an empty list, and for forms that are not frequent.
pub(crate) fn messages(cursor: &mut Cursor<'_>) -> Option<()> {
    let mut count = 0;
    cursor.elements(|cursor| {
        count += 1;
        message(cursor)
    })?;
    (count > 0).then_some(())
}

/// The facts about a message that its rules depend on, whatever the order of its members.
#[derive(Default)]
struct Facts {
    role: Option<Role>,
    content: Option<Content>,
    has_calls: bool,
    has_call_id: bool,
    /// True if it has a member that is known in messages of the model only.
    is_of_the_model: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// Of the system, the developer or the user.
    Prompt,
    Assistant,
    Tool,
}

#[derive(Clone, Copy, PartialEq)]
enum Content {
    Text,
    Null,
}

impl Facts {
    fn is_valid(&self) -> bool {
        let has_text = self.content == Some(Content::Text);
        match self.role {
            Some(Role::Prompt) => has_text && !self.has_call_id && !self.is_of_the_model,
            Some(Role::Tool) => has_text && self.has_call_id && !self.is_of_the_model,
            Some(Role::Assistant) => (has_text || self.has_calls) && !self.has_call_id,
            None => false,
        }
    }
}

fn message(cursor: &mut Cursor<'_>) -> Option<()> {
    let (mut facts, mut seen) = (Facts::default(), Seen::default());
    cursor.members(|cursor, member| match member.name {
        b"role" => {
            seen.once(0)?;
            facts.role = Some(match cursor.text()? {
                b"system" | b"developer" | b"user" => Role::Prompt,
                b"assistant" => Role::Assistant,
                b"tool" => Role::Tool,
                _ => return None,
            });
            Some(())
        }
        b"content" => {
            seen.once(1)?;
            facts.content = Some(content(cursor)?);
            Some(())
        }
        b"name" => seen.once(2).and(cursor.string()).map(drop),
        b"tool_call_id" => {
            facts.has_call_id = true;
            seen.once(3).and(cursor.string()).map(drop)
        }
        b"tool_calls" => {
            facts.is_of_the_model = true;
            seen.once(4)?;
            cursor.elements(|cursor| {
                facts.has_calls = true;
                call(cursor)
            })
        }
        b"refusal" => {
            facts.is_of_the_model = true;
            seen.once(5).and_then(|()| cursor.word("null"))
        }
        b"reasoning_content" | b"reasoning" => {
            facts.is_of_the_model = true;
            seen.once(6 + u8::from(member.name == b"reasoning"))?;
            cursor.string().map(drop)
        }
        _ => None,
    })?;
    facts.is_valid().then_some(())
}

/// Passes over the content of a message: a text, a list of texts, or null.
fn content(cursor: &mut Cursor<'_>) -> Option<Content> {
    match cursor.peek()? {
        b'"' => cursor.string().map(|_| Content::Text),
        b'[' => cursor.elements(part).map(|()| Content::Text),
        _ => cursor.word("null").map(|()| Content::Null),
    }
}

fn part(cursor: &mut Cursor<'_>) -> Option<()> {
    let (mut seen, mut has_text, mut is_text) = (Seen::default(), false, false);
    cursor.members(|cursor, member| match member.name {
        b"type" => {
            is_text = true;
            let is_known = seen.once(0).and(cursor.text())? == b"text";
            is_known.then_some(())
        }
        b"text" => {
            has_text = true;
            seen.once(1).and(cursor.string()).map(drop)
        }
        b"cache_control" => seen.once(2).and_then(|()| cursor.skip(1)),
        _ => None,
    })?;
    (is_text && has_text).then_some(())
}

/// Passes over a call of a function.
fn call(cursor: &mut Cursor<'_>) -> Option<()> {
    let (mut seen, mut members) = (Seen::default(), 0);
    cursor.members(|cursor, member| {
        members += 1;
        match member.name {
            b"id" => seen.once(0).and(cursor.string()).map(drop),
            b"type" => (seen.once(1).and(cursor.text())? == b"function").then_some(()),
            b"function" => seen.once(2).and_then(|()| function(cursor)),
            _ => None,
        }
    })?;
    (members == 3).then_some(())
}

fn function(cursor: &mut Cursor<'_>) -> Option<()> {
    let (mut seen, mut members) = (Seen::default(), 0);
    cursor.members(|cursor, member| {
        members += 1;
        match member.name {
            b"name" => seen.once(0).and(cursor.string()).map(drop),
            b"arguments" => seen.once(1).and(cursor.string()).map(drop),
            _ => None,
        }
    })?;
    (members == 2).then_some(())
}

/// The messages of a request that has none: valid by the rules of any model.
const STAND_IN: &[u8] = br#"[{"role":"user","content":""}]"#;
/// The nesting of all other members, which bounds the recursion.
const MAX_DEPTH: u8 = 16;
