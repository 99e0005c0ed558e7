//! Requests as OpenAI's protocols want them, byte for byte.

use serde_json::{Value, json};
use sluicegate_translate::outbound::encode::{
    self, DroppedField, EncodedRequest, MaxTokensName, Quirks, Settings, ToolIds,
};
use vendor::Protocol::{self, Chat, Messages, Responses};

use crate::clients::{SETTINGS, neutral};
use crate::rules::rules_of;

/// Encodes the request of a client for an upstream.
pub(crate) fn encoded(
    client: Protocol,
    upstream: Protocol,
    body: &Value,
    settings: &Settings,
) -> EncodedRequest {
    let inbound = neutral(client, body.to_string().as_bytes()).unwrap();
    encode::request(upstream, &inbound.unwrap().request, settings).unwrap()
}

/// Returns the body for an upstream without peculiarities, and the fields that were dropped.
pub(crate) fn sent(
    client: Protocol,
    upstream: Protocol,
    body: &Value,
) -> (String, Vec<DroppedField>) {
    text(encoded(client, upstream, body, &SETTINGS))
}

pub(crate) fn text(encoded: EncodedRequest) -> (String, Vec<DroppedField>) {
    (String::from_utf8(encoded.body).unwrap(), encoded.dropped)
}

pub(crate) fn with_quirks(quirks: Quirks) -> Settings {
    Settings { quirks, ..SETTINGS }
}

