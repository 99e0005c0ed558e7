//! `sluicegate check`, with and without `--ask`.

use std::process::Command;

use serde_json::json;
use simulator::{Play, Protocol, Simulator, honest};
use testkit::{Config, UPSTREAM_KEY};

use crate::GATEWAY;

/// The output of a command: true for success, standard output, standard error.
fn output(command: &mut Command) -> (bool, String, String) {
    let output = command.output().expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("messages are UTF-8");
    (
        output.status.success(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// The output of `check` with this configuration and these arguments.
pub(crate) fn check(config: &Config, arguments: &[&str]) -> (bool, String, String) {
    let key = GATEWAY.file("upstream.key", UPSTREAM_KEY);
    let file = GATEWAY.file("sluicegate.toml", &config.text(&key.0));
    let mut command = GATEWAY.command();
    output(
        command
            .args(["check", "--config"])
            .arg(&file.0)
            .args(arguments),
    )
}

/// The lines about targets that were asked, without the times.
fn lines(report: &str) -> Vec<String> {
    let (_, rest) = report.split_once("/v1/images/edits: relayed\n").unwrap();
    let (note, asked) = rest.split_once("\n\n").unwrap();
    assert!(note.starts_with("note: clients cannot see "), "{note}");
    let untimed = |line: &str| {
        let words = line.split(' ').filter(|word| word.parse::<u64>().is_err());
        words.collect::<Vec<_>>().join(" ")
    };
    asked.lines().map(untimed).collect()
}

#[test]
fn each_target_is_asked_in_its_protocol() {
    let simulator = Simulator::honest().unwrap();
    let config = Config::before(&simulator, "", "");
    let (success, report, errors) = check(&config, &["--ask"]);
    assert!(success, "{report}{errors}");
    let mut lines = lines(&report);
    lines.sort();
    assert_eq!(
        lines,
        [
            "chat: 1. 'their-model' at upstream chat: ok, ms",
            "images: 1. 'their-model' at upstream images: ok, ms",
            "messages: 1. 'their-model' at upstream messages: ok, ms",
            "responses: 1. 'their-model' at upstream responses: ok, ms",
        ]
    );
    let requests = simulator.requests();
    assert_eq!(requests.len(), 4);
    for request in requests {
        assert_eq!(request.model(), "their-model");
        let limits = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
        let is_limited = limits.iter().any(|name| request.json()[name] == 16);
        let is_of_images = request.protocol() == Some(Protocol::Images);
        assert!(is_limited != is_of_images, "{}", request.json());
    }
}

/// A failure is shown with its status and the upstream's message, on one line and without the key
/// of the upstream, and makes the command fail.
#[test]
fn failures_are_shown_in_words() {
    let message = format!("No such model.\n\u{1b}[31mYour key is {UPSTREAM_KEY}");
    let refuse = move |_: &simulator::Request| {
        Play::json(
            404,
            &json!({"error": {"message": message, "type": "not_found"}}),
        )
    };
    let simulator = Simulator::start(refuse).unwrap();
    let (success, report, errors) = check(&Config::before(&simulator, "", ""), &["--ask"]);
    assert!(!success);
    assert_eq!(errors, "sluicegate: 4 of 4 targets failed\n");
    for line in lines(&report) {
        let failure = "failed after ms: status Not Found: No such model. [31mYour key is";
        assert!(line.contains(failure), "{line}");
    }
    assert!(
        !report.contains(UPSTREAM_KEY) && !report.contains('\u{1b}'),
        "{report}"
    );
}

/// A success status alone is no answer.
#[test]
fn an_answer_that_breaks_off_has_failed() {
    let cut = |_: &simulator::Request| Play::answer(200, &[], r#"{"id": "x", "#);
    let simulator = Simulator::start(cut).unwrap();
    let (success, report, errors) = check(&Config::before(&simulator, "", ""), &["--ask"]);
    assert!(!success, "{report}");
    assert_eq!(errors, "sluicegate: 4 of 4 targets failed\n");
}

/// A model that spends all tokens of its answer on hidden reasoning has answered.
#[test]
fn an_answer_without_text_that_the_limit_has_cut_is_ok() {
    let think = |request: &simulator::Request| {
        let reply = match request.protocol().unwrap() {
            Protocol::Chat => json!({
                "id": "chatcmpl-1", "object": "chat.completion", "created": 1_789_000_000, "model": "m",
                "choices": [{
                    "index": 0, "finish_reason": "length",
                    "message": {"role": "assistant", "content": "", "refusal": null},
                }],
                "usage": {"prompt_tokens": 9, "completion_tokens": 16, "total_tokens": 25},
            }),
            Protocol::Messages => json!({
                "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
                "stop_reason": "max_tokens", "stop_sequence": null,
                "usage": {"input_tokens": 9, "output_tokens": 16},
            }),
            Protocol::Responses => json!({
                "id": "resp_1", "object": "response", "created_at": 1_789_000_000, "model": "m",
                "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
                "output": [{"id": "rs_1", "type": "reasoning", "summary": []}],
                "usage": {"input_tokens": 9, "output_tokens": 16, "total_tokens": 25},
            }),
            Protocol::Images => return honest::answer(request),
        };
        Play::json(200, &reply)
    };
    let simulator = Simulator::start(think).unwrap();
    let (success, report, errors) = check(&Config::before(&simulator, "", ""), &["--ask"]);
    assert!(success, "{report}{errors}");
}

/// The model behind a pattern is asked when it is named.
#[test]
fn a_pattern_is_asked_for_a_model_that_is_named() {
    let simulator = Simulator::honest().unwrap();
    let config = || {
        Config::new("")
            .keyless("house", Protocol::Chat, &simulator.base_url())
            .model("*", Protocol::Chat, r#"[{ upstream = "house" }]"#)
            .model(
                "coder",
                Protocol::Chat,
                r#"[{ upstream = "house", model = "qwen3" }]"#,
            )
    };
    let (success, report, errors) = check(&config(), &["--ask"]);
    assert!(success, "{report}{errors}");
    assert!(
        report.contains("*: 1. upstream house: not asked"),
        "{report}"
    );
    assert!(
        report.contains("coder: 1. 'qwen3' at upstream house: ok"),
        "{report}"
    );
    let (success, report, errors) = check(&config(), &["--ask", "--model", "gpt-5/mini"]);
    assert!(success, "{report}{errors}");
    assert!(
        report.contains("gpt-5/mini: 1. 'gpt-5/mini' at upstream house: ok"),
        "{report}"
    );
    let models: Vec<_> = simulator
        .requests()
        .iter()
        .map(simulator::Request::model)
        .collect();
    assert_eq!(models, ["qwen3", "gpt-5/mini"]);

    let mut command = GATEWAY.command();
    command.args([
        "check",
        "--ask",
        "--protocol",
        "chat",
        "--upstream",
        &simulator.base_url(),
    ]);
    let (success, _, errors) = output(&mut command);
    assert!(!success);
    assert_eq!(
        errors,
        "sluicegate: no target was asked: name a model with --model\n"
    );
    let (success, report, errors) = output(command.args(["--model", "gpt-5"]));
    assert!(success, "{report}{errors}");
    assert_eq!(simulator.requests().pop().unwrap().model(), "gpt-5");
    let unknown = ["--ask", "--model", "nope"];
    let (success, _, errors) = check(&Config::before(&simulator, "", ""), &unknown);
    assert!(!success);
    assert_eq!(errors, "sluicegate: --model: no model serves 'nope'\n");
}

/// Without a configuration file, the configuration that would be served is checked.
#[test]
fn the_defaults_are_checked_without_a_file() {
    let (success, report, errors) = output(GATEWAY.command().arg("check"));
    assert!(success, "{errors}");
    assert!(
        report.starts_with("ok: 3 keys, 10 models, 0 upstreams\n"),
        "{report}"
    );
    assert!(
        report.contains("\nmsg-sonnet-5\n  /v1/messages: the embedded engine\n"),
        "{report}"
    );
}
