//! Properties that hold for any stream.

use std::ops::{ControlFlow, Range};

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use sluicegate_sse::{DecodeError, Decoder, Event, EventName, Limits, comment, encode};

use crate::{decode, decode_cut, reference};

/// Generates bytes from the tokens that are significant in a stream.
fn hostile_stream() -> impl Strategy<Value = Bytes> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "data",
            "event",
            "id",
            "retry",
            ":",
            ": ",
            " ",
            "\n",
            "\r",
            "\r\n",
            "\n\n",
            "data: a\n\n",
            "data:\n",
            "x",
            "\u{feff}",
            "\u{2028}",
            "\u{e9}",
            "\0",
            "data: b\r\n\r\n",
            "event: n\r",
            "id: 7\n",
            ":c\n",
            "event: n\ndata: \u{e9}\n\n",
            "event: n\ndata: a\n\nevent: nn\ndata: a\n\n",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        vec(any::<u8>(), 0..4),
        prop::sample::select(vec![0xc3_u8, 0xe2, 0x82, 0xff, 0xf0, 0x9f])
            .prop_map(|byte| vec![byte]),
    ];
    vec(piece, 0..24).prop_map(|pieces| pieces.concat().into())
}

fn events() -> impl Strategy<Value = Vec<(String, String)>> {
    let name = "[a-z._]{0,8}".prop_map(|name| name);
    let data = "[a-z\u{e9}\u{2028}\u{feff}\0: {}\"\n]{0,12}";
    vec((name, data), 0..8)
}

/// All that an event shows.
type Shown = (String, String, String, Bytes, Option<Range<usize>>, bool);

fn show(event: Event<'_>) -> Shown {
    let raw = event.to_bytes();
    assert_eq!(raw, event.raw());
    (
        event.name().into_owned(),
        event.data().into_owned(),
        event.last_event_id().to_owned(),
        raw,
        event.data_range(),
        event.is_replaced(),
    )
}

/// Decodes pieces with [`Decoder::poll`].
fn polled(decoder: &mut Decoder, pieces: &[Bytes]) -> (Vec<Shown>, Option<DecodeError>) {
    let mut shown = Vec::new();
    for piece in pieces {
        decoder.feed(piece.clone());
        while let Some(event) = decoder.poll() {
            match event {
                Ok(event) => shown.push(show(event)),
                Err(error) => return (shown, Some(error)),
            }
        }
    }
    (shown, None)
}

