//! Errors at startup: one clear line for each problem, and a failure status.

use std::net::TcpListener;
use std::process::Command;

use testkit::{NOWHERE, Scratch, TEXT, await_that};

use crate::GATEWAY;

/// Runs a command that fails, and returns its standard error output.
#[track_caller]
fn failure(command: &mut Command) -> String {
    let output = command.output().expect("the binary runs");
    let message = String::from_utf8(output.stderr).expect("messages are UTF-8");
    assert!(!output.status.success(), "{message}");
    assert!(!message.contains("panicked"), "{message}");
    message
}

fn serve(config: &str) -> (Scratch, Command) {
    let file = GATEWAY.file("sluicegate.toml", config);
    let mut command = GATEWAY.command();
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--config"])
        .arg(&file.0);
    (file, command)
}

#[test]
fn a_taken_port_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let message =
        failure(
            GATEWAY
                .command()
                .args(["serve", "--listen", &address, "--admin", "127.0.0.1:0"]),
        );
    assert!(
        message.contains(&address) && message.contains("--listen"),
        "{message}"
    );
    assert_eq!(message.lines().count(), 1, "{message}");
}

/// A key of the environment that is shorter than 16 characters gets a warning at the start, which
/// does not show it.
#[test]
fn short_keys_of_the_environment_get_a_warning() {
    let log = |key: &str| {
        let mut command = GATEWAY.command();
        command.env("SLUICEGATE_TEXT_KEY", key);
        let server = GATEWAY.start_by(command, Some(NOWHERE));
        assert_eq!(server.get(key, "/v1/models").status, 200);
        // The line of the request comes after the lines of the start.
        await_that("the request is logged", || {
            server.log.lock().unwrap().contains("models")
        });
        server.log.lock().unwrap().clone()
    };
    let short = log("fifteen-letters");
    let line = short.lines().find(|line| line.contains("fewer than 16"));
    let line = line.unwrap_or_else(|| panic!("{short}"));
    assert!(line.contains(r#""level":"WARN""#) && line.contains("SLUICEGATE_TEXT_KEY"));
    assert!(!short.contains("fifteen-letters"), "{short}");
    let long = log("sixteen--letters");
    assert!(!long.contains("fewer than 16"), "{long}");
}

/// Without its engines the gateway serves upstreams only; its log and `check` give advice.
#[cfg(not(any(feature = "text-engine", feature = "image-engine")))]
#[test]
fn engines_that_are_not_built_get_a_warning() {
    let server = GATEWAY.start_by(GATEWAY.command(), None);
    let check = GATEWAY.command().arg("check").output().unwrap();
    let report = String::from_utf8(check.stdout).unwrap();
    for kind in ["text", "image"] {
        let advice = format!("this build has no embedded {kind} engine: ");
        assert!(report.contains(&format!("note: {advice}")), "{report}");
        await_that("the warning is logged", || {
            let log = server.log.lock().unwrap();
            let is_it = |line: &str| line.contains(r#""level":"WARN""#) && line.contains(&advice);
            log.lines().any(is_it)
        });
    }
}

#[cfg(feature = "text-engine")]
#[test]
fn missing_and_damaged_weights_are_reported_with_the_remedy() {
    let (_file, mut command) = serve("");
    let message = failure(command.env("SLUICEGATE_MODEL", "/nonexistent/model.gguf"));
    assert!(
        message.contains("/nonexistent/model.gguf") && message.contains("cargo xtask fetch-model"),
        "{message}"
    );
    assert_eq!(message.lines().count(), 1, "{message}");
    let damaged = GATEWAY.file("model.gguf", "GGUF, but not really");
    let (_file, mut command) = serve("");
    let message = failure(command.env("SLUICEGATE_MODEL", &damaged.0));
    assert!(message.contains("model.gguf"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn a_filter_of_the_log_without_a_level_is_refused() {
    for name in ["serve", "check"] {
        let mut command = GATEWAY.command();
        let command = command.arg(name);
        assert_eq!(
            failure(command.env("SLUICEGATE_LOG", "inof")),
            "sluicegate: SLUICEGATE_LOG: is 'inof', but must be off, error, warn, info, debug or trace, or a list of these by target, such as 'warn,access=info'\n"
        );
    }
}

/// Addresses of the command line replace the addresses of the file.
#[test]
fn addresses_that_exclude_each_other_are_refused() {
    let text = "listen = [\"127.0.0.1:8080\"]\nadmin = \"127.0.0.1:8080\"\n";
    let problem = "is 127.0.0.1:8080, but listen[0] is 127.0.0.1:8080: choose another port\n";
    let file = GATEWAY.file("sluicegate.toml", text);
    assert_eq!(
        failure(GATEWAY.command().args(["check", "--config"]).arg(&file.0)),
        format!("sluicegate: admin: {problem}")
    );
    let addresses = ["--listen", "127.0.0.1:8080", "--listen", "127.0.0.1:8080"];
    assert_eq!(
        failure(GATEWAY.command().arg("serve").args(addresses)),
        format!("sluicegate: listen[1]: {problem}")
    );
    let server = GATEWAY.without_engines(text);
    assert_eq!(server.get(TEXT, "/v1/models").status, 200);
}

#[test]
fn a_bad_file_is_reported_with_its_line() {
    let (_file, mut command) = serve("[limits]\nconcurrency = 4\ncolour = \"red\"\n");
    let message = failure(&mut command);
    assert!(
        message.contains("line 3") && message.contains("colour"),
        "{message}"
    );
    let (_file, mut command) = serve("[limits]\nconcurrency = 0\nkeep_alive = \"0s\"\n");
    let message = failure(&mut command);
    assert!(
        message.contains("limits.concurrency") && message.contains("limits.keep_alive"),
        "both at once: {message}"
    );
    let message =
        failure(
            GATEWAY
                .command()
                .args(["serve", "--config", "/nonexistent/sluicegate.toml"]),
        );
    assert!(
        message.contains("/nonexistent/sluicegate.toml"),
        "{message}"
    );
}

/// A configuration file without keys is refused at startup, instead of serving without
/// authentication.
#[test]
fn a08_a_file_without_keys_is_refused_and_never_open() {
    let (_file, mut command) = serve("");
    for variable in [
        "SLUICEGATE_TEXT_KEY",
        "SLUICEGATE_MESSAGES_KEY",
        "SLUICEGATE_IMAGE_KEY",
    ] {
        command.env_remove(variable);
    }
    let message = failure(&mut command);
    assert!(
        message.contains("[[keys]]") && message.contains("SLUICEGATE_TEXT_KEY"),
        "{message}"
    );
}

/// An invalid key is refused at startup, and every problem of it is reported.
#[test]
fn a08_every_bad_key_is_reported() {
    let (file, _) = serve(
        "[[keys]]\nname = \"a\"\nhash = \"sha256:12\"\nscopes = [\"text\", \"smell\"]\nexpires = \"soon\"\n",
    );
    let message = failure(GATEWAY.command().args(["check", "--config"]).arg(&file.0));
    for part in ["hash", "smell", "soon"] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

/// A new key is printed once, and the configuration file contains only its hash.
#[test]
fn a12_a_new_key_is_shown_once_with_lines_that_are_taken() {
    let output = GATEWAY
        .command()
        .args([
            "keys",
            "new",
            "--name",
            "team-a",
            "--scopes",
            "text,messages",
            "--expires",
            "90d",
        ])
        .output();
    let shown = String::from_utf8(output.unwrap().stdout).unwrap();
    let key = shown.lines().next().unwrap();
    let lines = shown.split_once("[[keys]]").unwrap().1;
    assert!(!lines.contains(key), "the file gets the hash alone");
    let file = GATEWAY.file("sluicegate.toml", &format!("[[keys]]{lines}"));
    let checked = GATEWAY
        .command()
        .args(["check", "--config"])
        .arg(&file.0)
        .output()
        .unwrap();
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&checked.stderr)
    );
}
