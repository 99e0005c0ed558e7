//! Runs cargo-deny, which `deny.toml` configures.

use crate::outcome::Outcome;
use crate::process;
use crate::tools::DENY;

/// Runs these checks of both lock files. The RustSec database of `advisories` has to be reachable.
pub(crate) fn check(checks: &[&str]) -> Outcome {
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let mut deny = DENY.command("--locked --manifest-path")?;
        deny.args([manifest, "check", "--hide-inclusion-graph"]);
        // The fuzzer needs few of the licences.
        deny.args(["--allow", "license-not-encountered"]);
        process::echoed(deny.args(checks))?;
    }
    Ok(())
}
