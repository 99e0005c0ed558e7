//! The innermost loop of a product, with the widest vector instructions of this machine.
//!
//! Sums within a block are integers. The sums of several blocks are added in the same order on each
//! machine, so that a result does not depend on the machine.

use pulp::NullaryFnOnce;
#[cfg(target_arch = "x86_64")]
use pulp::{
    bytemuck,
    x86::{V3, V4},
};

use super::{full_to_half, half_to_full};

/// Number of rows in a tile.
pub(super) const ROWS: usize = 16;

/// Number of values in a block.
pub(super) const VALUES: usize = 32;

/// Number of pairs of values in a block.
const PAIRS: usize = VALUES / 2;

/// The blocks of 16 rows. Aligned so that no vector of it is in two cache lines.
#[derive(Clone, Default)]
#[repr(C, align(32))]
pub(super) struct Tile {
    /// The scale of each row, in half precision.
    scales: [u16; ROWS],
    /// The first two values of each row, then the next two of each row, and so on.
    values: [[i8; 2 * ROWS]; PAIRS],
}

/// A block of an input.
#[derive(Clone, Default)]
pub(super) struct Block {
    scale: f32,
    /// Two 16-bit numbers each, as the vector instructions take them: the first one is the lower.
    pairs: [i32; PAIRS],
}

impl Tile {
    /// Quantizes a block of a row.
    pub(super) fn set_row(&mut self, row: usize, full: &[f32]) {
        let scale = full_to_half(largest(full) / 127.0);
        self.scales[row] = scale;
        let inverse = inverse(half_to_full(scale));
        for (pair, full) in self.values.iter_mut().zip(full.chunks_exact(2)) {
            pair[2 * row] = (full[0] * inverse).round() as i8;
            pair[2 * row + 1] = (full[1] * inverse).round() as i8;
        }
    }

    /// The values of a row.
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = f32> {
        let scale = half_to_full(self.scales[row]);
        let values = self.values.iter();
        let values = values.flat_map(move |pair| [pair[2 * row], pair[2 * row + 1]]);
        values.map(move |value| f32::from(value) * scale)
    }
}

impl Block {
    /// Quantizes a block.
    pub(super) fn quantize(full: &[f32]) -> Self {
        let scale = largest(full) / 127.0;
        let inverse = inverse(scale);
        let mut pairs = [0; PAIRS];
        for (pair, full) in pairs.iter_mut().zip(full.chunks_exact(2)) {
            let [first, second] = [full[0], full[1]].map(|full| (full * inverse).round() as i16);
            *pair = i32::from(second) << 16 | i32::from(first.cast_unsigned());
        }
        Self { scale, pairs }
    }
}

/// Computes the products of groups of rows, each of `width` tiles, with each input of `width`
/// blocks, ordered by group.
pub(super) fn multiply(
    tiles: &[Tile],
    width: usize,
    inputs: &[Block],
    products: &mut [[f32; ROWS]],
) {
    let work = Multiply {
        tiles,
        width,
        inputs,
        products,
    };
    #[cfg(target_arch = "x86_64")]
    match pulp::x86::Arch::new() {
        pulp::x86::Arch::V4(lanes) => return lanes.vectorize(With { lanes, work }),
        pulp::x86::Arch::V3(lanes) => return lanes.vectorize(With { lanes, work }),
        _ => {}
    }
    work.run(Portable);
}

struct Multiply<'a> {
    tiles: &'a [Tile],
    width: usize,
    inputs: &'a [Block],
    products: &'a mut [[f32; ROWS]],
}

/// Work to be compiled for the instructions of `lanes`.
struct With<'a, L> {
    lanes: L,
    work: Multiply<'a>,
}

impl<L: Lanes> NullaryFnOnce for With<'_, L> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.work.run(self.lanes);
    }
}

impl Multiply<'_> {
    #[inline(always)]
    fn run(self, lanes: impl Lanes) {
        let groups = self.tiles.chunks_exact(self.width);
        let count = self.inputs.len() / self.width;
        for (tiles, products) in groups.zip(self.products.chunks_exact_mut(count)) {
            // Several inputs share one read of the tiles; the remaining ones are multiplied one by
            // one.
            let mut inputs = self.inputs.chunks_exact(AT_ONCE * self.width);
            let mut products = products.chunks_exact_mut(AT_ONCE);
            for (inputs, products) in inputs.by_ref().zip(products.by_ref()) {
                let (first, rest) = inputs.split_at(self.width);
                let (second, rest) = rest.split_at(self.width);
                let (third, fourth) = rest.split_at(self.width);
                let sums = sums(lanes, tiles, [first, second, third, fourth]);
                products.copy_from_slice(&sums);
            }
            let inputs = inputs.remainder().chunks_exact(self.width);
            for (input, product) in inputs.zip(products.into_remainder()) {
                [*product] = sums(lanes, tiles, [input]);
            }
        }
    }
}

