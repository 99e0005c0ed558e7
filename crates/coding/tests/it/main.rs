//! Tests of the decoder against the output of the programs `gzip` 1.12 and `zstd` 1.5.4, and of the
//! module `zlib` of Python.

#![allow(clippy::unwrap_used, reason = "test helpers may panic")]

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use proptest::prelude::*;
use proptest::sample::Index;
use sluicegate_coding::Coding::{Deflate, Gzip, Zstd};
use sluicegate_coding::{Coding, DecodeError, Decoder, PIECE};

const TEXT: &str = r#"{"input":"Hello, Welt."}"#;
/// `gzip -n`
const GZIP: &str =
    "1f8b0800000000000003ab56cacc2b282d51b252f248cdc9c9d751084fcd29d153aa050093a759bf18000000";
/// `zlib.compress`
const ZLIB: &str = "789cab56cacc2b282d51b252f248cdc9c9d751084fcd29d153aa050065ce07f5";
/// `zstd -3 --no-check`
const ZSTD: &str = "28b52ffd2018c100007b22696e707574223a2248656c6c6f2c2057656c742e227d";
/// `zstd -3` of a pipe: without a declared size, and with a checksum.
const ZSTD_CHECKED: &str =
    "28b52ffd0458c100007b22696e707574223a2248656c6c6f2c2057656c742e227d5f20ec79";
/// Two members of gzip: of `{"model":"m",` and of `"input":"Hi."}`.
const GZIP_MEMBERS: [&str; 2] = [
    "1f8b0800000000000003ab56cacd4f49cd51b252ca55d20100f90dd6b60d000000",
    "1f8b080000000000000353cacc2b282d51b252f2c8d453aa0500a494e59e0e000000",
];
/// Two frames of zstd with the same contents, and between them a skippable frame (RFC 8878 §3.1.2).
const ZSTD_FRAMES: [&str; 3] = [
    "28b52ffd240d6900007b226d6f64656c223a226d222c4eb6613d",
    "502a4d1803000000010203",
    "28b52ffd240e71000022696e707574223a2248692e227d5a4f1132",
];
/// `hi` in frames that declare a window of 8 MiB and of 16 MiB: `zstd --long=23` and `--long=24`.
const ZSTD_WINDOWS: [&str; 2] = [
    "28b52ffd04681100006869fa3826ea",
    "28b52ffd04701100006869fa3826ea",
];

const EVERY: [(Coding, &str); 4] = [
    (Gzip, GZIP),
    (Deflate, ZLIB),
    (Zstd, ZSTD),
    (Zstd, ZSTD_CHECKED),
];

fn hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// Decodes a body that arrives in these chunks.
fn decode<'a>(
    coding: Coding,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<u8>, DecodeError> {
    let (mut decoder, mut decoded) = (Decoder::new(coding, usize::MAX), Vec::new());
    for chunk in chunks {
        decoder.push(Bytes::copy_from_slice(chunk));
        while let Some(piece) = decoder.next_piece()? {
            assert!((1..=2 * PIECE).contains(&piece.len()), "{}", piece.len());
            decoded.extend_from_slice(&piece);
        }
    }
    decoder.finish()?;
    Ok(decoded)
}

#[test]
fn the_output_of_the_programs_is_decoded() {
    for (coding, encoded) in EVERY {
        let encoded = hex(encoded);
        assert_eq!(decode(coding, [&encoded[..]]).unwrap(), TEXT.as_bytes());
        assert_eq!(decode(coding, encoded.chunks(1)).unwrap(), TEXT.as_bytes());
    }
}

#[test]
fn members_and_frames_are_one_body() {
    for (coding, parts) in [(Gzip, &GZIP_MEMBERS[..]), (Zstd, &ZSTD_FRAMES)] {
        let encoded = hex(&parts.concat());
        for size in [1, 7, encoded.len()] {
            let decoded = decode(coding, encoded.chunks(size)).unwrap();
            assert_eq!(
                decoded, br#"{"model":"m","input":"Hi."}"#,
                "{coding} by {size}"
            );
        }
    }
}

#[test]
fn a_body_that_is_cut_anywhere_is_incomplete() {
    let bodies = EVERY.into_iter().map(|(coding, body)| (coding, hex(body)));
    let several = [(Gzip, &GZIP_MEMBERS[..]), (Zstd, &ZSTD_FRAMES)];
    let several = several.map(|(coding, parts)| (coding, hex(&parts.concat())));
    // The ends of members and frames, at which a body may end.
    let ends = |coding| match coding {
        Gzip => [0, 33, 33],
        Deflate => [0; 3],
        Zstd => [0, 26, 37],
    };
    for (coding, body) in bodies.chain(several) {
        for at in (0..body.len()).filter(|at| !ends(coding).contains(at)) {
            let cut = decode(coding, [&body[..at]]);
            assert_eq!(
                cut,
                Err(DecodeError::Incomplete(coding)),
                "{coding} at {at}"
            );
        }
    }
}

