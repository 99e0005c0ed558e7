//! Decodes an upstream's reply into events of the neutral model, for clients of another protocol.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use engine::{EngineError, TextEvent, TextStream};
use futures_core::Stream;
use futures_util::stream;
use translate::outbound::{self, StopFilter, StreamReader};
use upstream::IncomingBody;
use vendor::Protocol;

use crate::answer::Answer;
use crate::asked::Asked;
use crate::reported::Reported;

/// Reads a response up to its first neutral event, and returns the stream of all its events. Any
/// event or comment of the upstream restarts the idle timeout, even if it has no neutral event. The
/// usage is passed to `asked` as soon as it is known.
///
/// # Errors
/// When the upstream fails before its first event.
pub async fn read_stream(
    answer: Answer,
    protocol: Protocol,
    asked: Arc<Asked>,
) -> Result<TextStream, EngineError> {
    let mut stream = match answer {
        Answer::Json(body) => return read_reply(&body, protocol, &asked.reported).map(from_events),
        Answer::Events(first, body) => EventStream::new(protocol, first, body, asked),
    };
    poll_fn(|cx| stream.poll_ready(cx)).await?;
    Ok(Box::pin(stream))
}

/// Reads a complete reply. The usage of one that is rejected is passed to `reported`.
///
/// # Errors
/// When it is not a complete reply of the protocol, or reports a failure.
pub fn read_reply(
    body: &[u8],
    protocol: Protocol,
    reported: &Reported,
) -> Result<Vec<TextEvent>, EngineError> {
    outbound::reply(protocol, body)
        .inspect_err(|_| reported.set_usage(outbound::usage_of_reply(protocol, body)))
}

/// Returns a stream of buffered events.
#[must_use]
pub fn from_events(events: Vec<TextEvent>) -> TextStream {
    Box::pin(stream::iter(events.into_iter().map(Ok)))
}

/// Returns the events up to the first stop sequence of a filter. The stream of the upstream is dropped
/// there, which closes its connection.
#[must_use]
pub fn until_stop(events: TextStream, filter: StopFilter) -> TextStream {
    Box::pin(UntilStop {
        events: Some(events),
        filter,
        ready: VecDeque::new(),
        scratch: Vec::new(),
    })
}

/// A stream that ends at a stop sequence.
struct UntilStop {
    /// `None` once the stream has ended or failed.
    events: Option<TextStream>,
    filter: StopFilter,
    /// Events that have passed the filter and were not yet returned.
    ready: VecDeque<TextEvent>,
    scratch: Vec<TextEvent>,
}

impl Stream for UntilStop {
    type Item = Result<TextEvent, EngineError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        while this.ready.is_empty()
            && let Some(events) = &mut this.events
        {
            match ready!(events.as_mut().poll_next(cx)) {
                Some(Ok(event)) => this.filter.event(event, &mut this.scratch),
                Some(Err(error)) => {
                    this.events = None;
                    return Poll::Ready(Some(Err(error)));
                }
                None => this.events = None,
            }
            this.ready.extend(this.scratch.drain(..));
            if this.filter.has_ended() {
                this.events = None;
            }
        }
        Poll::Ready(this.ready.pop_front().map(Ok))
    }
}

/// An event stream that is decoded as it is read.
struct EventStream {
    reader: StreamReader,
    /// Events that were decoded and not yet returned.
    ready: VecDeque<TextEvent>,
    /// The failure that follows the events in `ready`.
    failure: Option<EngineError>,
    scratch: Vec<TextEvent>,
    /// `None` once the stream has ended or failed.
    body: Option<IncomingBody>,
    asked: Arc<Asked>,
}

impl EventStream {
    fn new(protocol: Protocol, first: Bytes, body: IncomingBody, asked: Arc<Asked>) -> Self {
        let mut this = Self {
            reader: StreamReader::new(protocol),
            ready: VecDeque::new(),
            failure: None,
            scratch: Vec::new(),
            body: Some(body),
            asked,
        };
        this.feed(first);
        this
    }

    /// Reads on until an event is ready or the stream has ended.
    ///
    /// # Errors
    /// When the stream fails with no event before the failure.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), EngineError>> {
        while self.ready.is_empty() {
            let Some(body) = &mut self.body else {
                return Poll::Ready(self.failure.take().map_or(Ok(()), Err));
            };
            match ready!(body.poll_chunk(cx)) {
                Ok(Some(chunk)) => self.feed(chunk),
                Ok(None) => {
                    self.body = None;
                    let ended = self.reader.end(&mut self.scratch);
                    self.record(ended);
                }
                Err(error) => self.record(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Decodes every event that the next chunk of the body completes.
    fn feed(&mut self, chunk: Bytes) {
        let before = self.reader.signs_of_life();
        let mut fed = self.reader.feed(chunk, &mut self.scratch);
        self.asked.reported.set_usage(self.reader.usage());
        if let Some(body) = &mut self.body {
            let is_alive = self.reader.signs_of_life() > before;
            fed = fed.and(body.note_read(is_alive, self.reader.buffered()));
        }
        if self.reader.is_finished()
            && let Some(body) = self.body.take()
        {
            body.drain();
        }
        self.record(fed);
    }

    /// Queues the decoded events, and the failure that follows them, if any.
    fn record(&mut self, outcome: Result<(), EngineError>) {
        self.ready.extend(self.scratch.drain(..));
        if let Err(error) = outcome {
            self.failure = Some(error);
            self.body = None;
        }
    }
}

impl Stream for EventStream {
    type Item = Result<TextEvent, EngineError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        match ready!(this.poll_ready(cx)) {
            Ok(()) => Poll::Ready(this.ready.pop_front().map(Ok)),
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }
}
