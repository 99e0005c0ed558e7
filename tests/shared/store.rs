//! A Valkey for one test.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use testkit::{Scratch, await_that};

/// A running server, which ends when this is dropped. It can always be reached by its socket.
pub(crate) struct Store {
    program: PathBuf,
    folder: PathBuf,
    options: Vec<String>,
    variables: Vec<(&'static str, String)>,
    child: Child,
    /// Removes the folder.
    _scratch: Scratch,
}

impl Store {
    pub(crate) fn start() -> Self {
        Self::start_with("", &[])
    }

    /// Starts a server with options of its command line, separated by spaces, and variables.
    pub(crate) fn start_with(options: &str, variables: &[(&'static str, String)]) -> Self {
        Self::try_start(options, variables).expect("the server starts")
    }

    /// Starts a server that also listens on a port of its own, which the options get.
    pub(crate) fn start_on_port(options: impl Fn(u16) -> String) -> (Self, u16) {
        for _ in 0..20 {
            let port = free_port();
            // Another process may have taken it since.
            let options = format!("{} --port {port} --bind 127.0.0.1", options(port));
            if let Some(store) = Self::try_start(options.trim_start(), &[]) {
                return (store, port);
            }
        }
        panic!("no port was free in 20 attempts");
    }

    fn try_start(options: &str, variables: &[(&'static str, String)]) -> Option<Self> {
        let program = std::env::var_os("SLUICEGATE_VALKEY").map(PathBuf::from);
        let program = program.expect("SLUICEGATE_VALKEY is the path of a valkey-server");
        let scratch = crate::GATEWAY.file("store", "");
        let folder = scratch.0.parent().unwrap().to_owned();
        let options = options.split_whitespace().map(str::to_owned).collect();
        let mut store = Self {
            child: Command::new("true").spawn().unwrap(),
            program,
            folder,
            options,
            variables: variables.to_vec(),
            _scratch: scratch,
        };
        store.spawn().then_some(store)
    }

    /// The address for `state.limits`.
    pub(crate) fn address(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// Kills the server.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts the server again, without its data.
    pub(crate) fn restart(&mut self) {
        assert!(self.spawn(), "the server starts again");
    }

    /// Sends a signal to the process, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        kill.args(["-s", name]).arg(self.child.id().to_string());
        assert!(kill.status().unwrap().success());
    }

    /// Removes all data.
    pub(crate) fn flush(&self) {
        assert_eq!(self.run("FLUSHALL"), "OK");
    }

    /// Runs a command, and returns its reply: a line or a text.
    pub(crate) fn run(&self, command: &str) -> String {
        self.try_run(command).unwrap()
    }

    /// Runs a command on a connection that the server may close.
    pub(crate) fn try_run(&self, command: &str) -> io::Result<String> {
        let mut socket = UnixStream::connect(self.socket())?;
        socket.write_all(format!("{command}\r\n").as_bytes())?;
        let mut reply = BufReader::new(socket);
        let mut line = String::new();
        reply.read_line(&mut line)?;
        let line = line.trim_end();
        let Some(length) = line.strip_prefix('$') else {
            return Ok(line.trim_start_matches(['+', ':']).to_owned());
        };
        let mut text = vec![0; length.parse().unwrap()];
        reply.read_exact(&mut text)?;
        Ok(String::from_utf8(text).unwrap())
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// Starts the process, and waits until it listens. Returns false if it ends instead.
    fn spawn(&mut self) -> bool {
        let _ = std::fs::remove_file(self.socket());
        // A configuration file has to be the first argument.
        let options = self.options.iter();
        let (file, options): (Vec<_>, Vec<_>) = options.partition(|it| it.ends_with(".conf"));
        let mut child = Command::new(&self.program)
            .current_dir(&self.folder)
            .args(file)
            .args(["--port", "0", "--unixsocket", "socket", "--save", ""])
            .args(options)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        // A server that cannot write its log would stop.
        std::thread::spawn(move || BufReader::new(output).lines().count());
        self.child = child;
        let child = std::cell::RefCell::new(&mut self.child);
        let has_ended = || child.borrow_mut().try_wait().unwrap().is_some();
        let socket = self.folder.join("socket");
        await_that("the server listens or has ended", || {
            UnixStream::connect(&socket).is_ok() || has_ended()
        });
        !has_ended()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // A stopped process is killed too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a port that was free a moment ago. A node of a cluster needs another one, 10,000 above it.
fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        if port < 55_000 {
            return port;
        }
    }
}
