//! `cargo xtask interop`: tests the gateway in front of a third-party model server.
//!
//! llama-cpp-python serves the weights of the embedded engine over Chat Completions, with code that
//! shares nothing with ours. The tests in `tests/interop` run a gateway without engines in front of
//! it and send their requests through that.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use crate::outcome::{At as _, Outcome};
use crate::process::{self, Killed};
use crate::{fetch_model, python, workspace};

/// Installs the model and the server if they are absent, and runs the tests; `args` are passed to
/// the test program.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    let weights = fetch_model::weights()?;
    println!("installing llama-cpp-python: at first a C++ compiler needs minutes to compile it");
    let requirements = workspace::root().join("tests/interop/requirements.txt");
    let python = python::environment("interop", &requirements)?;
    let log = workspace::target()?.join("interop.log");
    let mut server = serve(&python, &weights, &log)?;
    let url = greeting(&mut server.0, &log)?;
    println!("llama-cpp-python serves {} at {url}", weights.display());
    // The server handles one request at a time.
    let mut test = workspace::cargo(
        "test --locked --package sluicegate-server --no-default-features --features interop \
         --test interop -- --ignored --test-threads=1",
    );
    test.env("SLUICEGATE_INTEROP_URL", url);
    test.env("SLUICEGATE_INTEROP_KEY", KEY);
    test.env("SLUICEGATE_INTEROP_LOG", &log);
    process::run(test.args(args))
}

/// Serves `weights` on a port that the system chooses. The output of the server is written to the
/// file `log`.
fn serve(python: &Path, weights: &Path, log: &Path) -> Outcome<Killed> {
    let mut command = Command::new(python);
    command.args(["-m", "llama_cpp.server", "--api_key", KEY]);
    command.args(["--host", "127.0.0.1", "--port", "0"]);
    command.args(["--model_alias", "smollm2", "--n_ctx", "2048"]);
    command.args(["--n_threads", "1", "--n_threads_batch", "1"]);
    command.arg("--model").arg(weights);
    // They take precedence over its arguments.
    for variable in ["HOST", "PORT", "CONFIG_FILE"] {
        command.env_remove(variable);
    }
    command.env("PYTHONUNBUFFERED", "1");
    process::start(process::logged(&mut command, log)?).map(Killed)
}

/// The address in the output of a server, once it listens.
fn greeting(server: &mut Child, log: &Path) -> Outcome<String> {
    loop {
        let has_ended = server.try_wait().at("the model server")?.is_some();
        if let Some(url) = fs::read_to_string(log).at(log)?.lines().find_map(address) {
            return Ok(url.to_owned());
        }
        if has_ended {
            return Err(format!("it did not start: see {}", log.display()));
        }
        thread::sleep(PAUSE);
    }
}

/// The address within uvicorn's greeting.
fn address(line: &str) -> Option<&str> {
    line.split_once("Uvicorn running on ")?.1.split(' ').next()
}

/// The interval at which the output is read for the address.
const PAUSE: Duration = Duration::from_millis(100);
/// The key that the model server requires.
const KEY: &str = "sg_test_interop_key_00000000000000000";

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn the_address_is_read_from_the_greeting() {
        let line = "INFO:     Uvicorn running on http://127.0.0.1:43211 (Press CTRL+C to quit)";
        assert_eq!(address(line), Some("http://127.0.0.1:43211"));
        assert_eq!(address("INFO:     Started server process [7]"), None);
    }

    #[test]
    fn a_server_has_started_once_it_prints_its_address() {
        let log = std::env::temp_dir().join(format!("xtask-interop-{}", std::process::id()));
        let start = |script: &str| {
            let file = File::create(&log).unwrap();
            let mut server = Command::new("sh")
                .args(["-c", script])
                .stderr(file)
                .spawn()
                .unwrap();
            let url = greeting(&mut server, &log);
            _ = (server.kill(), server.wait());
            url
        };
        assert_eq!(
            start("echo INFO: Uvicorn running on http://a:1 >&2; exec sleep 60"),
            Ok("http://a:1".to_owned())
        );
        assert!(
            start("echo no model >&2")
                .unwrap_err()
                .starts_with("it did not start: see ")
        );
        fs::remove_file(log).unwrap();
    }
}