/// Returns a request with one message and these fields.
pub(crate) fn body(client: Protocol, fields: Value) -> Value {
    let mut body = match client {
        Responses => json!({ "model": "m", "input": [{ "role": "user", "content": "Hi." }] }),
        Chat => json!({ "model": "m", "messages": [{ "role": "user", "content": "Hi." }] }),
        Messages => {
            json!({ "model": "m", "max_tokens": 99, "messages": [{ "role": "user", "content": "Hi." }] })
        }
    };
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

pub(crate) fn tool(client: Protocol, name: &str, parameters: &Value) -> Value {
    match client {
        Responses => json!({ "type": "function", "name": name, "parameters": parameters }),
        Chat => {
            json!({ "type": "function", "function": { "name": name, "parameters": parameters } })
        }
        Messages => json!({ "name": name, "input_schema": parameters }),
    }
}

/// "If you omit strict, […] Responses requests will normalize your schema into strict mode […]
/// while Chat Completions requests remain non-strict by default. […] explicitly set strict: false":
/// <https://platform.openai.com/docs/guides/function-calling#strict-mode>
#[test]
fn strict_to_responses_is_false_where_the_client_set_nothing() {
    let open = json!({ "type": "object", "properties": { "city": {} } });
    for client in [Chat, Messages] {
        let request = body(client, json!({ "tools": [tool(client, "f", &open)] }));
        let mut sent = sent(client, Responses, &request).0;
        sent = sent.replace(r#""max_output_tokens":99,"#, "");
        insta::allow_duplicates! {
            insta::assert_snapshot!(sent, @r#"{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi."}]}],"tools":[{"type":"function","name":"f","description":null,"parameters":{"type":"object","properties":{"city":{}}},"strict":false}],"tool_choice":"auto","store":false}"#);
        }
    }
}

/// The same rule in the other direction: a tool that Responses makes strict is strict for Chat
/// Completions, if its schema already meets the requirements of strict mode. It would be refused
/// there otherwise: <https://platform.openai.com/docs/guides/function-calling#strict-mode>
#[test]
fn strict_from_responses_is_true_where_the_schema_permits_it() {
    let open = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let closed = json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"],
        "additionalProperties": false });
    let tools = json!([
        tool(Responses, "f", &open),
        tool(Responses, "g", &closed),
        { "type": "function", "name": "h", "parameters": closed, "strict": false },
    ]);
    let request = body(Responses, json!({ "tools": tools }));
    insta::assert_snapshot!(sent(Responses, Chat, &request).0, @r#"{"model":"m","messages":[{"role":"user","content":"Hi."}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}},{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false},"strict":true}},{"type":"function","function":{"name":"h","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}}}],"tool_choice":"auto"}"#);
    // Re-encoded for Responses, an absent value stays absent.
    let again: Value = serde_json::from_str(&sent(Responses, Responses, &request).0).unwrap();
    assert_eq!(again["tools"][0]["strict"], Value::Null);
}

/// `max_tokens` is deprecated and "not compatible with o-series models":
/// <https://platform.openai.com/docs/api-reference/chat/create>
#[test]
fn the_cap_to_chat_has_the_name_that_the_model_knows() {
    let request = |model: &str| {
        let fields = json!({ "model": model, "max_output_tokens": 99 });
        body(Responses, fields)
    };
    insta::assert_snapshot!(sent(Responses, Chat, &request("qwen3")).0, @r#"{"model":"qwen3","messages":[{"role":"user","content":"Hi."}],"max_tokens":99}"#);
    let settings = with_quirks(Quirks {
        max_tokens_name: Some(MaxTokensName::MaxCompletionTokens),
        ..Quirks::NONE
    });
    insta::assert_snapshot!(text(encoded(Responses, Chat, &request("qwen3"), &settings)).0, @r#"{"model":"qwen3","messages":[{"role":"user","content":"Hi."}],"max_completion_tokens":99}"#);
}

/// `max_output_tokens` is at least 16: <https://platform.openai.com/docs/api-reference/responses/create>
#[test]
fn a_cap_under_the_least_of_responses_is_raised_and_named() {
    let (sent, dropped) = sent(Chat, Responses, &body(Chat, json!({ "max_tokens": 5 })));
    insta::assert_snapshot!(sent, @r#"{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi."}]}],"max_output_tokens":16,"store":false}"#);
    assert_eq!(dropped, [DroppedField::MaxTokens]);
}

/// `prompt_cache_key`, `safety_identifier`, `service_tier` and `user` are in both protocols:
/// <https://platform.openai.com/docs/api-reference/chat/create>,
/// <https://platform.openai.com/docs/api-reference/responses/create>. OpenAI refuses `metadata` in
/// Chat Completions unless the answer is stored, so that the gateway answers it alone.
#[test]
fn labels_are_carried_between_chat_and_responses() {
    let labels = json!({ "user": "u", "prompt_cache_key": "k", "safety_identifier": "s",
        "service_tier": "flex", "metadata": { "a": "b" } });
    insta::assert_snapshot!(sent(Chat, Responses, &body(Chat, labels.clone())).0, @r#"{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi."}]}],"metadata":{"a":"b"},"store":false,"service_tier":"flex","user":"u","safety_identifier":"s","prompt_cache_key":"k"}"#);
    insta::assert_snapshot!(sent(Responses, Chat, &body(Responses, labels)).0, @r#"{"model":"m","messages":[{"role":"user","content":"Hi."}],"user":"u","safety_identifier":"s","prompt_cache_key":"k","service_tier":"flex"}"#);
}

/// "ResponseInputImageParam detail Field required": <https://github.com/vercel/ai/issues/20300>.
/// Its values: <https://platform.openai.com/docs/api-reference/responses/create>
#[test]
fn images_to_responses_have_a_detail() {
    for (asked, sent) in [
        (json!({ "url": "https://a.example/a.png" }), "auto"),
        (
            json!({ "url": "https://a.example/a.png", "detail": "finest" }),
            "auto",
        ),
        (
            json!({ "url": "https://a.example/a.png", "detail": "low" }),
            "low",
        ),
    ] {
        let content = json!([{ "type": "image_url", "image_url": asked }]);
        let messages = json!([{ "role": "user", "content": content }]);
        let (body, _) = self::sent(
            Chat,
            Responses,
            &body(Chat, json!({ "messages": messages })),
        );
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["input"][0]["content"][0]["detail"], sent);
    }
    let image =
        json!({ "type": "image", "source": { "type": "url", "url": "https://a.example/a.png" } });
    let messages = json!([
        { "role": "user", "content": [image] },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "c", "name": "f", "input": {} }] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "c", "content": [image] }] },
    ]);
    let request = body(Messages, json!({ "messages": messages }));
    let body: Value = serde_json::from_str(&sent(Messages, Responses, &request).0).unwrap();
    assert_eq!(body["input"][0]["content"][0]["detail"], "auto");
    assert_eq!(body["input"][2]["output"][0]["detail"], "auto");
}

/// "Required property 'annotations' is missing": <https://github.com/BerriAI/litellm/issues/35213>.
/// `ResponseOutputMessage` requires `id` and `status` too, `EasyInputMessage` does not:
/// <https://platform.openai.com/docs/api-reference/responses/create>
#[test]
fn earlier_answers_are_texts_or_complete_output_messages() {
    let messages = json!([
        { "role": "user", "content": "a" },
        { "role": "assistant", "content": [{ "type": "text", "text": "b" }, { "type": "text", "text": "c" }] },
        { "role": "user", "content": "d" },
        { "role": "assistant", "content": "e", "refusal": "f" },
        { "role": "user", "content": "g" },
        { "role": "assistant", "refusal": "h" },
        { "role": "assistant", "content": "i" },
        { "role": "user", "content": "j" },
    ]);
    let (body, _) = sent(
        Chat,
        Responses,
        &body(Chat, json!({ "messages": messages })),
    );
    let body: Value = serde_json::from_str(&body).unwrap();
    let text = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [] });
    let refusal = |text: &str| json!({ "type": "refusal", "refusal": text });
    let answers = [&body["input"][1], &body["input"][3], &body["input"][5]];
    assert_eq!(
        answers.map(Clone::clone),
        [
            json!({ "type": "message", "role": "assistant", "content": "bc" }),
            json!({ "type": "message", "id": "msg_3", "status": "completed", "role": "assistant",
                "content": [text("e"), refusal("f")] }),
            json!({ "type": "message", "id": "msg_5", "status": "completed", "role": "assistant",
                "content": [refusal("h"), text("i")] }),
        ]
    );
}

