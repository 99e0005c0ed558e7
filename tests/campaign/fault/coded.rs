//! Content codings: answers that the upstream encodes, and requests that the client does.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use simulator::{Play, Protocol};
use testkit::dice::Dice;

use super::{Fault, Kind, Spot};

/// A message of a fault that has a content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coded {
    /// The answer of the upstream, although the gateway has not asked for a coding.
    Answer(Coding),
    /// The request of the client.
    Request(Coding, Upload),
}

/// A content coding (RFC 9110 §8.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    Deflate,
    Zstd,
}

/// The state of an encoded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upload {
    /// It is whole.
    Whole,
    /// It ends too early, within the framing of a whole request.
    Cut(Spot),
    /// It has another coding than its label says.
    Mislabelled,
    /// It decodes to more than the limit.
    Bomb,
}

impl Coded {
    /// Draws a coding for one fault in twenty: for half of them of the answer, and for the others of the request.
    pub(super) fn draw(seed: u64, number: u64, client: Protocol) -> Option<Self> {
        let dice = &mut Dice::new(seed ^ CODED, number);
        if !dice.once_in(20) {
            return None;
        }
        let coding = *dice.one(&CODINGS);
        let spot = Spot(dice.among(0..1 << 16) as u16);
        Some(match dice.among(0..8) {
            0..4 => Self::Answer(coding),
            4 => Self::Request(coding, Upload::Whole),
            5 => Self::Request(coding, Upload::Cut(spot)),
            6 if client != Protocol::Images => Self::Request(coding, Upload::Bomb),
            _ => Self::Request(coding, Upload::Mislabelled),
        })
    }

    /// Returns true if the gateway has to refuse the request.
    fn is_undecodable(self) -> bool {
        matches!(self, Self::Request(_, upload) if upload != Upload::Whole)
    }
}

impl Coding {
    /// Its name in `Content-Encoding`.
    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Zstd => "zstd",
        }
    }

    /// Another one.
    fn other(self) -> Self {
        match self {
            Self::Gzip => Self::Deflate,
            Self::Deflate => Self::Zstd,
            Self::Zstd => Self::Gzip,
        }
    }

    fn encode(self, body: &[u8]) -> Vec<u8> {
        match self {
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(body).unwrap();
                encoder.finish().unwrap()
            }
            Self::Deflate => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(body).unwrap();
                encoder.finish().unwrap()
            }
            Self::Zstd => {
                let mut encoded = Vec::with_capacity(zstd_safe::compress_bound(body.len()));
                zstd_safe::compress(&mut encoded, body, 3).unwrap();
                encoded
            }
        }
    }
}

impl Upload {
    /// The body of a request, encoded.
    fn encode(self, coding: Coding, body: &[u8]) -> Vec<u8> {
        match self {
            Self::Whole => coding.encode(body),
            Self::Cut(spot) => {
                let mut encoded = coding.encode(body);
                // An empty body decodes to an empty one.
                encoded.truncate(1 + spot.of(encoded.len() - 2));
                encoded
            }
            Self::Mislabelled => coding.other().encode(body),
            Self::Bomb => coding.encode(&vec![b' '; 2 * JSON_BODY]),
        }
    }
}

impl Fault {
    /// Returns true if the gateway cannot decode the request, and has to refuse it.
    pub(crate) fn is_undecodable(&self) -> bool {
        self.coded.is_some_and(Coded::is_undecodable)
    }

    /// The state of the request, if it has a coding.
    pub(crate) fn upload(&self) -> Option<Upload> {
        match self.coded? {
            Coded::Answer(_) => None,
            Coded::Request(_, upload) => Some(upload),
        }
    }

    /// Removes all other failures, if the request cannot be decoded.
    pub(super) fn remove_other_failures(&mut self) {
        if self.is_undecodable() {
            self.kind = Kind::Nothing;
            self.strict = None;
            // Clients read nothing before they have sent their request, and this one is refused earlier.
            self.pace.capacity = self.pace.capacity.max(1 << 16);
        }
    }

    /// Encodes the body of the request, if it has a coding. Returns the name of the coding.
    pub(crate) fn encode_request(&self, body: &mut Vec<u8>) -> Option<&'static str> {
        let Some(Coded::Request(coding, upload)) = self.coded else {
            return None;
        };
        *body = upload.encode(coding, body);
        Some(coding.name())
    }

    /// Encodes the body of an answer, if it has a coding.
    pub(super) fn encode_answer(&self, play: Play) -> Play {
        let Some(Coded::Answer(coding)) = self.coded else {
            return play;
        };
        let encoded = coding.encode(&play.body_bytes());
        play.with_pieces([encoded])
            .with_header("content-encoding", coding.name())
    }
}

const CODINGS: [Coding; 3] = [Coding::Gzip, Coding::Deflate, Coding::Zstd];
/// The limit of a body of JSON in the configuration of the gateway.
pub(crate) const JSON_BODY: usize = 1 << 20;
/// Distinguishes these draws from all others.
const CODED: u64 = 0xC0DE;
