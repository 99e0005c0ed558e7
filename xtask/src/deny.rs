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
        let mut deny = DENY.command("--locked --manifest-path")?;
        deny.args([manifest, "check", "--hide-inclusion-graph"]);
        // The fuzzer needs few of the licences.
        deny.args(["--allow", "license-not-encountered"]);
        process::echoed(deny.args(checks))?;
    }
    Ok(())
}
