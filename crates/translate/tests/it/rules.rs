//! Requests as the rules of vendors want them.

use serde_json::{Value, json};
use sluicegate_translate::outbound::encode::{self, Quirks, Settings};
use sluicegate_translate::rules::{BUILT_IN, Rule, Rules};
use vendor::Protocol::{self, Chat, Messages, Responses};

use crate::clients::{SETTINGS, neutral};
use crate::vendor_rules::{body, encoded, text, with_quirks};

/// The rules that the gateway knows for an upstream.
pub(crate) fn rules_of(preset: Option<&str>, protocol: Protocol) -> Rules {
    let mut file: toml::Table = toml::from_str(BUILT_IN).unwrap();
    let rules: Vec<Rule> = file.remove("rule").unwrap().try_into().unwrap();
    let own = rules
        .into_iter()
        .filter(|rule| rule.is_of(preset, protocol));
    Rules::new(own.collect())
}

/// Returns the request of a client as an upstream gets it by its rules, and the names of what was
/// left out or changed.
pub(crate) fn served(
    client: Protocol,
    (preset, upstream): (Option<&str>, Protocol),
    request: &Value,
) -> (Value, Vec<String>) {
    let model = request["model"].as_str().unwrap();
    let rules = rules_of(preset, upstream);
    let inbound = neutral(client, request.to_string().as_bytes())
        .unwrap()
        .unwrap();
    let settings = Settings {
        sampling: !rules.drops(model, "temperature"),
        quirks: rules.encoding(model, Quirks::NONE),
        ..SETTINGS
    };
    let encoded = encode::request(upstream, &inbound.request, &settings).unwrap();
    let (edited, changed) = rules.edit(model, &encoded.body);
    let dropped = encoded.dropped.iter().map(ToString::to_string);
    let fields = inbound.dropped.into_iter();
    let names = dropped.chain(changed).chain(fields).collect();
    let body = serde_json::from_slice(&edited.unwrap_or(encoded.body)).unwrap();
    (body, names)
}

/// `user` and `safety_identifier` have at most 64 characters:
/// <https://platform.openai.com/docs/api-reference/responses/create>. Claude Code sends
/// the value, and the hash is its SHA-256.
#[test]
fn a_label_that_is_too_long_becomes_the_same_hash_each_time() {
    let user = format!(
        r#"{{"device_id": "{}", "account_uuid": "", "session_id": "0f0e0d0c-1111-4222-8333-444455556666"}}"#,
        "5f".repeat(32)
    );
    let fields = json!({ "model": "gpt-5.1", "metadata": { "user_id": user } });
    for upstream in [Chat, Responses] {
        let (sent, changed) = served(Messages, (None, upstream), &body(Messages, fields.clone()));
        assert_eq!(
            sent["user"],
            "4382e827a900a2aa904da7290d54c1d755f57542c21515c2e1b899cffa4703e1"
        );
        assert_eq!(changed, ["user"]);
    }
    // 64 characters fit, whatever their length in bytes.
    let fits = "ä".repeat(64);
    for (field, client, upstream) in [
        ("safety_identifier", Chat, Responses),
        ("prompt_cache_key", Chat, Responses),
        ("user", Responses, Chat),
    ] {
        let label = |label: &str| {
            let request = body(client, json!({ field: label }));
            served(client, (None, upstream), &request).0[field].clone()
        };
        assert_eq!(label(&fits), fits);
        let hash = label(&format!("{fits}a"));
        assert_eq!(hash.as_str().unwrap().len(), 64);
        assert_eq!(hash, label(&format!("{fits}a")));
        assert_ne!(hash, label(&format!("{fits}b")));
    }
    let long = "a".repeat(300);
    let (sent, _) = served(Chat, (None, Messages), &body(Chat, json!({ "user": long })));
    assert_eq!(sent["metadata"]["user_id"].as_str().unwrap().len(), 64);
}

/// "Unsupported parameter: 'temperature' is not supported with this model":
/// <https://learn.microsoft.com/en-us/azure/foundry/openai/how-to/reasoning>
#[test]
fn reasoning_models_of_openai_get_no_sampling_and_no_stop_texts() {
    let fields = json!({ "model": "gpt-5-mini", "temperature": 0.3, "top_p": 0.9, "presence_penalty": 1,
        "frequency_penalty": 1, "stop": ["END"], "max_tokens": 99 });
    let (sent, changed) = served(Chat, (None, Chat), &body(Chat, fields.clone()));
    assert_eq!(
        sent,
        json!({ "model": "gpt-5-mini", "messages": [{ "role": "user", "content": "Hi." }],
            "max_completion_tokens": 99 })
    );
    assert_eq!(
        changed,
        [
            "temperature",
            "top_p",
            "presence_penalty",
            "frequency_penalty"
        ]
    );
    for model in ["o3", "openai/o4-mini", "gpt-5.6-sol", "gpt-6.2-astra"] {
        let request = body(Messages, json!({ "model": model, "temperature": 0.3 }));
        let (sent, changed) = served(Messages, (None, Responses), &request);
        assert_eq!(sent.get("temperature"), None, "{model}");
        assert_eq!(changed, ["temperature"]);
    }
    for model in ["gpt-4.1", "gpt-5-chat-latest", "qwen3", "o10"] {
        let mut fields = fields.clone();
        fields["model"] = model.into();
        let (sent, changed) = served(Chat, (None, Chat), &body(Chat, fields));
        assert_eq!(
            (&sent["temperature"], &sent["max_tokens"]),
            (&json!(0.3), &json!(99)),
            "{model}"
        );
        assert_eq!(changed, Vec::<String>::new());
    }
}

