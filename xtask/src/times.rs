//! The steps of a run, and their durations: a table at its end, and rows that are appended to
//! `target/ci-times.tsv`.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::outcome::{At as _, Outcome};
use crate::{process, workspace};

/// The steps that have ended so far, with their durations.
pub(crate) struct Times {
    /// The command that runs the steps.
    command: &'static str,
    begun: Mark,
    rows: Vec<Row>,
}

/// A point in time, and the CPU time that the children of this process had used until then.
#[derive(Clone, Copy)]
struct Mark {
    at: Instant,
    spent: Duration,
}

/// One step that has ended.
struct Row {
    step: String,
    wall: Duration,
    processor: Duration,
    passed: bool,
}

impl Times {
    pub(crate) fn of(command: &'static str) -> Self {
        Self {
            command,
            begun: Mark::now(),
            rows: Vec::new(),
        }
    }

    /// Runs one step between two lines that name it, and records its duration, whether it passes or
    /// fails.
    pub(crate) fn step<T>(&mut self, step: &str, run: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        println!("\n== {step}");
        let begun = Mark::now();
        let outcome = run();
        let (wall, processor) = begun.since();
        let passed = outcome.is_ok();
        println!(
            "== {step}: {} in {}",
            if passed { "passed" } else { "FAILED" },
            shown(wall)
        );
        self.rows.push(Row {
            step: step.to_owned(),
            wall,
            processor,
            passed,
        });
        outcome
    }

    /// Prints the table of all steps and how many passed, and appends them to the file.
    pub(crate) fn finish(&self) {
        println!("\n{}", self.table());
        let passed = self.rows.iter().filter(|row| row.passed).count();
        println!(
            "steps: {passed} passed, {} failed",
            self.rows.len() - passed
        );
        // The times are for people: without the file the result of the run is still valid.
        if let Err(error) = self.keep() {
            eprintln!("the step times were not saved: {error}");
        }
    }

    fn table(&self) -> String {
        let (wall, processor) = self.begun.since();
        let width = self
            .rows
            .iter()
            .map(|row| row.step.len())
            .chain(["total".len()])
            .max()
            .unwrap_or_default();
        let mut table = format!(
            "{:width$} {:>12} {:>12}\n",
            self.command, "wall", "processor"
        );
        for Row {
            step,
            wall,
            processor,
            passed,
        } in &self.rows
        {
            let mark = if *passed { "" } else { "  FAILED" };
            _ = writeln!(
                table,
                "{step:width$} {:>12} {:>12}{mark}",
                shown(*wall),
                shown(*processor)
            );
        }
        _ = write!(
            table,
            "{:width$} {:>12} {:>12}",
            "total",
            shown(wall),
            shown(processor)
        );
        table
    }

    fn keep(&self) -> Outcome {
        let folder = workspace::target()?;
        fs::create_dir_all(&folder).at(&folder)?;
        let path = folder.join("ci-times.tsv");
        let mut text = if path.exists() {
            String::new()
        } else {
            HEAD.to_owned()
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "the file has the time of each run"
        )]
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_secs());
        for Row {
            step,
            wall,
            processor,
            passed,
        } in &self.rows
        {
            let result = if *passed { "passed" } else { "failed" };
            let [wall, processor] = [wall, processor].map(Duration::as_secs_f64);
            _ = writeln!(
                text,
                "{now}\t{}\t{step}\t{wall:.1}\t{processor:.1}\t{result}",
                self.command
            );
        }
        let file = File::options().create(true).append(true).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .at(&path)
    }
}

impl Mark {
    fn now() -> Self {
        Self {
            at: now(),
            spent: process::spent_by_children(),
        }
    }

    /// The elapsed time and CPU time since then.
    fn since(self) -> (Duration, Duration) {
        (
            self.at.elapsed(),
            process::spent_by_children().saturating_sub(self.spent),
        )
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
pub(crate) fn shown(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

const HEAD: &str = "ended\tcommand\tstep\twall_seconds\tprocessor_seconds\tresult\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_in_the_table_with_its_result() {
        let mut times = Times::of("ci");
        assert_eq!(times.step("format", || Ok(7)), Ok(7));
        assert_eq!(
            times.step("tests", || Err::<(), _>("one failed".to_owned())),
            Err("one failed".to_owned())
        );
        let table = times.table();
        let lines: Vec<Vec<_>> = table
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[0], ["ci", "wall", "processor"]);
        assert_eq!((lines[1][0], lines[1].len()), ("format", 5));
        assert_eq!((lines[2][0], lines[2].last()), ("tests", Some(&"FAILED")));
        assert_eq!(lines[3][0], "total");
    }

    #[test]
    fn times_are_shown_as_people_read_them() {
        assert_eq!(shown(Duration::from_millis(59_940)), "59.9 s");
        assert_eq!(shown(Duration::from_secs(3_605)), "60 min 05 s");
    }
}
