//! Splits the input into lines and buffers the lines of the open block.
//!
//! A block is the run of lines between two blank lines: a potential event. As long as it lies
//! within one chunk nothing is copied. If the chunk ends first, the part of the block read so far
//! is *carried*: copied into a separate buffer, so that the chunk can be released. Each byte is
//! searched for a line end once and carried at most once.
//!
//! ```text
//!   chunk   …data: a\n\n event: x\ndata: {"te          nothing carried: the block is chunk[start..at]
//!                        │start     │line    at┘
//!
//!   carry   event: x\ndata: {"te                       carried: the block is the carry;
//!   chunk   xt":"hi"}\n\ndata: …                       chunk[start..at] joins it when its line ends
//!           │start     at┘
//! ```

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use memchr::{memchr2, memrchr};

use super::Limits;
use super::event::utf8;
use super::head::Head;
use crate::error::DecodeError;

/// Line splitter and buffer of the open block. Positions are relative to the first byte of the
/// block.
#[derive(Default)]
pub(crate) struct Lines {
    limits: Limits,
    state: State,
    /// Chunks fed but not yet started; none is empty.
    queue: VecDeque<Bytes>,
    chunk: Bytes,
    /// Position up to which `chunk` has been searched for line ends.
    at: usize,
    /// Position in `chunk` where the block starts, or continues after the carried part.
    start: usize,
    carry: Vec<u8>,
    /// Capacity in bytes that a long block is likely to need: the last length and some more.
    usual: usize,
    /// Start of the open line within the block.
    line: usize,
    /// The beginning of the last plain block.
    head: Head,
    /// True while the open block is carried, and has begun with the head or is a part of it.
    is_plain: bool,
}

/// The special meaning that the next byte may have.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// The first line may start with a byte order mark.
    #[default]
    FirstLine,
    /// The previous chunk ended in CR: an LF belongs to that line end.
    AfterCr,
    Within,
}

/// Result of [`Lines::plain_block`].
pub(crate) enum Plain {
    /// A complete plain block with the ranges of its values.
    Complete {
        name: Range<usize>,
        data: Range<usize>,
    },
    /// The chunk ends within a block that is plain so far: [`Lines::turn`] is to be called.
    Partial { name: Range<usize> },
    /// Not a plain block, or too little input to decide; nothing was consumed.
    Other,
}

impl Lines {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    #[inline]
    pub(crate) fn feed(&mut self, input: Bytes) {
        let is_done = self.start == self.chunk.len() && self.queue.is_empty();
        if is_done && self.state != State::AfterCr {
            // Nothing is left of the previous chunk, so this one can bypass the queue.
            (self.chunk, self.start, self.at) = (input, 0, 0);
        } else if !input.is_empty() {
            self.queue.push_back(input);
        }
    }

    /// Returns the next complete line as a range of [`Lines::block`], without its end, or `None` if
    /// more input is needed.
    pub(crate) fn next(&mut self) -> Result<Option<Range<usize>>, DecodeError> {
        loop {
            let rest = &self.chunk[self.at..];
            // Fast path for the blank line that ends each event.
            let end = if rest.first() == Some(&b'\n') {
                Some(0)
            } else {
                memchr2(b'\n', b'\r', rest)
            };
            if let Some(length) = end {
                return self.end_line(self.at + length).map(Some);
            }
            if !self.turn()? {
                return Ok(None);
            }
        }
    }

    /// Carries the rest of the chunk, and turns to the next one. Returns false after the last
    /// chunk.
    #[inline]
    pub(crate) fn turn(&mut self) -> Result<bool, DecodeError> {
        self.end_chunk()?;
        Ok(self.next_chunk())
    }

    /// Consumes the next block at once if it is plain. Equivalent to reading it line by line with
    /// [`Lines::next`].
    #[inline]
    pub(crate) fn plain_block(&mut self) -> Plain {
        if !std::mem::take(&mut self.is_plain) && !self.is_between() {
            return Plain::Other;
        }
        let carried = self.carry.len();
        let rest = &self.chunk[self.at..];
        if carried < self.head.len() {
            let head = &self.head.bytes()[carried..];
            if !rest.starts_with(head) {
                if head.starts_with(rest) {
                    return self.partial();
                }
                if carried > 0 || !self.head.learn(rest, self.limits.line) {
                    return Plain::Other;
                }
            }
        }
        let data = self.head.len().saturating_sub(carried);
        let Some(length) = memchr2(b'\n', b'\r', &rest[data..]) else {
            return self.partial();
        };
        let end = carried + data + length;
        if !self.is_within(end) || !rest[data + length..].starts_with(b"\n\n") {
            return Plain::Other;
        }
        self.at += data + length + 2;
        if carried > 0 {
            self.carry_to(self.at);
        }
        Plain::Complete {
            name: self.head.name(),
            data: self.head.len()..end,
        }
    }

