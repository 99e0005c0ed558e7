//! A llama-style transformer whose weights are shared by all generations.

use std::sync::Arc;

use candle_core::{Device, Result, Tensor};
use candle_nn::kv_cache::KvCache;
use candle_nn::ops::{rms_norm, silu, softmax_last_dim};
use candle_nn::rotary_emb::rope_i;

use crate::gguf::Gguf;
use crate::matrix::Matrix;
use crate::weights::LoadError;

/// The model. Weights are converted to Q8_0, whatever their format in the file: it has the fastest
/// kernels and is nearly lossless.
pub(crate) struct Model {
    shape: Shape,
    embedding: Arc<Matrix>,
    blocks: Vec<Block>,
    norm: Tensor,
    output: Arc<Matrix>,
    rope: Rope,
    /// The thread pool on which all forward passes run.
    threads: rayon::ThreadPool,
}

/// The key/value cache of one generation.
pub(crate) struct Cache {
    blocks: Vec<KvCache>,
    /// Number of cached tokens.
    pub(crate) length: usize,
}

impl Model {
    /// Loads the weights, and starts `threads` threads for the forward passes of all generations.
    pub(crate) fn load(file: &mut Gguf, threads: usize) -> std::result::Result<Self, LoadError> {
        let shape = Shape::read(file)?;
        let table = |file: &mut Gguf, name: &str| {
            stacked(file, &[(name.to_owned(), shape.vocabulary)], shape.width).map(Arc::new)
        };
        let embedding = table(file, "token_embd.weight")?;
        let output = match file.has("output.weight") {
            true => table(file, "output.weight")?,
            false => Arc::clone(&embedding),
        };
        let mut blocks = Vec::new();
        for index in 0..shape.blocks {
            blocks.push(Block::load(file, &shape, index)?);
        }
        let norm = dequantized(file, "output_norm.weight", &[shape.width])?;
        let rope = Rope::new(&shape).map_err(|why| file.damaged(why.to_string()))?;
        let builder = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1));
        let threads = builder
            .thread_name(|index| format!("text-step-{index}"))
            .build()
            .map_err(|why| {
                LoadError::Setting(format!(
                    "cannot start the threads of the text engine: {why}"
                ))
            })?;
        Ok(Self {
            shape,
            embedding,
            blocks,
            norm,
            output,
            rope,
            threads,
        })
    }

    /// Maximum number of tokens of a prompt and its answer together.
    pub(crate) fn context(&self) -> usize {
        self.shape.context
    }

    /// An empty cache.
    pub(crate) fn cache(&self) -> Cache {
        let blocks = self
            .blocks
            .iter()
            .map(|_| KvCache::new(2, CACHE_STEP))
            .collect();
        Cache { blocks, length: 0 }
    }

    /// Runs more tokens after those in the cache and returns the logits of the token after the
    /// last.
    pub(crate) fn forward(&self, tokens: &[u32], cache: &mut Cache) -> Result<Vec<f32>> {
        if tokens.is_empty() || cache.length + tokens.len() > self.shape.context {
            candle_core::bail!("{} tokens after {} do not fit", tokens.len(), cache.length);
        }
        self.threads.install(|| self.step(tokens, cache))
    }

    fn step(&self, tokens: &[u32], cache: &mut Cache) -> Result<Vec<f32>> {
        let positions = self.rope.at(cache.length, tokens.len())?;
        let mut x = self.embedding.rows(tokens)?;
        for (block, cached) in self.blocks.iter().zip(&mut cache.blocks) {
            x = block.forward(&x, &self.shape, &positions, cached)?;
        }
        cache.length += tokens.len();
        let last = x.narrow(0, tokens.len() - 1, 1)?;
        self.output
            .forward(&rms_norm(&last, &self.norm, self.shape.epsilon)?)?
            .squeeze(0)?
            .to_vec1()
    }
}

impl Cache {
    /// Removes all but the first `length` tokens.
    pub(crate) fn truncate(&mut self, length: usize) -> Result<()> {
        if length >= self.length {
            return Ok(());
        }
        for block in &mut self.blocks {
            let keys = block.k()?;
            let values = block.v()?;
            block.reset();
            if let (Some(keys), Some(values), 1..) = (keys, values, length) {
                let kept = |of: &Tensor| of.narrow(2, 0, length)?.contiguous();
                block.append(&kept(&keys)?, &kept(&values)?)?;
            }
        }
        self.length = length;
        Ok(())
    }
}

