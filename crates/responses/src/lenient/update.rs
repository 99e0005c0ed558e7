//! The content that an event adds to an answer.

use std::borrow::Cow;

/// New content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Update<'a> {
    /// Reasoning text to append.
    Reasoning(Cow<'a, str>),
    /// Text to append to a part of the summary of the reasoning.
    Summary {
        /// The index of the part in its item.
        part: u64,
        /// The text.
        text: Cow<'a, str>,
    },
    /// Output text to append.
    Text(Cow<'a, str>),
    /// Refusal text to append.
    Refusal(Cow<'a, str>),
    /// A call begins, or its id or name becomes known; an empty one is unknown.
    Call {
        /// The number of the call in the order in which calls began, from 0.
        call: usize,
        /// The id, by which the result refers to the call.
        id: Cow<'a, str>,
        /// The name of the function.
        name: Cow<'a, str>,
    },
    /// A piece of the arguments of a call.
    Arguments {
        /// The number of the call.
        call: usize,
        /// The piece to append.
        text: Cow<'a, str>,
    },
    /// A call is complete as far as it was sent.
    CallEnd(usize),
}
