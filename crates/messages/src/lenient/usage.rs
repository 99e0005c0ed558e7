//! The spellings of token counts. See
//! <https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching> and
//! <https://docs.anthropic.com/en/docs/build-with-claude/compaction>.

use wire::lenient::CountKind::{
    CacheRead, CacheWrite, CacheWrite1h, CacheWrite5m, Output, Prompt, Reasoning, Total, Uncached,
};
use wire::lenient::{Counts, Meaning, Spelling, Table, Tokens, WRITES};

/// The usage of a message. The counts of an event cover the answer so far.
#[derive(Clone, Copy, Debug)]
pub(super) enum Claude {}

impl Table for Claude {
    const SPELLINGS: &'static [Spelling] = &[
        Spelling::count("input_tokens", Uncached),
        Spelling::count("output_tokens", Output),
        Spelling::count("cache_creation_input_tokens", CacheWrite),
        Spelling::count("cache_read_input_tokens", CacheRead),
        Spelling::object("cache_creation", WRITES),
        Spelling::object("output_tokens_details", ANSWER),
        // Each pass of the model over the conversation. The other counts cover the last pass only.
        Spelling::sum(ITERATIONS, ITERATION),
        // Servers that translate an answer of Chat Completions.
        Spelling::count("prompt_tokens", Prompt),
        Spelling::count("completion_tokens", Output),
        Spelling::count("total_tokens", Total),
        Spelling::count("cached_tokens", CacheRead),
        Spelling::count("reasoning_tokens", Reasoning),
        Spelling::count("claude_cache_creation_5_m_tokens", CacheWrite5m),
        Spelling::count("claude_cache_creation_1_h_tokens", CacheWrite1h),
        // <https://docs.anthropic.com/en/api/service-tiers>
        Spelling {
            name: "service_tier",
            meaning: Meaning::ServiceTier,
        },
    ];
}

/// The names of the counts in a usage, and their values.
pub(super) type NamedCounts = [(&'static str, u64); 4];

/// Returns the names of the counts in a usage and their settled values, unless a usage with these
/// counts has them already.
pub(super) fn unsettled(counts: &Counts, tokens: &Tokens) -> Option<NamedCounts> {
    let settled = settled(tokens);
    let reported = [Uncached, CacheWrite, CacheRead, Output].map(|kind| counts.get(kind));
    (settled.map(|(_, count)| count) != reported).then_some(settled)
}

/// Returns the names of the counts in a usage and their settled values.
pub(super) fn settled(tokens: &Tokens) -> NamedCounts {
    let cached = tokens.cache_read + tokens.cache_write;
    [
        ("input_tokens", tokens.input - cached),
        ("cache_creation_input_tokens", tokens.cache_write),
        ("cache_read_input_tokens", tokens.cache_read),
        ("output_tokens", tokens.output),
    ]
}

/// The counts of one pass of the model.
const ITERATION: &[Spelling] = &[
    Spelling::count("input_tokens", Uncached),
    Spelling::count("output_tokens", Output),
    Spelling::count("cache_creation_input_tokens", CacheWrite),
    Spelling::count("cache_read_input_tokens", CacheRead),
    Spelling::object("cache_creation", WRITES),
];

const ANSWER: &[Spelling] = &[
    Spelling::count("thinking_tokens", Reasoning),
    Spelling::count("reasoning_tokens", Reasoning),
];

const ITERATIONS: &str = "iterations";
