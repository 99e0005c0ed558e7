//! Bytes to events: the parsing and interpretation of an event stream (WHATWG HTML §9.2.6), without I/O.
//!
//! ```text
//!                  comment, blank line
//!                      ┌────┐
//!                      ▼    │  field       ┌──────┐ field, comment
//!   ── first line ──► Between ──────────► Within ◄──┘
//!   (a BOM may lead)   ▲                    │
//!                      └────────────────────┘
//!                 blank line: an event, if data was among the fields
//!
//!   any of them ── a line or an event over its limit ──► Failed: input is ignored, there are no more events
//!   any of them ── finish ──► Ok between events, Truncated within one or failed
//! ```

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use memchr::memchr;

use crate::event::Data;
use crate::line::{self, Field};
use crate::lines::{BOM, Lines, Plain};
use crate::{DecodeError, Event, Truncated};

/// Decodes one event stream: [`feed`](Self::feed) it bytes, [`poll`](Self::poll) it for events, and
/// [`finish`](Self::finish) it at the end.
///
/// Events are decoded one at a time, when they are asked for, and lent: each lies in the decoder's memory until the
/// next call. How the bytes are cut into chunks changes nothing but whether an event has to be put together first. The
/// cost is linear in the bytes, also at one byte a chunk.
///
/// # Memory
/// Once `poll` returned `None`, the decoder holds a copy of the unfinished event and of no more: at most
/// [`Limits::event`] bytes and those of a line end; no chunk is kept alive. Besides it keeps the last event id.
pub struct Decoder {
    pub(crate) lines: Lines,
    pub(crate) fields: Fields,
    last_event_id: String,
    retry: Option<Duration>,
    comments: u64,
    /// The open block is whole: the event that was lent last.
    lent: bool,
    failed: bool,
}

/// How much of a stream may be without an end. What is over a limit fails, whether it would be an event or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest line, in bytes, its end not counted. Default 16 MiB: a large picture as base64.
    pub line: usize,
    /// The longest event, in bytes: its lines and their ends, that of the last line not counted. Default 16 MiB.
    pub event: usize,
}

/// What the lines of the open block have set, as ranges of the block.
#[derive(Default)]
pub(crate) struct Fields {
    pub(crate) name: Range<usize>,
    pub(crate) data: Data,
    id: Option<Range<usize>>,
}

impl Decoder {
    /// A decoder with the default [`Limits`].
    #[must_use]
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    /// A decoder with limits of your own.
    #[must_use]
    pub fn with_limits(limits: Limits) -> Self {
        Self {
            lines: Lines::new(limits),
            fields: Fields::default(),
            last_event_id: String::new(),
            retry: None,
            comments: 0,
            lent: false,
            failed: false,
        }
    }

    /// Takes the next bytes of the stream. They are looked at when events are asked for.
    #[inline]
    pub fn feed(&mut self, input: Bytes) {
        if !self.failed {
            self.lines.feed(input);
        }
    }

