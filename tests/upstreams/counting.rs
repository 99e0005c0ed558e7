//! Token counts before a request: by an endpoint of the upstream, of the client's protocol or of
//! another one, or by an estimate. See <https://platform.claude.com/docs/en/api/messages/count_tokens> and
//! <https://platform.openai.com/docs/api-reference/responses/input-tokens>.

use serde_json::{Value, json};
use simulator::{Play, Protocol, Request as Asked, Simulator};
use testkit::{CLIENT_KEY, Config, Gateway, Response};

use crate::GATEWAY;

const PATHS: [(Protocol, &str); 2] = [
    (Protocol::Messages, "/v1/messages/count_tokens"),
    (Protocol::Responses, "/v1/responses/input_tokens"),
];

/// A prompt with instructions and a tool, in the protocol of the client.
fn prompt(client: Protocol) -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    match client {
        Protocol::Messages => json!({
            "model": "m", "system": "Be brief.",
            "messages": [{"role": "user", "content": "Hello."}],
            "tools": [{"name": "weather", "input_schema": schema}]
        }),
        _ => json!({
            "model": "m", "instructions": "Be brief.", "input": [{"role": "user", "content": "Hello."}],
            "tools": [{"type": "function", "name": "weather", "parameters": schema}]
        }),
    }
}

/// A gateway whose model `m` is `theirs` at an upstream with these settings.
fn gateway(upstream: Protocol, base_url: &str, settings: &str) -> Gateway {
    Config::new("")
        .upstream("u", upstream, base_url, settings)
        .model(
            "m",
            Protocol::Chat,
            r#"[{ upstream = "u", model = "theirs" }]"#,
        )
        .start(GATEWAY)
}

fn count(gateway: &Gateway, client: Protocol) -> Response {
    let path = PATHS.iter().find(|(protocol, _)| *protocol == client);
    gateway.post(CLIENT_KEY, path.unwrap().1, &prompt(client))
}

/// The endpoints refuse the members that only an answer needs, such as `max_tokens` and `stream`.
#[test]
fn an_endpoint_of_the_upstream_counts_for_clients_of_both_protocols() {
    for (upstream, setting, endpoint, members) in [
        (
            Protocol::Messages,
            "",
            "/messages/count_tokens",
            ["messages", "model", "system", "tools"],
        ),
        (
            Protocol::Chat,
            "count_tokens = \"messages\"",
            "/messages/count_tokens",
            ["messages", "model", "system", "tools"],
        ),
        (
            Protocol::Responses,
            "count_tokens = \"responses\"",
            "/responses/input_tokens",
            ["input", "instructions", "model", "tools"],
        ),
        (
            Protocol::Chat,
            "count_tokens = \"responses\"",
            "/responses/input_tokens",
            ["input", "instructions", "model", "tools"],
        ),
    ] {
        let simulator = Simulator::honest().unwrap();
        let gateway = gateway(upstream, &simulator.base_url(), setting);
        let counts = PATHS.map(|(client, path)| {
            let counted = count(&gateway, client);
            assert_eq!(counted.status, 200, "{path}: {}", counted.text());
            assert_eq!(counted.header("x-sluicegate-estimated"), None);
            counted.json()
        });
        let tokens = counts[0]["input_tokens"].as_u64().unwrap();
        assert!(tokens > 1, "{tokens}");
        assert_eq!(counts[0], json!({"input_tokens": tokens}));
        let of_responses = json!({"object": "response.input_tokens", "input_tokens": tokens});
        assert_eq!(counts[1], of_responses);
        for asked in simulator.requests() {
            assert!(
                asked.path.ends_with(endpoint),
                "{upstream:?}: {}",
                asked.path
            );
            let body = asked.json();
            assert_eq!(body["model"], "theirs");
            let mut names: Vec<_> = body
                .as_object()
                .unwrap()
                .keys()
                .map(String::as_str)
                .collect();
            names.retain(|name| !OPTIONAL.contains(name));
            names.sort_unstable();
            assert_eq!(names, members, "{upstream:?} {setting}");
        }
        assert_eq!(simulator.requests().len(), 2);
    }
}

/// Documented members that a translation may add.
const OPTIONAL: [&str; 3] = ["parallel_tool_calls", "tool_choice", "reasoning"];

