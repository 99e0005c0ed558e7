//! A reader of the most frequent form of a plain reply, in one pass and without a copy.
//!
//! It judges nothing on its own. [`Reader::reply`](super::Reader::reply) accepts every reply that
//! it accepts, with the same facts; everything else is left to that reader.

use std::ops::Range;

use wire::lenient::{Counts, Meaning, OPENAI, Table, Tokens};
use wire::{Cursor, Member};

use super::usage::{Groq, LlamaCpp};
use crate::seen::Seen;

/// The facts about a finished reply with one choice and no calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrequentReply {
    /// The range of the value of `model`.
    pub model: Option<Range<usize>>,
    /// The ranges of the breakdown in the usage, in document order, each with a comma if it has
    /// one. They are empty if there is no breakdown.
    pub usage_details: [Range<usize>; 2],
    /// True if a limit truncated the answer.
    pub is_truncated: bool,
    /// The token counts.
    pub tokens: Option<Tokens>,
}

impl FrequentReply {
    /// Reads a plain reply. Returns `None` for every other form of a reply or document.
    #[must_use]
    pub fn read(body: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(body)?;
        let (mut reply, mut seen) = (Self::default(), Seen::default());
        let (mut usage, mut counts) = (Counts::default(), Counts::default());
        let mut has_choice = false;
        cursor.members(|cursor, member| match member.name {
            b"id" => seen.once(0).and(cursor.string()).map(drop),
            b"object" => seen
                .once(1)
                .and(cursor.text())
                .filter(is_completion)
                .map(drop),
            b"model" => {
                seen.once(2)?;
                reply.model = cursor.string();
                reply.model.as_ref().map(drop)
            }
            b"choices" => {
                seen.once(3)?;
                has_choice = true;
                cursor.expect(b'[')?;
                reply.is_truncated = choice(cursor)?;
                cursor.expect(b']')
            }
            b"usage" => seen.once(4).and_then(|()| reply.usage(cursor, &mut usage)),
            b"error" | b"type" => None,
            b"service_tier" => seen
                .once(7)
                .and_then(|()| counts.read(cursor, Some(Meaning::ServiceTier))),
            b"x_groq" => seen
                .once(5)
                .and_then(|()| counts.read(cursor, Some(Meaning::Object(Groq::SPELLINGS)))),
            b"timings" => seen
                .once(6)
                .and_then(|()| counts.read(cursor, Some(Meaning::Object(LlamaCpp::SPELLINGS)))),
            _ => cursor.skip(MAX_DEPTH),
        })?;
        cursor.end()?;
        counts.merge(&usage);
        reply.tokens = counts.settled();
        // A usage that has to be rewritten is not frequent.
        let is_unsettled = |tokens: &Tokens| usage.unsettled(tokens).is_some();
        let is_frequent = has_choice && !reply.tokens.as_ref().is_some_and(is_unsettled);
        is_frequent.then_some(reply)
    }

    /// Reads the usage, and notes where its breakdown is.
    fn usage(&mut self, cursor: &mut Cursor<'_>, counts: &mut Counts) -> Option<()> {
        if cursor.peek()? == b'n' {
            return cursor.word("null");
        }
        let (mut has_kept, mut removed) = (false, 0);
        cursor.members(|cursor, member| {
            counts.read(cursor, Meaning::of(member.name, OPENAI))?;
            if !matches!(
                member.name,
                b"prompt_tokens_details" | b"completion_tokens_details"
            ) {
                has_kept = true;
                return Some(());
            }
            *self.usage_details.get_mut(removed)? = removal(cursor, &member, has_kept);
            removed += 1;
            Some(())
        })
    }
}

/// Returns the range that [`wire::Splice::remove`] removes for a member whose value ends at the
/// cursor. `has_kept` is true if the object keeps a member before it.
fn removal(cursor: &Cursor<'_>, member: &Member<'_>, has_kept: bool) -> Range<usize> {
    if let Some(comma) = member.comma.filter(|_| has_kept) {
        return comma..cursor.at();
    }
    let mut next = cursor.clone();
    next.take(b',');
    next.peek();
    member.start..next.at()
}

/// Reads a finished choice without calls. Returns true if a limit truncated it.
fn choice(cursor: &mut Cursor<'_>) -> Option<bool> {
    let (mut finish, mut seen, mut has_message) = (None, Seen::default(), false);
    cursor.members(|cursor, member| match member.name {
        b"index" => seen
            .once(0)
            .and(cursor.count())
            .filter(|index| *index == 0)
            .map(drop),
        b"message" => {
            has_message = true;
            seen.once(1).and_then(|()| message(cursor))
        }
        b"finish_reason" => {
            seen.once(2)?;
            finish = Some(match cursor.text()? {
                b"stop" => false,
                b"length" => true,
                _ => return None,
            });
            Some(())
        }
        b"logprobs" => seen.once(3).and_then(|()| cursor.word("null")),
        b"delta" | b"usage" | b"error" => None,
        _ => cursor.skip(MAX_DEPTH),
    })?;
    finish.filter(|_| has_message)
}

/// Reads a message without calls.
fn message(cursor: &mut Cursor<'_>) -> Option<()> {
    let mut seen = Seen::default();
    cursor.members(|cursor, member| {
        let number = match member.name {
            b"content" => 0,
            b"refusal" => 1,
            b"reasoning_content" => 2,
            b"reasoning" => 3,
            b"thinking" => 4,
            b"tool_calls" => {
                seen.once(5)?;
                return null_or_empty(cursor);
            }
            b"function_call" => return seen.once(6).and_then(|()| cursor.word("null")),
            b"reasoning_details" => {
                seen.once(7)?;
                return null_or_empty(cursor);
            }
            b"annotations" => return seen.once(8).and_then(|()| cursor.skip(MAX_DEPTH)),
            b"audio" | b"images" => return None,
            _ => return cursor.skip(MAX_DEPTH),
        };
        seen.once(number)?;
        match cursor.peek()? {
            b'"' => cursor.string().map(drop),
            _ => cursor.word("null"),
        }
    })
}

fn null_or_empty(cursor: &mut Cursor<'_>) -> Option<()> {
    match cursor.peek()? {
        b'[' => cursor.elements(|_| None),
        _ => cursor.word("null"),
    }
}

fn is_completion(object: &&[u8]) -> bool {
    *object == crate::Completion::OBJECT.as_bytes()
}

/// The nesting of members that are passed over, which bounds the recursion.
const MAX_DEPTH: u8 = 8;
