//! The gateway as a child process, on ports that the system chooses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use simulator::Protocol;

use crate::client::{Request, Response};
use crate::requests::request;

/// The text key that every test server accepts.
pub const TEXT: &str = "sg_test_text_key_000000000000000000";
/// The Messages key that every test server accepts.
pub const MESSAGES: &str = "sg_test_messages_key_000000000000000";
/// The image key that every test server accepts.
pub const IMAGES: &str = "sg_test_images_key_00000000000000000";

/// The program under test. Only the test programs know where cargo has built it: see
/// [`binary!`](crate::binary).
#[derive(Clone, Copy, Debug)]
pub struct Binary {
    /// The path of the executable.
    pub path: &'static str,
    /// A folder for temporary files.
    pub scratch: &'static str,
}

/// The [`Binary`](crate::Binary) that cargo has built for the test program.
#[macro_export]
macro_rules! binary {
    () => {
        $crate::Binary {
            path: env!("CARGO_BIN_EXE_sluicegate"),
            scratch: env!("CARGO_TARGET_TMPDIR"),
        }
    };
}

impl Binary {
    /// The gateway that tests share: without a configuration file, with keys from the environment.
    /// It ends with the tests' process.
    pub fn shared(self) -> &'static Gateway {
        static SHARED: OnceLock<Gateway> = OnceLock::new();
        SHARED.get_or_init(|| self.start_by(self.command(), None))
    }

    /// Starts a separate gateway with this configuration; addresses are added to it.
    pub fn configured(self, config: &str) -> Gateway {
        self.start_by(self.command(), Some(config))
    }

    /// Starts a separate gateway with this configuration and one model, at an address that accepts
    /// no connections: no engine is loaded.
    pub fn without_engines(self, config: &str) -> Gateway {
        self.configured(&[config, NOWHERE].concat())
    }

    /// Starts a separate gateway with this configuration and only the embedded image engine: no
    /// weights are loaded.
    pub fn with_image_engine(self, config: &str) -> Gateway {
        self.configured(&[config, IMAGE_MODEL].concat())
    }

    /// Starts the gateway with this command, which takes its arguments, and waits until it listens.
    pub fn start_by(self, mut command: Command, config: Option<&str>) -> Gateway {
        let config = config.map(|text| self.file("sluicegate.toml", text));
        command.args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
        ]);
        Gateway::run(&command, Stdio::piped(), config)
    }

    /// Runs a command that calls the admin API of a gateway with this admin key. Returns its output, or
    /// its error output if it fails.
    pub fn administer(
        self,
        gateway: &Gateway,
        admin_key: &str,
        arguments: &[&str],
    ) -> Result<String, String> {
        let mut command = self.command();
        command.env("SLUICEGATE_ADMIN_KEY", admin_key);
        command.args(arguments).arg("--admin");
        command.arg(format!("http://{}", gateway.admin.unwrap()));
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        match output.status.success() {
            true => Ok(text(output.stdout)),
            false => Err(text(output.stderr)),
        }
    }

    /// Starts a gateway with this configuration that logs to `place` instead of [`Gateway::log`].
    pub fn logging_to(self, place: impl Into<Stdio>, config: &str) -> Gateway {
        let mut command = self.command();
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        Gateway::run(&command, place, Some(self.file("sluicegate.toml", config)))
    }

    /// The binary with the keys of the tests, and no other variable that it reads from the
    /// environment.
    pub fn command(self) -> Command {
        let mut command = Command::new(self.path);
        command
            .env_remove("SLUICEGATE_LOG")
            .env_remove("SLUICEGATE_ADMIN_KEY");
        command
            .env("SLUICEGATE_TEXT_KEY", TEXT)
            .env("SLUICEGATE_MESSAGES_KEY", MESSAGES)
            .env("SLUICEGATE_IMAGE_KEY", IMAGES);
        command
    }

    /// Creates a temporary file.
    pub fn file(self, name: &str, text: &str) -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = format!(
            "sluicegate-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let folder = Path::new(self.scratch).join(unique);
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let path = folder.join(name);
        std::fs::write(&path, text).expect("a temporary file");
        Scratch(path)
    }
}

/// A running gateway. Dropping it ends the process, and so does the end of the tests' own process.
pub struct Gateway {
    child: Child,
    /// Keeps the process alive: see [`GUARDED`].
    guard: ChildStdin,
    /// The addresses of the clients' listeners.
    pub addresses: Vec<SocketAddr>,
    /// The address of the admin listener.
    pub admin: Option<SocketAddr>,
    /// The standard error output so far.
    pub log: Arc<Mutex<String>>,
    /// The standard output so far, after the addresses.
    pub printed: Arc<Mutex<String>>,
    config: Option<Scratch>,
    /// The file with the upstreams' key.
    pub(crate) key: Option<Scratch>,
}

