//! The usage of one request, which a price turns into money.

/// The tokens of one request, as its response reports them.
///
/// `input` and `output` are the totals, and the other numbers are parts of them. A server may
/// report parts that exceed their total. Then the parts count in full, and the total is their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The tokens of the prompt, including those read from a cache and those written to one.
    pub input: u64,
    /// The tokens of the prompt that were read from a cache.
    pub cache_read: u64,
    /// The tokens of the prompt that were written to a cache, for whatever time.
    pub cache_write: u64,
    /// The tokens in `cache_write` that are kept for an hour.
    pub cache_write_1h: u64,
    /// The tokens of the prompt that are audio.
    pub audio_input: u64,
    /// The tokens of the prompt that are images.
    pub image_input: u64,
    /// The generated tokens, including reasoning tokens.
    pub output: u64,
    /// The generated reasoning tokens.
    pub reasoning: u64,
    /// The generated tokens that are audio.
    pub audio_output: u64,
    /// The generated tokens that are images.
    pub image_output: u64,
    /// The service tier at which the request was processed. `None` is the usual one.
    pub service_tier: Option<&'static str>,
}

/// A picture that a request has generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture<'a> {
    /// Width and height, such as `1024x1024`; blank if unknown.
    pub size: &'a str,
    /// The quality, such as `high`; blank if unknown.
    pub quality: &'a str,
}

impl Usage {
    /// Returns the tokens of the prompt, which select the tier of a price.
    #[must_use]
    pub fn prompt(&self) -> u64 {
        self.input.max(self.cached())
    }

    /// Returns the tokens of the prompt that were read from a cache or written to one.
    pub(crate) fn cached(&self) -> u64 {
        let written = self.cache_write.max(self.cache_write_1h);
        self.cache_read.saturating_add(written)
    }
}
