//! Chunk boundaries never change events: checked for the fixture streams of every protocol with
//! each kind of line end.

use std::cmp::Reverse;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bytes::Bytes;
use sluicegate_sse::Decoder;

use crate::{Seen, decode_cut, reference};

/// A stream with one kind of line end, and its expected events.
struct Stream {
    name: String,
    bytes: Bytes,
    events: Seen,
}

/// Splitting a stream in two at any byte, even within a line end or a character, changes no event.
#[test]
fn s01_one_cut_at_any_byte_changes_no_event() {
    for stream in streams() {
        for cut in 0..=stream.bytes.len() {
            stream.assert_same_when_split(&[cut]);
        }
    }
}

/// Splitting streams into chunks of random sizes changes no event, in a million trials.
#[test]
fn s01_a_million_random_chunkings_change_no_event() {
    const CHUNKINGS: usize = 1_000_000;
    let (streams, mut rng, mut cuts) = (streams(), Rng(1), Vec::new());
    for stream in streams.iter().cycle().take(CHUNKINGS) {
        rng.cuts(stream.bytes.len(), &mut cuts);
        stream.assert_same_when_split(&cuts);
    }
}

/// Splitting a stream in three at any two bytes changes no event.
#[test]
#[ignore = "minutes of work: `cargo test -p sluicegate-sse --release -- --ignored every_two_cuts`"]
fn every_two_cuts_change_no_event() {
    let (streams, next) = (streams(), AtomicUsize::new(0));
    // Each of two threads takes the longest remaining stream.
    let work = || {
        let mine = std::iter::from_fn(|| streams.get(next.fetch_add(1, Ordering::Relaxed)));
        mine.map(Stream::assert_same_at_every_two_cuts).sum::<u64>()
    };
    let splits: u64 = thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads.map(|thread| thread.join().unwrap()).iter().sum()
    });
    assert_eq!(splits, SPLITS, "as many as there are");
}

impl Stream {
    /// Creates a stream with the events that the reference decoder finds in it.
    fn new(name: &str, text: &str) -> Self {
        let stream = Self {
            name: name.to_owned(),
            bytes: text.to_owned().into(),
            events: reference::decode(text.as_bytes()),
        };
        assert!(!stream.events.is_empty(), "{name} has events");
        assert_eq!(
            decode_cut(&stream.bytes, vec![]).0,
            stream.events,
            "{name} uncut"
        );
        stream
    }

    /// Decodes the stream in chunks that end at the sorted `cuts` and compares each event with the
    /// expected one.
    fn assert_same_when_split(&self, cuts: &[usize]) {
        let (mut decoder, mut expected, mut from) = (Decoder::new(), self.events.iter(), 0);
        for to in cuts.iter().copied().chain([self.bytes.len()]) {
            decoder.feed(self.bytes.slice(from..to));
            from = to;
            while let Some(event) = decoder.poll() {
                let event = event.unwrap();
                let is_expected = expected.next().is_some_and(|(name, data, id)| {
                    *name == event.name() && *data == event.data() && id == event.last_event_id()
                });
                assert!(is_expected, "{} cut at {cuts:?}: {event:?}", self.name);
            }
        }
        assert_eq!(
            expected.len(),
            0,
            "{} cut at {cuts:?}: events are lost",
            self.name
        );
    }

    /// Splits the stream at every pair of positions. Returns the number of pairs.
    fn assert_same_at_every_two_cuts(&self) -> u64 {
        let mut splits = 0;
        for first in 1..self.bytes.len() {
            for second in first + 1..self.bytes.len() {
                self.assert_same_when_split(&[first, second]);
                splits += 1;
            }
        }
        splits
    }
}

/// Returns every fixture stream with LF, CRLF and CR line ends, longest first.
fn streams() -> Vec<Stream> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures");
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut streams = Vec::new();
    for file in files.filter(|path| path.extension().is_some_and(|extension| extension == "sse")) {
        let (name, text) = (
            file.file_stem().unwrap().to_string_lossy(),
            fs::read_to_string(&file).unwrap(),
        );
        for (form, end) in [("LF", "\n"), ("CRLF", "\r\n"), ("CR", "\r")] {
            streams.push(Stream::new(
                &format!("{name} with {form}"),
                &text.replace('\n', end),
            ));
        }
    }
    assert_eq!(streams.len(), 3 * 31, "31 streams of four protocols");
    streams.sort_by_key(|stream| Reverse(stream.bytes.len()));
    streams
}

/// A deterministic pseudo-random generator: xorshift64*.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        usize::try_from((high * bound as u64) >> 32).unwrap()
    }

    /// Generates cuts for chunks that are, at random, all long, all short or mixed.
    fn cuts(&mut self, length: usize, cuts: &mut Vec<usize>) {
        cuts.clear();
        let mean = 4 << self.below(10);
        let mut at = self.below(2 * mean);
        while at < length {
            cuts.push(at);
            at += 1 + if self.below(8) == 0 {
                self.below(3)
            } else {
                self.below(2 * mean)
            };
        }
    }
}

/// Number of pairs over all streams: (length - 1)(length - 2) / 2 for each.
const SPLITS: u64 = 430_960_677;
