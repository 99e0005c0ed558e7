//! The embedded text model run by candle, as its quantized example does: with its own products and
//! threads.

#![cfg(feature = "candle")]

use std::fs::File;
use std::path::Path;

use candle_core::quantized::QMatMul;
use candle_core::quantized::gguf_file::Content;
use candle_core::{Device, Module, Result, Tensor};
use candle_nn::kv_cache::KvCache;
use candle_nn::ops::{rms_norm, silu, softmax_last_dim};
use candle_nn::rotary_emb::rope_i;

/// The default weights, loaded by candle.
pub struct Model {
    embedding: Tensor,
    blocks: Vec<Block>,
    norm: Tensor,
    output: QMatMul,
    angles: (Tensor, Tensor),
    length: usize,
}

struct Block {
    attention_norm: Tensor,
    projections: [QMatMul; 3],
    attention_out: QMatMul,
    feed_norm: Tensor,
    gate: QMatMul,
    up: QMatMul,
    down: QMatMul,
    cache: KvCache,
}

/// The dimensions of the default weights.
const BLOCKS: usize = 30;
const HEADS: usize = 9;
const KV_HEADS: usize = 3;
const SIZE: usize = 64;
const EPSILON: f32 = 1e-5;
const ROPE_BASE: f32 = 100_000.0;
const CONTEXT: usize = 1024;

impl Model {
    /// Loads the weights and converts each matrix.
    pub fn load(path: &Path, matrix: impl Fn(Tensor) -> Result<QMatMul>) -> Result<Self> {
        let mut file = File::open(path)?;
        let content = Content::read(&mut file)?;
        let mut tensor = |name: &str| {
            let tensor = content.tensor(&mut file, name, &Device::Cpu)?;
            tensor.dequantize(&Device::Cpu)
        };
        let blocks = (0..BLOCKS).map(|index| Block::load(index, &mut tensor, &matrix));
        let blocks = blocks.collect::<Result<_>>()?;
        let embedding = tensor("token_embd.weight")?;
        let frequencies =
            (0..SIZE / 2).map(|pair| ROPE_BASE.powf(-2.0 * pair as f32 / SIZE as f32));
        let frequencies = Tensor::from_iter(frequencies, &Device::Cpu)?.unsqueeze(0)?;
        let positions = (0..CONTEXT).map(|position| position as f32);
        let positions = Tensor::from_iter(positions, &Device::Cpu)?.unsqueeze(1)?;
        let angles = positions.matmul(&frequencies)?;
        Ok(Self {
            blocks,
            norm: tensor("output_norm.weight")?,
            output: matrix(embedding.clone())?,
            embedding,
            angles: (angles.cos()?, angles.sin()?),
            length: 0,
        })
    }

    /// Runs tokens after those before, and returns the logits of the token after the last.
    pub fn forward(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        let ids = Tensor::new(tokens, &Device::Cpu)?;
        let mut x = self.embedding.index_select(&ids, 0)?.unsqueeze(0)?;
        let at = |of: &Tensor| of.narrow(0, self.length, tokens.len());
        let angles = (at(&self.angles.0)?, at(&self.angles.1)?);
        let mask = mask(self.length, tokens.len())?;
        for block in &mut self.blocks {
            x = block.forward(&x, &angles, &mask)?;
        }
        self.length += tokens.len();
        let last = x.narrow(1, tokens.len() - 1, 1)?.contiguous()?;
        let normed = rms_norm(&last, &self.norm, EPSILON)?;
        self.output.forward(&normed)?.flatten_all()?.to_vec1()
    }

    /// Forgets all tokens.
    pub fn reset(&mut self) {
        self.length = 0;
        for block in &mut self.blocks {
            block.cache.reset();
        }
    }
}

impl Block {
    fn load(
        index: usize,
        tensor: &mut impl FnMut(&str) -> Result<Tensor>,
        convert: &impl Fn(Tensor) -> Result<QMatMul>,
    ) -> Result<Self> {
        let mut named = |part: &str| tensor(&format!("blk.{index}.{part}.weight"));
        let mut matrix = |part: &str| convert(named(part)?);
        Ok(Self {
            projections: [matrix("attn_q")?, matrix("attn_k")?, matrix("attn_v")?],
            attention_out: matrix("attn_output")?,
            gate: matrix("ffn_gate")?,
            up: matrix("ffn_up")?,
            down: matrix("ffn_down")?,
            attention_norm: named("attn_norm")?,
            feed_norm: named("ffn_norm")?,
            cache: KvCache::new(2, CONTEXT),
        })
    }

    fn forward(&mut self, x: &Tensor, angles: &(Tensor, Tensor), mask: &Tensor) -> Result<Tensor> {
        let normed = rms_norm(x, &self.attention_norm, EPSILON)?;
        let x = (x + self.attend(&normed, angles, mask)?)?;
        let normed = rms_norm(&x, &self.feed_norm, EPSILON)?;
        let gated = (silu(&self.gate.forward(&normed)?)? * self.up.forward(&normed)?)?;
        x + self.down.forward(&gated)?
    }

    fn attend(&mut self, x: &Tensor, angles: &(Tensor, Tensor), mask: &Tensor) -> Result<Tensor> {
        let tokens = x.dim(1)?;
        let heads = |matrix: &QMatMul, count: usize| {
            let product = matrix.forward(x)?.reshape((1, tokens, count, SIZE))?;
            product.transpose(1, 2)?.contiguous()
        };
        let [query, key, value] = &self.projections;
        let queries = rope_i(&heads(query, HEADS)?, &angles.0, &angles.1)?;
        let keys = rope_i(&heads(key, KV_HEADS)?, &angles.0, &angles.1)?;
        let (keys, values) = self.cache.append(&keys, &heads(value, KV_HEADS)?)?;
        // The queries that share a key head are the rows of one product.
        let shared = HEADS / KV_HEADS;
        let queries = queries.reshape((1, KV_HEADS, shared * tokens, SIZE))?;
        let scores = (queries.matmul(&keys.t()?)? * (SIZE as f64).powf(-0.5))?;
        let scores = scores.reshape((HEADS, tokens, ()))?.broadcast_add(mask)?;
        let shares = softmax_last_dim(&scores)?.reshape((1, KV_HEADS, shared * tokens, ()))?;
        let mixed = shares.matmul(&values)?.reshape((1, HEADS, tokens, SIZE))?;
        let mixed = mixed.transpose(1, 2)?.reshape((1, tokens, HEADS * SIZE))?;
        self.attention_out.forward(&mixed)
    }
}

/// Minus infinity where a token would attend to a later one.
fn mask(before: usize, tokens: usize) -> Result<Tensor> {
    let value = |token: usize, position: usize| match position > before + token {
        true => f32::NEG_INFINITY,
        false => 0.0,
    };
    let positions = before + tokens;
    let values = (0..tokens).flat_map(|token| (0..positions).map(move |at| value(token, at)));
    Tensor::from_iter(values, &Device::Cpu)?.reshape((tokens, positions))
}
