//! Compares the features of the test builds with the features of the released binary.
//!
//! Cargo builds a package once for a whole workspace, with every feature that any of its dependents
//! enables. So a dependency of a test or a tool can put code under test that is not released.

use std::collections::{BTreeMap, BTreeSet};

use crate::outcome::Outcome;
use crate::{process, workspace};

/// Features that the tests have and the released binary does not, unless [`ALLOWED`] lists them;
/// and entries of that list that are not needed.
pub(crate) fn problems() -> Outcome<Vec<String>> {
    let released = resolved("tree --package sluicegate-server --edges normal,build")?;
    let tested = resolved("tree --workspace --exclude xtask --edges normal,build,dev")?;
    Ok(judge(&additions(&released, &tested), ALLOWED))
}

/// The builds of each package, by its name and version. A package that build scripts need too may
/// be built twice.
type Packages = BTreeMap<String, BTreeSet<Features>>;
type Features = BTreeSet<String>;

/// The packages in the dependency trees that `line` selects.
fn resolved(line: &str) -> Outcome<Packages> {
    let mut tree = workspace::cargo(line);
    tree.args(["--locked", "--prefix", "none", "--format", "{p}|{f}"]);
    Ok(packages(&process::output(&mut tree)?))
}

/// Parses lines such as `tokio v1.54.1|macros,rt`, where `(*)` marks a repetition.
fn packages(tree: &str) -> Packages {
    let mut packages = Packages::new();
    for (package, features) in tree.lines().filter_map(|line| line.split_once('|')) {
        let id: Vec<_> = package.split(' ').take(2).collect();
        // `default` stands for a list of others, which are listed themselves.
        let features = features.trim_end_matches(" (*)").split(',');
        let features = features.filter(|feature| !["", "default"].contains(feature));
        let builds = packages.entry(id.join(" ")).or_default();
        builds.insert(features.map(str::to_owned).collect());
    }
    packages
}

/// The features that builds of `tested` have beyond the closest build of the same package in
/// `released`, each behind the name of its package: `tokio/rt`.
fn additions(released: &Packages, tested: &Packages) -> Features {
    let mut found = BTreeSet::new();
    for (id, builds) in released {
        let name = id.split(' ').next().unwrap_or(id);
        for features in tested.get(id).into_iter().flatten() {
            let beyond = builds.iter().map(|build| features - build);
            let least = beyond.min_by_key(Features::len).unwrap_or_default();
            found.extend(least.iter().map(|feature| format!("{name}/{feature}")));
        }
    }
    found
}

/// Compares the additions with the list, in both directions.
fn judge(additions: &Features, allowed: &str) -> Vec<String> {
    let allowed = allowed.lines().filter_map(|line| line.split_once(": "));
    let allowed: Features = allowed.map(|(name, _)| name.to_owned()).collect();
    let strange = additions.difference(&allowed).map(|name| {
        let (package, feature) = name.split_once('/').unwrap_or_default();
        format!(
            "the tests build {package} with the feature `{feature}`, which the released binary does not have: see \
             `cargo tree --workspace --edges features,normal,build,dev --invert {package}`"
        )
    });
    let stale = allowed.difference(additions).map(|name| {
        format!("{name} is allowed in xtask/src/features.rs, but the tests do not have it any more")
    });
    strange.chain(stale).collect()
}

/// All features that the tests may have beyond the released binary: the package, the feature, and
/// the dependent that enables it with the reason why the tests are still valid.
const ALLOWED: &str = "\
rustix/fs: tempfile: functions for files
sluicegate-gateway/test-util: a gateway with scripted engines, for the tests of `admin` and `server`
sluicegate-telemetry/test-util: the report of a completed request, for the tests of `otlp`
tokio/test-util: timeouts are tested on a paused clock; it runs as usual until a test pauses it
tracing-subscriber/ansi: loom has no switch for it: colours of `fmt`, which writes nothing here
tracing-subscriber/fmt: loom, and the log of the campaign: types that the gateway does not use
tracing-subscriber/nu-ansi-term: comes with ansi
tracing-subscriber/smallvec: loom has no switch for it: where a filter keeps its fields
tracing-subscriber/tracing-log: loom has no switch for it: only `init` uses it, which is not called
";

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASED: &str = "\
sluicegate-server v0.1.0 (crates/server)|default,image-engine,text-engine
tokio v1.54.1|default,rt
tokio v1.54.1|default,rt (*)
syn v2.0.1|
syn v2.0.1|full
serde_derive v1.0.229 (proc-macro)|default
";

    fn judged(tested: &str, allowed: &str) -> Vec<String> {
        let tested = [RELEASED, tested].concat();
        judge(&additions(&packages(RELEASED), &packages(&tested)), allowed)
    }

    #[test]
    fn workspace_tests_build_the_released_features() {
        assert_eq!(problems(), Ok(Vec::new()));
    }

    #[test]
    fn packages_and_versions_of_the_tests_alone_do_not_matter() {
        assert_eq!(
            judged("proptest v1.12.0|std\ntokio v0.1.0|test-util\n", ""),
            Vec::<String>::new()
        );
    }

    #[test]
    fn builds_are_distinguished_and_default_is_no_feature_itself() {
        assert_eq!(
            judged("syn v2.0.1|full\nserde_derive v1.0.229 (proc-macro)|\n", ""),
            Vec::<String>::new()
        );
        let found = judged("syn v2.0.1|full,visit\n", "");
        assert!(
            found.len() == 1 && found[0].contains("build syn with the feature `visit`"),
            "{found:?}"
        );
    }

    #[test]
    fn features_of_tests_alone_are_reported_unless_allowed() {
        let tested = "tokio v1.54.1|rt,test-util\n";
        assert!(
            judged(tested, "")[0].starts_with("the tests build tokio with the feature `test-util`")
        );
        assert_eq!(
            judged(tested, "tokio/test-util: A clock."),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_permission_that_nothing_needs_is_reported() {
        assert_eq!(
            judged("", "tokio/io-util: Traits."),
            [
                "tokio/io-util is allowed in xtask/src/features.rs, but the tests do not have it any more"
            ]
        );
    }
}
