//! Another protocol than the client's: what an upstream says, in neutral words.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use engine::{EngineError, TextEvent, TextStream};
use futures_core::Stream;
use http_body::Body as _;
use sse::{Decoder, Limits};
use translate::outbound::{self, Protocol, Reader};

use crate::answer::within;
use crate::{Answer, IncomingBody};

/// Reads an answer up to the first thing that the model does, and hands out all that it does.
///
/// # Errors
/// When the upstream failed before anything was said, or says nothing for as long as `patience`.
pub async fn listen(answer: Answer, protocol: Protocol, patience: Duration) -> Result<TextStream, EngineError> {
    let mut hearing = match answer {
        Answer::Json(body) => return Ok(said(outbound::reply(protocol, &body)?)),
        Answer::Events(first, body) => EventStream::new(protocol, first, body),
    };
    within(patience, poll_fn(|cx| hearing.poll_heard(cx))).await?;
    Ok(Box::pin(hearing))
}

/// Events that are all there.
#[must_use]
pub fn said(events: Vec<TextEvent>) -> TextStream {
    Box::pin(BufferedEvents(events.into()))
}

/// Reads a stream to its end.
///
/// # Errors
/// When it fails, or says nothing for as long as `patience`.
pub(crate) async fn gather(
    protocol: Protocol,
    first: Bytes,
    body: IncomingBody,
    patience: Duration,
) -> Result<Vec<TextEvent>, EngineError> {
    let mut hearing = EventStream::new(protocol, first, body);
    let mut events = Vec::new();
    loop {
        within(patience, poll_fn(|cx| hearing.poll_heard(cx))).await?;
        events.extend(hearing.heard.drain(..));
        if hearing.body.is_none() {
            return hearing.failure.map_or(Ok(events), Err);
        }
    }
}

/// Events that are all there.
struct BufferedEvents(VecDeque<TextEvent>);

impl Stream for BufferedEvents {
    type Item = Result<TextEvent, EngineError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}

/// An event stream that is being read.
struct EventStream {
    decoder: Decoder,
    reader: Reader,
    /// What was heard and not yet handed out, and the failure that comes after it.
    heard: VecDeque<TextEvent>,
    failure: Option<EngineError>,
    scratch: Vec<TextEvent>,
    /// None when there is nothing more to read.
    body: Option<IncomingBody>,
}

impl EventStream {
    fn new(protocol: Protocol, first: Bytes, body: IncomingBody) -> Self {
        let mut decoder = Decoder::with_limits(Limits { line: MAX_EVENT, event: MAX_EVENT });
        decoder.feed(first);
        Self {
            decoder,
            reader: Reader::new(protocol),
            heard: VecDeque::new(),
            failure: None,
            scratch: Vec::new(),
            body: Some(body),
        }
    }

    /// Reads on until something was heard, or there is nothing more to hear.
    ///
    /// # Errors
    /// When it failed and nothing was heard before that.
    fn poll_heard(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), EngineError>> {
        loop {
            if self.heard.is_empty() && self.body.is_some() {
                let decoded = self.decode();
                self.note(decoded);
            }
            if !self.heard.is_empty() {
                return Poll::Ready(Ok(()));
            }
            if self.body.is_none() {
                return Poll::Ready(self.failure.take().map_or(Ok(()), Err));
            }
            let polled = ready!(self.poll_body(cx));
            self.note(polled);
        }
    }

    /// Takes in every event that is whole.
    fn decode(&mut self) -> Result<(), EngineError> {
        while let Some(event) = self.decoder.poll() {
            let event = event.map_err(|error| EngineError::Upstream(format!("malformed event: {error}")))?;
            if event.is_replaced() {
                return Err(EngineError::Upstream("malformed event: invalid UTF-8".to_owned()));
            }
            self.reader.event(&event.data_bytes(), &mut self.scratch)?;
            if self.reader.is_finished() {
                if let Some(body) = self.body.take() {
                    body.drain();
                }
                break;
            }
        }
        Ok(())
    }

    /// Takes in the next piece, or the end.
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), EngineError>> {
        let Some(body) = &mut self.body else { return Poll::Ready(Ok(())) };
        Poll::Ready(match ready!(Pin::new(body).poll_frame(cx)).transpose() {
            Ok(Some(frame)) => {
                if let Ok(piece) = frame.into_data() {
                    self.decoder.feed(piece);
                }
                Ok(())
            }
            Ok(None) => {
                self.body = None;
                self.reader.end(&mut self.scratch)
            }
            Err(error) => Err(error),
        })
    }

    /// Keeps what was heard, and the failure after it.
    fn note(&mut self, outcome: Result<(), EngineError>) {
        self.heard.extend(self.scratch.drain(..));
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
        match ready!(this.poll_heard(cx)) {
            Ok(()) => Poll::Ready(this.heard.pop_front().map(Ok)),
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }
}

/// The longest event that is taken, in bytes.
const MAX_EVENT: usize = 4 << 20;
