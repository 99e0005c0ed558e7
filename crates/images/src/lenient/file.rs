//! The check of a picture in base64, and its repair.

use std::ops::Range;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use picture::Format;
use pulp::Arch;
use wire::Rewrite;
use wire::lenient::ReadError;

/// Checks that base64 encodes a picture, without decoding more than its head and its tail. It also
/// finds the edits after which the base64 is of the standard alphabet, without white space and with
/// its padding.
///
/// Servers also write it as a data URL, in lines, in the alphabet for URLs, and without its
/// padding: the meaning of the text is clear. The file has to begin as a binary format or as SVG.
/// If it begins as PNG, JPEG, WebP, GIF or SVG, it has to end as this format does. Other binary
/// formats are accepted without a check of their end: servers may send formats that this version
/// does not know, such as AVIF.
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
    start: Start,
    /// The first letters.
    head: Vec<u8>,
    /// The last letters, at most `TAIL_LETTERS`.
    tail: Vec<u8>,
    /// The number of letters.
    letters: u64,
    /// The number of padding characters.
    padding: u64,
    has_strangers: bool,
}

/// The position within the text that may stand before the letters.
#[derive(Clone, Debug)]
enum Start {
    /// Within the scheme of a data URL, or at the start: the letters that would be of the scheme.
    Scheme(Vec<u8>),
    /// Within the media type of a data URL.
    MediaType(Vec<u8>),
    /// After the comma of a data URL.
    Content,
    /// In a text that is no data URL.
    Plain,
}

impl Default for Start {
    fn default() -> Self {
        Self::Scheme(Vec::new())
    }
}

/// Returns the standard form of the base64 of a picture, or `None` if it has it already.
///
/// # Errors
/// As for [`PictureCheck::finish`].
pub fn repaired(text: &str) -> Result<Option<String>, ReadError> {
    let mut check = PictureCheck::default();
    let mut rewrite = Rewrite::new(text.as_bytes());
    check.push_edited(text.as_bytes(), |range, with| rewrite.replace(range, with));
    check.finish()?;
    let missing = check.missing_padding();
    if !missing.is_empty() {
        rewrite.replace(text.len()..text.len(), missing.as_bytes());
    }
    if rewrite.is_unchanged() {
        return Ok(None);
    }
    let standard = String::from_utf8(rewrite.finish().into_owned());
    standard
        .map(Some)
        .map_err(|_| malformed("is not valid base64"))
}

impl PictureCheck {
    /// Adds the next piece of the text.
    pub fn push(&mut self, piece: &[u8]) {
        self.push_edited(piece, |_, _| {});
    }

    /// Adds the next piece of the text. Calls `edit` for each range of it that has to be replaced,
    /// with the replacement, in their order.
    pub fn push_edited(&mut self, piece: &[u8], mut edit: impl FnMut(Range<usize>, &[u8])) {
        let mut at = self.push_start(piece, &mut edit);
        while let Some(&byte) = piece.get(at) {
            let letters = leading_letters(&piece[at..]);
            if letters > 0 {
                self.add(&piece[at..at + letters]);
                at += letters;
                continue;
            }
            let range = at..at + 1;
            match byte {
                b'-' => self.replace(range, b"+", &mut edit),
                b'_' => self.replace(range, b"/", &mut edit),
                b'=' => {
                    self.padding += 1;
                    if self.padding > self.owed_padding() {
                        edit(range, b"");
                    }
                }
                byte if byte.is_ascii_whitespace() => edit(range, b""),
                _ => self.has_strangers = true,
            }
            at += 1;
        }
    }

    /// Adds the letters that the next piece begins with, as far as they are whole blocks of 256, and
    /// returns their number. A scanner need not look for the end of the text within them.
    #[must_use]
    pub fn push_letters(&mut self, piece: &[u8]) -> usize {
        if let Start::Scheme(held) = &self.start
            && held.is_empty()
            && piece.len() >= SCHEME.len()
            && !piece[..SCHEME.len()].eq_ignore_ascii_case(SCHEME)
        {
            self.start = Start::Plain;
        }
        if !matches!(self.start, Start::Plain | Start::Content) {
            return 0;
        }
        let (blocks, _) = piece.as_chunks();
        let length = Arch::new().dispatch(|| whole_blocks(blocks)) * BLOCK;
        self.add(&piece[..length]);
        length
    }

