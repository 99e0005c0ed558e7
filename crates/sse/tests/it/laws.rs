//! Properties that hold for any stream.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use sluicegate_sse::{Decoder, EventName, comment, encode};

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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_split_gives_the_same_events(stream in hostile_stream(), cuts in vec(any::<Index>(), 0..8)) {
        let cuts = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        prop_assert_eq!(decode_cut(&stream, cuts), decode_cut(&stream, vec![]));
    }

    #[test]
    fn the_decoder_agrees_with_the_standards_own_steps(stream in hostile_stream()) {
        prop_assert_eq!(decode_cut(&stream, vec![]).0, reference::decode(&stream));
    }

    #[test]
    fn what_is_encoded_is_decoded(events in events(), cuts in vec(any::<Index>(), 0..4)) {
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
