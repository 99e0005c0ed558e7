//! The formats of tensors in GGUF files, and their conversion to full numbers.
//!
//! The layouts are defined by ggml
//! (<https://github.com/ggml-org/llama.cpp/blob/master/ggml/src/ggml-common.h>).

/// The format of a tensor. In the formats with `K`, 256 values share their scales; in other
/// quantized ones, 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    F32,
    F16,
    Bf16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
}

impl Format {
    /// The format of a `ggml_type`.
    pub(crate) fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::Q4_0,
            3 => Self::Q4_1,
            6 => Self::Q5_0,
            7 => Self::Q5_1,
            8 => Self::Q8_0,
            10 => Self::Q2K,
            11 => Self::Q3K,
            12 => Self::Q4K,
            13 => Self::Q5K,
            14 => Self::Q6K,
            30 => Self::Bf16,
            _ => return None,
        })
    }

    /// The number of values in a block, and of its bytes.
    pub(crate) fn block(self) -> (usize, usize) {
        match self {
            Self::F32 => (1, 4),
            Self::F16 | Self::Bf16 => (1, 2),
            Self::Q4_0 => (32, 18),
            Self::Q4_1 => (32, 20),
            Self::Q5_0 => (32, 22),
            Self::Q5_1 => (32, 24),
            Self::Q8_0 => (32, 34),
            Self::Q2K => (256, 84),
            Self::Q3K => (256, 110),
            Self::Q4K => (256, 144),
            Self::Q5K => (256, 176),
            Self::Q6K => (256, 210),
        }
    }

    /// Converts the blocks of a tensor to full numbers.
    pub(crate) fn decode(self, bytes: &[u8]) -> Vec<f32> {
        let (values, size) = self.block();
        let mut full = vec![0.0; bytes.len() / size * values];
        let blocks = bytes.chunks_exact(size);
        for (block, full) in blocks.zip(full.chunks_exact_mut(values)) {
            self.decode_block(block, full);
        }
        full
    }

    fn decode_block(self, block: &[u8], full: &mut [f32]) {
        match self {
            Self::F32 => full[0] = f32::from_le_bytes([block[0], block[1], block[2], block[3]]),
            Self::F16 => full[0] = half(block, 0),
            Self::Bf16 => full[0] = f32::from_le_bytes([0, 0, block[0], block[1]]),
            Self::Q4_0 => decode_32(half(block, 0), None, &[0; 4], &block[2..], full, 8.0),
            Self::Q4_1 => {
                let least = Some(half(block, 2));
                decode_32(half(block, 0), least, &[0; 4], &block[4..], full, 0.0);
            }
            Self::Q5_0 => decode_32(half(block, 0), None, &block[2..6], &block[6..], full, 16.0),
            Self::Q5_1 => {
                let least = Some(half(block, 2));
                decode_32(half(block, 0), least, &block[4..8], &block[8..], full, 0.0);
            }
            Self::Q8_0 => {
                let scale = half(block, 0);
                for (full, byte) in full.iter_mut().zip(&block[2..]) {
                    *full = f32::from(byte.cast_signed()) * scale;
                }
            }
            Self::Q2K => decode_2k(block, full),
            Self::Q3K => decode_3k(block, full),
            Self::Q4K => decode_45k(block, &block[..0], &block[16..], full),
            Self::Q5K => decode_45k(block, &block[16..48], &block[48..], full),
            Self::Q6K => decode_6k(block, full),
        }
    }
}

/// Decodes 32 values of four bits in `low`, and a fifth in `high`. The first half of the values is
/// in the lower halves of the bytes.
fn decode_32(
    scale: f32,
    least: Option<f32>,
    high: &[u8],
    low: &[u8],
    full: &mut [f32],
    middle: f32,
) {
    for (index, full) in full.iter_mut().enumerate() {
        let fifth = high[index / 8] >> (index % 8) & 1;
        let value = (low[index % 16] >> (index / 16 * 4) & 15) | fifth << 4;
        let scaled = (f32::from(value) - middle) * scale;
        *full = least.map_or(scaled, |least| scaled + least);
    }
}

/// Decodes values of two bits: each 16 have a scale and a least value of four bits.
fn decode_2k(block: &[u8], full: &mut [f32]) {
    let (scales, low) = (&block[..16], &block[16..80]);
    let (scale, least) = (half(block, 80), half(block, 82));
    for (index, full) in full.iter_mut().enumerate() {
        let both = scales[index / 16];
        let value = low[index / 128 * 32 + index % 32] >> (index % 128 / 32 * 2) & 3;
        *full = scale * f32::from(both & 15) * f32::from(value) - least * f32::from(both >> 4);
    }
}

