//! The test vectors, with every chunking.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use sluicegate_sse::{Decoder, EventName, comment, encode};

use crate::{Seen, decode, decode_cut, reference};

#[derive(Deserialize)]
struct Vectors<T> {
    vectors: Vec<T>,
}

#[derive(Deserialize)]
struct DecoderVector {
    name: String,
    chunks: Option<Vec<String>>,
    chunks_b64: Option<Vec<String>>,
    events: Vec<Expected>,
}

#[derive(Deserialize)]
struct Expected {
    #[serde(default = "message")]
    event: String,
    data: String,
    #[serde(default)]
    id: String,
}

fn message() -> String {
    "message".to_owned()
}

impl DecoderVector {
    fn chunks(&self) -> Vec<Bytes> {
        let text = self
            .chunks
            .iter()
            .flatten()
            .map(|text| Bytes::from(text.clone()));
        let coded = self
            .chunks_b64
            .iter()
            .flatten()
            .map(|coded| Bytes::from(STANDARD.decode(coded).unwrap()));
        text.chain(coded).collect()
    }

    fn events(&self) -> Seen {
        self.events
            .iter()
            .map(|event| (event.event.clone(), event.data.clone(), event.id.clone()))
            .collect()
    }
}

fn decoder_vectors() -> Vec<DecoderVector> {
    let read: Vectors<DecoderVector> =
        serde_json::from_str(include_str!("fixtures/sse-decoder-vectors.json")).unwrap();
    assert_eq!(read.vectors.len(), 39);
    read.vectors
}

#[test]
fn each_decoder_vector_as_it_is_cut() {
    for vector in decoder_vectors() {
        let (seen, _) = decode(Decoder::new(), vector.chunks()).unwrap();
        assert_eq!(seen, vector.events(), "{}", vector.name);
    }
}

#[test]
fn each_decoder_vector_cut_at_any_two_places_and_byte_by_byte() {
    for vector in decoder_vectors() {
        let whole = Bytes::from(vector.chunks().concat());
        assert_eq!(
            reference::decode(&whole),
            vector.events(),
            "the reference: {}",
            vector.name
        );
        let every = (0..whole.len()).collect();
        assert_eq!(
            decode_cut(&whole, every).0,
            vector.events(),
            "{}",
            vector.name
        );
        // Long vectors are split in two, short ones in three.
        for first in 0..=whole.len() {
            let seconds = if whole.len() <= 300 {
                first..whole.len()
            } else {
                first..first + 1
            };
            for second in seconds {
                let (seen, _) = decode_cut(&whole, vec![first, second.min(whole.len())]);
                assert_eq!(
                    seen,
                    vector.events(),
                    "{} cut at {first} and {second}",
                    vector.name
                );
            }
        }
    }
}

#[derive(Deserialize)]
struct EncoderVector {
    event: Option<String>,
    data: Option<String>,
    comment: Option<String>,
    wire: Option<String>,
    error: Option<String>,
}

#[test]
fn each_encoder_vector() {
    let read: Vectors<EncoderVector> =
        serde_json::from_str(include_str!("fixtures/sse-encoder-vectors.json")).unwrap();
    assert_eq!(read.vectors.len(), 10);
    for vector in read.vectors {
        let mut out = Vec::new();
        match (
            &vector.comment,
            vector.event.as_deref().map(EventName::new).transpose(),
        ) {
            (Some(text), _) => comment(text, &mut out),
            (None, Ok(name)) => encode(name, &vector.data.unwrap(), &mut out),
            (None, Err(_)) => {
                assert!(vector.error.is_some());
                continue;
            }
        }
        assert_eq!(Some(String::from_utf8(out).unwrap()), vector.wire);
    }
}