    /// Returns true if there was no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let has_begun = match &self.start {
            Start::Scheme(held) => !held.is_empty(),
            Start::MediaType(_) | Start::Content => true,
            Start::Plain => false,
        };
        !has_begun && self.letters == 0 && self.padding == 0 && !self.has_strangers
    }

    /// Returns the padding that the complete text lacks.
    #[must_use]
    pub fn missing_padding(&self) -> &'static str {
        match self.owed_padding().saturating_sub(self.padding) {
            0 => "",
            1 => "=",
            _ => "==",
        }
    }

    /// Judges the complete text.
    ///
    /// # Errors
    /// If it is not the base64 of a picture.
    pub fn finish(&self) -> Result<(), ReadError> {
        if self.has_strangers || self.letters % 4 == 1 {
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

    /// Reads the scheme and media type of a data URL, which are removed. Returns the position
    /// behind them.
    fn push_start(&mut self, piece: &[u8], edit: &mut impl FnMut(Range<usize>, &[u8])) -> usize {
        for (at, &byte) in piece.iter().enumerate() {
            match &mut self.start {
                Start::Plain | Start::Content => return at,
                Start::Scheme(held) if held.is_empty() && byte.is_ascii_whitespace() => {
                    edit(at..at + 1, b"");
                }
                Start::Scheme(held) if byte.eq_ignore_ascii_case(&SCHEME[held.len()]) => {
                    held.push(byte);
                    if held.len() == SCHEME.len() {
                        self.start = Start::MediaType(Vec::new());
                    }
                    edit(at..at + 1, b"");
                }
                Start::Scheme(held) => {
                    let held = std::mem::take(held);
                    self.start = Start::Plain;
                    if !held.is_empty() {
                        self.replace(at..at, &held, edit);
                    }
                    return at;
                }
                Start::MediaType(found) if byte == b',' => {
                    let coding = found.rsplit(|byte| *byte == b';').next();
                    let is_base64 = coding.is_some_and(|it| it.eq_ignore_ascii_case(b"base64"));
                    self.has_strangers |= !is_base64;
                    self.start = Start::Content;
                    edit(at..at + 1, b"");
                }
                Start::MediaType(found) => {
                    self.has_strangers |= found.len() == MAX_MEDIA_TYPE;
                    found.push(byte);
                    found.truncate(MAX_MEDIA_TYPE);
                    edit(at..at + 1, b"");
                }
            }
        }
        piece.len()
    }

    /// Adds letters in place of a range.
    fn replace(
        &mut self,
        range: Range<usize>,
        letters: &[u8],
        edit: &mut impl FnMut(Range<usize>, &[u8]),
    ) {
        self.add(letters);
        edit(range, letters);
    }

    /// Adds letters.
    fn add(&mut self, letters: &[u8]) {
        if letters.is_empty() {
            return;
        }
        self.has_strangers |= self.padding > 0;
        self.letters += letters.len() as u64;
        let missing = (HEAD_LETTERS - self.head.len()).min(letters.len());
        self.head.extend_from_slice(&letters[..missing]);
        let last = &letters[letters.len().saturating_sub(TAIL_LETTERS)..];
        let kept = self.tail.len().min(TAIL_LETTERS - last.len());
        self.tail.drain(..self.tail.len() - kept);
        self.tail.extend_from_slice(last);
    }

    /// The number of padding characters after these letters.
    fn owed_padding(&self) -> u64 {
        match self.letters % 4 {
            2 => 2,
            3 => 1,
            _ => 0,
        }
    }
}

/// Returns the number of letters that a text begins with.
fn leading_letters(text: &[u8]) -> usize {
    let (blocks, _) = text.as_chunks();
    let whole = match blocks.is_empty() {
        true => 0,
        false => Arch::new().dispatch(|| whole_blocks(blocks)) * BLOCK,
    };
    let rest = &text[whole..];
    let letters = rest.iter().position(|byte| distance(*byte) != 0);
    whole + letters.unwrap_or(rest.len())
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
/// append. `size` is the size of the file.
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
/// The scheme of data URLs, and the longest media type of one that is accepted.
const SCHEME: &[u8; 5] = b"data:";
const MAX_MEDIA_TYPE: usize = 256;
/// The number of letters that are checked at once.
const BLOCK: usize = 256;
/// The number of bytes that identify the format of a file.
const HEAD: usize = 12;
const HEAD_LETTERS: usize = HEAD / 3 * 4;
/// The number of letters at the end that are looked at.
const TAIL_LETTERS: usize = 64;
