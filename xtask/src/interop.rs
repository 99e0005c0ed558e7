//! `cargo xtask interop`: tests the gateway in front of a third-party model server.
//!
//! llama-cpp-python serves the weights of the embedded engine over Chat Completions, with code that shares nothing
//! with ours. The tests in `tests/interop` run a gateway without engines in front of it and send their requests
//! through that.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use crate::outcome::Outcome;
use crate::{fetch_model, process, python, workspace};

/// Installs the model and the server if they are absent, and runs the tests; `args` are passed to the test program.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    let weights = fetch_model::weights()?;
    println!("installing llama-cpp-python; the first time it is compiled, which takes a C++ compiler and some minutes");
    let requirements = workspace::root().join("tests").join("interop").join("requirements.txt");
    let python = python::environment("interop", &requirements)?;
    let log = workspace::target()?.join("interop.log");
    let server = ModelServer::start(&python, &weights, &log)?;
    println!("llama-cpp-python serves {} at {}", weights.display(), server.url);
    let mut test = workspace::cargo("test");
    test.args(["--locked", "--package", "sluicegate-server", "--no-default-features", "--features", "interop"]);
    test.args(["--test", "interop", "--"]);
    // The server handles one request at a time.
    test.args(["--ignored", "--test-threads=1"]).args(args);
    test.env("SLUICEGATE_INTEROP_URL", &server.url).env("SLUICEGATE_INTEROP_KEY", KEY);
    process::run(test.env("SLUICEGATE_INTEROP_LOG", &log))
}

/// A running llama-cpp-python, stopped when dropped.
struct ModelServer {
    child: Child,
    /// Its address, without the `/v1`.
    url: String,
}

impl ModelServer {
    /// Serves `weights` on a port that the system chooses, and waits until it listens. Its output is written to the
    /// file `log`.
    fn start(python: &Path, weights: &Path, log: &Path) -> Outcome<Self> {
        let file = appended(log).map_err(|error| format!("{} cannot be written: {error}", log.display()))?;
        let mut command = Command::new(python);
        command.args(["-m", "llama_cpp.server", "--host", "127.0.0.1", "--port", "0", "--api_key", KEY]);
        command.args(["--model_alias", "smollm2", "--n_ctx", "2048", "--n_threads", "1", "--n_threads_batch", "1"]);
        command.arg("--model").arg(weights);
        // They take precedence over its arguments.
        command.env_remove("HOST").env_remove("PORT").env_remove("CONFIG_FILE");
        command.env("PYTHONUNBUFFERED", "1").stdout(file.1).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| process::not_started(&command, &error))?;
        let output = child.stderr.take().ok_or("the model server has no output")?;
        let mut server = Self { child, url: String::new() };
        server.url = greeting(output, file.0).recv().map_err(|_| format!("it did not start: see {}", log.display()))?;
        Ok(server)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        // This fails if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A new file with two handles that append to it.
fn appended(path: &Path) -> std::io::Result<(File, File)> {
    File::create(path)?;
    let file = File::options().append(true).open(path)?;
    Ok((file.try_clone()?, file))
}

/// The address that a server prints once it listens. All of its output is written to `log`.
fn greeting(output: ChildStderr, mut log: File) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut sender = Some(sender);
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let text = String::from_utf8_lossy(&line);
            if let Some(url) = address(&text)
                && let Some(sender) = sender.take()
            {
                // This fails if the receiver has stopped waiting.
                let _ = sender.send(url.to_owned());
            }
            // The log is for people; without it the tests still report failures.
            let _ = writeln!(log, "{text}");
        }
    });
    receiver
}

/// The address within uvicorn's greeting.
fn address(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("Uvicorn running on ")?;
    rest.split(' ').next()
}

/// The key that the model server requires.
const KEY: &str = "sg_test_interop_key_00000000000000000";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_read_from_the_greeting() {
        let line = "INFO:     Uvicorn running on http://127.0.0.1:43211 (Press CTRL+C to quit)";
        assert_eq!(address(line), Some("http://127.0.0.1:43211"));
        assert_eq!(address("INFO:     Started server process [7]"), None);
    }
}
