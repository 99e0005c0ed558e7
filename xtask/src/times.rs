//! The durations of the steps of a run, printed as a table at its end.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::outcome::Outcome;

/// The steps that have ended so far. Their table is printed when this is dropped.
pub(crate) struct Times {
    /// The command that runs the steps.
    command: &'static str,
    begun: Instant,
    /// The steps, their durations, and whether they have passed.
    rows: Vec<(String, Duration, bool)>,
}

impl Times {
    pub(crate) fn of(command: &'static str) -> Self {
        Self {
            command,
            begun: now(),
            rows: Vec::new(),
        }
    }

    /// Runs one step between two lines that name it, and records its duration even if it fails.
    pub(crate) fn step<T>(&mut self, step: &str, run: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        println!("\n== {step}");
        let begun = now();
        let outcome = run();
        let (took, passed) = (begun.elapsed(), outcome.is_ok());
        let result = if passed { "passed" } else { "FAILED" };
        println!("== {step}: {result} in {}", shown(took));
        self.rows.push((step.to_owned(), took, passed));
        outcome
    }

    fn table(&self) -> String {
        let names = self.rows.iter().map(|(step, ..)| step.len());
        let width = names.chain([self.command.len()]).max().unwrap_or_default();
        let mut table = String::new();
        for (step, took, passed) in &self.rows {
            let mark = if *passed { "" } else { "  FAILED" };
            _ = writeln!(table, "{step:width$} {:>12}{mark}", shown(*took));
        }
        let total = shown(self.begun.elapsed());
        _ = write!(table, "{:width$} {total:>12}", self.command);
        table
    }
}

/// Prints the table of all steps, and how many have passed.
impl Drop for Times {
    fn drop(&mut self) {
        println!("\n{}", self.table());
        let passed = self.rows.iter().filter(|row| row.2).count();
        let failed = self.rows.len() - passed;
        println!("steps: {passed} passed, {failed} failed");
    }
}

/// The current time, to measure how long something takes.
#[allow(
    clippy::disallowed_methods,
    reason = "a person waits for the tasks, and some have to end in time"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// A duration for people.
fn shown(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_in_the_table_with_its_result() {
        let mut times = Times::of("ci");
        assert_eq!(times.step("format", || Ok(7)), Ok(7));
        let failure = Err("one failed".to_owned());
        assert_eq!(times.step("tests", || failure.clone()), failure.map(drop));
        let table = times.table();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        let lines: Vec<Vec<String>> = table.lines().map(words).collect();
        assert_eq!(lines[0], ["format", "0.0", "s"]);
        assert_eq!(lines[1], ["tests", "0.0", "s", "FAILED"]);
        assert_eq!(lines[2][0], "ci");
    }

    #[test]
    fn durations_are_shown_in_seconds_or_minutes() {
        assert_eq!(shown(Duration::from_millis(59_940)), "59.9 s");
        assert_eq!(shown(Duration::from_secs(3_605)), "60 min 05 s");
    }
}
