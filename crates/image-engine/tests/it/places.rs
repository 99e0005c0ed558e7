//! The limits of running and waiting requests.

use std::time::Duration;

use engine::ImageRequest;
use tokio::time::timeout;

use crate::*;

fn engine(waiting: usize) -> EmbeddedImageEngine {
    EmbeddedImageEngine::new(Options {
        threads: 1,
        waiting,
    })
}

/// No more pictures wait than may; more are turned away at once.
#[tokio::test]
async fn i07_o08_more_than_may_wait_are_turned_away_at_once() {
    let engine = engine(1);
    let many = || ImageRequest {
        count: 10,
        ..request("a red circle")
    };
    let first = engine.start(many()).await.unwrap();
    let second = engine.start(many()).await.unwrap();
    assert!(matches!(
        engine.start(many()).await.map(|_| ()),
        Err(EngineError::Busy)
    ));
    drop(first);
    let made = async {
        while let Err(EngineError::Busy) = make_on(&engine, request("a red circle")).await {
            tokio::task::yield_now().await;
        }
    };
    timeout(GUARD, made)
        .await
        .expect("a place that was left is free");
    drop(second);
}

#[tokio::test]
async fn refused_requests_leave_their_places() {
    let engine = engine(0);
    for _ in 0..3 {
        let refused = make_on(&engine, edit("make it blue", &[], None)).await;
        assert!(
            matches!(refused, Err(EngineError::Unsupported { .. })),
            "{refused:?}"
        );
    }
    make_on(&engine, request("a red circle")).await.unwrap();
}

/// With one thread two edits have their pictures in memory. A request without pictures passes those
/// that wait.
#[tokio::test]
async fn edits_wait_until_there_is_memory_for_their_pictures() {
    let engine = engine(8);
    let many = || ImageRequest {
        count: 10,
        ..edit("make it blue", &[&square(64, RED, WHITE)], None)
    };
    let first = engine.start(many()).await.unwrap();
    let second = engine.start(many()).await.unwrap();
    let mut third = engine.start(many());
    tokio::select! {
        biased;
        _ = &mut third => panic!("a third has its pictures in memory"),
        made = make_on(&engine, request("a red circle")) => assert!(made.is_ok()),
    }
    drop(first);
    timeout(GUARD, third)
        .await
        .expect("the memory of the first is free")
        .unwrap();
    drop(second);
}

#[tokio::test]
async fn a_slow_reader_holds_no_thread() {
    let engine = engine(4);
    let mut slow = engine
        .start(ImageRequest {
            count: 10,
            ..request("a red circle")
        })
        .await
        .unwrap();
    assert!(slow.events.next().await.is_some());
    for _ in 0..3 {
        timeout(GUARD, make_on(&engine, request("a red circle")))
            .await
            .expect("the thread is free")
            .unwrap();
    }
    assert_eq!(slow.events.count().await, 9);
}

/// Work for a client that is gone stops, whenever it goes.
#[tokio::test]
async fn c05_requests_dropped_at_any_time_leave_no_trace() {
    let engine = engine(2);
    let photo = square(64, RED, WHITE);
    for polls in 0..6 {
        let request = ImageRequest {
            count: 10,
            previews: 3,
            ..edit("make it blue", &[&photo], None)
        };
        let begun = timeout(GUARD, async {
            loop {
                match engine.start(request.clone()).await {
                    Err(EngineError::Busy) => tokio::task::yield_now().await,
                    begun => return begun.unwrap(),
                }
            }
        });
        let mut making = begun.await.expect("places come back");
        for _ in 0..polls {
            assert!(making.events.next().await.unwrap().is_ok());
        }
    }
}

/// Requests that are given up while their pictures wait to be decoded leave no trace.
#[tokio::test]
async fn i07_starts_given_up_while_they_wait_leave_no_trace() {
    let engine = engine(2);
    for _ in 0..20 {
        let start = engine.start(edit("make it blue", &[&square(64, RED, WHITE)], None));
        drop(timeout(Duration::ZERO, start).await);
    }
    let made = async {
        while let Err(EngineError::Busy) = make_on(&engine, request("a red circle")).await {
            tokio::task::yield_now().await;
        }
    };
    timeout(GUARD, made).await.expect("places come back");
}

#[tokio::test]
async fn the_stream_ends_after_the_last_picture_and_stays_ended() {
    let mut making = engine(0).start(request("a red circle")).await.unwrap();
    assert!(matches!(
        making.events.next().await,
        Some(Ok(ImageEvent::Finished { .. }))
    ));
    assert!(making.events.next().await.is_none() && making.events.next().await.is_none());
}

/// Far longer than anything here takes.
const GUARD: Duration = Duration::from_secs(60);
