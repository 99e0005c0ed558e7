//! Events of a text generation.

use wire::{Json, ServiceTier};

/// One event of a text generation.
///
/// Deltas may occur in any order and may be empty. Consecutive deltas of the same kind belong
/// together; a text delta after a call starts a new text block. A generation ends with
/// [`TextEvent::Finished`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TextEvent {
    /// Delta of readable reasoning text.
    Reasoning(String),
    /// Signature of the preceding reasoning block.
    ReasoningSignature(String),
    /// A complete block of encrypted reasoning, readable only by the model.
    RedactedReasoning(String),
    /// Opaque data by which the server recognizes one of its calls, which is the next one in most
    /// answers.
    CallSeal {
        /// The id of the call.
        id: String,
        /// The data.
        seal: String,
    },
    /// Log probabilities of the tokens of the next delta of output text.
    Logprobs(Vec<Json>),
    /// Delta of output text.
    Text(String),
    /// Delta of a refusal.
    Refusal(String),
    /// Start of a function call.
    Call {
        /// The id that the call's result refers to.
        id: String,
        /// The name of the function.
        name: String,
    },
    /// Delta of the arguments of the most recent call; ignored before any call.
    Arguments(String),
    /// The answer has content of this kind, such as `audio`, for which there is no event.
    LeftOut(&'static str),
    /// The terminal event.
    Finished {
        /// The stop reason.
        stop: Stop,
        /// The token usage, if known.
        usage: Option<Usage>,
    },
}

impl TextEvent {
    /// Returns the length of the text that the model has generated for the event, in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        let text = match self {
            Self::Reasoning(text)
            | Self::Text(text)
            | Self::Refusal(text)
            | Self::Arguments(text)
            | Self::Call { name: text, .. } => text,
            Self::ReasoningSignature(_)
            | Self::RedactedReasoning(_)
            | Self::CallSeal { .. }
            | Self::Logprobs(_)
            | Self::LeftOut(_)
            | Self::Finished { .. } => return 0,
        };
        text.len() as u64
    }
}

/// The reason why a generation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The model completed its output.
    End,
    /// The output reached the given stop sequence of the request.
    StopText(String),
    /// The output reached the maximum number of tokens.
    MaxTokens,
    /// The model's context is full.
    ContextFull,
    /// The model waits for the results of its function calls.
    ToolCalls,
    /// A content filter or the model itself refused.
    Refused,
    /// The model paused; the client continues by sending back the output so far.
    Paused,
}

/// Token usage of a generation.
///
/// `input` and `output` are totals, and the other numbers are parts of them. A server may report
/// parts that exceed their total: then the parts count in full, and the total is their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Prompt tokens in total, including cached ones.
    pub input: u64,
    /// Prompt tokens read from a cache.
    pub cache_read: u64,
    /// Prompt tokens written to a cache, for whatever time.
    pub cache_write: u64,
    /// Prompt tokens in `cache_write` that are kept for an hour.
    pub cache_write_1h: u64,
    /// Prompt tokens that are audio.
    pub audio_input: u64,
    /// Prompt tokens that are images.
    pub image_input: u64,
    /// Output tokens in total, including reasoning.
    pub output: u64,
    /// Output tokens used for reasoning.
    pub reasoning: u64,
    /// Output tokens that are audio.
    pub audio_output: u64,
    /// Output tokens that are images.
    pub image_output: u64,
    /// The service tier at which the request was processed.
    pub service_tier: ServiceTier,
}

impl Usage {
    /// Returns the prompt tokens, which select the tier of a price.
    #[must_use]
    pub fn prompt(&self) -> u64 {
        self.input.max(self.cached())
    }

    /// Returns the prompt tokens that were read from a cache or written to one.
    #[must_use]
    pub fn cached(&self) -> u64 {
        let written = self.cache_write.max(self.cache_write_1h);
        self.cache_read.saturating_add(written)
    }

    /// Returns the sum of prompt and output tokens.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}
