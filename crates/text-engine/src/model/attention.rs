//! Attention: adds up the values of a token and of the tokens before it, and caches their keys and
//! values.

use rayon::prelude::*;

use super::shape::Shape;
use crate::vector::{add_scaled, dot, each_row, softmax};

/// The keys and values of one layer, by key head: one row per token.
#[derive(Clone, Default)]
pub(super) struct KvCache {
    heads: Vec<KvHead>,
}

#[derive(Clone, Default)]
struct KvHead {
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl KvCache {
    pub(super) fn new(shape: &Shape) -> Self {
        Self {
            heads: vec![KvHead::default(); shape.kv_heads],
        }
    }

    /// Adds the keys and values of tokens, given the rows of their queries, keys and values.
    fn append(&mut self, qkv: &[f32], shape: &Shape) {
        let size = shape.head;
        for row in qkv.chunks_exact(shape.qkv_width()) {
            let (keys, values) = row[shape.width..].split_at(shape.kv_width());
            let parts = keys.chunks_exact(size).zip(values.chunks_exact(size));
            for (head, (key, value)) in self.heads.iter_mut().zip(parts) {
                head.keys.extend_from_slice(key);
                head.values.extend_from_slice(value);
            }
        }
    }

    /// Removes all but the first `length` tokens.
    pub(super) fn truncate(&mut self, length: usize, shape: &Shape) {
        for head in &mut self.heads {
            head.keys.truncate(length * shape.head);
            head.values.truncate(length * shape.head);
        }
    }
}

/// Attends from tokens to themselves and to the `before` tokens in the cache, which they are added
/// to.
pub(super) fn attend(
    mut qkv: Vec<f32>,
    before: usize,
    shape: &Shape,
    rope: &Rope,
    cached: &mut KvCache,
) -> Vec<f32> {
    let width = shape.qkv_width();
    each_row(&mut qkv, width, |index, row| {
        rope.rotate(before + index, &mut row[..shape.width + shape.kv_width()]);
    });
    cached.append(&qkv, shape);
    let mut mixed = vec![0.0; qkv.len() / width * shape.width];
    // The queries that share a key head are computed together.
    let group = shape.width / shape.kv_heads;
    mixed
        .par_chunks_exact_mut(group)
        .with_min_len(MIN_POSITIONS.div_ceil(before + 1))
        .enumerate()
        .for_each_init(Vec::new, |scores, (index, mixed)| {
            let (token, head) = (index / shape.kv_heads, index % shape.kv_heads);
            let queries = &qkv[token * width + head * group..][..group];
            let positions = before + token + 1;
            scores.resize(positions, 0.0);
            let head = &cached.heads[head];
            let parts = queries.chunks_exact(shape.head);
            for (query, mixed) in parts.zip(mixed.chunks_exact_mut(shape.head)) {
                pulp::Arch::new().dispatch(|| head.mix(query, scores, mixed));
            }
        });
    mixed
}

impl KvHead {
    /// Adds up the values of the first tokens, as many as there are `scores`, by how their keys
    /// match a query.
    #[inline(always)]
    fn mix(&self, query: &[f32], scores: &mut [f32], mixed: &mut [f32]) {
        let scale = 1.0 / (query.len() as f32).sqrt();
        let keys = self.keys.chunks_exact(query.len());
        for (score, key) in scores.iter_mut().zip(keys) {
            *score = dot(query, key) * scale;
        }
        softmax(scores);
        let values = self.values.chunks_exact(query.len());
        for (score, value) in scores.iter().zip(values) {
            add_scaled(mixed, value, *score);
        }
    }
}

/// Rotary position embeddings (<https://arxiv.org/abs/2104.09864>): the cosine and sine of each
/// pair, one row per position.
pub(super) struct Rope {
    pairs: usize,
    angles: Vec<(f32, f32)>,
}

impl Rope {
    pub(super) fn new(shape: &Shape) -> Self {
        let pairs = shape.head / 2;
        let frequencies: Vec<f32> = (0..pairs)
            .map(|pair| shape.rope_base.powf(-2.0 * pair as f32 / shape.head as f32))
            .collect();
        let angles = (0..shape.context).flat_map(|position| {
            let angles = frequencies.iter().map(move |each| position as f32 * each);
            angles.map(|angle| (angle.cos(), angle.sin()))
        });
        Self {
            pairs,
            angles: angles.collect(),
        }
    }

    /// Rotates the heads in a row, whose pairs are next to each other.
    #[inline(always)]
    fn rotate(&self, position: usize, row: &mut [f32]) {
        let angles = &self.angles[position * self.pairs..][..self.pairs];
        for head in row.chunks_exact_mut(2 * self.pairs) {
            for (pair, (cosine, sine)) in head.as_chunks_mut::<2>().0.iter_mut().zip(angles) {
                let [first, second] = *pair;
                *pair = [
                    first * cosine - second * sine,
                    first * sine + second * cosine,
                ];
            }
        }
    }
}

/// Minimum number of positions that are worth another thread.
const MIN_POSITIONS: usize = 1024;
