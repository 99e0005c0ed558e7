//! A PostgreSQL for the tests, in a temporary folder. It refuses to run as root, so then it runs as
//! the user `nobody`.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::outcome::{At as _, Outcome};
use crate::process::{self, Killed};

/// A running server, which ends when this is dropped.
pub(super) struct Postgres {
    folder: PathBuf,
    user: String,
    server: Option<Killed>,
}

impl Postgres {
    /// Starts the server among `programs`, and waits until it listens on its socket.
    pub(super) fn start(programs: &Path) -> Outcome<Self> {
        let user = process::output(Command::new("id").arg("-un"))?;
        let user = match user.trim() {
            "root" => "nobody",
            other => other,
        };
        // The path of a socket has at most 107 bytes.
        let folder = std::env::temp_dir().join(format!("sluicegate-pg-{}", std::process::id()));
        fs::create_dir_all(&folder).at(&folder)?;
        let mut postgres = Self {
            folder,
            user: user.to_owned(),
            server: None,
        };
        postgres.give_folder()?;
        postgres.serve(programs)?;
        Ok(postgres)
    }

    /// The address for the tests.
    pub(super) fn url(&self) -> String {
        let folder = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://{}@{folder}/postgres", self.user)
    }

    fn give_folder(&self) -> Outcome {
        let mut chown = Command::new("chown");
        process::run(chown.arg(&self.user).arg(&self.folder))
    }

    fn serve(&mut self, programs: &Path) -> Outcome {
        let data = self.folder.join("data");
        let mut init = self.command(&programs.join("initdb"));
        init.arg("--pgdata").arg(&data);
        init.args(["--auth", "trust", "--no-sync", "--encoding", "UTF8"]);
        process::output(&mut init)?;
        let mut serve = self.command(&programs.join("postgres"));
        serve.arg("-D").arg(&data).arg("-k").arg(&self.folder);
        // Without fsync: the tests do not cut the power.
        serve.args(["-F", "-c", "listen_addresses="]);
        serve.stdout(Stdio::null()).stderr(Stdio::null());
        self.server = Some(Killed(process::start(&mut serve)?));
        let socket = self.folder.join(".s.PGSQL.5432");
        for _ in 0..TRIES {
            if UnixStream::connect(&socket).is_ok() {
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        Err(format!(
            "PostgreSQL does not listen on {}",
            socket.display()
        ))
    }

    /// A command of the user.
    fn command(&self, program: &Path) -> Command {
        let mut command = match self.user.as_str() {
            "nobody" => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", "nobody", "--clear-groups", "--pdeathsig", "TERM"]);
                command.arg(program);
                command
            }
            _ => Command::new(program),
        };
        command.current_dir(&self.folder);
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.server = None;
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The folder with the programs of the newest version, if one is installed.
pub(super) fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut folders: Vec<_> = versions
        .flatten()
        .map(|version| version.path().join("bin"))
        .filter(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
        .collect();
    folders.sort();
    folders.pop()
}

/// A minute in all.
const TRIES: u32 = 1200;
const PAUSE: Duration = Duration::from_millis(50);
