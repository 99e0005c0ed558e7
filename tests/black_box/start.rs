//! What a person is told who starts it wrongly: one clear line a problem, and a status that is not 0.

use std::net::TcpListener;
use std::process::Command;

use crate::server::{Scratch, binary};

/// The exit of a command and what it said on standard error.
#[track_caller]
fn failure(command: &mut Command) -> String {
    let output = command.output().expect("the binary runs");
    let told = String::from_utf8(output.stderr).expect("messages are UTF-8");
    assert!(!output.status.success(), "{told}");
    assert!(!told.contains("panicked"), "{told}");
    told
}

fn serve(config: &str) -> (Scratch, Command) {
    let file = Scratch::file("sluicegate.toml", config);
    let mut command = binary();
    command.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&file.0);
    (file, command)
}

#[test]
fn a_taken_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let told = failure(binary().args(["serve", "--listen", &address, "--admin", "127.0.0.1:0"]));
    assert!(told.contains(&address) && told.contains("--listen"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn missing_and_damaged_weights_are_told_with_the_remedy() {
    let (_file, mut command) = serve("");
    let told = failure(command.env("SLUICEGATE_MODEL", "/nonexistent/model.gguf"));
    assert!(told.contains("/nonexistent/model.gguf") && told.contains("cargo xtask fetch-model"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    let damaged = Scratch::file("model.gguf", "GGUF, but not really");
    let (_file, mut command) = serve("");
    let told = failure(command.env("SLUICEGATE_MODEL", &damaged.0));
    assert!(told.contains("model.gguf"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn a_bad_file_is_told_with_its_line() {
    let (_file, mut command) = serve("[limits]\nconcurrency = 4\ncolour = \"red\"\n");
    let told = failure(&mut command);
    assert!(told.contains("line 3") && told.contains("colour"), "{told}");
    let (_file, mut command) = serve("[limits]\nconcurrency = 0\nkeep_alive = \"0s\"\n");
    let told = failure(&mut command);
    assert!(told.contains("limits.concurrency") && told.contains("limits.keep_alive"), "both at once: {told}");
    let told = failure(binary().args(["serve", "--config", "/nonexistent/sluicegate.toml"]));
    assert!(told.contains("/nonexistent/sluicegate.toml"), "{told}");
}

/// No keys is no start, never an open gateway.
#[test]
fn a08_a_file_without_keys_is_refused_and_never_open() {
    let (_file, mut command) = serve("");
    for variable in ["SLUICEGATE_TEXT_KEY", "SLUICEGATE_MESSAGES_KEY", "SLUICEGATE_IMAGE_KEY"] {
        command.env_remove(variable);
    }
    let told = failure(&mut command);
    assert!(told.contains("[[keys]]") && told.contains("SLUICEGATE_TEXT_KEY"), "{told}");
}

/// A key that cannot be read is no start, and everything wrong with it is told.
#[test]
fn a08_every_bad_key_is_told() {
    let (file, _) =
        serve("[[keys]]\nname = \"a\"\nhash = \"sha256:12\"\nscopes = [\"text\", \"smell\"]\nexpires = \"soon\"\n");
    let told = failure(binary().args(["check", "--config"]).arg(&file.0));
    for part in ["hash", "smell", "soon"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

/// A new key is shown once; the file gets its hash alone.
#[test]
fn a12_a_new_key_is_shown_once_with_lines_that_are_taken() {
    let output =
        binary().args(["keys", "new", "--name", "team-a", "--scopes", "text,messages", "--expires", "90d"]).output();
    let shown = String::from_utf8(output.unwrap().stdout).unwrap();
    let key = shown.lines().next().unwrap();
    let lines = shown.split_once("[[keys]]").unwrap().1;
    assert!(!lines.contains(key), "the file gets the hash alone");
    let file = Scratch::file("sluicegate.toml", &format!("[[keys]]{lines}"));
    let checked = binary().args(["check", "--config"]).arg(&file.0).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}
