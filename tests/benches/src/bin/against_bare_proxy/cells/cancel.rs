//! The time from a client's disconnect until the upstream notices it.

use std::time::Duration;

use tokio::time::Instant;

use super::{Bench, Place};
use crate::report::{Goal, Level, Line, Metric, Round};
use benches::Outcome;
use benches::load::{bounded, open_streams, percentile, to_message};
use benches::subject::Subject;
use benches::upstream::Upstream;

impl Bench {
    pub(super) async fn cancel(&self, upstream: &mut Upstream) -> Outcome<Vec<Line>> {
        let subjects = self.pair(Place::Shared)?;
        let mut rounds = [Vec::new(), Vec::new()];
        for _ in 0..self.amount.rounds {
            let bare = left(&subjects.bare, upstream, self.amount.streams).await?;
            let gateway = left(&subjects.gateway, upstream, self.amount.streams).await?;
            for (rounds, share) in rounds.iter_mut().zip([0.5, 0.99]) {
                rounds.push(Round {
                    bare: Some(percentile(&bare, share)),
                    per_core: None,
                    gateway: percentile(&gateway, share),
                });
            }
        }
        let lines = ["p50", "p99"].iter().zip(rounds);
        Ok(lines
            .map(|(share, rounds)| {
                let what = format!("µs from disconnect to the upstream's close, {share}");
                let most = Goal::Value(100_000.0);
                Line::new(Metric::new(what, most, Level::Full), &rounds)
            })
            .collect())
    }
}

/// Opens a stream and disconnects, repeatedly; returns the times until the upstream noticed,
/// sorted.
async fn left(subject: &Subject, upstream: &mut Upstream, count: usize) -> Outcome<Vec<Duration>> {
    let mut times = Vec::new();
    // Drains the streams that other cells have abandoned.
    tokio::time::sleep(Duration::from_millis(100)).await;
    while upstream.left.try_recv().is_ok() {}
    for _ in 0..count {
        let open = open_streams(subject, 1).await?;
        let gone = Instant::now();
        drop(open);
        let known = bounded(PATIENCE, upstream.left.recv())
            .await?
            .ok_or_else(|| to_message("the upstream has ended"))?;
        times.push(known.duration_since(gone));
    }
    times.sort_unstable();
    Ok(times)
}

const PATIENCE: Duration = Duration::from_secs(10);
