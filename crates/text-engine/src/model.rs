//! A llama-style transformer whose weights are shared by all generations.

mod attention;
mod block;
mod shape;

use std::sync::Arc;

use self::attention::{KvCache, Rope};
use self::block::{Block, normalized, stacked};
use self::shape::Shape;
use crate::gguf::Gguf;
use crate::matrix::Matrix;
use crate::weights::LoadError;

/// The model. Weights are converted to Q8_0, whatever their format in the file: it is fast and
/// nearly lossless.
pub(crate) struct Model {
    shape: Shape,
    embedding: Arc<Matrix>,
    blocks: Vec<Block>,
    norm: Vec<f32>,
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
    pub(crate) fn load(file: &mut Gguf, threads: usize) -> Result<Self, LoadError> {
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
        let norm = file.tensor("output_norm.weight", &[shape.width])?;
        let rope = Rope::new(&shape);
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
        Cache {
            blocks: vec![KvCache::new(&self.shape); self.shape.blocks],
            length: 0,
        }
    }

    /// Removes all but the first `length` tokens from a cache.
    pub(crate) fn truncate(&self, cache: &mut Cache, length: usize) {
        if length < cache.length {
            for block in &mut cache.blocks {
                block.truncate(length, &self.shape);
            }
            cache.length = length;
        }
    }

    /// Runs more tokens after those in the cache and returns the logits of the token after the
    /// last.
    pub(crate) fn forward(&self, tokens: &[u32], cache: &mut Cache) -> Result<Vec<f32>, String> {
        if tokens.is_empty() || cache.length + tokens.len() > self.shape.context {
            let (count, before) = (tokens.len(), cache.length);
            return Err(format!("{count} tokens after {before} do not fit"));
        }
        self.threads.install(|| self.step(tokens, cache))
    }

    fn step(&self, tokens: &[u32], cache: &mut Cache) -> Result<Vec<f32>, String> {
        let mut x = self.embedding.rows(tokens)?;
        for (block, cached) in self.blocks.iter().zip(&mut cache.blocks) {
            block.forward(&mut x, cache.length, &self.shape, &self.rope, cached);
        }
        cache.length += tokens.len();
        let last = &x[x.len() - self.shape.width..];
        Ok(self
            .output
            .product(&normalized(last, &self.norm, &self.shape)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{Logits, Reference};
    use crate::weights;

    /// Compares logits with candle's logits, which are computed with full numbers: candle's own
    /// product in Q8_0 is as far off.
    fn compare(found: &[f32], reference: &Logits) {
        assert_eq!(found.len(), 49152);
        let best = (0..found.len()).max_by(|a, b| found[*a].total_cmp(&found[*b]));
        assert_eq!(best, Some(reference.best));
        let found = found.iter().step_by(reference.every);
        let apart = found.zip(&reference.logits).map(|(a, b)| (a - b).abs());
        let apart = apart.fold(0.0, f32::max);
        assert!(apart < 2.0, "{apart}");
    }

    #[test]
    fn logits_match_candle() {
        let mut file = Gguf::open(&weights::default_path()).unwrap();
        let model = Model::load(&mut file, 2).unwrap();
        let mut cache = model.cache();
        let [begun @ .., anew] = &Reference::read().logits[..] else {
            unreachable!("the reference has logits");
        };
        assert_eq!(begun.len(), 3);
        for step in begun {
            compare(&model.forward(&step.tokens, &mut cache).unwrap(), step);
        }
        let before = model.forward(&[1, 2, 3], &mut cache).unwrap();
        model.truncate(&mut cache, 8);
        assert_eq!(model.forward(&[1, 2, 3], &mut cache).unwrap(), before);
        model.truncate(&mut cache, 0);
        compare(&model.forward(&anew.tokens, &mut cache).unwrap(), anew);
        assert!(model.forward(&[49152], &mut cache).is_err());
        assert!(model.forward(&[], &mut cache).is_err());
    }
}
