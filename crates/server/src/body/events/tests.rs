//! Streams under a paused clock: silence, failure, and the end of client, engine and process.

use std::future::poll_fn;
use std::sync::Arc;

use engine::{Stop, TextEvent, TextStream};
use futures_util::stream::{self, StreamExt};
use http_body_util::BodyExt;
use tokio::sync::oneshot;
use tokio::time::timeout;
use translate::inbound::{Answer, Messages, Responses, Stamp};

use super::*;
use crate::attempt::{Coming, Started};
use crate::body::voice::{Source, Voice};
use crate::endpoints::text::TextEndpoint;
use crate::lifecycle::{Lifecycle, Phase};
use crate::limit::Limiter;
use crate::metrics::Metrics;

const SILENCE: Duration = Duration::from_secs(15);
const LONGEST: Duration = Duration::from_secs(40);

/// Longer than a stream may take: it matters to none that has no shorter one.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a stream lies in.
struct House {
    patience: Duration,
    limiter: Limiter,
    lifecycle: Lifecycle,
}

impl House {
    fn new() -> Self {
        Self { patience: PATIENCE, limiter: Limiter::new(1, 1), lifecycle: Lifecycle::new() }
    }

    fn events<D: TextEndpoint>(&self, request: &D::Request, source: TextStream) -> Events<Voice<D>> {
        let stamp = Stamp { bits: 1, created_at: 0 };
        let begun = Started { dropped: Vec::new(), answer: Coming::Neutral(source, ()), patience: Some(self.patience) };
        let source = Source::Started(Box::new(begun));
        self.told(source, Voice::Waiting(Answer::new(request, &stamp)))
    }

    fn told<T: Telling>(&self, source: T::Source, answer: T) -> Events<T> {
        let timing = Timing { silence: SILENCE, deadline: Instant::now() + LONGEST };
        let mut record = Record::new(Arc::new(Metrics::new()), Arc::default(), "req_1".to_owned());
        record.permit = Some(self.limiter.take("key").expect("a permit is there"));
        Events::new(source, answer, &timing, self.lifecycle.cut(), record)
    }

    fn responses(&self, source: TextStream) -> Events<Voice<Responses>> {
        let body = br#"{"model":"m","input":[{"role":"user","content":"Hi."}]}"#;
        let request = responses::Request::read(body).expect("a request");
        self.events(&request.validate(&responses::Rules::default()).expect("a valid one"), source)
    }

    fn messages(&self, source: TextStream) -> Events<Voice<Messages>> {
        let body = br#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi."}]}"#;
        let request = messages::Request::read(body).expect("a request");
        self.events(&request.validate(&messages::Rules::default()).expect("a valid one"), source)
    }
}

/// An engine that says this and then nothing more.
fn saying(events: Vec<Result<TextEvent, EngineError>>) -> TextStream {
    Box::pin(stream::iter(events))
}

/// An engine that is silent until it is dropped, of which it tells.
fn silent(dropped: oneshot::Sender<()>) -> TextStream {
    Box::pin(stream::once(async move {
        let _told_when_dropped = dropped;
        std::future::pending().await
    }))
}

fn text(text: &str) -> Result<TextEvent, EngineError> {
    Ok(TextEvent::Text(text.to_owned()))
}

/// The rest of a stream, and how it ended.
async fn rest<D: TextEndpoint>(events: &mut Pin<Box<Events<Voice<D>>>>) -> (String, Option<Outcome>) {
    let mut all = String::new();
    while let Some(frame) = events.frame().await {
        let data = frame.expect("streams do not fail").into_data().expect("data");
        all.push_str(std::str::from_utf8(&data).expect("text"));
    }
    (all, events.as_mut().project().record.outcome)
}

/// Timers run on the monotonic clock alone: here it is moved, and the clock on the wall is not.
#[tokio::test(start_paused = true)]
async fn d11_a_silent_stream_says_that_it_is_alive_and_fails_at_its_deadline() {
    let house = House::new();
    let (dropped, _gone) = oneshot::channel();
    let mut events = Box::pin(house.responses(silent(dropped)));
    let begun = Instant::now();
    let (all, outcome) = rest(&mut events).await;
    assert_eq!(begun.elapsed(), LONGEST);
    assert_eq!(all.matches(": keep-alive\n\n").count(), 2, "{all}");
    assert!(all.ends_with("}\n\n") && all.contains("\"code\":\"server_error\""), "{all}");
    assert_eq!(all.matches("event: response.failed").count(), 1);
    assert_eq!((outcome, house.limiter.taken()), (Some(Outcome::Timeout), 0));
}

#[tokio::test(start_paused = true)]
async fn a_silent_message_is_kept_alive_by_pings() {
    let house = House::new();
    let (dropped, _gone) = oneshot::channel();
    let (all, _) = rest(&mut Box::pin(house.messages(silent(dropped)))).await;
    assert_eq!(all.matches("event: ping\n").count(), 2, "{all}");
    assert_eq!(all.matches("event: error\n").count(), 1, "{all}");
}

