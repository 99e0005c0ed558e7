//! The measured process, in front of the upstream.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;

use crate::Outcome;
use crate::cores::Cores;
use crate::question::{self, Names, Question};
use crate::usage::Usage;

/// A server that is measured.
pub struct Subject {
    /// The address it listens on.
    pub address: SocketAddr,
    /// The address of the admin listener; of a gateway.
    pub admin: Option<SocketAddr>,
    names: Names,
    process: Option<Process>,
    config: Option<Scratch>,
}

struct Process {
    child: Child,
    /// Kept open so that the process can write its output.
    _output: BufReader<ChildStdout>,
}

/// The programs that are measured, and the upstream behind them.
pub struct Programs {
    /// The release build of the gateway.
    pub gateway: PathBuf,
    /// The bare proxy, built the same way.
    pub bare: PathBuf,
    /// The upstream.
    pub upstream: SocketAddr,
}

impl Programs {
    /// The upstream itself.
    pub fn direct(&self) -> Subject {
        Subject {
            address: self.upstream,
            admin: None,
            names: Names::Upstream,
            process: None,
            config: None,
        }
    }

    /// Starts a bare proxy, on the core of the subject if there are `cores`.
    pub fn bare(&self, cores: Option<&Cores>) -> Outcome<Subject> {
        bare_by(on(cores, &self.bare).arg(self.upstream.to_string()))
    }

    /// Starts a bare proxy with a runtime for each core.
    pub fn bare_per_core(&self, cores: Option<&Cores>) -> Outcome<Subject> {
        bare_by(
            on(cores, &self.bare)
                .arg(self.upstream.to_string())
                .arg("--per-core"),
        )
    }

    /// Starts a gateway that is measured, with room for everything.
    pub fn gateway(&self, cores: Option<&Cores>) -> Outcome<Subject> {
        gateway_by(
            on(cores, &self.gateway),
            &question::configuration(self.upstream, ROOM),
        )
    }
}

/// The command of a program, on the core of the subject if there are `cores`.
fn on(cores: Option<&Cores>, program: &Path) -> Command {
    cores.map_or_else(|| Command::new(program), |cores| cores.command(program))
}

/// Starts a bare proxy in front of the upstream at `address`.
pub fn bare(program: &Path, address: SocketAddr) -> Outcome<Subject> {
    bare_by(Command::new(program).arg(address.to_string()))
}

/// Starts a bare proxy with this command.
pub fn bare_by(command: &mut Command) -> Outcome<Subject> {
    Subject::start(command, Names::Upstream, None)
}

/// Starts a gateway with this configuration. Its log is formatted and written to /dev/null: the
/// disk is not measured.
pub fn gateway(program: &Path, config: &str) -> Outcome<Subject> {
    gateway_by(Command::new(program), config)
}

/// Starts a gateway with this command, which takes its arguments, and this configuration.
pub fn gateway_by(mut command: Command, config: &str) -> Outcome<Subject> {
    let config = Scratch::write(config)?;
    command
        .arg("serve")
        .arg("--config")
        .arg(&config.0)
        .env_remove("SLUICEGATE_LOG");
    Subject::start(&mut command, Names::Gateway, Some(config))
}

impl Subject {
    fn start(command: &mut Command, names: Names, config: Option<Scratch>) -> Outcome<Self> {
        let program = command.get_program().display().to_string();
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.map_err(|error| format!("{program} cannot be started: {error}"))?;
        let output = child
            .stdout
            .take()
            .ok_or_else(|| format!("{program} has no output"))?;
        let mut process = Process {
            child,
            _output: BufReader::new(output),
        };
        let mut lines = (&mut process._output).lines().map_while(Result::ok);
        let address = lines.find_map(|line| {
            let (_, url) = line.split_once(" listens on ")?;
            url.split_once("://")?.1.parse().ok()
        });
        let address = address.ok_or_else(|| format!("{program} did not start"))?;
        let admin = match names {
            Names::Upstream => None,
            Names::Gateway => lines
                .next()
                .and_then(|line| line.split(['/', ' ']).find_map(|word| word.parse().ok())),
        };
        Ok(Self {
            address,
            admin,
            names,
            process: Some(process),
            config,
        })
    }

    /// The id of its process, if it is a separate one.
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.child.id())
    }

    /// The request with the names that it expects.
    pub fn request(&self, question: Question) -> Bytes {
        question.request(self.names, self.address)
    }

    /// Its usage so far; nothing if it is not a separate process.
    pub fn usage(&self) -> Outcome<Usage> {
        self.process_id().map_or(Ok(Usage::default()), Usage::of)
    }

    /// The resident memory in bytes.
    pub fn memory(&self) -> Outcome<f64> {
        self.memory_of("VmRSS:")
    }

    /// The largest resident memory so far, in bytes.
    pub fn peak_memory(&self) -> Outcome<f64> {
        self.memory_of("VmHWM:")
    }

    fn memory_of(&self, name: &str) -> Outcome<f64> {
        let status = self.read("status")?.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kibibytes = line.and_then(|line| line.trim().split(' ').next()?.parse::<f64>().ok());
        kibibytes
            .map(|kibibytes| kibibytes * 1024.0)
            .ok_or_else(|| "the memory of a process is unknown".to_owned())
    }

    /// The configuration file that it was started with.
    pub fn config(&self) -> Outcome<&Path> {
        self.config
            .as_ref()
            .map(|config| config.0.as_path())
            .ok_or_else(|| "it has no file".to_owned())
    }

    /// Sends it a signal, as `kill` does.
    pub fn signal(&self, name: &str) -> Outcome {
        let Some(process) = &self.process else {
            return Err("it has no process".to_owned());
        };
        let status = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(process.child.id().to_string())
            .status();
        status
            .map_err(|error| format!("kill: {error}"))?
            .success()
            .then_some(())
            .ok_or_else(|| "no signal".to_owned())
    }

    /// The exit status, if it has ended.
    pub fn ended(&mut self) -> Outcome<Option<ExitStatus>> {
        let Some(process) = &mut self.process else {
            return Err("it has no process".to_owned());
        };
        process.child.try_wait().map_err(|error| error.to_string())
    }

    fn read(&self, file: &str) -> Outcome<Option<String>> {
        let Some(process) = &self.process else {
            return Ok(None);
        };
        let path = format!("/proc/{}/{file}", process.child.id());
        fs::read_to_string(&path)
            .map(Some)
            .map_err(|error| format!("{path}: {error}"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // This fails if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A temporary file, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn write(text: &str) -> Outcome<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = format!(
            "sluicegate-bench-{}-{}.toml",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(unique);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The path of a program that cargo has built beside this one. It is an error if it was not built.
pub fn beside(program: &Path, name: &str) -> Outcome<PathBuf> {
    let path = program.with_file_name(name);
    match path.exists() {
        true => Ok(path),
        false => Err(format!(
            "{} was not built: `cargo xtask bench` builds all that is measured",
            path.display()
        )),
    }
}

/// Limits that are never reached.
pub const ROOM: &str = "concurrency = 20000\nconcurrency_per_key = 20000\nconnections = 20000\n";
