//! The gateway as a child process of a chore.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::{Outcome, process};

/// A running gateway with keys of its own, stopped when dropped.
pub(crate) struct Gateway {
    child: Child,
    /// Held so that the gateway has somewhere to print to.
    output: BufReader<ChildStdout>,
    url: String,
}

impl Gateway {
    /// The variables that name its keys, for the gateway and for its clients.
    pub(crate) const KEYS: [(&str, &str); 3] = [
        ("SLUICEGATE_TEXT_KEY", "sg_test_text_key_000000000000000000"),
        ("SLUICEGATE_MESSAGES_KEY", "sg_test_messages_key_000000000000000"),
        ("SLUICEGATE_IMAGE_KEY", "sg_test_images_key_00000000000000000"),
    ];

    /// Runs `program` without a configuration on a port that the system chooses, and waits until it listens. It takes
    /// `keys`, by the names of [`Gateway::KEYS`]; its log goes to the file `log`.
    ///
    /// # Errors
    /// When it cannot be started or ends before it listens.
    pub(crate) fn start(program: &Path, keys: [(&str, &str); 3], log: &Path) -> Outcome<Self> {
        let file = File::create(log).map_err(|error| format!("{} cannot be written: {error}", log.display()))?;
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]).envs(keys);
        command.env_remove("SLUICEGATE_LOG").stdout(Stdio::piped()).stderr(file);
        let mut child = command.spawn().map_err(|error| process::not_started(&command, &error))?;
        let output = BufReader::new(child.stdout.take().ok_or("the gateway has no output")?);
        let mut gateway = Self { child, output, url: String::new() };
        let mut lines = (&mut gateway.output).lines().map_while(Result::ok);
        let url = lines.find_map(|line| Some(line.strip_prefix(GREETING)?.to_owned()));
        gateway.url = url.ok_or_else(|| format!("the gateway did not start: see {}", log.display()))?;
        Ok(gateway)
    }

    /// Its address, without the `/v1`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It has ended already where this fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What it prints before its address once it listens.
const GREETING: &str = "sluicegate listens on ";
