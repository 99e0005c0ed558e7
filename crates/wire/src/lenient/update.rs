//! The content that an event adds to an answer.

use std::borrow::Cow;

/// New content of an answer. No protocol has all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Update<'a> {
    /// Reasoning text to append.
    Reasoning(Cow<'a, str>),
    /// Text to append to a part of the summary of the reasoning.
    Summary {
        /// The index of its item.
        item: u64,
        /// The index of the part in its item.
        part: u64,
        /// The text.
        text: Cow<'a, str>,
    },
    /// The signature of the reasoning so far, or a piece of it.
    Signature(Cow<'a, str>),
    /// A block of encrypted reasoning.
    RedactedReasoning(Cow<'a, str>),
    /// An item of reasoning is complete, with the encrypted form in which it can be sent back.
    Encrypted {
        /// The id of the item, which may be empty.
        id: Cow<'a, str>,
        /// The encrypted reasoning.
        content: Cow<'a, str>,
    },
    /// A part of the reasoning that the server wants back as it is, as a JSON object.
    Detail(&'a str),
    /// Opaque data of the message that the server wants back, as JSON.
    Extra(&'a str),
    /// A member of the message that the server wants back as it is.
    Member {
        /// The name.
        name: &'static str,
        /// The value, as JSON.
        value: &'a str,
    },
    /// Opaque data of a call that the server wants back, as JSON.
    CallExtra {
        /// The number of the call.
        call: usize,
        /// The id of the call; an empty one is unknown.
        id: String,
        /// The name of the member that has the data.
        member: &'static str,
        /// The data.
        content: &'a str,
    },
    /// Log probabilities of the tokens of the next output text, as a JSON array.
    Logprobs(&'a str),
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
        /// The piece of JSON to append.
        text: Cow<'a, str>,
    },
    /// A call is complete as far as it was sent.
    CallEnd(usize),
}

impl Update<'_> {
    /// Returns the length of the text that the model generated for the update, in bytes.
    ///
    /// ```
    /// use sluicegate_wire::lenient::Update;
    ///
    /// assert_eq!(Update::Reasoning("Well.".into()).length(), 5);
    /// assert_eq!(Update::CallEnd(0).length(), 0);
    /// ```
    #[must_use]
    pub fn length(&self) -> u64 {
        let text = match self {
            Self::Reasoning(text)
            | Self::Summary { text, .. }
            | Self::Text(text)
            | Self::Refusal(text)
            | Self::Arguments { text, .. }
            | Self::Call { name: text, .. } => text,
            Self::Signature(_)
            | Self::RedactedReasoning(_)
            | Self::Encrypted { .. }
            | Self::Detail(_)
            | Self::Extra(_)
            | Self::Member { .. }
            | Self::CallExtra { .. }
            | Self::Logprobs(_)
            | Self::CallEnd(_) => return 0,
        };
        text.len() as u64
    }

    /// Returns true if it is opaque data beside the content.
    #[must_use]
    pub fn is_opaque(&self) -> bool {
        matches!(
            self,
            Self::Detail(_) | Self::Extra(_) | Self::Member { .. } | Self::CallExtra { .. }
        )
    }
}

/// Appends an update for a text, unless the text is absent or empty.
///
/// ```
/// use sluicegate_wire::lenient::{Update, push};
///
/// let mut updates = Vec::new();
/// push(Some("Hello.".into()), Update::Text, &mut updates);
/// push(Some("".into()), Update::Text, &mut updates);
/// push(None, Update::Refusal, &mut updates);
/// assert_eq!(updates, [Update::Text("Hello.".into())]);
/// ```
pub fn push<'a>(
    text: Option<Cow<'a, str>>,
    update: impl FnOnce(Cow<'a, str>) -> Update<'a>,
    out: &mut Vec<Update<'a>>,
) {
    out.extend(text.filter(|text| !text.is_empty()).map(update));
}
