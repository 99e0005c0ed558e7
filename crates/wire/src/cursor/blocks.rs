//! Passes over the text of a JSON string in blocks, with the widest vector instructions of this
//! machine.

use pulp::NullaryFnOnce;
#[cfg(target_arch = "x86_64")]
use pulp::{
    bytemuck,
    x86::{V3, V4},
};
use wide::u8x16;

use super::after_escape;

/// Returns the number of bytes at the beginning of `text` that are within a JSON string, whose opening
/// quote is before them. It ends at the closing quote, at something that a string cannot have, or where
/// less than a block is left.
pub(super) fn inner(text: &[u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    match pulp::x86::Arch::new() {
        pulp::x86::Arch::V4(lanes) => return lanes.vectorize(Inner { lanes, text }),
        pulp::x86::Arch::V3(lanes) => return lanes.vectorize(Inner { lanes, text }),
        _ => {}
    }
    let lanes = Portable;
    Inner { lanes, text }.call()
}

/// Work to be compiled for the instructions of `lanes`.
struct Inner<'a, L> {
    lanes: L,
    text: &'a [u8],
}

impl<L: Lanes> NullaryFnOnce for Inner<'_, L> {
    type Output = usize;

    /// Looks at all quotes and escapes of a block together: a long text may have some in every line.
    #[inline(always)]
    fn call(self) -> usize {
        let (mut at, mut carry) = (0, 0);
        while let Some(block) = self.text[at..].first_chunk() {
            let Marks {
                quotes,
                backslashes,
                controls,
            } = self.lanes.marks(block);
            let escaped = escaped(backslashes, &mut carry);
            let ends = quotes & !escaped | controls;
            let before_end = ends.wrapping_sub(1) & !ends;
            // Quotes and backslashes may be escaped; the other letters are looked at one by one.
            let mut letters = escaped & before_end & !(quotes | backslashes);
            while letters != 0 {
                let letter = at + letters.trailing_zeros() as usize;
                if after_escape(&self.text[letter..]).is_none() {
                    return letter - 1;
                }
                letters &= letters - 1;
            }
            if ends != 0 {
                return at + ends.trailing_zeros() as usize;
            }
            at += BLOCK;
        }
        // A backslash that ends the last block is left to the caller, with the letter behind it.
        at - carry as usize
    }
}

/// Returns a bit for each byte that a backslash escapes. `carry` is 1 if the first byte of the
/// block is escaped, and is set to 1 if the first byte of the next block is, otherwise to 0.
#[inline(always)]
fn escaped(backslashes: u64, carry: &mut u64) -> u64 {
    let behind = backslashes << 1 | *carry;
    if backslashes & behind == 0 {
        *carry = backslashes >> 63;
        return behind;
    }
    // A row of backslashes escapes every second byte, from its second one to the one behind it. To add
    // a row's start to it flips the bits of the row and of the byte behind it.
    let first = *carry;
    let backslashes = backslashes & !first;
    let starts = backslashes & !(backslashes << 1);
    let rows = |starts| backslashes.wrapping_add(starts) ^ backslashes;
    let escaped = rows(starts & EVEN) & !EVEN | rows(starts & !EVEN) & EVEN | first;
    *carry = (backslashes & !escaped) >> 63;
    escaped
}

/// The bytes of a block that matter: a bit for each one, the lowest for the first.
struct Marks {
    quotes: u64,
    backslashes: u64,
    /// Control characters, which a text must not have.
    controls: u64,
}

/// Vectors of bytes, and the instructions for them.
trait Lanes: Copy {
    fn marks(self, block: &[u8; BLOCK]) -> Marks;
}

