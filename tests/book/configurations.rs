//! Each TOML block of the documentation is a configuration that `sluicegate check` accepts.

use std::path::Path;

use testkit::examples::{blocks, write_program};

use crate::{GATEWAY, pages};

/// The programs that print keys in the examples.
const PROGRAMS: [&str; 2] = ["az", "gcloud"];
/// The beginning of a line in the configuration of another program: Codex.
const OF_CODEX: &str = "model_provider = ";

#[test]
fn each_configuration_passes_the_check() {
    let mut found = 0;
    for (name, text) in pages() {
        for block in blocks(&text, "toml") {
            if !block.contains(OF_CODEX) {
                check(&name, block);
                found += 1;
            }
        }
    }
    assert!(found > 12, "{found} blocks are too few for all pages");
}

/// Checks a block. A store that is reached over the network is not there: that it is missing has to be
/// the only problem.
#[track_caller]
fn check(page: &str, block: &str) {
    let file = GATEWAY.file("sluicegate.toml", "");
    let folder = file.0.parent().unwrap();
    write_certificates(folder);
    let config = completed(block, folder);
    std::fs::write(&file.0, &config).unwrap();
    for program in PROGRAMS {
        write_program(folder, program, "echo sk-of-a-program");
    }
    let mut command = GATEWAY.command();
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", folder.display()));
    for variable in ["ANTHROPIC_API_KEY", "MISTRAL_API_KEY", "OPENAI_API_KEY"] {
        command.env(variable, "sk-of-the-environment");
    }
    let output = command.args(["check", "--config"]).arg(&file.0).output();
    let output = output.unwrap();
    let problems = String::from_utf8(output.stderr).unwrap();
    match away(&config) {
        Some(store) => assert!(
            !problems.is_empty() && problems.lines().all(|line| line.starts_with(store)),
            "{page}: {problems}\n{config}"
        ),
        None => assert!(output.status.success(), "{page}: {problems}\n{config}"),
    }
}

/// Writes the files that the examples of TLS name.
fn write_certificates(folder: &Path) {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["gate.example".to_owned()]).unwrap();
    let (certificate, key) = (cert.pem(), signing_key.serialize_pem());
    for (name, text) in [
        ("fullchain.pem", &certificate),
        ("privkey.pem", &key),
        ("admin.pem", &certificate),
        ("admin-key.pem", &key),
        ("clients.pem", &certificate),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

/// The block with a hash in place of its ellipsis, with folders that exist, and with stores at a port of
/// this machine at which nothing listens.
fn completed(block: &str, folder: &Path) -> String {
    let hash = format!("\"sha256:{}\"", "0".repeat(64));
    let block = block.replace("\"sha256:…\"", &hash);
    let folder = folder.to_str().unwrap();
    let block = block.replace("/var/lib/sluicegate", folder);
    let block = block.replace("/etc/sluicegate", folder);
    let block = at_nothing(&block, "\"redis://");
    at_nothing(&block, "\"postgres://")
}

/// Replaces the rest of each text that begins like this.
fn at_nothing(block: &str, beginning: &str) -> String {
    let mut parts = block.split(beginning);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let (_, rest) = part.split_once('"').unwrap();
        format!("{text}{beginning}127.0.0.1:1\"{rest}")
    })
}

/// The beginning of the problem that a configuration has because its store is not there.
fn away(config: &str) -> Option<&'static str> {
    let uses = |setting: &str| config.lines().any(|line| line.starts_with(setting));
    if uses("accounting = \"postgres://") {
        Some("sluicegate: state.accounting: ")
    } else if uses("limits = \"redis://") {
        Some("sluicegate: state.limits: ")
    } else {
        None
    }
}