/// The dimensions of the model, validated.
#[derive(Clone, Debug, PartialEq)]
struct Shape {
    blocks: usize,
    width: usize,
    hidden: usize,
    heads: usize,
    /// Number of key/value heads, each shared by `heads / kv_heads` query heads.
    kv_heads: usize,
    head: usize,
    vocabulary: usize,
    context: usize,
    epsilon: f32,
    rope_base: f32,
}

impl Shape {
    fn read(file: &Gguf) -> std::result::Result<Self, LoadError> {
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

    fn kv_width(&self) -> usize {
        self.kv_heads * self.head
    }
}

/// One layer: attention, then the feed-forward network.
struct Block {
    attention_norm: Tensor,
    /// Query, key and value projections stacked in one matrix, which needs one pass over the input
    /// instead of three.
    qkv: Matrix,
    attention_out: Matrix,
    feed_norm: Tensor,
    /// Gate and up projections stacked in one matrix.
    gate_up: Matrix,
    down: Matrix,
}

impl Block {
    fn load(file: &mut Gguf, shape: &Shape, index: usize) -> std::result::Result<Self, LoadError> {
        let name = |part: &str| format!("blk.{index}.{part}.weight");
        let Shape { width, hidden, .. } = *shape;
        let qkv = [
            ("attn_q", width),
            ("attn_k", shape.kv_width()),
            ("attn_v", shape.kv_width()),
        ];
        Ok(Self {
            attention_norm: dequantized(file, &name("attn_norm"), &[width])?,
            qkv: stacked(file, &qkv.map(|(part, rows)| (name(part), rows)), width)?,
            attention_out: stacked(file, &[(name("attn_output"), width)], width)?,
            feed_norm: dequantized(file, &name("ffn_norm"), &[width])?,
            gate_up: stacked(
                file,
                &["ffn_gate", "ffn_up"].map(|part| (name(part), hidden)),
                width,
            )?,
            down: stacked(file, &[(name("ffn_down"), width)], hidden)?,
        })
    }

    fn forward(
        &self,
        x: &Tensor,
        shape: &Shape,
        positions: &Positions,
        cached: &mut KvCache,
    ) -> Result<Tensor> {
        let normed = rms_norm(x, &self.attention_norm, shape.epsilon)?;
        let x = (x + self.attend(&normed, shape, positions, cached)?)?;
        let normed = rms_norm(&x, &self.feed_norm, shape.epsilon)?;
        x + self.feed(&normed, shape)?
    }

    fn attend(
        &self,
        x: &Tensor,
        shape: &Shape,
        positions: &Positions,
        cached: &mut KvCache,
    ) -> Result<Tensor> {
        let (tokens, width) = x.dims2()?;
        let qkv = self.qkv.forward(x)?;
        let heads = |from: usize, count: usize| {
            let part = qkv
                .narrow(1, from, count * shape.head)?
                .reshape((1, tokens, count, shape.head))?;
            part.transpose(1, 2)?.contiguous()
        };
        let queries = positions.apply(&heads(0, shape.heads)?)?;
        let keys = positions.apply(&heads(width, shape.kv_heads)?)?;
        let (keys, values) =
            cached.append(&keys, &heads(width + shape.kv_width(), shape.kv_heads)?)?;
        // The queries that share a key head are the rows of one product.
        let rows = (
            1,
            shape.kv_heads,
            shape.heads / shape.kv_heads * tokens,
            shape.head,
        );
        let scores =
            (queries.reshape(rows)?.matmul(&keys.t()?)? * (1.0 / (shape.head as f64).sqrt()))?;
        let mixed = softmax_last_dim(&positions.apply_mask(&scores)?)?.matmul(&values)?;
        let mixed = mixed
            .reshape((1, shape.heads, tokens, shape.head))?
            .transpose(1, 2)?;
        self.attention_out.forward(&mixed.reshape((tokens, width))?)
    }

