//! The spellings of the protocols of OpenAI, Chat Completions, Responses and Images, whose servers
//! mix them. Some servers use the spellings of Messages as well.

use super::CountKind::{
    AudioInput, AudioOutput, CacheRead, CacheWrite, CacheWrite1h, CacheWrite5m, ImageInput,
    ImageOutput, Output, Prompt, Reasoning, Total, Uncached,
};
use super::{Spelling, Table};

/// The usage of an answer in one of the protocols of OpenAI.
#[derive(Clone, Copy, Debug)]
pub enum OpenAi {}

impl Table for OpenAi {
    const SPELLINGS: &'static [Spelling] = OPENAI;
}

/// The members of a usage. Names that are not of OpenAI have their first known server beside them.
pub const OPENAI: &[Spelling] = &[
    Spelling::count("prompt_tokens", Prompt),
    Spelling::count("completion_tokens", Output),
    Spelling::count("total_tokens", Total),
    Spelling::object("prompt_tokens_details", PROMPT),
    Spelling::object("completion_tokens_details", ANSWER),
    Spelling::count("input_tokens", Prompt),
    Spelling::count("output_tokens", Output),
    Spelling::object("input_tokens_details", PROMPT),
    Spelling::object("output_tokens_details", ANSWER),
    // Moonshot, Together, StepFun.
    Spelling::count("cached_tokens", CacheRead),
    // Mistral: <https://docs.mistral.ai/api/#operation/createChatCompletion>.
    Spelling::count("num_cached_tokens", CacheRead),
    Spelling::object("prompt_token_details", PROMPT),
    Spelling::object("completion_token_details", ANSWER),
    Spelling::object("input_token_details", PROMPT),
    Spelling::object("output_token_details", ANSWER),
    // DeepSeek: <https://api-docs.deepseek.com/guides/kv_cache>.
    Spelling::count("prompt_cache_hit_tokens", CacheRead),
    Spelling::count("prompt_cache_miss_tokens", Uncached),
    // LiteLLM, Databricks and one-api in front of Claude.
    Spelling::count("cache_read_input_tokens", CacheRead),
    Spelling::count("cache_creation_input_tokens", CacheWrite),
    Spelling::object("cache_creation", WRITES),
    // new-api in front of Claude.
    Spelling::count("claude_cache_creation_5_m_tokens", CacheWrite5m),
    Spelling::count("claude_cache_creation_1_h_tokens", CacheWrite1h),
    // SGLang, GitHub Copilot, Vertex AI, Perplexity.
    Spelling::count("reasoning_tokens", Reasoning),
];

/// The details of a prompt.
const PROMPT: &[Spelling] = &[
    Spelling::count("cached_tokens", CacheRead),
    Spelling::count("audio_tokens", AudioInput),
    Spelling::count("image_tokens", ImageInput),
    Spelling::count("cache_write_tokens", CacheWrite),
    // Bifrost.
    Spelling::count("cached_read_tokens", CacheRead),
    Spelling::count("cached_write_tokens", CacheWrite),
    // LiteLLM.
    Spelling::count("cache_creation_tokens", CacheWrite),
    Spelling::object("cache_creation_token_details", WRITES),
    // new-api.
    Spelling::count("cached_creation_tokens", CacheWrite),
    // Alibaba Cloud: <https://www.alibabacloud.com/help/en/model-studio/context-cache>.
    Spelling::count("cache_creation_input_tokens", CacheWrite),
    Spelling::object("cache_creation", WRITES),
    Spelling::count("cache_read_input_tokens", CacheRead),
];

/// The details of an answer.
const ANSWER: &[Spelling] = &[
    Spelling::count("reasoning_tokens", Reasoning),
    Spelling::count("audio_tokens", AudioOutput),
    Spelling::count("image_tokens", ImageOutput),
];

/// The tokens that were written to a cache, by the time for which they are kept.
/// See <https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching>.
pub const WRITES: &[Spelling] = &[
    Spelling::count("ephemeral_5m_input_tokens", CacheWrite5m),
    Spelling::count("ephemeral_1h_input_tokens", CacheWrite1h),
];