/// An upstream that falls silent is given up when its time is over, be that before anything is said for it.
#[tokio::test(start_paused = true)]
async fn u07_a_silence_is_waited_for_as_long_as_was_set() {
    for patience in [SILENCE / 15, SILENCE, SILENCE * 2] {
        let house = House { patience, ..House::new() };
        let said = stream::iter([text("Hel")]).chain(stream::pending());
        let begun = Instant::now();
        let (all, outcome) = rest(&mut Box::pin(house.responses(Box::pin(said)))).await;
        assert_eq!((begun.elapsed(), outcome), (patience, Some(Outcome::Timeout)), "{all}");
    }
}

/// How long a client takes to read is no silence of the upstream's, and needs no sign of life.
#[tokio::test(start_paused = true)]
async fn u19_a_slow_client_is_not_taken_for_a_silent_upstream() {
    let house = House { patience: Duration::from_secs(1), ..House::new() };
    let mut events = Box::pin(house.responses(Box::pin(stream::repeat_with(|| text("Hel")))));
    let begun = Instant::now();
    while begun.elapsed() + SILENCE < LONGEST {
        let frame = events.frame().await.unwrap().unwrap().into_data().unwrap();
        let said = std::str::from_utf8(&frame).unwrap();
        assert!(!said.contains("failed") && !said.contains("keep-alive"), "{said}");
        tokio::time::advance(SILENCE / 2).await;
    }
}

/// Who always says something, and never an event, is given up as who says nothing is.
#[tokio::test(start_paused = true)]
async fn s10_what_is_no_event_keeps_nobody_waiting() {
    let house = House::new();
    let mut events = Box::pin(house.told(stream::repeat_with(|| Ok(())).boxed(), Murmur));
    let begun = Instant::now();
    let failed = loop {
        let polled = poll_fn(|cx| Poll::Ready(events.as_mut().poll_frame(cx))).await;
        if let Poll::Ready(frame) = polled {
            break frame.expect("a failure is told").expect("streams do not fail").into_data().expect("data");
        }
        tokio::time::advance(Duration::from_millis(10)).await;
    };
    assert_eq!((begun.elapsed(), failed), (Murmur::PATIENCE, Bytes::from_static(b"failed")));
    assert_eq!(events.as_mut().project().record.outcome, Some(Outcome::Timeout));
}

/// Takes steps of which clients see nothing.
struct Murmur;

impl Murmur {
    const PATIENCE: Duration = Duration::from_secs(5);
}

impl Telling for Murmur {
    type Step = ();
    type Source = stream::BoxStream<'static, Result<(), Fault>>;

    fn step(&mut self, (): (), _: &mut Vec<u8>) -> Result<Told, Fault> {
        Ok(Told::Nothing)
    }

    fn fail(&mut self, _: &ApiError, out: &mut Vec<u8>) {
        out.extend_from_slice(b"failed");
    }

    fn keep_alive(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"alive");
    }

    fn patience(&self) -> Option<Duration> {
        Some(Self::PATIENCE)
    }
}

