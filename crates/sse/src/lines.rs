//! Input cut into lines, and the lines of the open block held together.
//!
//! A block is what lies between two blank lines: an event in the making. While it lies in one chunk nothing is
//! copied. When the chunk ends first, what came of the block is *carried*: copied into a buffer of its own, so that
//! the chunk is released. Each byte is searched for a line end once, and carried at most once.
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
use memchr::memchr2;

use crate::{DecodeError, Limits};

/// The lines of the input, and the bytes of the open block. Positions are counted from the block's first byte.
#[derive(Default)]
pub(crate) struct Lines {
    limits: Limits,
    place: Place,
    /// Fed and not begun; none is empty.
    queue: VecDeque<Bytes>,
    chunk: Bytes,
    /// How far `chunk` has been searched for line ends.
    at: usize,
    /// Where in `chunk` the block goes on after what is carried.
    start: usize,
    carry: Vec<u8>,
    /// Where in the block the open line begins.
    line: usize,
}

/// What the next byte may be besides a part of the open line.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// A byte order mark may lead the first line.
    #[default]
    FirstLine,
    /// The chunk before ended in CR: an LF belongs to that line end.
    AfterCr,
    Within,
}

/// What [`Lines::plain_block`] found. A plain block lies in one chunk and is what model APIs send: at most one `event`
/// line and then one `data` line, each with a space after its colon and LF as its end.
pub(crate) enum Plain {
    /// The whole of one, and where the values are.
    Whole { name: Range<usize>, data: Range<usize> },
    /// The chunk ends within the `data` line.
    Open { name: Range<usize> },
    /// Something else, or too little to say; nothing was taken.
    No,
}

impl Lines {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    #[inline]
    pub(crate) fn feed(&mut self, input: Bytes) {
        let is_done = self.start == self.chunk.len() && self.queue.is_empty();
        if is_done && self.place != Place::AfterCr {
            // Nothing is left of the chunk before, so that this one need not stand in line.
            (self.chunk, self.start, self.at) = (input, 0, 0);
        } else if !input.is_empty() {
            self.queue.push_back(input);
        }
    }

    /// The next whole line as a range of [`Lines::block`], without its end. `None` when the input does not hold one.
    pub(crate) fn next(&mut self) -> Result<Option<Range<usize>>, DecodeError> {
        loop {
            let rest = &self.chunk[self.at..];
            // Each event ends in a blank line: those are not searched for.
            let end = if rest.first() == Some(&b'\n') { Some(0) } else { memchr2(b'\n', b'\r', rest) };
            if let Some(length) = end {
                return self.end_line(self.at + length).map(Some);
            }
            self.end_chunk()?;
            if !self.next_chunk() {
                return Ok(None);
            }
        }
    }

    /// Takes the next block as a whole if it is plain. [`Lines::next`] would find the same, line by line.
    pub(crate) fn plain_block(&mut self) -> Plain {
        if self.place != Place::Within || !self.carry.is_empty() || self.start != self.at {
            return Plain::No;
        }
        let block = &self.chunk[self.start..];
        let (mut name, mut line) = (0..0, 0);
        if block.starts_with(b"event: ") {
            match memchr2(b'\n', b'\r', block) {
                Some(end) if block[end] == b'\n' => (name, line) = (7..end, end + 1),
                _ => return Plain::No,
            }
        }
        if !block[line..].starts_with(b"data: ") || name.end > self.limits.line {
            return Plain::No;
        }
        let Some(length) = memchr2(b'\n', b'\r', &block[line..]) else {
            (self.line, self.at) = (line, self.chunk.len());
            return Plain::Open { name };
        };
        let end = line + length;
        let is_within = length <= self.limits.line && end < self.limits.event;
        if !is_within || !block[end..].starts_with(b"\n\n") {
            return Plain::No;
        }
        self.at = self.start + end + 2;
        Plain::Whole { name, data: line + 6..end }
    }

    /// The block as far as its lines have been read.
    #[inline]
    pub(crate) fn block(&self) -> &[u8] {
        if self.carry.is_empty() { &self.chunk[self.start..self.at] } else { &self.carry }
    }

