//! Conversations as other servers accept them: their order, ids, documents and records.

use serde_json::{Value, json};
use vendor::Protocol::{self, Chat, Messages, Responses};

use crate::clients::neutral;
use crate::rules::served;
use crate::vendor_rules::body;

/// The request as an upstream without a preset gets it.
fn sent(client: Protocol, upstream: Protocol, request: &Value) -> (Value, Vec<String>) {
    served(client, (None, upstream), request)
}

/// The messages of Chat Completions as lines: the role with the text or the ids of the calls.
fn lines(sent: &Value) -> Vec<String> {
    let line = |message: &Value| {
        let role = message["role"].as_str().unwrap();
        let ids = message["tool_calls"].as_array().into_iter().flatten();
        let ids: Vec<_> = ids.map(|call| call["id"].as_str().unwrap()).collect();
        let text = match &message["content"] {
            Value::String(text) => text.clone(),
            Value::Array(parts) => {
                let parts = parts
                    .iter()
                    .map(|part| part["text"].as_str().unwrap_or("*"));
                parts.collect::<Vec<_>>().join("+")
            }
            _ => String::new(),
        };
        let id = message["tool_call_id"].as_str().unwrap_or_default();
        let line = format!("{role} {id} {text} {}", ids.join(" "));
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    sent["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(line)
        .collect()
}

fn call(id: &str) -> Value {
    json!({ "type": "function_call", "call_id": id, "name": "f", "arguments": "{}" })
}

fn output(id: &str, text: &str) -> Value {
    json!({ "type": "function_call_output", "call_id": id, "output": text })
}

/// "An assistant message with 'tool_calls' must be followed by tool messages responding to each
/// 'tool_call_id'": <https://platform.openai.com/docs/guides/function-calling>
#[test]
fn results_stand_behind_their_calls_whatever_came_between() {
    let say = |role: &str, text: &str| json!({ "role": role, "content": text });
    for (between, expected) in [
        (vec![say("user", "Hurry.")], vec!["user Hurry."]),
        (
            vec![say("developer", "Be terse."), say("user", "Hurry.")],
            vec!["system Be terse.", "user Hurry."],
        ),
        (
            vec![say("user", "Hurry."), say("assistant", "Yes.")],
            vec!["user Hurry.", "assistant Yes."],
        ),
    ] {
        let mut input = vec![say("user", "Hi."), call("a"), call("b"), output("a", "4")];
        input.extend(between);
        input.extend([output("b", "5"), say("user", "So?")]);
        let (chat, dropped) = sent(Responses, Chat, &json!({ "model": "m", "input": input }));
        let mut lines_expected = vec!["user Hi.", "assistant a b", "tool a 4", "tool b 5"];
        let mut rest = expected.clone();
        // Messages of the user that meet are one.
        match rest.last_mut() {
            Some(last) if last.starts_with("user") => *last = "user Hurry.+So?",
            _ => rest.push("user So?"),
        }
        lines_expected.extend(rest);
        assert_eq!(lines(&chat), lines_expected);
        assert_eq!(dropped, ["message_position"]);
        let (messages, _) = sent(
            Responses,
            Messages,
            &json!({ "model": "m", "input": input }),
        );
        let results = &messages["messages"][2]["content"];
        assert_eq!(
            (&results[0]["tool_use_id"], &results[1]["tool_use_id"]),
            (&json!("a"), &json!("b"))
        );
    }
}

/// The id of the call is optional since openai-python 3.5.0, and Chat Completions and Messages need it.
#[test]
fn a_result_without_the_id_of_its_call_is_a_message() {
    let result = json!({ "type": "function_call_output", "output": "4 C" });
    let input = json!([{ "role": "user", "content": "Hi." }, { "role": "assistant", "content": "Wait." }, result]);
    let (chat, dropped) = sent(Responses, Chat, &json!({ "model": "m", "input": input }));
    assert_eq!(lines(&chat), ["user Hi.", "assistant Wait.", "user 4 C"]);
    assert_eq!(dropped, Vec::<String>::new());
}

/// <https://github.com/openai/openai-python/releases/tag/v3.8.0>
#[test]
fn an_item_that_changes_the_settings_is_left_out() {
    let update = json!({ "type": "configuration_update", "instructions": "Be terse." });
    let input =
        json!([{ "role": "user", "content": "Hi." }, update, { "role": "user", "content": "So?" }]);
    for other in [Chat, Messages] {
        let (_, dropped) = sent(Responses, other, &json!({ "model": "m", "input": input }));
        assert_eq!(dropped, ["input[1]"]);
    }
}

#[test]
fn an_orderly_conversation_stays_as_it_is() {
    let input = json!([{ "role": "user", "content": "Hi." }, call("a"), call("b"), output("b", "5"), output("a", "4"),
        { "role": "assistant", "content": "Done." }, call("c"), output("c", "6"), { "role": "user", "content": "So?" }]);
    let (chat, dropped) = sent(Responses, Chat, &json!({ "model": "m", "input": input }));
    let expected = [
        "user Hi.",
        "assistant a b",
        "tool b 5",
        "tool a 4",
        "assistant Done. c",
        "tool c 6",
        "user So?",
    ];
    assert_eq!(
        (lines(&chat), dropped.len()),
        (expected.map(str::to_owned).to_vec(), 0)
    );
}

/// A picture beside results does not split the calls from them.
#[test]
fn pictures_follow_the_results() {
    let picture =
        json!({ "type": "image", "source": { "type": "url", "url": "https://a.example/a.png" } });
    let result = |id: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": "4" });
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "f", "input": {} });
    let request = body(
        Messages,
        json!({ "messages": [
            { "role": "user", "content": "Hi." },
            { "role": "assistant", "content": [call("a"), call("b")] },
            { "role": "user", "content": [picture, result("a"), picture, result("b"), { "type": "text", "text": "Go on." }] },
        ] }),
    );
    let (chat, dropped) = sent(Messages, Chat, &request);
    assert_eq!(
        lines(&chat),
        [
            "user Hi.",
            "assistant a b",
            "tool a 4",
            "tool b 4",
            "user *+*+Go on."
        ]
    );
    assert_eq!(dropped, ["message_position"]);
}

