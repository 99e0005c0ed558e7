//! The time that each subject adds to a request that is sent to the upstream directly.

use std::time::Duration;

use super::{Bench, Place};
use crate::report::{Goal, Level, Line, Metric, Round};
use benches::Outcome;
use benches::load::{WARM_UP, fixed_rate, percentile};

impl Bench {
    pub(super) async fn latency(&self) -> Outcome<Vec<Line>> {
        let mut lines = Vec::new();
        let direct = self.programs.direct();
        let subjects = self.three(Place::Shared)?;
        let all = [
            Some(&direct),
            Some(&subjects.bare),
            subjects.per_core.as_ref(),
            Some(&subjects.gateway),
        ];
        for rate in RATES {
            let every = Duration::from_secs(1) / rate;
            let mut rounds = [Vec::new(), Vec::new()];
            for _ in 0..self.amount.rounds {
                let mut found = Vec::new();
                for subject in all.iter().flatten() {
                    fixed_rate(subject, every, WARM_UP).await?;
                    let times = fixed_rate(subject, every, self.amount.span).await?;
                    found.push(SHARES.map(|(_, share)| percentile(&times, share)));
                }
                let &[direct, bare, per_core, gateway] = &found[..] else {
                    return Err("a subject is missing".to_owned());
                };
                for (at, rounds) in rounds.iter_mut().enumerate() {
                    rounds.push(Round {
                        bare: Some(bare[at] - direct[at]),
                        per_core: Some(per_core[at] - direct[at]),
                        gateway: gateway[at] - direct[at],
                    });
                }
            }
            for ((name, _), rounds) in SHARES.iter().zip(rounds) {
                let what = format!("added µs at {rate} requests/s, {name}");
                lines.push(Line::new(
                    Metric::new(what, Goal::None, Level::Full),
                    &rounds,
                ));
            }
        }
        Ok(lines)
    }
}

/// Requests a second.
const RATES: [u32; 2] = [500, 2000];
const SHARES: [(&str, f64); 2] = [("p50", 0.5), ("p99", 0.99)];