impl Gateway {
    /// Starts a command of the binary, or one around it, and waits until it listens. It logs to
    /// `log`.
    pub fn run(command: &Command, log: impl Into<Stdio>, config: Option<Scratch>) -> Self {
        let mut command = by_shell(GUARDED, command);
        if let Some(config) = &config {
            command.arg("--config").arg(&config.0);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log);
        let mut child = command.spawn().expect("the binary runs");
        let guard = child.stdin.take().expect("standard input is piped");
        let log = child.stderr.take().map(collect).unwrap_or_default();
        let mut output = BufReader::new(child.stdout.take().expect("standard output is piped"));
        let mut server = Self {
            child,
            guard,
            addresses: Vec::new(),
            admin: None,
            log,
            printed: Arc::default(),
            config,
            key: None,
        };
        for line in output.by_ref().lines().map_while(Result::ok) {
            if let Some(url) = line.strip_prefix("sluicegate listens on ") {
                server.addresses.extend(address_of(url));
            } else if let Some(url) = line.strip_prefix("admin: ") {
                server.admin = address_of(url);
                break;
            }
        }
        if server.addresses.is_empty() {
            let status = server.wait();
            panic!(
                "the server did not start: {status:?}\n{}",
                server.log.lock().expect("the log")
            );
        }
        // Later output must not fill the pipe.
        server.printed = collect(output);
        server
    }

    /// The address of the first clients' listener.
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// The configuration file that it was started with.
    pub fn config_path(&self) -> &Path {
        &self.config.as_ref().expect("a server with a file").0
    }

    /// Sends a POST request with this key.
    pub fn post(&self, key: &str, path: &str, body: &Value) -> Response {
        Request::post(path, body).bearer(key).send(self.address())
    }

    /// Sends a GET request with this key.
    pub fn get(&self, key: &str, path: &str) -> Response {
        Request::get(path).bearer(key).send(self.address())
    }

    /// Sends a request as a client of `protocol`, with the key of the tests of upstreams.
    pub fn ask(&self, protocol: Protocol, body: &Value) -> Response {
        request(protocol, body).send(self.address())
    }

    /// The value of a metric without labels.
    pub fn metric(&self, name: &str) -> f64 {
        let text = Request::get("/metrics").send(self.admin.expect("an admin address"));
        let line = text
            .text()
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
            .map(str::to_owned);
        line.and_then(|value| value.parse().ok())
            .unwrap_or_else(|| panic!("no metric {name}: {}", text.text()))
    }

    /// The sum of a counter over its labels: of all lines of the metrics that begin with
    /// `beginning`.
    pub fn sum(&self, beginning: &str) -> f64 {
        self.sum_of(beginning, "")
    }

    /// As [`Gateway::sum`], for the lines that have this label.
    pub fn sum_of(&self, beginning: &str, label: &str) -> f64 {
        let metrics = Request::get("/metrics").send(self.admin.expect("an admin address"));
        let values = metrics
            .text()
            .lines()
            .filter(|line| line.starts_with(beginning) && line.contains(label));
        values
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }

    /// Waits until no permit is in use.
    #[track_caller]
    pub fn await_quiet(&self) {
        await_that("all permits are back", || {
            self.metric("sluicegate_in_flight") == 0.0
        });
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, as `kill` does. After SIGSTOP it waits until the process is suspended.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.child.id().to_string())
            .status();
        assert!(status.expect("kill runs").success());
        if name == "STOP" {
            await_that("all threads are suspended", || {
                is_suspended(self.child.id())
            });
        }
    }

    /// Waits for the process to end.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("the process can be waited for")
    }
}

/// The address in a URL that begins with `http` or `https`.
fn address_of(url: &str) -> Option<SocketAddr> {
    let (_, rest) = url.split_once("://")?;
    rest.split('/').next()?.parse().ok()
}

/// Returns true if all threads of a process are suspended, as far as the system reports.
fn is_suspended(process: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else {
        return true;
    };
    threads.flatten().all(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit(") ")
            .next()
            .is_some_and(|state| state.starts_with('T'))
    })
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The guard is no longer needed, and must not kill a process that reuses the id.
        let _ = self.guard.write_all(b"\n");
    }
}

/// The command as a shell runs it in this script, as `"$@"`.
pub fn by_shell(script: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script, "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

/// A file in a temporary folder, removed on drop. It is below cargo's target folder, where the few
/// that are left behind, by statics and killed programs, do no harm.
pub struct Scratch(pub PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(folder) = self.0.parent() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// Waits until a condition holds, for a limited time to guard against hanging.
#[track_caller]
pub fn await_that(what: &str, holds: impl Fn() -> bool) {
    let (started, mut pause) = (now(), Duration::from_millis(1));
    while !holds() {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "waited in vain until {what}"
        );
        // The awaited work needs the CPU more.
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a guard against hanging needs a clock"
)]
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
            into.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push_str(&text);
        }
    });
    log
}

/// Runs its arguments, and kills them when standard input ends without a line: when the process
/// that holds the other end has ended in any way. That process cannot do it itself: a test program
/// drops no statics, and may be killed.
const GUARDED: &str = r#"
exec 3<&0 </dev/null
{ trap '' HUP INT TERM; read -r _ <&3 || kill -KILL $$; } >/dev/null 2>&1 &
exec "$@" 3<&-
"#;
/// A model at an upstream that accepts no connections, for tests that send it no request.
pub const NOWHERE: &str = r#"
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
const IMAGE_MODEL: &str = r#"
[[models]]
id = "model-image-2.5-flare"
family = "images"
protocols = ["images_generations", "images_edits"]
"#;
