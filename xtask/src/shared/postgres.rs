//! A PostgreSQL for the tests, in a temporary folder. It refuses to run as root, so then it runs as
//! the user `nobody`.

mod tls;

use std::fs::{self, DirBuilder, File};
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt as _, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::outcome::{At as _, Outcome};
use crate::process;

/// A running server, which ends when this is dropped.
pub(super) struct Postgres {
    folder: PathBuf,
    /// The user and the group to run as, if this process runs as root.
    unprivileged: Option<(u32, u32)>,
    port: u16,
    server: Option<Child>,
}

impl Postgres {
    /// Starts the server among `programs`, and waits until it listens on its socket.
    pub(super) fn start(programs: &Path) -> Outcome<Self> {
        let unprivileged = match id(&["-u"])? {
            0 => Some((id(&["-u", "nobody"])?, id(&["-g", "nobody"])?)),
            _ => None,
        };
        // Not in the target folder: others may not enter root's home, and the path of a socket has
        // at most 107 bytes.
        let folder = std::env::temp_dir().join(format!("sluicegate-pg-{}", std::process::id()));
        // Of an earlier process with this id.
        let _ = fs::remove_dir_all(&folder);
        // Everyone who reaches the socket is let in.
        DirBuilder::new().mode(0o700).create(&folder).at(&folder)?;
        let mut postgres = Self {
            folder,
            unprivileged,
            port: free_port()?,
            server: None,
        };
        postgres.give_folder()?;
        postgres.create(&programs.join("initdb"))?;
        postgres.serve(&programs.join("postgres"))?;
        Ok(postgres)
    }

    /// The address of its socket.
    pub(super) fn url(&self) -> String {
        url(&self.folder, self.port)
    }

    /// The address for connections with TLS and a password.
    pub(super) fn tls_url(&self) -> String {
        tls::url(&self.folder, self.port)
    }

    fn give_folder(&self) -> Outcome {
        let Some((user, group)) = self.unprivileged else {
            return Ok(());
        };
        chown(&self.folder, Some(user), Some(group)).at(&self.folder)
    }

    /// Creates the data.
    fn create(&self, initdb: &Path) -> Outcome {
        let password = self.folder.join("password");
        fs::write(&password, tls::PASSWORD).at(&password)?;
        let mut create = self.command(initdb);
        create.args(["--pgdata", "data", "--username", "postgres"]);
        create.args(["--auth", "trust", "--encoding", "UTF8", "--no-locale"]);
        create.args(["--pwfile", "password", "--no-sync"]);
        process::output(&mut create)?;
        tls::admit(&self.folder.join("data"))?;
        tls::create(|program| self.command(program))
    }

    fn serve(&mut self, server: &Path) -> Outcome {
        let path = self.folder.join("log");
        let log = File::create(&path).at(&path)?;
        let mut serve = self.command(server);
        serve.args(["-D", "data", "-k"]).arg(&self.folder);
        serve.args(["-c", "listen_addresses=127.0.0.1", "-p"]);
        serve.arg(self.port.to_string()).args(tls::SETTINGS);
        // Without fsync: the tests do not cut the power.
        serve.arg("-F");
        serve.stdin(Stdio::null());
        serve.stdout(log.try_clone().at(&path)?).stderr(log);
        let server = self.server.insert(process::start(&mut serve)?);
        let socket = self.folder.join(format!(".s.PGSQL.{}", self.port));
        listens(server, &socket).map_err(|error| {
            let log = fs::read_to_string(&path).unwrap_or_default();
            format!("PostgreSQL {error}. Its log:\n{log}")
        })
    }

    /// A command in the folder, as the right user, which on Linux also ends if this process is killed.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if cfg!(target_os = "linux") {
            command = Command::new("setpriv");
            command.args(["--pdeathsig", "QUIT"]).arg(program);
        }
        if let Some((user, group)) = self.unprivileged {
            command.uid(user).gid(group);
        }
        command.current_dir(&self.folder);
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            // Its immediate shutdown, which releases the shared memory. It fails if the server has
            // ended.
            let _ = Command::new("kill")
                .args(["-QUIT", &server.id().to_string()])
                .status();
            let _ = server.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Waits until a server listens on its socket.
fn listens(server: &mut Child, socket: &Path) -> Outcome {
    for _ in 0..TRIES {
        if UnixStream::connect(socket).is_ok() {
            return Ok(());
        }
        if let Ok(Some(status)) = server.try_wait() {
            return Err(format!("ended with {status}"));
        }
        thread::sleep(PAUSE);
    }
    Err(format!("does not listen on {}", socket.display()))
}

/// The address of the database of all servers, by the folder of the socket.
fn url(folder: &Path, port: u16) -> String {
    let folder = folder.display().to_string().replace('/', "%2F");
    format!("postgres://postgres@{folder}:{port}/postgres")
}

/// A port that was free a moment ago: the server cannot choose one by itself.
fn free_port() -> Outcome<u16> {
    let chosen = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let chosen = chosen.map_err(|error| format!("there is no free port: {error}"))?;
    Ok(chosen.port())
}

/// The folder with the programs, if they are installed.
pub(super) fn programs() -> Option<PathBuf> {
    newest(Path::new("/usr/lib/postgresql")).or_else(|| {
        let others = ["/usr/local/bin", "/usr/bin", "/opt/homebrew/bin"];
        others
            .iter()
            .map(PathBuf::from)
            .find(|folder| is_complete(folder))
    })
}

/// The programs of the newest version in a folder that is as Debian's.
fn newest(versions: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(versions).ok()?.flatten();
    let numbered = versions.filter_map(|version| {
        let number: u32 = version.file_name().to_str()?.parse().ok()?;
        Some((number, version.path().join("bin")))
    });
    let newest = numbered.filter(|(_, folder)| is_complete(folder)).max()?;
    Some(newest.1)
}

fn is_complete(folder: &Path) -> bool {
    ["initdb", "postgres"]
        .iter()
        .all(|program| folder.join(program).is_file())
}

/// The number of a user or a group.
fn id(args: &[&str]) -> Outcome<u32> {
    let printed = process::output(Command::new("id").args(args))?;
    let number = printed.trim().parse();
    number.map_err(|_| format!("`id` printed {printed:?}: expected a number"))
}

/// A minute in all.
const TRIES: u32 = 1200;
const PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_complete_version_is_used() {
        let folder = std::env::temp_dir().join(format!("xtask-postgres-{}", std::process::id()));
        let install = |version: &str, programs: &[&str]| {
            let bin = folder.join(version).join("bin");
            fs::create_dir_all(&bin).unwrap();
            for program in programs {
                fs::write(bin.join(program), "").unwrap();
            }
        };
        assert_eq!(newest(&folder), None);
        // The client alone.
        install("18", &["psql"]);
        assert_eq!(newest(&folder), None);
        install("9", &["initdb", "postgres"]);
        install("15", &["initdb", "postgres"]);
        install("old", &["initdb", "postgres"]);
        assert_eq!(newest(&folder), Some(folder.join("15/bin")));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_folder_of_the_socket_is_the_host() {
        assert_eq!(
            url(Path::new("/run/tests/pg-7"), 6000),
            "postgres://postgres@%2Frun%2Ftests%2Fpg-7:6000/postgres"
        );
    }

    #[test]
    fn a_server_that_ends_is_not_waited_for() {
        let mut server = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let error = listens(&mut server, Path::new("/nonexistent/socket")).unwrap_err();
        assert_eq!(error, "ended with exit status: 3");
    }
}
