//! An event of a stream or a plain reply, as views into its JSON.

use serde::Deserialize;
use serde_json::value::RawValue;
use wire::lenient::{
    Arguments, Count, Counts, List, Members, OpenAi, Reported, Text, reports_error,
};

use super::kind::PartKind;

/// An event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    object: Text<'a>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    pub(super) sequence_number: Count,
    #[serde(borrow)]
    pub(super) response: Option<Response<'a>>,
    usage: Reported<OpenAi>,
    pub(super) output_index: Count,
    #[serde(borrow)]
    pub(super) item_id: Text<'a>,
    #[serde(borrow)]
    pub(super) item: Option<Item<'a>>,
    content_index: Count,
    #[serde(borrow, rename = "part")]
    pub(super) content_part: Members<Content<'a>>,
    summary_index: Count,
    #[serde(borrow)]
    pub(super) delta: Text<'a>,
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    pub(super) logprobs: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Text<'a>,
    #[serde(borrow)]
    pub(super) arguments: Arguments<'a>,
}

impl<'a> Event<'a> {
    /// Returns true if it reports an error, whatever else it has.
    pub(super) fn is_error(&self) -> bool {
        reports_error(self.error)
            || matches!(self.kind.get(), Some("error" | "response.failed"))
            || self.object.get() == Some("error")
    }

    /// Returns the token counts of its response, or its own.
    pub(super) fn usage(&self) -> Option<Counts> {
        let response = self.response.as_ref();
        response.and_then(Response::counts).or(self.usage.0)
    }

    /// Returns true if it is of the server's own: without a type, and without any known member.
    pub(super) fn is_foreign(&self) -> bool {
        let texts = [&self.kind, &self.item_id, &self.delta, &self.text];
        let counts = [self.sequence_number, self.output_index];
        let is_empty = texts.iter().all(|text| text.0.is_none());
        let is_unplaced = counts.iter().all(|count| count.0.is_none());
        is_empty && is_unplaced && self.response.is_none() && self.item.is_none()
    }

    /// The index of the part of this kind that it is about.
    pub(super) fn part(&self, kind: PartKind) -> Option<u64> {
        let (own, other) = match kind {
            PartKind::Summary => (self.summary_index, self.content_index),
            _ => (self.content_index, self.summary_index),
        };
        own.0.or(other.0)
    }

    /// The complete text of a part.
    pub(super) fn complete(self) -> Option<std::borrow::Cow<'a, str>> {
        self.text.0.or(self.refusal.0)
    }
}

/// A response object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) output: Option<Vec<Item<'a>>>,
    #[serde(borrow)]
    pub(super) incomplete_details: Members<IncompleteDetails<'a>>,
    usage: Reported<OpenAi>,
    #[serde(borrow)]
    service_tier: Text<'a>,
}

impl Response<'_> {
    /// Returns true if it reports a failure.
    pub(super) fn is_failure(&self) -> bool {
        reports_error(self.error) || self.status.get() == Some("failed")
    }

    /// Returns its token counts with its service tier. Without counts that tier is still the one
    /// that was requested.
    pub(super) fn counts(&self) -> Option<Counts> {
        let mut counts = self.usage.0?;
        if let Some(name) = self.service_tier.get() {
            counts.note_service_tier(name.as_bytes());
        }
        Some(counts)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct IncompleteDetails<'a> {
    #[serde(borrow)]
    pub(super) reason: Text<'a>,
}

/// An item of the output.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Item<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) call_id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    #[serde(borrow)]
    pub(super) arguments: Arguments<'a>,
    #[serde(borrow)]
    pub(super) encrypted_content: Text<'a>,
    #[serde(borrow)]
    pub(super) content: List<Content<'a>>,
    #[serde(borrow)]
    pub(super) summary: List<Content<'a>>,
}

/// A part of an item.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Content<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) refusal: Text<'a>,
    #[serde(borrow)]
    pub(super) annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) logprobs: Option<&'a RawValue>,
}

impl Content<'_> {
    pub(super) fn is_audio(&self) -> bool {
        self.kind.get() == Some("output_audio")
    }
}
