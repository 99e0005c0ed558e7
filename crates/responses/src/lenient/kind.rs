//! The kinds of items and of their parts.

use std::borrow::Cow;

use serde_json::value::RawValue;
use wire::lenient::Update;

use super::event::Content;

/// The kind of content of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartKind {
    Text,
    Refusal,
    Summary,
    Reasoning,
}

impl PartKind {
    /// All kinds, by their numbers.
    pub(super) const ALL: [Self; 4] = [Self::Text, Self::Refusal, Self::Summary, Self::Reasoning];

    /// The kind of content that events with this name are about, such as `output_text`.
    pub(super) fn of_event(name: &str) -> Option<Self> {
        Some(match name {
            "output_text" => Self::Text,
            "refusal" => Self::Refusal,
            "reasoning_summary_text" => Self::Summary,
            "reasoning_text" | "reasoning" => Self::Reasoning,
            _ => return None,
        })
    }

    /// The kind of content of parts with this type.
    pub(super) fn of_part(name: &str) -> Option<Self> {
        Some(match name {
            "output_text" | "text" => Self::Text,
            "refusal" => Self::Refusal,
            "summary_text" => Self::Summary,
            "reasoning_text" => Self::Reasoning,
            _ => return None,
        })
    }

    /// The type of the items with such content.
    pub(super) fn item(self) -> ItemKind {
        match self {
            Self::Text | Self::Refusal => ItemKind::Message,
            Self::Summary | Self::Reasoning => ItemKind::Reasoning,
        }
    }

    /// Its number among the kinds whose texts have an order.
    pub(super) fn number(self) -> usize {
        match self {
            Self::Text => 0,
            Self::Refusal => 1,
            Self::Summary => 2,
            Self::Reasoning => 3,
        }
    }

    /// The update for a text of a part of an item.
    pub(super) fn update(self, (item, part): (u64, u64), text: Cow<'_, str>) -> Update<'_> {
        match self {
            Self::Text => Update::Text(text),
            Self::Refusal => Update::Refusal(text),
            Self::Summary => Update::Summary { item, part, text },
            Self::Reasoning => Update::Reasoning(text),
        }
    }
}

/// The type of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    Message,
    Reasoning,
    Call,
    /// Items of hosted tools, and items that are newer than this reader.
    Other,
}

impl ItemKind {
    pub(super) fn of(name: &str) -> Self {
        match name {
            "message" => Self::Message,
            "reasoning" => Self::Reasoning,
            "function_call" => Self::Call,
            _ => Self::Other,
        }
    }
}

/// Text of a part.
pub(super) struct Piece<'a> {
    pub(super) text: Cow<'a, str>,
    /// The log probabilities of its tokens.
    pub(super) logprobs: Option<&'a RawValue>,
}

impl<'a> Piece<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The log probabilities, if it has any.
    pub(super) fn logprobs(&self) -> Option<Update<'a>> {
        let tokens = self.logprobs.filter(|list| !is_empty(list))?.get();
        tokens.starts_with('[').then_some(Update::Logprobs(tokens))
    }
}

/// The kind and the text of a part, unless it is of an unknown type or has no text.
pub(super) fn content(part: Content<'_>) -> Option<(PartKind, Piece<'_>)> {
    let kind = PartKind::of_part(part.kind.or_empty())?;
    let text = match kind {
        PartKind::Refusal => part.refusal.0?,
        _ => part.text.0?,
    };
    let logprobs = part.logprobs;
    Some((kind, Piece { text, logprobs }))
}

/// Returns true if a list has no entries, or is `null`.
pub(super) fn is_empty(list: &RawValue) -> bool {
    matches!(list.get(), "null" | "[]")
}
