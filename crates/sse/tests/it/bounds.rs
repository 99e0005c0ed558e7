//! Memory use: buffered input is bounded, and events within one chunk share its memory.

use std::ops::ControlFlow;

use bytes::Bytes;
use sluicegate_sse::{DecodeError, Decoder, Limits, Truncated};

/// Feeds `piece` repeatedly until the decoder fails. Returns the error and the maximum number of
/// buffered bytes.
fn feed_endlessly(
    first: &'static [u8],
    piece: &'static [u8],
    limit: usize,
) -> (Option<DecodeError>, usize) {
    let (mut decoder, mut most) = (
        Decoder::with_limits(Limits {
            line: limit,
            event: limit,
        }),
        0,
    );
    let pieces = std::iter::once(first).chain(std::iter::repeat_n(piece, 100_000));
    for piece in pieces {
        decoder.feed(Bytes::from_static(piece));
        while let Some(event) = decoder.poll() {
            if let Err(error) = event {
                assert!(
                    decoder.poll().is_none() && decoder.buffered() == 0,
                    "nothing is held after an error"
                );
                decoder.feed(Bytes::from_static(b"data: x\n\n"));
                assert!(decoder.poll().is_none(), "no events after an error");
                return (Some(error), most);
            }
        }
        most = most.max(decoder.buffered());
    }
    (None, most)
}

#[test]
fn endless_lines_and_events_are_given_up_at_the_limit() {
    let line = DecodeError::LineTooLong { limit: 1000 };
    let event = DecodeError::EventTooLong { limit: 1000 };
    for (first, piece, expected) in [
        (&b"data: "[..], &b"aaaa"[..], line),
        (b"", b"aaaaa", line),
        (b"data: x\n", b"data: y\n", event),
        (b"x: y\n", b"x: y\n", event),
        (b"event: x\n", b": comment\n", event),
        (b": ", b"comment without an end", line),
    ] {
        let (error, most) = feed_endlessly(first, piece, 1000);
        assert_eq!(error, Some(expected));
        assert!(
            most <= 1002,
            "no more than the event and a line end: {most}"
        );
    }
}

#[test]
fn comments_and_blank_lines_may_go_on_for_ever() {
    for piece in [
        &b": keep-alive\n"[..],
        b": keep-alive\n\n",
        b"\n",
        b"\r",
        b"\r\n",
        b": a\r\n\r\n",
    ] {
        let (error, most) = feed_endlessly(b"", piece, 1000);
        assert_eq!(error, None);
        assert!(most < 20, "{most}");
    }
}

#[test]
fn an_event_of_just_the_limit_passes_in_one_piece_and_in_many() {
    let event = b"data: 0123456789\n\n";
    for (limit, passes) in [(event.len() - 1, true), (event.len() - 2, false)] {
        for size in [1, 3, event.len()] {
            let mut decoder = Decoder::with_limits(Limits {
                line: limit,
                event: limit,
            });
            event
                .chunks(size)
                .for_each(|piece| decoder.feed(Bytes::copy_from_slice(piece)));
            assert_eq!(
                matches!(decoder.poll(), Some(Ok(_))),
                passes,
                "limit {limit}, pieces of {size}"
            );
        }
    }
}

#[test]
fn a_later_event_in_one_piece_has_the_same_limits() {
    let long = "x".repeat(30);
    for (event, limits, expected) in [
        (
            format!("data: {long}\n\n"),
            (20, 100),
            DecodeError::LineTooLong { limit: 20 },
        ),
        (
            format!("event: {long}\ndata: x\n\n"),
            (20, 100),
            DecodeError::LineTooLong { limit: 20 },
        ),
        (
            format!("event: {long}\ndata: {long}\n\n"),
            (100, 50),
            DecodeError::EventTooLong { limit: 50 },
        ),
    ] {
        let mut decoder = Decoder::with_limits(Limits {
            line: limits.0,
            event: limits.1,
        });
        decoder.feed(Bytes::from(format!("data: first\n\n{event}")));
        assert_eq!(decoder.poll().unwrap().unwrap().data(), "first");
        assert_eq!(
            decoder
                .poll()
                .unwrap()
                .map(|event| event.data().into_owned()),
            Err(expected),
            "{event:?}"
        );
        assert_eq!(
            decoder.finish(),
            Err(Truncated),
            "a failed decoder counts as truncated"
        );
    }
}

