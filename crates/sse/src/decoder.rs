//! Sans-I/O decoder for event streams: bytes in, events out (WHATWG HTML §9.2.6).
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
//!   any state ── a line or an event over its limit ──► Failed: input is ignored, no more events
//!   any state ── finish ──► Ok if Between, Truncated if Within or Failed
//! ```

mod event;
mod head;
mod lines;

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::time::Duration;

use bytes::Bytes;
use memchr::memchr;

pub use self::event::Event;
use self::event::{Data, utf8};
use self::lines::{BOM, Lines, Plain, whole_lines};
use crate::error::{DecodeError, Truncated};
use crate::line::{self, Field};

/// Decodes one event stream: [`feed`](Self::feed) it bytes, [`poll`](Self::poll) it for events, and
/// [`finish`](Self::finish) it at the end.
///
/// Events are decoded lazily, one per call to `poll`, and borrow from the decoder's memory until
/// the next call. Chunk boundaries do not affect the result, only whether an event must first be
/// assembled. The cost is linear in the number of bytes, even with one byte per chunk.
///
/// # Memory
/// Once `poll` has returned `None`, the decoder holds only a copy of the incomplete event: at most
/// [`Limits::event`] bytes plus a line end. It keeps no chunk alive. It also stores the last event
/// id, and at most 128 bytes of how an event began.
#[derive(Default)]
pub struct Decoder {
    pub(crate) lines: Lines,
    pub(crate) fields: Fields,
    last_event_id: String,
    retry: Option<Duration>,
    comments: u64,
    /// True while the open block is complete and lent out as the current event.
    lent: bool,
    failed: bool,
}

/// Limits on the size of lines and events. Input over a limit fails even if it would not have
/// produced an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of a line in bytes, excluding its line end. Defaults to 16 MiB, which fits a
    /// large base64 image.
    pub line: usize,
    /// Maximum length of an event in bytes: its lines and line ends, excluding the last line end.
    /// Defaults to 16 MiB.
    pub event: usize,
}

/// Field values set by the lines of the open block, as byte ranges of the block.
#[derive(Default)]
pub(crate) struct Fields {
    pub(crate) name: Range<usize>,
    pub(crate) data: Data,
    id: Option<Range<usize>>,
}

impl Decoder {
    /// Creates a decoder with the default [`Limits`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a decoder with the given limits.
    #[must_use]
    pub fn with_limits(limits: Limits) -> Self {
        Self {
            lines: Lines::new(limits),
            ..Self::default()
        }
    }

    /// Appends the next bytes of the stream. They are parsed by [`poll`](Self::poll).
    #[inline]
    pub fn feed(&mut self, input: Bytes) {
        if !self.failed {
            self.lines.feed(input);
        }
    }

