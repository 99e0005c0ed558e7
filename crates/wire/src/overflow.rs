//! A request that exceeds the context of a model, and the sentences by which OpenAI and Anthropic
//! report it.
//!
//! Agents search an error for these sentences, and then shorten the conversation or the answer.

/// The sizes by which a request exceeds the context of its model, in tokens. `None`: unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextOverflow {
    /// The length of the prompt.
    pub prompt: Option<u64>,
    /// The requested limit of the output, if it counts towards the context.
    pub output: Option<u64>,
    /// The size of the context, or the maximum length of a prompt.
    pub limit: Option<u64>,
}

impl ContextOverflow {
    /// Returns these sizes, and `other`'s where one is unknown.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            prompt: self.prompt.or(other.prompt),
            output: self.output.or(other.output),
            limit: self.limit.or(other.limit),
        }
    }

    /// Returns the sentence of OpenAI (<https://github.com/crewAIInc/crewAI-examples/issues/121>,
    /// <https://github.com/The-Vibe-Company/quivr/issues/505>,
    /// <https://github.com/anomalyco/opencode/issues/6071>).
    #[must_use]
    pub fn openai_sentence(self) -> String {
        match self.excess() {
            Excess::Prompt { prompt, limit } => format!(
                "This model's maximum context length is {limit} tokens. However, your messages \
                 resulted in {prompt} tokens. Please reduce the length of the messages."
            ),
            Excess::Sum {
                prompt,
                output,
                limit,
            } => format!(
                "This model's maximum context length is {limit} tokens. However, you requested {} \
                 tokens ({prompt} in the messages, {output} in the completion). Please reduce the \
                 length of the messages or completion.",
                prompt.saturating_add(output)
            ),
            Excess::Unknown => {
                "Your input exceeds the context window of this model. Please adjust \
                                your input and try again."
                    .to_owned()
            }
        }
    }

    /// Returns the sentence of Anthropic (<https://github.com/earendil-works/pi/issues/102>,
    /// <https://github.com/continuedev/continue/issues/6080>). After the second one, Claude Code asks
    /// again for a shorter answer.
    #[must_use]
    pub fn anthropic_sentence(self) -> String {
        match self.excess() {
            Excess::Prompt { prompt, limit } => {
                format!("prompt is too long: {prompt} tokens > {limit} maximum")
            }
            Excess::Sum {
                prompt,
                output,
                limit,
            } => format!(
                "input length and `max_tokens` exceed context limit: {prompt} + {output} > {limit}, \
                 decrease input length or `max_tokens` and try again"
            ),
            Excess::Unknown => "prompt is too long".to_owned(),
        }
    }

    /// Returns what exceeds the limit, as far as the sizes show it.
    fn excess(self) -> Excess {
        let (Some(prompt), Some(limit)) = (self.prompt, self.limit) else {
            return Excess::Unknown;
        };
        match self.output {
            _ if prompt > limit => Excess::Prompt { prompt, limit },
            Some(output) if prompt.saturating_add(output) > limit => Excess::Sum {
                prompt,
                output,
                limit,
            },
            _ => Excess::Unknown,
        }
    }
}

enum Excess {
    /// The prompt alone.
    Prompt {
        prompt: u64,
        limit: u64,
    },
    /// The prompt and the output together.
    Sum {
        prompt: u64,
        output: u64,
        limit: u64,
    },
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::ContextOverflow;

    fn sentences(prompt: u64, output: Option<u64>, limit: Option<u64>) -> [String; 2] {
        let overflow = ContextOverflow {
            prompt: Some(prompt),
            output,
            limit,
        };
        [overflow.openai_sentence(), overflow.anthropic_sentence()]
    }

    #[test]
    fn a_prompt_above_the_limit() {
        for output in [None, Some(0), Some(500)] {
            assert_eq!(
                sentences(9000, output, Some(8192)),
                [
                    "This model's maximum context length is 8192 tokens. However, your messages \
                     resulted in 9000 tokens. Please reduce the length of the messages.",
                    "prompt is too long: 9000 tokens > 8192 maximum",
                ]
            );
        }
    }

    #[test]
    fn a_prompt_that_leaves_too_little_for_the_output() {
        assert_eq!(
            sentences(196_655, Some(21_333), Some(200_000)),
            [
                "This model's maximum context length is 200000 tokens. However, you requested \
                 217988 tokens (196655 in the messages, 21333 in the completion). Please reduce \
                 the length of the messages or completion.",
                "input length and `max_tokens` exceed context limit: 196655 + 21333 > 200000, \
                 decrease input length or `max_tokens` and try again",
            ]
        );
    }

    #[test]
    fn sizes_that_do_not_explain_the_refusal_are_not_told() {
        for (output, limit) in [
            (None, None),
            (Some(5), None),
            (None, Some(100)),
            (None, Some(101)),
            (Some(1), Some(101)),
        ] {
            assert_eq!(
                sentences(100, output, limit),
                [
                    "Your input exceeds the context window of this model. Please adjust your input \
                     and try again.",
                    "prompt is too long",
                ]
            );
        }
    }
}
