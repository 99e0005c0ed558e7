//! Token counts, by the names of every protocol.

use serde::Deserialize;
use serde_json::Value;

/// Token counts.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Input tokens, including tokens from a cache.
    pub input: u64,
    /// Output tokens, including reasoning.
    pub output: u64,
    /// Input tokens that came from a cache.
    #[serde(default)]
    pub cached: Option<u64>,
    /// Output tokens that are reasoning.
    #[serde(default)]
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Parses the counts of any protocol.
    pub(super) fn of(counts: &Value) -> Option<Self> {
        counts
            .is_object()
            .then(|| Self::with(counts, Self::default()))
    }

    /// The same, with `other` for those that are absent.
    pub(super) fn with(counts: &Value, other: Self) -> Self {
        let count = |names: &[&str]| names.iter().find_map(|name| counts[*name].as_u64());
        let detail = |lists: [&str; 2], name: &str| {
            lists.iter().find_map(|list| counts[*list][name].as_u64())
        };
        let [read, written] =
            ["cache_read_input_tokens", "cache_creation_input_tokens"].map(|name| count(&[name]));
        let input = count(&["input_tokens", "prompt_tokens"]);
        let cached = detail(
            ["input_tokens_details", "prompt_tokens_details"],
            "cached_tokens",
        );
        let reasoning = detail(
            ["output_tokens_details", "completion_tokens_details"],
            "reasoning_tokens",
        );
        Self {
            input: input.map_or(other.input, |input| {
                input + read.unwrap_or(0) + written.unwrap_or(0)
            }),
            output: count(&["output_tokens", "completion_tokens"]).unwrap_or(other.output),
            cached: read.or(cached).or(other.cached),
            reasoning: reasoning.or(other.reasoning),
        }
    }

    /// The counts that every protocol has: input and output.
    pub fn totals(self) -> [u64; 2] {
        [self.input, self.output]
    }
}
