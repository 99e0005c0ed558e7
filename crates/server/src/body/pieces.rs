//! Joins the chunks of a body into one buffer.

use bytes::{Bytes, BytesMut};

/// The chunks received so far.
///
/// Joining takes twice the memory for a moment and never more, because no buffer grows by doubling.
/// A single chunk is not copied.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    chunks: Vec<Bytes>,
    /// Collects small chunks, so that a body of single bytes costs no more than its bytes.
    block: BytesMut,
    length: usize,
}

impl Pieces {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn push(&mut self, chunk: Bytes) {
        self.length += chunk.len();
        if chunk.len() >= LARGE || self.length == chunk.len() {
            self.flush_block();
            self.chunks.push(chunk);
            return;
        }
        if self.block.capacity() - self.block.len() < chunk.len() {
            self.flush_block();
            self.block = BytesMut::with_capacity(BLOCK.max(chunk.len()));
        }
        self.block.extend_from_slice(&chunk);
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
            let mut pieces = Pieces::default();
            let mut expected = Vec::new();
            for (i, size) in sizes.iter().enumerate() {
                let piece = vec![i as u8; *size];
                expected.extend_from_slice(&piece);
                pieces.push(Bytes::from(piece));
            }
            assert_eq!(pieces.len(), expected.len());
            assert_eq!(pieces.join(), expected, "{sizes:?}");
        }
    }

    #[test]
    fn a_single_piece_is_not_copied() {
        let piece = Bytes::from_static(b"whole");
        let mut pieces = Pieces::default();
        pieces.push(piece.clone());
        assert_eq!(pieces.join().as_ptr(), piece.as_ptr());
    }
}