/// "`temperature` and `top_p` cannot both be specified for this model. Please use only one.", and
/// from Opus 4.7 on none of them:
/// <https://platform.claude.com/docs/en/about-claude/models/migration-guide>
#[test]
fn claude_gets_one_sampler_and_the_newest_versions_none() {
    for (model, sampling, changed) in [
        (
            "claude-sonnet-4-5",
            json!([0.7, null, null]),
            &["top_p"][..],
        ),
        (
            "anthropic/claude-opus-4.1",
            json!([0.7, null, null]),
            &["top_p"],
        ),
        ("claude-sonnet-4-20250514", json!([0.7, 0.9, null]), &[]),
        ("claude-3-5-haiku-latest", json!([0.7, 0.9, null]), &[]),
        (
            "claude-opus-4-7",
            json!([null, null, null]),
            &["temperature", "top_p"],
        ),
        (
            "claude-opus-5",
            json!([null, null, null]),
            &["temperature", "top_p"],
        ),
    ] {
        let fields = json!({ "model": model, "temperature": 0.7, "top_p": 0.9 });
        let (sent, dropped) = served(Chat, (None, Messages), &body(Chat, fields));
        assert_eq!(
            json!([sent["temperature"], sent["top_p"], sent["top_k"]]),
            sampling,
            "{model}"
        );
        assert_eq!(dropped, changed, "{model}");
    }
    // One of them alone stays.
    let fields = json!({ "model": "claude-sonnet-4-5", "top_p": 0.9 });
    let (sent, dropped) = served(Chat, (None, Messages), &body(Chat, fields));
    assert_eq!((&sent["top_p"], dropped), (&json!(0.9), vec![]));
}

/// "Input should be 'low', 'medium' or 'high'", SGLang; the efforts of each series of OpenAI:
/// <https://platform.openai.com/docs/guides/reasoning>
#[test]
fn an_effort_becomes_one_that_the_model_knows() {
    let effort = |preset, upstream: Protocol, model: &str, effort: &str| {
        let fields = json!({ "model": model, "thinking": { "type": "adaptive" }, "output_config": { "effort": effort } });
        let (sent, changed) = served(Messages, (preset, upstream), &body(Messages, fields));
        let sent = match upstream {
            Responses => sent["reasoning"]["effort"].clone(),
            _ => sent["reasoning_effort"].clone(),
        };
        (sent, changed.len())
    };
    for (preset, upstream, model, asked, sent) in [
        (Some("sglang"), Chat, "glm-5", "max", "high"),
        (Some("vllm"), Chat, "gpt-oss-120b", "xhigh", "high"),
        (Some("lm-studio"), Chat, "qwen3", "medium", "medium"),
        (Some("groq"), Chat, "qwen/qwen3-32b", "low", "default"),
        (Some("groq"), Chat, "openai/gpt-oss-120b", "max", "high"),
        (
            Some("bedrock"),
            Chat,
            "openai.gpt-oss-120b-1:0",
            "max",
            "high",
        ),
        (Some("bedrock"), Responses, "openai.gpt-5.5", "max", "xhigh"),
        (Some("mistral"), Chat, "mistral-small-latest", "low", "high"),
        (Some("gemini"), Chat, "gemini-3-pro", "max", "high"),
        (Some("xai"), Responses, "grok-4.6", "max", "xhigh"),
        (None, Responses, "gpt-5.2", "max", "xhigh"),
        (None, Responses, "gpt-5.1-codex-max", "max", "xhigh"),
        (None, Responses, "gpt-5-pro-2025-10-06", "high", "high"),
        (None, Responses, "o4-mini", "max", "high"),
        (None, Chat, "gpt-5-mini", "xhigh", "high"),
        (None, Responses, "gpt-5.1", "max", "high"),
        (None, Responses, "gpt-5.6-sol", "max", "max"),
        (None, Chat, "glm-5", "max", "max"),
    ] {
        let is_changed = usize::from(asked != sent);
        assert_eq!(
            effort(preset, upstream, model, asked),
            (json!(sent), is_changed),
            "{model}"
        );
    }
}

/// Efforts that turn reasoning off, or have no place beside tools:
/// <https://github.com/openai/openai-openapi/issues/541>,
/// <https://platform.claude.com/docs/en/models/sonnet-5-5/migration-guide>
#[test]
fn a_model_that_always_thinks_is_not_told_to_stop() {
    for (upstream, model, asked, sent) in [
        (Messages, "claude-opus-5-5", "disabled", "adaptive"),
        (
            Messages,
            "claude-sonnet-5-5-20261015",
            "disabled",
            "between_tools",
        ),
        (Messages, "claude-opus-4-8", "disabled", "disabled"),
    ] {
        let fields = json!({ "model": model, "reasoning_effort": "none" });
        let (body, _) = served(Chat, (None, upstream), &body(Chat, fields));
        assert_eq!(body["thinking"]["type"], sent, "{model} {asked}");
    }
    let tools = json!([{ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } }]);
    for (preset, model, effort) in [
        (Some("openai"), "gpt-5.5", json!("none")),
        (Some("openai"), "gpt-5.1", json!("low")),
        (None, "gpt-5.5", json!("low")),
    ] {
        let fields = json!({ "model": model, "tools": tools, "reasoning_effort": "low" });
        let (sent, _) = served(Chat, (preset, Chat), &body(Chat, fields));
        assert_eq!(sent["reasoning_effort"], effort, "{model}");
    }
}

