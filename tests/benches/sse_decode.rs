//! Decoding speed compared with other crates, over the same bytes: `cargo xtask bench`.
//!
//! The others are adapters of async streams. They are driven over a stream that is always ready, so
//! that only decoding is measured. They return each event's data as a `String`. This crate is
//! measured twice: returning bytes, for a JSON parser that validates their UTF-8 itself; and as
//! validated text.

use std::hint::black_box;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use eventsource_stream::EventStream;
use futures_core::Stream;
use memchr::memchr_iter;
use sse::{Decoder, Event};
use sse_stream::SseByteStream;

fn main() {
    for (corpus, text) in [
        ("ASCII", corpus("The quick brown fox j")),
        ("mixed scripts", corpus("Le café, 東京 ✓")),
    ] {
        println!("\n{corpus}: {EVENTS} events of {EVENT} bytes; GB/s, median of {ROUNDS} rounds");
        println!(
            "ratios: bytes / sse-stream, text / sse-stream, bytes / eventsource-stream, bytes / memchr line scan\n"
        );
        println!(
            "| chunk | bytes | text | sse-stream | eventsource-stream | memchr line scan | ratios |"
        );
        println!("|---|---|---|---|---|---|---|");
        for size in CHUNK_SIZES {
            row(&text, size);
        }
    }
}

/// Measures every decoder over `text` in chunks of `size` bytes. Rounds take turns, so that a slow
/// moment affects all of them.
fn row(text: &Bytes, size: usize) {
    let chunks: Vec<Bytes> = (0..text.len())
        .step_by(size)
        .map(|at| text.slice(at..text.len().min(at + size)))
        .collect();
    let decoders: [fn(&[Bytes]) -> usize; 5] =
        [as_bytes, as_text, sse_stream, eventsource_stream, line_scan];
    let expected = EVENTS * data_length(text);
    for decode in &decoders[..4] {
        assert_eq!(decode(&chunks), expected, "all decoders find the same data");
    }
    let mut times = [[Duration::ZERO; ROUNDS]; 5];
    for round in 0..ROUNDS {
        for (decode, times) in decoders.iter().zip(&mut times) {
            times[round] = timed(|| decode(&chunks));
        }
    }
    let speeds = times.map(|mut times| {
        times.sort_unstable();
        text.len() as f64 / times[ROUNDS / 2].as_secs_f64() / 1e9
    });
    let ratios = [(0, 2), (1, 2), (0, 3), (0, 4)]
        .map(|(one, other)| format!("{:.2}", speeds[one] / speeds[other]));
    let speeds = speeds.map(|speed| format!("{speed:.2}")).join(" | ");
    println!("| {size} B | {speeds} | {} |", ratios.join(" / "));
}

fn as_bytes(chunks: &[Bytes]) -> usize {
    sluicegate(chunks, |event| black_box(event.data_bytes()).len())
}

fn as_text(chunks: &[Bytes]) -> usize {
    sluicegate(chunks, |event| black_box(event.data()).len())
}

fn sluicegate(chunks: &[Bytes], length: impl Fn(Event<'_>) -> usize) -> usize {
    let mut decoder = Decoder::new();
    let mut sum = 0;
    for chunk in chunks {
        decoder.feed(chunk.clone());
        while let Some(event) = decoder.poll() {
            sum += length(event.expect("short events"));
        }
    }
    sum
}

fn sse_stream(chunks: &[Bytes]) -> usize {
    drain(SseByteStream::new(Ready(chunks.iter())), |event| {
        black_box(
            event
                .expect("valid events")
                .data
                .as_deref()
                .unwrap_or_default(),
        )
        .len()
    })
}

fn eventsource_stream(chunks: &[Bytes]) -> usize {
    drain(EventStream::new(Ready(chunks.iter())), |event| {
        black_box(event.expect("valid events").data.as_str()).len()
    })
}

/// The lower bound for any decoder: finding each LF.
fn line_scan(chunks: &[Bytes]) -> usize {
    chunks
        .iter()
        .map(|chunk| memchr_iter(b'\n', chunk).map(black_box).count())
        .sum()
}

/// Polls `stream` to its end and sums up `length` of its items.
fn drain<S: Stream>(stream: S, length: impl Fn(S::Item) -> usize) -> usize {
    let mut stream = pin!(stream);
    let mut context = Context::from_waker(Waker::noop());
    let mut sum = 0;
    loop {
        match stream.as_mut().poll_next(&mut context) {
            Poll::Ready(Some(item)) => sum += length(item),
            Poll::Ready(None) => return sum,
            Poll::Pending => unreachable!("the chunks are always ready"),
        }
    }
}

/// A stream of chunks that is always ready.
struct Ready<'a>(std::slice::Iter<'a, Bytes>);

impl Stream for Ready<'_> {
    type Item = Result<Bytes, std::io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().cloned().map(Ok))
    }
}

/// [`EVENTS`] events of [`EVENT`] bytes as a model streams them, with `text` repeated.
fn corpus(text: &str) -> Bytes {
    let head = "event: response.output_text.delta\n\
        data: {\"type\":\"response.output_text.delta\",\"sequence_number\":1234,\"item_id\":\"msg_0123456789abcdef\",\
        \"output_index\":0,\"content_index\":0,\"delta\":\"";
    let tail = "\"}\n\n";
    let mut event = format!("{head}{text}");
    while event.len() + tail.len() < EVENT {
        event.push('.');
    }
    event.push_str(tail);
    assert_eq!(event.len(), EVENT);
    event.repeat(EVENTS).into()
}

fn data_length(text: &Bytes) -> usize {
    let mut decoder = Decoder::new();
    decoder.feed(text.slice(..EVENT));
    decoder
        .poll()
        .expect("an event")
        .expect("a short one")
        .data()
        .len()
}

/// The duration of `work`.
#[allow(clippy::disallowed_methods)] // A bench reads the clock: time is what it measures.
fn timed(work: impl FnOnce() -> usize) -> Duration {
    let begin = Instant::now();
    black_box(work());
    begin.elapsed()
}

const CHUNK_SIZES: [usize; 3] = [16 << 10, 256, 16];
const EVENT: usize = 210;
const EVENTS: usize = 10_000;
const ROUNDS: usize = 31;
