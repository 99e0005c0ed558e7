//! Any bytes as a body in each coding, complete and byte by byte: the same bytes result, in pieces
//! of bounded size, and the memory is bounded.

use bytes::Bytes;
use coding::{Coding, DecodeError, Decoder, PIECE};

/// Checks one input; a panic is a finding.
pub fn check(body: &[u8]) {
    for coding in [Coding::Gzip, Coding::Deflate, Coding::Zstd] {
        let whole = decode(coding, std::iter::once(body));
        let by_byte = decode(coding, body.chunks(1));
        // A piece that ends at a violation is not returned, so only one of them may reach the limit.
        if let (Some(whole), Some(by_byte)) = (whole, by_byte) {
            assert_eq!(whole, by_byte, "{coding}");
        }
    }
}

/// Decodes a body, or fails. Returns `None` over the limit.
fn decode<'a>(
    coding: Coding,
    chunks: impl Iterator<Item = &'a [u8]>,
) -> Option<Result<Vec<u8>, DecodeError>> {
    let (mut decoder, mut decoded) = (Decoder::new(coding, LIMIT), Vec::new());
    for chunk in chunks {
        decoder.push(Bytes::copy_from_slice(chunk));
        loop {
            match decoder.next_piece() {
                Ok(Some(piece)) => {
                    assert!((1..=2 * PIECE).contains(&piece.len()));
                    decoded.extend_from_slice(&piece);
                }
                Ok(None) => break,
                Err(DecodeError::TooLarge) => return None,
                Err(error) => return Some(Err(error)),
            }
            assert!(decoder.memory() <= MEMORY);
        }
    }
    Some(decoder.finish().map(|()| decoded))
}

/// A bomb is not decoded any further.
const LIMIT: usize = 1 << 20;
/// The window of 8 MiB, and the rest.
const MEMORY: usize = 9 << 20;
