//! The memory of an open idle stream, in freshly started processes.

use super::Bench;
use crate::report::{Goal, Level, Line, Metric, Round};
use benches::Outcome;
use benches::load::open_streams;
use benches::subject::Subject;

impl Bench {
    pub(super) async fn memory(&self) -> Outcome<Vec<Line>> {
        let mut lines = Vec::new();
        for &count in self.amount.open {
            let mut rounds = Vec::new();
            for _ in 0..ROUNDS.min(self.amount.rounds) {
                rounds.push(Round {
                    bare: Some(weigh(&self.programs.bare(None)?, count).await?),
                    per_core: None,
                    gateway: weigh(&self.programs.gateway(None)?, count).await?,
                });
            }
            let what = format!("KiB for each of {count} open streams");
            let goal = Goal::Value(20.0);
            lines.push(Line::new(Metric::new(what, goal, Level::Full), &rounds));
        }
        Ok(lines)
    }
}

/// Memory in KiB for each of so many open streams.
async fn weigh(subject: &Subject, count: usize) -> Outcome<f64> {
    // The memory that the first streams allocate belongs to the process, not to them.
    drop(open_streams(subject, 64).await?);
    let before = subject.memory()?;
    let open = open_streams(subject, count).await?;
    let grown = subject.memory()? - before;
    Ok(grown / 1024.0 / open.len() as f64)
}

/// Memory differs little between rounds.
const ROUNDS: usize = 3;