/// "`tool_use` ids must be unique": <https://docs.anthropic.com/en/api/messages>
#[test]
fn ids_that_come_again_are_numbered_and_stay_the_same_later() {
    let mut input = vec![json!({ "role": "user", "content": "Hi." })];
    let mut known = Vec::new();
    for turn in 0..3 {
        input.extend([call("call_0"), output("call_0", &turn.to_string())]);
        let (messages, _) = sent(
            Responses,
            Messages,
            &json!({ "model": "m", "input": input }),
        );
        let blocks = messages["messages"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|message| message["content"].as_array().unwrap());
        let ids = |name: &str| -> Vec<String> {
            let ids = blocks.clone().filter_map(|block| block[name].as_str());
            ids.map(str::to_owned).collect()
        };
        let (calls, results) = (ids("id"), ids("tool_use_id"));
        assert_eq!(calls, results);
        assert_eq!(calls.len(), turn + 1);
        assert!(
            calls.starts_with(&known) && !known.contains(&calls[turn]),
            "{calls:?}"
        );
        known = calls;
    }
}

/// "Missing required parameter: 'messages[0].content[0].file.file_id'" for a file without a name:
/// <https://platform.openai.com/docs/guides/pdf-files>
#[test]
fn documents_without_a_title_get_a_name() {
    let document = |media_type: &str, title: Value| {
        let source = json!({ "type": "base64", "media_type": media_type, "data": "JVBERg==" });
        body(
            Messages,
            json!({ "messages": [{ "role": "user", "content": [{ "type": "document", "source": source, "title": title }] }] }),
        )
    };
    for (media_type, title, name) in [
        ("application/pdf", Value::Null, "document.pdf"),
        ("application/pdf", json!(""), "document.pdf"),
        ("application/pdf", json!("Report"), "Report"),
    ] {
        let request = document(media_type, title);
        let (chat, _) = sent(Messages, Chat, &request);
        assert_eq!(chat["messages"][0]["content"][0]["file"]["filename"], name);
        let (responses, _) = sent(Messages, Responses, &request);
        assert_eq!(responses["input"][0]["content"][0]["filename"], name);
    }
    let csv = json!([{ "role": "user", "content": [{ "type": "input_file", "file_data": "data:text/csv;base64,SGku" }] }]);
    let (chat, _) = sent(Responses, Chat, &json!({ "model": "m", "input": csv }));
    assert_eq!(
        chat["messages"][0]["content"][0]["file"]["filename"],
        "document.csv"
    );
}