/// "When reasoning effort is not none, remove temperature, top_p, and top_logprobs":
/// <https://developers.openai.com/api/docs/guides/deployment-checklist>
#[test]
fn sampling_stays_while_a_model_does_not_reason() {
    for (model, effort, temperature) in [
        ("gpt-5.2", json!("none"), json!(0.3)),
        ("gpt-5.2", json!("low"), Value::Null),
        ("gpt-5-mini", json!("low"), Value::Null),
    ] {
        let fields = json!({ "model": model, "temperature": 0.3, "reasoning_effort": effort,
            "logprobs": true, "top_logprobs": 2 });
        let (sent, dropped) = served(Chat, (None, Responses), &body(Chat, fields));
        assert_eq!(sent["temperature"], temperature, "{model}");
        let included = sent["include"].to_string().contains("logprobs");
        assert_eq!(included, temperature != Value::Null, "{model} {dropped:?}");
        assert_eq!(included, !dropped.contains(&"logprobs".to_owned()));
    }
}

/// "Forcing a tool call … returns a 400 error", and so does a prefill:
/// <https://platform.claude.com/docs/en/models/fable-5-1/migration-guide>
#[test]
fn the_newest_claude_models_are_neither_forced_nor_prefilled() {
    let tools = json!([{ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } }]);
    let named = json!({ "type": "function", "function": { "name": "f" } });
    for (model, sent) in [
        ("claude-opus-5-5", json!({ "type": "auto" })),
        ("claude-sonnet-4-6", json!({ "type": "tool", "name": "f" })),
    ] {
        let fields = json!({ "model": model, "tools": tools, "tool_choice": named });
        let (body, _) = served(Chat, (None, Messages), &body(Chat, fields));
        assert_eq!(body["tool_choice"], sent, "{model}");
    }
    let messages =
        json!([{ "role": "user", "content": "Count." }, { "role": "assistant", "content": "1, " }]);
    for (model, last) in [
        ("claude-sonnet-4-6", "user"),
        ("claude-sonnet-4-5", "assistant"),
    ] {
        let request = json!({ "model": model, "messages": messages });
        let (sent, dropped) = served(Chat, (None, Messages), &request);
        assert_eq!(roles(&sent).last(), Some(&last), "{model}");
        assert_eq!(dropped.is_empty(), last == "assistant");
    }
}

/// "This response_format type is unavailable now": <https://api-docs.deepseek.com/guides/json_mode>;
/// `text` or `json_object`: <https://docs.z.ai/api-reference/llm/chat-completion>
#[test]
fn a_schema_becomes_an_instruction_where_the_vendor_takes_none() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
    for (preset, model) in [("deepseek", "deepseek-chat"), ("zai", "glm-5")] {
        let fields = json!({ "model": model, "response_format": { "type": "json_schema",
            "json_schema": { "name": "n", "schema": schema } } });
        let (sent, dropped) = served(Chat, (Some(preset), Chat), &body(Chat, fields));
        assert_eq!(sent["response_format"], json!({ "type": "json_object" }));
        let instruction = sent["messages"][0]["content"].as_str().unwrap();
        assert!(instruction.contains(&schema.to_string()), "{instruction}");
        assert_eq!(dropped, ["json_schema"]);
    }
}

/// "invalid thinking: only type=enabled is allowed for this model":
/// <https://github.com/MoonshotAI/Kimi-K2/issues/141>
#[test]
fn the_thinking_of_kimi_models_that_always_think_is_not_turned_off() {
    for (model, effort, thinking) in [
        ("kimi-k2.7-code", "none", Value::Null),
        ("kimi-k2.7-code", "high", Value::Null),
        ("kimi-k3", "none", Value::Null),
        ("kimi-k3", "high", json!({ "type": "adaptive" })),
        ("kimi-k2.6", "none", json!({ "type": "disabled" })),
    ] {
        let fields = json!({ "model": model, "reasoning_effort": effort });
        let (sent, dropped) = served(Chat, (Some("moonshot"), Messages), &body(Chat, fields));
        assert_eq!(sent["thinking"], thinking, "{model} {effort}");
        assert_eq!(dropped.is_empty(), !thinking.is_null());
    }
}

/// `output_config`: "Only effort is supported": <https://api-docs.deepseek.com/guides/anthropic_api>
#[test]
fn a_schema_becomes_an_instruction_for_messages_of_deepseek() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
    let fields = json!({ "model": "deepseek-v4-pro", "instructions": "Be brief.",
        "reasoning": { "effort": "high" },
        "text": { "format": { "type": "json_schema", "name": "n", "schema": schema } } });
    let (sent, dropped) = served(
        Responses,
        (Some("deepseek"), Messages),
        &body(Responses, fields),
    );
    assert_eq!(sent["output_config"], json!({ "effort": "high" }));
    let instruction = sent["system"][0]["text"].as_str().unwrap();
    assert!(instruction.contains(&schema.to_string()), "{instruction}");
    assert_eq!(sent["system"][1]["text"], "Be brief.");
    assert_eq!(dropped, ["json_schema"]);
}

