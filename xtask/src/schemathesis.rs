//! `cargo xtask schemathesis`: tests the running gateway against its own OpenAPI document.
//!
//! The document is validated first, against the official schema of OpenAPI. The checks of each
//! response, and those that are left out with the reason, are in `tests/schemathesis`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::gateway::{KEYS, Server};
use crate::outcome::{At as _, Outcome};
use crate::{fetch_model, process, python, seed, suite, workspace};

/// Runs the tests that `args` select.
pub(crate) fn run(args: &[OsString]) -> Outcome {
    Plan::parse(args)?.run()
}

/// Runs ten examples of each operation.
pub(crate) fn smoke() -> Outcome {
    Plan::new(10, seed::current()?).run()
}

/// Runs 100 examples of each operation.
pub(crate) fn long() -> Outcome<String> {
    let seed = seed::fresh();
    Plan::new(100, seed).run()?;
    Ok(format!("passed with seed {seed}"))
}

/// The parsed command line.
#[derive(Debug)]
struct Plan {
    examples: u32,
    /// The seed of the requests.
    seed: u64,
    /// Tags whose operations are left out.
    without: Vec<String>,
}

impl Plan {
    fn new(examples: u32, seed: u64) -> Self {
        Self {
            examples,
            seed,
            without: Vec::new(),
        }
    }

    fn parse(args: &[OsString]) -> Outcome<Self> {
        let mut plan = Self::new(25, seed::current()?);
        let mut args = args.iter().map(|arg| arg.to_string_lossy());
        while let Some(arg) = args.next() {
            match &*arg {
                "--examples" => plan.examples = number(args.next().as_deref())?,
                "--without" => {
                    let tag = args.next().ok_or("--without takes a tag, such as Images")?;
                    plan.without.push(tag.into_owned());
                }
                other => {
                    return Err(format!(
                        "unexpected {other:?}: expected [--examples N] [--without TAG]…"
                    ));
                }
            }
        }
        Ok(plan)
    }

    fn run(&self) -> Outcome {
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
        println!("requests are drawn by {}={}", seed::VARIABLE, self.seed);
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
            &self.seed.to_string(),
        ]);
        command.args(self.without.iter().flat_map(|tag| ["--exclude-tag", tag]));
        process::run(&mut command)
    }
}

fn number(word: Option<&str>) -> Outcome<u32> {
    let number = word
        .and_then(|word| word.parse().ok())
        .filter(|number| (1..=100_000).contains(number));
    number.ok_or_else(|| format!("--examples takes a number, such as 100, not {word:?}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_read_or_refused() {
        let parse = |line: &str| {
            Plan::parse(
                &line
                    .split_whitespace()
                    .map(OsString::from)
                    .collect::<Vec<_>>(),
            )
        };
        let read = |line| parse(line).map(|plan| (plan.examples, plan.without.join(" ")));
        assert_eq!(read(""), Ok((25, String::new())));
        assert_eq!(
            read("--examples 5 --without Images --without Text"),
            Ok((5, "Images Text".to_owned()))
        );
        assert!(parse("--examples").unwrap_err().contains("takes a number"));
        assert!(
            parse("--examples 0")
                .unwrap_err()
                .contains("takes a number")
        );
        assert!(parse("--without").unwrap_err().contains("takes a tag"));
        assert!(
            parse("images")
                .unwrap_err()
                .contains("unexpected \"images\"")
        );
    }
}
