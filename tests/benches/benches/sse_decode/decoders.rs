//! The decoders that are compared. Each reads the same pieces, and returns the sum of the lengths
//! of all data.

use std::borrow::Cow;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use eventsource_stream::EventStream;
use futures_core::Stream;
use memchr::memchr_iter;
use sse::{Decoder, Event};
use sse_core::{SseDecoder, SseEvent, SseStream};
use sse_stream::SseByteStream;

/// A decoder, with the name of its column.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) decode: fn(&[Bytes]) -> usize,
}

/// All of them, in the order of the columns.
pub(crate) const COLUMNS: [Column; 8] = [
    column("lent bytes", lent_bytes),
    column("lent text", lent_text),
    column("owned text", owned_text),
    column("`sse-stream`", sse_stream),
    column("`sse-core`", sse_core),
    column("`sseer`", sseer),
    column("`eventsource-stream`", eventsource_stream),
    column("line scan", line_scan),
];

/// Columns of this crate.
pub(crate) const LENT_TEXT: usize = 1;
pub(crate) const OWNED_TEXT: usize = 2;
/// The columns of other crates.
pub(crate) const PEERS: [usize; 4] = [3, 4, 5, 6];

const fn column(name: &'static str, decode: fn(&[Bytes]) -> usize) -> Column {
    Column { name, decode }
}

fn lent_bytes(pieces: &[Bytes]) -> usize {
    let mut decoder = Decoder::new();
    let mut sum = 0;
    for piece in pieces {
        decoder.feed(piece.clone());
        while let Some(event) = decoder.poll() {
            sum += black_box(event.expect("short events").data_bytes()).len();
        }
    }
    sum
}

fn lent_text(pieces: &[Bytes]) -> usize {
    each(pieces, |event| black_box(event.data()).len())
}

fn owned_text(pieces: &[Bytes]) -> usize {
    each(pieces, |event| black_box(Owned::from(event)).data().len())
}

fn each(pieces: &[Bytes], mut length: impl FnMut(Event<'_>) -> usize) -> usize {
    let mut decoder = Decoder::new();
    let mut sum = 0;
    for piece in pieces {
        let flow: ControlFlow<()> = decoder
            .each(piece.clone(), |event| {
                sum += length(event);
                ControlFlow::Continue(())
            })
            .expect("short events");
        assert!(flow.is_continue());
    }
    sum
}

/// An event that outlives the decoder: its bytes, which are a slice of the piece if they are within
/// one, and where its name and data are in them. Both are UTF-8.
struct Owned {
    bytes: Bytes,
    #[allow(dead_code, reason = "it is found, as the others find it")]
    name: Range<usize>,
    data: Range<usize>,
}

impl Owned {
    fn data(&self) -> &[u8] {
        &self.bytes[self.data.clone()]
    }
}

impl From<Event<'_>> for Owned {
    fn from(event: Event<'_>) -> Self {
        let place = |part: Cow<'_, str>| match part {
            Cow::Borrowed(text) => {
                let at = text
                    .as_ptr()
                    .addr()
                    .checked_sub(event.raw().as_ptr().addr())?;
                let end = at.checked_add(text.len())?;
                (end <= event.raw().len()).then_some(at..end)
            }
            Cow::Owned(_) => None,
        };
        let name = place(event.name()).unwrap_or_default();
        match place(event.data()) {
            Some(data) => Self {
                bytes: event.to_bytes(),
                name,
                data,
            },
            // Data of several lines, and data with replaced characters, is put together.
            None => {
                let bytes = Bytes::from(event.data().into_owned());
                let data = 0..bytes.len();
                Self { bytes, name, data }
            }
        }
    }
}

fn sse_stream(pieces: &[Bytes]) -> usize {
    drain(SseByteStream::new(Ready(pieces.iter())), |event| {
        let event = black_box(event.expect("valid events"));
        event.data.as_deref().unwrap_or_default().len()
    })
}

fn sse_core(pieces: &[Bytes]) -> usize {
    // The default limit is less than the largest event.
    let mut stream = SseStream::with_decoder(SseDecoder::with_limit(LIMIT));
    stream.attach(Ready(pieces.iter()));
    drain(stream, |event| {
        match black_box(event.expect("valid events")) {
            SseEvent::Message(event) => event.data.len(),
            SseEvent::Retry(_) => 0,
        }
    })
}

fn sseer(pieces: &[Bytes]) -> usize {
    let events = sseer::event_stream::EventStream::new(Ready(pieces.iter()));
    drain(events, |event| {
        black_box(event.expect("valid events")).data.len()
    })
}

fn eventsource_stream(pieces: &[Bytes]) -> usize {
    drain(EventStream::new(Ready(pieces.iter())), |event| {
        black_box(event.expect("valid events")).data.len()
    })
}

/// The lower bound for any decoder: finding each LF.
fn line_scan(pieces: &[Bytes]) -> usize {
    pieces
        .iter()
        .map(|piece| memchr_iter(b'\n', piece).map(black_box).count())
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
            Poll::Pending => unreachable!("the pieces are always ready"),
        }
    }
}

/// The default limit of `sse`, which `sse-core` gets too.
const LIMIT: NonZeroUsize = NonZeroUsize::new(16 << 20).expect("not zero");

/// A stream of pieces that is always ready.
struct Ready<'a>(std::slice::Iter<'a, Bytes>);

impl Stream for Ready<'_> {
    type Item = Result<Bytes, std::io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().cloned().map(Ok))
    }
}
