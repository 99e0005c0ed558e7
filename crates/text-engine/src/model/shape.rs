//! The dimensions of a model.

use crate::gguf::Gguf;
use crate::weights::LoadError;

/// The dimensions of the model, validated.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shape {
    pub(super) blocks: usize,
    pub(super) width: usize,
    pub(super) hidden: usize,
    pub(super) heads: usize,
    /// Number of key/value heads, each shared by `heads / kv_heads` query heads.
    pub(super) kv_heads: usize,
    pub(super) head: usize,
    pub(super) vocabulary: usize,
    pub(super) context: usize,
    pub(super) epsilon: f32,
    pub(super) rope_base: f32,
}

impl Shape {
    pub(super) fn read(file: &Gguf) -> Result<Self, LoadError> {
        let architecture = file.text("general.architecture").unwrap_or_default();
        if architecture != "llama" {
            return Err(file.unsupported(format!(
                "its architecture is '{architecture}', accepted is 'llama'"
            )));
        }
        let width = file.number("llama.embedding_length")?;
        let heads = file.number("llama.attention.head_count")?;
        let shape = Self {
            blocks: file.number("llama.block_count")?,
            width,
            hidden: file.number("llama.feed_forward_length")?,
            heads,
            kv_heads: file.number("llama.attention.head_count_kv")?,
            head: width.checked_div(heads).unwrap_or(0),
            vocabulary: file.list("tokenizer.ggml.tokens").len(),
            context: file.number("llama.context_length")?.min(MAX_CONTEXT),
            epsilon: file
                .fraction("llama.attention.layer_norm_rms_epsilon")
                .unwrap_or(1e-5),
            rope_base: file.fraction("llama.rope.freq_base").unwrap_or(10_000.0),
        };
        let rotated = file
            .number("llama.rope.dimension_count")
            .unwrap_or(shape.head);
        if !shape.is_sound() || rotated != shape.head {
            return Err(file.damaged(format!(
                "its dimensions are inconsistent: {shape:?}, {rotated} RoPE dimensions"
            )));
        }
        Ok(shape)
    }

    fn is_sound(&self) -> bool {
        let positive = [
            self.blocks,
            self.hidden,
            self.heads,
            self.kv_heads,
            self.head,
            self.vocabulary,
        ];
        positive.iter().all(|size| (1..=1 << 24).contains(size))
            && self.context >= MIN_CONTEXT
            && self.heads * self.head == self.width
            && self.heads.is_multiple_of(self.kv_heads)
            && self.head.is_multiple_of(2)
            && self.epsilon > 0.0
            && self.epsilon < 1.0
            && self.rope_base.is_finite()
            && self.rope_base > 1.0
    }

    /// Number of values in the keys of a token, and in its values.
    pub(super) fn kv_width(&self) -> usize {
        self.kv_heads * self.head
    }

    /// Number of values in the queries, keys and values of a token together.
    pub(super) fn qkv_width(&self) -> usize {
        self.width + 2 * self.kv_width()
    }
}

/// Maximum context length, whatever the file states.
const MAX_CONTEXT: usize = 1 << 17;

/// Minimum context length: a shorter one has no room for a prompt.
const MIN_CONTEXT: usize = 512;
