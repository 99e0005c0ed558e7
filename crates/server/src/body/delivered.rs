//! A reply on its way to a client that may be slow.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Aborted, Body};
use crate::lifecycle::AbortSignal;
use crate::outcome::Outcome;
use crate::record::Record;

/// Lets the record of a request end when its reply has been handed to the socket, with the permit that it holds. A
/// reply that is not taken whole by the deadline, or until the process ends, breaks off.
pub(crate) fn delivered(body: Body, record: Record, deadline: Instant, cut: AbortSignal) -> Body {
    Delivered { body, record: Some(record), deadline: Box::pin(sleep_until(deadline)), cut: Box::pin(cut.wait()) }
        .boxed_unsync()
}

struct Delivered {
    body: Body,
    /// Until the last byte is out.
    record: Option<Record>,
    deadline: Pin<Box<Sleep>>,
    cut: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Delivered {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        if self.cut.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(Aborted::new(Outcome::Shutdown, "the process ends"))));
        }
        if self.deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(Aborted::new(Outcome::Timeout, "the reply was not taken whole in time"))));
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }
}

impl HttpBody for Delivered {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        let frame = ready!(self.poll_next(cx));
        match &frame {
            Some(Ok(_)) if !self.body.is_end_stream() => {}
            Some(Err(aborted)) => {
                if let Some(mut record) = self.record.take() {
                    // Who reads it learns of it by a connection that breaks off: nothing was said yet that is untrue.
                    record.outcome = Some(aborted.outcome);
                    record.cause = Some(aborted.cause.clone());
                }
            }
            Some(Ok(_)) | None => {
                if let Some(mut record) = self.record.take() {
                    record.end(Outcome::Completed);
                }
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
        // The client went away before the end, whatever the engine had come to.
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

    use super::*;
    use crate::body::buffered::{AT_ONCE, in_pieces, is_short, whole};
    use crate::lifecycle::{Lifecycle, Phase};
    use crate::limit::Limiter;
    use crate::metrics::Metrics;

    /// A reply on its way, which took three turns to hand out.
    struct Scene {
        limiter: Limiter,
        lifecycle: Lifecycle,
        metrics: Arc<Metrics>,
        body: Body,
    }

    const SPAN: Duration = Duration::from_secs(9);

    impl Scene {
        fn new() -> Self {
            let (limiter, lifecycle, metrics) = (Limiter::new(1, 1), Lifecycle::new(), Arc::new(Metrics::new()));
            let mut record = Record::new(Arc::clone(&metrics), Arc::default(), "req_1".to_owned());
            record.permit = limiter.take("key");
            record.stream = true;
            record.end(Outcome::Incomplete);
            let body = in_pieces(vec![vec![1; AT_ONCE + 1].into(), Bytes::new(), vec![2; 9].into()]);
            assert!(!is_short(&body));
            let body = delivered(body, record, Instant::now() + SPAN, lifecycle.cut());
            Self { limiter, lifecycle, metrics, body }
        }

        /// How long the next piece is.
        async fn next(&mut self) -> Option<Result<usize, Outcome>> {
            let frame = poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await?;
            Some(frame.map(|frame| frame.into_data().unwrap().len()).map_err(|aborted| aborted.outcome))
        }

        /// The outcome that was told, and how many permits are out.
        fn told(&self) -> (Option<String>, usize) {
            let text = self.metrics.render(0, Duration::ZERO);
            let line = text.lines().find_map(|line| line.strip_prefix("sluicegate_streams_ended_total{"));
            let outcome = line.map(|line| line.split('"').nth(3).unwrap().to_owned());
            (outcome, self.limiter.taken())
        }
    }

    /// A plain reply holds its permit until its last byte, and its outcome is the one that the engine had come to.
    #[tokio::test(start_paused = true)]
    async fn c06_a_plain_reply_ends_with_its_last_byte() {
        let mut scene = Scene::new();
        for length in [AT_ONCE, 1] {
            assert_eq!((scene.next().await, scene.told()), (Some(Ok(length)), (None, 1)));
        }
        assert_eq!((scene.next().await, scene.told()), (Some(Ok(9)), (Some("incomplete".to_owned()), 0)));
        assert!(scene.body.is_end_stream() && scene.next().await.is_none());
    }

    /// A client that leaves in the midst of a plain reply is told of as gone.
    #[tokio::test(start_paused = true)]
    async fn c01_a_client_that_leaves_a_plain_reply_is_gone() {
        let mut scene = Scene::new();
        assert_eq!(scene.next().await, Some(Ok(AT_ONCE)));
        scene.body = whole(Bytes::new());
        assert_eq!(scene.told(), (Some("client_gone".to_owned()), 0));
    }

    /// A plain reply that is still being taken at the cut, or when its time is over, breaks off.
    #[tokio::test(start_paused = true)]
    async fn d03_a_plain_reply_breaks_off_at_the_cut_and_at_its_deadline() {
        for (outcome, told) in [(Outcome::Shutdown, "shutdown"), (Outcome::Timeout, "timeout")] {
            let mut scene = Scene::new();
            assert_eq!(scene.next().await, Some(Ok(AT_ONCE)));
            match outcome {
                Outcome::Shutdown => scene.lifecycle.enter(Phase::Aborting),
                _ => tokio::time::advance(SPAN).await,
            }
            assert_eq!(scene.next().await, Some(Err(outcome)));
            assert_eq!(scene.told(), (Some(told.to_owned()), 0));
        }
    }
}
