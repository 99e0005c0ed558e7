//! A response body that holds its record until it is sent.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use telemetry::outcome::Outcome;
use tokio::time::Instant;

use super::{Aborted, Body};
use crate::connection::timer::ConnectionTimer;
use crate::exchange::record::Record;

/// Attaches the record of a request, and the permit that it holds, to the response body: the record
/// ends when the last byte has been handed to the socket. The body is aborted at the deadline, at
/// the end of a shutdown, with a lost lease, and by a revocation of the key that ends its streams.
pub(crate) fn delivered(
    body: Body,
    record: Record,
    deadline: Instant,
    abort: impl Future<Output = Outcome> + Send + 'static,
) -> Body {
    Delivered {
        body,
        timer: record.connection.timer.clone(),
        record: Some(record),
        deadline,
        abort: Box::pin(abort),
    }
    .boxed_unsync()
}

struct Delivered {
    body: Body,
    /// `Some` until the last byte is handed out.
    record: Option<Record>,
    timer: ConnectionTimer,
    deadline: Instant,
    abort: Pin<Box<dyn Future<Output = Outcome> + Send>>,
}

impl Delivered {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        let aborted = |outcome, cause: &str| {
            Poll::Ready(Some(Err(Aborted {
                outcome,
                cause: cause.to_owned(),
            })))
        };
        if let Poll::Ready(outcome) = self.abort.as_mut().poll(cx) {
            let cause = match outcome {
                Outcome::Revoked => "the key was revoked before the response was sent",
                Outcome::EndedByOperator => {
                    "an operator ended the request before its response was sent"
                }
                Outcome::LeaseLost => "the lease of a quota was lost before the response was sent",
                _ => "shutdown before the response was sent",
            };
            return aborted(outcome, cause);
        }
        if self.timer.poll(cx, self.deadline).is_ready() {
            return aborted(
                Outcome::Timeout,
                "request timeout before the response was sent",
            );
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }
}

impl HttpBody for Delivered {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        let frame = ready!(self.poll_next(cx));
        let is_last = !matches!(frame, Some(Ok(_))) || self.body.is_end_stream();
        if is_last && let Some(mut record) = self.record.take() {
            match &frame {
                Some(Err(aborted)) => {
                    // The client notices by the closed connection; the status and bytes sent so far
                    // stay correct.
                    record.outcome = Some(aborted.outcome);
                    record.cause = Some(aborted.cause.clone());
                }
                _ => record.end(Outcome::Completed),
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Delivered {
    fn drop(&mut self) {
        // The client disconnected before the end; that outweighs the outcome of the engine.
        if let Some(record) = self.record.as_mut().filter(|record| record.code.is_none()) {
            record.outcome = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::time::Duration;

    use policy::lifecycle::{Lifecycle, Phase};
    use policy::limit::Limiter;
    use telemetry::metrics::Metrics;

    use super::*;
    use crate::exchange::body::buffered::{Buffered, MAX_FRAME};
    use crate::exchange::body::whole;

    /// A response body of three frames, and all that its record reports to.
    struct Harness {
        limiter: Limiter,
        lifecycle: Lifecycle,
        metrics: Arc<Metrics>,
        body: Body,
    }

    const SPAN: Duration = Duration::from_secs(9);

    impl Harness {
        fn new() -> Self {
            let (limiter, lifecycle, metrics) = (
                Limiter::new(1, 1),
                Lifecycle::new(),
                Arc::new(Metrics::default()),
            );
            let mut record = Record::new(
                Arc::clone(&metrics),
                Arc::default(),
                Arc::default(),
                "req_1".to_owned(),
            );
            record.permit = limiter.take("key");
            record.stream = true;
            record.end(Outcome::Incomplete);
            let body = Buffered::from(vec![
                Bytes::from(vec![1; MAX_FRAME + 1]),
                Bytes::new(),
                vec![2; 9].into(),
            ]);
            assert!(!body.is_short());
            let abort = record.aborting(&lifecycle);
            let body = delivered(body.into_body(), record, Instant::now() + SPAN, abort);
            Self {
                limiter,
                lifecycle,
                metrics,
                body,
            }
        }

        /// Returns the length of the next frame.
        async fn next(&mut self) -> Option<Result<usize, Outcome>> {
            let frame = poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await?;
            Some(
                frame
                    .map(|frame| frame.into_data().unwrap().len())
                    .map_err(|aborted| aborted.outcome),
            )
        }

        /// Returns the recorded outcome, and the number of permits in use.
        fn recorded(&self) -> (Option<String>, u64) {
            let text = self.metrics.render(0, Duration::ZERO);
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("sluicegate_streams_ended_total{"));
            let outcome = line.map(|line| line.split('"').nth(3).unwrap().to_owned());
            (outcome, self.limiter.taken())
        }
    }

    /// A plain response holds its permit until its last byte, and its outcome is the one that the
    /// engine reported.
    #[tokio::test(start_paused = true)]
    async fn c06_a_plain_reply_ends_with_its_last_byte() {
        let mut harness = Harness::new();
        for length in [MAX_FRAME, 1] {
            assert_eq!(
                (harness.next().await, harness.recorded()),
                (Some(Ok(length)), (None, 1))
            );
        }
        assert_eq!(
            (harness.next().await, harness.recorded()),
            (Some(Ok(9)), (Some("incomplete".to_owned()), 0))
        );
        assert!(harness.body.is_end_stream() && harness.next().await.is_none());
    }

    /// A client that disconnects during a plain response is recorded as `client_gone`.
    #[tokio::test(start_paused = true)]
    async fn c01_a_client_that_leaves_a_plain_reply_is_gone() {
        let mut harness = Harness::new();
        assert_eq!(harness.next().await, Some(Ok(MAX_FRAME)));
        harness.body = whole(Bytes::new());
        assert_eq!(harness.recorded(), (Some("client_gone".to_owned()), 0));
    }

    /// A plain response that is still being sent at the end of a shutdown, or at its deadline, is
    /// aborted.
    #[tokio::test(start_paused = true)]
    async fn d03_a_plain_reply_breaks_off_at_the_cut_and_at_its_deadline() {
        for (outcome, label) in [
            (Outcome::Shutdown, "shutdown"),
            (Outcome::Timeout, "timeout"),
        ] {
            let mut harness = Harness::new();
            assert_eq!(harness.next().await, Some(Ok(MAX_FRAME)));
            match outcome {
                Outcome::Shutdown => harness.lifecycle.enter(Phase::Aborting),
                _ => tokio::time::advance(SPAN).await,
            }
            assert_eq!(harness.next().await, Some(Err(outcome)));
            assert_eq!(harness.recorded(), (Some(label.to_owned()), 0));
        }
    }
}