/// Claude Code's line changes with each request, so that no prefix of the prompt is in a cache:
/// <https://github.com/ggml-org/llama.cpp/pull/20623>
#[test]
fn the_billing_line_stays_with_servers_of_messages() {
    let line = "x-anthropic-billing-header: cc_version=2.1.330.abc; cc_entrypoint=cli; cch=1a2b3;";
    let agent = "You are a coding agent.";
    let text = |text: &str| json!({ "type": "text", "text": text });
    for system in [
        json!([text(line), text(agent)]),
        json!(format!("{line}\n{agent}")),
        json!([text(&format!("{line}\n")), text(agent)]),
    ] {
        let request = body(Messages, json!({ "system": system }));
        let (chat, dropped) = sent(Messages, Chat, &request);
        assert_eq!(chat["messages"][0]["content"], agent);
        assert_eq!(dropped, ["x-anthropic-billing-header"]);
        let (responses, _) = sent(Messages, Responses, &request);
        assert_eq!(responses["instructions"], agent);
    }
    let request = body(Messages, json!({ "system": [text(line)] }));
    assert_eq!(lines(&sent(Messages, Chat, &request).0), ["user Hi."]);
    let request = body(Messages, json!({ "system": format!("{agent} {line}") }));
    let (chat, dropped) = sent(Messages, Chat, &request);
    assert_eq!(chat["messages"][0]["content"], format!("{agent} {line}"));
    assert_eq!(dropped, Vec::<String>::new());
}

/// A record of the history that only its vendor can read is left out, as it would come with each
/// later request: <https://docs.claude.com/en/docs/agents-and-tools/tool-use/web-search-tool>
#[test]
fn records_of_the_history_do_not_end_a_session() {
    let assistant = |blocks: Value| {
        body(
            Messages,
            json!({ "messages": [
                { "role": "user", "content": "Hi." },
                { "role": "assistant", "content": blocks },
                { "role": "user", "content": "So?" },
            ] }),
        )
    };
    let search = json!([
        { "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": { "query": "a" } },
        { "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [] },
        { "type": "text", "text": "It is cold." },
    ]);
    let code = json!([
        { "type": "bash_code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": {} },
        { "type": "mcp_tool_use", "id": "mcptoolu_1", "name": "a", "server_name": "b", "input": {} },
        { "type": "text", "text": "It is cold." },
    ]);
    for blocks in [search, code] {
        let (chat, _) = sent(Messages, Chat, &assistant(blocks));
        assert_eq!(
            lines(&chat),
            ["user Hi.", "assistant It is cold.", "user So?"]
        );
    }
    let found = json!([{ "type": "tool_reference", "tool_name": "TaskStop" }]);
    let result = json!([{ "type": "search_result", "source": "https://a.example/", "title": "Oslo",
        "content": [{ "type": "text", "text": "4 C" }] }]);
    for (content, text) in [
        (found, "Found tool: TaskStop"),
        (result, "Oslo\nhttps://a.example/\n4 C"),
    ] {
        let request = body(
            Messages,
            json!({ "messages": [
                { "role": "user", "content": "Hi." },
                { "role": "assistant", "content": [{ "type": "tool_use", "id": "a", "name": "f", "input": {} }] },
                { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "a", "content": content }] },
            ] }),
        );
        let (chat, _) = sent(Messages, Chat, &request);
        assert_eq!(chat["messages"][2]["content"], text);
    }
}

/// A block that the last message brings is refused, and one before it is left out and named.
#[test]
fn blocks_that_cannot_be_carried_are_refused_only_when_they_are_new() {
    let upload = json!([{ "type": "container_upload", "file_id": "file_1" }, { "type": "text", "text": "Look." }]);
    let request = |messages: Value| body(Messages, json!({ "messages": messages }));
    let old = request(
        json!([{ "role": "user", "content": upload }, { "role": "assistant", "content": "Yes." },
        { "role": "user", "content": "So?" }]),
    );
    let (chat, dropped) = sent(Messages, Chat, &old);
    assert_eq!(lines(&chat), ["user Look.", "assistant Yes.", "user So?"]);
    assert_eq!(dropped, ["messages[].content[]"]);
    let new = request(json!([{ "role": "user", "content": upload }])).to_string();
    let refusal = neutral(Messages, new.as_bytes()).unwrap().unwrap_err();
    assert_eq!(
        refusal.param.as_deref(),
        Some("messages[0].content[0].type")
    );
}

