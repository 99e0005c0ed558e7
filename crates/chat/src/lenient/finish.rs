//! The words for the end of an answer.

/// The meaning of a finish reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// The model completed its answer.
    Stop,
    /// The model waits for the results of its calls.
    ToolCalls,
    /// The limit on the output, or the model's context, truncated the answer.
    Length,
    /// A filter, or the model itself, refused to continue.
    ContentFilter,
}

impl Finish {
    /// The meaning of a finish reason; `None` for one that is unknown, or that reports a failure of
    /// the model.
    ///
    /// The reference has `stop`, `length`, `tool_calls`, `content_filter` and `function_call`
    /// (<https://platform.openai.com/docs/api-reference/chat/object>). The others come from servers
    /// that pass on the words of their model or of another protocol, in either case. The lists are
    /// closed: a word that is not in them may mean anything.
    #[must_use]
    pub fn of(reason: &str) -> Option<Self> {
        // Servers in front of Gemini put its word behind the common one
        // (<https://github.com/NousResearch/hermes-agent/pull/53610>).
        let reason = match reason.split_once(':') {
            Some((head, _)) if head.eq_ignore_ascii_case(FILTERED[0]) => head,
            _ => reason,
        };
        let words = [
            (&STOPPED[..], Self::Stop),
            (&CALLED, Self::ToolCalls),
            (&CUT, Self::Length),
        ];
        let words = words
            .into_iter()
            .chain([(&FILTERED[..], Self::ContentFilter)]);
        let means = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(reason));
        words
            .into_iter()
            .find(|(words, _)| means(words))
            .map(|(_, finish)| finish)
    }

    /// Returns true if `word` is the name of a finish reason, and not a stop sequence.
    pub(super) fn is_name(word: &str) -> bool {
        let lists: [&[&str]; 4] = [&STOPPED, &CALLED, &CUT, &FILTERED];
        lists.iter().any(|words| words.contains(&word))
    }

    /// Returns true if the answer is complete.
    #[must_use]
    pub fn is_complete(self) -> bool {
        matches!(self, Self::Stop | Self::ToolCalls)
    }
}

const STOPPED: [&str; 7] = [
    "stop",
    "eos",
    "eos_token",
    "end_turn",
    "stop_sequence",
    "complete",
    "end",
];
const CALLED: [&str; 4] = ["tool_calls", "function_call", "tool_use", "tool_call"];
const CUT: [&str; 5] = [
    "length",
    "max_tokens",
    "model_length",
    "max_output_tokens",
    "model_context_window_exceeded",
];
/// The words of Gemini are in <https://ai.google.dev/api/generate-content#FinishReason>, and Bedrock's
/// in <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html>.
const FILTERED: [&str; 12] = [
    "content_filter",
    "safety",
    "refusal",
    "sensitive",
    "recitation",
    "prohibited_content",
    "blocklist",
    "spii",
    "image_safety",
    "image_prohibited_content",
    "image_recitation",
    "guardrail_intervened",
];
