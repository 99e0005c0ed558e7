//! The network: a llama-style transformer over weights that every generation shares.

use std::sync::Arc;

use candle_core::{Device, Result, Tensor};
use candle_nn::kv_cache::KvCache;
use candle_nn::ops::{rms_norm, silu, softmax_last_dim};
use candle_nn::rotary_emb::rope_i;

use crate::gguf::Gguf;
use crate::matrix::Matrix;
use crate::weights::LoadError;

/// The weights, whatever the file held them as, in Q8_0: the format with the fastest kernels, and nearly lossless.
pub(crate) struct Model {
    shape: Shape,
    embedding: Arc<Matrix>,
    blocks: Vec<Block>,
    norm: Tensor,
    output: Arc<Matrix>,
    rope: Rope,
    /// Where all the work is done.
    threads: rayon::ThreadPool,
}

/// The keys and values of the tokens that one generation has run so far.
pub(crate) struct Cache {
    blocks: Vec<KvCache>,
    length: usize,
}

impl Model {
    /// With `threads` threads for the work of all generations.
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
        let norm = vector(file, "output_norm.weight", shape.width)?;
        let rope = Rope::new(&shape).map_err(|why| file.damaged(why.to_string()))?;
        let threads = pool(threads)?;
        Ok(Self { shape, embedding, blocks, norm, output, rope, threads })
    }

    /// Tokens that fit in one prompt and its answer.
    pub(crate) fn context(&self) -> usize {
        self.shape.context
    }

    /// An empty cache.
    pub(crate) fn cache(&self) -> Cache {
        let blocks = self.blocks.iter().map(|_| KvCache::new(2, CACHE_STEP)).collect();
        Cache { blocks, length: 0 }
    }

    /// Runs more tokens after those of the cache; the logits of what comes after the last.
    pub(crate) fn forward(&self, tokens: &[u32], cache: &mut Cache) -> Result<Vec<f32>> {
        if tokens.is_empty() || cache.length + tokens.len() > self.shape.context {
            candle_core::bail!("{} tokens after {} do not fit", tokens.len(), cache.length);
        }
        self.threads.install(|| self.step(tokens, cache))
    }

    fn step(&self, tokens: &[u32], cache: &mut Cache) -> Result<Vec<f32>> {
        let turn = self.rope.at(cache.length, tokens.len())?;
        let mut x = self.embedding.rows(tokens)?;
        for (block, kept) in self.blocks.iter().zip(&mut cache.blocks) {
            x = block.forward(&x, &self.shape, &turn, kept)?;
        }
        cache.length += tokens.len();
        let last = x.narrow(0, tokens.len() - 1, 1)?;
        self.output.forward(&rms_norm(&last, &self.norm, self.shape.epsilon)?)?.squeeze(0)?.to_vec1()
    }
}

