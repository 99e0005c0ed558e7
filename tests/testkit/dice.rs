//! Random numbers that follow from a seed alone (SplitMix64).

use std::ops::Range;

/// A random number generator.
pub struct Dice(u64);

impl Dice {
    /// The generator for one fault of a campaign: adjacent seeds and numbers give independent
    /// sequences.
    #[must_use]
    pub fn new(seed: u64, number: u64) -> Self {
        let mut dice = Self(seed);
        let start = dice.next() ^ number.wrapping_mul(0xD129_0B26_E8C4_9A35);
        Self(start)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number of a range that is not empty.
    pub fn among(&mut self, range: Range<usize>) -> usize {
        let size = (range.end - range.start) as u64;
        range.start + (self.next() % size) as usize
    }

    /// One of these elements.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.among(0..of.len())]
    }

    /// True once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.among(0..times) == 0
    }

    /// Any byte.
    pub fn byte(&mut self) -> u8 {
        self.next() as u8
    }
}