    /// The next event. `None` when more input is needed, and for ever after an error.
    ///
    /// # Errors
    /// When a line or an event is longer than the [`Limits`] allow. The decoder ends with it: the stream cannot be
    /// read further, since nobody knows where the next event begins.
    #[must_use = "an event that is not looked at is lost"]
    #[inline]
    pub fn poll(&mut self) -> Option<Result<Event<'_>, DecodeError>> {
        self.take_back();
        match self.lines.plain_block() {
            Plain::Whole { name, data } => {
                self.fields = Fields { name, data: Data::One(data), id: None };
                return Some(Ok(self.lend()));
            }
            Plain::Open { name } => self.fields.name = name,
            Plain::No => {}
        }
        self.poll_lines()
    }

    /// [`Decoder::poll`] line by line.
    fn poll_lines(&mut self) -> Option<Result<Event<'_>, DecodeError>> {
        loop {
            match self.lines.next() {
                Ok(Some(line)) => {
                    if self.read(line) {
                        return Some(Ok(self.lend()));
                    }
                }
                Ok(None) => return None,
                Err(error) => {
                    self.fail();
                    return Some(Err(error));
                }
            }
        }
    }

    /// Ends the stream. Call it after [`Decoder::poll`] returned `None`: input that was not polled counts as unread.
    ///
    /// # Errors
    /// [`Truncated`] when the stream ended inside an event, even if only the blank line at its end is missing, and
    /// when the decoder had failed. Comments and blank lines may come last.
    pub fn finish(mut self) -> Result<(), Truncated> {
        self.take_back();
        if self.failed || self.lines.is_open() { Err(Truncated) } else { Ok(()) }
    }

    /// The id that the stream gave last, as of the event that [`Decoder::poll`] returned last; empty at first.
    /// A client that comes back sends it as `Last-Event-ID`.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// How long the stream asks clients to wait before they come back. Whole milliseconds; the last value read counts.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// How many comment lines have been read: a sign of life from a server that has no events.
    #[must_use]
    pub fn comments(&self) -> u64 {
        self.comments
    }

    /// How many bytes of input the decoder holds: those not polled yet, and those of the event that was lent last or
    /// is unfinished.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.lines.held()
    }

    /// Takes in the line of the open block at `line`; whether it ends an event.
    #[inline]
    fn read(&mut self, line: Range<usize>) -> bool {
        if line.is_empty() {
            return self.ends_event();
        }
        let block = self.lines.block();
        let (field, value) = line::field(&block[line.clone()]);
        let value = line.start + value..line.end;
        match field {
            Field::Data => self.fields.data.push(value),
            Field::Event => self.fields.name = value,
            Field::Id if memchr(0, &block[value.clone()]).is_none() => self.fields.id = Some(value),
            Field::Retry => self.retry = milliseconds(&block[value]).or(self.retry),
            Field::Comment => self.comment(line.start),
            // Ahead of all fields it sets none. Passed on as the first of a stream, its beginning would be taken away.
            Field::Unknown if line.start == 0 && block.starts_with(BOM) => self.lines.skip(),
            Field::Id | Field::Unknown => {}
        }
        false
    }

    /// The block is whole; whether it is an event: if it has data.
    #[inline]
    fn ends_event(&mut self) -> bool {
        if let Some(id) = self.fields.id.take() {
            self.last_event_id = String::from_utf8_lossy(&self.lines.block()[id]).into_owned();
        }
        let has_data = self.fields.data != Data::None;
        if !has_data {
            self.fields = Fields::default();
            self.lines.skip();
        }
        has_data
    }

    #[inline]
    fn lend(&mut self) -> Event<'_> {
        self.lent = true;
        Event::new(self)
    }

    /// Ends the loan of the event that was lent last.
    #[inline]
    fn take_back(&mut self) {
        if std::mem::take(&mut self.lent) {
            self.fields = Fields::default();
            self.lines.skip();
        }
    }

    fn comment(&mut self, start: usize) {
        self.comments += 1;
        // Ahead of all fields it belongs to no event. Kept, endless signs of life would add up to one too long.
        if start == 0 {
            self.lines.skip();
        }
    }

    /// Lets go of everything read and unread.
    fn fail(&mut self) {
        self.failed = true;
        self.lines = Lines::default();
        self.fields = Fields::default();
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

/// Tells sizes and no contents: streams carry what people said.
impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("buffered", &self.buffered())
            .field("comments", &self.comments)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { line: 16 << 20, event: 16 << 20 }
    }
}

/// The value of a `retry` field: ASCII digits only. More than fit into 64 bits are for ever all the same.
fn milliseconds(value: &[u8]) -> Option<Duration> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = value.iter().map(|digit| u64::from(digit - b'0'));
    let milliseconds = digits.fold(0, |sum: u64, digit| sum.saturating_mul(10).saturating_add(digit));
    Some(Duration::from_millis(milliseconds))
}
