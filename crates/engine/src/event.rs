//! What a text model does, as it does it.

/// One step of a generation.
///
/// Any order of the deltas is allowed, and any of them may be empty. What belongs together is what comes
/// together: a text delta after a call opens a new piece of text. A generation ends with [`TextEvent::Finished`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TextEvent {
    /// More of the thoughts, as text that may be shown.
    Reasoning(String),
    /// The model's seal on the thoughts just told.
    ReasoningSignature(String),
    /// Thoughts that only the model can read, whole.
    RedactedReasoning(String),
    /// More of the answer.
    Text(String),
    /// More of a refusal.
    Refusal(String),
    /// A call begins.
    Call {
        /// The id by which its result will refer to it.
        id: String,
        /// The function.
        name: String,
    },
    /// More of the arguments of the call that began last; before any call it means nothing.
    Arguments(String),
    /// The end.
    Finished {
        /// Why it ended.
        stop: Stop,
        /// What it took. Absent: not known.
        usage: Option<Usage>,
    },
}

/// Why a generation ended (wire-reference §9.3).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The model was done.
    End,
    /// A stop text of the caller's came up: this one.
    StopText(String),
    /// The cap on the output.
    MaxTokens,
    /// The model's context is full.
    ContextFull,
    /// The model waits for what comes of its calls.
    ToolCalls,
    /// A filter, or the model itself, refused.
    Refused,
    /// The model asks to be called again with what it said so far.
    Paused,
}

/// Tokens used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The whole prompt, cached parts included.
    pub input: u64,
    /// Of the prompt: read from a cache.
    pub cache_read: u64,
    /// Of the prompt: written to a cache.
    pub cache_write: u64,
    /// The whole output, reasoning included.
    pub output: u64,
    /// Of the output: reasoning.
    pub reasoning: u64,
}

impl Usage {
    /// Prompt and output.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }
}
