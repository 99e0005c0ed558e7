//! Any bytes as an event stream, complete, byte by byte, and in pieces: the same events result,
//! buffers keep the limits, and decoding encoded events gives the same events.

use std::ops::ControlFlow;

use bytes::Bytes;
use sse::{Decoder, EventName, Limits, encode};

/// Checks one input; a panic is a finding.
pub fn check(stream: &[u8]) {
    let stream = Bytes::copy_from_slice(stream);
    let whole = decode(std::iter::once(stream.clone()));
    let once = std::iter::once(stream.clone());
    assert_eq!(whole, decode_lent(once), "lent");
    let cut = pieces(stream.clone(), |byte| usize::from(byte) + 1);
    assert_eq!(whole, decode_lent(cut), "lent, however the bytes are cut");
    assert_eq!(whole, decode(pieces(stream.clone(), |_| 1)), "byte by byte");
    assert_eq!(
        whole,
        decode(pieces(stream, |byte| usize::from(byte % 16) + 1)),
        "however the bytes are cut"
    );

    let mut again = Vec::new();
    for (name, data) in &whole.events {
        encode(EventName::new(name).ok(), data, &mut again);
    }
    let again = decode(std::iter::once(again.into()));
    let encodable = whole
        .events
        .iter()
        .all(|(name, _)| EventName::new(name).is_ok());
    // Encoding adds a field name to each line, so events that just keep the limits may exceed them
    // afterwards.
    assert!(
        !encodable || again.failed || again.events == whole.events,
        "encoded and decoded"
    );
}

#[derive(Debug, PartialEq)]
struct Decoded {
    events: Vec<(String, String)>,
    failed: bool,
    is_whole: bool,
}

fn decode(pieces: impl Iterator<Item = Bytes>) -> Decoded {
    let mut decoder = Decoder::with_limits(LIMITS);
    let mut decoded = Decoded {
        events: Vec::new(),
        failed: false,
        is_whole: false,
    };
    for piece in pieces {
        decoder.feed(piece);
        while let Some(event) = decoder.poll() {
            match event {
                Ok(event) => decoded
                    .events
                    .push((event.name().into_owned(), event.data().into_owned())),
                Err(_) => decoded.failed = true,
            }
        }
        assert!(
            decoder.buffered() <= LIMITS.event + 2,
            "no more than one event and a line end is held"
        );
    }
    decoded.is_whole = decoder.finish().is_ok();
    decoded
}

/// Decodes with [`Decoder::each`].
fn decode_lent(pieces: impl Iterator<Item = Bytes>) -> Decoded {
    let mut decoder = Decoder::with_limits(LIMITS);
    let mut decoded = Decoded {
        events: Vec::new(),
        failed: false,
        is_whole: false,
    };
    for piece in pieces {
        let lent = decoder.each(piece, |event| {
            let event = (event.name().into_owned(), event.data().into_owned());
            decoded.events.push(event);
            ControlFlow::<()>::Continue(())
        });
        decoded.failed |= lent.is_err();
    }
    decoded.is_whole = decoder.finish().is_ok();
    decoded
}

/// Splits a stream into pieces, whose size is given by the first byte of each.
fn pieces(mut stream: Bytes, size: impl Fn(u8) -> usize) -> impl Iterator<Item = Bytes> {
    std::iter::from_fn(move || {
        let first = *stream.first()?;
        Some(stream.split_to(size(first).min(stream.len())))
    })
}

const LIMITS: Limits = Limits {
    line: 256,
    event: 1024,
};