/// 51 bytes without quotes are 15 tokens, and 26 bytes are 8: one for each 3.5 bytes.
#[test]
fn an_estimate_is_named_as_one() {
    let simulator = Simulator::honest().unwrap();
    let gateway = Config::new("")
        .upstream(
            "u",
            Protocol::Chat,
            &simulator.base_url(),
            "count_tokens = \"estimate\"",
        )
        .model("guess", Protocol::Chat, r#"[{ upstream = "u" }]"#)
        .start(GATEWAY);
    let messages = json!({"model": "guess", "messages": [{"role": "user", "content": "Hello."}]});
    let responses = json!({"model": "guess", "input": "Hello."});
    for (path, body, expected) in [
        (PATHS[0].1, messages, json!({"input_tokens": 15})),
        (
            PATHS[1].1,
            responses,
            json!({"object": "response.input_tokens", "input_tokens": 8}),
        ),
    ] {
        let counted = gateway.post(CLIENT_KEY, path, &body);
        assert_eq!(
            counted.header("x-sluicegate-estimated"),
            Some("input_tokens")
        );
        assert_eq!(counted.json(), expected);
    }
    assert!(simulator.requests().is_empty());
}

#[test]
fn an_upstream_that_cannot_count_is_not_asked() {
    for (upstream, setting) in [
        (Protocol::Chat, ""),
        (Protocol::Responses, ""),
        (Protocol::Messages, "count_tokens = \"off\""),
    ] {
        let simulator = Simulator::honest().unwrap();
        let gateway = gateway(upstream, &simulator.base_url(), setting);
        for (client, _) in PATHS {
            let refused = count(&gateway, client);
            assert_eq!(refused.status, 404, "{upstream:?}: {}", refused.text());
            assert_eq!(
                refused.json()["error"]["message"],
                "The tokens of a prompt for the model 'm' cannot be counted ahead."
            );
        }
        assert!(simulator.requests().is_empty());
    }
}

/// The next target counts if one fails, with the words of no other protocol.
#[test]
fn a_failure_of_a_count_goes_to_the_next_target() {
    let fail = |_: &Asked| {
        Play::json(
            500,
            &json!({"error": {"type": "their_type", "message": "x"}}),
        )
    };
    let first = Simulator::start(fail).unwrap();
    for (targets, status) in [
        (r#"[{ upstream = "one" }]"#, 502),
        (r#"[{ upstream = "one" }, { upstream = "two" }]"#, 200),
    ] {
        let gateway = Config::new("")
            .upstream(
                "one",
                Protocol::Chat,
                &first.base_url(),
                "count_tokens = \"messages\"",
            )
            .upstream(
                "two",
                Protocol::Chat,
                &first.base_url(),
                "count_tokens = \"estimate\"",
            )
            .model("m", Protocol::Chat, targets)
            .start(GATEWAY);
        for (client, path) in PATHS {
            let counted = count(&gateway, client);
            assert_eq!(counted.status, status, "{path}: {}", counted.text());
            assert!(!counted.text().contains("their_type") || client == Protocol::Messages);
        }
    }
}

/// A response that the server keeps belongs to one key, and other keys must not learn its length.
#[test]
fn a_count_cannot_refer_to_kept_responses() {
    let simulator = Simulator::honest().unwrap();
    let gateway = Config::new("")
        .upstream("u", Protocol::Responses, &simulator.base_url(), "count_tokens = \"responses\"")
        .section(
            "[[models]]\nid = \"m\"\nfamily = \"text\"\nprotocols = [\"responses\"]\n\
             allow = [\"previous_response_id\", \"conversation\", \"prompt\"]\ntargets = [{ upstream = \"u\" }]",
        )
        .start(GATEWAY);
    for (name, value) in [
        ("previous_response_id", json!("resp_1")),
        ("conversation", json!("conv_1")),
        ("prompt", json!({"id": "pmpt_1"})),
    ] {
        let mut body = prompt(Protocol::Responses);
        body[name] = value;
        let refused = gateway.post(CLIENT_KEY, PATHS[1].1, &body);
        assert_eq!(refused.status, 400, "{name}: {}", refused.text());
        assert_eq!(refused.json()["error"]["param"], name);
    }
    assert!(simulator.requests().is_empty());
}
