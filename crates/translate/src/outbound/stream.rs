//! Decodes the bytes of an upstream's event stream.

use bytes::Bytes;
use engine::{EngineError, TextEvent, Usage};
use sse::{Decoder, Limits};
use vendor::{MAX_EVENT, Protocol, malformed};

use super::Reader;

/// Decodes the bytes of an event stream into neutral events.
#[derive(Debug)]
pub struct StreamReader {
    decoder: Decoder,
    reader: Reader,
    /// The number of events that were read.
    events: u64,
}

impl StreamReader {
    /// Creates a reader for a stream of `protocol`.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        let decoder = Decoder::with_limits(Limits {
            line: MAX_EVENT,
            event: MAX_EVENT,
        });
        Self {
            decoder,
            reader: Reader::new(protocol),
            events: 0,
        }
    }

    /// Adds bytes from the upstream and appends the neutral events that they complete to `out`.
    /// Bytes after the end are discarded.
    ///
    /// # Errors
    /// When an event is malformed or reports a failure. `out` then holds the events before it.
    pub fn feed(&mut self, bytes: Bytes, out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        self.decoder.feed(bytes);
        while !self.reader.is_finished()
            && let Some(event) = self.decoder.poll()
        {
            let event = event.map_err(malformed)?;
            self.events += 1;
            if event.is_replaced() {
                return Err(malformed("invalid UTF-8"));
            }
            self.reader.event(&event.data_bytes(), out)?;
        }
        Ok(())
    }

    /// Handles the end of the body. An event that was not completed is discarded.
    ///
    /// # Errors
    /// [`EngineError::Truncated`] when the stream is not complete.
    pub fn end(&mut self, out: &mut Vec<TextEvent>) -> Result<(), EngineError> {
        self.reader.end(out)
    }

    /// Returns the number of events and comments that were read. Servers that think for minutes
    /// send some that have no content.
    #[must_use]
    pub fn signs_of_life(&self) -> u64 {
        self.events + self.decoder.comments()
    }

    /// Returns the token usage that the upstream has reported so far, for a stream that does not
    /// reach its end.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.reader.usage()
    }

    /// Returns the bytes of the incomplete event that are buffered.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.decoder.buffered()
    }

    /// Returns true if [`TextEvent::Finished`] was emitted.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.reader.is_finished()
    }
}
