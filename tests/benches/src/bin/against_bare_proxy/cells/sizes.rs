//! The sizes of the programs.

use std::path::Path;

use super::Bench;
use crate::report::{Goal, Level, Line, Metric, Round};
use benches::Outcome;

impl Bench {
    pub(super) fn sizes(&self) -> Outcome<Vec<Line>> {
        let bare = mebibytes(&self.programs.bare)?;
        let line = |what: &str, bare, gateway| {
            let round = Round {
                bare,
                per_core: None,
                gateway,
            };
            Line::new(Metric::new(what, Goal::None, Level::Full), &[round])
        };
        let mut lines = vec![line(
            "binary without engines, MiB",
            Some(bare),
            mebibytes(&self.programs.gateway)?,
        )];
        if let Some(program) = &self.with_engines {
            lines.push(line("binary with engines, MiB", None, mebibytes(program)?));
        }
        Ok(lines)
    }
}

fn mebibytes(program: &Path) -> Outcome<f64> {
    let file = std::fs::metadata(program);
    file.map(|file| file.len() as f64 / f64::from(1 << 20))
        .map_err(|error| format!("{}: {error}", program.display()))
}
