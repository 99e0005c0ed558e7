//! A server for one test.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use quota::{LeaseRequest, LeasedLimitSpec};
use tokio::time::Instant;

use crate::valkey::Settings;

/// A running server, which ends when this is dropped.
pub(super) struct Server {
    program: PathBuf,
    folder: PathBuf,
    options: Vec<String>,
    child: Child,
}

impl Server {
    /// Starts the program that the environment variable names.
    pub(super) fn start(variable: &str, options: &[&str]) -> Self {
        let server = Self::try_start(variable, options);
        server.unwrap_or_else(|| panic!("the program in {variable} has ended with {options:?}"))
    }

    /// Starts the program, or returns `None` if it ends, for example because its port is taken.
    pub(super) fn try_start(variable: &str, options: &[&str]) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let program = std::env::var_os(variable).map(PathBuf::from);
        let program = program.unwrap_or_else(|| {
            panic!("{variable} is not set: expected the path of a valkey-server or redis-server")
        });
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sluicegate-lease-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let child = spawn(&program, &folder, &options)?;
        Some(Self {
            program,
            folder,
            options,
            child,
        })
    }

    /// Kills the server and starts it again, without its data.
    pub(super) fn restart(&mut self) {
        self.kill();
        self.child = spawn(&self.program, &self.folder, &self.options).unwrap();
    }

    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(super) fn address(&self) -> String {
        format!("redis+unix://{}", self.folder.join("socket").display())
    }

    /// Returns settings with time enough for a slow machine.
    pub(super) fn settings(&self) -> Settings {
        let mut settings = Settings::new(self.address().parse().unwrap());
        settings.lease = Duration::from_secs(200);
        settings.timeout = Duration::from_secs(20);
        settings.connect_timeout = Duration::from_secs(20);
        settings
    }

    /// Waits until the reply to a command contains a text.
    pub(super) async fn wait_for(&self, words: &str, text: &str) {
        let words: Vec<&str> = words.split(' ').collect();
        let start = Instant::now();
        loop {
            let reply = format!("{:?}", self.run(&words).await);
            // A reply is shown with its texts as they are, or as lists of bytes.
            let bytes = format!("{:?}", text.as_bytes());
            let bytes = bytes.trim_matches(['[', ']']);
            if reply.contains(text) || reply.contains(bytes) {
                return;
            }
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "{words:?}: {reply}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Runs one command on a connection of its own.
    pub(super) async fn run(&self, words: &[&str]) -> redis::RedisResult<redis::Value> {
        let client = redis::Client::open(self.address())?;
        let config = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(Some(Duration::from_secs(20)))
            .set_response_timeout(Some(Duration::from_secs(20)));
        let mut connection = client
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async(&mut connection).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn spawn(program: &Path, folder: &Path, options: &[String]) -> Option<Child> {
    // A configuration file comes first.
    let file = usize::from(
        options
            .first()
            .is_some_and(|first| !first.starts_with("--")),
    );
    let mut child = Command::new(program)
        .current_dir(folder)
        .args(&options[..file])
        .args(["--port", "0", "--unixsocket", "socket", "--save", ""])
        .args(["--enable-debug-command", "yes"])
        .args(&options[file..])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{} does not start: {error}", program.display()));
    let output = child.stdout.take().unwrap();
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let is_ready = |line: String| READY.iter().any(|ready| line.contains(ready));
    if !lines.by_ref().any(is_ready) {
        child.wait().unwrap();
        return None;
    }
    // A server that cannot write its log would stop.
    std::thread::spawn(move || lines.count());
    Some(child)
}

/// The parts of lines that a server and a sentinel write when they have started.
const READY: [&str; 2] = ["eady to accept connections", "+monitor master"];

/// A lease request that retains `retained` permits and wants `waiting` more for waiting requests.
pub(super) fn permits(cap: u64, seq: u64, retained: u64, waiting: u64) -> LeaseRequest {
    LeaseRequest {
        limit: "q0/team-a".into(),
        spec: LeasedLimitSpec::Permits { cap },
        seq,
        acked: seq - 1,
        incarnation: 0,
        retained,
        used: 0,
        unacked: 0,
        wanted: waiting,
        waiting,
        smallest_waiting: waiting.min(1),
    }
}
