//! The check of a picture in base64.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use picture::Format;
use pulp::Arch;
use wire::lenient::ReadError;

/// Checks that base64 is that of a picture, without decoding more than its head and its tail.
///
/// It has to be of the standard alphabet, with its padding; line breaks are skipped. The file has
/// to begin as a binary format or as SVG. If it begins as PNG, JPEG, WebP, GIF or SVG, it has to
/// end as this format does. Other binary formats are accepted without a check of their end: servers
/// may send formats that this version does not know, such as AVIF.
///
/// ```
/// use sluicegate_images::lenient::PictureCheck;
///
/// let mut check = PictureCheck::default();
/// // The pieces may be of any length.
/// check.push(b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4D");
/// check.push(b"QAA/QD8+ApPNQAAAABJRU5ErkJggg==");
/// assert!(check.finish().is_ok());
///
/// let mut cut = PictureCheck::default();
/// cut.push(b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptV");
/// assert!(cut.finish().is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct PictureCheck {
    /// The first letters.
    head: Vec<u8>,
    /// The last letters, of which there may be fewer.
    tail: Vec<u8>,
    /// The number of letters.
    letters: u64,
    /// The number of padding characters.
    padding: u64,
    has_strangers: bool,
}

impl PictureCheck {
    /// Adds the next piece of the text.
    pub fn push(&mut self, piece: &[u8]) {
        let padding = piece.iter().rev().take_while(|byte| **byte == b'=').count();
        let letters = &piece[..piece.len() - padding];
        if are_letters(letters) {
            self.line(letters, padding);
        } else {
            for line in piece.split(|byte| matches!(byte, b'\r' | b'\n')) {
                let padding = line.iter().rev().take_while(|byte| **byte == b'=').count();
                let letters = &line[..line.len() - padding];
                self.has_strangers |= !are_letters(letters);
                self.line(letters, padding);
            }
        }
    }

    /// Adds the letters that the next piece begins with, as far as they are whole blocks of 256, and
    /// returns their number. A scanner need not look for the end of the text within them.
    #[must_use]
    pub fn push_letters(&mut self, piece: &[u8]) -> usize {
        let (blocks, _) = piece.as_chunks();
        let length = Arch::new().dispatch(|| whole_blocks(blocks)) * BLOCK;
        self.line(&piece[..length], 0);
        length
    }

    /// Returns true if there was no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.letters == 0 && self.padding == 0 && !self.has_strangers
    }

    /// Judges the complete text.
    ///
    /// # Errors
    /// If it is not the base64 of a picture.
    pub fn finish(&self) -> Result<(), ReadError> {
        let length = self.letters + self.padding;
        if self.has_strangers || self.padding > 2 || !length.is_multiple_of(4) {
            return Err(malformed("is not valid base64"));
        }
        let head = decode(&self.head);
        let Some(head) = head.first_chunk::<HEAD>() else {
            return Err(malformed("is no picture: it is too short"));
        };
        // Groups of four letters begin at multiples of four from the first letter.
        let before = self.letters.saturating_sub(self.tail.len() as u64);
        let skipped = (4 - before % 4) % 4;
        let tail = decode(self.tail.get(skipped as usize..).unwrap_or_default());
        if !is_binary(head) && !has(&tail, b"</svg>") {
            Err(malformed("is no picture: it is a text"))
        } else if !is_complete(head, &tail, self.letters / 4 * 3 + self.letters % 4 * 3 / 4) {
            Err(malformed("is a picture that is cut"))
        } else {
            Ok(())
        }
    }

    /// Adds letters and the padding after them.
    fn line(&mut self, letters: &[u8], padding: usize) {
        if letters.is_empty() {
            self.padding += padding as u64;
            return;
        }
        self.has_strangers |= self.padding > 0;
        self.padding += padding as u64;
        self.letters += letters.len() as u64;
        let missing = (HEAD_LETTERS - self.head.len()).min(letters.len());
        self.head.extend_from_slice(&letters[..missing]);
        let last = &letters[letters.len().saturating_sub(TAIL_LETTERS)..];
        let kept = self.tail.len().min(TAIL_LETTERS - last.len());
        self.tail.drain(..self.tail.len() - kept);
        self.tail.extend_from_slice(last);
    }
}

/// Returns true if all bytes are of the alphabet.
fn are_letters(text: &[u8]) -> bool {
    let (blocks, rest) = text.as_chunks();
    Arch::new().dispatch(|| whole_blocks(blocks) == blocks.len()) && distances(rest) == 0
}

/// Returns the number of blocks before the first one with a byte that is not of the alphabet.
/// Pictures are large, so this is written such that it is compiled to few vector instructions, and
/// called for the widest ones that the processor has.
#[inline(always)]
fn whole_blocks(blocks: &[[u8; BLOCK]]) -> usize {
    let is_strange = |block: &[u8; BLOCK]| distances(block) != 0;
    blocks.iter().position(is_strange).unwrap_or(blocks.len())
}

/// Returns 0 if all bytes are of the alphabet.
#[inline(always)]
fn distances(text: &[u8]) -> u8 {
    text.iter().fold(0, |any, byte| any | distance(*byte))
}

/// The distance of a byte from the alphabet, which is 0 for its letters.
#[inline(always)]
fn distance(byte: u8) -> u8 {
    let from_letters = (byte | 0x20).wrapping_sub(b'a').saturating_sub(25);
    // The slash is directly before the digits.
    let from_digits = byte.wrapping_sub(b'/').saturating_sub(10);
    from_letters.min(from_digits).min(byte ^ b'+')
}

/// Decodes letters without their padding.
fn decode(letters: &[u8]) -> Vec<u8> {
    LETTERS.decode(letters).unwrap_or_default()
}

/// Returns false for the beginning of a text, such as an error message.
fn is_binary(head: &[u8; HEAD]) -> bool {
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    !head.iter().all(is_text)
}

/// Returns true if a file ends as its format does. A few bytes may follow, which some programs
/// append. `size` is that of the file.
fn is_complete(head: &[u8; HEAD], tail: &[u8], size: u64) -> bool {
    match Format::sniff(head) {
        Some(Format::Png) => has(tail, b"IEND\xaeB`\x82"),
        Some(Format::Jpeg) => has(tail, b"\xff\xd9"),
        // The end of its last block, and the trailer.
        Some(Format::Gif) => has(tail, b"\0;"),
        Some(Format::Webp) => {
            let [_, _, _, _, length @ .., _, _, _, _] = *head;
            size >= 8 + u64::from(u32::from_le_bytes(length))
        }
        _ => true,
    }
}

fn has(tail: &[u8], end: &[u8]) -> bool {
    tail.windows(end.len()).any(|window| window == end)
}

fn malformed(why: &str) -> ReadError {
    ReadError::Malformed(format!("an image whose `b64_json` {why}"))
}

/// The alphabet without padding. The last letter may have bits that no byte uses, which most
/// decoders ignore.
const LETTERS: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    NO_PAD.with_decode_allow_trailing_bits(true),
);
/// The number of letters that are checked at once.
const BLOCK: usize = 256;
/// The number of bytes that identify the format of a file.
const HEAD: usize = 12;
const HEAD_LETTERS: usize = HEAD / 3 * 4;
/// The number of letters at the end that are looked at.
const TAIL_LETTERS: usize = 64;
