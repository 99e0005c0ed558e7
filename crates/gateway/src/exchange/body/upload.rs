//! Reads request bodies within limits of size, time and memory.

use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use coding::{Coding, Decoder};
use config::Limits;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, timeout_at};

use super::budget::Share;
use super::pieces::Pieces;
use crate::connection::client_body::{BodyError, ClientBody};
use crate::exchange::refusal::Refusal;

/// A completely read body, and its share of the budget.
#[derive(Clone, Debug)]
pub struct Upload {
    /// The complete body.
    pub bytes: Bytes,
    pub(crate) share: Share,
}

/// A request body that is read chunk by chunk.
pub struct Incoming {
    source: Source,
    /// The decoder of a compressed body, until its end.
    decoder: Option<Decoder>,
    /// The share of the budget, which grows while the body is read.
    pub(crate) share: Share,
}

/// A body as it is received.
struct Source {
    body: ClientBody,
    left: usize,
    idle: Duration,
    /// The time by which the next chunk must arrive to keep the minimum rate; each chunk extends
    /// it.
    due: Instant,
    /// The minimum rate, in bytes per second.
    rate: u64,
    /// The time over which the rate is measured: bytes sent before it do not count.
    window: Duration,
    deadline: Instant,
}

impl Incoming {
    /// Prepares to read a body of at most `limit` bytes into its `share` of the memory; its timeouts
    /// start now.
    pub fn new(body: ClientBody, limit: usize, limits: &Limits, share: Share) -> Self {
        let now = Instant::now();
        let source = Source {
            body,
            left: limit,
            idle: limits.body_idle,
            due: now + limits.body_grace,
            rate: limits.body_rate.as_u64().max(1),
            window: limits.body_grace,
            deadline: now + limits.body_timeout,
        };
        Self {
            source,
            decoder: None,
            share,
        }
    }

    /// Decodes the body while it is read. The limit then also applies to the decoded body.
    pub(crate) fn with_coding(self, coding: Option<Coding>) -> Self {
        let decoder = coding.map(|coding| Decoder::new(coding, self.source.left));
        Self { decoder, ..self }
    }

    /// Reads the next chunk, decoded; `None` at the end. Returns 413 over the limit, 408 on a timeout,
    /// 503 if the budget is exhausted, and 400 if the body is truncated or cannot be decoded.
    pub(crate) async fn next_chunk(&mut self) -> Result<Option<Bytes>, Refusal> {
        while let Some(decoder) = &mut self.decoder {
            // The decoder counts too. It takes more once it has read how much it needs.
            let memory = decoder.memory();
            let piece = decoder.next_piece()?;
            self.share.grow(decoder.memory() - memory)?;
            if let Some(piece) = piece {
                self.share.grow(piece.len())?;
                // All pieces of a chunk are at hand.
                consume_budget().await;
                return Ok(Some(piece));
            }
            if let Some(chunk) = self.source.next_chunk().await? {
                decoder.push(chunk);
            } else {
                decoder.finish()?;
                self.share.shrink(decoder.memory());
                self.decoder = None;
            }
        }
        let chunk = self.source.next_chunk().await?;
        self.share.grow(chunk.as_ref().map_or(0, Bytes::len))?;
        Ok(chunk)
    }

    /// Reads the complete body. Returns the same errors as `Incoming::next_chunk`.
    pub async fn collect(mut self) -> Result<Upload, Refusal> {
        let declared = self.source.body.size_hint().exact();
        let declared = declared.filter(|_| self.decoder.is_none());
        let declared = declared.and_then(|length| usize::try_from(length).ok());
        let declared = declared.filter(|length| *length <= self.source.left);
        let mut pieces = Pieces::expecting(declared);
        while let Some(chunk) = self.next_chunk().await? {
            pieces.push(chunk);
        }
        Ok(Upload {
            bytes: pieces.join(),
            share: self.share,
        })
    }
}

impl Source {
    /// Receives the next chunk; `None` at the end. Returns the errors of [`Incoming::next_chunk`].
    async fn next_chunk(&mut self) -> Result<Option<Bytes>, Refusal> {
        while !self.body.is_end_stream() {
            let frame = match self.frame_at_hand().await {
                Some(frame) => frame,
                None => {
                    let until = self.deadline.min(self.due).min(Instant::now() + self.idle);
                    timeout_at(until, self.body.frame())
                        .await
                        .map_err(|_| Refusal::slow_upload())?
                }
            };
            let Some(frame) = frame else { return Ok(None) };
            let Ok(chunk) = frame.map_err(|error| body_error(&*error))?.into_data() else {
                continue;
            };
            self.left = self
                .left
                .checked_sub(chunk.len())
                .ok_or_else(Refusal::too_large)?;
            if !self.body.is_end_stream() {
                let paid = Duration::from_secs_f64(chunk.len() as f64 / self.rate as f64);
                self.due = (self.due + paid).min(Instant::now() + self.window);
            }
            return Ok(Some(chunk));
        }
        Ok(None)
    }