/// "Thinking mode does not support this tool_choice", unless thinking is off:
/// <https://github.com/deepseek-ai/DeepSeek-V3/issues/1376>
#[test]
fn a_forced_call_turns_the_thinking_of_deepseek_off() {
    let tools = json!([{ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } }]);
    let named = json!({ "type": "function", "function": { "name": "f" } });
    for (choice, thinking, sent_choice) in [
        (json!("required"), "disabled", json!({ "type": "any" })),
        (named, "disabled", json!({ "type": "tool", "name": "f" })),
        (json!("auto"), "adaptive", Value::Null),
    ] {
        let fields = json!({ "model": "deepseek-v4-pro", "reasoning_effort": "high", "tools": tools,
            "tool_choice": choice });
        let (sent, _) = served(Chat, (Some("deepseek"), Messages), &body(Chat, fields));
        assert_eq!(
            (&sent["thinking"]["type"], &sent["tool_choice"]),
            (&json!(thinking), &sent_choice)
        );
    }
}

/// "The `content[].thinking` in the thinking mode must be passed back to the API.":
/// <https://github.com/QwenLM/qwen-code/pull/3788>, where unknown thoughts are an empty block without
/// a signature. The thoughts of turns with calls have to come back:
/// <https://api-docs.deepseek.com/guides/thinking_mode>
#[test]
fn unsigned_thoughts_come_back_to_deepseek_with_the_calls() {
    let quirks = Quirks {
        echo_reasoning: true,
        unsigned_thinking: true,
        thinks: true,
        ..Quirks::NONE
    };
    let thinking = |text: &str| json!({ "type": "thinking", "thinking": text, "signature": "" });
    let sent = |fields: Value| {
        let mut request = called(Chat);
        for (name, value) in fields.as_object().unwrap() {
            request[name] = value.clone();
        }
        let (sent, dropped) = text(encoded(Chat, Messages, &request, &with_quirks(quirks)));
        let sent: Value = serde_json::from_str(&sent).unwrap();
        (sent["messages"][1]["content"][0].clone(), dropped)
    };
    assert_eq!(sent(json!({})), (thinking("Hm."), vec![]));
    let mut messages = called(Chat)["messages"].clone();
    messages[1]["reasoning_content"] = Value::Null;
    let unknown = json!({ "messages": messages });
    assert_eq!(sent(unknown), (thinking(""), vec![]));
    let disabled = json!({ "messages": messages, "reasoning_effort": "none" });
    assert_eq!(sent(disabled).0["type"], "tool_use");
}

/// <https://docs.mistral.ai/api/endpoint/chat>, <https://ai.google.dev/gemini-api/docs/openai>,
/// <https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/670>,
/// <https://docs.x.ai/developers/model-capabilities/text/reasoning>
#[test]
fn members_become_what_each_vendor_takes() {
    let choice = json!({ "type": "function", "function": { "name": "f" } });
    let tools = json!([{ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } }]);
    for (preset, model, member, asked, sent) in [
        ("mistral", "m", "seed", json!(7), ("random_seed", json!(7))),
        (
            "gemini",
            "gemini-3-pro",
            "seed",
            json!(7),
            ("seed", Value::Null),
        ),
        (
            "gemini",
            "gemini-3-pro",
            "presence_penalty",
            json!(1),
            ("presence_penalty", Value::Null),
        ),
        (
            "xai",
            "grok-4.5",
            "presence_penalty",
            json!(1),
            ("presence_penalty", Value::Null),
        ),
        (
            "xai",
            "grok-2",
            "presence_penalty",
            json!(1),
            ("presence_penalty", json!(1.0)),
        ),
        (
            "groq",
            "m",
            "service_tier",
            json!("priority"),
            ("service_tier", Value::Null),
        ),
        (
            "lm-studio",
            "m",
            "tool_choice",
            choice.clone(),
            ("tool_choice", json!("required")),
        ),
        (
            "deepseek",
            "deepseek-reasoner",
            "tool_choice",
            choice.clone(),
            ("tool_choice", json!("auto")),
        ),
        (
            "deepseek",
            "deepseek-chat",
            "tool_choice",
            choice.clone(),
            ("tool_choice", choice.clone()),
        ),
        (
            "lm-studio",
            "m",
            "response_format",
            json!({ "type": "json_object" }),
            ("response_format", json!({ "type": "text" })),
        ),
        (
            "cerebras",
            "m",
            "tool_choice",
            choice.clone(),
            ("tool_choice", json!("required")),
        ),
        (
            "cerebras",
            "m",
            "parallel_tool_calls",
            json!(false),
            ("parallel_tool_calls", Value::Null),
        ),
        (
            "moonshot",
            "kimi-k2.6",
            "temperature",
            json!(0.3),
            ("temperature", Value::Null),
        ),
        (
            "moonshot",
            "moonshot-v1-8k",
            "temperature",
            json!(0.3),
            ("temperature", json!(0.3)),
        ),
        (
            "moonshot",
            "kimi-k3",
            "reasoning_effort",
            json!("medium"),
            ("reasoning_effort", json!("high")),
        ),
        (
            "moonshot",
            "kimi-k2.6",
            "reasoning_effort",
            json!("none"),
            ("thinking", json!({ "type": "disabled" })),
        ),
        (
            "zai",
            "glm-5",
            "tool_choice",
            json!("required"),
            ("tool_choice", json!("auto")),
        ),
        (
            "zai",
            "glm-5",
            "temperature",
            json!(1.5),
            ("temperature", json!(1)),
        ),
    ] {
        let fields = json!({ "model": model, "tools": tools, member: asked });
        let (body, _) = served(Chat, (Some(preset), Chat), &body(Chat, fields));
        let (name, value) = sent;
        assert_eq!(
            body.get(name).cloned().unwrap_or_default(),
            value,
            "{preset} {member}"
        );
    }
    for preset in ["vllm", "ollama"] {
        let (sent, dropped) = served(Chat, (Some(preset), Chat), &called(Chat));
        assert_eq!(sent["messages"][1]["reasoning"], "Hm.");
        assert_eq!(dropped, Vec::<String>::new());
    }
}

