//! A Valkey for one test.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use testkit::{Scratch, await_that};

/// A running server, which ends when this is dropped.
pub(crate) struct Store {
    program: PathBuf,
    folder: PathBuf,
    child: Child,
    /// Removes the folder.
    _scratch: Scratch,
}

impl Store {
    pub(crate) fn start() -> Self {
        let program = std::env::var_os("SLUICEGATE_VALKEY").map(PathBuf::from);
        let program = program.expect("SLUICEGATE_VALKEY is the path of a valkey-server");
        let scratch = crate::GATEWAY.file("store", "");
        let folder = scratch.0.parent().unwrap().to_owned();
        let child = spawn(&program, &folder);
        Self {
            program,
            folder,
            child,
            _scratch: scratch,
        }
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
        self.child = spawn(&self.program, &self.folder);
    }

    /// Sends a signal to the process, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        kill.args(["-s", name]).arg(self.child.id().to_string());
        assert!(kill.status().unwrap().success());
    }

    /// Removes all data.
    pub(crate) fn flush(&self) {
        let mut socket = UnixStream::connect(self.socket()).unwrap();
        socket.write_all(b"FLUSHALL\r\n").unwrap();
        let mut reply = [0; 5];
        socket.read_exact(&mut reply).unwrap();
        assert_eq!(&reply, b"+OK\r\n");
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // A stopped process is killed too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(program: &Path, folder: &Path) -> Child {
    let _ = std::fs::remove_file(folder.join("socket"));
    let mut child = Command::new(program)
        .current_dir(folder)
        .args(["--port", "0", "--unixsocket", "socket", "--save", ""])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let output = child.stdout.take().unwrap();
    // A server that cannot write its log would stop.
    std::thread::spawn(move || BufReader::new(output).lines().count());
    await_that("the server listens", || {
        UnixStream::connect(folder.join("socket")).is_ok()
    });
    child
}
