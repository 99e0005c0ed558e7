//! Runs a program under callgrind and counts its instructions over a period.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Outcome;
use crate::subject::{self, Subject};

/// A running program whose instructions can be counted.
pub struct Counted {
    /// The process.
    pub subject: Subject,
    folder: Folder,
}

/// The cost of a unit of work, such as a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    /// Instructions in user space.
    pub instructions: u64,
    /// Different lines of 64 bytes of code that at least every second unit executes. Code that runs now
    /// and then, such as a timer that a slow machine lets expire, is not among them.
    pub code_lines: u64,
}

impl Counted {
    /// Starts a bare proxy by its command.
    pub fn bare(command: &Command) -> Outcome<Self> {
        let folder = Folder::new()?;
        let subject = subject::bare_by(&mut wrapped(command, &folder))?;
        Ok(Self { subject, folder })
    }

    /// Starts a gateway with this configuration.
    pub fn gateway(program: &Path, config: &str) -> Outcome<Self> {
        let folder = Folder::new()?;
        let subject = subject::gateway_by(wrapped(&Command::new(program), &folder), config)?;
        Ok(Self { subject, folder })
    }

    /// Starts counting.
    pub fn begin(&self) -> Outcome {
        self.control(&["instrumentation", "on"])?;
        self.control(&["zero"])
    }

    /// Stops counting, and returns the cost of each of so many units.
    pub fn take(&self, units: usize) -> Outcome<Count> {
        self.control(&["dump"])?;
        self.control(&["instrumentation", "off"])?;
        let dump = self.folder.newest()?;
        let text = std::fs::read_to_string(&dump)
            .map_err(|error| format!("{}: {error}", dump.display()))?;
        parse(&text, units.max(1) as u64)
    }

    fn control(&self, words: &[&str]) -> Outcome {
        let process = self
            .subject
            .process_id()
            .ok_or("callgrind has no process")?;
        let mut vgdb = Command::new("vgdb");
        vgdb.arg(format!("--pid={process}"))
            .arg("--wait=10")
            .args(words);
        let output = vgdb.output().map_err(|error| format!("vgdb: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!(
                "vgdb {}: {}",
                words.join(" "),
                String::from_utf8_lossy(&output.stderr)
            )),
        }
    }
}

/// The command under callgrind, which counts nothing until it is switched on.
fn wrapped(command: &Command, folder: &Folder) -> Command {
    let mut valgrind = Command::new("valgrind");
    valgrind.args([
        "--tool=callgrind",
        "--instr-atstart=no",
        "--dump-instr=yes",
        "--quiet",
    ]);
    valgrind.args(["--compress-pos=no", "--compress-strings=no"]);
    valgrind.arg(format!(
        "--callgrind-out-file={}",
        folder.0.join("out").display()
    ));
    valgrind.arg(command.get_program()).args(command.get_args());
    // With a single worker the work does not depend on which threads are awake.
    valgrind
        .env("TOKIO_WORKER_THREADS", "1")
        .stderr(Stdio::null());
    valgrind
}

/// Sums up a profile of so many units: <https://valgrind.org/docs/manual/cl-format.html>.
fn parse(text: &str, units: u64) -> Outcome<Count> {
    // An instruction that was inlined into several functions' listings has a line in each.
    let mut executions: HashMap<(&str, u64), u64> = HashMap::new();
    let (mut object, mut is_call) = ("", false);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("ob=") {
            object = name;
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if let Some(rest) = line.strip_prefix("0x") {
            let (address, times) = executed(rest).ok_or_else(|| format!("callgrind: {line:?}"))?;
            // The line after a call has the inclusive cost of the callee, which is listed elsewhere
            // too.
            if !std::mem::take(&mut is_call) {
                *executions.entry((object, address)).or_default() += times;
            }
        }
    }
    if executions.is_empty() {
        return Err("callgrind has counted nothing".to_owned());
    }
    let ordinary = executions.iter().filter(|(_, times)| **times * 2 >= units);
    let lines: HashSet<_> = ordinary
        .map(|((object, address), _)| (object, address / LINE))
        .collect();
    Ok(Count {
        instructions: executions.values().sum::<u64>() / units,
        code_lines: lines.len() as u64,
    })
}

/// The address of an instruction and how often it was executed, from a line after its `0x`.
fn executed(rest: &str) -> Option<(u64, u64)> {
    let mut words = rest.split(' ');
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    Some((address, words.nth(1)?.parse().ok()?))
}

/// A temporary folder for the profiles, removed on drop.
struct Folder(PathBuf);

impl Folder {
    /// Creates a folder for the profiles of one process.
    fn new() -> Outcome<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let path = std::env::temp_dir().join(format!(
            "sluicegate-callgrind-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        ));
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }

    /// The newest profile: they are numbered.
    fn newest(&self) -> Outcome<PathBuf> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.0.display());
        let entries = std::fs::read_dir(&self.0)
            .map_err(failed)?
            .flatten()
            .map(|entry| entry.path());
        let number = |path: &PathBuf| path.extension()?.to_str()?.parse::<u32>().ok();
        let newest = entries
            .filter_map(|path| Some((number(&path)?, path)))
            .max();
        newest
            .map(|(_, path)| path)
            .ok_or_else(|| "callgrind has written no profile".to_owned())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The system removes it otherwise.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The bytes of a line of the instruction cache.
const LINE: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_costs_are_summed_and_lines_are_counted_once() {
        let text = "positions: instr line\nevents: Ir\n\nob=/a\nfn=one\n0x1000 0 5\n0x1004 0 7\ncalls=1 0x2000 0\n0x1008 0 900\n\
                    ob=/b\nfn=two\n0x1000 0 11\n0x1040 0 13\ntotals: 36\n";
        assert_eq!(
            parse(text, 1),
            Ok(Count {
                instructions: 36,
                code_lines: 3
            })
        );
        assert!(parse("events: Ir\n", 1).is_err());
        assert!(parse("0x10 0\n", 1).unwrap_err().contains("0x10 0"));
    }

    #[test]
    fn rarely_executed_lines_do_not_count() {
        let text = "ob=/a\nfn=one\n0x1000 0 10\n0x1040 0 4\nfn=two\n0x1080 0 3\n0x1080 9 2\n";
        assert_eq!(
            parse(text, 10),
            Ok(Count {
                instructions: 1,
                code_lines: 2
            })
        );
    }
}