/// At the cut an open stream gets one failure event, and its outcome is `shutdown`.
#[tokio::test(start_paused = true)]
async fn d03_a_process_that_ends_tells_its_open_streams() {
    let house = House::new();
    let (dropped, _gone) = oneshot::channel();
    let mut events = Box::pin(house.responses(silent(dropped)));
    assert!(events.frame().await.is_some(), "it is open");
    house.lifecycle.enter(Phase::Aborting);
    let (all, outcome) = rest(&mut events).await;
    assert_eq!((outcome, all.matches("event: response.failed").count()), (Some(Outcome::Shutdown), 1));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_fails_or_breaks_off_has_not_succeeded() {
    for (end, outcome) in [
        (vec![text("Hel"), Err(EngineError::Internal("a secret cause".to_owned()))], Outcome::Internal),
        (vec![text("Hel")], Outcome::Internal),
        (vec![], Outcome::Internal),
    ] {
        let house = House::new();
        let (all, found) = rest(&mut Box::pin(house.responses(saying(end)))).await;
        assert_eq!(found, Some(outcome));
        assert_eq!(all.matches("event: response.failed").count(), 1, "{all}");
        assert!(!all.contains("response.completed") && !all.contains("secret"), "{all}");
        assert_eq!(house.limiter.taken(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_after_the_end_is_not_told() {
    let house = House::new();
    let finished = Ok(TextEvent::Finished { stop: Stop::End, usage: None });
    let source = saying(vec![text("Hello."), finished]).chain(saying(vec![text("more")])).chain(stream::pending());
    let begun = Instant::now();
    let (all, outcome) = rest(&mut Box::pin(house.responses(Box::pin(source)))).await;
    assert_eq!((outcome, all.matches("event: response.completed").count()), (Some(Outcome::Completed), 1));
    assert!(!all.contains("more") && begun.elapsed().is_zero(), "{all}");
}

/// A client that goes away stops the generation at once and gives its permit back.
#[tokio::test(start_paused = true)]
async fn c05_a_client_that_goes_away_stops_the_engine_and_gives_its_permit_back() {
    let house = House::new();
    let (dropped, gone) = oneshot::channel();
    let mut events = Box::pin(house.responses(silent(dropped)));
    assert!(events.frame().await.is_some(), "the opening events go out at once");
    assert_eq!(house.limiter.taken(), 1);
    drop(events);
    assert!(gone.await.is_err(), "the engine was dropped");
    assert_eq!(house.limiter.taken(), 0);
}

/// A panic after the commit is the one failure event of the stream, told without its cause; the permit comes back.
#[tokio::test(start_paused = true)]
async fn c07_a_panic_in_the_middle_is_told_as_a_failure() {
    let house = House::new();
    let steps = stream::iter([text("Hi.")]).chain(stream::poll_fn(|_| panic!("injected")));
    let mut events = Box::pin(house.messages(Box::pin(steps)));
    let (all, outcome) = rest(&mut events).await;
    assert!(all.contains("Hi.") && all.ends_with("}\n\n"), "{all}");
    assert_eq!(all.matches("event: error").count(), 1, "{all}");
    assert!(!all.contains("injected") && !all.contains("message_stop"), "{all}");
    assert_eq!((outcome, house.limiter.taken()), (Some(Outcome::Internal), 0));
}

/// A stream that never pauses leaves its thread to others after each turn, and goes on by itself.
#[tokio::test(start_paused = true)]
async fn o07_a_stream_that_never_pauses_takes_turns() {
    for (words, most) in [("a".to_owned(), TURN), ("a".repeat(TURN), 3 * TURN)] {
        let house = House::new();
        let mut events = Box::pin(house.responses(Box::pin(stream::repeat_with(move || text(&words)))));
        let mut turns = Vec::new();
        let five = poll_fn(|cx| {
            let mut bytes = 0;
            while let Poll::Ready(frame) = events.as_mut().poll_frame(cx) {
                bytes += frame.expect("it is endless").expect("streams do not fail").into_data().expect("data").len();
            }
            turns.push(bytes);
            if turns.len() == 5 { Poll::Ready(()) } else { Poll::Pending }
        });
        timeout(Duration::from_secs(1), five).await.expect("it is woken for its next turn");
        assert!(turns.iter().all(|turn| (1..=most).contains(turn)), "{turns:?} bytes");
    }
}

/// Tells all that it has to tell in one event.
struct Picture;

impl Picture {
    const BYTES: usize = 3 * AT_ONCE;
}

impl Telling for Picture {
    type Step = ();
    type Source = stream::BoxStream<'static, Result<(), Fault>>;

    fn step(&mut self, (): (), out: &mut Vec<u8>) -> Result<Told, Fault> {
        out.resize(Self::BYTES, b'p');
        Ok(Told::End(Ending { outcome: Outcome::Completed, usage: None }))
    }

    fn fail(&mut self, _: &ApiError, _: &mut Vec<u8>) {}

    fn keep_alive(&self, _: &mut Vec<u8>) {}
}

/// A long event goes out in pieces, and the stream has ended well with the last of them and not before: whoever takes so
/// long that its time is over meanwhile, or the process ends, sees it break off, and who leaves is gone.
#[tokio::test(start_paused = true)]
async fn c06_a_long_event_ends_with_its_last_piece() {
    let outcome = |events: &mut Pin<Box<Events<Picture>>>| events.as_mut().project().record.outcome;
    let begin = |house: &House| Box::pin(house.told(stream::iter([Ok(())]).boxed(), Picture));

    let house = House::new();
    let mut events = begin(&house);
    let mut bytes = 0;
    while bytes < Picture::BYTES {
        assert_eq!(outcome(&mut events), None, "after {bytes} bytes");
        let piece = events.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(piece.len() <= AT_ONCE);
        bytes += piece.len();
    }
    assert_eq!(outcome(&mut events), Some(Outcome::Completed));
    assert!(events.frame().await.is_none());

    for (is_late, owed) in [(true, Outcome::Timeout), (false, Outcome::Shutdown)] {
        let house = House::new();
        let mut events = begin(&house);
        assert!(events.frame().await.unwrap().is_ok());
        match is_late {
            true => tokio::time::advance(LONGEST).await,
            false => house.lifecycle.enter(Phase::Aborting),
        }
        assert_eq!(events.frame().await.unwrap().unwrap_err().outcome, owed);
        assert_eq!(outcome(&mut events), Some(owed));
        assert!(events.frame().await.is_none(), "nothing comes after that");
        drop(events);
        assert_eq!(house.limiter.taken(), 0);
    }
}
