//! Checks that unsafe code is forbidden in every package: each has to inherit the workspace's
//! lints, which forbid it, or to forbid it itself.

use std::path::Path;

use cargo_metadata::Metadata;
use toml::{Table, Value};

use crate::outcome::{At as _, Outcome};
use crate::workspace;

/// The manifests that do not forbid unsafe code.
pub(crate) fn problems(metadata: &Metadata) -> Outcome<Vec<String>> {
    let root = workspace::root();
    let manifests = metadata
        .packages
        .iter()
        .map(|package| package.manifest_path.as_str());
    let mut found = Vec::new();
    for path in manifests.chain(["Cargo.toml", "fuzz/Cargo.toml"]) {
        let name = Path::new(path)
            .strip_prefix(&root)
            .map_or(path.into(), Path::to_string_lossy);
        if !forbids_unsafe(&workspace::read(&*name)?.parse().at(&*name)?) {
            found.push(format!(
                "{name}: `unsafe_code` is not forbidden: expected `[lints] workspace = true`"
            ));
        }
    }
    Ok(found)
}

/// Returns true if a manifest forbids unsafe code, for its own package or for a workspace, or
/// inherits the workspace's lints.
fn forbids_unsafe(manifest: &Table) -> bool {
    let at = |path: &[&str]| {
        let (first, rest) = path.split_first()?;
        rest.iter()
            .try_fold(manifest.get(*first)?, |value, name| value.get(name))
    };
    let own = [
        &["lints", "rust", "unsafe_code"][..],
        &["workspace", "lints", "rust", "unsafe_code"],
    ];
    let level = |value: &Value| value.get("level").unwrap_or(value).as_str() == Some("forbid");
    at(&["lints", "workspace"]).is_some_and(|workspace| workspace.as_bool() == Some(true))
        || own.iter().any(|path| at(path).is_some_and(level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_package_may_be_unsafe() {
        assert_eq!(problems(&workspace::metadata().unwrap()), Ok(Vec::new()));
    }

    #[test]
    fn unsafe_code_is_forbidden_here_or_by_the_workspace() {
        let forbids = |text: &str| forbids_unsafe(&text.parse().unwrap());
        assert!(forbids("[lints]\nworkspace = true\n"));
        assert!(forbids("[lints.rust]\nunsafe_code = \"forbid\"\n"));
        assert!(forbids(
            "[workspace.lints.rust]\nunsafe_code = { level = \"forbid\", priority = 1 }\n"
        ));
        assert!(!forbids("[package]\nname = \"a\"\n"));
        assert!(!forbids("[lints.rust]\nunsafe_code = \"deny\"\n"));
        assert!(!forbids("[lints]\nworkspace = false\n"));
    }
}