/// The result of a tool comes with each later request, so it does not refuse the one that brings it:
/// <https://docs.claude.com/en/docs/build-with-claude/files>
#[test]
fn files_in_results_do_not_end_a_session() {
    let file = json!({ "type": "container_upload", "file_id": "file_1" });
    let result = json!({ "type": "tool_result", "tool_use_id": "a",
        "content": [{ "type": "text", "text": "Plot." }, file] });
    let request = body(
        Messages,
        json!({ "messages": [
            { "role": "user", "content": "Hi." },
            { "role": "assistant", "content": [{ "type": "tool_use", "id": "a", "name": "f", "input": {} }] },
            { "role": "user", "content": [result] },
        ] }),
    );
    let (chat, dropped) = sent(Messages, Chat, &request);
    assert_eq!(
        chat["messages"][2]["content"],
        "Plot.[Content of the type 'container_upload', which this model cannot read.]"
    );
    assert_eq!(dropped, ["messages[].content[]"]);
}

/// The beginning of a conversation may be cut off, and a model may write arguments that are no JSON.
#[test]
fn lone_results_and_broken_arguments_do_not_end_a_session() {
    let messages = json!([{ "role": "tool", "tool_call_id": "gone", "content": "4 C" },
        { "role": "user", "content": "So?" }]);
    for upstream in [Responses, Messages] {
        let (sent, dropped) = sent(
            Chat,
            upstream,
            &json!({ "model": "m", "messages": messages }),
        );
        let text = sent.to_string();
        assert!(text.contains("4 C") && !text.contains("gone"), "{text}");
        assert_eq!(dropped, ["call_id"]);
    }
    let broken = json!({ "type": "function_call", "call_id": "a", "name": "f", "arguments": "{\"city\": \"Os" });
    let input = json!([{ "role": "user", "content": "Hi." }, broken, output("a", "error")]);
    let (sent, dropped) = sent(
        Responses,
        Messages,
        &json!({ "model": "m", "input": input }),
    );
    assert_eq!(
        sent["messages"][1]["content"][0]["input"],
        json!({ "arguments": "{\"city\": \"Os" })
    );
    assert_eq!(dropped, ["arguments"]);
}

/// Servers read the arguments of earlier calls as JSON, also over Responses:
/// <https://github.com/meituan-longcat/LongCat-2.0/issues/14>. Some models write none for a function
/// without parameters: <https://github.com/teamchong/pxpipe/pull/131>.
#[test]
fn arguments_of_earlier_calls_are_objects() {
    for (written, owed, names) in [
        ("", "{}", vec![]),
        ("{\"a\": 1}", "{\"a\": 1}", vec![]),
        (
            "{\"a",
            "{\"arguments\":\"{\\\"a\"}",
            vec!["arguments".to_owned()],
        ),
    ] {
        let call = json!({ "id": "c", "type": "function", "function": { "name": "f", "arguments": written } });
        let messages = json!([{ "role": "user", "content": "Hi." }, { "role": "assistant", "tool_calls": [call] },
            { "role": "tool", "tool_call_id": "c", "content": "4 C" }]);
        let request = json!({ "model": "m", "messages": messages });
        let (sent, dropped) = sent(Chat, Responses, &request);
        assert_eq!(
            (&sent["input"][1]["arguments"], dropped),
            (&json!(owed), names)
        );
    }
}

/// "Item of type 'reasoning' was provided without its required following item":
/// <https://platform.openai.com/docs/guides/reasoning#keeping-reasoning-items-in-context>
#[test]
fn reasoning_that_was_cut_off_does_not_go_back() {
    let thinking = json!({ "type": "thinking", "thinking": "Hm.", "signature": "rs_1 YQ==" });
    let request = |blocks: Value| {
        body(
            Messages,
            json!({ "messages": [{ "role": "user", "content": "Hi." }, { "role": "assistant", "content": blocks },
                { "role": "user", "content": "So?" }] }),
        )
    };
    let kinds = |sent: &Value| -> Vec<String> {
        let items = sent["input"].as_array().unwrap().iter();
        items
            .map(|item| item["type"].as_str().unwrap().to_owned())
            .collect()
    };
    let (cut, dropped) = sent(Messages, Responses, &request(json!([thinking])));
    assert_eq!(
        (kinds(&cut), dropped),
        (vec!["message".to_owned(); 2], vec!["reasoning".to_owned()])
    );
    let call = json!({ "type": "tool_use", "id": "a", "name": "f", "input": {} });
    let (whole, dropped) = sent(Messages, Responses, &request(json!([thinking, call])));
    assert_eq!(
        kinds(&whole),
        [
            "message",
            "reasoning",
            "function_call",
            "function_call_output",
            "message"
        ]
    );
    assert_eq!(dropped, ["tool_result"]);
}