    /// Returns the next event, or `None` if more input is needed. After an error it always returns
    /// `None`.
    ///
    /// # Errors
    /// Returns an error if a line or an event exceeds the [`Limits`]. The error is final, because
    /// the start of the next event is unknown.
    #[must_use = "an unread event is lost"]
    #[inline]
    pub fn poll(&mut self) -> Option<Result<Event<'_>, DecodeError>> {
        self.release_event();
        loop {
            match self.lines.plain_block() {
                Plain::Complete { name, data } => return Some(Ok(self.lend_plain(name, data))),
                Plain::Partial { name } => self.fields.name = name,
                Plain::Other => return self.poll_lines(),
            }
            match self.lines.turn() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.fail();
                    return Some(Err(error));
                }
            }
        }
    }

    /// Adds a piece of the stream, and calls `f` with each event that is complete then: as
    /// [`feed`](Self::feed) and [`poll`](Self::poll) in a loop, but faster for a piece with several
    /// events, whose UTF-8 is validated all at once.
    ///
    /// A break ends the loop and is returned. The rest behind the event stays unread: the next call
    /// of this function or of `poll` continues there.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// use sluicegate_sse::Decoder;
    ///
    /// let (mut decoder, mut seen) = (Decoder::new(), String::new());
    /// for piece in ["data: a\n\ndata: b\n\nda", "ta: c\n\ndata: d"] {
    ///     let _: ControlFlow<()> = decoder.each(piece.into(), |event| {
    ///         seen += &event.data();
    ///         ControlFlow::Continue(())
    ///     })?;
    /// }
    /// assert_eq!(seen, "abc");
    /// # Ok::<(), sluicegate_sse::DecodeError>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Decoder::poll`], after the events before it.
    pub fn each<B>(
        &mut self,
        piece: Bytes,
        mut f: impl FnMut(Event<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, DecodeError> {
        self.feed(piece);
        // The first event may have begun in an earlier piece. Validating the rest at once pays only
        // if it has more than the start of the next event.
        while let Some(length) = self.poll_checked(&mut f)? {
            match length {
                ControlFlow::Break(value) => return Ok(ControlFlow::Break(value)),
                ControlFlow::Continue(_) if self.lines.end_read() => break,
                ControlFlow::Continue(length) if self.lines.has_left(length) => {
                    return self.each_in_chunk(&mut f);
                }
                ControlFlow::Continue(_) => {}
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Calls `f` with each event of the rest of the chunk, which is the last one.
    fn each_in_chunk<B>(
        &mut self,
        f: &mut impl FnMut(Event<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, DecodeError> {
        let (chunk, start) = self.lines.rest();
        let text = whole_lines(&chunk);
        loop {
            self.release_event();
            let event = match self.lines.next_plain() {
                Some((name, data)) => self.lend_plain(name, data),
                None => match self.poll() {
                    Some(event) => event?,
                    None => return Ok(ControlFlow::Continue(())),
                },
            };
            // The event lies in the chunk: a carried one would need a further piece.
            let at = event.decoder.lines.block_start() - start;
            let text = text.get(at..at + event.raw().len());
            let flow = f(Event {
                ascii: 0,
                text,
                ..event
            });
            if flow.is_break() {
                return Ok(flow);
            }
        }
    }

    /// Calls `f` with the next event, if there is one. Returns its length, unless `f` breaks.
    #[inline]
    fn poll_checked<B>(
        &mut self,
        f: &mut impl FnMut(Event<'_>) -> ControlFlow<B>,
    ) -> Result<Option<ControlFlow<B, usize>>, DecodeError> {
        let Some(event) = self.poll() else {
            return Ok(None);
        };
        let mut event = event?;
        event.text = utf8(event.rest());
        let length = event.raw().len();
        let flow = f(event);
        if flow.is_continue() {
            self.release_event();
        }
        Ok(Some(flow.map_continue(|()| length)))
    }

    /// Slow path of [`Decoder::poll`]: parses line by line.
    #[inline(never)]
    fn poll_lines(&mut self) -> Option<Result<Event<'_>, DecodeError>> {
        loop {
            match self.lines.next() {
                Ok(Some(line)) => {
                    if self.parse_line(line) {
                        self.lines.learn();
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

    /// Ends the stream. Call it after [`Decoder::poll`] returned `None`: input that was not polled
    /// counts as unread.
    ///
    /// # Errors
    /// Returns [`Truncated`] if the stream ended inside an event (even if only the final blank line
    /// is missing) or if the decoder had failed. Trailing comments and blank lines are not an
    /// error.
    pub fn finish(mut self) -> Result<(), Truncated> {
        self.release_event();
        if self.failed || self.lines.is_open() {
            Err(Truncated)
        } else {
            Ok(())
        }
    }

    /// Returns the last event id as of the event most recently returned by [`Decoder::poll`];
    /// initially empty. A reconnecting client sends it as `Last-Event-ID`.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// Returns the reconnection delay requested by the last valid `retry` field, in whole
    /// milliseconds.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns the number of comment lines read. Servers send comments as keep-alives while they
    /// have no events.
    #[must_use]
    pub fn comments(&self) -> u64 {
        self.comments
    }

    /// Returns the number of input bytes held: unread input plus the bytes of the current or
    /// incomplete event.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.lines.buffered()
    }

    /// Applies the line at `line` in the open block. Returns true if it completes an event.
    #[inline]
    fn parse_line(&mut self, line: Range<usize>) -> bool {
        if line.is_empty() {
            return self.end_block();
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
            // A line with a stray BOM before all fields sets nothing. It is dropped from the raw
            // event, because at the start of another stream the BOM would be stripped and the line
            // would gain a meaning.
            Field::Unknown if line.start == 0 && block.starts_with(BOM) => self.lines.skip(),
            Field::Id | Field::Unknown => {}
        }
        false
    }

    /// Ends the block at a blank line. Returns true if it is an event, that is, if it has data.
    #[inline]
    fn end_block(&mut self) -> bool {
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
    fn lend_plain(&mut self, name: Range<usize>, data: Range<usize>) -> Event<'_> {
        let ascii = data.start;
        self.fields = Fields {
            name,
            data: Data::One(data),
            id: None,
        };
        Event {
            ascii,
            ..self.lend()
        }
    }

    #[inline]
    fn lend(&mut self) -> Event<'_> {
        self.lent = true;
        self.lines.share();
        Event {
            decoder: self,
            ascii: 0,
            text: None,
        }
    }

    /// Discards the event that was lent last.
    #[inline]
    fn release_event(&mut self) {
        if std::mem::take(&mut self.lent) {
            self.fields = Fields::default();
            self.lines.skip();
        }
    }

    fn comment(&mut self, start: usize) {
        self.comments += 1;
        // A comment before all fields belongs to no event. If kept, endless keep-alives would
        // exceed the event limit.
        if start == 0 {
            self.lines.skip();
        }
    }

    /// Enters the failed state and drops all buffered input.
    fn fail(&mut self) {
        self.failed = true;
        self.lines = Lines::default();
        self.fields = Fields::default();
    }
}

/// Shows sizes but no contents, because streams carry user data.
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
        Self {
            line: 16 << 20,
            event: 16 << 20,
        }
    }
}

/// Parses the value of a `retry` field: ASCII digits only. Values beyond 64 bits saturate.
fn milliseconds(value: &[u8]) -> Option<Duration> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = value.iter().map(|digit| u64::from(digit - b'0'));
    let milliseconds = digits.fold(0, |sum: u64, digit| {
        sum.saturating_mul(10).saturating_add(digit)
    });
    Some(Duration::from_millis(milliseconds))
}
