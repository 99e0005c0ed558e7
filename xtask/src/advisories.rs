//! `cargo xtask advisories`: checks the locked packages against the RustSec advisory database.
//!
//! It needs the network, and its findings can change without a change here, so it is no step of
//! `cargo xtask ci`; `cargo xtask deps` checks the least versions that are known to be needed.

use crate::outcome::Outcome;
use crate::process;
use crate::tools::DENY;

/// As [`run`], for the page of the long tier: if the database cannot be reached, the row says so.
pub(crate) fn part() -> Outcome<String> {
    match fetch() {
        Ok(()) => check().map(|()| "passed".to_owned()),
        Err(_) => Ok("cannot run here: the RustSec database cannot be reached".to_owned()),
    }
}

/// Downloads the database and looks up the packages of both lock files.
pub(crate) fn run() -> Outcome {
    fetch()?;
    check()
}

fn fetch() -> Outcome {
    process::run(DENY.command()?.args(["--locked", "fetch", "db"])).map_err(|error| {
        format!(
            "the advisory database cannot be brought, so nothing was checked ({error}). It is the git repository \
             rustsec/advisory-db on GitHub: `db-urls` under [advisories] in deny.toml can name a mirror"
        )
    })
}

fn check() -> Outcome {
    // The database was downloaded just now.
    let check = ["check", "--disable-fetch", "advisories"];
    process::run(DENY.command()?.arg("--locked").args(check))?;
    process::run(
        DENY.command()?
            .args(["--locked", "--manifest-path", "fuzz/Cargo.toml"])
            .args(check),
    )
}
