//! The queue: cancelled, refused and closed generations.

use std::time::Duration;

use engine::{EngineError, Stop, TextEngine, TextEvent, TextRequest};
use futures_util::StreamExt;
use sluicegate_text_engine::{EmbeddedTextEngine, Options};

use super::{load, single_turn};

fn narrow() -> EmbeddedTextEngine {
    load(Options {
        generations: 1,
        waiting: 1,
        ..Options::default()
    })
}

/// A request for a long generation.
fn long() -> TextRequest {
    TextRequest {
        max_output_tokens: Some(8000),
        ..single_turn("Write a very long story about a fox.")
    }
}

fn short() -> TextRequest {
    TextRequest {
        max_output_tokens: Some(2),
        ..single_turn("Hi")
    }
}

/// The number of running and queued generations is limited; a cancelled one frees its place.
#[tokio::test]
async fn o08_c05_e05_cancelled_generation_frees_its_slot() {
    let engine = narrow();
    let mut running = engine.start(long()).await.unwrap().events;
    assert!(matches!(running.next().await, Some(Ok(TextEvent::Text(_)))));
    let waiting = engine.start(long()).await.unwrap().events;
    assert!(matches!(
        engine.start(short()).await.err(),
        Some(EngineError::Busy)
    ));
    drop(waiting);
    let mut next = engine.start(short()).await.unwrap().events;
    drop(running);
    let mut last = None;
    while let Some(event) = next.next().await {
        last = Some(event.unwrap());
    }
    assert!(
        matches!(
            last,
            Some(TextEvent::Finished {
                stop: Stop::MaxTokens,
                ..
            })
        ),
        "{last:?}"
    );
}

/// Dropping the engine fails its running and queued generations.
#[tokio::test]
async fn e06_dropped_engine_fails_running_and_queued_generations() {
    let engine = narrow();
    let mut running = engine.start(long()).await.unwrap().events;
    assert!(matches!(running.next().await, Some(Ok(TextEvent::Text(_)))));
    let mut waiting = engine.start(long()).await.unwrap().events;
    drop(engine);
    assert!(matches!(
        waiting.next().await,
        Some(Err(EngineError::Unavailable(_)))
    ));
    let mut last = None;
    while let Some(event) = running.next().await {
        last = Some(event);
    }
    assert!(
        matches!(last, Some(Err(EngineError::Unavailable(_)))),
        "{last:?}"
    );
}

/// A generation that exceeds its timeout ends.
#[tokio::test]
async fn e03_a_generation_that_takes_too_long_ends() {
    let engine = load(Options {
        timeout: Some(Duration::ZERO),
        ..Options::default()
    });
    let mut events = engine.start(long()).await.unwrap().events;
    assert!(matches!(
        events.next().await,
        Some(Err(EngineError::Timeout(_)))
    ));
    assert!(events.next().await.is_none());
}