    /// The block in memory of its own: a slice of the chunk, or a copy of what was carried.
    pub(crate) fn shared_block(&self) -> Bytes {
        match self.carry.is_empty() {
            true => self.chunk.slice(self.start..self.at),
            false => Bytes::copy_from_slice(&self.carry),
        }
    }

    /// Ends the block and forgets it.
    #[inline]
    pub(crate) fn skip(&mut self) {
        self.carry.clear();
        if self.carry.capacity() > ROOM {
            self.carry.shrink_to(ROOM);
        }
        self.start = self.at;
        self.line = 0;
    }

    /// How many bytes are held: input that was not read yet, and what is carried.
    pub(crate) fn held(&self) -> usize {
        let unread = self.chunk.len() - self.start + self.queue.iter().map(Bytes::len).sum::<usize>();
        unread + self.carry.len()
    }

    /// Whether the input, all of it read, ends in the midst of a block that is more than comments.
    pub(crate) fn is_open(&self) -> bool {
        if self.at < self.chunk.len() || !self.queue.is_empty() {
            return true;
        }
        let mut open = self.carry.as_slice();
        if self.place == Place::FirstLine {
            open = open.strip_prefix(BOM).unwrap_or(open);
        }
        // Comments before the first field are no part of a block, so only an unfinished one can be here.
        !open.is_empty() && !open.starts_with(b":")
    }

    /// Ends the open line, whose end is `chunk[index]`.
    #[inline]
    fn end_line(&mut self, index: usize) -> Result<Range<usize>, DecodeError> {
        let mut line = self.line..self.position(index);
        self.check(line.end)?;
        self.at = index + 1;
        let place = std::mem::replace(&mut self.place, Place::Within);
        if self.chunk[index] == b'\r' {
            match self.chunk.get(self.at) {
                Some(b'\n') => self.at += 1,
                Some(_) => {}
                None => self.place = Place::AfterCr,
            }
        }
        if !self.carry.is_empty() {
            self.carry_to(self.at);
        }
        if place == Place::FirstLine {
            line.end -= self.drop_bom();
        }
        self.line = self.position(self.at);
        Ok(line)
    }

    /// Carries what the chunk holds of the block, and lets go of the chunk.
    #[inline]
    fn end_chunk(&mut self) -> Result<(), DecodeError> {
        self.check(self.position(self.chunk.len()))?;
        self.carry_to(self.chunk.len());
        (self.chunk, self.start, self.at) = (Bytes::new(), 0, 0);
        Ok(())
    }

    #[inline]
    fn next_chunk(&mut self) -> bool {
        let Some(chunk) = self.queue.pop_front() else { return false };
        self.chunk = chunk;
        if self.place == Place::AfterCr {
            self.place = Place::Within;
            self.at = usize::from(self.chunk[0] == b'\n');
            // The LF stays with its line. After the end of a block it is dropped.
            if self.carry.is_empty() {
                self.start = self.at;
            }
            self.line = self.position(self.at);
        }
        true
    }

    /// The position in the block of `chunk[index]`.
    #[inline]
    fn position(&self, index: usize) -> usize {
        self.carry.len() + index - self.start
    }

    /// Whether the open line may reach `end`. Of two limits passed, the one that comes first in the stream is told,
    /// however the input was cut.
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

    /// Carries `chunk[start..end]`.
    #[inline]
    fn carry_to(&mut self, end: usize) {
        let more = &self.chunk[self.start..end];
        let needed = self.carry.len() + more.len();
        if needed > self.carry.capacity() {
            // Doubling keeps the cost linear. It stops at the limit, so that memory does too.
            let room = (2 * self.carry.capacity()).max(ROOM).min(self.limits.event).max(needed);
            self.carry.reserve_exact(room - self.carry.len());
        }
        self.carry.extend_from_slice(more);
        self.start = end;
    }

    /// Removes the byte order mark that the block begins with, and tells its length: 0 when there is none.
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

/// The byte order mark, which may lead a stream.
pub(crate) const BOM: &[u8] = "\u{feff}".as_bytes();

/// Bytes that the carry keeps room for between blocks.
const ROOM: usize = 4096;