/// "All tools must have the same value for the 'strict' parameter.":
/// <https://github.com/Kilo-Org/kilocode/pull/5193>
#[test]
fn tools_of_cerebras_do_not_differ_in_strictness() {
    let closed = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let tool = |name: &str, strict: bool| json!({ "type": "function", "name": name, "parameters": closed, "strict": strict });
    let fields = json!({ "model": "gpt-oss-120b", "tools": [tool("f", true), tool("g", false)] });
    for (preset, first) in [(Some("cerebras"), None), (None, Some(&json!(true)))] {
        let request = body(Responses, fields.clone());
        let (sent, dropped) = served(Responses, (preset, Chat), &request);
        let strict = |at: usize| sent["tools"][at]["function"].get("strict");
        assert_eq!((strict(0), strict(1)), (first, None));
        let is_named = dropped.contains(&"tools[].function.strict".to_owned());
        assert_eq!(is_named, preset.is_some());
    }
}

/// "Unrecognized request argument supplied: reasoning_effort", and what depends on the reasoning:
/// <https://developers.openai.com/api/docs/guides/reasoning>
#[test]
fn a_model_without_reasoning_gets_no_effort() {
    let fields = json!({ "model": "gpt-4.1", "thinking": { "type": "adaptive" },
        "output_config": { "effort": "high" }, "max_tokens": 40000 });
    for upstream in [Chat, Responses] {
        let (sent, dropped) = served(Messages, (None, upstream), &body(Messages, fields.clone()));
        for member in ["reasoning", "reasoning_effort", "include"] {
            assert_eq!(sent.get(member), None, "{upstream}");
        }
        assert_eq!(dropped.len(), 2, "{dropped:?}");
        let limit = sent.get("max_tokens").or(sent.get("max_output_tokens"));
        assert_eq!(limit, Some(&json!(32768)));
    }
    let (sent, _) = served(
        Chat,
        (Some("groq"), Chat),
        &body(
            Chat,
            json!({ "model": "llama-3.3-70b-versatile", "reasoning_effort": "low" }),
        ),
    );
    assert_eq!(sent.get("reasoning_effort"), None);
}

/// <https://openrouter.ai/docs/use-cases/reasoning-tokens>, <https://docs.litellm.ai/docs/reasoning_content>
#[test]
fn chat_clients_ask_for_reasoning_in_the_members_of_several_vendors() {
    for (member, value, effort) in [
        ("reasoning_effort", json!("low"), "low"),
        ("reasoning", json!({ "effort": "high" }), "high"),
        ("reasoning", json!({ "max_tokens": 2000 }), "low"),
        ("reasoning", json!({ "enabled": false }), "none"),
        (
            "thinking",
            json!({ "type": "enabled", "budget_tokens": 20000 }),
            "high",
        ),
        ("thinking", json!({ "type": "disabled" }), "none"),
    ] {
        let request = body(
            Chat,
            json!({ "model": "gpt-5.6-sol", member: value, "top_k": 20 }),
        );
        let (sent, _) = served(Chat, (None, Responses), &request);
        assert_eq!(sent["reasoning"]["effort"], effort, "{member} {value}");
    }
    let request = body(Chat, json!({ "top_k": 20 }));
    let (sent, dropped) = served(Chat, (None, Messages), &request);
    assert_eq!((&sent["top_k"], dropped), (&json!(20), vec![]));
}

/// <https://ai.google.dev/gemini-api/docs/function-calling>
#[test]
fn gemini_gets_names_that_begin_with_a_letter() {
    let tool = |name: &str| json!({ "type": "function", "function": { "name": name, "parameters": { "type": "object" } } });
    let request = body(Chat, json!({ "tools": [tool("2fa_check"), tool("_x")] }));
    let (sent, _) = served(Chat, (Some("gemini"), Chat), &request);
    assert_eq!(sent["tools"][0]["function"]["name"], "_2fa_check_1c260b76");
    assert_eq!(sent["tools"][1]["function"]["name"], "_x");
}

