//! Keeps the build of a trial until its tests are run: a build needs the whole machine, and tests
//! mostly wait.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::Message;

use crate::outcome::{At as _, Outcome};

/// Test programs, and the programs that they start.
#[derive(Debug, PartialEq)]
pub(super) struct Built {
    folder: PathBuf,
    programs: Vec<Program>,
}

#[derive(Debug, PartialEq)]
struct Program {
    /// The path to which cargo has built it, and where tests look for it.
    path: PathBuf,
    /// The folder of its package, if it is a test program.
    package: Option<PathBuf>,
}

impl Built {
    /// Opens the build that is kept in `folder`, if it is complete.
    pub(super) fn open(folder: &Path) -> Option<Self> {
        let programs = fs::read_to_string(folder.join(LIST)).ok()?;
        Some(Self {
            folder: folder.to_owned(),
            programs: programs.lines().filter_map(Program::parse).collect(),
        })
    }

    /// Keeps in `folder` the programs that cargo has built, listed in its `messages`.
    pub(super) fn keep(folder: PathBuf, messages: &str) -> Outcome<Self> {
        let built = Self {
            programs: programs(messages),
            folder,
        };
        built.copy().at(&built.folder)?;
        Ok(built)
    }

    fn copy(&self) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        for (number, program) in self.programs.iter().enumerate() {
            fs::copy(&program.path, self.kept(number))?;
        }
        // Written last, since it marks the build as complete.
        fs::write(
            self.folder.join(LIST),
            self.programs.iter().map(Program::line).collect::<String>(),
        )
    }

    /// The commands that run the tests with these arguments, after copying the programs that they
    /// start to their places.
    pub(super) fn tests(&self, args: &[&str]) -> Outcome<Vec<Command>> {
        let mut commands = Vec::new();
        for (number, program) in self.programs.iter().enumerate() {
            if let Some(package) = &program.package {
                let mut command = Command::new(self.kept(number));
                // A snapshot that differs is a failure, and no new snapshot is proposed.
                command
                    .args(args)
                    .current_dir(package)
                    .env("CARGO_MANIFEST_DIR", package)
                    .env("INSTA_UPDATE", "no");
                commands.push(command);
            } else {
                fs::remove_file(&program.path).or_else(|error| match error.kind() {
                    io::ErrorKind::NotFound => Ok(()),
                    _ => Err(error).at(&program.path),
                })?;
                fs::copy(self.kept(number), &program.path).at(&program.path)?;
            }
        }
        Ok(commands)
    }

    /// Removes the build.
    pub(super) fn discard(self) -> Outcome {
        fs::remove_dir_all(&self.folder).at(&self.folder)
    }

    fn kept(&self, number: usize) -> PathBuf {
        self.folder.join(number.to_string())
    }
}

impl Program {
    fn line(&self) -> String {
        let package = self
            .package
            .as_deref()
            .map(Path::display)
            .map_or(String::new(), |package| package.to_string());
        format!("{}\t{package}\n", self.path.display())
    }

    fn parse(line: &str) -> Option<Self> {
        let (path, package) = line.split_once('\t')?;
        Some(Self {
            path: path.into(),
            package: (!package.is_empty()).then(|| package.into()),
        })
    }
}

/// The programs among cargo's messages about its build; other lines are ignored.
fn programs(messages: &str) -> Vec<Program> {
    let artifacts =
        Message::parse_stream(messages.as_bytes()).filter_map(|message| match message {
            Ok(Message::CompilerArtifact(artifact)) => Some(artifact),
            _ => None,
        });
    let program = |artifact: cargo_metadata::Artifact| {
        let package = artifact
            .manifest_path
            .parent()
            .filter(|_| artifact.profile.test);
        let package = package.map(|package| package.as_std_path().to_owned());
        Some(Program {
            path: artifact.executable?.into(),
            package,
        })
    };
    artifacts.filter_map(program).collect()
}

const LIST: &str = "programs";

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(folder: &Path, name: &str, test: bool) -> String {
        let path = folder.join(name);
        fs::write(&path, name).unwrap();
        format!(
            r#"{{"reason":"compiler-artifact","package_id":"path+file:///a#a@0.1.0","manifest_path":"{0}/a/Cargo.toml","target":{{"kind":["bin"],"crate_types":["bin"],"name":"a","src_path":"/a/main.rs","edition":"2024","doc":true,"doctest":true,"test":true}},"profile":{{"opt_level":"0","debuginfo":0,"debug_assertions":true,"overflow_checks":true,"test":{test}}},"features":[],"filenames":[],"executable":{path:?},"fresh":true}}"#,
            folder.display()
        )
    }

    #[test]
    fn what_is_kept_is_put_back_before_its_tests() {
        let folder = std::env::temp_dir().join(format!("xtask-built-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let messages = format!(
            "   Compiling a\n{}\n{}\n",
            artifact(&folder, "gate", false),
            artifact(&folder, "it-1", true)
        );
        let kept = folder.join("kept");
        assert_eq!(Built::open(&kept), None);
        let built = Built::keep(kept.clone(), &messages).unwrap();
        assert_eq!(Built::open(&kept).as_ref(), Some(&built));
        fs::write(folder.join("gate"), "another").unwrap();
        let tests = built.tests(&["one"]).unwrap();
        assert_eq!(fs::read_to_string(folder.join("gate")).unwrap(), "gate");
        assert_eq!(
            (tests.len(), tests[0].get_program()),
            (1, kept.join("1").as_os_str())
        );
        assert_eq!(tests[0].get_current_dir(), Some(folder.join("a").as_path()));
        assert_eq!(tests[0].get_args().collect::<Vec<_>>(), ["one"]);
        built.discard().unwrap();
        assert_eq!(Built::open(&kept), None);
        fs::remove_dir_all(folder).unwrap();
    }
}
