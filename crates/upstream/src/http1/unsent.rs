//! A request that is being written.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use net::Connection;

use crate::outgoing::Payload;

/// A request, and how much of it was written. A short body follows its head in the same memory, so
/// that both are one write; a long one is shared.
pub(crate) struct Unsent {
    head: Vec<u8>,
    /// The body, unless it follows the head.
    body: Option<Payload>,
    /// The part that is written next, and the number of its bytes that were written. Part 0 is the
    /// head; the other parts are the chunks of the body.
    part: usize,
    written: usize,
}

impl Unsent {
    /// Takes a head, which may have memory for the body, and a body.
    pub(crate) fn new(mut head: Vec<u8>, body: &Payload) -> Self {
        let is_joined = joined(body) > 0;
        if is_joined {
            let chunks = body.chunks().iter();
            chunks.for_each(|chunk| head.extend_from_slice(chunk));
        }
        Self {
            head,
            body: (!is_joined).then(|| body.clone()),
            part: 0,
            written: 0,
        }
    }

    /// Writes the rest of the request, and flushes.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut dyn Connection,
    ) -> Poll<io::Result<()>> {
        let mut io = Pin::new(io);
        loop {
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let mut count = 0;
            for (slice, part) in slices.iter_mut().zip(self.left()) {
                *slice = IoSlice::new(part);
                count += 1;
            }
            let written = match &slices[..count] {
                [] => return io.poll_flush(cx),
                [one] => io.as_mut().poll_write(cx, one),
                several => io.as_mut().poll_write_vectored(cx, several),
            };
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.advance(written),
            }
        }
    }

    /// Returns the parts that are left.
    fn left(&self) -> impl Iterator<Item = &[u8]> {
        let parts = (self.part..).map_while(|part| self.part(part));
        let mut written = self.written;
        parts
            .map(move |part| &part[std::mem::take(&mut written)..])
            .filter(|part| !part.is_empty())
    }

    fn part(&self, part: usize) -> Option<&[u8]> {
        match part.checked_sub(1) {
            None => Some(&self.head),
            Some(chunk) => Some(self.body.as_ref()?.chunks().get(chunk)?),
        }
    }

    fn advance(&mut self, mut by: usize) {
        while let Some(length) = self.part(self.part).map(<[u8]>::len) {
            let left = length - self.written;
            if by < left {
                self.written += by;
                return;
            }
            by -= left;
            self.part += 1;
            self.written = 0;
        }
    }
}

/// Returns how many bytes of a body follow its head in the same memory: all or none.
pub(crate) fn joined(body: &Payload) -> usize {
    let length = body.len();
    if length <= MAX_SHORT { length } else { 0 }
}

/// The maximum size of a body that is copied, in bytes.
const MAX_SHORT: usize = 16 << 10;
/// The maximum number of parts of one write.
const MAX_SLICES: usize = 16;