    fn feed(&self, x: &Tensor, shape: &Shape) -> Result<Tensor> {
        let both = self.gate_up.forward(x)?;
        let gate = silu(&both.narrow(1, 0, shape.hidden)?)?;
        self.down
            .forward(&(gate * both.narrow(1, shape.hidden, shape.hidden)?)?)
    }
}

/// Rotary position embeddings (<https://arxiv.org/abs/2104.09864>): cosines and sines, one row per
/// position.
struct Rope {
    cosines: Tensor,
    sines: Tensor,
}

impl Rope {
    fn new(shape: &Shape) -> Result<Self> {
        let pairs = shape.head / 2;
        let frequencies: Vec<f32> = (0..pairs)
            .map(|pair| shape.rope_base.powf(-2.0 * pair as f32 / shape.head as f32))
            .collect();
        let frequencies = Tensor::from_vec(frequencies, (1, pairs), &Device::Cpu)?;
        let positions = Tensor::arange(0, shape.context as u32, &Device::Cpu)?
            .to_dtype(candle_core::DType::F32)?;
        let angles = positions
            .reshape((shape.context, 1))?
            .matmul(&frequencies)?;
        Ok(Self {
            cosines: angles.cos()?,
            sines: angles.sin()?,
        })
    }

    /// The data of `tokens` positions, starting at `position`.
    fn at(&self, position: usize, tokens: usize) -> Result<Positions> {
        let rows = |of: &Tensor| of.narrow(0, position, tokens);
        Ok(Positions {
            cosines: rows(&self.cosines)?,
            sines: rows(&self.sines)?,
            mask: causal_mask(position, tokens)?,
        })
    }
}

/// The position data of one forward pass, shared by all blocks.
struct Positions {
    cosines: Tensor,
    sines: Tensor,
    /// The causal mask: minus infinity where a token would attend to a later one. `None` for a
    /// single token.
    mask: Option<Tensor>,
}

impl Positions {
    /// Rotates heads of shape (1, heads, tokens, size).
    fn apply(&self, heads: &Tensor) -> Result<Tensor> {
        rope_i(heads, &self.cosines, &self.sines)
    }

    /// Applies the causal mask to scores of shape (1, heads, any × tokens, positions).
    fn apply_mask(&self, scores: &Tensor) -> Result<Tensor> {
        let Some(mask) = &self.mask else {
            return Ok(scores.clone());
        };
        let (tokens, positions) = mask.dims2()?;
        scores
            .reshape(((), tokens, positions))?
            .broadcast_add(mask)?
            .reshape(scores.shape())
    }
}

fn causal_mask(before: usize, tokens: usize) -> Result<Option<Tensor>> {
    if tokens == 1 {
        return Ok(None);
    }
    let positions = before + tokens;
    let value = |token, position| {
        if position > before + token {
            f32::NEG_INFINITY
        } else {
            0.0
        }
    };
    let values: Vec<f32> = (0..tokens)
        .flat_map(|token| (0..positions).map(move |position| value(token, position)))
        .collect();
    Tensor::from_vec(values, (tokens, positions), &Device::Cpu).map(Some)
}

/// Loads matrices with the same number of columns and stacks their rows.
fn stacked(
    file: &mut Gguf,
    parts: &[(String, usize)],
    columns: usize,
) -> std::result::Result<Matrix, LoadError> {
    let full = parts
        .iter()
        .map(|(name, rows)| dequantized(file, name, &[*rows, columns]));
    let full: Vec<Tensor> = full.collect::<std::result::Result<_, _>>()?;
    Tensor::cat(&full, 0)
        .and_then(|full| Matrix::quantize(&full))
        .map_err(|why| file.damaged(format!("tensor '{}': {why}", parts[0].0)))
}

fn dequantized(
    file: &mut Gguf,
    name: &str,
    shape: &[usize],
) -> std::result::Result<Tensor, LoadError> {
    let tensor = file.tensor(name, shape)?;
    tensor
        .dequantize(&Device::Cpu)
        .map_err(|why| file.damaged(format!("tensor '{name}': {why}")))
}

/// Maximum context length, whatever the file states.
const MAX_CONTEXT: usize = 1 << 17;

/// Minimum context length: a shorter one has no room for a prompt.
const MIN_CONTEXT: usize = 512;

/// Number of positions by which a cache grows.
const CACHE_STEP: usize = 256;
