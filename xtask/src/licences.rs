//! Checks the licences and the sources of all locked packages against `deny.toml`.
//!
//! The long tier checks the packages against the same file with cargo-deny, which covers more
//! (bans, and the dependencies of every platform); this is the part that needs no tool to be
//! compiled first.

use std::collections::BTreeSet;

use cargo_metadata::Package;
use serde::Deserialize;
use spdx::{Expression, LicenseReq, ParseMode};

use crate::outcome::{At as _, Outcome, no_problems};
use crate::workspace;

/// Checks every package that the workspace is built from against the list of licences and the only
/// allowed registry.
pub(crate) fn run() -> Outcome {
    let allowed = allowed()?;
    // Every package of the lock file.
    let metadata = workspace::described(&["--locked", "--all-features"])?;
    let found: Vec<_> = metadata
        .packages
        .iter()
        .filter_map(|package| problem(package, &allowed))
        .collect();
    no_problems("licences and sources", &found)?;
    println!(
        "{} packages have licences of deny.toml and come from the registry",
        metadata.packages.len()
    );
    Ok(())
}

/// The licences that `deny.toml` allows.
fn allowed() -> Outcome<BTreeSet<String>> {
    #[derive(Deserialize)]
    struct Deny {
        licenses: Licenses,
    }
    #[derive(Deserialize)]
    struct Licenses {
        allow: BTreeSet<String>,
    }
    let text = workspace::read(FILE)?;
    let deny: Deny = toml::from_str(&text).at(FILE)?;
    Ok(deny.licenses.allow)
}

/// The problem of a package, in one sentence.
fn problem(package: &Package, allowed: &BTreeSet<String>) -> Option<String> {
    let name = format!("{} {}", package.name, package.version);
    if package
        .source
        .as_ref()
        .is_some_and(|source| !source.is_crates_io())
    {
        return Some(format!("{name} does not come from the registry"));
    }
    let Some(licence) = &package.license else {
        return Some(format!("{name} has no licence"));
    };
    // An exception, such as that of LLVM, only grants more rights than its licence.
    let is_allowed = |required: &LicenseReq| {
        required
            .license
            .id()
            .is_some_and(|id| allowed.contains(id.name))
    };
    match Expression::parse_mode(licence, ParseMode::LAX) {
        Ok(expression) if expression.evaluate(is_allowed) => None,
        Ok(_) => Some(format!(
            "{name} is under {licence}, which {FILE} does not allow"
        )),
        Err(error) => Some(format!(
            "{name}: the licence {licence:?} cannot be read: {}",
            error.reason
        )),
    }
}

const FILE: &str = "deny.toml";

#[cfg(test)]
mod tests {
    use super::*;

    fn package(licence: &str, source: &str) -> Package {
        let text = format!(
            r#"{{"name":"a","version":"1.0.0","id":"a","license":{licence},"license_file":null,"description":null,"source":{source},"dependencies":[],"targets":[],"features":{{}},"manifest_path":"/a/Cargo.toml","metadata":null,"publish":null,"authors":[],"categories":[],"keywords":[],"readme":null,"repository":null,"homepage":null,"documentation":null,"edition":"2021","links":null,"default_run":null,"rust_version":null}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_package_needs_a_licence_of_the_list_and_the_registry() {
        let allowed = [
            "MIT".to_owned(),
            "Apache-2.0".to_owned(),
            "Unicode-3.0".to_owned(),
        ]
        .into();
        let problem = |licence: &str, source: &str| problem(&package(licence, source), &allowed);
        let registry = r#""registry+https://github.com/rust-lang/crates.io-index""#;
        for good in [
            r#""MIT""#,
            r#""GPL-3.0 OR MIT""#,
            r#""MIT/Apache-2.0""#,
            r#""(MIT OR GPL-3.0) AND Unicode-3.0""#,
        ] {
            assert_eq!(problem(good, registry), None, "{good}");
        }
        assert_eq!(problem(r#""Apache-2.0 WITH LLVM-exception""#, "null"), None);
        assert_eq!(
            problem(r#""MIT AND GPL-3.0""#, registry).as_deref(),
            Some("a 1.0.0 is under MIT AND GPL-3.0, which deny.toml does not allow")
        );
        assert_eq!(
            problem("null", registry).as_deref(),
            Some("a 1.0.0 has no licence")
        );
        let elsewhere = problem(r#""MIT""#, r#""git+https://example.com/a""#);
        assert_eq!(
            elsewhere.as_deref(),
            Some("a 1.0.0 does not come from the registry")
        );
    }

    #[test]
    fn the_list_is_the_one_of_cargo_deny() {
        assert!(allowed().unwrap().contains("MIT"));
    }
}
