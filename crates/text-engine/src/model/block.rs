//! One layer of a model: attention, then the feed-forward network.

use super::attention::{KvCache, Rope, attend};
use super::shape::Shape;
use crate::gguf::Gguf;
use crate::matrix::{Matrix, Rows};
use crate::vector::{each_row, gate, normalize};
use crate::weights::LoadError;

pub(super) struct Block {
    attention_norm: Vec<f32>,
    /// Query, key and value projections stacked in one matrix, which needs one pass over the input
    /// instead of three.
    qkv: Matrix,
    attention_out: Matrix,
    feed_norm: Vec<f32>,
    /// Gate and up projections stacked in one matrix.
    gate_up: Matrix,
    down: Matrix,
}

impl Block {
    pub(super) fn load(file: &mut Gguf, shape: &Shape, index: usize) -> Result<Self, LoadError> {
        let name = |part: &str| format!("blk.{index}.{part}.weight");
        let Shape { width, hidden, .. } = *shape;
        let qkv = [
            ("attn_q", width),
            ("attn_k", shape.kv_width()),
            ("attn_v", shape.kv_width()),
        ];
        Ok(Self {
            attention_norm: file.tensor(&name("attn_norm"), &[width])?,
            qkv: stacked(file, &qkv.map(|(part, rows)| (name(part), rows)), width)?,
            attention_out: stacked(file, &[(name("attn_output"), width)], width)?,
            feed_norm: file.tensor(&name("ffn_norm"), &[width])?,
            gate_up: stacked(
                file,
                &["ffn_gate", "ffn_up"].map(|part| (name(part), hidden)),
                width,
            )?,
            down: stacked(file, &[(name("ffn_down"), width)], hidden)?,
        })
    }

    /// Runs tokens, one row of `x` each, after those in the cache.
    pub(super) fn forward(
        &self,
        x: &mut [f32],
        before: usize,
        shape: &Shape,
        rope: &Rope,
        cached: &mut KvCache,
    ) {
        let qkv = self
            .qkv
            .product(&normalized(x, &self.attention_norm, shape));
        let mixed = attend(qkv, before, shape, rope, cached);
        let mixed = Rows::quantize(&mixed, shape.width);
        add(x, &self.attention_out.product(&mixed));
        let gate_up = self.gate_up.product(&normalized(x, &self.feed_norm, shape));
        let mut gated = vec![0.0; gate_up.len() / 2];
        each_row(&mut gated, shape.hidden, |index, out| {
            let both = &gate_up[2 * index * shape.hidden..][..2 * shape.hidden];
            let (gates, row) = both.split_at(shape.hidden);
            gate(gates, row, out);
        });
        add(x, &self.down.product(&Rows::quantize(&gated, shape.hidden)));
    }
}

/// Normalizes rows as the input of a product.
pub(super) fn normalized(x: &[f32], weight: &[f32], shape: &Shape) -> Rows {
    let mut normed = vec![0.0; x.len()];
    each_row(&mut normed, shape.width, |index, out| {
        let row = &x[index * shape.width..][..shape.width];
        normalize(row, weight, shape.epsilon, out);
    });
    Rows::quantize(&normed, shape.width)
}

/// Loads matrices with the same number of columns and stacks their rows.
pub(super) fn stacked(
    file: &mut Gguf,
    parts: &[(String, usize)],
    columns: usize,
) -> Result<Matrix, LoadError> {
    let mut full = Vec::new();
    for (name, rows) in parts {
        full.extend(file.tensor(name, &[*rows, columns])?);
    }
    Matrix::quantize(&full, columns)
        .map_err(|why| file.damaged(format!("tensor '{}': {why}", parts[0].0)))
}

fn add(x: &mut [f32], more: &[f32]) {
    for (x, more) in x.iter_mut().zip(more) {
        *x += more;
    }
}
