//! One core for the measured process, and the others for the load and the upstream.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Outcome;

/// The cores that this process may use, split in two.
#[derive(Debug, PartialEq)]
pub struct Cores {
    /// The one on which a measured process runs alone.
    subject: u32,
    /// All others.
    rest: Vec<u32>,
}

/// The load and the upstream on their cores, until it is dropped.
pub struct Confined(Vec<u32>);

impl Cores {
    /// Splits the cores of this process.
    ///
    /// # Errors
    ///
    /// If there is only one.
    pub fn split() -> Outcome<Self> {
        let status = std::fs::read_to_string("/proc/self/status")
            .map_err(|error| format!("/proc/self/status: {error}"))?;
        let list = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        Self::of(&parse(list.unwrap_or_default().trim()))
    }

    /// The last core is the subject's: interrupts often go to the first.
    fn of(cores: &[u32]) -> Outcome<Self> {
        match cores {
            [rest @ .., subject] if !rest.is_empty() => Ok(Self {
                subject: *subject,
                rest: rest.to_vec(),
            }),
            _ => Err("rows of one core need a second one for the load and the upstream".to_owned()),
        }
    }

    /// Moves this process off the core of the subject.
    pub fn confine(&self) -> Outcome<Confined> {
        bind(&self.rest)?;
        let all = self.rest.iter().chain([&self.subject]);
        Ok(Confined(all.copied().collect()))
    }

    /// A program that runs on the core of the subject, with one worker.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("taskset");
        command.arg("-c").arg(self.subject.to_string()).arg(program);
        command.env("TOKIO_WORKER_THREADS", "1");
        command
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        // Otherwise later measurements run on fewer cores, which their figures show.
        if let Err(error) = bind(&self.0) {
            eprintln!("bench: {error}");
        }
    }
}

/// Binds all threads of this process, and those that they start, to these cores.
fn bind(cores: &[u32]) -> Outcome {
    let list: Vec<_> = cores.iter().map(u32::to_string).collect();
    let mut taskset = Command::new("taskset");
    taskset
        .args(["-a", "-p", "-c", &list.join(",")])
        .arg(std::process::id().to_string());
    let status = taskset
        .stdout(Stdio::null())
        .status()
        .map_err(|error| format!("taskset of util-linux: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("taskset: {status}")),
    }
}

/// Parses a list such as `0-2,5`.
fn parse(list: &str) -> Vec<u32> {
    let ranges = list.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_core_is_the_subjects() {
        let cores = |list| Cores::of(&parse(list));
        assert_eq!(
            cores("0-1,5"),
            Ok(Cores {
                subject: 5,
                rest: vec![0, 1]
            })
        );
        assert!(cores("3").is_err() && cores("").is_err());
    }
}
