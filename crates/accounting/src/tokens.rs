//! The token counts of a request, as rows and sums of usage have them.

use serde::{Deserialize, Serialize};

/// The tokens of one request, or the sums over several ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCounts {
    /// Tokens of the input that were neither read from nor written to a cache.
    pub input: u64,
    /// Tokens of the input that were read from a cache.
    pub cache_read: u64,
    /// Tokens of the input that were written to a cache, for whatever time.
    pub cache_write: u64,
    /// Tokens in `cache_write` that are kept for an hour. Journals of older gateways lack this
    /// field.
    #[serde(default)]
    pub cache_write_1h: u64,
    /// Tokens of the input that are audio, whether cached or not; also new in journals.
    #[serde(default)]
    pub audio_input: u64,
    /// Tokens of the input that are images, whether cached or not.
    #[serde(default)]
    pub image_input: u64,
    /// Tokens of the output, reasoning included.
    pub output: u64,
    /// Tokens of the output that were reasoning.
    pub reasoning: u64,
    /// Tokens of the output that are audio.
    #[serde(default)]
    pub audio_output: u64,
    /// Tokens of the output that are images.
    #[serde(default)]
    pub image_output: u64,
}

impl TokenCounts {
    /// The columns of the stores, in the order of [`values`](Self::values).
    pub(crate) const COLUMNS: [&str; 10] = [
        "input",
        "cache_read",
        "cache_write",
        "cache_write_1h",
        "audio_input",
        "image_input",
        "output",
        "reasoning",
        "audio_output",
        "image_output",
    ];

    /// Returns the counts in the order of [`COLUMNS`](Self::COLUMNS).
    pub(crate) const fn values(self) -> [u64; Self::COLUMNS.len()] {
        [
            self.input,
            self.cache_read,
            self.cache_write,
            self.cache_write_1h,
            self.audio_input,
            self.image_input,
            self.output,
            self.reasoning,
            self.audio_output,
            self.image_output,
        ]
    }
}

impl From<[u64; TokenCounts::COLUMNS.len()]> for TokenCounts {
    /// Creates the counts from their values in the order of the columns.
    fn from(values: [u64; Self::COLUMNS.len()]) -> Self {
        let [
            input,
            cache_read,
            cache_write,
            cache_write_1h,
            audio_input,
            image_input,
            output,
            reasoning,
            audio_output,
            image_output,
        ] = values;
        Self {
            input,
            cache_read,
            cache_write,
            cache_write_1h,
            audio_input,
            image_input,
            output,
            reasoning,
            audio_output,
            image_output,
        }
    }
}