#[cfg(target_arch = "x86_64")]
impl Lanes for V4 {
    #[inline(always)]
    fn marks(self, block: &[u8; BLOCK]) -> Marks {
        let block = bytemuck::cast(*block);
        let splat = |byte: u8| self.avx512f._mm512_set1_epi8(byte.cast_signed());
        let equal = |byte| self.avx512bw._mm512_cmpeq_epi8_mask(block, splat(byte));
        Marks {
            quotes: equal(b'"'),
            backslashes: equal(b'\\'),
            controls: self.avx512bw._mm512_cmplt_epu8_mask(block, splat(b' ')),
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Lanes for V3 {
    #[inline(always)]
    fn marks(self, block: &[u8; BLOCK]) -> Marks {
        let halves: [[u8; BLOCK / 2]; 2] = bytemuck::cast(*block);
        let halves = halves.map(bytemuck::cast);
        let splat = |byte: u8| self.avx._mm256_set1_epi8(byte.cast_signed());
        let bits = |masks: [_; 2]| {
            let [low, high] =
                masks.map(|mask| self.avx2._mm256_movemask_epi8(mask).cast_unsigned());
            u64::from(high) << 32 | u64::from(low)
        };
        let equal = |byte| bits(halves.map(|half| self.avx2._mm256_cmpeq_epi8(half, splat(byte))));
        Marks {
            quotes: equal(b'"'),
            backslashes: equal(b'\\'),
            controls: bits(halves.map(|half| {
                let least = self.avx2._mm256_min_epu8(half, splat(b' ' - 1));
                self.avx2._mm256_cmpeq_epi8(half, least)
            })),
        }
    }
}

/// The vectors that the compiler has for any machine.
#[derive(Clone, Copy)]
struct Portable;

impl Lanes for Portable {
    #[inline(always)]
    fn marks(self, block: &[u8; BLOCK]) -> Marks {
        let (quarters, _) = block.as_chunks();
        let mut marks = Marks {
            quotes: 0,
            backslashes: 0,
            controls: 0,
        };
        for (number, quarter) in quarters.iter().enumerate() {
            let quarter = u8x16::new(*quarter);
            let bits = |mask: u8x16| u64::from(mask.to_bitmask()) << (number * 16);
            marks.quotes |= bits(quarter.simd_eq(u8x16::splat(b'"')));
            marks.backslashes |= bits(quarter.simd_eq(u8x16::splat(b'\\')));
            let least = quarter.min(u8x16::splat(b' ' - 1));
            marks.controls |= bits(quarter.simd_eq(least));
        }
        marks
    }
}

/// The bytes that are looked at together.
const BLOCK: usize = 64;
/// The bits of the first byte of a block, the third one, and so on.
const EVEN: u64 = u64::MAX / 3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the number of skipped bytes for each kind of vectors that this machine has.
    fn with_each(text: &[u8]) -> Vec<usize> {
        let lanes = Portable;
        let mut all = vec![Inner { lanes, text }.call()];
        #[cfg(target_arch = "x86_64")]
        {
            let by_v3 = V3::try_new().map(|lanes| lanes.vectorize(Inner { lanes, text }));
            let by_v4 = V4::try_new().map(|lanes| lanes.vectorize(Inner { lanes, text }));
            all.extend(by_v3.into_iter().chain(by_v4));
        }
        all
    }

    #[test]
    fn block_scan_stops_at_quote_invalid_byte_or_tail() {
        let plain = |length| "x".repeat(length);
        for (text, length) in [
            (String::new(), 0),
            (plain(63), 0),
            (plain(64), 64),
            (plain(130), 128),
            (format!("\"{}", plain(70)), 0),
            (format!("{}\"{}", plain(63), plain(64)), 63),
            (format!("{}\"{}", plain(64), plain(63)), 64),
            (format!("\\\"\"{}", plain(70)), 2),
            (format!("\\\\\"{}", plain(70)), 2),
            (format!("{}\n{}", plain(30), plain(70)), 30),
            (format!("{}\u{1f}{}", plain(69), plain(70)), 69),
            (format!("{}\u{7f} {}", plain(30), plain(70)), 64),
            (format!("{}\\u00e9{}", plain(62), plain(70)), 128),
            (format!("{}\\u00eg{}", plain(62), plain(70)), 62),
            (format!("{}\\x{}", plain(30), plain(70)), 30),
            (format!("{}\\x{}", plain(63), plain(70)), 63),
            // A backslash at the end of a block.
            (format!("{}\\\"{}", plain(63), plain(62)), 63),
            (format!("{}\\\"{}", plain(63), plain(63)), 128),
            (format!("{}\\\"\"{}", plain(63), plain(70)), 65),
            (format!("{}\\", plain(63)), 63),
            (format!("{}\\\\", plain(62)), 64),
            // Backslashes in a row, from one block to the next.
            (format!("{}\"{}", "\\".repeat(64), plain(63)), 64),
            (
                format!("{}\"{}\"{}", "\\".repeat(65), plain(63), plain(70)),
                129,
            ),
            (
                format!("{}{}\"{}", plain(61), "\\".repeat(4), plain(70)),
                65,
            ),
            (
                format!("{}{}\"\"{}", plain(60), "\\".repeat(5), plain(70)),
                66,
            ),
        ] {
            let passed = with_each(text.as_bytes());
            assert!(
                passed.iter().all(|passed| *passed == length),
                "{text:?}: {passed:?}, not {length}"
            );
        }
    }

    proptest! {
        #[test]
        fn all_vectors_pass_over_the_same(text in r#"([x\u{e9}\u{7f}]{0,40}(\\\\){0,9}\\["nux\\]){0,9}["\x00x]{0,2}x{0,70}"#) {
            let passed = with_each(text.as_bytes());
            prop_assert!(passed.iter().all(|some| *some == passed[0]), "{:?}", passed);
        }
    }
}
