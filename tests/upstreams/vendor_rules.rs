//! Rules of vendors, on the way of a request through the gateway.

use serde_json::{Value, json};
use simulator::{Protocol, Simulator};
use testkit::requests::ask;
use testkit::{Config, changed};

use crate::GATEWAY;

/// The request that a reasoning model of OpenAI gets from a client, and the header that names what
/// was left out.
fn asked(settings: &str, client: Protocol) -> (Value, String) {
    let simulator = Simulator::honest().unwrap();
    let gateway = Config::new("")
        .upstream("u", Protocol::Chat, &simulator.base_url(), settings)
        .model("o3", Protocol::Chat, r#"[{ upstream = "u" }]"#)
        .start(GATEWAY);
    let body = changed(
        ask(client, "o3", "Hello.", false),
        &json!({"temperature": 0.5}),
    );
    let response = gateway.ask(client, &body);
    assert_eq!(response.status, 200, "{}", response.text());
    let header = response.header("x-sluicegate-dropped").unwrap_or_default();
    (
        simulator.requests().pop().unwrap().json(),
        header.to_owned(),
    )
}

/// A request that is relayed was written for its own vendor, so that the rules do not concern it
/// unless the operator says so.
#[test]
fn rules_apply_to_relayed_requests_if_configured() {
    for (settings, client, temperature, header) in [
        ("", Protocol::Messages, Value::Null, "temperature"),
        ("", Protocol::Chat, json!(0.5), ""),
        (
            "rules_on_relay = true",
            Protocol::Chat,
            Value::Null,
            "temperature",
        ),
        (
            r#"rules_off = ["openai-reasoning-sampling"]"#,
            Protocol::Messages,
            json!(0.5),
            "",
        ),
    ] {
        let (asked, dropped) = asked(settings, client);
        assert_eq!(
            (&asked["temperature"], dropped.as_str()),
            (&temperature, header),
            "{settings}"
        );
    }
}

/// A rule of the operator has the form of those that the gateway knows.
#[test]
fn an_operator_adds_a_rule_for_members_within_messages() {
    let rules = r#"rules = [{ id = "house-names", members = ["messages[].content"], action = { label = 5 } }]"#;
    let (asked, dropped) = asked(rules, Protocol::Messages);
    // The beginning of the SHA-256 of `Hello.`.
    assert_eq!(asked["messages"][0]["content"], "2d8bd");
    assert_eq!(dropped, "temperature, messages[].content");
}

#[test]
fn presets_and_the_check_show_the_rules() {
    let mut command = GATEWAY.command();
    let output = command.args(["presets", "groq"]).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let rule = "# rule groq-reasoning: messages[].reasoning_content: sent as `reasoning` (https://console.groq.com/docs/reasoning)\n";
    assert!(shown.contains(rule), "{shown}");
    let file = GATEWAY.file(
        "sluicegate.toml",
        "[[upstreams]]\nname = \"one\"\npreset = \"vllm\"\nrules_off = [\"label-64\"]\n\
         [[models]]\nid = \"qwen3\"\nfamily = \"text\"\nprotocols = [\"chat\", \"messages\"]\n\
         targets = [{ upstream = \"one\" }]\n",
    );
    let mut command = GATEWAY.command();
    let output = command
        .args(["check", "--config"])
        .arg(&file.0)
        .output()
        .unwrap();
    let report = String::from_utf8(output.stdout).unwrap();
    let part = "translated to chat\n       by the rules open-model-efforts, open-model-reasoning, open-model-system, open-model-user, vllm-top-p, open-model-refusals\n";
    assert!(report.contains(part), "{report}");
}
