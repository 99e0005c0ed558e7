//! Bytes that come in pieces and are wanted in one.

use bytes::{Bytes, BytesMut};

/// What has come so far.
///
/// Joining takes twice the memory for a moment and never more: nothing grows by doubling. A single piece is not copied.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    whole: Vec<Bytes>,
    /// Where small pieces are gathered, so that a body of single bytes costs no more than its bytes.
    small: BytesMut,
    length: usize,
}

impl Pieces {
    /// How many bytes have come.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Takes the next piece.
    pub(crate) fn push(&mut self, piece: Bytes) {
        self.length += piece.len();
        if piece.len() >= LARGE || self.length == piece.len() {
            self.close();
            self.whole.push(piece);
            return;
        }
        if self.small.capacity() - self.small.len() < piece.len() {
            self.close();
            self.small = BytesMut::with_capacity(BLOCK.max(piece.len()));
        }
        self.small.extend_from_slice(&piece);
    }

    /// All of it.
    pub(crate) fn join(mut self) -> Bytes {
        self.close();
        if self.whole.len() <= 1 {
            return self.whole.pop().unwrap_or_default();
        }
        let mut joined = BytesMut::with_capacity(self.length);
        for piece in self.whole {
            joined.extend_from_slice(&piece);
        }
        joined.freeze()
    }

    fn close(&mut self) {
        if !self.small.is_empty() {
            self.whole.push(self.small.split().freeze());
        }
    }
}

/// A piece of this size is kept as it came.
const LARGE: usize = 16 * 1024;
/// Smaller ones are gathered into blocks of this size.
const BLOCK: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_size_are_joined_in_order() {
        for sizes in [&[][..], &[3], &[1, LARGE, 2, 2, BLOCK + 1, 1], &[LARGE - 1; 20], &[1; 3000], &[0, 0, 5]] {
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