#[test]
fn an_empty_body_is_empty() {
    for coding in [Gzip, Deflate, Zstd] {
        assert_eq!(decode(coding, []), Ok(vec![]));
        assert_eq!(decode(coding, [&b""[..]]), Ok(vec![]));
    }
}

#[test]
fn invalid_bodies_are_refused_with_the_reason() {
    let with = |body: &str, at: usize, byte: u8| {
        let mut body = hex(body);
        body[at] = byte;
        body
    };
    let json = TEXT.as_bytes().to_vec();
    for (coding, body, expected) in [
        (Gzip, json.clone(), "is not valid gzip: invalid gzip header"),
        (Zstd, json, "is not valid zstd: Unknown frame descriptor"),
        (Gzip, hex(ZSTD), "is not valid gzip: invalid gzip header"),
        (
            Zstd,
            hex(GZIP),
            "is not valid zstd: Unknown frame descriptor",
        ),
        (
            Gzip,
            hex(&[GZIP, "7b7d0a"].concat()),
            "is not complete gzip: it ends too early, or with a wrong checksum",
        ),
        (
            Gzip,
            hex(&[GZIP, &"7b".repeat(10)].concat()),
            "is not valid gzip: invalid gzip header",
        ),
        (
            Zstd,
            hex(&[ZSTD, "7b7d0a0a"].concat()),
            "is not valid zstd: Unknown frame descriptor",
        ),
        // RFC 9110 §8.4.1.2: deflate without the head and the checksum of zlib is not the coding.
        (
            Deflate,
            hex(&ZLIB[4..ZLIB.len() - 8]),
            "is not valid deflate: deflate decompression error",
        ),
        (
            Deflate,
            hex(&[ZLIB, "7b"].concat()),
            "is not valid deflate: bytes follow its end",
        ),
        (
            Deflate,
            with(ZLIB, ZLIB.len() / 2 - 1, 0),
            "is not valid deflate: deflate decompression error",
        ),
        // The checksum of the last member is checked at the end.
        (
            Gzip,
            with(GZIP, 36, 0),
            "is not complete gzip: it ends too early, or with a wrong checksum",
        ),
        (
            Zstd,
            with(ZSTD_CHECKED, 36, 0),
            "is not valid zstd: Restored data doesn't match checksum",
        ),
        (
            Gzip,
            with(GZIP, 10, 0xff),
            "is not valid gzip: corrupt deflate stream",
        ),
        (
            Zstd,
            with(ZSTD, 6, 0xc7),
            "is not valid zstd: Data corruption detected",
        ),
    ] {
        let error = decode(coding, [&body[..]]).unwrap_err();
        assert_eq!(error.to_string(), expected, "{coding} {body:x?}");
    }
}

#[test]
fn the_window_of_zstd_is_limited() {
    let [allowed, too_large] = ZSTD_WINDOWS.map(hex);
    assert_eq!(decode(Zstd, [&allowed[..]]), Ok(b"hi".to_vec()));
    let reason = "Frame requires too much memory for decoding";
    assert_eq!(
        decode(Zstd, [&too_large[..]]),
        Err(DecodeError::Invalid(Zstd, reason.to_owned()))
    );
}

/// A chunk that decodes to any amount comes in pieces, and the memory does not grow with it.
#[test]
fn a_bomb_comes_in_pieces() {
    // Blocks that repeat a byte 128 Ki times (RFC 8878 §3.1.1.2), in a frame with a window of 2 MiB.
    let zstd = ["28b52ffd0058", &"02001020".repeat(1000)].concat();
    for (coding, bomb, memory) in [
        (Gzip, gzip(&vec![0; 65 << 20]), 300 << 10),
        (Deflate, zlib(&vec![0; 65 << 20]), 300 << 10),
        (Zstd, hex(&zstd), 3 << 20),
    ] {
        let mut decoder = Decoder::new(coding, 64 << 20);
        decoder.push(bomb.into());
        let mut decoded = 0;
        let end = loop {
            match decoder.next_piece() {
                Ok(piece) => decoded += piece.unwrap().len(),
                Err(error) => break error,
            }
            assert!(decoder.memory() < memory, "{coding}: {}", decoder.memory());
        };
        assert_eq!(end, DecodeError::TooLarge);
        assert!((64 << 20) - 2 * PIECE < decoded && decoded <= 64 << 20);
    }
}

