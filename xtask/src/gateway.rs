//! Runs the gateway and the simulator as child processes of a task.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::outcome::Outcome;
use crate::process;

/// A running gateway with separate keys, stopped when dropped.
pub(crate) struct Gateway(Server);

impl Gateway {
    /// The variables that name its keys, for the gateway and for its clients.
    pub(crate) const KEYS: [(&str, &str); 3] = [
        ("SLUICEGATE_TEXT_KEY", "sg_test_text_key_000000000000000000"),
        ("SLUICEGATE_MESSAGES_KEY", "sg_test_messages_key_000000000000000"),
        ("SLUICEGATE_IMAGE_KEY", "sg_test_images_key_00000000000000000"),
    ];

    /// Runs `program` without a configuration on a port that the system chooses, and waits until it listens. It
    /// accepts `keys`, by the names of [`Gateway::KEYS`]; its log is written to the file `log`.
    ///
    /// # Errors
    ///
    /// If it cannot be started or ends before it listens.
    pub(crate) fn start(program: &Path, keys: [(&str, &str); 3], log: &Path) -> Outcome<Self> {
        Self::serve(&mut Command::new(program), &[], keys, log)
    }

    /// Runs `program` as [`Gateway::start`] does, with the configuration file `config`.
    ///
    /// # Errors
    /// As [`Gateway::start`].
    pub(crate) fn configured(program: &Path, config: &Path, keys: [(&str, &str); 3], log: &Path) -> Outcome<Self> {
        Self::serve(&mut Command::new(program), &["--config".as_ref(), config], keys, log)
    }

    fn serve(command: &mut Command, options: &[&Path], keys: [(&str, &str); 3], log: &Path) -> Outcome<Self> {
        let file = File::create(log).map_err(|error| format!("{} cannot be written: {error}", log.display()))?;
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]).args(options).envs(keys);
        command.env_remove("SLUICEGATE_LOG").stderr(file);
        let server = Server::start(command, "sluicegate listens on ");
        server.map(Self).map_err(|error| format!("{error}: see {}", log.display()))
    }

    /// Its address, without the `/v1`.
    pub(crate) fn url(&self) -> &str {
        &self.0.url
    }
}

/// A running simulator of model servers, stopped when dropped.
pub(crate) struct Simulator(Server);

impl Simulator {
    /// Runs `program` on a port that the system chooses, and waits until it listens.
    ///
    /// # Errors
    ///
    /// If it cannot be started or ends before it listens.
    pub(crate) fn start(program: &Path) -> Outcome<Self> {
        let mut command = Command::new(program);
        Server::start(command.args(["--listen", "127.0.0.1:0"]), "sluicegate-simulator listens on ").map(Self)
    }

    /// Its base URL, with the `/v1`.
    pub(crate) fn base_url(&self) -> &str {
        &self.0.url
    }
}

/// A server that prints its address, stopped when dropped.
struct Server {
    child: Child,
    /// Kept open so that the server can write its output.
    output: BufReader<ChildStdout>,
    url: String,
}

impl Server {
    /// Starts `command` and waits for the line with the address after `greeting`.
    fn start(command: &mut Command, greeting: &str) -> Outcome<Self> {
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| process::not_started(command, &error))?;
        let output = BufReader::new(child.stdout.take().ok_or("the server has no output")?);
        let mut server = Self { child, output, url: String::new() };
        let mut lines = (&mut server.output).lines().map_while(Result::ok);
        let url = lines.find_map(|line| Some(line.strip_prefix(greeting)?.to_owned()));
        server.url = url.ok_or_else(|| format!("{} did not start", command.get_program().display()))?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // This fails if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
