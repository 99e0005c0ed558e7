//! The decoder of the chunked transfer coding (RFC 9112 §7.1).

use httparse::{EMPTY_HEADER, Status, parse_headers};

use crate::http1::decoded::Decoded;
use crate::http1::error::Invalid;

/// A body in chunks, as far as it was decoded.
#[derive(Debug, Default)]
pub(crate) struct Chunked {
    state: State,
    /// The size of the chunk, and then the number of its bytes that are left.
    size: u64,
    /// The length of all chunk extensions, which are ignored.
    extensions: usize,
    /// The trailers, which are validated and ignored.
    trailers: Vec<u8>,
    trailer_lines: usize,
}

/// The position of the next byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// At the first digit of a size.
    #[default]
    Start,
    Size,
    /// In the blanks after a size.
    Blank,
    Extension,
    /// At the line feed after a size.
    SizeLf,
    Data,
    /// At the line end after the data of a chunk.
    DataCr,
    DataLf,
    /// At the start of a line after the last chunk.
    Line,
    Trailer,
    TrailerLf,
    /// At the last line feed.
    EndLf,
    End,
}

impl Chunked {
    pub(crate) fn is_end(&self) -> bool {
        self.state == State::End
    }

    /// Decodes the next bytes: the data of all chunks is moved together.
    pub(crate) fn decode(&mut self, bytes: &mut [u8]) -> Decoded {
        let (mut data, mut at) = (0..0, 0);
        let mut violation = None;
        while at < bytes.len() && !self.is_end() && violation.is_none() {
            if self.state == State::Data {
                let left = bytes.len() - at;
                let length = usize::try_from(self.size).map_or(left, |size| size.min(left));
                if data.is_empty() {
                    data = at..at;
                } else {
                    bytes.copy_within(at..at + length, data.end);
                }
                data.end += length;
                at += length;
                self.size -= length as u64;
                if self.size == 0 {
                    self.state = State::DataCr;
                }
            } else {
                match self.step(bytes[at]) {
                    Ok(state) => self.state = state,
                    Err(error) => violation = Some(error),
                }
                at += 1;
            }
        }
        Decoded {
            data,
            used: at,
            violation,
        }
    }

    /// Reads a byte that is no data. Returns the next state.
    fn step(&mut self, byte: u8) -> Result<State, Invalid> {
        match (self.state, byte) {
            (State::Start | State::Size, _) if byte.is_ascii_hexdigit() => {
                let digit = (byte as char).to_digit(16).unwrap_or_default();
                let size = self.size.checked_mul(16).ok_or(Invalid::Chunk)?;
                self.size = size + u64::from(digit);
                Ok(State::Size)
            }
            (State::Size | State::Blank, b'\t' | b' ') => Ok(State::Blank),
            (State::Size | State::Blank, b';') => Ok(State::Extension),
            (State::Size | State::Blank | State::Extension, b'\r') => Ok(State::SizeLf),
            // A recipient that takes a lone line feed for the end of the line would disagree.
            (State::Extension, b'\n') => Err(Invalid::Chunk),
            (State::Extension, _) => {
                self.extensions += 1;
                let is_short = self.extensions < MAX_EXTENSIONS;
                is_short.then_some(State::Extension).ok_or(Invalid::Chunk)
            }
            (State::SizeLf, b'\n') if self.size == 0 => Ok(State::Line),
            (State::SizeLf, b'\n') => Ok(State::Data),
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => Ok(State::Start),
            (State::Line | State::Trailer | State::TrailerLf | State::EndLf, _) => {
                self.step_trailers(byte)
            }
            _ => Err(Invalid::Chunk),
        }
    }

    /// Reads a byte after the last chunk. Returns the next state.
    fn step_trailers(&mut self, byte: u8) -> Result<State, Invalid> {
        // The empty line that ends the body is a part of the trailers, if there are any.
        let is_last = self.state == State::EndLf || (self.state, byte) == (State::Line, b'\r');
        if !is_last || !self.trailers.is_empty() {
            self.trailers.push(byte);
            if self.trailers.len() >= MAX_TRAILER_BYTES {
                return Err(Invalid::Trailers);
            }
        }
        match (self.state, byte) {
            (State::Line, b'\r') => Ok(State::EndLf),
            (State::Trailer, b'\r') => Ok(State::TrailerLf),
            (State::Line | State::Trailer, _) => Ok(State::Trailer),
            (State::TrailerLf, b'\n') if self.trailer_lines < MAX_TRAILERS => {
                self.trailer_lines += 1;
                Ok(State::Line)
            }
            (State::EndLf, b'\n') => {
                self.check_trailers()?;
                Ok(State::End)
            }
            _ => Err(Invalid::Trailers),
        }
    }

    fn check_trailers(&mut self) -> Result<(), Invalid> {
        let trailers = std::mem::take(&mut self.trailers);
        let mut headers = [EMPTY_HEADER; MAX_TRAILERS];
        let is_valid = trailers.is_empty()
            || parse_headers(&trailers, &mut headers[..self.trailer_lines])
                .is_ok_and(|parsed| matches!(parsed, Status::Complete(_)));
        is_valid.then_some(()).ok_or(Invalid::Trailers)
    }
}

/// The maximum length of all chunk extensions of a body, in bytes.
const MAX_EXTENSIONS: usize = 16 << 10;
/// The maximum length of all trailers, in bytes: the same as for a head.
const MAX_TRAILER_BYTES: usize = 64 << 10;
/// The maximum number of trailers.
const MAX_TRAILERS: usize = 100;