/// "'priority' is not supported for 'service_tier' on this model":
/// <https://github.com/openai/codex/pull/25318>. gpt-oss has tiers:
/// <https://docs.aws.amazon.com/bedrock/latest/userguide/service-tiers-inference.html>
#[test]
fn gpt_models_of_bedrock_get_no_service_tier() {
    for (preset, model, sent) in [
        ("bedrock", "openai.gpt-5.4", Value::Null),
        ("bedrock", "openai.gpt-oss-120b", json!("priority")),
        ("openai", "gpt-5.4", json!("priority")),
    ] {
        for (client, upstream) in [(Chat, Responses), (Responses, Chat)] {
            let request = body(
                client,
                json!({ "model": model, "service_tier": "priority" }),
            );
            let (body, changed) = served(client, (Some(preset), upstream), &request);
            assert_eq!(body["service_tier"], sent, "{model}");
            assert_eq!(changed.is_empty(), !sent.is_null());
        }
    }
}

/// Reasoning models refuse `max_tokens` (<https://platform.openai.com/docs/api-reference/chat/create>),
/// also under the names of Bedrock: <https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-openai.html>
#[test]
fn names_of_bedrock_are_names_of_openai() {
    for model in ["openai.gpt-5.5", "us.openai.gpt-5.5", "openai/gpt-5.5"] {
        let (sent, _) = served(
            Messages,
            (Some("bedrock"), Chat),
            &body(Messages, json!({ "model": model, "temperature": 0.5 })),
        );
        assert_eq!(sent["max_completion_tokens"], 99, "{model}");
        let missing = ["max_tokens", "temperature"].map(|name| sent.get(name));
        assert_eq!(missing, [None, None], "{model}");
    }
}

/// "Function call is missing a thought_signature in functionCall parts": calls of other models have
/// none, for which Google documents a value, and of parallel calls only the first one has any:
/// <https://ai.google.dev/gemini-api/docs/thought-signatures#faqs>. Agents meet it when they change
/// the model: <https://github.com/docker/docker-agent/pull/2155>
#[test]
fn calls_of_other_models_get_the_unchecked_signature() {
    let call = |id: &str| json!({ "type": "tool_use", "id": id, "name": "f", "input": {} });
    let result = |id: &str| json!({ "type": "tool_result", "tool_use_id": id, "content": "4" });
    let mut request = body(
        Messages,
        json!({ "tools": [{ "name": "f", "input_schema": {} }] }),
    );
    request["messages"] = json!([
        { "role": "user", "content": "Hi." },
        { "role": "assistant", "content": [call("a"), call("b")] },
        { "role": "user", "content": [result("a"), result("b")] },
    ]);
    let signature =
        json!({ "google": { "thought_signature": "skip_thought_signature_validator" } });
    for (preset, model, owed) in [
        ("gemini", "gemini-3-pro-preview", Some(&signature)),
        ("gemini", "gemini-2.5-pro", None),
        ("openrouter", "google/gemini-3-pro-preview", None),
    ] {
        request["model"] = model.into();
        let (sent, _) = served(Messages, (Some(preset), Chat), &request);
        let calls = &sent["messages"][1]["tool_calls"];
        assert_eq!(calls[0].get("extra_content"), owed, "{model}");
        assert_eq!(calls[1].get("extra_content"), None, "{model}");
    }
}

/// "The input must not consist of system messages or assistant messages only.":
/// <https://docs.z.ai/api-reference/llm/chat-completion>. "No user query found in messages.":
/// <https://github.com/diegosouzapw/OmniRoute/issues/4982>. "Expected last role User or Tool":
/// <https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/validator.py>
#[test]
fn some_vendors_get_instructions_alone_as_user_messages() {
    let system = json!([{ "role": "developer", "content": "Write a haiku." }]);
    for (preset, role) in [
        (Some("zai"), "user"),
        (Some("mistral"), "user"),
        (Some("vllm"), "user"),
        (Some("deepseek"), "system"),
        (None, "system"),
    ] {
        let request = body(Responses, json!({ "model": "glm-5", "input": system }));
        let (sent, dropped) = served(Responses, (preset, Chat), &request);
        let owed = json!([{ "role": role, "content": "Write a haiku." }]);
        assert_eq!(sent["messages"], owed, "{preset:?}");
        assert_eq!(dropped.is_empty(), role == "system");
    }
}

/// <https://api-docs.deepseek.com/guides/thinking_mode>
#[test]
fn deepseek_has_a_switch_for_thinking() {
    let tools = json!([{ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } }]);
    for (effort, thinking, choice) in [
        ("none", json!({ "type": "disabled" }), "required"),
        ("high", Value::Null, "auto"),
    ] {
        let fields = json!({ "model": "deepseek-v4-pro", "reasoning_effort": effort, "tools": tools, "tool_choice": "required" });
        let (sent, _) = served(Chat, (Some("deepseek"), Chat), &body(Chat, fields));
        assert_eq!(sent["thinking"], thinking);
        assert_eq!(sent.get("reasoning_effort").is_some(), effort == "high");
        assert_eq!(sent["tool_choice"], choice);
    }
}

