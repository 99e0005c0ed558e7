//! Streams under a paused clock: keep-alives and timeouts, failures, disconnects and shutdown.

use std::future::poll_fn;
use std::sync::Arc;

use engine::{EngineError, Stop, TextEvent, TextStream};
use futures_util::stream::{self, StreamExt};
use http_body_util::BodyExt;
use policy::lifecycle::{Lifecycle, Phase};
use policy::limit::{Counts, Limiter};
use telemetry::metrics::Metrics;
use tokio::sync::oneshot;
use tokio::time::timeout;
use translate::inbound::{Answer, Messages, Responses, Stamp};

use super::*;
use crate::endpoints::text::TextEndpoint;
use crate::endpoints::text::streaming::TranslatedText;

const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The deadline of the first event.
const DEADLINE: Duration = Duration::from_secs(40);
/// The deadline of the complete stream.
const END: Duration = Duration::from_secs(100);

/// The state around a stream.
struct Harness {
    limiter: Limiter,
    lifecycle: Lifecycle,
}

impl Harness {
    fn new() -> Self {
        Self {
            limiter: Limiter::new(1, 1),
            lifecycle: Lifecycle::new(),
        }
    }

    fn events<D: TextEndpoint>(&self, request: &D::Request, source: TextStream) -> Events {
        let encoder = Answer::<D>::new(
            request,
            &Stamp {
                bits: 1,
                created_at: 0,
            },
        );
        self.stream(TranslatedText::new(encoder, source))
    }

    fn stream(&self, stream: impl AnswerStream + 'static) -> Events {
        let mut record = Record::new(
            Arc::new(Metrics::default()),
            Arc::default(),
            Arc::default(),
            "req_1".to_owned(),
        );
        record.permit = Some(self.limiter.take("key").expect("a permit is free"));
        let times = Times {
            keep_alive: KEEP_ALIVE,
            first_event: Instant::now() + DEADLINE,
            end: Instant::now() + END,
        };
        let abort = record.aborting(&self.lifecycle);
        Events::new(Box::new(stream), times, abort, record)
    }

    fn responses(&self, source: TextStream) -> Events {
        let body = br#"{"model":"m","input":[{"role":"user","content":"Hi."}]}"#;
        let request = responses::Request::read(body).expect("a request");
        self.events::<Responses>(
            &request
                .validate(&responses::Rules::default())
                .expect("a valid one"),
            source,
        )
    }

    fn messages(&self, source: TextStream) -> Events {
        let body = br#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi."}]}"#;
        let request = messages::Request::read(body).expect("a request");
        self.events::<Messages>(
            &request
                .validate(&messages::Rules::default())
                .expect("a valid one"),
            source,
        )
    }
}

/// Returns a stream that yields these events and ends.
fn finite(events: Vec<Result<TextEvent, EngineError>>) -> TextStream {
    Box::pin(stream::iter(events))
}

/// Returns a stream that never yields; dropping it drops the sender.
fn silent(dropped: oneshot::Sender<()>) -> TextStream {
    Box::pin(stream::once(async move {
        let _dropped = dropped;
        std::future::pending().await
    }))
}

fn text(text: &str) -> Result<TextEvent, EngineError> {
    Ok(TextEvent::Text(text.to_owned()))
}

/// Reads the rest of a stream; returns it with the recorded outcome.
async fn rest(events: &mut Pin<Box<Events>>) -> (String, Option<Outcome>) {
    let mut all = String::new();
    while let Some(frame) = events.frame().await {
        let data = frame
            .expect("streams do not fail")
            .into_data()
            .expect("data");
        all.push_str(std::str::from_utf8(&data).expect("text"));
    }
    (all, events.as_mut().project().record.outcome)
}

