//! Tools of Codex over Chat Completions and Messages, and their calls.

use engine::{Stop, TextEvent};
use serde_json::{Value, json};
use sluicegate_translate::inbound::{self, Answer, Reply};
use vendor::Protocol::{Chat, Messages, Responses};

use crate::clients::{read_chat, read_responses};
use crate::rules::served;
use crate::{NOW, stamp};

/// The tools that Codex offers: <https://github.com/openai/codex/issues/33263>,
/// <https://github.com/farion1231/cc-switch/pull/3669>
fn codex() -> Value {
    json!({
        "model": "m",
        "input": [{ "role": "user", "content": "Hi." }],
        "tools": [
            { "type": "function", "name": "shell", "parameters": { "type": "object", "properties": {} } },
            { "type": "custom", "name": "apply_patch", "description": "Edits files.",
                "format": { "type": "grammar", "syntax": "lark", "definition": "start: line+" } },
            { "type": "namespace", "name": "mcp__ledger", "description": "The ledger.", "tools": [
                { "type": "function", "name": "sum_up", "description": "Sums up.",
                    "parameters": { "type": "object", "properties": { "a": { "type": "number" } } } },
                { "type": "custom", "name": "note" },
            ] },
            { "type": "tool_search", "execution": "client", "description": "Finds tools.",
                "parameters": { "type": "object", "properties": { "query": { "type": "string" } } } },
            { "type": "web_search" },
        ],
    })
}

#[test]
fn tools_of_the_client_are_offered_as_functions() {
    let (chat, dropped) = served(Responses, (None, Chat), &codex());
    let tools = chat["tools"].as_array().unwrap().iter();
    let names: Vec<_> = tools
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "shell",
            "apply_patch",
            "mcp__ledger__sum_up",
            "mcp__ledger__note",
            "tool_search"
        ]
    );
    assert_eq!(
        chat["tools"][1]["function"]["parameters"],
        json!({
            "type": "object",
            "properties": { "input": { "type": "string",
                "description": "The input of the tool, as plain text. It follows this grammar (lark):\nstart: line+" } },
            "required": ["input"],
            "additionalProperties": false,
        })
    );
    assert_eq!(
        dropped,
        ["tools[].format", "tools[].description", "tools[]"]
    );
    let (messages, _) = served(Responses, (None, Messages), &codex());
    assert_eq!(messages["tools"][2]["name"], "mcp__ledger__sum_up");
    assert_eq!(
        messages["tools"][1]["input_schema"]["required"],
        json!(["input"])
    );
}

/// The events of a call of a function, in pieces.
fn call(id: &str, name: &str, pieces: &[&str]) -> Vec<TextEvent> {
    let call = TextEvent::Call {
        id: id.to_owned(),
        name: name.to_owned(),
    };
    let pieces = pieces
        .iter()
        .map(|piece| TextEvent::Arguments((*piece).to_owned()));
    std::iter::once(call).chain(pieces).collect()
}

/// Returns the plain reply and the stream that a client receives for these events.
fn answered(request: &Value, events: Vec<TextEvent>) -> (Value, Vec<Value>) {
    let request = read_responses(request.to_string().as_bytes()).unwrap();
    let finished = TextEvent::Finished {
        stop: Stop::ToolCalls,
        usage: None,
    };
    let mut reply = Reply::<inbound::Responses>::new(&request, &stamp());
    let mut stream = Answer::<inbound::Responses>::new(&request, &stamp());
    let mut out = Vec::new();
    for event in events.into_iter().chain([finished]) {
        reply.event(event.clone(), NOW);
        stream.event(event, NOW, &mut out);
    }
    let text = String::from_utf8(out).unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = data.map(|data| serde_json::from_str(data).unwrap());
    let reply = serde_json::to_value(reply.finish().unwrap()).unwrap();
    (reply["output"].clone(), events.collect())
}