/// The stop sequences that the upstream gets, and those that the gateway applies.
fn stops(client: Protocol, upstream: Protocol, fields: Value) -> (Value, Vec<String>) {
    stops_at(None, client, upstream, fields)
}

/// As [`stops`], for an upstream with a preset.
fn stops_at(
    preset: Option<&str>,
    client: Protocol,
    upstream: Protocol,
    fields: Value,
) -> (Value, Vec<String>) {
    let model = fields["model"].as_str().unwrap_or("m");
    let quirks = rules_of(preset, upstream).encoding(model, Quirks::NONE);
    let settings = with_quirks(quirks);
    let encoded = encoded(client, upstream, &body(client, fields.clone()), &settings);
    assert_eq!(encoded.dropped, []);
    let sent: Value = serde_json::from_slice(&encoded.body).unwrap();
    let name = match upstream {
        Messages => "stop_sequences",
        Chat | Responses => "stop",
    };
    (sent[name].clone(), encoded.stops)
}

/// Responses has no stop sequences
/// (<https://platform.openai.com/docs/api-reference/responses/create>). `stop` of Chat Completions:
/// "Not supported with latest reasoning models o3 and o4-mini", "Up to 4 sequences"
/// (<https://platform.openai.com/docs/api-reference/chat/create>).
#[test]
fn stop_sequences_that_openai_refuses_are_applied() {
    let list = |model: &str, list: &[&str]| json!({ "model": model, "stop_sequences": list });
    let (end, five) = (["END"], ["a", "b", "c", "d", "e"]);
    assert_eq!(
        stops(Messages, Chat, list("gpt-4.1", &end)),
        (json!(["END"]), vec![])
    );
    for (client, upstream, fields, applied) in [
        (Messages, Chat, list("o3", &end), &end[..]),
        (Messages, Chat, list("gpt-4.1", &five), &five),
        (Messages, Responses, list("gpt-4.1", &end), &end),
        (Chat, Responses, json!({ "stop": "END" }), &end),
        (Chat, Responses, json!({ "stop": ["END", ""] }), &end),
    ] {
        let applied = applied.iter().map(ToString::to_string).collect();
        let found = stops(client, upstream, fields.clone());
        assert_eq!(found, (Value::Null, applied), "{fields}");
    }
}