/// Bytes that the sender has flushed are returned before more arrives.
#[test]
fn flushed_data_does_not_wait() {
    let gzip = GzEncoder::new(Vec::new(), Compression::fast());
    sees_each_event(Gzip, gzip, GzEncoder::get_mut);
    let zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    sees_each_event(Deflate, zlib, ZlibEncoder::get_mut);
}

fn sees_each_event<E: std::io::Write>(
    coding: Coding,
    mut encoder: E,
    written: impl Fn(&mut E) -> &mut Vec<u8>,
) {
    let mut decoder = Decoder::new(coding, usize::MAX);
    // The last event is larger than all buffers.
    for event in [
        "data: 1\n\n".to_owned(),
        "data: 2\n\n".to_owned(),
        "x".repeat(300_000),
    ] {
        encoder.write_all(event.as_bytes()).unwrap();
        encoder.flush().unwrap();
        decoder.push(std::mem::take(written(&mut encoder)).into());
        let mut seen = Vec::new();
        while let Some(piece) = decoder.next_piece().unwrap() {
            seen.extend_from_slice(&piece);
        }
        assert_eq!(seen, event.as_bytes(), "{coding}");
    }
}

#[test]
fn one_coding_is_read_and_several_are_not() {
    let of = |values: &[&'static str]| Coding::of(values.iter().map(|value| value.as_bytes()));
    for (values, expected) in [
        (&[][..], Ok(None)),
        (&["identity"], Ok(None)),
        (&["Identity"], Ok(None)),
        (&["gzip"], Ok(Some(Gzip))),
        (&["GZIP"], Ok(Some(Gzip))),
        (&[" x-gzip\t"], Ok(Some(Gzip))),
        (&["zstd"], Ok(Some(Zstd))),
        (&["deflate"], Ok(Some(Deflate))),
        // RFC 9110, section 5.6.1.2: empty elements of a list are ignored.
        (&[""], Ok(None)),
        (&[" , ,", ""], Ok(None)),
        (&["gzip,"], Ok(Some(Gzip))),
        (&["", "zstd"], Ok(Some(Zstd))),
        (&["identity, gzip"], Ok(Some(Gzip))),
        (&["gzip", "identity"], Ok(Some(Gzip))),
        (&["br"], Err("unsupported content encoding 'br'")),
        (
            &["gzip, zstd"],
            Err("unsupported content encoding 'gzip, zstd'"),
        ),
        (
            &["gzip", "zstd"],
            Err("unsupported content encoding 'gzip, zstd'"),
        ),
        (&["a\n'"], Err("unsupported content encoding 'a\\n\\''")),
        (
            &["a name of more than forty characters, which is cut"],
            Err("unsupported content encoding 'a name of more than forty characters, wh'"),
        ),
    ] {
        let found = of(values).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned), "{values:?}");
    }
}

proptest! {
    /// The chunks in which a body arrives do not change what it decodes to, and whether it is
    /// complete.
    #[test]
    fn chunks_do_not_matter(
        text in proptest::collection::vec(any::<u8>(), 0..300),
        repeat in 1..2000_usize,
        mut cuts in proptest::collection::vec(any::<Index>(), 0..9),
        kept in any::<Index>(),
        is_cut in any::<bool>(),
        coding in proptest::sample::select(vec![Gzip, Deflate, Zstd]),
    ) {
        let body = text.repeat(repeat);
        let encoded = match coding {
            Gzip => gzip(&body),
            Deflate => zlib(&body),
            Zstd => zstd(&body),
        };
        let kept = if is_cut { kept.index(encoded.len() + 1) } else { encoded.len() };
        let mut at: Vec<usize> = cuts.drain(..).map(|cut| cut.index(kept + 1)).collect();
        at.extend([0, kept]);
        at.sort_unstable();
        let chunks = at.windows(2).map(|cut| &encoded[cut[0]..cut[1]]);
        let expected = match kept {
            0 => Ok(vec![]),
            kept if kept < encoded.len() => Err(DecodeError::Incomplete(coding)),
            _ => Ok(body),
        };
        prop_assert_eq!(decode(coding, chunks), expected);
    }
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn zlib(body: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

/// Level 3, as Codex does.
fn zstd(body: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(zstd_safe::compress_bound(body.len()));
    zstd_safe::compress(&mut encoded, body, 3).unwrap();
    encoded
}

/// A frame whose last block fills several pieces ends.
#[test]
fn a_frame_of_full_pieces_ends() {
    let frame = hex("28b52ffd00580200102003001020");
    for size in [1, 5, frame.len()] {
        assert_eq!(decode(Zstd, frame.chunks(size)), Ok(vec![0x20; 256 << 10]));
    }
}
