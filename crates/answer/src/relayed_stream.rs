//! Reads a stream that is relayed to a client of the upstream's protocol.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use engine::EngineError;
use relay::{End, Guard, RelayProtocol};
use upstream::IncomingBody;

use crate::asked::Asked;

/// A stream that is being relayed.
#[derive(Debug)]
pub struct Relay<S> {
    /// The guard that validates the stream.
    pub guard: Guard<S>,
    /// The first bytes for the client, until they are written.
    pub opening: Option<Vec<u8>>,
    /// The end of the stream, if it was already read.
    pub end: Option<End>,
    /// The failure that follows the first bytes, if it was already read.
    failure: Option<EngineError>,
    /// The rest of the body.
    pub body: IncomingBody,
}

impl<S: RelayProtocol> Relay<S> {
    /// Reads a stream up to its first content, and notes in `asked` that it has read an event before. The
    /// events before the content are kept until then, up to 1 MiB. The usage of a stream that fails, or is
    /// given up, before any content is passed to `asked` too.
    ///
    /// # Errors
    /// When it fails before any content.
    pub async fn begin(
        first: Bytes,
        body: IncomingBody,
        relay_protocol: S,
        model: &str,
        asked: &Asked,
    ) -> Result<Self, EngineError> {
        let mut this = Self {
            guard: Guard::new(relay_protocol, model.to_owned()),
            opening: None,
            end: None,
            failure: None,
            body,
        };
        let mut opening = Vec::new();
        let mut read = this.feed(first, &mut opening);
        while matches!(read, Ok(None)) && !this.guard.has_content() && opening.len() <= MAX_OPENING
        {
            if !opening.is_empty() {
                asked.set_opened();
            }
            // The wait may be given up.
            asked.reported.set_usage(this.guard.usage());
            read = poll_fn(|cx| this.poll_feed(cx, &mut opening)).await;
        }
        match read {
            Ok(end) => this.end = end,
            // It came with the first content, and the client gets both, as if it had come later.
            Err(error) if this.guard.has_content() => this.failure = Some(error),
            Err(error) => {
                asked.reported.set_usage(this.guard.usage());
                return Err(error);
            }
        }
        this.opening = Some(opening);
        Ok(this)
    }

    /// Reads the next chunk and appends the events that it completes to `out`. Returns the end of
    /// the stream, if it was read.
    ///
    /// # Errors
    /// When the stream fails.
    pub fn poll_feed(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Option<End>, EngineError>> {
        if let Some(error) = self.failure.take() {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(match ready!(self.body.poll_chunk(cx))? {
            Some(chunk) => self.feed(chunk, out),
            None => self.guard.finish(out).map(Some),
        })
    }

    /// Validates a chunk. Any event or comment in it restarts the idle timeout, even if it is not
    /// forwarded.
    fn feed(&mut self, chunk: Bytes, out: &mut Vec<u8>) -> Result<Option<End>, EngineError> {
        let before = self.guard.signs_of_life();
        let end = self.guard.feed(chunk, out)?;
        let is_alive = self.guard.signs_of_life() > before;
        self.body.note_read(is_alive, self.guard.buffered())?;
        Ok(end)
    }
}

/// The most bytes of events without content that are kept, which is as much as an incomplete event
/// may take without counting towards the budget. The events that open a stream of Responses repeat
/// the instructions and the tools of the request.
const MAX_OPENING: usize = 1 << 20;
