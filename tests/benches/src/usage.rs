//! The system's counters of a process: its CPU time, switches and page faults.

use std::fs;
use std::time::Duration;

use crate::Outcome;

/// The resources that a process has used, since its start or between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// CPU time in its own code.
    pub user: Duration,
    /// CPU time in system calls.
    pub system: Duration,
    /// Switches to another thread because a thread had to wait.
    pub voluntary: u64,
    /// Switches to another thread while a thread could have gone on.
    pub forced: u64,
    /// Page faults that needed no reading from a disk.
    pub faults: u64,
}

impl Usage {
    /// The usage of the process so far. Switches are counted for its living threads only.
    pub fn of(process: u32) -> Outcome<Self> {
        let stat = read(&format!("/proc/{process}/stat"))?;
        let mut usage = times(&stat).ok_or_else(|| format!("/proc/{process}/stat: {stat:?}"))?;
        let tasks = format!("/proc/{process}/task");
        for task in fs::read_dir(&tasks).map_err(|error| format!("{tasks}: {error}"))? {
            // A thread may end between the two calls.
            let Ok(status) = task.and_then(|task| fs::read_to_string(task.path().join("status")))
            else {
                continue;
            };
            usage.voluntary += counter(&status, "voluntary_ctxt_switches:");
            usage.forced += counter(&status, "nonvoluntary_ctxt_switches:");
        }
        Ok(usage)
    }

    /// The usage since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            forced: self.forced.saturating_sub(before.forced),
            faults: self.faults.saturating_sub(before.faults),
        }
    }
}

/// The times and faults of a line of `/proc/PID/stat`.
fn times(stat: &str) -> Option<Usage> {
    // The name of the program may contain blanks. The first field after its end is the third.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<_> = fields.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Usage {
        user: TICK * u32::try_from(field(14)?).ok()?,
        system: TICK * u32::try_from(field(15)?).ok()?,
        faults: field(10)?,
        ..Usage::default()
    })
}

fn counter(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|value| value.trim().parse().ok())
        .unwrap_or(0)
}

fn read(path: &str) -> Outcome<String> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

/// The system's unit of CPU time.
const TICK: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_two_numbers() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194560 321 0 0 0 12 34 5 6 20 0 3 0 99 0 0\n";
        assert_eq!(
            times(stat),
            Some(Usage {
                user: Duration::from_millis(120),
                system: Duration::from_millis(340),
                faults: 321,
                ..Usage::default()
            })
        );
        assert_eq!(times("7 (a) S 1"), None);
    }

    #[test]
    fn counters_are_found_by_their_whole_name() {
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t15\nnonvoluntary_ctxt_switches:\t4\n";
        assert_eq!(counter(status, "voluntary_ctxt_switches:"), 15);
        assert_eq!(counter(status, "nonvoluntary_ctxt_switches:"), 4);
    }
}