/// Decodes pieces with [`Decoder::each`], which breaks after the events whose numbers are in `stops`:
/// before the next piece, or to read on without one.
fn lent(
    decoder: &mut Decoder,
    pieces: &[Bytes],
    stops: &[(usize, bool)],
) -> (Vec<Shown>, Option<DecodeError>) {
    let mut shown = Vec::new();
    for piece in pieces {
        let mut piece = piece.clone();
        loop {
            let flow = decoder.each(piece, |event| {
                shown.push(show(event));
                let stop = stops.iter().find(|(number, _)| *number == shown.len());
                stop.map_or(ControlFlow::Continue(()), |(_, reads_on)| {
                    ControlFlow::Break(*reads_on)
                })
            });
            match flow {
                Err(error) => return (shown, Some(error)),
                Ok(ControlFlow::Break(true)) => piece = Bytes::new(),
                Ok(_) => break,
            }
        }
    }
    while let Some(event) = decoder.poll() {
        match event {
            Ok(event) => shown.push(show(event)),
            Err(error) => return (shown, Some(error)),
        }
    }
    (shown, None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_split_gives_the_same_events(stream in hostile_stream(), cuts in vec(any::<Index>(), 0..8)) {
        let cuts = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        prop_assert_eq!(decode_cut(&stream, cuts), decode_cut(&stream, vec![]));
    }

    #[test]
    fn lent_events_equal_polled_events(
        stream in hostile_stream(),
        cuts in vec(any::<Index>(), 0..4),
        stops in vec((0..12_usize, any::<bool>()), 0..3),
        limits in prop_oneof![Just(Limits::default()), (4..24_usize, 4..40_usize).prop_map(|(line, event)| Limits { line, event })],
    ) {
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).chain([0, stream.len()]).collect();
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|cut| stream.slice(cut[0]..cut[1])).collect();
        let (mut one, mut other) = (Decoder::with_limits(limits), Decoder::with_limits(limits));
        let polled = polled(&mut one, &pieces);
        let has_failed = polled.1.is_some();
        prop_assert_eq!(lent(&mut other, &pieces, &stops), polled);
        prop_assert_eq!(one.comments(), other.comments());
        prop_assert_eq!(one.retry(), other.retry());
        prop_assert_eq!(one.last_event_id(), other.last_event_id());
        if !has_failed && stops.is_empty() {
            prop_assert_eq!(one.buffered(), other.buffered());
        }
        prop_assert_eq!(one.finish(), other.finish());
    }

    #[test]
    fn the_decoder_agrees_with_the_standards_own_steps(stream in hostile_stream()) {
        prop_assert_eq!(decode_cut(&stream, vec![]).0, reference::decode(&stream));
    }

    #[test]
    fn encoded_events_survive_a_round_trip(events in events(), cuts in vec(any::<Index>(), 0..4)) {
        let mut wire = Vec::new();
        for (name, data) in &events {
            comment(data, &mut wire);
            encode(EventName::new(name).ok(), data, &mut wire);
        }
        let wire = Bytes::from(wire);
        let (seen, is_whole) = decode_cut(&wire, cuts.iter().map(|cut| cut.index(wire.len() + 1)).collect());
        prop_assert!(is_whole);
        let named = |name: &str| if name.is_empty() { "message".to_owned() } else { name.to_owned() };
        let sent: Vec<_> = events.iter().map(|(name, data)| (named(name), data.clone(), String::new())).collect();
        prop_assert_eq!(seen, sent);
    }

    #[test]
    fn the_raw_bytes_of_the_events_are_the_same_stream(stream in hostile_stream(), cuts in vec(any::<Index>(), 0..4)) {
        let (mut decoder, mut raws) = (Decoder::new(), Vec::new());
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).chain([0, stream.len()]).collect();
        cuts.sort_unstable();
        for cut in cuts.windows(2) {
            decoder.feed(stream.slice(cut[0]..cut[1]));
            while let Some(event) = decoder.poll() {
                raws.push(event.unwrap().to_bytes());
            }
        }
        let names_and_data = |bytes: &Bytes| -> Vec<_> {
            decode_cut(bytes, vec![]).0.into_iter().map(|(name, data, _)| (name, data)).collect()
        };
        let seen = names_and_data(&stream);
        prop_assert_eq!(&names_and_data(&raws.concat().into()), &seen);
        let alone: Vec<_> = raws.iter().flat_map(names_and_data).collect();
        prop_assert_eq!(alone, seen, "each raw event is a complete stream by itself");
        let mut rest = &stream[..];
        for raw in raws {
            let at = rest.windows(raw.len()).position(|window| window == raw);
            prop_assert!(at.is_some(), "raw events appear in order, unchanged");
            rest = &rest[at.unwrap_or_default() + raw.len()..];
        }
    }

    #[test]
    fn the_end_is_whole_or_truncated(events in events(), at in any::<Index>()) {
        let mut wire = Vec::new();
        let mut ends = vec![0];
        for (_, data) in &events {
            encode(None, data, &mut wire);
            ends.push(wire.len());
        }
        let wire = Bytes::from(wire);
        let cut = at.index(wire.len() + 1);
        let (_, is_whole) = decode(Decoder::new(), [wire.slice(..cut)]).unwrap();
        prop_assert_eq!(is_whole, ends.contains(&cut));
    }
}
