//! `cargo xtask advisories`: the locked packages against the RustSec advisory database.
//!
//! It needs the network, and what it finds can change without a change here, so it is no step of `cargo xtask ci`;
//! `cargo xtask deps` holds the least versions that are known to be needed.

use crate::tools::DENY;
use crate::{Outcome, process};

/// As [`run`], for the page of the long tier: where the database cannot be reached, the row says so.
pub(crate) fn part() -> Outcome<String> {
    match fetch() {
        Ok(()) => check().map(|()| "passed".to_owned()),
        Err(_) => Ok("cannot run here: the RustSec database cannot be reached".to_owned()),
    }
}

/// Brings the database and looks up what both lock files hold.
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
    // What was just brought is not asked for again.
    let check = ["check", "--disable-fetch", "advisories"];
    process::run(DENY.command()?.arg("--locked").args(check))?;
    process::run(DENY.command()?.args(["--locked", "--manifest-path", "fuzz/Cargo.toml"]).args(check))
}
