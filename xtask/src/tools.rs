//! The cargo subcommands that the tasks need beside cargo itself.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::outcome::Outcome;
use crate::{process, wheel, workspace};

/// A cargo subcommand from the registry, with the version that is installed if there is none.
pub(crate) struct Tool {
    subcommand: &'static str,
    package: &'static str,
    version: &'static str,
}

/// Licences, bans and sources.
pub(crate) const DENY: Tool = Tool {
    subcommand: "deny",
    package: "cargo-deny",
    version: "0.20.2",
};
/// libFuzzer.
pub(crate) const FUZZ: Tool = Tool {
    subcommand: "fuzz",
    package: "cargo-fuzz",
    version: "0.13.2",
};

impl Tool {
    /// The subcommand as a command in the workspace. If it is not installed, it is compiled once
    /// into the user's cache, beside the model.
    pub(crate) fn command(&self) -> Outcome<Command> {
        let probe = self
            .bare()?
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !probe.is_ok_and(|status| status.success()) {
            self.install()?;
        }
        self.bare()
    }

    fn install(&self) -> Outcome {
        let Self {
            package, version, ..
        } = self;
        println!(
            "installing {package} {version} into {}, once; this can take some minutes",
            self.folder()?.display()
        );
        let mut install = workspace::cargo("install");
        install.args(["--quiet", "--locked", "--version", version, "--root"]);
        process::run(install.arg(self.folder()?).arg(package))
    }

    /// The folder of this version, for all clones of the repository.
    fn folder(&self) -> Outcome<PathBuf> {
        Ok(wheel::cache()?
            .join("tools")
            .join(format!("{}-{}", self.package, self.version)))
    }

    /// The subcommand, with our tools after those of the user in the search path.
    fn bare(&self) -> Outcome<Command> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = self.folder()?.join("bin");
        let path = std::env::join_paths(std::env::split_paths(&path).chain([own]))
            .map_err(|error| format!("the PATH cannot be extended: {error}"))?;
        let mut command = workspace::cargo(self.subcommand);
        command.env("PATH", path);
        Ok(command)
    }
}
