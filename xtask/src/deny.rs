//! Runs cargo-deny, which `deny.toml` configures.

use crate::outcome::Outcome;
use crate::process;
use crate::tools::DENY;

/// Checks the licences, banned packages and sources of both lock files.
pub(crate) fn packages() -> Outcome {
    check(&["licenses", "bans", "sources"])
}

/// Checks both lock files against the RustSec database, which has to be reachable.
pub(crate) fn advisories() -> Outcome {
    check(&["advisories"])
}

fn check(checks: &[&str]) -> Outcome {
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let mut deny = DENY.command()?;
        // The fuzzer needs few of the licences.
        let quiet = [
            "--hide-inclusion-graph",
            "--allow",
            "license-not-encountered",
        ];
        deny.args(["--locked", "--manifest-path", manifest, "check"]);
        process::echoed(deny.args(quiet).args(checks))?;
    }
    Ok(())
}
