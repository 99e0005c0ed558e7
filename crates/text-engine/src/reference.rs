//! Results of candle for the formats of tensors and for the default weights. The program
//! `tests/candle/src/bin/reference.rs` has written them.

use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct Reference {
    pub(crate) formats: Vec<Decoded>,
    /// The logits of each step of one text, and of a text of its own at last.
    pub(crate) logits: Vec<Logits>,
}

/// The bytes of two blocks of a format, and the bits of their numbers, in hexadecimal digits.
#[derive(Deserialize)]
pub(crate) struct Decoded {
    pub(crate) code: u32,
    pub(crate) name: String,
    pub(crate) block: String,
    pub(crate) numbers: String,
}

/// The best token after these tokens, and one logit of each `every`.
#[derive(Deserialize)]
pub(crate) struct Logits {
    pub(crate) tokens: Vec<u32>,
    pub(crate) best: usize,
    pub(crate) every: usize,
    pub(crate) logits: Vec<f32>,
}

impl Reference {
    pub(crate) fn read() -> Self {
        serde_json::from_str(include_str!("../tests/data/candle.json")).unwrap()
    }
}
