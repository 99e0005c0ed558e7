//! Seeded choice. Every layer has its own sequence, so that more detail in one moves nothing in
//! another.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A sequence of numbers that follows from a seed and the name of a layer.
pub(super) struct Random(StdRng);

impl Random {
    pub(super) fn new(seed: u64, layer: &str) -> Self {
        let mixed = layer
            .bytes()
            .fold(seed ^ 0x9e37_79b9_7f4a_7c15, |hash, byte| {
                (hash ^ u64::from(byte))
                    .wrapping_mul(0x0100_0000_01b3)
                    .rotate_left(17)
            });
        Self(StdRng::seed_from_u64(mixed))
    }

    /// A number from `low` up to `high`.
    pub(super) fn range(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.0.random::<f32>()
    }

    /// A number around 0, at most `reach` away.
    pub(super) fn jitter(&mut self, reach: f32) -> f32 {
        self.range(-reach, reach)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0.random_range(0..bound.max(1))
    }

    pub(super) fn chance(&mut self, part: f32) -> bool {
        self.0.random::<f32>() < part
    }

    pub(super) fn seed(&mut self) -> u64 {
        self.0.random()
    }
}
