//! The model for coding agents.

use serde_json::{Value, json};
use sluicegate_simulator::Protocol;

use super::Exchange;
use crate::folds::read;
use crate::samples::{sample, with_result};

const TEXT: [Protocol; 3] = [Protocol::Responses, Protocol::Chat, Protocol::Messages];

const PROMPT: &str = "Create the file /w/a.txt with the line: It's here.\nCreate the file /w/b.txt \
                      with the line: And here.";

/// A request with this prompt that offers a tool.
fn request(protocol: Protocol, prompt: &str, tool: &str) -> Value {
    let mut body = sample(protocol, "coding-agent", prompt, true);
    let schema = json!({"type": "object"});
    body["tools"] = json!([match protocol {
        Protocol::Responses => json!({"type": "function", "name": tool, "parameters": schema}),
        Protocol::Chat =>
            json!({"type": "function", "function": {"name": tool, "parameters": schema}}),
        _ => json!({"name": tool, "input_schema": schema}),
    }]);
    body
}

/// The output, which is the same in a stream and in a plain reply: each call with its arguments, or
/// the text.
fn output(protocol: Protocol, mut body: Value) -> Vec<Value> {
    let streamed = Exchange::of(protocol, &body).fold().unwrap();
    body["stream"] = false.into();
    let plain = read(protocol, &Exchange::of(protocol, &body).response().body);
    let [streamed, plain] = [streamed, plain].map(|reply| essence(protocol, &reply));
    assert_eq!(streamed, plain, "{protocol:?}");
    plain
}

fn essence(protocol: Protocol, reply: &Value) -> Vec<Value> {
    let parsed = |text: &Value| -> Value { serde_json::from_str(text.as_str().unwrap()).unwrap() };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    match protocol {
        Protocol::Responses => list(&reply["output"])
            .iter()
            .map(|item| match item["type"].as_str() {
                Some("function_call") => json!([item["name"], parsed(&item["arguments"])]),
                _ => item["content"][0]["text"].clone(),
            })
            .collect(),
        Protocol::Chat => {
            let message = &reply["choices"][0]["message"];
            let call = |call: &Value| {
                json!([
                    call["function"]["name"],
                    parsed(&call["function"]["arguments"])
                ])
            };
            let text = Some(message["content"].clone()).filter(Value::is_string);
            let calls = list(&message["tool_calls"]);
            text.into_iter().chain(calls.iter().map(call)).collect()
        }
        _ => list(&reply["content"])
            .iter()
            .map(|block| match block["type"].as_str() {
                Some("tool_use") => json!([block["name"], block["input"]]),
                _ => block["text"].clone(),
            })
            .collect(),
    }
}

#[test]
fn files_are_written_with_the_tool_of_the_agent() {
    for protocol in TEXT {
        for (tool, path) in [
            ("Write", "file_path"),
            ("write", "filePath"),
            ("write_file", "file_path"),
        ] {
            let expected = [
                json!([tool, {path: "/w/a.txt", "content": "It's here.\n"}]),
                json!([tool, {path: "/w/b.txt", "content": "And here.\n"}]),
            ];
            assert_eq!(output(protocol, request(protocol, PROMPT, tool)), expected);
        }
    }
}

#[test]
fn files_are_written_with_a_shell() {
    let prompt = "Create the file /w/a.txt with the line: It's here.";
    let script = r"printf '%s\n' 'It'\''s here.' > '/w/a.txt' && wc -c '/w/a.txt'";
    for protocol in TEXT {
        for (tool, arguments) in [
            ("exec_command", json!({"cmd": script})),
            ("shell_command", json!({"command": script})),
            ("shell", json!({"command": ["bash", "-c", script]})),
            ("Bash", json!({"command": script})),
        ] {
            let body = request(protocol, prompt, tool);
            assert_eq!(output(protocol, body), [json!([tool, arguments])]);
        }
    }
}

#[test]
fn the_last_text_quotes_the_results() {
    for protocol in TEXT {
        let body = request(protocol, "Create the file a with the line: b", "Write");
        let body = with_result(protocol, body, "Wrote 2 bytes.");
        assert_eq!(output(protocol, body), ["The tool said: Wrote 2 bytes."]);
    }
}

#[test]
fn files_are_written_one_by_one_if_parallel_calls_are_forbidden() {
    for protocol in TEXT {
        let mut body = request(protocol, PROMPT, "Write");
        if protocol == Protocol::Messages {
            body["tool_choice"] = json!({"type": "auto", "disable_parallel_tool_use": true});
        } else {
            body["parallel_tool_calls"] = false.into();
        }
        let [first, second] = ["/w/a.txt", "/w/b.txt"];
        let paths = |body: Value| -> Vec<Value> {
            let calls = output(protocol, body);
            calls
                .iter()
                .map(|call| call[1]["file_path"].clone())
                .collect()
        };
        assert_eq!(paths(body.clone()), [first]);
        assert_eq!(paths(with_result(protocol, body, "Wrote it.")), [second]);
    }
}

#[test]
fn edits_are_in_the_text_if_there_are_no_tools() {
    let listing = "Create the file a.txt with the line: One.\nAnswer with a *file listing*.";
    let block = "Create the file a.txt with the line: One.\nAnswer with a *SEARCH/REPLACE block*.";
    for protocol in TEXT {
        let edit = |prompt| output(protocol, sample(protocol, "coding-agent", prompt, true));
        assert_eq!(edit(listing), ["a.txt\n```\nOne.\n```\n\n"]);
        assert_eq!(
            edit(block),
            ["a.txt\n```\n<<<<<<< SEARCH\n=======\nOne.\n>>>>>>> REPLACE\n```\n\n"]
        );
    }
}

#[test]
fn a_request_without_tools_and_edits_gets_a_text() {
    let prompt = "A title for: \"Create the file a.txt with the line: One.\"";
    for protocol in TEXT {
        assert_eq!(
            output(protocol, sample(protocol, "coding-agent", prompt, true)),
            ["You said: A title for: \"Create the file a.txt with the line: One.\""]
        );
    }
}
