//! One run of an agent with one upstream, and its result.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::agent::{Agent, Job, Start};
use super::upstream::{self, Upstream};
use crate::outcome::{At as _, Outcome};
use crate::process;

/// The runs of an agent.
pub(super) struct Trial<'a> {
    pub(super) agent: &'a Agent,
    /// The search path with the programs of the agents.
    pub(super) path: &'a OsStr,
    /// The folder for its home and its output.
    pub(super) folder: &'a Path,
    /// The address of the gateway.
    pub(super) gateway: &'a str,
    /// The log of the gateway.
    pub(super) log: &'a Path,
    /// The address of the proxy.
    pub(super) proxy: &'a str,
}

/// The number of requests of a run that passed, or a description of the failure.
pub(super) type Verdict = Result<usize, String>;

impl Trial<'_> {
    /// The version that the agent reports.
    pub(super) fn version(&self) -> Outcome<String> {
        let home = fresh(self.folder.join("home"))?;
        let output = process::captured(self.command(&home).arg("--version").stderr(Stdio::null()))?;
        let is_version = |word: &&str| {
            word.trim_start_matches('v')
                .starts_with(|c: char| c.is_ascii_digit())
        };
        let version = output.split_whitespace().find(is_version);
        version
            .map(str::to_owned)
            .ok_or_else(|| format!("no version in {output:?}"))
    }

    /// Runs the agent and returns the verdict; an error if it cannot be started.
    pub(super) fn run(&self, upstream: &Upstream) -> Outcome<Verdict> {
        let home = fresh(self.folder.join("home"))?;
        let work = fresh(std::env::temp_dir().join(format!("sluicegate-{}", std::process::id())))?;
        let model = upstream::model(self.agent.name, upstream);
        let lines = FILES.map(|(name, line)| {
            format!(
                "Create the file {} with the line: {line}",
                work.join(name).display()
            )
        });
        let Start { args, env } = (self.agent.start)(&Job {
            gateway: self.gateway,
            model: &model,
            prompt: &lines.join("\n"),
        });
        let path = self.folder.join(format!("{model}.log"));
        let output = File::create(&path).at(&path)?;
        let mut command = self.command(&home);
        command
            .current_dir(&work)
            .args(args)
            .envs(env)
            .stdin(Stdio::null());
        command.stdout(output.try_clone().at(&path)?).stderr(output);
        let ended = process::bounded(&mut command, LIMIT)?;
        let (said, log) = (read(&path)?, read(self.log)?);
        let verdict = finished(ended)
            .and_then(|()| written(&work))
            .and_then(|()| self.quoted(&said))
            .and_then(|()| self.requests(&log, &model));
        fs::remove_dir_all(&work).at(&work)?;
        Ok(verdict.map_err(|failure| format!("{failure}; see {model}.log")))
    }

    /// The program, in an environment with little but its home and the proxy.
    fn command(&self, home: &Path) -> Command {
        let mut command = Command::new(self.agent.program);
        command.env_clear().env("HOME", home).env("PATH", self.path);
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
            command.env(name, self.proxy);
        }
        command
            .env("NO_PROXY", "127.0.0.1")
            .env("no_proxy", "127.0.0.1");
        command
    }

    /// Fails if an agent with tools has not printed the model's last text, which quotes the results.
    fn quoted(&self, output: &str) -> Result<(), String> {
        let results = output.rsplit_once(QUOTE).map(|(_, results)| results);
        match results.is_some_and(|results| results.contains("; ")) || !self.agent.calls_tools {
            true => Ok(()),
            false => Err("the results of the tools did not come back".to_owned()),
        }
    }

    /// Counts the requests for `model` in the log of the gateway. All have to be completed.
    fn requests(&self, log: &str, model: &str) -> Verdict {
        let lines = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let lines: Vec<_> = lines.filter(|line| line["model"] == model).collect();
        let is_good =
            |line: &&Value| line["outcome"] == "completed" && line["route"] == self.agent.route;
        if let Some(bad) = lines.iter().find(|line| !is_good(line)) {
            return Err(format!(
                "{} {} by {}",
                bad["status"], bad["outcome"], bad["route"]
            ));
        }
        let needed = if self.agent.calls_tools { 2 } else { 1 };
        match lines.len() {
            count if count < needed => Err(format!("{count} requests")),
            count => Ok(count),
        }
    }
}

