//! The words for the end of an answer.

use serde_json::Value;
use simulator::Protocol;

/// The meaning of a finish reason, of a stop reason, or of the status of a response.
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
    /// The meaning of a word by the reference of its protocol; `None` for any other.
    ///
    /// <https://platform.openai.com/docs/api-reference/chat/object>,
    /// <https://platform.openai.com/docs/api-reference/responses/object>,
    /// <https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons>.
    pub(super) fn documented(protocol: Protocol, word: &str) -> Option<Self> {
        Some(match (protocol, word) {
            (Protocol::Chat, "stop")
            | (Protocol::Messages, "end_turn" | "stop_sequence" | "pause_turn")
            | (Protocol::Responses, "completed")
            | (Protocol::Images, "") => Self::Whole,
            (Protocol::Chat, "tool_calls" | "function_call") | (Protocol::Messages, "tool_use") => {
                Self::Calls
            }
            (Protocol::Chat, "length")
            | (Protocol::Messages, "max_tokens" | "model_context_window_exceeded")
            | (Protocol::Responses, "incomplete max_output_tokens") => Self::Cut,
            (Protocol::Chat, "content_filter")
            | (Protocol::Messages, "refusal")
            | (Protocol::Responses, "incomplete content_filter") => Self::Filtered,
            _ => return None,
        })
    }

    /// The same, in any case, and with the words of other vendors.
    ///
    /// <https://docs.cohere.com/reference/chat>,
    /// <https://huggingface.co/docs/text-generation-inference/reference/api_reference>,
    /// <https://docs.mistral.ai/api/>,
    /// <https://ai.google.dev/api/generate-content#FinishReason>,
    /// <https://docs.z.ai/api-reference/llm/chat-completion>.
    pub(super) fn of(protocol: Protocol, word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        Self::documented(protocol, &word).or(match (protocol, word.as_str()) {
            (Protocol::Chat, "eos" | "eos_token" | "complete") => Some(Self::Whole),
            (Protocol::Chat, "model_length") => Some(Self::Cut),
            (Protocol::Chat, "safety" | "sensitive") => Some(Self::Filtered),
            _ => None,
        })
    }

    /// Checks a word against the arguments of the calls, after which no client may take a
    /// contradiction for a success.
    pub(super) fn checked<'a>(
        protocol: Protocol,
        word: &str,
        calls: impl Iterator<Item = &'a str>,
    ) -> Result<Self, &'static str> {
        let mut calls = calls.peekable();
        let finish = Self::of(protocol, word).ok_or("no word for the end that is known")?;
        if finish == Self::Calls && calls.peek().is_none() {
            return Err("an end for calls without one");
        }
        if finish.is_complete() {
            check_calls(calls)?;
        }
        Ok(finish)
    }

    /// Returns true if the answer is complete, so that its calls can be executed.
    pub(super) fn is_complete(self) -> bool {
        matches!(self, Self::Whole | Self::Calls)
    }
}

/// Checks that the arguments of calls are complete.
pub(super) fn check_calls<'a>(
    mut arguments: impl Iterator<Item = &'a str>,
) -> Result<(), &'static str> {
    let is_whole =
        |arguments: &str| arguments.is_empty() || serde_json::from_str::<Value>(arguments).is_ok();
    if arguments.all(is_whole) {
        Ok(())
    } else {
        Err("truncated arguments")
    }
}