/// A forced call is refused beside thinking, which some models do by themselves:
/// <https://platform.claude.com/docs/en/build-with-claude/extended-thinking#feature-compatibility>
#[test]
fn a_forced_call_turns_the_thinking_of_claude_off() {
    let tools = json!([{ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } }]);
    for (model, choice, thinking) in [
        ("claude-sonnet-5", "required", json!({ "type": "disabled" })),
        ("claude-sonnet-5", "auto", Value::Null),
        ("claude-sonnet-4-6", "required", Value::Null),
    ] {
        let fields = json!({ "model": model, "tools": tools, "tool_choice": choice });
        let (sent, dropped) = served(Chat, (None, Messages), &body(Chat, fields));
        assert_eq!(sent["thinking"], thinking, "{model} {choice}");
        assert_eq!(dropped, Vec::<String>::new());
    }
}

/// "the image was specified using the image/png media type, but the image appears to be a
/// image/jpeg image": <https://github.com/home-assistant/core/issues/167208>
#[test]
fn claude_gets_the_true_type_of_an_image() {
    for (stated, data, sent) in [
        ("image/png", "/9j/4AAQSkZJRgABAQAAAQABAAD/", "image/jpeg"),
        (
            "image/jpeg",
            "UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEA",
            "image/webp",
        ),
        (
            "image/png",
            "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7",
            "image/gif",
        ),
        ("image/png", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB", "image/png"),
        (
            "image/webp",
            "UklGRiQAAABXQVZFZm10IBAAAAABAAEA",
            "image/webp",
        ),
    ] {
        let url = format!("data:{stated};base64,{data}");
        let content = json!([{ "type": "image_url", "image_url": { "url": url } }]);
        let request = json!({ "model": "m", "messages": [{ "role": "user", "content": content }] });
        let (body, _) = served(Chat, (None, Messages), &request);
        let source = &body["messages"][0]["content"][0]["source"];
        assert_eq!(
            (&source["media_type"], &source["data"]),
            (&json!(sent), &json!(data))
        );
    }
}

/// "A maximum of 4 blocks with cache_control may be provided. Found 5.":
/// <https://github.com/envoyproxy/ai-gateway/issues/1712>; longer lifetimes come first:
/// <https://platform.claude.com/docs/en/build-with-claude/prompt-caching#mixing-different-ttls>
#[test]
fn claude_gets_at_most_four_cache_breakpoints() {
    let sent = |marks: &[&str]| {
        let parts = marks.iter().map(|ttl| {
            let mark = match *ttl {
                "1h" => json!({ "type": "ephemeral", "ttl": "1h" }),
                _ => json!({ "type": "ephemeral" }),
            };
            json!({ "type": "text", "text": "a", "cache_control": mark })
        });
        let content: Vec<_> = parts.collect();
        let request = json!({ "model": "m", "messages": [{ "role": "user", "content": content }] });
        let (body, dropped) = served(Chat, (None, Messages), &request);
        let blocks = body["messages"][0]["content"].as_array().unwrap().clone();
        let marks = blocks.iter().map(|block| match &block["cache_control"] {
            Value::Null => "",
            mark => mark["ttl"].as_str().unwrap_or("5m"),
        });
        let marks: Vec<_> = marks.map(str::to_owned).collect();
        (marks, dropped)
    };
    assert_eq!(sent(&["5m"; 4]), (vec!["5m".to_owned(); 4], vec![]));
    let (marks, dropped) = sent(&["5m"; 6]);
    assert_eq!(marks, ["", "", "5m", "5m", "5m", "5m"]);
    assert_eq!(dropped, ["cache_breakpoint"]);
    let (marks, dropped) = sent(&["1h", "5m", "1h"]);
    assert_eq!(marks, ["1h", "1h", "1h"]);
    assert_eq!(dropped, ["cache_breakpoint"]);
}

/// <https://openrouter.ai/docs/features/prompt-caching>
#[test]
fn claude_behind_openrouter_gets_its_cache_breakpoints() {
    let mark = json!({ "type": "ephemeral" });
    let request = json!({ "model": "anthropic/claude-sonnet-4.5", "max_tokens": 9,
        "system": [{ "type": "text", "text": "Be brief.", "cache_control": mark }],
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": "Hi.", "cache_control": mark }] }] });
    let (sent, dropped) = served(Messages, (Some("openrouter"), Chat), &request);
    for (message, text) in [(0, "Be brief."), (1, "Hi.")] {
        let expected = json!([{ "type": "text", "text": text, "cache_control": mark }]);
        assert_eq!(sent["messages"][message]["content"], expected);
    }
    assert_eq!(dropped, Vec::<String>::new());
}

/// 16 pairs of texts: <https://platform.openai.com/docs/api-reference/responses/create>
#[test]
fn openai_gets_as_much_metadata_as_it_takes() {
    let pairs = (0..20).map(|n| (format!("k{n:02}"), json!("v")));
    let pairs: serde_json::Map<_, _> = pairs.collect();
    let (sent, dropped) = served(
        Chat,
        (None, Responses),
        &body(Chat, json!({ "metadata": pairs })),
    );
    assert_eq!(sent["metadata"].as_object().unwrap().len(), 16);
    assert_eq!(dropped, ["metadata"]);
    let fields =
        json!({ "metadata": { "n": 1, "o": { "a": true }, "long": "a".repeat(513), "s": "t" } });
    let (sent, _) = served(Chat, (None, Responses), &body(Chat, fields));
    assert_eq!(
        sent["metadata"],
        json!({ "n": "1", "o": "{\"a\":true}", "s": "t" })
    );
}

fn roles(sent: &Value) -> Vec<&str> {
    let messages = sent["messages"].as_array().unwrap().iter();
    messages
        .map(|message| message["role"].as_str().unwrap())
        .collect()
}

/// "System message must be at the beginning": <https://github.com/ggml-org/llama.cpp/issues/20733>
#[test]
fn servers_of_open_models_get_one_system_message_at_the_beginning() {
    let request = json!({ "model": "qwen3.5-27b", "instructions": "Be terse.", "input": [
        { "role": "developer", "content": "Ask before you delete." },
        { "role": "user", "content": "Hi." },
        { "role": "assistant", "content": "Hello." },
        { "role": "developer", "content": "Hurry." },
        { "role": "user", "content": "So?" },
    ] });
    for preset in ["vllm", "sglang", "llama-cpp", "lm-studio", "ollama"] {
        let (sent, dropped) = served(Responses, (Some(preset), Chat), &request);
        assert_eq!(roles(&sent), ["system", "user", "assistant", "user"]);
        assert_eq!(
            sent["messages"][0]["content"],
            "Be terse.\n\nAsk before you delete.\n\nHurry."
        );
        assert_eq!(dropped, ["system_position"]);
    }
    let (sent, dropped) = served(Responses, (Some("openai"), Chat), &request);
    assert_eq!(
        roles(&sent),
        ["system", "system", "user", "assistant", "system", "user"]
    );
    assert_eq!(dropped, Vec::<String>::new());
    let mut leading = request;
    leading["input"].as_array_mut().unwrap().truncate(2);
    let (sent, dropped) = served(Responses, (Some("vllm"), Chat), &leading);
    assert_eq!((roles(&sent), dropped), (vec!["system", "user"], vec![]));
}

/// The template of the model reads `instructions` and the messages of Responses as one conversation:
/// <https://github.com/ggml-org/llama.cpp/issues/20733>
#[test]
fn open_models_get_system_texts_as_instructions() {
    let message = |role: &str, content: &str| json!({ "role": role, "content": content });
    let messages = json!([
        message("system", "Be terse."),
        message("user", "Hi."),
        message("assistant", "Hello."),
        message("system", "Hurry."),
        message("user", "So?"),
    ]);
    let request = json!({ "model": "qwen3.5-27b", "messages": messages });
    for preset in ["vllm", "sglang", "llama-cpp", "lm-studio", "ollama"] {
        let (sent, dropped) = served(Chat, (Some(preset), Responses), &request);
        assert_eq!(sent["instructions"], "Be terse.\n\nHurry.");
        let items = sent["input"].as_array().unwrap().iter();
        let roles: Vec<_> = items.map(|item| item["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["user", "assistant", "user"]);
        assert_eq!(dropped, ["system_position"]);
    }
    let (sent, dropped) = served(Chat, (Some("openai"), Responses), &request);
    assert_eq!(sent["instructions"], "Be terse.");
    assert_eq!(sent["input"][2]["role"], "system");
    assert_eq!(dropped, Vec::<String>::new());
}

fn called(client: Protocol) -> Value {
    match client {
        Messages => json!({ "model": "m", "max_tokens": 99, "messages": [
            { "role": "user", "content": "Hi." },
            { "role": "assistant", "content": [
                { "type": "tool_use", "id": "toolu_1", "name": "f", "input": {} } ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "toolu_1", "content": "4 C" },
                { "type": "text", "text": "Go on." } ] },
        ] }),
        _ => json!({ "model": "m", "messages": [
            { "role": "user", "content": "Hi." },
            { "role": "assistant", "reasoning_content": "Hm.", "tool_calls": [
                { "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } } ] },
            { "role": "tool", "tool_call_id": "c", "content": "4 C" },
        ] }),
    }
}

/// "Unexpected role 'user' after role 'tool'":
/// <https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/validator.py>
#[test]
fn mistral_gets_an_assistant_message_after_a_tool_result() {
    let (sent, dropped) = served(Messages, (Some("mistral"), Chat), &called(Messages));
    assert_eq!(
        roles(&sent),
        ["user", "assistant", "tool", "assistant", "user"]
    );
    assert_eq!(sent["messages"][4]["content"], "Go on.");
    assert_eq!(dropped, ["role_sequence"]);
    let (sent, dropped) = served(Messages, (None, Chat), &called(Messages));
    assert_eq!(roles(&sent), ["user", "assistant", "tool", "user"]);
    assert_eq!(dropped, Vec::<String>::new());
    let (sent, dropped) = served(Chat, (Some("mistral"), Chat), &called(Chat));
    assert_eq!(roles(&sent), ["user", "assistant", "tool"]);
    assert_eq!(dropped, ["messages[].reasoning_content"]);
}

/// "property 'reasoning_content' is unsupported": <https://console.groq.com/docs/reasoning>
#[test]
fn groq_gets_earlier_reasoning_under_its_own_name() {
    let (sent, dropped) = served(Chat, (Some("groq"), Chat), &called(Chat));
    assert_eq!(sent["messages"][1]["reasoning"], "Hm.");
    assert_eq!(sent["messages"][1].get("reasoning_content"), None);
    assert_eq!(dropped, Vec::<String>::new());
    let (sent, _) = served(Chat, (None, Chat), &called(Chat));
    assert_eq!(sent["messages"][1]["reasoning_content"], "Hm.");
}