    /// Consumes the next block as [`Lines::plain_block`] does, if the chunk has all of it. Returns
    /// the ranges of the name and the data.
    #[inline]
    pub(crate) fn next_plain(&mut self) -> Option<(Range<usize>, Range<usize>)> {
        if !self.is_between() {
            return None;
        }
        let block = &self.chunk[self.at..];
        if !block.starts_with(self.head.bytes()) && !self.head.learn(block, self.limits.line) {
            return None;
        }
        let head = self.head.len();
        let end = head + memchr2(b'\n', b'\r', &block[head..])?;
        if !self.is_within(end) || !block[end..].starts_with(b"\n\n") {
            return None;
        }
        self.at += end + 2;
        Some((self.head.name(), head..end))
    }

    /// Expects that further blocks begin as this one does.
    pub(crate) fn learn(&mut self) {
        let block = match self.carry.is_empty() {
            true => &self.chunk[self.start..self.at],
            false => self.carry.as_slice(),
        };
        if !block.starts_with(self.head.bytes()) {
            self.head.learn(block, self.limits.line);
        }
    }

    /// Returns true if nothing of a block has been read, and the next byte has no special meaning.
    #[inline]
    fn is_between(&self) -> bool {
        self.state == State::Within && self.carry.is_empty() && self.start == self.at
    }

    /// Notes that the chunk ends within a block that is plain so far.
    #[inline]
    fn partial(&mut self) -> Plain {
        self.at = self.chunk.len();
        self.is_plain = true;
        // The name counts once its line is complete.
        let (name, line) = match self.position(self.at) < self.head.data_line() {
            true => (0..0, 0),
            false => (self.head.name(), self.head.data_line()),
        };
        self.line = line;
        Plain::Partial { name }
    }

    /// Returns true if the `data` line of a plain block that ends at `end` keeps the limits.
    #[inline]
    fn is_within(&self, end: usize) -> bool {
        let length = end - self.head.data_line();
        length <= self.limits.line && end < self.limits.event
    }

    /// Returns true if at least `length` bytes of the last chunk are unread.
    #[inline]
    pub(crate) fn has_left(&self, length: usize) -> bool {
        self.queue.is_empty() && self.chunk.len() - self.at >= length
    }

    /// Releases the chunk if it is the last one and has been read. Returns true if nothing is left
    /// to read then.
    #[inline]
    pub(crate) fn end_read(&mut self) -> bool {
        let is_read = self.start == self.chunk.len() && self.queue.is_empty();
        if is_read {
            (self.chunk, self.start, self.at) = (Bytes::new(), 0, 0);
        }
        is_read
    }

    /// Returns the unread rest of the chunk and its position.
    pub(crate) fn rest(&self) -> (Bytes, usize) {
        (self.chunk.slice(self.at..), self.at)
    }

    /// Returns the position in the chunk where the block starts.
    #[inline]
    pub(crate) fn block_start(&self) -> usize {
        self.start
    }

    /// Returns the lines of the open block read so far.
    #[inline]
    pub(crate) fn block(&self) -> &[u8] {
        if self.carry.is_empty() {
            &self.chunk[self.start..self.at]
        } else {
            &self.carry
        }
    }

    /// Returns the block as owned bytes: a slice of the chunk, or a copy of the carried bytes.
    pub(crate) fn shared_block(&self) -> Bytes {
        match self.carry.is_empty() {
            true => self.chunk.slice(self.start..self.at),
            false => Bytes::copy_from_slice(&self.carry),
        }
    }

    /// Ends the block and discards it.
    #[inline]
    pub(crate) fn skip(&mut self) {
        self.carry.clear();
        if self.carry.capacity() > ROOM {
            self.carry.shrink_to(ROOM);
        }
        self.start = self.at;
        self.line = 0;
    }

    /// Makes a long block that is carried a chunk, which is shared without a copy.
    #[inline]
    pub(crate) fn share(&mut self) {
        if self.carry.len() > ROOM {
            self.share_carry();
        }
    }

    fn share_carry(&mut self) {
        let rest = self.chunk.split_off(self.at);
        if !rest.is_empty() {
            self.queue.push_front(rest);
        }
        self.usual = self.carry.len() + self.carry.len() / 8;
        if self.carry.capacity() > 2 * self.carry.len() {
            self.carry.shrink_to_fit();
        }
        self.chunk = std::mem::take(&mut self.carry).into();
        (self.start, self.at) = (0, self.chunk.len());
    }

    /// Returns the number of bytes held: unread input plus carried bytes.
    pub(crate) fn buffered(&self) -> usize {
        let unread =
            self.chunk.len() - self.start + self.queue.iter().map(Bytes::len).sum::<usize>();
        unread + self.carry.len()
    }

