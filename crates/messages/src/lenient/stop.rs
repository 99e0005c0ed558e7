//! The words for the end of an answer.

/// The meaning of a stop reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The model finished its turn.
    EndTurn,
    /// A stop sequence of the request matched: this one, if the server names it.
    StopSequence(Option<String>),
    /// The model waits for the results of its calls.
    ToolUse,
    /// The output limit truncated the answer.
    MaxTokens,
    /// The context window is full.
    ContextFull,
    /// A filter, or the model itself, refused.
    Refusal,
    /// The model paused, or has only summed up the conversation; the client continues by sending the
    /// content back.
    PauseTurn,
}

impl Stop {
    /// The meaning of a stop reason; `None` for one that is unknown, or that reports a failure of
    /// the model.
    ///
    /// The reference lists them all
    /// (<https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons>). Servers
    /// that translate from another protocol pass on some of its words. The list is closed: a word
    /// that is not in it may mean anything.
    #[must_use]
    pub fn of(reason: &str) -> Option<Self> {
        Some(match reason {
            "end_turn" | "stop" | "eos" => Self::EndTurn,
            "stop_sequence" => Self::StopSequence(None),
            "tool_use" | "tool_calls" => Self::ToolUse,
            "max_tokens" | "length" => Self::MaxTokens,
            "model_context_window_exceeded" => Self::ContextFull,
            "refusal" | "content_filter" | "sensitive" => Self::Refusal,
            // <https://platform.claude.com/docs/en/build-with-claude/compaction>
            "pause_turn" | "compaction" => Self::PauseTurn,
            _ => return None,
        })
    }

    /// Returns true if the answer is complete.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !matches!(self, Self::MaxTokens | Self::ContextFull | Self::Refusal)
    }
}