/// Timers run on the monotonic clock alone: the test advances it and not the wall clock.
#[tokio::test(start_paused = true)]
async fn d11_silent_stream_sends_keep_alives_until_its_deadline() {
    let harness = Harness::new();
    let (dropped, _gone) = oneshot::channel();
    let mut events = Box::pin(harness.responses(silent(dropped)));
    let started = Instant::now();
    let (all, outcome) = rest(&mut events).await;
    assert_eq!(started.elapsed(), DEADLINE);
    assert_eq!(all.matches(": keep-alive\n\n").count(), 2, "{all}");
    assert!(
        all.ends_with("}\n\n") && all.contains("\"code\":\"server_error\""),
        "{all}"
    );
    assert_eq!(all.matches("event: response.failed").count(), 1);
    assert_eq!(
        (outcome, harness.limiter.taken()),
        (Some(Outcome::Timeout), 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_silent_message_is_kept_alive_by_pings() {
    let harness = Harness::new();
    let (dropped, _gone) = oneshot::channel();
    let (all, _) = rest(&mut Box::pin(harness.messages(silent(dropped)))).await;
    assert_eq!(all.matches("event: ping\n").count(), 2, "{all}");
    assert_eq!(all.matches("event: error\n").count(), 1, "{all}");
}

/// A stream that lives is not cut at the deadline of its first event, and one that falls silent is
/// kept alive, up to the deadline of the complete stream.
#[tokio::test(start_paused = true)]
async fn u21_a_stream_that_lives_has_a_deadline_of_its_own() {
    let words = stream::unfold((), |()| async {
        tokio::time::sleep(KEEP_ALIVE - Duration::from_secs(1)).await;
        Some((text("Hel"), ()))
    });
    let silence = stream::iter([text("Hel")]).chain(stream::pending());
    for (source, keep_alives) in [(words.boxed(), 0), (silence.boxed(), 6)] {
        let harness = Harness::new();
        let started = Instant::now();
        let (all, outcome) = rest(&mut Box::pin(harness.responses(source))).await;
        assert_eq!(
            (started.elapsed(), outcome),
            (END, Some(Outcome::Timeout)),
            "{all}"
        );
        assert_eq!(all.matches(": keep-alive").count(), keep_alives, "{all}");
    }
}

/// The time that a client takes to read is no silence of the upstream, and needs no keep-alive.
#[tokio::test(start_paused = true)]
async fn u19_a_slow_client_is_not_taken_for_a_silent_upstream() {
    let harness = Harness::new();
    let mut events = Box::pin(harness.responses(Box::pin(stream::repeat_with(|| text("Hel")))));
    let started = Instant::now();
    let pause = KEEP_ALIVE * 2;
    while started.elapsed() + pause < END {
        let frame = events.frame().await.unwrap().unwrap().into_data().unwrap();
        let text = std::str::from_utf8(&frame).unwrap();
        assert!(
            !text.contains("failed") && !text.contains("keep-alive"),
            "{text}"
        );
        tokio::time::advance(pause).await;
    }
}

/// An upstream that keeps sending bytes but never an event is given up at the deadline of the first
/// event.
#[tokio::test(start_paused = true)]
async fn s10_stream_without_events_fails_at_first_event_deadline() {
    let harness = Harness::new();
    let mut events = Box::pin(harness.stream(NoEvents));
    let started = Instant::now();
    let mut all = Vec::new();
    while !all.ends_with(b"failed") {
        let polled = poll_fn(|cx| Poll::Ready(events.as_mut().poll_frame(cx))).await;
        if let Poll::Ready(frame) = polled {
            let frame = frame.expect("a failure is written");
            all.extend(frame.expect("streams do not fail").into_data().unwrap());
        }
        tokio::time::advance(Duration::from_millis(10)).await;
    }
    let took = started.elapsed();
    assert!(
        (DEADLINE..DEADLINE + Duration::from_secs(1)).contains(&took),
        "{took:?}"
    );
    assert_eq!(all, b"alivealivefailed");
    assert_eq!(
        events.as_mut().project().record.outcome,
        Some(Outcome::Timeout)
    );
}

/// A stream that is always ready and never writes.
struct NoEvents;

impl AnswerStream for NoEvents {
    fn counts(&self) -> Counts {
        Counts::default()
    }

    fn poll_write(
        &mut self,
        _: &mut Context<'_>,
        _: &mut Vec<u8>,
    ) -> Poll<Result<Progress, StreamFailure>> {
        Poll::Ready(Ok(Progress::Skipped))
    }

    fn fail(&mut self, _: &ApiError, out: &mut Vec<u8>) {
        out.extend_from_slice(b"failed");
    }

    fn keep_alive(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"alive");
    }
}

/// At the end of a shutdown an open stream gets one failure event, and its outcome is `shutdown`.
#[tokio::test(start_paused = true)]
async fn d03_a_process_that_ends_ends_its_open_streams_with_a_failure() {
    let harness = Harness::new();
    let (dropped, _gone) = oneshot::channel();
    let mut events = Box::pin(harness.responses(silent(dropped)));
    assert!(events.frame().await.is_some(), "it is open");
    harness.lifecycle.enter(Phase::Aborting);
    let (all, outcome) = rest(&mut events).await;
    assert_eq!(
        (outcome, all.matches("event: response.failed").count()),
        (Some(Outcome::Shutdown), 1)
    );
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_fails_or_breaks_off_has_not_succeeded() {
    for (end, outcome) in [
        (
            vec![
                text("Hel"),
                Err(EngineError::Internal("a secret cause".to_owned())),
            ],
            Outcome::Internal,
        ),
        (vec![text("Hel")], Outcome::Internal),
        (vec![], Outcome::Internal),
    ] {
        let harness = Harness::new();
        let (all, found) = rest(&mut Box::pin(harness.responses(finite(end)))).await;
        assert_eq!(found, Some(outcome));
        assert_eq!(all.matches("event: response.failed").count(), 1, "{all}");
        assert!(
            !all.contains("response.completed") && !all.contains("secret"),
            "{all}"
        );
        assert_eq!(harness.limiter.taken(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn events_after_the_end_are_not_sent() {
    let harness = Harness::new();
    let finished = Ok(TextEvent::Finished {
        stop: Stop::End,
        usage: None,
    });
    let source = finite(vec![text("Hello."), finished])
        .chain(finite(vec![text("more")]))
        .chain(stream::pending());
    let started = Instant::now();
    let (all, outcome) = rest(&mut Box::pin(harness.responses(Box::pin(source)))).await;
    assert_eq!(
        (outcome, all.matches("event: response.completed").count()),
        (Some(Outcome::Completed), 1)
    );
    assert!(
        !all.contains("more") && started.elapsed().is_zero(),
        "{all}"
    );
}

/// A client that disconnects stops the generation at once and releases its permit.
#[tokio::test(start_paused = true)]
async fn c05_client_disconnect_stops_the_engine_and_frees_its_permit() {
    let harness = Harness::new();
    let (dropped, gone) = oneshot::channel();
    let mut events = Box::pin(harness.responses(silent(dropped)));
    assert!(
        events.frame().await.is_some(),
        "the opening events go out at once"
    );
    assert_eq!(harness.limiter.taken(), 1);
    drop(events);
    assert!(gone.await.is_err(), "the engine was dropped");
    assert_eq!(harness.limiter.taken(), 0);
}

/// A panic after the status was sent is the one failure event of the stream, without its cause; the
/// permit is released.
#[tokio::test(start_paused = true)]
async fn c07_a_panic_in_the_middle_of_a_stream_ends_it_with_a_failure() {
    let harness = Harness::new();
    let steps = stream::iter([text("Hi.")]).chain(stream::poll_fn(|_| panic!("injected")));
    let mut events = Box::pin(harness.messages(Box::pin(steps)));
    let (all, outcome) = rest(&mut events).await;
    assert!(all.contains("Hi.") && all.ends_with("}\n\n"), "{all}");
    assert_eq!(all.matches("event: error").count(), 1, "{all}");
    assert!(
        !all.contains("injected") && !all.contains("message_stop"),
        "{all}"
    );
    assert_eq!(
        (outcome, harness.limiter.taken()),
        (Some(Outcome::Internal), 0)
    );
}

/// A stream whose source is always ready yields to other tasks after a bounded amount of work, and
/// is woken again.
#[tokio::test(start_paused = true)]
async fn o07_a_stream_that_never_pauses_takes_turns() {
    for (words, most) in [
        ("a".to_owned(), MAX_WORK),
        ("a".repeat(MAX_WORK), 3 * MAX_WORK),
    ] {
        let harness = Harness::new();
        let mut events =
            Box::pin(harness.responses(Box::pin(stream::repeat_with(move || text(&words)))));
        let mut polls = Vec::new();
        let five = poll_fn(|cx| {
            let mut bytes = 0;
            while let Poll::Ready(frame) = events.as_mut().poll_frame(cx) {
                bytes += frame
                    .expect("it is endless")
                    .expect("streams do not fail")
                    .into_data()
                    .expect("data")
                    .len();
            }
            polls.push(bytes);
            if polls.len() == 5 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        timeout(Duration::from_secs(1), five)
            .await
            .expect("the task is woken after it yielded");
        assert!(
            polls.iter().all(|bytes| (1..=most).contains(bytes)),
            "{polls:?} bytes"
        );
    }
}

/// A stream of one long event, which is the last.
struct LongEvent;

impl LongEvent {
    const BYTES: usize = 3 * MAX_FRAME;
}

impl AnswerStream for LongEvent {
    fn counts(&self) -> Counts {
        Counts::default()
    }

    fn poll_write(
        &mut self,
        _: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<Progress, StreamFailure>> {
        out.resize(Self::BYTES, b'p');
        Poll::Ready(Ok(Progress::Ended(End::default())))
    }

    fn fail(&mut self, _: &ApiError, _: &mut Vec<u8>) {}

    fn keep_alive(&self, _: &mut Vec<u8>) {}
}

/// A long event is sent in several frames, and the stream is completed with the last of them and
/// not before: it is aborted at its deadline or at the end of a shutdown, and a disconnect is
/// recorded as `client_gone`.
#[tokio::test(start_paused = true)]
async fn c06_a_long_event_ends_with_its_last_piece() {
    let outcome = |events: &mut Pin<Box<Events>>| events.as_mut().project().record.outcome;
    let begin = |harness: &Harness| Box::pin(harness.stream(LongEvent));

    let harness = Harness::new();
    let mut events = begin(&harness);
    let mut bytes = 0;
    while bytes < LongEvent::BYTES {
        assert_eq!(outcome(&mut events), None, "after {bytes} bytes");
        let frame = events.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(frame.len() <= MAX_FRAME);
        bytes += frame.len();
    }
    assert_eq!(outcome(&mut events), Some(Outcome::Completed));
    assert!(events.frame().await.is_none());

    for (is_late, expected) in [(true, Outcome::Timeout), (false, Outcome::Shutdown)] {
        let harness = Harness::new();
        let mut events = begin(&harness);
        assert!(events.frame().await.unwrap().is_ok());
        match is_late {
            true => tokio::time::advance(END).await,
            false => harness.lifecycle.enter(Phase::Aborting),
        }
        assert_eq!(events.frame().await.unwrap().unwrap_err().outcome, expected);
        assert_eq!(outcome(&mut events), Some(expected));
        assert!(events.frame().await.is_none(), "the body has ended");
        drop(events);
        assert_eq!(harness.limiter.taken(), 0);
    }
}
