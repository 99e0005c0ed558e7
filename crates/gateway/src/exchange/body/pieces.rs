//! Joins the chunks of a body into one buffer.

use bytes::{Bytes, BytesMut};

/// The chunks received so far.
///
/// A body whose length is known, and not large, is gathered as it comes, while its chunks are still
/// in the cache of the processor. Joining any other one takes twice the memory for a moment and
/// never more, because no buffer grows by doubling. A single chunk is not copied.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    chunks: Vec<Bytes>,
    /// Collects small chunks, so that a body of single bytes costs no more than its bytes; of a body
    /// that is gathered, all.
    block: BytesMut,
    length: usize,
    /// The length of the body, if it is known and there is no memory for it yet.
    expected: Option<usize>,
}

impl Pieces {
    /// Prepares for a body of this length, if it is known.
    pub(crate) fn expecting(length: Option<usize>) -> Self {
        Self {
            expected: length.filter(|length| *length <= MOST_GATHERED),
            ..Self::default()
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn push(&mut self, chunk: Bytes) {
        let is_first = self.length == 0;
        self.length += chunk.len();
        if !is_first {
            self.gather();
        }
        let has_room = self.block.capacity() - self.block.len() >= chunk.len();
        if is_first || chunk.len() >= LARGE && !has_room {
            self.flush_block();
            self.chunks.push(chunk);
            return;
        }
        if !has_room {
            self.flush_block();
            self.block = BytesMut::with_capacity(BLOCK.max(chunk.len()));
        }
        self.block.extend_from_slice(&chunk);
    }

    /// Moves the received bytes into memory for the complete body, once enough bytes have come that
    /// a client cannot occupy much memory by declaring a length.
    fn gather(&mut self) {
        let is_due = |length: &mut usize| *length / MOST_AHEAD <= self.length;
        if let Some(length) = self.expected.take_if(is_due) {
            self.flush_block();
            self.block = BytesMut::with_capacity(length);
            for chunk in self.chunks.drain(..) {
                self.block.extend_from_slice(&chunk);
            }
        }
    }

    pub(crate) fn join(mut self) -> Bytes {
        self.flush_block();
        if self.chunks.len() <= 1 {
            return self.chunks.pop().unwrap_or_default();
        }
        let mut joined = BytesMut::with_capacity(self.length);
        for chunk in self.chunks {
            joined.extend_from_slice(&chunk);
        }
        joined.freeze()
    }

    fn flush_block(&mut self) {
        if !self.block.is_empty() {
            self.chunks.push(self.block.split().freeze());
        }
    }
}

/// Chunks of at least this size, in bytes, are kept without copying.
const LARGE: usize = 16 * 1024;
/// Smaller chunks are copied into blocks of this size.
const BLOCK: usize = 64 * 1024;
/// The largest body that is gathered as it comes.
const MOST_GATHERED: usize = 1 << 20;
/// Memory for such a body is allocated once its length is at most this many times the received
/// length, which is as much memory as joining takes.
const MOST_AHEAD: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_size_are_joined_in_order() {
        for sizes in [
            &[][..],
            &[3],
            &[1, LARGE, 2, 2, BLOCK + 1, 1],
            &[LARGE - 1; 20],
            &[1; 3000],
            &[0, 0, 5],
        ] {
            let whole: usize = sizes.iter().sum();
            // A body may be declared as longer or shorter than it is.
            for declared in [None, Some(0), Some(1), Some(whole), Some(3 * whole)] {
                let mut pieces = Pieces::expecting(declared);
                let mut expected = Vec::new();
                for (i, size) in sizes.iter().enumerate() {
                    let piece = vec![i as u8; *size];
                    expected.extend_from_slice(&piece);
                    pieces.push(Bytes::from(piece));
                }
                assert_eq!(pieces.len(), expected.len());
                assert_eq!(pieces.join(), expected, "{sizes:?} {declared:?}");
            }
        }
    }

    #[test]
    fn memory_is_allocated_for_a_share_of_the_body_that_has_come() {
        let mut pieces = Pieces::expecting(Some(60 * LARGE));
        let capacities = [1, 1, 27, 1, 30].map(|chunks| {
            pieces.push(Bytes::from(vec![0; chunks * LARGE]));
            pieces.block.capacity()
        });
        assert_eq!(capacities, [0, 0, 0, 60 * LARGE, 60 * LARGE]);
        let block = pieces.block.as_ptr();
        assert_eq!(pieces.join().as_ptr(), block);
    }

    #[test]
    fn a_single_piece_is_not_copied() {
        let piece = Bytes::from_static(b"whole");
        let mut pieces = Pieces::default();
        pieces.push(piece.clone());
        assert_eq!(pieces.join().as_ptr(), piece.as_ptr());
    }
}