/// The products of a group of rows with `N` inputs.
#[inline(always)]
fn sums<L: Lanes, const N: usize>(
    lanes: L,
    tiles: &[Tile],
    inputs: [&[Block]; N],
) -> [[f32; ROWS]; N] {
    let mut products = [[0.0; ROWS]; N];
    let inputs = inputs.map(|input| &input[..tiles.len()]);
    for (index, tile) in tiles.iter().enumerate() {
        let blocks = inputs.map(|input| &input[index]);
        let mut sums = [lanes.zero(); N];
        for (pair, values) in tile.values.iter().enumerate() {
            let values = lanes.widen(values);
            for (sum, block) in sums.iter_mut().zip(&blocks) {
                *sum = lanes.add(*sum, values, block.pairs[pair]);
            }
        }
        let scales = tile.scales.map(half_to_full);
        for ((products, sums), block) in products.iter_mut().zip(sums).zip(&blocks) {
            let sums = lanes.array(sums);
            for ((product, sum), scale) in products.iter_mut().zip(sums).zip(scales) {
                *product += sum as f32 * (scale * block.scale);
            }
        }
    }
    products
}

/// Vectors with a lane for each of 16 rows.
trait Lanes: Copy {
    /// Two 16-bit values per row.
    type Values: Copy;
    /// A 32-bit sum per row.
    type Sums: Copy;

    fn zero(self) -> Self::Sums;

    fn widen(self, values: &[i8; 2 * ROWS]) -> Self::Values;

    /// Multiplies the two values of each row by the two numbers of the pair, and adds both products
    /// to the sum of the row.
    fn add(self, sums: Self::Sums, values: Self::Values, pair: i32) -> Self::Sums;

    fn array(self, sums: Self::Sums) -> [i32; ROWS];
}

#[cfg(target_arch = "x86_64")]
impl Lanes for V4 {
    type Values = core::arch::x86_64::__m512i;
    type Sums = core::arch::x86_64::__m512i;

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        bytemuck::cast([0_i32; ROWS])
    }

    #[inline(always)]
    fn widen(self, values: &[i8; 2 * ROWS]) -> Self::Values {
        self.avx512bw._mm512_cvtepi8_epi16(bytemuck::cast(*values))
    }

    #[inline(always)]
    fn add(self, sums: Self::Sums, values: Self::Values, pair: i32) -> Self::Sums {
        let pair = self.avx512f._mm512_set1_epi32(pair);
        let products = self.avx512bw._mm512_madd_epi16(values, pair);
        self.avx512f._mm512_add_epi32(sums, products)
    }

    #[inline(always)]
    fn array(self, sums: Self::Sums) -> [i32; ROWS] {
        bytemuck::cast(sums)
    }
}

#[cfg(target_arch = "x86_64")]
impl Lanes for V3 {
    type Values = [core::arch::x86_64::__m256i; 2];
    type Sums = [core::arch::x86_64::__m256i; 2];

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        bytemuck::cast([0_i32; ROWS])
    }

    #[inline(always)]
    fn widen(self, values: &[i8; 2 * ROWS]) -> Self::Values {
        let [low, high]: [[i8; ROWS]; 2] = bytemuck::cast(*values);
        [
            self.avx2._mm256_cvtepi8_epi16(bytemuck::cast(low)),
            self.avx2._mm256_cvtepi8_epi16(bytemuck::cast(high)),
        ]
    }

    #[inline(always)]
    fn add(self, sums: Self::Sums, values: Self::Values, pair: i32) -> Self::Sums {
        let pair = self.avx._mm256_set1_epi32(pair);
        let low = self.avx2._mm256_madd_epi16(values[0], pair);
        let high = self.avx2._mm256_madd_epi16(values[1], pair);
        [
            self.avx2._mm256_add_epi32(sums[0], low),
            self.avx2._mm256_add_epi32(sums[1], high),
        ]
    }

    #[inline(always)]
    fn array(self, sums: Self::Sums) -> [i32; ROWS] {
        bytemuck::cast(sums)
    }
}

/// The instructions that the compiler chooses.
#[derive(Clone, Copy)]
struct Portable;

impl Lanes for Portable {
    type Values = [i8; 2 * ROWS];
    type Sums = [i32; ROWS];

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        [0; ROWS]
    }

    #[inline(always)]
    fn widen(self, values: &[i8; 2 * ROWS]) -> Self::Values {
        *values
    }

    #[inline(always)]
    fn add(self, mut sums: Self::Sums, values: Self::Values, pair: i32) -> Self::Sums {
        let (first, second) = (pair << 16 >> 16, pair >> 16);
        for (row, sum) in sums.iter_mut().enumerate() {
            let product = i32::from(values[2 * row]) * first;
            *sum += product + i32::from(values[2 * row + 1]) * second;
        }
        sums
    }

    #[inline(always)]
    fn array(self, sums: Self::Sums) -> [i32; ROWS] {
        sums
    }
}

/// The largest magnitude. Values that are not a number are ignored.
fn largest(full: &[f32]) -> f32 {
    full.iter().fold(0.0, |most, value| value.abs().max(most))
}

fn inverse(scale: f32) -> f32 {
    if scale > 0.0 { 1.0 / scale } else { 0.0 }
}

/// Number of inputs that share one read of a tile.
const AT_ONCE: usize = 4;
