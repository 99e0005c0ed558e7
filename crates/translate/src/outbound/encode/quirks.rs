//! Peculiarities of upstreams that change how requests to them are written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Peculiarities of an upstream. The default fits an unknown server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// The name of the output limit in Chat Completions. `None`: `max_tokens`.
    pub max_tokens_name: Option<MaxTokensName>,
    /// The form in which thinking is requested in Messages. `None`: the newest, adaptive thinking.
    pub thinking: Option<ThinkingForm>,
    /// True if every earlier turn with calls needs a `reasoning_content`, or a thinking block in
    /// Messages, empty if it is not known (<https://api-docs.deepseek.com/guides/thinking_mode>).
    pub echo_reasoning: bool,
    /// True if Messages takes thinking blocks with an empty signature.
    pub unsigned_thinking: bool,
    /// The form of the ids of calls.
    pub tool_ids: ToolIds,
    /// True if it does not accept a limit to one call for each turn.
    pub no_parallel_tools: bool,
    /// True if the model reasons also if the request sets no effort.
    pub reasons: bool,
    /// True if the model does not reason, and refuses an effort.
    pub no_reasoning: bool,
    /// True if the model of Messages thinks unless the request turns thinking off, which a forced
    /// call requires.
    pub thinks: bool,
    /// True if Chat Completions turns thinking off by `thinking`, and not by the effort `none`
    /// (<https://api-docs.deepseek.com/guides/thinking_mode>).
    pub thinking_switch: bool,
    /// True if Chat Completions has the breakpoints of the prompt cache of Messages
    /// (<https://openrouter.ai/docs/features/prompt-caching>).
    pub cache_control: bool,
    /// True if all system messages have to be one, at the beginning.
    pub merge_system: bool,
    /// True if system messages alone are no conversation in OpenAI's protocols, as in Messages.
    pub needs_user: bool,
    /// True if calls of Chat Completions without a thought signature are refused.
    pub signed_calls: bool,
    /// True if Chat Completions needs a message of the assistant between the results of calls and a
    /// message of the user.
    pub answer_results: bool,
    /// True if the last message of Messages has to be one of the user
    /// (<https://platform.claude.com/docs/en/build-with-claude/prompt-engineering/prefill-claudes-response>).
    pub no_prefill: bool,
    /// True if OpenAI's protocols have explicit breakpoints of the prompt cache for the model.
    pub cache_breakpoints: bool,
    /// True if the upstream takes no schema for the output, so that it becomes an instruction.
    pub schema_as_text: bool,
    /// True if the alternatives of schemas have to have their types themselves.
    pub typed_alternatives: bool,
    /// The most stop sequences of Chat Completions. The gateway applies more of them. `None`: four.
    pub most_stops: Option<usize>,
    /// True if the model sees no images and reads no documents, so that they become texts.
    pub text_only: bool,
    /// True if the content of every message of Chat Completions is one text.
    pub text_content: bool,
    /// True if results in Chat Completions need the name of their function.
    pub tool_names: bool,
    /// True if Chat Completions has no member for earlier refusals, so that they become text.
    pub refusal_as_text: bool,
    /// True if a last message of the assistant in Chat Completions has to be marked as the beginning
    /// of the answer.
    pub mark_prefill: bool,
}

wire::text_enum! {
    /// The name of the output limit in Chat Completions
    /// (<https://platform.openai.com/docs/api-reference/chat/create>).
    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum MaxTokensName {
        /// The name that most servers know.
        MaxTokens = "max_tokens",
        /// The name that OpenAI's reasoning models require.
        MaxCompletionTokens = "max_completion_tokens",
    }
}

wire::text_enum! {
    /// The form in which thinking is requested in Messages.
    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ThinkingForm {
        /// The model decides how much it thinks, by its effort
        /// (<https://docs.anthropic.com/en/docs/build-with-claude/adaptive-thinking>).
        Adaptive = "adaptive",
        /// With a budget of tokens
        /// (<https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking>).
        Budget = "budget",
        /// Not at all: the model does not think.
        Off = "off",
    }
}

wire::text_enum! {
    /// A form of the ids of calls.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum ToolIds {
        /// Those that the server has made up itself.
        #[default]
        Any = "any",
        /// `[a-zA-Z0-9_-]{1,64}`.
        Plain = "plain",
        /// Nine letters and digits, as Mistral requires.
        Alnum9 = "alnum9",
    }
}

impl Quirks {
    /// No peculiarities, as the default.
    pub const NONE: Self = Self {
        max_tokens_name: None,
        thinking: None,
        echo_reasoning: false,
        unsigned_thinking: false,
        tool_ids: ToolIds::Any,
        no_parallel_tools: false,
        reasons: false,
        no_reasoning: false,
        thinks: false,
        thinking_switch: false,
        cache_control: false,
        merge_system: false,
        needs_user: false,
        signed_calls: false,
        answer_results: false,
        no_prefill: false,
        cache_breakpoints: false,
        schema_as_text: false,
        typed_alternatives: false,
        most_stops: None,
        text_only: false,
        text_content: false,
        tool_names: false,
        refusal_as_text: false,
        mark_prefill: false,
    };

    pub(super) fn max_tokens_name(&self) -> MaxTokensName {
        self.max_tokens_name.unwrap_or(MaxTokensName::MaxTokens)
    }

    pub(super) fn thinking(&self) -> ThinkingForm {
        self.thinking.unwrap_or(ThinkingForm::Adaptive)
    }
}
