//! `fuzz/LOG.md`: the total fuzzing time of every target over all runs.

use std::collections::BTreeMap;

use super::Stats;
use crate::markdown::{self, row};
use crate::outcome::{At as _, Outcome};
use crate::workspace;

/// The log, by the names of targets.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Log(BTreeMap<String, Entry>);

#[derive(Debug, Default, Clone, PartialEq)]
struct Entry {
    /// Totals over all runs, but coverage and corpus of the last one.
    stats: Stats,
    /// The commit of the last full run without a finding. Any finding clears it.
    clean: Option<String>,
}

impl Log {
    pub(super) fn read() -> Outcome<Self> {
        Self::parse(&workspace::read(PATH)?).at(PATH)
    }

    /// Returns the commit of a target's last full run without a finding, unless one came later.
    pub(super) fn clean_run(&self, target: &str) -> Option<&str> {
        self.0.get(target)?.clean.as_deref()
    }

    /// Adds a run. `clean` is the commit of a full run without a finding.
    pub(super) fn add(&mut self, target: &str, mut stats: Stats, clean: Option<&String>) {
        let entry = self.0.entry(target.to_owned()).or_default();
        if stats.findings > 0 {
            entry.clean = None;
        }
        entry.clean = clean.cloned().or(entry.clean.take());
        let total = &mut entry.stats;
        stats.seconds += total.seconds;
        stats.executions += total.executions;
        stats.findings += total.findings;
        *total = stats;
    }

    /// Writes the log, with a row for each of `targets`.
    pub(super) fn write(&self, targets: &[String]) -> Outcome {
        workspace::write(PATH, self.text(targets))
    }

    fn text(&self, targets: &[String]) -> String {
        let mut text = OPENING.to_owned();
        for target in targets {
            let Entry { stats, clean } = self.0.get(target).cloned().unwrap_or_default();
            let Stats {
                seconds,
                executions,
                coverage,
                corpus,
                findings,
            } = stats;
            let minutes = format!("{:.1}", seconds as f64 / 60.0);
            let counts = [executions, coverage, corpus, findings].map(|count| count.to_string());
            let clean = clean.map_or_else(|| NONE.to_owned(), |commit| format!("`{commit}`"));
            text += &row([
                target, &minutes, &counts[0], &counts[1], &counts[2], &counts[3], &clean,
            ]);
        }
        text
    }

    fn parse(text: &str) -> Outcome<Self> {
        let entry = |cells: [String; 7]| {
            let [
                target,
                minutes,
                executions,
                coverage,
                corpus,
                findings,
                clean,
            ] = cells;
            let number = |cell: &str| cell.parse::<f64>().at(&target);
            let stats = Stats {
                seconds: (number(&minutes)? * 60.0).round() as u64,
                executions: number(&executions)? as u64,
                coverage: number(&coverage)? as u64,
                corpus: number(&corpus)? as u64,
                findings: number(&findings)? as u64,
            };
            let clean = (clean != NONE).then(|| clean.trim_matches('`').to_owned());
            Ok((target, Entry { stats, clean }))
        };
        Ok(Self(
            markdown::rows(text)?
                .into_iter()
                .map(entry)
                .collect::<Outcome<_>>()?,
        ))
    }
}

const PATH: &str = "fuzz/LOG.md";
const OPENING: &str = "\
# Fuzzing

The totals of `cargo xtask fuzz --minutes N --log`. CPU minutes, executions and findings add up over all runs; edges (of
the target's code that the inputs reach) and corpus are those of the last one. The input of a finding is committed to
`fuzz/corpus`, from where every fuzz run and `cargo xtask ci` run it again. The last column has the commit of the last
run of five minutes or more without a finding; a finding clears it, and `cargo xtask ci` fails until the next clean run.

| target | CPU minutes | executions | edges | corpus | findings | last clean run |
|---|---|---|---|---|---|---|
";
/// The cell of a target without a clean run.
const NONE: &str = "–";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_add_up_and_are_read_back() {
        let stats = Stats {
            seconds: 90,
            executions: 1000,
            coverage: 120,
            corpus: 14,
            findings: 1,
        };
        let mut log = Log::default();
        log.add("sse", stats, None);
        let targets = ["auth".to_owned(), "sse".to_owned()];
        let text = log.text(&targets);
        assert!(
            text.ends_with(
                "| auth | 0.0 | 0 | 0 | 0 | 0 | – |\n| sse | 1.5 | 1000 | 120 | 14 | 1 | – |\n"
            ),
            "{text}"
        );
        let mut read = Log::parse(&text).unwrap();
        assert_eq!(read.0["sse"], log.0["sse"]);
        let clean = Stats {
            coverage: 130,
            corpus: 13,
            findings: 0,
            ..stats
        };
        read.add("sse", clean, Some(&"0123abc".to_owned()));
        let row = "| sse | 3.0 | 2000 | 130 | 13 | 1 | `0123abc` |\n";
        assert!(read.text(&targets).ends_with(row));
        let mut read = Log::parse(&read.text(&targets)).unwrap();
        // A short run leaves the last full one, and a finding makes it void.
        read.add("sse", clean, None);
        assert_eq!(read.clean_run("sse"), Some("0123abc"));
        read.add("sse", stats, None);
        assert_eq!(read.clean_run("sse"), None);
    }
}
