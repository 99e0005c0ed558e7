//! Runs the gateway and the simulator as child processes of a task.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};

use crate::outcome::{At as _, Outcome};
use crate::process::{self, Killed};
use crate::workspace;

/// The variables that name the keys of a gateway, for it and for its clients.
pub(crate) const KEYS: [(&str, &str); 3] = [
    ("SLUICEGATE_TEXT_KEY", "sg_test_text_key_000000000000000000"),
    (
        "SLUICEGATE_MESSAGES_KEY",
        "sg_test_messages_key_000000000000000",
    ),
    (
        "SLUICEGATE_IMAGE_KEY",
        "sg_test_images_key_00000000000000000",
    ),
];

/// A running gateway or simulator, stopped when dropped.
pub(crate) struct Server {
    /// Its address; that of a simulator has the `/v1`.
    pub(crate) url: String,
    _child: Killed,
    /// Kept open so that the server can write its output.
    _output: BufReader<ChildStdout>,
}

impl Server {
    /// Runs the gateway with `options` on ports that the system chooses, and waits until it
    /// listens. It accepts `keys`, by the names of [`KEYS`]; its log is written to the file `log`.
    pub(crate) fn gateway(options: &[&Path], keys: [(&str, &str); 3], log: &Path) -> Outcome<Self> {
        let mut command = Command::new(workspace::binary("sluicegate")?);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .args(options)
            .envs(keys);
        command
            .env_remove("SLUICEGATE_LOG")
            .stderr(File::create(log).at(log)?);
        let server = Self::start(&mut command, "sluicegate listens on ");
        server.map_err(|error| format!("{error}: see {}", log.display()))
    }

    /// Runs a simulator of model servers on a port that the system chooses, and waits until it
    /// listens.
    pub(crate) fn simulator() -> Outcome<Self> {
        let mut command = Command::new(workspace::binary("sluicegate-simulator")?);
        Self::start(
            command.args(["--listen", "127.0.0.1:0"]),
            "sluicegate-simulator listens on ",
        )
    }

    /// Starts `command` and waits for the line with the address after `greeting`.
    fn start(command: &mut Command, greeting: &str) -> Outcome<Self> {
        let mut child = Killed(process::start(command.stdout(Stdio::piped()))?);
        let mut output = BufReader::new(child.0.stdout.take().ok_or("the server has no output")?);
        let mut lines = (&mut output).lines().map_while(Result::ok);
        let url = lines.find_map(|line| Some(line.strip_prefix(greeting)?.to_owned()));
        let url =
            url.ok_or_else(|| format!("{} did not start", command.get_program().display()))?;
        Ok(Self {
            url,
            _child: child,
            _output: output,
        })
    }
}
