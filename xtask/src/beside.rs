//! Commands that run beside others.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::outcome::{At as _, Outcome};
use crate::process::{self, Killed};
use crate::workspace;

/// A command that runs beside others, and is killed when dropped.
pub(crate) struct Beside {
    name: &'static str,
    child: Killed,
    log: PathBuf,
}

impl Beside {
    /// Starts a command, whose output goes to a file in the target folder.
    pub(crate) fn start(name: &'static str, command: &mut Command) -> Outcome<Self> {
        let log = workspace::target()?.join(format!("{}.log", name.replace("::", "-")));
        let command = process::logged(command.stdin(Stdio::null()).process_group(0), &log)?;
        let child = Killed(process::start(command)?);
        println!("'{name}' runs beside the next steps: {}", log.display());
        Ok(Self { name, child, log })
    }

    /// Waits for the end of the command and returns its output, or prints it if it has failed.
    pub(crate) fn output(mut self) -> Outcome<String> {
        let status = self.child.0.wait().at(self.name)?;
        let output = fs::read_to_string(&self.log).at(&self.log)?;
        if !status.success() {
            print!("{output}");
            return Err(format!("'{}' ended with {status}", self.name));
        }
        Ok(output)
    }
}
