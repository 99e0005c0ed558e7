//! The words for the end of an answer.

use simulator::Protocol;

/// The meaning of a finish reason, or of a stop reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    Whole,
    /// The client has to execute calls.
    Calls,
    /// A limit truncated the answer.
    Cut,
    Filtered,
}

impl Finish {
    /// The meaning of a word, from the vendors' references; `None` for any other.
    ///
    /// <https://platform.openai.com/docs/api-reference/chat/object>,
    /// <https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons>,
    /// <https://docs.cohere.com/reference/chat>,
    /// <https://huggingface.co/docs/text-generation-inference/reference/api_reference>,
    /// <https://docs.mistral.ai/api/>,
    /// <https://ai.google.dev/api/generate-content#FinishReason>,
    /// <https://docs.z.ai/api-reference/llm/chat-completion>.
    pub(super) fn of(protocol: Protocol, word: &str) -> Option<Self> {
        Some(match (protocol, word.to_ascii_lowercase().as_str()) {
            (Protocol::Chat, "stop" | "eos" | "eos_token" | "complete")
            | (Protocol::Messages, "end_turn" | "stop_sequence" | "pause_turn") => Self::Whole,
            (Protocol::Chat, "tool_calls" | "function_call") | (Protocol::Messages, "tool_use") => {
                Self::Calls
            }
            (Protocol::Chat, "length" | "model_length")
            | (Protocol::Messages, "max_tokens" | "model_context_window_exceeded") => Self::Cut,
            (Protocol::Chat, "content_filter" | "safety" | "sensitive")
            | (Protocol::Messages, "refusal") => Self::Filtered,
            _ => return None,
        })
    }

    /// Returns true if the answer is complete, so that its calls can be executed.
    pub(super) fn is_complete(self) -> bool {
        matches!(self, Self::Whole | Self::Calls)
    }
}
