//! Function calls. The server constrains the arguments to their schema.

use crate::road::{Road, gateway, user};
use serde_json::{Value, json};

fn forced(road: Road) -> Value {
    let parameters =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let (name, description) = ("get_weather", "Look up the weather of a city.");
    let function = json!({"name": name, "description": description, "parameters": parameters});
    match road {
        Road::Responses => json!({
            "tools": [{"type": "function", "name": name, "description": description, "parameters": parameters}],
            "tool_choice": {"type": "function", "name": name}, "max_output_tokens": 128,
        }),
        Road::Messages => json!({
            "tools": [{"name": name, "description": description, "input_schema": parameters}],
            "tool_choice": {"type": "tool", "name": name}, "max_tokens": 128,
        }),
        Road::Relay => json!({
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": name}}, "max_tokens": 128,
        }),
    }
}

#[test]
#[ignore = "cargo xtask interop"]
fn a_forced_function_is_called() {
    let gateway = gateway();
    let turns = json!([user("What is the weather in Oslo?")]);
    for road in [Road::Responses, Road::Messages] {
        let stop = match road {
            Road::Responses => "completed",
            Road::Messages => "tool_use",
            Road::Relay => "tool_calls",
        };
        for answer in road.both(&gateway, &turns, &forced(road)) {
            let [(name, arguments)] = &answer.calls[..] else {
                panic!("{road:?}: one call: {answer:?}")
            };
            assert_eq!(
                (name.as_str(), &answer.stop),
                ("get_weather", &json!(stop)),
                "{road:?}: {answer:?}"
            );
            assert!(arguments["city"].is_string(), "{road:?}: {arguments}");
        }
    }
}

/// In its streams the server repeats the id and the name of a call with every piece of the
/// arguments. Clients of Chat Completions append what they receive, so the relay leaves them out.
#[test]
#[ignore = "cargo xtask interop"]
fn a_relayed_call_is_whole() {
    let gateway = gateway();
    let turns = json!([user("What is the weather in Oslo?")]);
    let plain = Road::Relay
        .post(&gateway, &Road::Relay.request(&turns, &forced(Road::Relay)))
        .json();
    let stream = Road::Relay
        .fold(&Road::Relay.stream(&gateway, &turns, &forced(Road::Relay)))
        .reply();
    for reply in [plain, stream] {
        let call = &reply["choices"][0]["message"]["tool_calls"][0]["function"];
        assert_eq!(
            (&call["name"], &reply["choices"][0]["finish_reason"]),
            (&json!("get_weather"), &json!("tool_calls"))
        );
    }
}
