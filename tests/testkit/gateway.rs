//! The binary as a child process, on ports that the system chooses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::client::{Request, Response};

/// The text key that every test server accepts.
pub(crate) const TEXT: &str = "sg_test_text_key_000000000000000000";
/// The Messages key that every test server accepts.
pub(crate) const MESSAGES: &str = "sg_test_messages_key_000000000000000";
/// The image key that every test server accepts.
pub(crate) const IMAGES: &str = "sg_test_images_key_00000000000000000";

/// A running gateway. Dropping it ends the process, and so does the end of the tests' own process.
pub(crate) struct Server {
    child: Child,
    /// Keeps the process alive: see [`GUARDED`].
    guard: ChildStdin,
    /// The addresses of the clients' listeners.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The address of the admin listener.
    pub(crate) admin: Option<SocketAddr>,
    /// The standard error output so far.
    pub(crate) log: Arc<Mutex<String>>,
    config: Option<Scratch>,
}

impl Server {
    /// The server that tests share: without a configuration file, with keys from the environment. It ends with the
    /// tests' process.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(None, &[]))
    }

    /// Starts a separate server with this configuration; addresses are added to it.
    pub(crate) fn configured(config: &str) -> Self {
        Self::start(Some(config), &[])
    }

    /// Starts a separate server with this configuration and one model, at an address that accepts no connections: no
    /// engine is loaded.
    pub(crate) fn without_engines(config: &str) -> Self {
        Self::configured(&[config, NOWHERE].concat())
    }

    /// Starts a separate server with this configuration and only the embedded image engine: no weights are loaded.
    pub(crate) fn drawing(config: &str) -> Self {
        Self::configured(&[config, DRAWING].concat())
    }

    /// Starts the binary and waits until it listens.
    pub(crate) fn start(config: Option<&str>, arguments: &[&str]) -> Self {
        Self::start_by(binary(), config, arguments)
    }

    /// Starts the binary with this command, which takes its arguments, and waits until it listens.
    pub(crate) fn start_by(mut command: Command, config: Option<&str>, arguments: &[&str]) -> Self {
        let config = config.map(|text| Scratch::file("sluicegate.toml", text));
        command.args(["serve", "--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        Self::run(command.args(arguments), Stdio::piped(), config)
    }

    /// Starts a server with this configuration that logs to `place` instead of [`Server::log`].
    pub(crate) fn logging_to(place: impl Into<Stdio>, config: &str) -> Self {
        let mut command = binary();
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        Self::run(&command, place, Some(Scratch::file("sluicegate.toml", config)))
    }

    /// Starts a command of the binary, or one around it, and waits until it listens. It logs to `log`.
    pub(crate) fn run(command: &Command, log: impl Into<Stdio>, config: Option<Scratch>) -> Self {
        let mut command = by_shell(GUARDED, command);
        if let Some(config) = &config {
            command.arg("--config").arg(&config.0);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().expect("the binary runs");
        let guard = child.stdin.take().expect("standard input is piped");
        let log = child.stderr.take().map(collect).unwrap_or_default();
        let mut lines = BufReader::new(child.stdout.take().expect("standard output is piped")).lines();
        let mut server = Self { child, guard, addresses: Vec::new(), admin: None, log, config };
        while let Some(Ok(line)) = lines.next() {
            if let Some(address) = line.strip_prefix("sluicegate listens on http://") {
                server.addresses.push(address.parse().expect("an address"));
            } else if let Some(rest) = line.strip_prefix("admin: http://") {
                server.admin = rest.split('/').next().and_then(|address| address.parse().ok());
                break;
            }
        }
        if server.addresses.is_empty() {
            let status = server.wait();
            panic!("the server did not start: {status:?}\n{}", server.log.lock().expect("the log"));
        }
        // Drains later output, which must not fill the pipe.
        thread::spawn(move || lines.for_each(drop));
        server
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// The configuration file that it was started with.
    pub(crate) fn config_path(&self) -> &Path {
        &self.config.as_ref().expect("a server with a file").0
    }

    pub(crate) fn post(&self, key: &str, path: &str, body: &Value) -> Response {
        Request::post(path, body).bearer(key).send(self.address())
    }

    pub(crate) fn get(&self, key: &str, path: &str) -> Response {
        Request::get(path).bearer(key).send(self.address())
    }

    /// The value of a metric without labels.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = Request::get("/metrics").send(self.admin.expect("an admin address"));
        let line = text.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::to_owned);
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no metric {name}: {}", text.text()))
    }

    /// The sum of a counter over its labels: of all lines of the metrics that begin with `beginning`.
    pub(crate) fn sum(&self, beginning: &str) -> f64 {
        self.sum_of(beginning, "")
    }

    /// As [`Server::sum`], for the lines that have this label.
    pub(crate) fn sum_of(&self, beginning: &str, label: &str) -> f64 {
        let metrics = Request::get("/metrics").send(self.admin.expect("an admin address"));
        let values = metrics.text().lines().filter(|line| line.starts_with(beginning) && line.contains(label));
        values.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// Waits until no permit is in use.
    #[track_caller]
    pub(crate) fn await_quiet(&self) {
        await_that("all permits are back", || self.metric("sluicegate_in_flight") == 0.0);
    }

    /// Sends a signal, as `kill` does. After SIGSTOP it waits until the process is suspended.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(status.expect("kill runs").success());
        if name == "STOP" {
            await_that("all threads stand still", || stands_still(self.child.id()));
        }
    }

    /// Waits for the process to end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("the process can be waited for")
    }
}

