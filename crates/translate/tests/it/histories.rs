//! Histories that servers refuse as they are: calls and results that do not match, and messages
//! without content.

use serde_json::{Value, json};
use vendor::Protocol::{self, Chat, Messages, Responses};

use crate::rules::served;
use crate::vendor_rules::body;

/// The request as an upstream without a preset gets it.
fn sent(client: Protocol, upstream: Protocol, request: &Value) -> (Value, Vec<String>) {
    served(client, (None, upstream), request)
}

fn chat(messages: Value) -> Value {
    body(Chat, json!({ "messages": messages }))
}

fn responses(input: Value) -> Value {
    body(Responses, json!({ "input": input }))
}

fn say(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text })
}

fn call(id: &str) -> Value {
    json!({ "type": "function_call", "call_id": id, "name": "f", "arguments": "{}" })
}

fn output(id: &str, text: &str) -> Value {
    json!({ "type": "function_call_output", "call_id": id, "output": text })
}

fn chat_calls(ids: &[&str]) -> Value {
    let call = |id: &&str| json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": "{}" } });
    let calls: Vec<_> = ids.iter().map(call).collect();
    json!({ "role": "assistant", "content": null, "tool_calls": calls })
}

fn chat_result(id: &str, text: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "content": text })
}

/// "`tool_use` ids were found without `tool_result` blocks immediately after":
/// <https://github.com/anthropics/claude-code/issues/1776>,
/// <https://github.com/microsoft/vscode/issues/299295>
#[test]
fn calls_whose_results_are_missing_get_one() {
    let interrupted = "The tool call was interrupted.";
    let of_chat = chat(json!([
        say("user", "Hi."),
        chat_calls(&["a", "b"]),
        chat_result("a", "4"),
        say("user", "Stop.")
    ]));
    let (messages, dropped) = sent(Chat, Messages, &of_chat);
    assert_eq!(
        messages["messages"][2]["content"],
        json!([
            { "type": "tool_result", "tool_use_id": "a", "content": "4" },
            { "type": "tool_result", "tool_use_id": "b", "content": interrupted, "is_error": true },
            { "type": "text", "text": "Stop." },
        ])
    );
    assert_eq!(dropped, ["tool_result"]);
    let (of_openai, dropped) = sent(Chat, Responses, &of_chat);
    assert_eq!(
        of_openai["input"][4],
        output("b", &format!("[error] {interrupted}"))
    );
    assert_eq!(dropped, ["tool_result"]);
    let cut = responses(json!([
        say("user", "Hi."),
        call("a"),
        call("b"),
        output("a", "4")
    ]));
    let (of_chat, dropped) = sent(Responses, Chat, &cut);
    assert_eq!(
        of_chat["messages"][3],
        chat_result("b", &format!("[error] {interrupted}"))
    );
    assert_eq!(dropped, ["tool_result"]);
}

/// The turn of the calls ends with the next message of somebody else.
#[test]
fn interrupted_calls_of_a_turn_in_pieces_get_their_results_behind_it() {
    let input = responses(json!([
        say("user", "Hi."),
        call("a"),
        say("assistant", "And."),
        call("b"),
        say("user", "Stop.")
    ]));
    let (of_chat, _) = sent(Responses, Chat, &input);
    let ids: Vec<_> = of_chat["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["tool_call_id"].as_str().unwrap_or("-"))
        .collect();
    assert_eq!(ids, ["-", "-", "a", "b", "-"]);
}

/// A model that continues no text of its own gets a message behind its calls.
#[test]
fn calls_at_the_end_get_results_where_the_user_has_to_speak_last() {
    let mut request = responses(json!([say("user", "Hi."), call("a")]));
    assert_eq!(sent(Responses, Messages, &request).1, Vec::<String>::new());
    request["model"] = json!("claude-opus-4-6");
    let (messages, dropped) = sent(Responses, Messages, &request);
    assert_eq!(
        messages["messages"][2]["content"][0]["tool_use_id"], "a",
        "{messages}"
    );
    assert_eq!(dropped, ["tool_result"]);
}

/// "each tool_use must have a single result. Found multiple `tool_result` blocks with id":
/// <https://github.com/QwenLM/qwen-code/issues/8163>
#[test]
fn several_results_of_a_call_become_one() {
    for between in [vec![], vec![say("user", "Go.")]] {
        let mut history = vec![say("user", "Hi."), chat_calls(&["a"])];
        history.push(chat_result("a", "one"));
        history.extend(between.clone());
        history.extend([chat_result("a", "two"), say("user", "So?")]);
        let request = chat(history.into());
        let (messages, dropped) = sent(Chat, Messages, &request);
        let content = &messages["messages"][2]["content"];
        assert_eq!(
            content[0],
            json!({ "type": "tool_result", "tool_use_id": "a", "content": "one\n\ntwo" })
        );
        assert_eq!(messages.to_string().matches("tool_use_id").count(), 1);
        assert_eq!(dropped, ["tool_result"]);
        let (of_openai, _) = sent(Chat, Responses, &request);
        assert_eq!(of_openai["input"][2], output("a", "one\n\ntwo"));
        assert_eq!(of_openai.to_string().matches("call_output").count(), 1);
    }
}

/// A text behind a call would stand between the call and its result:
/// <https://github.com/anomalyco/opencode/issues/5750>
#[test]
fn a_text_behind_a_call_goes_before_it() {
    let of_responses = responses(json!([
        say("user", "Hi."),
        call("a"),
        say("assistant", "I looked."),
        output("a", "4 C"),
        say("user", "Go.")
    ]));
    let of_chat = chat(json!([
        say("user", "Hi."),
        chat_calls(&["a"]),
        say("assistant", "I looked."),
        chat_result("a", "4 C"),
        say("user", "Go.")
    ]));
    for (client, request) in [(Responses, of_responses), (Chat, of_chat)] {
        let (messages, dropped) = sent(client, Messages, &request);
        assert_eq!(
            messages["messages"][1]["content"],
            json!([
                { "type": "text", "text": "I looked." },
                { "type": "tool_use", "id": "a", "name": "f", "input": {} },
            ])
        );
        assert_eq!(dropped, ["message_position"]);
    }
}