    /// Returns true if the input ends inside a block that is more than comments, or has not been
    /// read completely.
    pub(crate) fn is_open(&self) -> bool {
        if self.at < self.chunk.len() || !self.queue.is_empty() {
            return true;
        }
        let mut open = self.carry.as_slice();
        if self.state == State::FirstLine {
            open = open.strip_prefix(BOM).unwrap_or(open);
        }
        // Comments before the first field are not part of a block, so only an incomplete one can be
        // here.
        !open.is_empty() && !open.starts_with(b":")
    }

    /// Ends the open line at the line end `chunk[index]`.
    #[inline]
    fn end_line(&mut self, index: usize) -> Result<Range<usize>, DecodeError> {
        let mut line = self.line..self.position(index);
        self.check(line.end)?;
        self.at = index + 1;
        let state = std::mem::replace(&mut self.state, State::Within);
        if self.chunk[index] == b'\r' {
            match self.chunk.get(self.at) {
                Some(b'\n') => self.at += 1,
                Some(_) => {}
                None => self.state = State::AfterCr,
            }
        }
        if !self.carry.is_empty() {
            self.carry_to(self.at);
        }
        if state == State::FirstLine {
            line.end -= self.drop_bom();
        }
        self.line = self.position(self.at);
        Ok(line)
    }

    /// Carries the chunk's part of the block and releases the chunk.
    #[inline]
    fn end_chunk(&mut self) -> Result<(), DecodeError> {
        self.check(self.position(self.chunk.len()))?;
        self.carry_to(self.chunk.len());
        (self.chunk, self.start, self.at) = (Bytes::new(), 0, 0);
        Ok(())
    }

    #[inline]
    fn next_chunk(&mut self) -> bool {
        let Some(chunk) = self.queue.pop_front() else {
            return false;
        };
        self.chunk = chunk;
        if self.state == State::AfterCr {
            self.state = State::Within;
            self.at = usize::from(self.chunk[0] == b'\n');
            // The LF stays with its line, but is dropped if it follows the end of a block.
            if self.carry.is_empty() {
                self.start = self.at;
            }
            self.line = self.position(self.at);
        }
        true
    }

    /// Returns the position of `chunk[index]` within the block.
    #[inline]
    fn position(&self, index: usize) -> usize {
        self.carry.len() + index - self.start
    }

    /// Checks the limits for an open line that reaches `end`. If both are exceeded, the one reached
    /// first in the stream is reported, independent of chunk boundaries.
    #[inline]
    fn check(&self, end: usize) -> Result<(), DecodeError> {
        let Limits { line, event } = self.limits;
        let line_end = self.line.saturating_add(line);
        if end <= line_end.min(event) {
            Ok(())
        } else if line_end <= event {
            Err(DecodeError::LineTooLong { limit: line })
        } else {
            Err(DecodeError::EventTooLong { limit: event })
        }
    }

    /// Copies `chunk[start..end]` to the carry.
    #[inline]
    fn carry_to(&mut self, end: usize) {
        let needed = self.position(end);
        if needed > self.carry.capacity() {
            self.grow(needed);
        }
        self.carry.extend_from_slice(&self.chunk[self.start..end]);
        self.start = end;
    }

    /// Makes room for `needed` bytes in the carry.
    #[cold]
    fn grow(&mut self, needed: usize) {
        let usual = match needed {
            0..=ROOM => ROOM,
            _ if needed <= MOST_ROOM => self.usual.min(MOST_ROOM),
            _ => self.usual,
        };
        // Doubling keeps the cost linear. Growth stops at the event limit to bound memory.
        let room = (2 * self.carry.capacity())
            .max(usual)
            .min(self.limits.event)
            .max(needed);
        self.carry.reserve_exact(room - self.carry.len());
    }

    /// Removes a byte order mark at the start of the block. Returns its length, or 0 for a block
    /// without it.
    fn drop_bom(&mut self) -> usize {
        if !self.block().starts_with(BOM) {
            return 0;
        }
        if self.carry.is_empty() {
            self.start += BOM.len();
        } else {
            self.carry.drain(..BOM.len());
        }
        BOM.len()
    }
}

/// Returns the complete lines at the start of a chunk that are UTF-8.
pub(crate) fn whole_lines(chunk: &[u8]) -> &str {
    let lines = &chunk[..memrchr(b'\n', chunk).map_or(0, |end| end + 1)];
    utf8(lines).unwrap_or_else(|| match str::from_utf8(lines) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&lines[..error.valid_up_to()]).unwrap_or_default(),
    })
}

/// The UTF-8 byte order mark, which may start a stream.
pub(crate) const BOM: &[u8] = "\u{feff}".as_bytes();

/// Capacity in bytes that the carry keeps between blocks.
const ROOM: usize = 4096;

/// Maximum capacity in bytes that the carry takes at once when a block is longer than [`ROOM`].
const MOST_ROOM: usize = 64 << 10;