/// Makes an empty folder.
fn fresh(folder: PathBuf) -> Outcome<PathBuf> {
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).at(&folder)?,
        _ => {}
    }
    fs::create_dir_all(&folder).at(&folder)?;
    Ok(folder)
}

fn read(path: &Path) -> Outcome<String> {
    Ok(String::from_utf8_lossy(&fs::read(path).at(path)?).into_owned())
}

/// Fails if the agent was stopped or has failed.
fn finished(ended: Option<ExitStatus>) -> Result<(), String> {
    match ended {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(status.to_string()),
        None => Err(format!("stopped after {} seconds", LIMIT.as_secs())),
    }
}

/// Fails if a file is absent or has another text.
fn written(work: &Path) -> Result<(), String> {
    for (name, line) in FILES {
        match fs::read_to_string(work.join(name)) {
            Ok(text) if text == format!("{line}\n") => {}
            Ok(text) => return Err(format!("{name} contains {text:?}")),
            Err(error) => return Err(format!("{name}: {error}")),
        }
    }
    Ok(())
}

/// The files to write, each with its line.
const FILES: [(&str, &str); 2] = [
    ("hello.txt", "The gateway was here."),
    ("again.txt", "And it's still here."),
];
/// The beginning of the text in which the simulator quotes results.
const QUOTE: &str = "The tool said: ";
/// The time for one run.
const LIMIT: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::super::agent::AGENTS;
    use super::*;

    const LOG: &str = r#"{"log":"access","route":"responses","model":"a","status":200,"outcome":"completed"}
{"log":"access","route":"responses","model":"b","status":502,"outcome":"upstream_error"}
{"log":"access","route":"responses","model":"a","status":200,"outcome":"completed"}
a line of another kind
{"log":"access","route":"messages","model":"c","status":200,"outcome":"completed"}
"#;

    fn trial(agent: &Agent) -> Trial<'_> {
        let log = Path::new("");
        Trial {
            agent,
            path: OsStr::new(""),
            folder: log,
            gateway: "",
            log,
            proxy: "",
        }
    }

    #[test]
    fn requests_are_counted_by_model_and_have_to_be_completed() {
        let trial = trial(&AGENTS[0]);
        assert_eq!(trial.requests(LOG, "a"), Ok(2));
        assert_eq!(trial.requests(LOG, "none"), Err("0 requests".to_owned()));
        let failed = trial.requests(LOG, "b").unwrap_err();
        assert_eq!(failed, r#"502 "upstream_error" by "responses""#);
        let strayed = trial.requests(LOG, "c").unwrap_err();
        assert_eq!(strayed, r#"200 "completed" by "messages""#);
    }

    #[test]
    fn agents_with_tools_have_to_print_the_results_of_both_calls() {
        let [codex, .., aider] = &AGENTS;
        let absent = Err("the results of the tools did not come back".to_owned());
        assert_eq!(
            trial(codex).quoted("a\nThe tool said: Wrote it.; Wrote it."),
            Ok(())
        );
        assert_eq!(trial(codex).quoted("The tool said: Wrote it."), absent);
        assert_eq!(trial(codex).quoted("Wrote it; and again."), absent);
        assert_eq!(trial(aider).quoted(""), Ok(()));
    }

    #[test]
    fn files_have_to_exist_with_their_lines() {
        let work = std::env::temp_dir().join(format!("xtask-agents-{}", std::process::id()));
        fs::create_dir_all(&work).unwrap();
        fs::write(work.join("hello.txt"), "The gateway was here.\n").unwrap();
        let absent = written(&work).unwrap_err();
        assert!(absent.starts_with("again.txt: "), "{absent}");
        fs::write(work.join("again.txt"), "And it is here.\n").unwrap();
        let other = written(&work).unwrap_err();
        assert_eq!(other, "again.txt contains \"And it is here.\\n\"");
        fs::write(work.join("again.txt"), "And it's still here.\n").unwrap();
        assert_eq!(written(&work), Ok(()));
        fs::remove_dir_all(work).unwrap();
    }
}
