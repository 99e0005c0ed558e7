//! Requests as Anthropic's protocol wants them, byte for byte, and reasoning that is sent back.

use engine::{TextEvent, Usage};
use serde_json::{Value, json};
use sluicegate_translate::inbound::{self, Reply};
use sluicegate_translate::outbound;
use sluicegate_translate::outbound::encode::{self, DroppedField, Quirks, Settings, ThinkingForm};
use vendor::Protocol::{Chat, Messages, Responses};
use vendor::envelope::Envelope;

use crate::clients::{SETTINGS, neutral};
use crate::rules::served;
use crate::vendor_rules::{body, encoded, sent, text, with_quirks};
use crate::{NOW, messages_request, stamp};

fn thinks(form: ThinkingForm, fields: Value) -> (String, Vec<DroppedField>) {
    let settings = with_quirks(Quirks {
        thinking: Some(form),
        ..Quirks::NONE
    });
    let mut request = body(Chat, json!({ "reasoning_effort": "medium" }));
    for (name, value) in fields.as_object().unwrap() {
        request[name] = value.clone();
    }
    text(encoded(Chat, Messages, &request, &settings))
}

/// Newer models decide how much they think:
/// <https://docs.anthropic.com/en/docs/build-with-claude/adaptive-thinking>. Older ones need a
/// budget of at least 1024 tokens, less than `max_tokens`:
/// <https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking>
#[test]
fn an_effort_becomes_the_thinking_that_the_model_takes() {
    let (sent, dropped) = thinks(ThinkingForm::Adaptive, json!({}));
    insta::assert_snapshot!(sent, @r#"{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":[{"type":"text","text":"Hi."}]}],"thinking":{"type":"adaptive"},"output_config":{"effort":"medium"}}"#);
    assert_eq!(dropped, []);
    let (sent, dropped) = thinks(ThinkingForm::Budget, json!({}));
    insta::assert_snapshot!(sent, @r#"{"model":"m","max_tokens":8192,"messages":[{"role":"user","content":[{"type":"text","text":"Hi."}]}],"thinking":{"type":"enabled","budget_tokens":4096}}"#);
    assert_eq!(dropped, []);
    let (sent, dropped) = thinks(ThinkingForm::Budget, json!({ "max_tokens": 3000 }));
    insta::assert_snapshot!(sent, @r#"{"model":"m","max_tokens":3000,"messages":[{"role":"user","content":[{"type":"text","text":"Hi."}]}],"thinking":{"type":"enabled","budget_tokens":1500}}"#);
    assert_eq!(dropped, []);
    let (sent, dropped) = thinks(ThinkingForm::Off, json!({}));
    insta::assert_snapshot!(sent, @r#"{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":[{"type":"text","text":"Hi."}]}]}"#);
    assert_eq!(dropped, [DroppedField::Effort]);
}

/// Models that do not think refuse `thinking` altogether, and need no request not to.
#[test]
fn no_effort_is_asked_for_only_where_a_model_thinks() {
    let none = json!({ "reasoning_effort": "none" });
    let (sent, dropped) = thinks(ThinkingForm::Adaptive, none.clone());
    insta::assert_snapshot!(sent, @r#"{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":[{"type":"text","text":"Hi."}]}],"thinking":{"type":"disabled"}}"#);
    assert_eq!(dropped, []);
    let (sent, dropped) = thinks(ThinkingForm::Off, none);
    insta::assert_snapshot!(sent, @r#"{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":[{"type":"text","text":"Hi."}]}]}"#);
    assert_eq!(dropped, []);
    for (model, is_sent) in [
        ("claude-3-5-haiku-20241022", false),
        ("claude-3-7-sonnet-20250219", true),
    ] {
        let mut request = body(Chat, json!({ "reasoning_effort": "none" }));
        request["model"] = model.into();
        let (sent, _) = served(Chat, (None, Messages), &request);
        assert_eq!(sent.get("thinking").is_some(), is_sent, "{sent}");
    }
}

/// "Thinking isn't compatible with temperature or top_k modifications as well as forced tool use",
/// nor with the beginning of an answer:
/// <https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking#feature-compatibility>
#[test]
fn an_effort_that_cannot_be_asked_for_is_left_out_and_named() {
    let tools = json!([{ "type": "function", "function": { "name": "f" } }]);
    let user = json!({ "role": "user", "content": "Hi." });
    let call =
        json!({ "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } });
    let prefill = json!([user, { "role": "assistant", "content": "Well," }]);
    let results = json!([user, { "role": "assistant", "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "c", "content": "4" }]);
    for fields in [
        json!({ "tools": tools, "tool_choice": "required" }),
        json!({ "temperature": 0.5 }),
        json!({ "top_p": 0.5 }),
        json!({ "messages": prefill }),
        json!({ "tools": tools, "messages": results }),
        json!({ "max_tokens": 1500 }),
    ] {
        let (sent, dropped) = thinks(ThinkingForm::Budget, fields.clone());
        assert!(!sent.contains(r#""thinking""#), "{sent}");
        assert_eq!(dropped, [DroppedField::Effort], "{fields}");
    }
    let (sent, dropped) = thinks(ThinkingForm::Adaptive, json!({ "temperature": 0.5 }));
    insta::assert_snapshot!(sent, @r#"{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":[{"type":"text","text":"Hi."}]}],"temperature":0.5,"output_config":{"effort":"medium"}}"#);
    assert_eq!(dropped, [DroppedField::Effort]);
    // A temperature of 1 is the default.
    let (sent, dropped) = thinks(ThinkingForm::Adaptive, json!({ "temperature": 1 }));
    assert!(sent.contains(r#""thinking":{"type":"adaptive"}"#), "{sent}");
    assert_eq!(dropped, []);
}

/// "The effort parameter doesn't require thinking to be enabled":
/// <https://docs.anthropic.com/en/docs/build-with-claude/effort>
#[test]
fn an_effort_without_thinking_is_carried() {
    let request = body(Messages, json!({ "output_config": { "effort": "low" } }));
    insta::assert_snapshot!(sent(Messages, Chat, &request).0, @r#"{"model":"m","messages":[{"role":"user","content":"Hi."}],"max_tokens":99,"reasoning_effort":"low"}"#);
    insta::assert_snapshot!(sent(Messages, Responses, &request).0, @r#"{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi."}]}],"max_output_tokens":99,"reasoning":{"effort":"low","summary":null},"store":false}"#);
    insta::assert_snapshot!(sent(Messages, Messages, &request).0, @r#"{"model":"m","max_tokens":99,"messages":[{"role":"user","content":[{"type":"text","text":"Hi."}]}],"output_config":{"effort":"low"}}"#);
}

/// "final assistant content cannot end with trailing whitespace":
/// <https://docs.anthropic.com/en/docs/build-with-claude/prompt-engineering/prefill-claudes-response>
#[test]
fn white_space_at_the_end_of_a_prefill_is_trimmed() {
    let messages = json!([
        { "role": "user", "content": "Hi." },
        { "role": "assistant", "content": "The answer is \n" },
    ]);
    let request = body(Chat, json!({ "messages": messages }));
    insta::assert_snapshot!(sent(Chat, Messages, &request).0, @r#"{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":[{"type":"text","text":"Hi."}]},{"role":"assistant","content":[{"type":"text","text":"The answer is"}]}]}"#);
}

/// "Requests which include `tool_use` or `tool_result` blocks must define tools":
/// <https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use>
#[test]
fn calls_without_tools_get_the_tools_that_were_called() {
    let call =
        json!({ "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } });
    let messages = json!([
        { "role": "user", "content": "Hi." },
        { "role": "assistant", "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "c", "content": "4" },
    ]);
    let request = body(Chat, json!({ "messages": messages }));
    insta::assert_snapshot!(sent(Chat, Messages, &request).0, @r#"{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":[{"type":"text","text":"Hi."}]},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"4"}]}],"tools":[{"type":"custom","name":"f","input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"none"}}"#);
}

/// Documents may be given by URL: <https://docs.anthropic.com/en/docs/build-with-claude/pdf-support>,
/// <https://platform.openai.com/docs/guides/pdf-files>
#[test]
fn documents_by_url_are_carried_with_their_titles() {
    let part =
        json!({ "type": "input_file", "filename": "a.pdf", "file_url": "https://a.example/a.pdf" });
    let input = json!([{ "role": "user", "content": [part] }]);
    let request = body(Responses, json!({ "input": input }));
    insta::assert_snapshot!(sent(Responses, Messages, &request).0, @r#"{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"url","url":"https://a.example/a.pdf"},"title":"a.pdf"}]}]}"#);
    let block = json!({ "type": "document", "title": "a.pdf",
        "source": { "type": "url", "url": "https://a.example/a.pdf" } });
    let messages = json!([{ "role": "user", "content": [block] }]);
    let request = body(Messages, json!({ "messages": messages }));
    insta::assert_snapshot!(sent(Messages, Responses, &request).0, @r#"{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_file","filename":"a.pdf","file_url":"https://a.example/a.pdf"}]}],"max_output_tokens":99,"store":false}"#);
}

/// A text document has no counterpart with a title: its text is carried, and the title named.
#[test]
fn titles_of_text_documents_are_named() {
    let block = json!({ "type": "document", "title": "Notes",
        "source": { "type": "text", "media_type": "text/plain", "data": "Hi." } });
    let messages = json!([{ "role": "user", "content": [block] }]);
    let request = body(Messages, json!({ "messages": messages }));
    let inbound = neutral(Messages, request.to_string().as_bytes()).unwrap();
    assert_eq!(inbound.unwrap().dropped, ["messages[].content[].title"]);
}

/// `include: ["reasoning.encrypted_content"]` for answers that are not stored, whose items are sent
/// back as they were: <https://platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items>
#[test]
fn reasoning_of_responses_is_sealed_and_brought_back() {
    let settings = Settings {
        sealed: true,
        ..SETTINGS
    };
    let request = body(
        Messages,
        json!({ "thinking": { "type": "enabled", "budget_tokens": 4096 } }),
    );
    let asked = text(encoded(Messages, Responses, &request, &settings)).0;
    insta::assert_snapshot!(asked, @r#"{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi."}]}],"max_output_tokens":99,"reasoning":{"effort":"medium","summary":null},"include":["reasoning.encrypted_content"],"store":false}"#);

    let answer = json!({ "status": "completed", "output": [
        { "type": "reasoning", "id": "rs_1", "encrypted_content": "gAAAA",
            "summary": [{ "type": "summary_text", "text": "Hm." }] },
        { "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}" },
    ] });
    let thinking = thinking_for_a_client(&answer);
    assert_eq!(thinking["thinking"], "Hm.");

    let mut back = request;
    back["messages"] = json!([
        { "role": "user", "content": "Hi." },
        { "role": "assistant", "content": [thinking, { "type": "tool_use", "id": "call_1", "name": "f", "input": {} }] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "call_1", "content": "4" }] },
    ]);
    let mut request = neutral(Messages, back.to_string().as_bytes())
        .unwrap()
        .unwrap()
        .request;
    envelope().unseal(&mut request);
    let (sent, dropped) = text(encode::request(Responses, &request, &settings).unwrap());
    insta::assert_snapshot!(sent, @r#"{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi."}]},{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"gAAAA"},{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"call_1","output":"4"}],"max_output_tokens":99,"reasoning":{"effort":"medium","summary":null},"include":["reasoning.encrypted_content"],"store":false}"#);
    assert_eq!(dropped, []);
}

fn envelope() -> Envelope {
    Envelope::new(b"secret")
}

/// Returns the block with the reasoning that a Messages client gets.
fn thinking_for_a_client(answer: &Value) -> Value {
    let mut sealer = envelope().sealer();
    let mut reply = Reply::<inbound::Messages>::new(&messages_request(), &stamp());
    for event in outbound::reply(Responses, answer.to_string().as_bytes()).unwrap() {
        reply.event(sealer.event(event), NOW);
    }
    let reply = serde_json::to_value(reply.finish().unwrap()).unwrap();
    reply["content"][0].clone()
}

/// Reasoning that the server does not know by its encrypted content is left out and named.
#[test]
fn reasoning_without_its_encrypted_form_is_left_out() {
    let messages = json!([
        { "role": "user", "content": "Hi." },
        { "role": "assistant", "content": "Hello.", "reasoning_content": "Hm." },
    ]);
    let request = body(Chat, json!({ "messages": messages }));
    let (sent, dropped) = sent(Chat, Responses, &request);
    insta::assert_snapshot!(sent, @r#"{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi."}]},{"type":"message","role":"assistant","content":"Hello."}],"store":false}"#);
    assert_eq!(dropped, [DroppedField::Reasoning]);
}

/// `usage.output_tokens_details.thinking_tokens`: <https://docs.anthropic.com/en/api/messages>
#[test]
fn thinking_tokens_are_counted_for_messages_clients() {
    let usage = Usage {
        input: 7,
        output: 9,
        reasoning: 5,
        ..Usage::default()
    };
    let mut reply = Reply::<inbound::Messages>::new(&messages_request(), &stamp());
    let finished = TextEvent::Finished {
        stop: engine::Stop::End,
        usage: Some(usage),
    };
    for event in [TextEvent::Text("Hi.".to_owned()), finished] {
        reply.event(event, NOW);
    }
    let reply = serde_json::to_value(reply.finish().unwrap()).unwrap();
    let usage = &reply["usage"];
    assert_eq!(
        usage["output_tokens_details"],
        json!({"thinking_tokens": 5})
    );
    assert_eq!(
        (&usage["input_tokens"], &usage["output_tokens"]),
        (&json!(7), &json!(9))
    );
}

/// Ids match `^[a-zA-Z0-9_-]+$`: <https://docs.anthropic.com/en/api/messages>
#[test]
fn ids_of_calls_are_fit_for_messages_clients() {
    let mut reply = Reply::<inbound::Messages>::new(&messages_request(), &stamp());
    let call = TextEvent::Call {
        id: "functions.f:0".to_owned(),
        name: "f".to_owned(),
    };
    let finished = TextEvent::Finished {
        stop: engine::Stop::ToolCalls,
        usage: None,
    };
    for event in [call, finished] {
        reply.event(event, NOW);
    }
    let reply = serde_json::to_value(reply.finish().unwrap()).unwrap();
    assert_eq!(reply["content"][0]["id"], "sgc_ZnVuY3Rpb25zLmY6MA");
}
