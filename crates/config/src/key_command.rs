//! Runs a command that prints an API key.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, sleep};
use std::time::Duration;

use tokio::time::Instant;

/// Runs `command`, a program and its arguments, without a shell, and returns its standard output.
/// Blocks for at most `timeout`; a command that takes longer is killed. The error is a sentence for
/// the operator, with the last line of standard error.
pub(crate) fn output(command: &[String], timeout: Duration) -> Result<String, String> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| "the command is empty".to_owned())?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("the command '{program}' cannot be run: {error}"))?;
    let printed = child.stdout.take().map(start_reading);
    let complaints = child.stderr.take().map(start_reading);
    let Some(status) = wait(&mut child, timeout) else {
        return Err(format!(
            "the command '{program}' has not ended within {timeout:?}"
        ));
    };
    if !status.success() {
        let last = last_line(&received(complaints));
        return Err(format!(
            "the command '{program}' has failed with {status}{last}"
        ));
    }
    let printed = received(printed);
    if printed.len() > MAX_OUTPUT {
        return Err(format!(
            "the command '{program}' prints more than {MAX_OUTPUT} bytes"
        ));
    }
    match String::from_utf8(printed) {
        Ok(key) if !key.trim().is_empty() => Ok(key),
        _ => Err(format!("the command '{program}' prints no key")),
    }
}

/// Waits until the child has ended. Returns `None` if it had to be killed.
fn wait(child: &mut Child, timeout: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + timeout;
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() >= deadline {
            // It may have ended just now. Without `wait` it would remain a zombie.
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        sleep(POLL_INTERVAL);
    }
}

/// Reads a pipe in a thread, so that the child never waits for a reader. Output beyond the limit is
/// discarded.
fn start_reading(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = sync_channel(1);
    thread::spawn(move || {
        let mut read = Vec::new();
        let limit = MAX_OUTPUT as u64 + 1;
        // A pipe that fails has no more to read.
        let _ = pipe.by_ref().take(limit).read_to_end(&mut read);
        let _ = io::copy(&mut pipe, &mut io::sink());
        let _ = sender.send(read);
    });
    receiver
}

/// Returns the output, or nothing if a descendant of the ended child keeps the pipe open.
fn received(reading: Option<Receiver<Vec<u8>>>) -> Vec<u8> {
    reading
        .and_then(|reading| reading.recv_timeout(MAX_LAG).ok())
        .unwrap_or_default()
}

/// Returns the last line with text, as the end of a sentence.
fn last_line(complaints: &[u8]) -> String {
    let text = String::from_utf8_lossy(complaints);
    let last = text
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty());
    last.map_or_else(String::new, |line| {
        let line: String = line
            .chars()
            .filter(|character| !character.is_control())
            .take(MAX_LINE)
            .collect();
        format!(": {line}")
    })
}

/// The longest time that a command may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest output, in bytes. Access tokens have up to a few kilobytes.
const MAX_OUTPUT: usize = 16 << 10;
/// The longest text of standard error in an error message, in characters.
const MAX_LINE: usize = 200;
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The time after the end of a command within which its output has to be read.
const MAX_LAG: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<String, String> {
        output(&["sh", "-c", script].map(str::to_owned), TIMEOUT)
    }

    #[test]
    fn the_output_is_the_key() {
        assert_eq!(shell("echo secret"), Ok("secret\n".to_owned()));
        // The arguments are not interpreted.
        let plain = ["echo", "$HOME;a b"].map(str::to_owned);
        assert_eq!(output(&plain, TIMEOUT), Ok("$HOME;a b\n".to_owned()));
    }

    #[test]
    fn a_command_that_fails_is_reported_with_its_last_words() {
        assert_eq!(
            shell("echo ignored; echo one >&2; printf 'log\\033 in\\n\\n' >&2; exit 3"),
            Err("the command 'sh' has failed with exit status: 3: log in".to_owned())
        );
        let none = "the command 'sh' prints no key".to_owned();
        assert_eq!(shell("echo; echo"), Err(none));
        let missing = output(&["/nowhere/at-all".to_owned()], TIMEOUT).unwrap_err();
        assert_eq!(
            missing,
            "the command '/nowhere/at-all' cannot be run: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn output_and_time_are_bounded() {
        assert_eq!(
            shell("head -c 20000 /dev/zero | tr '\\0' a; head -c 200000 /dev/zero >&2"),
            Err("the command 'sh' prints more than 16384 bytes".to_owned())
        );
        let endless = ["sleep", "600"].map(str::to_owned);
        assert_eq!(
            output(&endless, Duration::from_millis(50)),
            Err("the command 'sleep' has not ended within 50ms".to_owned())
        );
    }
}