/// Returns true if all threads of a process are suspended, as far as the system reports.
fn stands_still(process: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return true };
    threads.flatten().all(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|state| state.starts_with('T'))
    })
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The guard is no longer needed, and must not kill a process that reuses the id.
        let _ = self.guard.write_all(b"\n");
    }
}

/// The binary with the keys of the tests, and no other variable that it reads from the environment.
pub(crate) fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluicegate"));
    command.env_remove("SLUICEGATE_LOG");
    command
        .env("SLUICEGATE_TEXT_KEY", TEXT)
        .env("SLUICEGATE_MESSAGES_KEY", MESSAGES)
        .env("SLUICEGATE_IMAGE_KEY", IMAGES);
    command
}

/// The command as a shell runs it in this script, as `"$@"`.
pub(crate) fn by_shell(script: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

/// A file in a temporary folder, removed on drop. It is below cargo's target folder, where the few that are left
/// behind, by statics and killed programs, do no harm.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn file(name: &str, text: &str) -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("sluicegate-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(unique);
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let path = folder.join(name);
        std::fs::write(&path, text).expect("a temporary file");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(folder) = self.0.parent() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// Waits until a condition holds, for a limited time to guard against hanging.
#[track_caller]
pub(crate) fn await_that(what: &str, holds: impl Fn() -> bool) {
    let (started, mut pause) = (now(), Duration::from_millis(1));
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        // The awaited work needs the CPU more.
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

#[allow(clippy::disallowed_methods, reason = "a guard against hanging needs a clock")]
fn now() -> Instant {
    Instant::now()
}

fn collect(mut from: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let log = Arc::new(Mutex::new(String::new()));
    let into = Arc::clone(&log);
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let text = String::from_utf8_lossy(&buffer[..read]);
            into.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
        }
    });
    log
}

/// Runs its arguments, and kills them when standard input ends without a line: when the process that holds the other
/// end has ended in any way. That process cannot do it itself: a test program drops no statics, and may be killed.
const GUARDED: &str = r#"
exec 3<&0 </dev/null
{ trap '' HUP INT TERM; read -r _ <&3 || kill -KILL $$; } >/dev/null 2>&1 &
exec "$@" 3<&-
"#;
/// A model at an upstream that accepts no connections, for tests that send it no request.
pub(crate) const NOWHERE: &str = r#"
[[upstreams]]
name = "nowhere"
protocol = "responses"
base_url = "http://127.0.0.1:1/v1"

[[models]]
id = "nobody"
family = "text"
protocols = ["responses"]
targets = [{ upstream = "nowhere" }]
"#;
/// The default model of image requests, on the embedded engine.
const DRAWING: &str = r#"
[[models]]
id = "model-image-2.5-flare"
family = "images"
protocols = ["images_generations", "images_edits"]
"#;
