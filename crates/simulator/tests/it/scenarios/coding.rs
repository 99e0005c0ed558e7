//! The model for coding agents.

use serde_json::{Value, json};
use sluicegate_simulator::{Protocol, Simulator, scenario};
use testkit::{Connection, Request};

use super::Exchange;
use crate::folds::{decode, read};
use crate::samples::{path, sample, with_result};

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

const EDITS: &str = "Edit the file /w/a.txt from the line: one to the line: two\nEdit the file \
                     /w/a.txt from the line: three to the line: it's four";

/// The conversation of an agent with a model whose thoughts have to come back.
struct Conversation {
    protocol: Protocol,
    server: Simulator,
    body: Value,
}

impl Conversation {
    fn new(protocol: Protocol, model: &str, prompt: &str, tools: Value) -> Self {
        let mut body = sample(protocol, model, prompt, false);
        body["tools"] = tools;
        if protocol == Protocol::Responses {
            body["include"] = json!(["reasoning.encrypted_content"]);
        }
        Self {
            protocol,
            server: Simulator::start(scenario::answer).unwrap(),
            body,
        }
    }

    /// Sends the history. Returns the status and the reply.
    fn send(&self) -> (u16, Value) {
        let mut client = Connection::open(self.server.address());
        client.post(path(self.protocol), &self.body);
        let answer = client.response();
        let reply = serde_json::from_slice(&answer.body).unwrap();
        (answer.status, reply)
    }

    /// Sends the history, and adds the reply and the results of its calls to it. Returns the calls
    /// or the text.
    fn step(&mut self) -> Vec<Value> {
        let (status, reply) = self.send();
        assert_eq!(status, 200, "{reply}");
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let (turns, results) = match self.protocol {
            Protocol::Responses => {
                let items = list(&reply["output"]);
                let results = items.iter().filter(|item| item["call_id"].is_string());
                let kind = |item: &Value| format!("{}_output", item["type"].as_str().unwrap());
                let results: Vec<_> = results
                    .map(|item| json!({"type": kind(item), "call_id": item["call_id"], "output": "Done."}))
                    .collect();
                (items, results)
            }
            Protocol::Chat => {
                let message = reply["choices"][0]["message"].clone();
                let results = list(&message["tool_calls"]);
                let results = results.iter().map(
                    |call| json!({"role": "tool", "tool_call_id": call["id"], "content": "Done."}),
                );
                (vec![message], results.collect())
            }
            _ => {
                let blocks = list(&reply["content"]);
                let results = blocks.iter().filter(|block| block["type"] == "tool_use");
                let results: Vec<_> = results
                    .map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": "Done."}))
                    .collect();
                let turn = json!({"role": "assistant", "content": blocks});
                (
                    vec![turn],
                    vec![json!({"role": "user", "content": results})],
                )
            }
        };
        self.history().extend(turns.into_iter().chain(results));
        essence(self.protocol, &reply)
            .into_iter()
            .filter(|part| !part.is_null())
            .collect()
    }

    fn history(&mut self) -> &mut Vec<Value> {
        let list = match self.protocol {
            Protocol::Responses => "input",
            _ => "messages",
        };
        self.body[list].as_array_mut().unwrap()
    }

    /// Adds a user turn.
    fn ask(&mut self, text: &str) {
        self.history()
            .push(json!({"role": "user", "content": text}));
    }
}

/// Tools of Claude Code.
fn tools(protocol: Protocol) -> Value {
    let tool = |name: &str| {
        let schema = json!({"type": "object", "properties": {"file_path": {}, "old_string": {}}});
        match protocol {
            Protocol::Responses => json!({"type": "function", "name": name, "parameters": schema}),
            Protocol::Chat => {
                json!({"type": "function", "function": {"name": name, "parameters": schema}})
            }
            _ => json!({"name": name, "input_schema": schema}),
        }
    };
    json!([tool("Read"), tool("Edit")])
}

fn edit(old: &str, new: &str) -> Value {
    json!(["Edit", {"file_path": "/w/a.txt", "old_string": old, "new_string": new}])
}

#[test]
fn files_are_read_and_edited_one_by_one_with_thoughts_that_come_back() {
    for protocol in TEXT {
        let mut agent =
            Conversation::new(protocol, "coding-agent-thinking", EDITS, tools(protocol));
        assert_eq!(agent.step(), [json!(["Read", {"file_path": "/w/a.txt"}])]);
        assert_eq!(agent.step(), [edit("one", "two")]);
        assert_eq!(agent.step(), [edit("three", "it's four")]);
        let text = "The tool said: Done.; Done.; Done.\nThoughts that came back: 3.";
        assert_eq!(agent.step(), [text], "{protocol:?}");
    }
}

/// The input of the custom call in a stream, whose events the grammar does not define.
fn streamed_input(body: &Value) -> String {
    let stream = Exchange::of(Protocol::Responses, body).response().body;
    let events = decode(&stream).unwrap();
    let events = events
        .iter()
        .map(|data| -> Value { serde_json::from_str(data).unwrap() });
    let is_delta = |event: &Value| event["type"] == "response.custom_tool_call_input.delta";
    events
        .filter(is_delta)
        .map(|event| event["delta"].as_str().unwrap().to_owned())
        .collect()
}

