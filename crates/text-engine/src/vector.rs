//! Operations on rows of full numbers, in loops that the compiler turns into vector instructions.

use pulp::Arch;
use rayon::prelude::*;

/// Computes each row of `out`, several at a time if there are many.
pub(crate) fn each_row(
    out: &mut [f32],
    columns: usize,
    compute: impl Fn(usize, &mut [f32]) + Sync,
) {
    let rows = out.par_chunks_exact_mut(columns).with_min_len(MIN_ROWS);
    rows.enumerate()
        .for_each(|(index, row)| Arch::new().dispatch(|| compute(index, row)));
}

/// The root-mean-square norm (<https://arxiv.org/abs/1910.07467>) of a row.
#[inline(always)]
pub(crate) fn normalize(row: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) {
    let mean = dot(row, row) / row.len() as f32;
    let scale = 1.0 / (mean + epsilon).sqrt();
    for ((out, value), weight) in out.iter_mut().zip(row).zip(weight) {
        *out = value * scale * weight;
    }
}

/// Gates a row with the SwiGLU function (<https://arxiv.org/abs/2002.05202>).
#[inline(always)]
pub(crate) fn gate(gate: &[f32], row: &[f32], out: &mut [f32]) {
    for ((out, gate), value) in out.iter_mut().zip(gate).zip(row) {
        *out = gate / (1.0 + exp(-gate)) * value;
    }
}

/// Turns scores into shares, whose sum is 1.
#[inline(always)]
pub(crate) fn softmax(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for score in &mut *scores {
        *score = exp(*score - most);
    }
    let scale = 1.0 / scores.iter().sum::<f32>();
    for score in scores {
        *score *= scale;
    }
}

/// Adds a multiple of a row.
#[inline(always)]
pub(crate) fn add_scaled(sum: &mut [f32], row: &[f32], scale: f32) {
    for (sum, value) in sum.iter_mut().zip(row) {
        *sum += value * scale;
    }
}

/// The product of two rows.
#[inline(always)]
pub(crate) fn dot(left: &[f32], right: &[f32]) -> f32 {
    let (left, left_rest) = left.as_chunks::<LANES>();
    let (right, right_rest) = right.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (left, right) in left.iter().zip(right) {
        for ((sum, left), right) in sums.iter_mut().zip(left).zip(right) {
            *sum += left * right;
        }
    }
    let rest = left_rest
        .iter()
        .zip(right_rest)
        .map(|(left, right)| left * right);
    sums.iter().sum::<f32>() + rest.sum::<f32>()
}

/// The exponential function, with a relative error below 1e-6.
///
/// Unlike the one of the standard library, it can be computed for many numbers at a time.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // e^x = 2^n * e^rest, where `rest` is at most half of ln 2.
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUNDING;
    let n = shifted - ROUNDING;
    let rest = x - n * LN_2_HIGH - n * LN_2_LOW;
    let series = [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    let power = series
        .iter()
        .fold(1.0 / 720.0, |sum, next| sum * rest + next);
    // The lowest bits of the shifted number are n.
    let scale = (shifted.to_bits() << 23).wrapping_add(127 << 23);
    power * f32::from_bits(scale)
}

/// Adding this to a small number rounds it to an integer.
const ROUNDING: f32 = 12_582_912.0;

/// The leading bits of ln 2, whose product with a small integer is exact, and the other ones.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// Number of independent sums in a product.
const LANES: usize = 16;

/// Minimum number of rows that are worth another thread.
const MIN_ROWS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_matches_the_standard_library() {
        for step in -8700..=8800_i16 {
            let x = f32::from(step) / 100.0;
            let (found, expected) = (exp(x), x.exp());
            assert!(
                (found - expected).abs() <= expected * 1e-6,
                "{found} for {expected}"
            );
        }
        assert!(exp(-1e9) < 1e-37 && exp(f32::NEG_INFINITY) < 1e-37);
    }

    #[test]
    fn softmax_normalises_the_scores() {
        let mut scores = [0.0, 3_f32.ln(), f32::NEG_INFINITY];
        softmax(&mut scores);
        for (found, expected) in scores.iter().zip([0.25, 0.75, 0.0]) {
            assert!((found - expected).abs() < 1e-6, "{scores:?}");
        }
    }

    #[test]
    fn a_product_has_all_values_of_long_rows() {
        let (left, right): (Vec<f32>, Vec<f32>) = (0..37_u8).map(|i| (f32::from(i), 2.0)).unzip();
        assert_eq!(dot(&left, &right), 1332.0);
    }

    #[test]
    fn a_row_is_normalized_and_weighted() {
        let mut out = [0.0; 2];
        normalize(&[3.0, 4.0], &[1.0, 2.0], 0.0, &mut out);
        // The root of the mean of 9 and 16 is 3.5355.
        for (found, expected) in out.iter().zip([0.848_528, 2.262_742]) {
            assert!((found - expected).abs() < 1e-5, "{out:?}");
        }
    }
}