/// "Currently, only one stop word is supported": <https://docs.z.ai/api-reference/llm/chat-completion>
#[test]
fn stop_sequences_beyond_the_first_are_applied_for_glm() {
    let at_zai = |list: &[&str]| {
        let fields = json!({ "model": "glm-5", "stop_sequences": list });
        stops_at(Some("zai"), Messages, Chat, fields)
    };
    assert_eq!(at_zai(&["END"]), (json!(["END"]), vec![]));
    let applied = vec!["END".to_owned(), "###".to_owned()];
    assert_eq!(at_zai(&["END", "###"]), (Value::Null, applied));
}

/// "each stop sequence must contain non-whitespace": <https://github.com/BerriAI/litellm/issues/3286>
#[test]
fn stop_sequences_that_anthropic_refuses_are_applied() {
    assert_eq!(
        stops(Chat, Messages, json!({ "stop": ["\n", "END", "\n\n"] })),
        (json!(["END"]), vec!["\n".to_owned(), "\n\n".to_owned()])
    );
    assert_eq!(
        stops(Chat, Messages, json!({ "stop": "\n" })),
        (Value::Null, vec!["\n".to_owned()])
    );
}

fn calls(client: Protocol, id: &str) -> Value {
    match client {
        Messages => json!({ "model": "m", "max_tokens": 99, "messages": [
            { "role": "user", "content": "Hi." },
            { "role": "assistant", "content": [{ "type": "tool_use", "id": id, "name": "f", "input": {} }] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id, "content": "4" }] },
        ] }),
        _ => json!({ "model": "m", "messages": [
            { "role": "user", "content": "Hi." },
            { "role": "assistant", "tool_calls": [
                { "id": id, "type": "function", "function": { "name": "f", "arguments": "{}" } } ] },
            { "role": "tool", "tool_call_id": id, "content": "4" },
        ] }),
    }
}

