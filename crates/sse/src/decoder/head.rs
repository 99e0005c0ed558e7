//! The beginning of a plain block.
//!
//! A plain block has the form that model APIs send: at most one `event` line followed by one `data`
//! line, each with a space after its colon and ending in LF. Most blocks of a stream begin as the
//! one before did, so one comparison finds their name and the start of their data.

use std::ops::Range;

use memchr::memchr2;

/// The bytes of a plain block before its data: ASCII, and at most [`Head::MOST`].
pub(super) struct Head(Vec<u8>);

impl Head {
    /// Maximum length: no API has names of events that are longer.
    const MOST: usize = 128;

    /// Returns the bytes.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the place of the name, which is empty if there is no `event` line.
    #[inline]
    pub(super) fn name(&self) -> Range<usize> {
        match self.data_line() {
            0 => 0..0,
            line => EVENT.len()..line - 1,
        }
    }

    /// Returns where the `data` line starts.
    #[inline]
    pub(super) fn data_line(&self) -> usize {
        self.0.len() - DATA.len()
    }

    /// Takes over the head of `block` if the block is plain and the head has at most `limit` bytes.
    /// Returns false otherwise.
    pub(super) fn learn(&mut self, block: &[u8], limit: usize) -> bool {
        let is_usual = |head: &&[u8]| head.len() <= limit.min(Self::MOST) && head.is_ascii();
        let Some(head) = plain_head(block).filter(is_usual) else {
            return false;
        };
        self.0.clear();
        self.0.extend_from_slice(head);
        true
    }
}

impl Default for Head {
    fn default() -> Self {
        Self(DATA.to_vec())
    }
}

fn plain_head(block: &[u8]) -> Option<&[u8]> {
    let mut line = 0;
    if block.starts_with(EVENT) {
        let end = memchr2(b'\n', b'\r', block).filter(|end| block[*end] == b'\n')?;
        line = end + 1;
    }
    let is_plain = block[line..].starts_with(DATA);
    is_plain.then(|| &block[..line + DATA.len()])
}

const EVENT: &[u8] = b"event: ";
const DATA: &[u8] = b"data: ";