#[test]
fn event_within_a_chunk_is_not_copied() {
    let chunk = Bytes::from_static(b": hi\nevent: e\ndata: one\n\ndata: two\n\n");
    let within = chunk.as_ptr_range();
    let mut decoder = Decoder::new();
    decoder.feed(chunk.clone());
    for data in ["one", "two"] {
        let event = decoder.poll().unwrap().unwrap();
        assert_eq!(event.data(), data);
        for place in [
            event.data_bytes().as_ptr(),
            event.raw().as_ptr(),
            event.to_bytes().as_ptr(),
        ] {
            assert!(within.contains(&place));
        }
        assert_eq!(&event.raw()[event.data_range().unwrap()], data.as_bytes());
    }
    decoder.feed(Bytes::from_static(b"data: a\ndata: b\n\n"));
    assert_eq!(
        decoder.poll().unwrap().unwrap().data_range(),
        None,
        "two data lines"
    );
}

#[test]
fn no_chunk_is_kept_once_it_is_read() {
    let long = "x".repeat(10_000);
    let events = [
        "event: a\ndata: b\n\n",
        "data: b\r\n\r\n",
        "data: b\r\r",
        "id: 1\n\n: c\n",
    ];
    let stream = Bytes::from(
        [&events.concat(), "data: ", &long, "\n\n"]
            .concat()
            .repeat(2),
    );
    for size in [1, 7, 20, 50, 1000, stream.len()] {
        let (mut decoder, mut other) = (Decoder::new(), Decoder::new());
        for piece in stream.chunks(size) {
            let piece = Bytes::copy_from_slice(piece);
            decoder.feed(piece.clone());
            while let Some(event) = decoder.poll() {
                event.unwrap();
            }
            assert!(piece.is_unique(), "polled in pieces of {size}");
            let flow = other.each(piece.clone(), |_| ControlFlow::<()>::Continue(()));
            assert!(
                flow.unwrap().is_continue() && piece.is_unique(),
                "lent in pieces of {size}"
            );
        }
    }
}

#[test]
fn long_event_across_chunks_is_not_copied() {
    let long = "x".repeat(10_000);
    let stream = Bytes::from(format!(
        "data: {long}\n\ndata: {long}\r\n\r\ndata: short\n\n"
    ));
    for size in [1000, 9000, 10_009, 15_000] {
        let (mut decoder, mut seen) = (Decoder::new(), Vec::new());
        for at in (0..stream.len()).step_by(size) {
            decoder.feed(stream.slice(at..stream.len().min(at + size)));
            while let Some(event) = decoder.poll() {
                let event = event.unwrap();
                let is_long = event.raw().len() > 4096;
                assert!(!is_long || event.to_bytes().as_ptr() == event.raw().as_ptr());
                seen.push(event.data().into_owned());
            }
            assert!(decoder.buffered() < 10_020, "what is left of one event");
        }
        assert_eq!(seen, [&long, &long, "short"], "pieces of {size}");
    }
}

#[test]
fn invalid_utf_8_is_replaced_and_reported() {
    let mut decoder = Decoder::new();
    decoder.feed(Bytes::from_static(
        b"data: a\xffb\n\ndata: a\xc3\xa9\n\nevent: \xff\ndata: c\n\nevent: \xff\ndata: d\n\n\
          event: e\ndata: e\n\nevent: e\ndata: \xff\n\n",
    ));
    for (name, data, replaced) in [
        ("message", "a\u{fffd}b", true),
        ("message", "a\u{e9}", false),
        ("\u{fffd}", "c", true),
        ("\u{fffd}", "d", true),
        ("e", "e", false),
        ("e", "\u{fffd}", true),
    ] {
        let event = decoder.poll().unwrap().unwrap();
        assert_eq!(
            (&*event.name(), &*event.data(), event.is_replaced()),
            (name, data, replaced)
        );
    }
}

/// An event keeps its meaning when it is moved from inside one stream to the start of another.
#[test]
fn no_raw_event_begins_with_a_byte_order_mark() {
    let second = "\u{feff}event: x\n: c\n\u{feff}\nid\n\u{feff}\ndata: b\n\n";
    let stream = Bytes::from(format!("\u{feff}\u{feff}data: x\ndata: a\n\n{second}"));
    for cut in 0..=stream.len() {
        let (mut decoder, mut seen) = (Decoder::new(), Vec::new());
        for piece in [stream.slice(..cut), stream.slice(cut..)] {
            decoder.feed(piece);
            while let Some(event) = decoder.poll() {
                let event = event.unwrap();
                seen.push((
                    event.name().into_owned(),
                    String::from_utf8(event.raw().to_vec()).unwrap(),
                ));
            }
        }
        let raws = ["data: a\n\n", "id\n\u{feff}\ndata: b\n\n"];
        assert_eq!(
            seen,
            raws.map(|raw| ("message".to_owned(), raw.to_owned())),
            "cut at {cut}"
        );
    }
}