/// <https://platform.openai.com/docs/api-reference/responses-streaming/response/custom_tool_call_input/delta>
#[test]
fn a_call_of_a_freeform_tool_is_a_text_that_streams() {
    let pieces = ["{\"inp", "ut\": \"*** Begin", " Patch\\n\\\"a", "\\\"\"}"];
    let (output, events) = answered(&codex(), call("call_1", "apply_patch", &pieces));
    let input = "*** Begin Patch\n\"a\"";
    let item = json!({ "type": "custom_tool_call", "id": output[0]["id"], "call_id": "call_1", "name": "apply_patch",
        "input": input });
    assert_eq!(output, json!([item]));
    assert!(output[0]["id"].as_str().unwrap().starts_with("ctc_"));
    let of = |kind: &str| -> Vec<&Value> {
        let kind = format!("response.custom_tool_call_input.{kind}");
        events
            .iter()
            .filter(|event| event["type"] == kind)
            .collect()
    };
    let deltas: Vec<_> = of("delta")
        .iter()
        .map(|event| event["delta"].as_str().unwrap())
        .collect();
    assert_eq!(deltas, ["*** Begin", " Patch\n\"a", "\""]);
    assert_eq!(of("done").len(), 1);
    assert_eq!(
        (&of("done")[0]["input"], &of("done")[0]["item_id"]),
        (&json!(input), &output[0]["id"])
    );
    let numbers: Vec<_> = events
        .iter()
        .map(|event| event["sequence_number"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let completed = events.last().unwrap();
    assert_eq!(
        (&completed["type"], &completed["response"]["output"]),
        (&json!("response.completed"), &output)
    );
}

#[test]
fn calls_come_back_in_the_form_in_which_the_tool_was_offered() {
    let mut events = call("c1", "mcp__ledger__sum_up", &["{\"a\"", ":1}"]);
    events.extend(call("c2", "tool_search", &["{\"query\":", "\"ledger\"}"]));
    events.extend(call("c3", "mcp__ledger__note", &["not json"]));
    events.extend(call("c4", "shell", &[]));
    events.extend(call("c5", "unknown", &["{}"]));
    let (output, streamed) = answered(&codex(), events);
    let without_id = |item: &Value| {
        let mut item = item.clone();
        item.as_object_mut().unwrap().shift_remove("id");
        item
    };
    let items: Vec<_> = output.as_array().unwrap().iter().map(without_id).collect();
    let function = |id: &str, name: &str, arguments: &str| json!({ "type": "function_call", "status": "completed", "call_id": id, "name": name, "arguments": arguments });
    let mut sum_up = function("c1", "sum_up", "{\"a\":1}");
    sum_up["namespace"] = "mcp__ledger".into();
    assert_eq!(
        items,
        [
            sum_up,
            json!({ "type": "tool_search_call", "call_id": "c2", "status": "completed", "execution": "client",
                "arguments": { "query": "ledger" } }),
            json!({ "type": "custom_tool_call", "call_id": "c3", "name": "note", "input": "not json",
                "namespace": "mcp__ledger" }),
            function("c4", "shell", "{}"),
            function("c5", "unknown", "{}"),
        ]
    );
    assert_eq!(streamed.last().unwrap()["response"]["output"], output);
}

/// The items of a session go out as they came in, and those that search or add tools offer them.
#[test]
fn the_history_of_all_tools_is_translated() {
    let mut request = codex();
    request["input"] = json!([
        { "role": "user", "content": "Hi." },
        { "type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin\n" },
        { "type": "custom_tool_call_output", "call_id": "c1", "output": "Done." },
        { "type": "function_call", "call_id": "c2", "namespace": "mcp__ledger", "name": "sum_up", "arguments": "{\"a\":1}" },
        { "type": "function_call_output", "call_id": "c2", "output": "2" },
        { "type": "tool_search_call", "call_id": "c3", "execution": "client", "status": "completed",
            "arguments": { "query": "mail" } },
        { "type": "tool_search_output", "call_id": "c3", "execution": "client", "status": "completed", "tools": [
            { "type": "namespace", "name": "mcp__mail", "description": "Mail.", "tools": [
                { "type": "function", "name": "send", "defer_loading": true, "parameters": { "type": "object", "properties": {} } } ] } ] },
        { "type": "additional_tools", "role": "developer", "tools": [{ "type": "custom", "name": "exec" }] },
        { "type": "local_shell_call", "call_id": "c4", "status": "completed",
            "action": { "type": "exec", "command": ["ls"] } },
        { "type": "local_shell_call_output", "call_id": "c4", "output": "a.txt" },
        { "type": "web_search_call", "id": "ws_1", "status": "completed" },
        { "role": "user", "content": "So?" },
    ]);
    let (chat, _) = served(Responses, (None, Chat), &request);
    let calls: Vec<_> = chat["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| Some(&message["tool_calls"].as_array()?[0]["function"]))
        .map(|call| {
            (
                call["name"].as_str().unwrap(),
                call["arguments"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        calls,
        [
            ("apply_patch", "{\"input\":\"*** Begin\\n\"}"),
            ("mcp__ledger__sum_up", "{\"a\":1}"),
            ("tool_search", "{\"query\":\"mail\"}"),
            (
                "local_shell",
                "{\"action\":{\"type\":\"exec\",\"command\":[\"ls\"]}}"
            ),
        ]
    );
    let results = chat["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool");
    let ids: Vec<_> = results
        .map(|message| message["tool_call_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["c1", "c2", "c3", "c4"]);
    let tools = chat["tools"].as_array().unwrap().iter();
    let names: Vec<_> = tools
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[5..], ["mcp__mail__send", "exec"]);
    // A call of a tool that was found later comes back with its namespace.
    let (output, _) = answered(&request, call("c5", "mcp__mail__send", &["{}"]));
    assert_eq!(
        (&output[0]["name"], &output[0]["namespace"]),
        (&json!("send"), &json!("mcp__mail"))
    );
}

#[test]
fn a_chosen_tool_is_chosen_by_the_name_of_its_function() {
    for (choice, name) in [
        (
            json!({ "type": "custom", "name": "apply_patch" }),
            "apply_patch",
        ),
        (json!({ "type": "tool_search" }), "tool_search"),
        (
            json!({ "type": "custom", "name": "note", "namespace": "mcp__ledger" }),
            "mcp__ledger__note",
        ),
    ] {
        let mut request = codex();
        request["tool_choice"] = choice.clone();
        let (chat, _) = served(Responses, (None, Chat), &request);
        assert_eq!(chat["tool_choice"]["function"]["name"], name);
        request["tool_choice"] =
            json!({ "type": "allowed_tools", "mode": "required", "tools": [choice] });
        let (chat, _) = served(Responses, (None, Chat), &request);
        assert_eq!(
            (
                chat["tools"].as_array().unwrap().len(),
                &chat["tool_choice"]
            ),
            (1, &json!("required"))
        );
        assert_eq!(chat["tools"][0]["function"]["name"], name);
    }
}

/// Two tools never share the name of a function.
#[test]
fn names_that_meet_are_kept_apart() {
    let function = |name: &str| json!({ "type": "function", "name": name, "parameters": { "type": "object", "properties": {} } });
    let request = json!({ "model": "m", "input": [{ "role": "user", "content": "Hi." }], "tools": [
        function("a__b"),
        { "type": "namespace", "name": "a", "tools": [function("b"), function("b")] },
    ] });
    let (chat, _) = served(Responses, (None, Chat), &request);
    let names: Vec<_> = chat["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].clone())
        .collect();
    assert_eq!(names, ["a__b", "a__b_"]);
    let (output, _) = answered(&request, call("c", "a__b_", &["{}"]));
    assert_eq!(
        (&output[0]["name"], &output[0]["namespace"]),
        (&json!("b"), &json!("a"))
    );
    let (output, _) = answered(&request, call("c", "a__b", &["{}"]));
    assert_eq!(
        (&output[0]["name"], output[0].get("namespace")),
        (&json!("a__b"), None)
    );
}

/// Custom tools of Chat clients take a text as well, and their grammar has an object of its own:
/// <https://platform.openai.com/docs/api-reference/chat/create#chat-create-tools>
fn chat_client() -> Value {
    json!({
        "model": "m",
        "messages": [
            { "role": "user", "content": "Hi." },
            { "role": "assistant", "content": null,
                "tool_calls": [{ "id": "a", "type": "custom", "custom": { "name": "run", "input": "ls" } }] },
            { "role": "tool", "tool_call_id": "a", "content": "x" },
            { "role": "user", "content": "Go." },
        ],
        "tools": [
            { "type": "custom", "custom": { "name": "run", "description": "Runs.",
                "format": { "type": "grammar", "grammar": { "syntax": "lark", "definition": "start: line+" } } } },
            { "type": "function", "function": { "name": "f" } },
        ],
        "tool_choice": { "type": "custom", "custom": { "name": "run" } },
    })
}

#[test]
fn custom_tools_of_chat_clients_are_functions() {
    let (messages, dropped) = served(Chat, (None, Messages), &chat_client());
    assert_eq!(messages["tools"][0]["name"], "run");
    assert_eq!(messages["tools"][0]["description"], "Runs.");
    let input = &messages["tools"][0]["input_schema"]["properties"]["input"];
    assert_eq!(
        input["description"],
        "The input of the tool, as plain text. It follows this grammar (lark):\nstart: line+"
    );
    assert_eq!(
        messages["messages"][1]["content"][0],
        json!({ "type": "tool_use", "id": "a", "name": "run", "input": { "input": "ls" } })
    );
    assert_eq!(
        messages["tool_choice"],
        json!({ "type": "tool", "name": "run" })
    );
    assert_eq!(dropped, ["tools[].custom.format"]);
    let (responses, _) = served(Chat, (None, Responses), &chat_client());
    assert_eq!(responses["input"][1]["arguments"], r#"{"input":"ls"}"#);
    assert_eq!(responses["tools"][0]["name"], "run");
}

/// <https://platform.openai.com/docs/api-reference/chat-streaming>
#[test]
fn calls_of_custom_tools_come_back_to_chat_clients_as_such() {
    let request = read_chat(chat_client().to_string().as_bytes()).unwrap();
    let mut events = call("c1", "run", &["{\"input\": \"ls", " -l\\n\"}"]);
    events.extend(call("c2", "f", &["{}"]));
    events.extend(call("c3", "run", &["pwd"]));
    events.push(TextEvent::Finished {
        stop: Stop::ToolCalls,
        usage: None,
    });
    let mut reply = Reply::<inbound::Chat>::new(&request, &stamp());
    let mut stream = Answer::<inbound::Chat>::new(&request, &stamp());
    let mut out = Vec::new();
    for event in events {
        reply.event(event.clone(), NOW);
        stream.event(event, NOW, &mut out);
    }
    let reply = serde_json::to_value(reply.finish().unwrap()).unwrap();
    assert_eq!(
        reply["choices"][0]["message"]["tool_calls"],
        json!([
            { "id": "c1", "type": "custom", "custom": { "name": "run", "input": "ls -l\n" } },
            { "id": "c2", "type": "function", "function": { "name": "f", "arguments": "{}" } },
            { "id": "c3", "type": "custom", "custom": { "name": "run", "input": "pwd" } },
        ])
    );
    let text = String::from_utf8(out).unwrap();
    let deltas = text.lines().filter_map(|line| {
        let chunk: Value = serde_json::from_str(line.strip_prefix("data: ")?).ok()?;
        Some(chunk["choices"][0]["delta"]["tool_calls"][0].clone())
    });
    let deltas: Vec<_> = deltas.filter(|delta| delta["index"] == 0).collect();
    assert_eq!(
        deltas,
        [
            json!({ "index": 0, "id": "c1", "type": "custom", "custom": { "name": "run", "input": "" } }),
            json!({ "index": 0, "custom": { "input": "ls" } }),
            json!({ "index": 0, "custom": { "input": " -l\n" } }),
        ]
    );
}

/// The predecessor of `tool_calls`, whose results refer to the name:
/// <https://platform.openai.com/docs/api-reference/chat/create>
#[test]
fn calls_in_the_old_form_stay_in_the_history() {
    let request = json!({ "model": "m", "messages": [
        { "role": "user", "content": "Hi." },
        { "role": "assistant", "content": null, "function_call": { "name": "f", "arguments": "{\"a\":1}" } },
        { "role": "function", "name": "f", "content": "4" },
        { "role": "user", "content": "So?" },
    ] });
    let (messages, dropped) = served(Chat, (None, Messages), &request);
    assert_eq!(
        messages["messages"][1]["content"][0],
        json!({ "type": "tool_use", "id": "f", "name": "f", "input": { "a": 1 } })
    );
    assert_eq!(messages["messages"][2]["content"][0]["tool_use_id"], "f");
    assert_eq!(dropped, Vec::<String>::new());
}
