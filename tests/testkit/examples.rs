//! The examples of the documentation, run as they stand there.

use std::io::Read as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The blocks of a page that are in this language, such as `sh`, in their order.
pub fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    let blocks = page.split(&fence).skip(1);
    blocks.filter_map(|rest| rest.split("```").next()).collect()
}

/// A shell that runs a script, and all processes that the script has started. Dropping it ends them.
pub struct Shell {
    child: Child,
    /// The standard output of the script.
    pub output: String,
}

impl Shell {
    /// Runs a script in a folder, whose [programs](write_program) it finds before all others, until
    /// its standard output has ended. It ends at the first command that fails.
    pub fn run(script: &str, folder: &Path, variables: &[(&str, &str)]) -> Self {
        let path = std::env::var("PATH").unwrap();
        let mut shell = Command::new("bash");
        shell
            .args(["-euo", "pipefail", "-c", script])
            .current_dir(folder)
            .env("PATH", format!("{}:{path}", folder.display()))
            .envs(variables.iter().copied())
            .process_group(0)
            .stdout(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        let mut output = String::new();
        let from = child.stdout.take();
        from.unwrap().read_to_string(&mut output).unwrap();
        Self { child, output }
    }

    /// Waits until the script has ended; returns true if all of its commands have succeeded.
    pub fn has_succeeded(&mut self) -> bool {
        self.child.wait().unwrap().success()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        // There may be no process left.
        let _ = Command::new("kill")
            .args(["-s", "KILL", "--", &group])
            .stderr(Stdio::null())
            .status();
        let _ = self.child.wait();
    }
}

/// Writes a program that scripts in this folder call: a script itself.
pub fn write_program(folder: &Path, name: &str, script: &str) {
    let file = folder.join(name);
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Replaces a part of an example that has to be there.
#[track_caller]
pub fn replaced(example: &str, part: &str, by: &str) -> String {
    assert!(example.contains(part), "{part} is not in {example}");
    example.replace(part, by)
}

/// Returns a loopback address that no other process uses: the ports of this one are free, and stay free,
/// because connections of other tests start at 127.0.0.1.
pub fn own_ip() -> Ipv4Addr {
    let [a, b, c, d] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 64 | (a ^ b) & 63, c, d.max(2))
}
