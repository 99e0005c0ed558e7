//! Q8_0 matrices: each 32 values of a row share a scale, in the matrix and in the rows that it is
//! multiplied with.
//!
//! The format is nearly lossless, and its products are products of small integers. The weights are
//! ordered such that one vector instruction works on many rows, which then needs no sum across a
//! vector.

mod kernel;

use rayon::prelude::*;

use self::kernel::{Block, ROWS, Tile, VALUES};
use crate::gguf::format::{full_to_half, half_to_full};

/// A matrix whose rows consist of blocks of 32 values.
pub(crate) struct Matrix {
    rows: usize,
    columns: usize,
    /// Tiles of 16 rows and 32 columns. Tiles of the same rows follow each other.
    tiles: Vec<Tile>,
}

/// Rows of numbers, quantized for products with matrices of the same number of columns.
pub(crate) struct Rows {
    columns: usize,
    blocks: Vec<Block>,
}

impl Rows {
    /// Quantizes rows, whose length must be a multiple of 32.
    pub(crate) fn quantize(full: &[f32], columns: usize) -> Self {
        let mut blocks = vec![Block::default(); full.len() / VALUES];
        blocks
            .par_iter_mut()
            .zip(full.par_chunks_exact(VALUES))
            .with_min_len(MIN_BLOCKS)
            .for_each(|(block, full)| *block = Block::quantize(full));
        Self { columns, blocks }
    }
}

impl Matrix {
    /// Quantizes a matrix, whose row length must be a multiple of 32.
    pub(crate) fn quantize(full: &[f32], columns: usize) -> Result<Self, String> {
        if columns == 0 || !columns.is_multiple_of(VALUES) || !full.len().is_multiple_of(columns) {
            return Err(format!(
                "rows of {columns} are not whole blocks of {VALUES}"
            ));
        }
        let width = columns / VALUES;
        let rows = full.len() / columns;
        let mut tiles = vec![Tile::default(); rows.div_ceil(ROWS) * width];
        let parts = tiles.par_chunks_exact_mut(width);
        parts
            .zip(full.par_chunks(ROWS * columns))
            .for_each(|(tiles, full)| {
                for (row, full) in full.chunks_exact(columns).enumerate() {
                    for (tile, full) in tiles.iter_mut().zip(full.chunks_exact(VALUES)) {
                        tile.set_row(row, full);
                    }
                }
            });
        Ok(Self {
            rows,
            columns,
            tiles,
        })
    }

    /// Returns some of the rows, dequantized.
    pub(crate) fn rows(&self, wanted: &[u32]) -> Result<Vec<f32>, String> {
        let width = self.columns / VALUES;
        let mut full = Vec::with_capacity(wanted.len() * self.columns);
        for row in wanted {
            let row = *row as usize;
            if row >= self.rows {
                return Err(format!("there is no row {row} of {}", self.rows));
            }
            let tiles = self.tiles.chunks_exact(width).nth(row / ROWS);
            for tile in tiles.into_iter().flatten() {
                full.extend(tile.row(row % ROWS));
            }
        }
        Ok(full)
    }

    /// The products of each of `x` with each row of the matrix, ordered by `x`.
    pub(crate) fn product(&self, x: &Rows) -> Vec<f32> {
        assert_eq!(x.columns, self.columns, "rows of the same length");
        let width = self.columns / VALUES;
        let count = x.blocks.len() / width;
        let mut products = vec![[0.0; ROWS]; self.tiles.len() / width * count];
        let share = self.share();
        products
            .par_chunks_mut(share * count)
            .zip(self.tiles.par_chunks(share * width))
            .for_each(|(products, tiles)| kernel::multiply(tiles, width, &x.blocks, products));
        let mut products = by_input(products, count);
        if !self.rows.is_multiple_of(ROWS) {
            let padded = self.rows.next_multiple_of(ROWS);
            let rows = products.chunks_exact(padded);
            products = rows.flat_map(|row| &row[..self.rows]).copied().collect();
        }
        products
    }

    /// Number of groups of rows in one unit of work, with several units per thread.
    fn share(&self) -> usize {
        let groups = self.rows.div_ceil(ROWS);
        match rayon::current_num_threads() {
            1 => groups,
            threads => groups.div_ceil(threads * 4),
        }
    }
}

/// Orders products by input instead of by group of rows.
fn by_input(products: Vec<[f32; ROWS]>, count: usize) -> Vec<f32> {
    if count == 1 {
        return products.into_flattened();
    }
    let mut ordered = Vec::with_capacity(products.len() * ROWS);
    for input in 0..count {
        let of_input = products.iter().skip(input).step_by(count);
        of_input.for_each(|products| ordered.extend_from_slice(products));
    }
    ordered
}

/// Minimum number of blocks that are worth another thread.
const MIN_BLOCKS: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from -1 to 1.
    fn numbers(count: usize) -> Vec<f32> {
        let next = |state: &u32| Some(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        let states = std::iter::successors(Some(7), next).take(count);
        states
            .map(|state| (state >> 8) as f32 / 8_388_608.0 - 1.0)
            .collect()
    }

    /// Rounds numbers as the format does: each 32 to multiples of a 127th of their largest one. See
    /// `quantize_row_q8_0_ref` of <https://github.com/ggml-org/llama.cpp/blob/master/ggml/src/ggml-quants.c>.
    fn rounded(full: &[f32]) -> Vec<f64> {
        let block = |block: &[f32]| {
            let largest = block
                .iter()
                .fold(0.0, |largest: f32, x| largest.max(x.abs()));
            let scale = f64::from(largest) / 127.0;
            let round = |x: &f32| (f64::from(*x) / scale).round() * scale;
            block.iter().map(round).collect::<Vec<_>>()
        };
        full.chunks(32).flat_map(block).collect()
    }

    /// Rows and inputs that are not a multiple of those computed together.
    #[test]
    fn the_product_is_that_of_the_rounded_numbers() {
        for (rows, columns, count) in [(16, 32, 1), (7, 64, 3), (49, 576, 6), (160, 96, 33)] {
            let full = numbers(rows * columns);
            let x: Vec<f32> = numbers(count * columns).iter().map(|x| 3.0 * x).collect();
            let matrix = Matrix::quantize(&full, columns).unwrap();
            let found = matrix.product(&Rows::quantize(&x, columns));
            let (full, x) = (rounded(&full), rounded(&x));
            let expected = x.chunks(columns).flat_map(|x| {
                let row = |row: &[f64]| row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>();
                full.chunks(columns).map(row).collect::<Vec<_>>()
            });
            assert_eq!(found.len(), rows * count);
            for (found, expected) in found.iter().zip(expected) {
                // The matrix has scales of half precision, so it rounds some numbers the other way.
                let apart = (f64::from(*found) - expected).abs();
                assert!(apart < 0.15, "{found} for {expected}");
            }
        }
    }

    #[test]
    fn rows_come_back_nearly_whole() {
        let full = numbers(3 * 64);
        let matrix = Matrix::quantize(&full, 64).unwrap();
        let found = matrix.rows(&[2, 0]).unwrap();
        let expected = full[128..].iter().chain(&full[..64]);
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 0.01, "{found} for {expected}");
        }
        assert!(matrix.rows(&[3]).is_err());
        assert!(Matrix::quantize(&full, 48).is_err());
    }
}
