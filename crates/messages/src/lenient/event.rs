//! An event of a stream or a plain reply, as views into its JSON.

use serde::Deserialize;
use serde_json::value::RawValue;
use wire::lenient::{Count, Members, ReadError, Reported, Text, reports_error, required};

use super::usage::Claude;

/// An event, or a plain reply.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    pub(super) index: Count,
    #[serde(borrow)]
    pub(super) message: Members<Message<'a>>,
    #[serde(borrow)]
    pub(super) content_block: Option<Block<'a>>,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    pub(super) usage: Reported<Claude>,
}

impl Event<'_> {
    /// Returns true if it reports an error, whatever else it has.
    pub(super) fn is_error(&self) -> bool {
        reports_error(self.error) || self.kind.get() == Some("error")
    }

    /// Returns true if it is of the server's own: without a type, and without any known member.
    pub(super) fn is_foreign(&self) -> bool {
        let is_empty = self.index.0.is_none() && self.message.0.is_none() && self.usage.0.is_none();
        is_empty && self.kind.0.is_none() && self.content_block.is_none() && self.delta.is_none()
    }
}

/// The message of `message_start`, or of a plain reply.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Option<Vec<Block<'a>>>,
    #[serde(borrow)]
    pub(super) stop_reason: Text<'a>,
    #[serde(borrow)]
    pub(super) stop_sequence: Text<'a>,
    pub(super) usage: Reported<Claude>,
    /// False in replies by which some servers report a failure with status 200.
    success: Option<bool>,
}

impl Message<'_> {
    /// Returns true if a block of it has any content.
    pub(super) fn has_content(&self) -> bool {
        self.content.iter().flatten().any(Block::has_content)
    }

    pub(super) fn is_failure(&self) -> bool {
        self.success == Some(false)
    }
}

/// A block of content.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow)]
    pub(super) signature: Text<'a>,
    #[serde(borrow)]
    pub(super) data: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) citations: Option<&'a RawValue>,
}

impl Block<'_> {
    fn has_content(&self) -> bool {
        let texts = [&self.text, &self.thinking, &self.data, &self.name];
        texts.iter().any(|text| !text.or_empty().is_empty())
    }
}

/// The delta of a block, or of the message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow)]
    pub(super) signature: Text<'a>,
    #[serde(borrow)]
    pub(super) partial_json: Text<'a>,
    #[serde(borrow)]
    pub(super) stop_reason: Text<'a>,
    #[serde(borrow)]
    pub(super) stop_sequence: Text<'a>,
}

impl Delta<'_> {
    /// Returns the delta types whose content it has.
    pub(super) fn contents(&self) -> impl Iterator<Item = &'static str> {
        let members = [
            (&self.text, "text_delta"),
            (&self.thinking, "thinking_delta"),
            (&self.signature, "signature_delta"),
            (&self.partial_json, "input_json_delta"),
        ];
        let has_text = |text: &Text<'_>| !text.or_empty().is_empty();
        members
            .into_iter()
            .filter(move |(text, _)| has_text(text))
            .map(|(_, kind)| kind)
    }

    /// Returns true if it has the text of a delta of this type, and no text of another one.
    pub(super) fn is_only(&self, kind: Option<&str>) -> bool {
        matches!(
            (kind, &self.text.0, &self.thinking.0),
            (Some("text_delta"), Some(_), None) | (Some("thinking_delta"), None, Some(_))
        )
    }

    pub(super) fn has_content(&self) -> bool {
        self.contents().next().is_some()
    }

    /// Checks that it has the member that its type requires.
    pub(super) fn check(&self) -> Result<(), ReadError> {
        let (member, name) = match self.kind.or_empty() {
            "text_delta" => (&self.text, "text"),
            "thinking_delta" => (&self.thinking, "thinking"),
            "signature_delta" => (&self.signature, "signature"),
            "input_json_delta" => (&self.partial_json, "partial_json"),
            _ => return Ok(()),
        };
        required(member.get(), name).map(drop)
    }
}
