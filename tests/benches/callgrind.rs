//! Runs a program under callgrind and counts its instructions over a period.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Outcome;
use crate::subject::{self, Subject};

/// A running program whose instructions can be counted.
pub(crate) struct Counted {
    pub(crate) subject: Subject,
    folder: Folder,
}

/// The cost of a unit of work, such as a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Count {
    /// Instructions in user space.
    pub(crate) instructions: u64,
    /// Different lines of 64 bytes of code that were executed at all, over all units.
    pub(crate) code_lines: u64,
}

impl Counted {
    /// Starts a bare proxy by its command.
    pub(crate) fn bare(command: &Command) -> Outcome<Self> {
        let folder = Folder::new()?;
        let subject = subject::bare_by(&mut wrapped(command, &folder))?;
        Ok(Self { subject, folder })
    }

    /// Starts a gateway with this configuration.
    pub(crate) fn gateway(program: &Path, config: &str) -> Outcome<Self> {
        let folder = Folder::new()?;
        let subject = subject::gateway_by(wrapped(&Command::new(program), &folder), config)?;
        Ok(Self { subject, folder })
    }

    /// Starts counting.
    pub(crate) fn begin(&self) -> Outcome {
        self.control(&["instrumentation", "on"])?;
        self.control(&["zero"])
    }

    /// Stops counting, and returns the cost of each of so many units.
    pub(crate) fn take(&self, units: usize) -> Outcome<Count> {
        self.control(&["dump"])?;
        self.control(&["instrumentation", "off"])?;
        let dump = self.folder.newest()?;
        let text = std::fs::read_to_string(&dump)
            .map_err(|error| format!("{}: {error}", dump.display()))?;
        let count = parse(&text)?;
        Ok(Count {
            instructions: count.instructions / units.max(1) as u64,
            ..count
        })
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

/// Sums up a profile of callgrind: <https://valgrind.org/docs/manual/cl-format.html>.
fn parse(text: &str) -> Outcome<Count> {
    let mut lines = HashSet::new();
    let (mut object, mut instructions, mut is_call) = ("", 0, false);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("ob=") {
            object = name;
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if let Some(rest) = line.strip_prefix("0x") {
            let mut words = rest.split(' ');
            let address = words
                .next()
                .and_then(|word| u64::from_str_radix(word, 16).ok());
            let cost: Option<u64> = words.nth(1).and_then(|word| word.parse().ok());
            let (Some(address), Some(cost)) = (address, cost) else {
                return Err(format!("callgrind: {line:?}"));
            };
            lines.insert((object, address / LINE));
            // The line after a call has the inclusive cost of the callee, which is listed elsewhere
            // too.
            instructions += if is_call { 0 } else { cost };
            is_call = false;
        }
    }
    match instructions {
        0 => Err("callgrind has counted nothing".to_owned()),
        _ => Ok(Count {
            instructions,
            code_lines: lines.len() as u64,
        }),
    }
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
            parse(text),
            Ok(Count {
                instructions: 36,
                code_lines: 3
            })
        );
        assert!(parse("events: Ir\n").is_err());
        assert!(parse("0x10 0\n").unwrap_err().contains("0x10 0"));
    }
}
