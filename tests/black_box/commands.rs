//! Commands that packages need: files that follow from the code, the version, and the health check.

use std::net::SocketAddr;
use std::process::Output;

use serde_json::Value;
use testkit::await_that;
use testkit::upstreams::closed_port;

use crate::GATEWAY;

fn run(arguments: &[&str]) -> Output {
    GATEWAY.command().args(arguments).output().unwrap()
}

#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_file_of_config_init_passes_the_check() {
    let file = GATEWAY.file("sluicegate.toml", &printed(&["config", "init"]));
    let report = printed(&["check", "--config", file.0.to_str().unwrap()]);
    assert!(
        report.starts_with("ok: 3 keys, 10 models, 0 upstreams\n"),
        "{report}"
    );
}

#[test]
fn config_schema_prints_a_json_schema_of_draft_7() {
    let schema: Value = serde_json::from_str(&printed(&["config", "schema"])).unwrap();
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["listen"]["type"], "array");
}

#[test]
fn wrong_addresses_and_urls_show_the_accepted_form() {
    let url = "relative URL without a base; a URL such as http://127.0.0.1:8000 is accepted";
    let address = "an IP address with a port, such as 127.0.0.1:8080, is accepted";
    for (arguments, problem) in [
        (&["keys", "list", "--admin", "127.0.0.1:9090"][..], url),
        (
            &[
                "serve",
                "--protocol",
                "chat",
                "--upstream",
                "127.0.0.1:9090",
            ],
            url,
        ),
        (&["serve", "--listen", "8080"], address),
        (&["serve", "--admin", "localhost:9090"], address),
        (&["health", "--admin", "http://127.0.0.1:9090"], address),
    ] {
        let refused = String::from_utf8(run(arguments).stderr).unwrap();
        assert!(refused.contains(problem), "{refused}");
    }
}

#[test]
fn the_version_has_the_commit_and_the_features() {
    let version = printed(&["--version"]);
    let expected = concat!("sluicegate ", env!("CARGO_PKG_VERSION"), " (commit ");
    assert!(version.starts_with(expected), "{version}");
    assert!(version.contains("; features: "), "{version}");
    assert_eq!(
        printed(&["-V"]),
        concat!("sluicegate ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn completions_and_manual_pages_have_each_command() {
    for shell in ["bash", "fish", "zsh"] {
        assert!(
            printed(&["completions", shell]).contains("explain"),
            "{shell}"
        );
    }
    let note = GATEWAY.file("note.txt", "The pages are beside this file.");
    let folder = note.0.with_file_name("man");
    assert_eq!(printed(&["manual", folder.to_str().unwrap()]), "");
    for (page, part) in [
        ("sluicegate.1", "sluicegate\\-serve(1)"),
        ("sluicegate-serve.1", "\\-\\-listen"),
        ("sluicegate-keys-create.1", "\\-\\-scopes"),
    ] {
        let text = std::fs::read_to_string(folder.join(page)).unwrap();
        assert!(text.contains(part), "{text}");
    }
}

/// `sluicegate health` succeeds while a gateway is ready, and otherwise says why it is not.
#[test]
fn health_asks_a_running_gateway() {
    let problem = |address: SocketAddr| {
        let output = run(&["health", "--admin", &address.to_string()]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.success(), text.is_empty(), "{text}");
        text.replace(&format!("sluicegate: http://{address}/readyz: "), "")
    };
    let server = GATEWAY.without_engines("");
    let address = server.admin.unwrap();
    assert_eq!(problem(address), "");
    server.signal("TERM");
    await_that("the shutdown has begun", || {
        problem(address) == "status 503: stopping\n"
    });
    let refusing = closed_port();
    let problem = problem(refusing.local_addr().unwrap());
    assert!(problem.contains("Connection refused"), "{problem}");
}
