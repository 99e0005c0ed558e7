//! Peculiarities of upstreams that change how requests to them are written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Peculiarities of an upstream. The default fits an unknown server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// The name of the output limit in Chat Completions. `None`: `max_completion_tokens` for the
    /// reasoning models of OpenAI, by the name of the model, and `max_tokens` for others.
    pub max_tokens_name: Option<MaxTokensName>,
    /// The form in which thinking is requested in Messages. `None`: by the name of the model.
    pub thinking: Option<ThinkingForm>,
    /// True if every earlier turn with calls needs a `reasoning_content`, empty if it is not known
    /// (<https://api-docs.deepseek.com/guides/thinking_mode>).
    pub echo_reasoning: bool,
    /// The form of the ids of calls.
    pub tool_ids: ToolIds,
    /// True if it does not accept a limit to one call for each turn.
    pub no_parallel_tools: bool,
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
        tool_ids: ToolIds::Any,
        no_parallel_tools: false,
    };

    pub(super) fn max_tokens_name(&self, model: &str) -> MaxTokensName {
        self.max_tokens_name
            .unwrap_or(if is_reasoning_model(model) {
                MaxTokensName::MaxCompletionTokens
            } else {
                MaxTokensName::MaxTokens
            })
    }

    pub(super) fn thinking(&self, model: &str) -> ThinkingForm {
        self.thinking.unwrap_or_else(|| thinking_of(model))
    }
}

/// Returns true for the reasoning models of OpenAI, which refuse `max_tokens` and `stop`
/// (<https://platform.openai.com/docs/guides/reasoning>).
pub(super) fn is_reasoning_model(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let is_of = |series: &str| {
        name.strip_prefix(series)
            .is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()))
    };
    REASONING_MODELS.into_iter().any(is_of) && !name.contains("-chat")
}

/// Returns the form for a model: the versions of Claude before 3.7 do not think, those up to 4.5
/// need a budget, and other models get the newest form
/// (<https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-adaptive-thinking.html>).
fn thinking_of(model: &str) -> ThinkingForm {
    let Some((_, version)) = model.split_once("claude-") else {
        return ThinkingForm::Adaptive;
    };
    // Longer numbers are dates.
    let mut numbers = version
        .split(['-', '.', '@', ':'])
        .filter(|word| word.len() <= 2)
        .filter_map(|word| word.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(0..=2), _) | (Some(3), None | Some(0..=6)) => ThinkingForm::Off,
        (Some(3), _) | (Some(4), None | Some(0..=5)) => ThinkingForm::Budget,
        _ => ThinkingForm::Adaptive,
    }
}

const REASONING_MODELS: [&str; 4] = ["o1", "o3", "o4", "gpt-5"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_known_by_their_names() {
        for model in ["o1", "o3-mini", "openai/o4-mini", "gpt-5", "gpt-5.1-codex"] {
            assert!(is_reasoning_model(model), "{model}");
        }
        for model in ["gpt-4o", "o10", "gpt-5-chat-latest", "gpt-50", "qwen3", "m"] {
            assert!(!is_reasoning_model(model), "{model}");
        }
        let forms = [
            ("claude-3-opus-20240229", ThinkingForm::Off),
            (
                "anthropic.claude-3-5-sonnet-20241022-v2:0",
                ThinkingForm::Off,
            ),
            ("claude-3-7-sonnet-latest", ThinkingForm::Budget),
            ("claude-sonnet-4-20250514", ThinkingForm::Budget),
            ("claude-opus-4@20250514", ThinkingForm::Budget),
            ("us.anthropic.claude-opus-4-1-v1:0", ThinkingForm::Budget),
            ("anthropic/claude-haiku-4.5", ThinkingForm::Budget),
            ("claude-opus-4-6", ThinkingForm::Adaptive),
            ("claude-sonnet-5", ThinkingForm::Adaptive),
            ("m", ThinkingForm::Adaptive),
        ];
        for (model, form) in forms {
            assert_eq!(thinking_of(model), form, "{model}");
        }
    }
}