/// Codex offers its tools in an item, within namespaces, and its scripts and patches are freeform.
#[test]
fn files_are_edited_with_the_custom_tools_of_codex() {
    let exec = json!({"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]});
    let patch = json!({"type": "custom", "name": "apply_patch"});
    let shell = json!({"type": "function", "name": "exec_command", "parameters": {}});
    let text = "*** Begin Patch\n*** Update File: /w/a.txt\n@@\n-one\n+two\n*** End Patch\n";
    let script = r#"text(await tools.apply_patch("*** Begin Patch\n*** Update File: /w/a.txt\n@@\n-one\n+two\n*** End Patch\n"));"#;
    let cases = [
        (json!([patch, shell]), Value::Null, "apply_patch", text),
        (json!([exec]), json!("functions"), "exec", script),
    ];
    for (tools, namespace, name, input) in cases {
        let mut agent = Conversation::new(Protocol::Responses, "coding-agent", EDITS, Value::Null);
        let item = json!({"type": "additional_tools", "role": "developer", "tools": tools});
        agent.history().insert(0, item);
        agent.step();
        let (status, reply) = agent.send();
        let call = &reply["output"][0];
        assert_eq!((status, &call["type"]), (200, &json!("custom_tool_call")));
        assert_eq!(
            (&call["name"], &call["input"]),
            (&json!(name), &json!(input))
        );
        assert_eq!(call["namespace"], namespace);
        agent.body["stream"] = true.into();
        assert_eq!(streamed_input(&agent.body), input);
    }
}

#[test]
fn foreign_seals_and_calls_without_thoughts_are_refused_as_vendors_do() {
    let errors = [
        "The encrypted content c2lnbmF0... could not be verified. Reason: Encrypted content could \
         not be decrypted or parsed.",
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ];
    for (protocol, error) in TEXT.into_iter().zip(errors) {
        let mut agent =
            Conversation::new(protocol, "coding-agent-thinking", EDITS, tools(protocol));
        agent.step();
        match protocol {
            Protocol::Responses => agent.history()[1]["encrypted_content"] = "c2lnbmF0dXJl".into(),
            Protocol::Chat => agent.history()[1]["reasoning_content"] = Value::Null,
            _ => agent.history()[1]["content"][0]["signature"] = "c2lnbmF0dXJl".into(),
        }
        let (status, reply) = agent.send();
        assert_eq!((status, &reply["error"]["message"]), (400, &json!(error)));
    }
}

#[test]
fn a_seal_is_bound_to_its_key() {
    for protocol in [Protocol::Responses, Protocol::Messages] {
        let mut agent =
            Conversation::new(protocol, "coding-agent-thinking", EDITS, tools(protocol));
        agent.step();
        let mut client = Connection::open(agent.server.address());
        let request = Request::post(path(protocol), &agent.body);
        client.send(request.bearer("another").bytes());
        assert_eq!(client.response().status, 400);
    }
}

#[test]
fn a_long_history_is_refused_until_it_is_summarised() {
    let errors = [
        json!({"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model. Please adjust your input and try again."}),
        json!({"code": "context_length_exceeded", "message": "This model's maximum context length is 128000 tokens. However, your messages resulted in 130412 tokens. Please reduce the length of the messages."}),
        json!({"code": null, "message": "prompt is too long: 208310 tokens > 200000 maximum"}),
    ];
    for (protocol, error) in TEXT.into_iter().zip(errors) {
        let mut agent =
            Conversation::new(protocol, "coding-agent-window-1", EDITS, tools(protocol));
        agent.step();
        agent.step();
        let (status, reply) = agent.send();
        let refused = json!({"code": reply["error"]["code"], "message": reply["error"]["message"]});
        assert_eq!((status, refused), (400, error));
        agent.ask("Write a summary.");
        let summary = format!("<summary>\nSteps that are done: 2.\n{EDITS}\n</summary>");
        assert_eq!(agent.step(), std::slice::from_ref(&summary));
        agent.history().clear();
        agent.ask(&summary);
        assert_eq!(agent.step(), [edit("three", "it's four")]);
        let text = "The tool said: Done.\nThoughts that came back: 1.";
        assert_eq!(agent.step(), [text]);
    }
}

#[test]
fn too_long_history_fails_a_responses_stream_in_its_events() {
    let protocol = Protocol::Responses;
    let mut agent = Conversation::new(protocol, "coding-agent-window-0", EDITS, tools(protocol));
    agent.step();
    agent.body["stream"] = true.into();
    let answer = Exchange::of(protocol, &agent.body).response();
    assert_eq!(answer.status, 200);
    let last = decode(&answer.body).unwrap().pop().unwrap();
    let last: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(last["type"], "response.failed");
    assert_eq!(last["response"]["error"]["code"], "context_length_exceeded");
}

#[test]
fn the_server_is_overloaded_once_the_history_has_results() {
    for (protocol, status) in TEXT.into_iter().zip([503, 503, 529]) {
        let mut agent =
            Conversation::new(protocol, "coding-agent-failing-1", EDITS, tools(protocol));
        agent.step();
        assert_eq!(agent.send().0, status);
    }
}
