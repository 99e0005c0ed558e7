//! Places in the queue: cancelled, refused, closed.

use std::time::Duration;

use engine::{EngineError, Stop, TextEngine, TextEvent, TextRequest};
use futures_util::StreamExt;
use sluicegate_text_engine::{EmbeddedTextEngine, Options};

use super::{ask, load};

fn narrow() -> EmbeddedTextEngine {
    load(Options { generations: 1, waiting: 1, ..Options::default() })
}

/// A generation that would go on for long.
fn long() -> TextRequest {
    TextRequest { max_output_tokens: Some(8000), ..ask("Write a very long story about a fox.") }
}

fn short() -> TextRequest {
    TextRequest { max_output_tokens: Some(2), ..ask("Hi") }
}

/// No more generations run or wait than there is room for; one that is cancelled makes way.
#[tokio::test]
async fn o08_c05_e05_a_cancelled_generation_makes_way_and_one_too_many_is_refused() {
    let local = narrow();
    let mut running = local.start(long()).await.unwrap().events;
    assert!(matches!(running.next().await, Some(Ok(TextEvent::Text(_)))));
    let waiting = local.start(long()).await.unwrap().events;
    assert!(matches!(local.start(short()).await.err(), Some(EngineError::Busy)));
    drop(waiting);
    let mut next = local.start(short()).await.unwrap().events;
    drop(running);
    let mut last = None;
    while let Some(event) = next.next().await {
        last = Some(event.unwrap());
    }
    assert!(matches!(last, Some(TextEvent::Finished { stop: Stop::MaxTokens, .. })), "{last:?}");
}

/// An engine that goes ends what runs and what waits with a failure.
#[tokio::test]
async fn e06_a_closed_engine_ends_what_it_was_at() {
    let local = narrow();
    let mut running = local.start(long()).await.unwrap().events;
    assert!(matches!(running.next().await, Some(Ok(TextEvent::Text(_)))));
    let mut waiting = local.start(long()).await.unwrap().events;
    drop(local);
    assert!(matches!(waiting.next().await, Some(Err(EngineError::Unavailable(_)))));
    let mut last = None;
    while let Some(event) = running.next().await {
        last = Some(event);
    }
    assert!(matches!(last, Some(Err(EngineError::Unavailable(_)))), "{last:?}");
}

/// A generation that takes too long ends.
#[tokio::test]
async fn e03_a_generation_that_takes_too_long_ends() {
    let local = load(Options { timeout: Some(Duration::ZERO), ..Options::default() });
    let mut events = local.start(long()).await.unwrap().events;
    assert!(matches!(events.next().await, Some(Err(EngineError::Timeout(_)))));
    assert!(events.next().await.is_none());
}
