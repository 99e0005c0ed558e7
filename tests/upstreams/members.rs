//! Members of a request by which an upstream could choose another model, another number of answers
//! or another limit than the gateway has checked.

use serde_json::{Value, json};
use simulator::{Protocol, Simulator};
use testkit::requests::ask;
use testkit::{Config, changed};

use crate::GATEWAY;

/// Readers such as Go's take a name in any case (<https://pkg.go.dev/encoding/json#Unmarshal>).
#[test]
fn names_in_other_letters_are_refused_on_every_road() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let image = json!({"model": "images", "prompt": "A boat."});
    for (client, body, names) in [
        (
            Protocol::Chat,
            ask(Protocol::Chat, "chat", "Hello.", false),
            &[
                "Model",
                "N",
                "MAX_TOKENS",
                "Max_Completion_Tokens",
                "Stream",
                "Stream_Options",
            ][..],
        ),
        (
            Protocol::Chat,
            ask(Protocol::Chat, "messages", "Hello.", true),
            &["modeL", "max_to\u{212a}ens", "\u{17f}tream"],
        ),
        (
            Protocol::Messages,
            ask(Protocol::Messages, "messages", "Hello.", false),
            &["Model", "Max_tokens", "STREAM"],
        ),
        (
            Protocol::Responses,
            ask(Protocol::Responses, "responses", "Hello.", false),
            &[
                "Model",
                "Max_Output_Tokens",
                "Previous_Response_Id",
                "Store",
            ],
        ),
        (Protocol::Images, image, &["Model", "N", "Size", "Quality"]),
    ] {
        for name in names {
            let body = changed(body.clone(), &json!({ *name: null }));
            let response = gateway.ask(client, &body);
            assert_eq!(response.status, 400, "{name}: {}", response.text());
            let error = &response.json()["error"];
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(&format!("'{name}'")), "{message}");
            if client != Protocol::Messages {
                assert_eq!(error["code"], "unknown_parameter", "{error}");
                assert_eq!(error["param"], *name, "{error}");
            }
        }
    }
    assert!(simulator.requests().is_empty());
}

/// The option by which a stream hides its usage is compared in the same way.
#[test]
fn options_of_a_stream_in_other_letters_are_refused() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let options = json!({"stream_options": {"Include_Usage": false}});
    let body = changed(ask(Protocol::Chat, "chat", "Hello.", true), &options);
    let response = gateway.ask(Protocol::Chat, &body);
    assert_eq!(response.status, 400, "{}", response.text());
    assert_eq!(
        response.json()["error"]["param"],
        "stream_options.Include_Usage"
    );
    assert!(simulator.requests().is_empty());
}

/// Names that no reader confuses with a known one are relayed as before.
#[test]
fn other_unknown_members_are_relayed() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let more = json!({"Temperature_2": 1, "maxTokens": 5, "x-model": "m"});
    let body = changed(ask(Protocol::Chat, "chat", "Hello.", false), &more);
    let response = gateway.ask(Protocol::Chat, &body);
    assert_eq!(response.status, 200, "{}", response.text());
    let asked = simulator.requests().pop().unwrap().json();
    for (name, value) in more.as_object().unwrap() {
        assert_eq!(&asked[name], value);
    }
}

/// Routers take lists of further models, which quotas, prices and lists of models do not follow.
#[test]
fn members_that_choose_further_models_are_dropped_for_routers() {
    let simulator = Simulator::honest().unwrap();
    for (preset, members, dropped) in [
        (
            "openrouter",
            json!({"models": ["dear"], "route": "fallback", "preset": "p"}),
            "models, preset, route",
        ),
        (
            "litellm",
            json!({"fallbacks": ["dear"], "mock_testing_fallbacks": true, "user_config": {}}),
            "fallbacks, mock_testing_fallbacks, user_config",
        ),
    ] {
        for protocol in [Protocol::Chat, Protocol::Responses, Protocol::Messages] {
            let settings = format!("preset = \"{preset}\"");
            let gateway = Config::new("")
                .upstream("u", protocol, &simulator.base_url(), &settings)
                .model("m", protocol, r#"[{ upstream = "u" }]"#)
                .start(GATEWAY);
            let body = changed(ask(protocol, "m", "Hello.", false), &members);
            let response = gateway.ask(protocol, &body);
            assert_eq!(response.status, 200, "{}", response.text());
            assert_eq!(response.header("x-sluicegate-dropped"), Some(dropped));
            let asked = simulator.requests().pop().unwrap().json();
            let names = members.as_object().unwrap().keys();
            let found: Vec<_> = names.filter(|name| asked.get(*name).is_some()).collect();
            assert_eq!(found, [""; 0], "{asked}");
            assert_eq!(asked["model"], Value::from("m"));
        }
    }
}