    /// Returns the next frame or the end if the connection has it at hand, or `None`. hyper reads a
    /// frame only after it was asked for the first time, so it is asked twice, without the cost of
    /// registering a timeout in between.
    async fn frame_at_hand(&mut self) -> Option<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut was_asked = false;
        poll_fn(|cx| match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(frame) => Poll::Ready(Some(frame)),
            Poll::Pending if was_asked => Poll::Ready(None),
            Poll::Pending => {
                was_asked = true;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        })
        .await
    }
}

/// Returns the refusal for a body that failed: the client has disconnected, or its HTTP is
/// malformed.
fn body_error(error: &(dyn Error + 'static)) -> Refusal {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref().is_some_and(is_connection_error) {
            return Refusal::client_gone();
        }
        cause = error.source();
    }
    Refusal::broken_upload()
}

/// Returns true if the connection failed, rather than the bytes received over it being malformed.
fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, TimedOut, UnexpectedEof,
    };
    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | TimedOut | UnexpectedEof
    )
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::task::Context;

    use bytesize::ByteSize;
    use futures_util::{Stream, StreamExt};
    use http_body_util::StreamBody;

    use super::*;
    use crate::connection::client_body::{client_body, whole_client_body};
    use crate::exchange::body::budget::Budget;

    const LONG: Duration = Duration::from_secs(1000);

    /// A body that returns these chunks and then ends, or stalls forever if the flag is set.
    struct Script(Vec<&'static [u8]>, bool);

    impl Body for Script {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match (self.0.is_empty(), self.1) {
                (false, _) => {
                    Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(self.0.remove(0))))))
                }
                (true, false) => Poll::Ready(None),
                (true, true) => Poll::Pending,
            }
        }
    }

    fn script(chunks: Vec<&'static [u8]>, stalls: bool) -> ClientBody {
        client_body(Script(chunks, stalls))
    }

    /// A budget that one key can take completely.
    fn budget(bytes: u64) -> Budget {
        Budget::new(bytes, bytes)
    }

    async fn code(body: ClientBody, limit: usize, budget: &Budget) -> Result<Bytes, &'static str> {
        decoded(body, None, limit, budget).await
    }

    async fn decoded(
        body: ClientBody,
        coding: Option<Coding>,
        limit: usize,
        budget: &Budget,
    ) -> Result<Bytes, &'static str> {
        let limits = Limits {
            body_idle: Duration::from_secs(1),
            ..Limits::default()
        };
        let upload = Incoming::new(body, limit, &limits, budget.share("key"))
            .with_coding(coding)
            .collect()
            .await;
        upload
            .map(|upload| upload.bytes)
            .map_err(|refusal| refusal.error.code)
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_is_exact_and_pieces_are_joined_in_order() {
        let budget = budget(1 << 20);
        assert_eq!(
            code(script(vec![b"ab", b"", b"c", b"de"], false), 5, &budget).await,
            Ok(Bytes::from("abcde"))
        );
        assert_eq!(
            code(script(vec![b"ab", b"cd", b"ef"], false), 5, &budget).await,
            Err("request_too_large")
        );
        assert_eq!(
            code(whole_client_body(&b"abcdef"[..]), 5, &budget).await,
            Err("request_too_large")
        );
    }

    /// The limit is for the encoded and for the decoded body, and is exact for both.
    #[tokio::test(start_paused = true)]
    async fn the_limit_is_for_the_decoded_body_too() {
        let budget = budget(16 << 20);
        let zstd = || script(vec![ZSTD_HI], false);
        for (limit, expected) in [
            (15, Ok(Bytes::from("hi"))),
            (14, Err("request_too_large")),
            (1, Err("request_too_large")),
        ] {
            let read = decoded(zstd(), Some(Coding::Zstd), limit, &budget).await;
            assert_eq!(read, expected, "{limit}");
        }
        let bomb = |limit| {
            decoded(
                script(vec![ZSTD_256_KIB], false),
                Some(Coding::Zstd),
                limit,
                &budget,
            )
        };
        assert_eq!(
            bomb(256 << 10).await.map(|bytes| bytes.len()),
            Ok(256 << 10)
        );
        assert_eq!(bomb((256 << 10) - 1).await, Err("request_too_large"));
    }

    /// The decoder and what it has decoded count toward the budget, and the decoder no longer once the
    /// body is complete.
    #[tokio::test(start_paused = true)]
    async fn decoded_bytes_take_the_budget() {
        let limits = Limits::default();
        let upload = |budget: &Budget| {
            Incoming::new(
                script(vec![ZSTD_256_KIB], false),
                1 << 20,
                &limits,
                budget.share("key"),
            )
            .with_coding(Some(Coding::Zstd))
            .collect()
        };
        let of_decoder = budget(256 << 10);
        assert_eq!(
            upload(&of_decoder).await.unwrap_err().error.code,
            "service_unavailable"
        );
        // The window has 2 MiB (RFC 8878 §3.1.1.1.2).
        let budget = budget(3 << 20);
        let held = upload(&budget).await.unwrap();
        assert_eq!(held.bytes.len(), 256 << 10);
        let other = budget.share("key");
        other.grow((3 << 20) - (256 << 10)).unwrap();
        assert!(other.grow(1).is_err());
    }

    /// `hi` with a checksum: `printf hi | zstd`, and a window of 8 MiB.
    const ZSTD_HI: &[u8] = b"\x28\xb5\x2f\xfd\x04\x68\x11\0\0hi\xfa\x38\x26\xea";
    /// Two blocks that repeat a space 128 Ki times (RFC 8878 §3.1.1.2), in a frame with a window of 2 MiB.
    const ZSTD_256_KIB: &[u8] = b"\x28\xb5\x2f\xfd\0\x58\x02\0\x10\x20\x03\0\x10\x20";

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stalls_is_given_up() {
        let budget = budget(1 << 20);
        let started = Instant::now();
        assert_eq!(
            code(script(vec![b"ab"], true), 5, &budget).await,
            Err("request_timeout")
        );
        assert_eq!(started.elapsed(), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_has_its_time_however_steadily_it_comes() {
        let budget = budget(1 << 20);
        let limits = Limits {
            body_rate: ByteSize::b(1),
            body_timeout: Duration::from_secs(50),
            ..Limits::default()
        };
        let started = Instant::now();
        let late = Incoming::new(slow(100), 100, &limits, budget.share("key"))
            .collect()
            .await;
        assert_eq!(
            (late.unwrap_err().error.code, started.elapsed().as_secs()),
            ("request_timeout", 50)
        );
    }

    /// Returns a body of single bytes, one per second.
    fn slow(bytes: usize) -> ClientBody {
        client_body(StreamBody::new(slow_frames(bytes)))
    }

    fn slow_frames(bytes: usize) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
        futures_util::stream::iter(0..bytes).then(|_| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(Frame::data(Bytes::from_static(b"x")))
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_keeps_its_pace_or_is_given_up() {
        let budget = budget(1 << 20);
        let limits = |rate| Limits {
            body_rate: ByteSize::b(rate),
            body_timeout: LONG,
            ..Limits::default()
        };
        let at_pace = Incoming::new(slow(100), 100, &limits(1), budget.share("key"))
            .collect()
            .await;
        assert_eq!(at_pace.unwrap().bytes.len(), 100);
        let started = Instant::now();
        let behind = Incoming::new(slow(100), 100, &limits(2), budget.share("key"))
            .collect()
            .await;
        assert_eq!(behind.unwrap_err().error.code, "request_timeout");
        // Ten seconds of grace, and half a second for each byte received.
        assert_eq!(started.elapsed().as_secs(), 19);
    }

    #[tokio::test(start_paused = true)]
    async fn memory_goes_back_to_the_budget() {
        let budget = budget(2048);
        let limits = Limits::default();
        let held = Incoming::new(
            script(vec![&[0; 2000]], false),
            4096,
            &limits,
            budget.share("key"),
        )
        .collect()
        .await
        .unwrap();
        assert_eq!(
            code(script(vec![b"a"], false), 5, &budget).await,
            Err("service_unavailable")
        );
        drop(held);
        assert!(code(script(vec![b"a"], false), 5, &budget).await.is_ok());
    }

    /// The rate is measured over the last ten seconds: a body that came fast at first cannot drip
    /// from then on.
    #[tokio::test(start_paused = true)]
    async fn l03_bytes_before_the_rate_window_do_not_count() {
        let limits = Limits {
            body_rate: ByteSize::b(10),
            body_timeout: LONG,
            ..Limits::default()
        };
        let fast = futures_util::stream::iter([Ok(Frame::data(Bytes::from_static(&[0; 5000])))]);
        let body = client_body(StreamBody::new(fast.chain(slow_frames(100))));
        let started = Instant::now();
        let share = budget(1 << 20).share("key");
        let late = Incoming::new(body, 1 << 20, &limits, share).collect().await;
        assert_eq!(late.unwrap_err().error.code, "request_timeout");
        // Ten seconds, and a tenth of a second for each of the eleven bytes in them.
        assert_eq!(started.elapsed().as_millis(), 11_100);
    }

    #[tokio::test(start_paused = true)]
    async fn small_pieces_take_no_more_of_the_budget_than_they_are() {
        let budget = budget(1024);
        assert!(
            code(script(vec![b"a"; 1000], false), 2000, &budget)
                .await
                .is_ok()
        );
    }
}
