//! An event of a stream or a plain reply, as views into its JSON.

use serde::Deserialize;
use serde_json::value::RawValue;
use wire::lenient::{Count, Members, ReadError, Text, Tokens, reports_error, required};

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
    pub(super) usage: Members<Usage>,
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
    pub(super) usage: Members<Usage>,
    /// False in replies by which some servers report a failure with status 200.
    success: Option<bool>,
}

impl Message<'_> {
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
    /// Checks that it has what its type promises.
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

/// Token counts. Those of an event are cumulative.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    input_tokens: Count,
    cache_creation_input_tokens: Count,
    cache_read_input_tokens: Count,
    output_tokens: Count,
    output_tokens_details: Members<OutputDetails>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    thinking_tokens: Count,
}

impl Usage {
    /// Replaces counts with later ones.
    pub(super) fn update(&mut self, later: Option<Self>) {
        let Some(later) = later else { return };
        let counts = [
            (&mut self.input_tokens, later.input_tokens),
            (
                &mut self.cache_creation_input_tokens,
                later.cache_creation_input_tokens,
            ),
            (
                &mut self.cache_read_input_tokens,
                later.cache_read_input_tokens,
            ),
            (&mut self.output_tokens, later.output_tokens),
        ];
        for (known, later) in counts {
            known.0 = later.0.or(known.0);
        }
        self.output_tokens_details.0 = later
            .output_tokens_details
            .0
            .or(self.output_tokens_details.0);
    }

    /// The counts, unless none is known.
    pub(super) fn tokens(&self) -> Option<Tokens> {
        self.input_tokens.0.or(self.output_tokens.0)?;
        let cache_read = self.cache_read_input_tokens.0.unwrap_or_default();
        let cache_write = self.cache_creation_input_tokens.0.unwrap_or_default();
        // In this protocol `input_tokens` excludes the cached tokens.
        let input = self
            .input_tokens
            .0
            .unwrap_or_default()
            .saturating_add(cache_read)
            .saturating_add(cache_write);
        let output = self.output_tokens.0.unwrap_or_default();
        let reasoning = self
            .output_tokens_details
            .0
            .and_then(|details| details.thinking_tokens.0)
            .unwrap_or_default();
        Some(Tokens {
            input,
            cache_read,
            cache_write,
            output,
            reasoning,
        })
    }
}
