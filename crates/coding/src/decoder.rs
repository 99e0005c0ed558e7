//! The decoder.

use std::io::Write;

use bytes::{Buf, Bytes};
use flate2::write::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use crate::Coding;

/// Decodes one body.
///
/// [`Decoder::push`] takes the chunks of the encoded body, [`Decoder::next_piece`] returns what they
/// decode to, and [`Decoder::finish`] checks that the body is complete. A body of zero bytes decodes
/// to zero bytes, as some senders label an empty body. Several members of gzip and several frames of
/// zstd, one after the other, are one body.
pub struct Decoder {
    coding: Coding,
    algorithm: Algorithm,
    /// The received part that is not decoded yet.
    encoded: Bytes,
    /// The memory into which a piece is decoded.
    piece: Vec<u8>,
    /// The number of bytes that the decoded body may still have.
    left: usize,
    memory: usize,
}

enum Algorithm {
    Gzip {
        decoder: Box<MultiGzDecoder<Vec<u8>>>,
        /// True once a byte was decoded.
        has_begun: bool,
    },
    Deflate {
        decoder: Decompress,
        /// True once a byte was decoded.
        has_begun: bool,
        /// True after the checksum.
        has_ended: bool,
        /// True if the last piece was full, so that more of it may be waiting.
        has_more: bool,
    },
    Zstd {
        decoder: DCtx<'static>,
        /// True between the first byte of a frame and its last one.
        is_in_frame: bool,
        /// True if the last piece was full, so that more of it may be waiting.
        has_more: bool,
    },
}

/// The body cannot be decoded. The message continues a sentence such as "The request body".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The body ended within a gzip member, a zlib stream or a zstd frame, or the checksum at its very end is
    /// wrong.
    #[error("is not complete {0}: it ends too early, or with a wrong checksum")]
    Incomplete(Coding),
    /// The body is invalid, or needs too much memory, for this reason.
    #[error("is not valid {0}: {1}")]
    Invalid(Coding, String),
    /// The decoded body is larger than the limit.
    #[error("is larger than the limit")]
    TooLarge,
}

impl Decoder {
    /// Creates a decoder for one body, which may decode to `limit` bytes.
    pub fn new(coding: Coding, limit: usize) -> Self {
        let algorithm = match coding {
            Coding::Gzip => Algorithm::Gzip {
                decoder: Box::new(MultiGzDecoder::new(Vec::new())),
                has_begun: false,
            },
            Coding::Deflate => Algorithm::Deflate {
                decoder: Decompress::new(true),
                has_begun: false,
                has_ended: false,
                has_more: false,
            },
            Coding::Zstd => Algorithm::Zstd {
                decoder: zstd_decoder(),
                is_in_frame: false,
                has_more: false,
            },
        };
        Self {
            coding,
            algorithm,
            encoded: Bytes::new(),
            piece: Vec::new(),
            left: limit,
            memory: 0,
        }
    }

    /// Adds the next chunk of the encoded body. Call it when [`Decoder::next_piece`] has returned
    /// `None`.
    pub fn push(&mut self, chunk: Bytes) {
        if self.encoded.is_empty() {
            self.encoded = chunk;
        } else {
            self.encoded = [&self.encoded[..], &chunk].concat().into();
        }
    }

    /// Returns the next piece, of at most twice [`PIECE`] bytes, or `None` when more of the encoded
    /// body is needed. Everything that the chunks so far determine is returned, so that an event of a
    /// stream that the sender has flushed does not wait for the next one.
    ///
    /// # Errors
    /// When the body is invalid or too large. The decoder cannot be used any further.
    pub fn next_piece(&mut self) -> Result<Option<Bytes>, DecodeError> {
        while self.has_input() {
            let decoded = self.decode();
            decoded.map_err(|reason| DecodeError::Invalid(self.coding, reason))?;
            self.memory = self.memory.max(self.held());
            self.left = self
                .left
                .checked_sub(self.piece.len())
                .ok_or(DecodeError::TooLarge)?;
            if !self.piece.is_empty() {
                // Copied, so that small pieces do not hold memory for large ones.
                return Ok(Some(Bytes::copy_from_slice(&self.piece)));
            }
        }
        Ok(None)
    }

