//! Q8_0 matrices and their product, computed on the caller's thread pool.
//!
//! The product of the tensor library runs on a separate pool, whose size can only be set by an
//! environment variable.

use candle_core::quantized::GgmlType;
use candle_core::quantized::k_quants::BlockQ8_0;
use candle_core::{Device, Result, Tensor};
use rayon::prelude::*;

/// A matrix whose rows consist of blocks of 32 values, each with a scale.
pub(crate) struct Matrix {
    rows: usize,
    columns: usize,
    blocks: Vec<BlockQ8_0>,
}

impl Matrix {
    /// Quantizes a tensor of two dimensions, whose row length must be a multiple of the block size.
    pub(crate) fn quantize(full: &Tensor) -> Result<Self> {
        let (rows, columns) = full.dims2()?;
        if !columns.is_multiple_of(BlockQ8_0::BLCK_SIZE) {
            candle_core::bail!(
                "rows of {columns} are not whole blocks of {}",
                BlockQ8_0::BLCK_SIZE
            );
        }
        Ok(Self {
            rows,
            columns,
            blocks: quantized(&full.flatten_all()?.to_vec1()?),
        })
    }

    /// Returns some of the rows, dequantized.
    pub(crate) fn rows(&self, wanted: &[u32]) -> Result<Tensor> {
        let mut full = vec![0.0; wanted.len() * self.columns];
        for (row, full) in wanted.iter().zip(full.chunks_mut(self.columns)) {
            let Some(blocks) = self.blocks.chunks(self.width()).nth(*row as usize) else {
                candle_core::bail!("there is no row {row} of {}", self.rows);
            };
            BlockQ8_0::to_float(blocks, full);
        }
        Tensor::from_vec(full, (wanted.len(), self.columns), &Device::Cpu)
    }

    /// The product of each row of `x` with each row of the matrix.
    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (count, columns) = x.dims2()?;
        if columns != self.columns {
            candle_core::bail!("rows of {columns} and {} have no product", self.columns);
        }
        let x = quantized(&x.flatten_all()?.to_vec1()?);
        let mut products = vec![0.0; self.rows * count];
        let share = self.share();
        let parts = products
            .par_chunks_mut(share * count)
            .zip(self.blocks.par_chunks(share * self.width()));
        parts.for_each(|(products, rows)| self.multiply(&x, rows, products));
        Tensor::from_vec(products, (self.rows, count), &Device::Cpu)?
            .t()?
            .contiguous()
    }

    /// Computes the products of some rows of the matrix with all of `x`, ordered by row of the
    /// matrix.
    fn multiply(&self, x: &[BlockQ8_0], rows: &[BlockQ8_0], products: &mut [f32]) {
        let width = self.width();
        let count = x.len() / width;
        for (rows, products) in rows.chunks(4 * width).zip(products.chunks_mut(4 * count)) {
            let row = |index: usize| &rows[index * width..(index + 1) * width];
            for (index, x) in x.chunks(width).enumerate() {
                // Four rows share one read of `x`; the remaining rows are computed one by one.
                if rows.len() == 4 * width {
                    let (a, b, c, d) =
                        BlockQ8_0::vec_dot_4(self.columns, row(0), row(1), row(2), row(3), x);
                    for (offset, product) in [a, b, c, d].into_iter().enumerate() {
                        products[offset * count + index] = product;
                    }
                } else {
                    for offset in 0..rows.len() / width {
                        products[offset * count + index] =
                            BlockQ8_0::vec_dot(self.columns, row(offset), x);
                    }
                }
            }
        }
    }

    /// Number of blocks per row.
    fn width(&self) -> usize {
        self.columns / BlockQ8_0::BLCK_SIZE
    }

    /// Number of rows in one unit of work: a multiple of four, with several units per thread.
    fn share(&self) -> usize {
        match rayon::current_num_threads() {
            1 => self.rows,
            threads => self.rows.div_ceil(threads * 4).next_multiple_of(4),
        }
    }
}

fn quantized(full: &[f32]) -> Vec<BlockQ8_0> {
    let mut blocks = vec![BlockQ8_0::zeros(); full.len() / BlockQ8_0::BLCK_SIZE];
    BlockQ8_0::from_float(full, &mut blocks);
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_is_that_of_the_full_matrix() {
        let value = |index: usize| ((index * 37 % 101) as f32 - 50.0) / 50.0;
        let tensor = |rows: usize, columns: usize| {
            Tensor::from_vec(
                (0..rows * columns).map(value).collect(),
                (rows, columns),
                &Device::Cpu,
            )
            .unwrap()
        };
        let (full, x) = (tensor(7, 64), tensor(3, 64));
        let expected: Vec<f32> = x
            .matmul(&full.t().unwrap())
            .unwrap()
            .flatten_all()
            .unwrap()
            .to_vec1()
            .unwrap();
        let found = Matrix::quantize(&full).unwrap().forward(&x).unwrap();
        assert_eq!(found.dims(), [3, 7]);
        let found: Vec<f32> = found.flatten_all().unwrap().to_vec1().unwrap();
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < 0.3, "{found} for {expected}");
        }
    }

    #[test]
    fn rows_come_back_nearly_whole() {
        let full = Tensor::arange(0_f32, 128.0, &Device::Cpu)
            .unwrap()
            .reshape((2, 64))
            .unwrap();
        let matrix = Matrix::quantize(&full).unwrap();
        let row: Vec<f32> = matrix
            .rows(&[1])
            .unwrap()
            .flatten_all()
            .unwrap()
            .to_vec1()
            .unwrap();
        assert!(
            row.iter()
                .zip(64_u8..)
                .all(|(found, expected)| (found - f32::from(expected)).abs() < 1.0)
        );
        assert!(matrix.rows(&[2]).is_err());
    }
}
