//! Runs other programs.

use std::ffi::OsStr;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use crate::outcome::{At as _, Outcome};
use crate::times::now;

/// Runs a command to its end with inherited output; fails if it does not succeed.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let status = start(command)?.wait().at(shown(command))?;
    succeeded(command, status)
}

/// Prints a command and runs it.
pub(crate) fn echoed(command: &mut Command) -> Outcome {
    println!("$ {}", shown(command));
    run(command)
}

/// Runs a command as [`run`] does, and returns its output; its standard error is inherited.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    captured(command.stderr(Stdio::inherit()))
}

/// Runs a command as [`output`] does, with the standard error that it was given.
pub(crate) fn captured(command: &mut Command) -> Outcome<String> {
    let output = command.output();
    let output = output.map_err(|error| not_started(command, &error))?;
    succeeded(command, output.status)?;
    String::from_utf8(output.stdout).at(shown(command))
}

/// Fails if a command has ended without success.
pub(crate) fn succeeded(command: &Command, status: ExitStatus) -> Outcome {
    match status.success() {
        true => Ok(()),
        false => Err(format!("`{}` ended with {status}", shown(command))),
    }
}

/// Writes the output of a command to the file `log`.
pub(crate) fn logged<'a>(command: &'a mut Command, log: &Path) -> Outcome<&'a mut Command> {
    let file = File::create(log).at(log)?;
    Ok(command.stdout(file.try_clone().at(log)?).stderr(file))
}

pub(crate) fn start(command: &mut Command) -> Outcome<Child> {
    let child = command.spawn();
    child.map_err(|error| not_started(command, &error))
}

/// Runs a command to its end, but kills it and all that it has started after `limit`. Returns `None`
/// in that case.
pub(crate) fn bounded(command: &mut Command, limit: Duration) -> Outcome<Option<ExitStatus>> {
    let mut child = Killed(start(command.process_group(0))?);
    let begun = now();
    while begun.elapsed() < limit {
        if let Some(status) = child.0.try_wait().at(shown(command))? {
            return Ok(Some(status));
        }
        thread::sleep(PAUSE);
    }
    Ok(None)
}

/// A child process, killed when dropped: with all that it has started, if it leads a process group.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            let group = format!("-{}", self.0.id());
            let mut kill = Command::new("kill");
            // It fails if there is no such group.
            let _ = kill
                .args(["-KILL", "--", &group])
                .stderr(Stdio::null())
                .status();
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// The message for a command that could not be started.
pub(crate) fn not_started(command: &Command, error: &std::io::Error) -> String {
    let program = command.get_program().display();
    match error.kind() {
        ErrorKind::NotFound => format!("{program} is not installed, or not on the PATH"),
        _ => format!("{program} cannot be started: {error}"),
    }
}

/// The command as a person would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name();
    let words = program.into_iter().chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    words.join(" ")
}

/// The interval at which a process is checked for its end.
const PAUSE: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = run(&mut Command::new("sluicegate-no-such-program")).unwrap_err();
        assert_eq!(
            error,
            "sluicegate-no-such-program is not installed, or not on the PATH"
        );
    }

    #[test]
    fn a_failing_command_is_reported_as_typed() {
        let error = run(Command::new("cargo")
            .arg("no-such-subcommand")
            .stderr(Stdio::null()))
        .unwrap_err();
        assert!(
            error.starts_with("`cargo no-such-subcommand` ended with exit status"),
            "{error}"
        );
    }

    #[test]
    fn a_program_that_takes_too_long_is_killed_with_its_children() {
        let run =
            |script: &str, limit| bounded(Command::new("sh").args(["-c", script]), limit).unwrap();
        let ended = run("exit 3", Duration::from_secs(60)).unwrap();
        assert_eq!(ended.code(), Some(3));
        assert_eq!(run("sleep 60 & wait", Duration::from_millis(20)), None);
    }
}