    /// Checks that the body may end here.
    ///
    /// # Errors
    /// When it ends too early.
    pub fn finish(&mut self) -> Result<(), DecodeError> {
        let is_complete = match &mut self.algorithm {
            Algorithm::Gzip { decoder, has_begun } => !*has_begun || decoder.try_finish().is_ok(),
            Algorithm::Deflate {
                has_begun,
                has_ended,
                ..
            } => !*has_begun || *has_ended,
            Algorithm::Zstd { is_in_frame, .. } => !*is_in_frame,
        };
        is_complete
            .then_some(())
            .ok_or(DecodeError::Incomplete(self.coding))
    }

    /// The most memory that the decoder has held so far besides the chunk, in bytes. A frame of zstd
    /// declares how much is needed, so this grows once its head is decoded.
    pub fn memory(&self) -> usize {
        self.memory
    }

    fn held(&self) -> usize {
        let state = match &self.algorithm {
            Algorithm::Gzip { .. } | Algorithm::Deflate { .. } => DEFLATE_MEMORY,
            Algorithm::Zstd { decoder, .. } => decoder.sizeof(),
        };
        state + self.piece.capacity()
    }

    fn has_input(&self) -> bool {
        let has_more = matches!(
            self.algorithm,
            Algorithm::Deflate { has_more: true, .. } | Algorithm::Zstd { has_more: true, .. }
        );
        has_more || !self.encoded.is_empty()
    }

    /// Decodes the next piece into `self.piece`, which is empty if no piece is complete yet. An error is the
    /// reason.
    fn decode(&mut self) -> Result<(), String> {
        let Self {
            algorithm,
            encoded,
            piece,
            ..
        } = self;
        piece.clear();
        match algorithm {
            Algorithm::Gzip { decoder, has_begun } => {
                *has_begun = true;
                std::mem::swap(decoder.get_mut(), piece);
                // Takes no more of the input than fills the writer's buffer, which is a piece.
                let used = decoder.write(encoded).map_err(|error| error.to_string())?;
                decoder.flush().map_err(|error| error.to_string())?;
                std::mem::swap(decoder.get_mut(), piece);
                encoded.advance(used);
            }
            Algorithm::Deflate {
                has_ended: true, ..
            } => {
                return Err("bytes follow its end".to_owned());
            }
            Algorithm::Deflate {
                decoder,
                has_begun,
                has_ended,
                has_more,
            } => {
                *has_begun = true;
                piece.reserve_exact(PIECE);
                let before = decoder.total_in();
                let status = decoder
                    .decompress_vec(encoded, piece, FlushDecompress::None)
                    .map_err(|error| error.to_string())?;
                *has_ended = status == Status::StreamEnd;
                *has_more = !*has_ended && piece.len() == piece.capacity();
                encoded.advance((decoder.total_in() - before) as usize);
            }
            Algorithm::Zstd {
                decoder,
                is_in_frame,
                has_more,
            } => {
                piece.reserve_exact(PIECE);
                let mut input = InBuffer::around(encoded);
                let mut output = OutBuffer::around(piece);
                let hint = decoder
                    .decompress_stream(&mut output, &mut input)
                    .map_err(zstd_safe::get_error_name)?;
                // 0 after the last byte of a frame, once all of it is decoded.
                *is_in_frame = hint != 0;
                *has_more = *is_in_frame && output.pos() == output.capacity();
                let used = input.pos();
                encoded.advance(used);
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}

fn zstd_decoder() -> DCtx<'static> {
    let mut decoder = DCtx::create();
    // It fails only for a size outside of 1 KiB to 2 GiB.
    let _ = decoder.set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG));
    decoder
}

/// The size of a full piece, in bytes.
pub const PIECE: usize = 64 << 10;
/// The largest window of zstd, as a power of two: 8 MiB, which RFC 9659 §3 sets for the coding of HTTP.
const MAX_WINDOW_LOG: u32 = 23;
/// About the window of deflate, the tables of its decoder and the buffer of the writer.
const DEFLATE_MEMORY: usize = 80 << 10;
