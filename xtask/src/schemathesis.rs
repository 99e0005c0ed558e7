//! `cargo xtask schemathesis`: tests the running gateway against its own OpenAPI document.
//!
//! The document is validated first, against the official schema of OpenAPI. The checks of each
//! response, and those that are left out with the reason, are in `tests/schemathesis`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::gateway::{KEYS, Server};
use crate::outcome::{At as _, Outcome};
use crate::{fetch_model, process, python, seed, suite, workspace};

/// The command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The number of random requests for each operation
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    examples: u32,
    /// Leave out the operations of this tag, such as Images
    #[arg(long, value_name = "TAG")]
    without: Vec<String>,
    /// The seed of the requests instead of the one of the work tree
    #[arg(long)]
    seed: Option<u64>,
}

/// Runs ten examples of each operation.
pub(crate) fn smoke() -> Outcome {
    Args::of(10, None).run()
}

/// Runs 100 examples of each operation with a new seed.
pub(crate) fn nightly() -> Outcome {
    Args::of(100, Some(seed::fresh())).run()
}

impl Args {
    fn of(examples: u32, seed: Option<u64>) -> Self {
        Self {
            examples,
            without: Vec::new(),
            seed,
        }
    }

    /// Runs the tests.
    pub(crate) fn run(&self) -> Outcome {
        let seed = self.seed.map_or_else(seed::current, Ok)?;
        fetch_model::run()?;
        suite::binaries()?;
        let folder = workspace::root().join("tests").join("schemathesis");
        let python = python::environment("schemathesis", &folder.join("requirements.txt"))?;
        let document = write_document()?;
        process::run(
            Command::new(&python)
                .args(["-m", "openapi_spec_validator"])
                .arg(&document),
        )?;
        let simulator = Server::simulator()?;
        let config = write_configuration(&folder, &simulator.url)?;
        let keys = KEYS.map(|(variable, _)| (variable, KEY));
        let log = document.with_file_name("schemathesis.log");
        let gateway = Server::gateway(&["--config".as_ref(), config.as_path()], keys, &log)?;
        println!("requests are drawn by {}={seed}", seed::VARIABLE);
        let mut command = Command::new(python);
        command
            .current_dir(folder)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("SLUICEGATE_KEY", KEY);
        // A proxy of the user cannot reach the gateway.
        command.env("NO_PROXY", "127.0.0.1");
        command.env(
            "HYPOTHESIS_STORAGE_DIRECTORY",
            document.with_file_name("hypothesis"),
        );
        command.env(
            "SLUICEGATE_ANSWERS",
            (self.examples / EXAMPLES_PER_ANSWER).max(1).to_string(),
        );
        command
            .args(["-m", "schemathesis.cli", "run"])
            .arg(document)
            .args(["--url", &gateway.url]);
        command.args([
            "--max-examples",
            &self.examples.to_string(),
            "--seed",
            &seed.to_string(),
        ]);
        command.args(self.without.iter().flat_map(|tag| ["--exclude-tag", tag]));
        process::run(&mut command)
    }
}

/// Writes the document below the target folder.
fn write_document() -> Outcome<PathBuf> {
    let text = process::output(Command::new(workspace::binary("sluicegate")?).arg("openapi"))?;
    let file = workspace::target()?.join("openapi.json");
    fs::write(&file, text).at(&file)?;
    Ok(file)
}

/// Writes the gateway's configuration, with the address of the simulator, below the target folder.
fn write_configuration(folder: &Path, simulator: &str) -> Outcome<PathBuf> {
    let template = folder.join("sluicegate.toml");
    let text = fs::read_to_string(&template).at(&template)?;
    let file = workspace::target()?.join("schemathesis.toml");
    fs::write(&file, text.replace("{simulator}", simulator)).at(&file)?;
    Ok(file)
}

/// The embedded model is slow: one plain reply and one stream of each operation and phase for so
/// many examples.
const EXAMPLES_PER_ANSWER: u32 = 5;
/// One key for every capability.
const KEY: &str = "sg_test_schemathesis_key_0000000000000";