impl Cache {
    /// Tokens in it.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Forgets all but the first `length` tokens.
    pub(crate) fn truncate(&mut self, length: usize) -> Result<()> {
        if length >= self.length {
            return Ok(());
        }
        for block in &mut self.blocks {
            let (keys, values) = (block.k()?, block.v()?);
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

/// The sizes of the network, checked to be ones that a network can have.
#[derive(Clone, Debug, PartialEq)]
struct Shape {
    blocks: usize,
    width: usize,
    hidden: usize,
    heads: usize,
    /// Heads of keys and values, each shared by `heads / kv_heads` heads of queries.
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
            return Err(file.unsupported(format!("its architecture is '{architecture}', accepted is 'llama'")));
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
            epsilon: file.fraction("llama.attention.layer_norm_rms_epsilon").unwrap_or(1e-5),
            rope_base: file.fraction("llama.rope.freq_base").unwrap_or(10_000.0),
        };
        let turned = file.number("llama.rope.dimension_count").unwrap_or(shape.head);
        if !shape.is_sound() || turned != shape.head {
            return Err(file.damaged(format!("its sizes do not go together: {shape:?}, {turned} turned")));
        }
        Ok(shape)
    }

    fn is_sound(&self) -> bool {
        let positive = [self.blocks, self.hidden, self.heads, self.kv_heads, self.head, self.vocabulary];
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

/// One layer: attention, then the feed-forward part.
struct Block {
    attention_norm: Tensor,
    /// Queries, keys and values in one matrix: one pass over the input instead of three.
    qkv: Matrix,
    attention_out: Matrix,
    feed_norm: Tensor,
    /// Gate and up projections, one below the other.
    gate_up: Matrix,
    down: Matrix,
}

impl Block {
    fn load(file: &mut Gguf, shape: &Shape, index: usize) -> std::result::Result<Self, LoadError> {
        let name = |part: &str| format!("blk.{index}.{part}.weight");
        let (width, hidden) = (shape.width, shape.hidden);
        let qkv = [("attn_q", width), ("attn_k", shape.kv_width()), ("attn_v", shape.kv_width())];
        Ok(Self {
            attention_norm: vector(file, &name("attn_norm"), width)?,
            qkv: stacked(file, &qkv.map(|(part, rows)| (name(part), rows)), width)?,
            attention_out: stacked(file, &[(name("attn_output"), width)], width)?,
            feed_norm: vector(file, &name("ffn_norm"), width)?,
            gate_up: stacked(file, &["ffn_gate", "ffn_up"].map(|part| (name(part), hidden)), width)?,
            down: stacked(file, &[(name("ffn_down"), width)], hidden)?,
        })
    }

    fn forward(&self, x: &Tensor, shape: &Shape, turn: &Turn, kept: &mut KvCache) -> Result<Tensor> {
        let normed = rms_norm(x, &self.attention_norm, shape.epsilon)?;
        let x = (x + self.attend(&normed, shape, turn, kept)?)?;
        let normed = rms_norm(&x, &self.feed_norm, shape.epsilon)?;
        x + self.feed(&normed, shape)?
    }

    fn attend(&self, x: &Tensor, shape: &Shape, turn: &Turn, kept: &mut KvCache) -> Result<Tensor> {
        let (tokens, width) = x.dims2()?;
        let qkv = self.qkv.forward(x)?;
        let heads = |from: usize, count: usize| {
            let part = qkv.narrow(1, from, count * shape.head)?.reshape((1, tokens, count, shape.head))?;
            part.transpose(1, 2)?.contiguous()
        };
        let queries = turn.apply(&heads(0, shape.heads)?)?;
        let keys = turn.apply(&heads(width, shape.kv_heads)?)?;
        let (keys, values) = kept.append(&keys, &heads(width + shape.kv_width(), shape.kv_heads)?)?;
        // The queries that share a head of keys are the rows of one product.
        let rows = (1, shape.kv_heads, shape.heads / shape.kv_heads * tokens, shape.head);
        let scores = (queries.reshape(rows)?.matmul(&keys.t()?)? * (1.0 / (shape.head as f64).sqrt()))?;
        let mixed = softmax_last_dim(&turn.hide_later(&scores)?)?.matmul(&values)?;
        let mixed = mixed.reshape((1, shape.heads, tokens, shape.head))?.transpose(1, 2)?;
        self.attention_out.forward(&mixed.reshape((tokens, width))?)
    }

    fn feed(&self, x: &Tensor, shape: &Shape) -> Result<Tensor> {
        let both = self.gate_up.forward(x)?;
        let gate = silu(&both.narrow(1, 0, shape.hidden)?)?;
        self.down.forward(&(gate * both.narrow(1, shape.hidden, shape.hidden)?)?)
    }
}

/// The turns by which a token's place is told: cosines and sines, a row a place (arXiv 2104.09864).
struct Rope {
    cosines: Tensor,
    sines: Tensor,
}

impl Rope {
    fn new(shape: &Shape) -> Result<Self> {
        let pairs = shape.head / 2;
        let speeds: Vec<f32> =
            (0..pairs).map(|pair| shape.rope_base.powf(-2.0 * pair as f32 / shape.head as f32)).collect();
        let speeds = Tensor::from_vec(speeds, (1, pairs), &Device::Cpu)?;
        let places = Tensor::arange(0, shape.context as u32, &Device::Cpu)?.to_dtype(candle_core::DType::F32)?;
        let angles = places.reshape((shape.context, 1))?.matmul(&speeds)?;
        Ok(Self { cosines: angles.cos()?, sines: angles.sin()? })
    }

    fn at(&self, place: usize, tokens: usize) -> Result<Turn> {
        let turn = |of: &Tensor| of.narrow(0, place, tokens);
        Ok(Turn { cosines: turn(&self.cosines)?, sines: turn(&self.sines)?, later: later(place, tokens)? })
    }
}

/// What the places of one step share in all blocks.
struct Turn {
    cosines: Tensor,
    sines: Tensor,
    /// Minus infinity where a token would look at a later one; absent for a single token, which has none.
    later: Option<Tensor>,
}

impl Turn {
    /// Turns heads of shape (1, heads, tokens, size).
    fn apply(&self, heads: &Tensor) -> Result<Tensor> {
        rope_i(heads, &self.cosines, &self.sines)
    }

    /// Scores of shape (1, heads, any × tokens, places), with those of later places made impossible.
    fn hide_later(&self, scores: &Tensor) -> Result<Tensor> {
        let Some(later) = &self.later else { return Ok(scores.clone()) };
        let (tokens, places) = later.dims2()?;
        scores.reshape(((), tokens, places))?.broadcast_add(later)?.reshape(scores.shape())
    }
}

fn later(before: usize, tokens: usize) -> Result<Option<Tensor>> {
    if tokens == 1 {
        return Ok(None);
    }
    let places = before + tokens;
    let value = |token, place| if place > before + token { f32::NEG_INFINITY } else { 0.0 };
    let values: Vec<f32> = (0..tokens).flat_map(|token| (0..places).map(move |place| value(token, place))).collect();
    Tensor::from_vec(values, (tokens, places), &Device::Cpu).map(Some)
}

fn vector(file: &mut Gguf, name: &str, size: usize) -> std::result::Result<Tensor, LoadError> {
    let tensor = file.tensor(name, &[size])?;
    tensor.dequantize(&Device::Cpu).map_err(|why| file.damaged(format!("tensor '{name}': {why}")))
}

/// Matrices of the same number of columns as one.
fn stacked(file: &mut Gguf, parts: &[(String, usize)], columns: usize) -> std::result::Result<Matrix, LoadError> {
    let mut full = Vec::new();
    for (name, rows) in parts {
        let part = file.tensor(name, &[*rows, columns])?;
        full.push(part.dequantize(&Device::Cpu).map_err(|why| file.damaged(format!("tensor '{name}': {why}")))?);
    }
    Tensor::cat(&full, 0)
        .and_then(|full| Matrix::quantize(&full))
        .map_err(|why| file.damaged(format!("tensor '{}': {why}", parts[0].0)))
}

fn pool(threads: usize) -> std::result::Result<rayon::ThreadPool, LoadError> {
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1));
    let built = builder.thread_name(|index| format!("local-step-{index}")).build();
    built.map_err(|why| LoadError::Setting(format!("cannot start the threads of the embedded model: {why}")))
}

/// The longest context taken, whatever the file claims.
const MAX_CONTEXT: usize = 1 << 17;

/// A context below this holds no prompt.
const MIN_CONTEXT: usize = 512;

/// Places by which a cache grows.
const CACHE_STEP: usize = 256;