/// Kimi gets its own ids back: `functions.{name}:{number}`,
/// <https://github.com/MoonshotAI/Kimi-K2/blob/main/docs/tool_call_guidance.md>
#[test]
fn ids_of_calls_come_back_as_the_server_wrote_them() {
    let request = calls(Messages, "sgc_ZnVuY3Rpb25zLmY6MA");
    insta::assert_snapshot!(sent(Messages, Chat, &request).0, @r#"{"model":"m","messages":[{"role":"user","content":"Hi."},{"role":"assistant","tool_calls":[{"type":"function","id":"functions.f:0","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"functions.f:0","content":"4"}],"max_tokens":99}"#);
}

/// "Tool call id was … but must be a-z, A-Z, 0-9, with a length of 9", Mistral's API:
/// <https://docs.mistral.ai/capabilities/function_calling>
#[test]
fn ids_of_calls_have_nine_letters_for_mistral() {
    let settings = with_quirks(Quirks {
        tool_ids: ToolIds::Alnum9,
        ..Quirks::NONE
    });
    let nine = |id: &str| {
        let sent = text(encoded(Chat, Chat, &calls(Chat, id), &settings)).0;
        let sent: Value = serde_json::from_str(&sent).unwrap();
        let call = sent["messages"][1]["tool_calls"][0]["id"].clone();
        assert_eq!(call, sent["messages"][2]["tool_call_id"]);
        call.as_str().unwrap().to_owned()
    };
    let sent = text(encoded(Chat, Chat, &calls(Chat, "call_1"), &settings)).0;
    insta::assert_snapshot!(sent, @r#"{"model":"m","messages":[{"role":"user","content":"Hi."},{"role":"assistant","tool_calls":[{"type":"function","id":"sPnjkEYJU","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"sPnjkEYJU","content":"4"}]}"#);
    assert_eq!(nine("aB3dE6gH9"), "aB3dE6gH9");
    let other = nine("toolu_01A09q90qw90lq917835lq9");
    assert!(
        other.len() == 9 && other.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        "{other}"
    );
}

/// Ids have up to 64 characters: <https://platform.openai.com/docs/api-reference/responses/create>
#[test]
fn ids_of_calls_have_64_characters_for_openai() {
    let long = "a".repeat(65);
    for upstream in [Chat, Responses] {
        let sent = sent(Chat, upstream, &calls(Chat, &long)).0;
        if upstream == Chat {
            insta::assert_snapshot!(sent, @r#"{"model":"m","messages":[{"role":"user","content":"Hi."},{"role":"assistant","tool_calls":[{"type":"function","id":"call_635361c48bb9eab14198e76ea8ab7f1a","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_635361c48bb9eab14198e76ea8ab7f1a","content":"4"}]}"#);
        }
        assert!(!sent.contains(&long), "{sent}");
        // The first half of the SHA-256 of the id, which both the call and its result have.
        assert_eq!(
            sent.matches("call_635361c48bb9eab14198e76ea8ab7f1a")
                .count(),
            2,
            "{sent}"
        );
    }
}

/// "the reasoning content […] must be passed back" with the calls of a turn:
/// <https://api-docs.deepseek.com/guides/thinking_mode>
#[test]
fn reasoning_is_echoed_to_deepseek_even_if_it_is_unknown() {
    let settings = with_quirks(Quirks {
        echo_reasoning: true,
        ..Quirks::NONE
    });
    let sent = text(encoded(Messages, Chat, &calls(Messages, "c"), &settings)).0;
    insta::assert_snapshot!(sent, @r#"{"model":"m","messages":[{"role":"user","content":"Hi."},{"role":"assistant","reasoning_content":"","tool_calls":[{"type":"function","id":"c","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"4"}],"max_tokens":99}"#);
}

/// Some servers know no `parallel_tool_calls`, such as the reasoning models of OpenAI:
/// <https://platform.openai.com/docs/guides/function-calling#parallel-function-calling>
#[test]
fn parallel_calls_are_not_mentioned_to_servers_that_refuse_it() {
    let settings = with_quirks(Quirks {
        no_parallel_tools: true,
        ..Quirks::NONE
    });
    let request = body(
        Responses,
        json!({ "tools": [tool(Responses, "f", &json!({}))], "parallel_tool_calls": false }),
    );
    let (sent, dropped) = text(encoded(Responses, Chat, &request, &settings));
    insta::assert_snapshot!(sent, @r#"{"model":"m","messages":[{"role":"user","content":"Hi."}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}],"tool_choice":"auto"}"#);
    assert_eq!(dropped, [DroppedField::ParallelToolCalls]);
}

/// The parts of a message are one text, which the gateway does not add to:
/// <https://docs.anthropic.com/en/api/messages>
#[test]
fn texts_are_joined_as_they_are() {
    let request = body(
        Messages,
        json!({
            "system": [{ "type": "text", "text": "Be brief." }, { "type": "text", "text": " Hurry." }],
            "messages": [
                { "role": "user", "content": "Hi." },
                { "role": "assistant", "content": [
                    { "type": "text", "text": "One," }, { "type": "text", "text": " two." },
                    { "type": "tool_use", "id": "c", "name": "f", "input": {} },
                ] },
                { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "c", "content": [
                    { "type": "text", "text": "4" }, { "type": "text", "text": "2" },
                ] }] },
            ],
        }),
    );
    insta::assert_snapshot!(sent(Messages, Chat, &request).0, @r#"{"model":"m","messages":[{"role":"system","content":"Be brief. Hurry."},{"role":"user","content":"Hi."},{"role":"assistant","content":"One, two.","tool_calls":[{"type":"function","id":"c","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"42"}],"max_tokens":99}"#);
}

/// The content of a tool message is text, images are for the user:
/// <https://platform.openai.com/docs/api-reference/chat/create>
#[test]
fn images_in_tool_results_follow_in_a_message_of_the_user() {
    let image =
        json!({ "type": "image", "source": { "type": "url", "url": "https://a.example/a.png" } });
    let mut request = calls(Messages, "c");
    request["messages"][2]["content"][0]["content"] =
        json!([{ "type": "text", "text": "Here." }, image]);
    let (sent, dropped) = sent(Messages, Chat, &request);
    insta::assert_snapshot!(sent, @r#"{"model":"m","messages":[{"role":"user","content":"Hi."},{"role":"assistant","tool_calls":[{"type":"function","id":"c","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"Here."},{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://a.example/a.png"}}]}],"max_tokens":99}"#);
    assert_eq!(dropped, [DroppedField::ToolResultPosition]);
}

/// The names of functions have "a maximum length of 64":
/// <https://platform.openai.com/docs/api-reference/chat/create>
#[test]
fn names_of_more_than_64_letters_are_shortened_reversibly() {
    let name = format!("mcp__{}", "a".repeat(60));
    let short = format!("mcp__{}_9235d79b", "a".repeat(50));
    let request = body(
        Messages,
        json!({
            "tools": [{ "name": name, "input_schema": {} }], "tool_choice": { "type": "tool", "name": name },
        }),
    );
    for upstream in [Chat, Responses] {
        let mut encoded = encoded(Messages, upstream, &request, &SETTINGS);
        let sent = String::from_utf8(encoded.body).unwrap();
        if upstream == Chat {
            insta::assert_snapshot!(sent, @r#"{"model":"m","messages":[{"role":"user","content":"Hi."}],"max_tokens":99,"tools":[{"type":"function","function":{"name":"mcp__aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_9235d79b","parameters":{"type":"object","properties":{}}}}],"tool_choice":{"type":"function","function":{"name":"mcp__aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_9235d79b"}}}"#);
        }
        assert_eq!(sent.matches(&short).count(), 2, "{sent}");
        assert!(!sent.contains(&name), "{sent}");
        let call = |name: &str| engine::TextEvent::Call {
            id: "c".to_owned(),
            name: name.to_owned(),
        };
        assert_eq!(encoded.names.restore(call(&short)), call(&name));
        assert_eq!(encoded.names.restore(call("f")), call("f"));
    }
}

/// "tools: Tool names must be unique.", Claude:
/// <https://github.com/NousResearch/hermes-agent/issues/18748>
#[test]
fn the_first_of_the_tools_with_one_name_is_sent() {
    let schema = |name: &str| json!({ "type": "object", "properties": { name: {} } });
    for (client, upstream) in [
        (Chat, Messages),
        (Messages, Chat),
        (Messages, Responses),
        (Chat, Responses),
    ] {
        let tools = [("f", "a"), ("g", "b"), ("f", "c")];
        let tools = tools.map(|(name, property)| tool(client, name, &schema(property)));
        let (sent, dropped) = sent(client, upstream, &body(client, json!({ "tools": tools })));
        let sent: Value = serde_json::from_str(&sent).unwrap();
        assert_eq!(sent["tools"].as_array().unwrap().len(), 2, "{sent}");
        let text = sent.to_string();
        assert!(
            text.contains(r#"{"a":{}}"#) && !text.contains(r#"{"c":{}}"#),
            "{text}"
        );
        assert_eq!(dropped, [DroppedField::Tools]);
    }
}

/// "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'", Claude:
/// <https://github.com/decocms/studio/issues/6874>. The letters at the ends are the first of the
/// names' SHA-256.
#[test]
fn names_of_arguments_are_replaced_for_claude_and_restored() {
    let call = |arguments: &str| json!({ "id": "c", "type": "function", "function": { "name": "f", "arguments": arguments } });
    let schema = json!({ "type": "object", "required": ["a b", "top"], "properties": {
        "$filter": { "properties": { "$in": {} } }, "top": {}, "a b": {},
    } });
    let mut request = body(
        Chat,
        json!({ "tools": [tool(Chat, "f", &schema), tool(Chat, "g", &json!({}))] }),
    );
    request["messages"] = json!([
        { "role": "user", "content": "Hi." },
        { "role": "assistant", "tool_calls": [call(r#"{"$filter":{"a b":1},"top":"$filter"}"#)] },
        { "role": "tool", "tool_call_id": "c", "content": "Sunny." },
    ]);
    let mut encoded = encoded(Chat, Messages, &request, &SETTINGS);
    let sent: Value = serde_json::from_slice(&encoded.body).unwrap();
    assert_eq!(
        sent["tools"][0]["input_schema"],
        json!({ "type": "object", "required": ["a_b_c8687a08", "top"], "properties": {
            "_filter_0c097d40": { "properties": { "$in": {} } }, "top": {}, "a_b_c8687a08": {},
        } })
    );
    assert_eq!(
        sent["messages"][1]["content"][0]["input"],
        json!({ "_filter_0c097d40": { "a b": 1 }, "top": "$filter" })
    );
    assert_eq!(encoded.dropped, []);
    assert!(!encoded.names.is_empty());
    let mut restored = |name: &str, pieces: &[&str]| {
        let name = name.to_owned();
        let id = "c".to_owned();
        let _ = encoded.names.restore(engine::TextEvent::Call { id, name });
        let pieces = pieces.iter().map(|piece| {
            match encoded
                .names
                .restore(engine::TextEvent::Arguments((*piece).to_owned()))
            {
                engine::TextEvent::Arguments(piece) => piece,
                other => panic!("{other:?}"),
            }
        });
        pieces.collect::<String>()
    };
    assert_eq!(
        restored(
            "f",
            &[
                r#"{"_filter"#,
                r#"_0c097d40": {"a_b_c8687a08":"#,
                r#" 1}, "top":"_filter_0c097d40"}"#
            ]
        ),
        r#"{"$filter": {"a_b_c8687a08": 1}, "top":"_filter_0c097d40"}"#
    );
    // The other tool has its own names.
    assert_eq!(
        restored("g", &[r#"{"_filter_0c097d40": 1}"#]),
        r#"{"_filter_0c097d40": 1}"#
    );
    // Other protocols take any name.
    let sent: Value = serde_json::from_str(&self::sent(Chat, Responses, &request).0).unwrap();
    assert_eq!(sent["tools"][0]["parameters"], schema);
}

/// Names of functions are "a-z, A-Z, 0-9, or contain underscores and dashes":
/// <https://platform.openai.com/docs/api-reference/chat/create>. Names in earlier calls may come
/// from another model.
#[test]
fn names_of_earlier_calls_have_letters_that_are_accepted() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "get weather", "arguments": "{}"}});
    let request = body(
        Chat,
        json!({"messages": [
            {"role": "user", "content": "Hi."},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "4 C"},
        ]}),
    );
    let sent = text(encoded(Chat, Messages, &request, &SETTINGS)).0;
    insta::assert_snapshot!(sent, @r#"{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":[{"type":"text","text":"Hi."}]},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"get_weather_dce3870e","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"4 C"}]}],"tools":[{"type":"custom","name":"get_weather_dce3870e","input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"none"}}"#);
}

/// "A max of 128 functions are supported": <https://platform.openai.com/docs/api-reference/chat/create>
#[test]
fn more_than_128_tools_are_a_clear_error() {
    let tools: Vec<_> = (0..129)
        .map(|i| tool(Messages, &format!("f{i}"), &json!({})))
        .collect();
    let request = body(Messages, json!({ "tools": tools }));
    let request = neutral(Messages, request.to_string().as_bytes()).unwrap();
    let error = encode::request(Chat, &request.unwrap().request, &SETTINGS).unwrap_err();
    insta::assert_snapshot!(error, @r#"This model takes at most 128 tools, but got 129."#);
}