/// Decodes values of three bits: each 16 have a scale of six bits.
fn decode_3k(block: &[u8], full: &mut [f32]) {
    let (high, low, scales) = (&block[..32], &block[32..96], &block[96..108]);
    let scale = half(block, 108);
    for (index, full) in full.iter_mut().enumerate() {
        let part = index / 16;
        let part_scale = (scales[part % 8] >> (part / 8 * 4) & 15)
            | (scales[8 + part % 4] >> (part / 4 * 2) & 3) << 4;
        let value = low[index / 128 * 32 + index % 32] >> (index % 128 / 32 * 2) & 3;
        let third = high[index % 32] >> (index / 32) & 1;
        let signed = f32::from(value | third << 2) - 4.0;
        *full = scale * (f32::from(part_scale) - 32.0) * signed;
    }
}

/// Decodes values of four bits, and a fifth in `high` unless that is empty: each 32 have a scale
/// and a least value of six bits.
fn decode_45k(block: &[u8], high: &[u8], low: &[u8], full: &mut [f32]) {
    let (scale, least, packed) = (half(block, 0), half(block, 2), &block[4..16]);
    for (part, full) in full.chunks_exact_mut(32).enumerate() {
        let (part_scale, part_least) = match part {
            0..4 => (packed[part] & 63, packed[part + 4] & 63),
            _ => (
                packed[part + 4] & 15 | packed[part - 4] >> 6 << 4,
                packed[part + 4] >> 4 | packed[part] >> 6 << 4,
            ),
        };
        let (scale, least) = (scale * f32::from(part_scale), least * f32::from(part_least));
        let low = &low[part / 2 * 32..];
        for (index, full) in full.iter_mut().enumerate() {
            let fifth = high.get(index).map_or(0, |bits| bits >> part & 1);
            let value = low[index] >> (part % 2 * 4) & 15 | fifth << 4;
            *full = scale * f32::from(value) - least;
        }
    }
}

/// Decodes values of six bits: each 16 have a scale of eight bits.
fn decode_6k(block: &[u8], full: &mut [f32]) {
    let (low, high, scales) = (&block[..128], &block[128..192], &block[192..208]);
    let scale = half(block, 208);
    for (index, full) in full.iter_mut().enumerate() {
        let (part, within) = (index / 128, index % 128);
        let four = low[part * 64 + within % 64] >> (within / 64 * 4) & 15;
        let two = high[part * 32 + within % 32] >> (within / 32 * 2) & 3;
        let signed = f32::from(four | two << 4) - 32.0;
        *full = scale * f32::from(scales[index / 16].cast_signed()) * signed;
    }
}

/// The half-precision number at an offset.
fn half(block: &[u8], at: usize) -> f32 {
    half_to_full(u16::from_le_bytes([block[at], block[at + 1]]))
}

/// Converts a finite half-precision number.
#[inline(always)]
pub(crate) fn half_to_full(half: u16) -> f32 {
    // The exponent of the result is too small by the difference of the biases.
    let sign = u32::from(half & 0x8000) << 16;
    let size = u32::from(half & 0x7fff) << 13;
    f32::from_bits(sign | size) * f32::from_bits((127 + 112) << 23)
}

/// Rounds a number from 0 to 65504 to half precision.
pub(crate) fn full_to_half(full: f32) -> u16 {
    let bits = (full.min(65504.0) * f32::from_bits((127 - 112) << 23)).to_bits();
    ((bits + 0xfff + (bits >> 13 & 1)) >> 13) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::Reference;

    #[test]
    fn all_formats_are_decoded_as_by_candle() {
        let formats = Reference::read().formats;
        assert_eq!(formats.len(), 26);
        for reference in formats {
            let format = Format::from_code(reference.code).unwrap();
            let decoded = format.decode(&bytes(&reference.block));
            let bits = decoded
                .iter()
                .flat_map(|value| value.to_bits().to_be_bytes());
            assert!(
                bits.eq(bytes(&reference.numbers)),
                "{}: {decoded:?}",
                reference.name
            );
        }
    }

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digits).collect()
    }

    #[test]
    fn halves_come_back() {
        for half in 0..=0x7bff {
            assert_eq!(full_to_half(half_to_full(half)), half);
        }
        assert_eq!(
            (half_to_full(0xc248), full_to_half(1e9)),
            (-3.140_625, 0x7bff)
        );
    }
}
