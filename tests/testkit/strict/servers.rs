//! Model servers that refuse what the real ones refuse, by their pages and by the reports of users.

use std::fmt;

use serde_json::{Map, Value};
use simulator::Protocol;

/// A server of a vendor, for one of its models.
pub struct Server {
    /// The preset of an upstream that has it.
    pub preset: &'static str,
    /// The protocol of its requests.
    pub protocol: Protocol,
    /// The model, by the vendor's name for it.
    pub model: &'static str,
    /// The reason to refuse a request.
    pub refusal: fn(&Value) -> Option<String>,
}

/// A server for each preset, and for each of its models that has rules of its own.
#[rustfmt::skip]
pub static SERVERS: [Server; 34] = [
    server("openai", Protocol::Responses, "gpt-4.1", |body| openai(body, false, &[])),
    server("openai", Protocol::Responses, "o4-mini", |body| openai(body, true, &["low", "medium", "high"])),
    server("openai", Protocol::Responses, "gpt-5-mini", |body| openai(body, true, &["minimal", "low", "medium", "high"])),
    server("openai", Protocol::Responses, "gpt-5.1", |body| openai(body, true, &["none", "low", "medium", "high"])),
    server("openai", Protocol::Responses, "gpt-5.6-sol", |body| openai(body, true, &["none", "low", "medium", "high", "xhigh", "max"])),
    server("openai", Protocol::Chat, "gpt-4o", |body| openai(body, false, &[])),
    server("openai", Protocol::Chat, "o3", |body| openai(body, true, &["low", "medium", "high"])),
    server("openai", Protocol::Chat, "gpt-5.5", |body| openai(body, true, &["none", "low", "medium", "high", "xhigh"])),
    server("bedrock", Protocol::Responses, "openai.gpt-5.5", bedrock),
    server("anthropic", Protocol::Messages, "claude-sonnet-4-5", |body| claude(body, Claude::Budget)),
    server("anthropic", Protocol::Messages, "claude-sonnet-4-6", |body| claude(body, Claude::Adaptive)),
    server("anthropic", Protocol::Messages, "claude-opus-4-8", |body| claude(body, Claude::Unsampled)),
    server("anthropic", Protocol::Messages, "claude-sonnet-5", |body| claude(body, Claude::Thinks)),
    server("anthropic", Protocol::Messages, "claude-opus-5-5", |body| claude(body, Claude::Unforced)),
    server("mistral", Protocol::Chat, "mistral-small-latest", mistral),
    server("groq", Protocol::Chat, "openai/gpt-oss-120b", |body| groq(body, &["low", "medium", "high"])),
    server("groq", Protocol::Chat, "qwen/qwen3-32b", |body| groq(body, &["none", "default"])),
    server("groq", Protocol::Chat, "llama-3.3-70b-versatile", |body| groq(body, &[])),
    server("gemini", Protocol::Chat, "gemini-2.5-flash", |body| gemini(body, &["none", "minimal", "low", "medium", "high"])),
    server("gemini", Protocol::Chat, "gemini-3-pro", |body| gemini(body, &["minimal", "low", "medium", "high"]).or_else(|| gemini_calls(body))),
    server("deepseek", Protocol::Chat, "deepseek-v4-pro", deepseek),
    server("deepseek", Protocol::Messages, "deepseek-v4-pro", deepseek_messages),
    server("xai", Protocol::Responses, "grok-4.6", |body| xai(body, &["low", "medium", "high", "xhigh"])),
    server("xai", Protocol::Chat, "grok-4", |body| xai(body, &[])),
    server("cerebras", Protocol::Chat, "zai-glm-4.7", cerebras),
    server("moonshot", Protocol::Chat, "kimi-k2.6", moonshot),
    server("moonshot", Protocol::Messages, "kimi-k2.7-code", kimi_code),
    server("zai", Protocol::Chat, "glm-5", zai),
    server("vllm", Protocol::Chat, "qwen3.5-27b", |body| open(body, &["low", "medium", "high"])),
    server("vllm", Protocol::Responses, "qwen3.5-27b", open_responses),
    server("sglang", Protocol::Chat, "glm-5", |body| open(body, &["low", "medium", "high"])),
    server("lm-studio", Protocol::Chat, "qwen3", lm_studio),
    server("ollama", Protocol::Chat, "qwen3", |body| open(body, &["none", "low", "medium", "high"])),
    server("llama-cpp", Protocol::Chat, "qwen3", |body| open(body, &EFFORTS)),
];

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (preset, model) = (self.preset, self.model);
        write!(f, "{preset}: {model} over {:?}", self.protocol)
    }
}

const fn server(
    preset: &'static str,
    protocol: Protocol,
    model: &'static str,
    refusal: fn(&Value) -> Option<String>,
) -> Server {
    Server {
        preset,
        protocol,
        model,
        refusal,
    }
}

/// <https://developers.openai.com/api/docs/guides/reasoning>,
/// <https://platform.openai.com/docs/api-reference/responses/create>,
/// <https://developers.openai.com/api/docs/guides/structured-outputs>
fn openai(body: &Value, reasons: bool, efforts: &[&str]) -> Option<String> {
    let model = body["model"].as_str().unwrap();
    let effort = body["reasoning"]["effort"]
        .as_str()
        .or(body["reasoning_effort"].as_str());
    let is_reasoning = reasons && effort != Some("none");
    let includes = |name: &str| {
        body["include"]
            .as_array()
            .is_some_and(|list| list.iter().any(|one| one == name))
    };
    let is_chat = has(body, "messages");
    let limit = ["max_tokens", "max_completion_tokens", "max_output_tokens"]
        .iter()
        .find_map(|name| body[name].as_u64());
    None.or_else(|| {
        (is_reasoning)
            .then(|| {
                any(
                    body,
                    &[
                        "temperature",
                        "top_p",
                        "presence_penalty",
                        "frequency_penalty",
                        "logprobs",
                        "top_logprobs",
                    ],
                )
            })
            .flatten()
    })
    .or_else(|| {
        effort
            .filter(|effort| !efforts.contains(effort))
            .map(|effort| format!("effort {effort}"))
    })
    .or_else(|| {
        (!reasons)
            .then(|| any(body, &["reasoning", "reasoning_effort"]))
            .flatten()
    })
    .or_else(|| {
        refuse(
            !reasons && includes("reasoning.encrypted_content"),
            "encrypted content",
        )
    })
    .or_else(|| refuse(reasons && has(body, "max_tokens"), "max_tokens"))
    .or_else(|| refuse(reasons && is_chat && has(body, "stop"), "stop"))
    .or_else(|| {
        refuse(
            model.starts_with('o') && has(body, "parallel_tool_calls"),
            "parallel_tool_calls",
        )
    })
    .or_else(|| {
        refuse(
            model == "gpt-5.5" && is_chat && has(body, "tools") && effort != Some("none"),
            "tools beside an effort",
        )
    })
    .or_else(|| {
        refuse(
            limit.is_some_and(|limit| !is_chat && limit < 16),
            "a limit below 16",
        )
    })
    .or_else(|| {
        refuse(
            model == "gpt-4o" && limit.is_some_and(|limit| limit > 16384),
            "a limit above 16384",
        )
    })
    .or_else(|| {
        refuse(
            model == "gpt-4.1" && limit.is_some_and(|limit| limit > 32768),
            "a limit above 32768",
        )
    })
    .or_else(|| {
        refuse(
            !reasons
                && ["verbosity", "text"]
                    .iter()
                    .any(|name| body[name] == "low" || body[name]["verbosity"] == "low"),
            "verbosity",
        )
    })
    .or_else(|| long_label(body, 64))
    .or_else(|| tools(body, 64))
    .or_else(|| schemas(body))
    .or_else(|| calls(body))
    .or_else(|| items(body))
}

/// The required members of items of Responses and of their parts.
fn items(body: &Value) -> Option<String> {
    let items = || body["input"].as_array().into_iter().flatten();
    let contents = || items().flat_map(|item| [&item["content"], &item["output"]]);
    let mut parts = contents().filter_map(Value::as_array).flatten();
    let is_short = |part: &Value| match part["type"].as_str() {
        Some("input_image") => !has(part, "detail"),
        Some("output_text") => !part["annotations"].is_array(),
        _ => false,
    };
    let is_short_answer = |item: &Value| {
        let has_parts = item["role"] == "assistant" && item["content"].is_array();
        has_parts && !(item["id"].is_string() && has(item, "status"))
    };
    refuse(parts.any(is_short), "a part without a required member").or_else(|| {
        refuse(
            items().any(is_short_answer),
            "an output message without its id or status",
        )
    })
}

/// <https://github.com/openai/codex/pull/25318>
fn bedrock(body: &Value) -> Option<String> {
    words(body, "service_tier", &["default"]).or_else(|| items(body))
}

#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Claude {
    /// Thinks with a budget, and continues a prefill.
    Budget,
    /// Thinks by its own decision, and refuses a prefill.
    Adaptive,
    /// Refuses sampling as well.
    Unsampled,
    /// Thinks unless the request disables it.
    Thinks,
    /// Always thinks, and refuses a forced call.
    Unforced,
}

/// <https://platform.claude.com/docs/en/api/messages>,
/// <https://platform.claude.com/docs/en/build-with-claude/extended-thinking#feature-compatibility>,
/// <https://platform.claude.com/docs/en/models/fable-5-1/migration-guide>
fn claude(body: &Value, kind: Claude) -> Option<String> {
    let thinking = body["thinking"]["type"].as_str();
    let thinks = match thinking {
        None => kind >= Claude::Thinks,
        Some(kind) => kind != "disabled",
    };
    let is_forced = matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool"));
    let messages = body["messages"].as_array().unwrap();
    let is_prefilled = messages.last().unwrap()["role"] == "assistant";
    let marks = body.to_string().matches("\"cache_control\"").count();
    let user = body["metadata"]["user_id"].as_str().unwrap_or_default();
    let budget = body["thinking"]["budget_tokens"].as_u64();
    None.or_else(|| {
        refuse(
            has(body, "temperature") && has(body, "top_p"),
            "both samplers",
        )
    })
    .or_else(|| {
        refuse(
            body["temperature"]
                .as_f64()
                .is_some_and(|value| value > 1.0),
            "temperature",
        )
    })
    .or_else(|| {
        (kind >= Claude::Unsampled)
            .then(|| any(body, &["temperature", "top_p", "top_k"]))
            .flatten()
    })
    .or_else(|| {
        refuse(
            thinks
                && kind < Claude::Unsampled
                && body["temperature"]
                    .as_f64()
                    .is_some_and(|value| value < 1.0),
            "temperature beside thinking",
        )
    })
    .or_else(|| {
        refuse(
            is_forced && (thinks || kind == Claude::Unforced),
            "a forced call beside thinking",
        )
    })
    .or_else(|| {
        refuse(
            is_prefilled && (thinks || kind >= Claude::Adaptive),
            "a prefill",
        )
    })
    .or_else(|| {
        refuse(
            kind == Claude::Budget && thinking == Some("adaptive"),
            "adaptive thinking",
        )
    })
    .or_else(|| {
        refuse(
            kind >= Claude::Unsampled && thinking == Some("enabled"),
            "a budget",
        )
    })
    .or_else(|| {
        refuse(
            kind == Claude::Unforced && thinking == Some("disabled"),
            "thinking that is disabled",
        )
    })
    .or_else(|| {
        refuse(
            kind == Claude::Budget && has(&body["output_config"], "effort"),
            "an effort",
        )
    })
    .or_else(|| {
        refuse(
            kind == Claude::Adaptive && body["output_config"]["effort"] == "xhigh",
            "xhigh",
        )
    })
    .or_else(|| {
        refuse(
            budget.is_some_and(|budget| {
                budget < 1024 || budget >= body["max_tokens"].as_u64().unwrap()
            }),
            "the budget",
        )
    })
    .or_else(|| refuse(marks > 4, "more than four breakpoints"))
    .or_else(|| {
        refuse(
            messages[0]["role"] != "user",
            "a first message that is not the user's",
        )
    })
    .or_else(|| refuse(user.len() > 256 || user.contains('@'), "user_id"))
    .or_else(|| tools(body, 128))
    .or_else(|| tool_results(messages))
}

/// "`tool_use` ids were found without `tool_result` blocks immediately after"
fn tool_results(messages: &[Value]) -> Option<String> {
    let ids = |message: &Value, kind: &str, id: &str| -> Vec<String> {
        let blocks = message["content"].as_array().into_iter().flatten();
        let of_kind = blocks.filter(|block| block["type"] == kind);
        of_kind
            .map(|block| block[id].as_str().unwrap().to_owned())
            .collect()
    };
    messages.iter().enumerate().find_map(|(at, message)| {
        let calls = ids(message, "tool_use", "id");
        let next = messages.get(at + 1);
        let results = next.map_or(Vec::new(), |next| ids(next, "tool_result", "tool_use_id"));
        let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        let is_blank = |block: &Value| {
            block["type"] == "text" && block["text"].as_str().unwrap().trim().is_empty()
        };
        refuse(
            next.is_some() && calls != results,
            "calls without their results",
        )
        .or_else(|| {
            refuse(
                next.is_some_and(|next| next["role"] == message["role"] && !calls.is_empty()),
                "roles",
            )
        })
        .or_else(|| refuse(blocks.iter().any(is_blank), "a blank text"))
    })
}

/// <https://docs.mistral.ai/api/endpoint/chat>,
/// <https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/validator.py>
fn mistral(body: &Value) -> Option<String> {
    let known = [
        "frequency_penalty",
        "guardrails",
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "prompt_mode",
        "random_seed",
        "reasoning_effort",
        "response_format",
        "safe_prompt",
        "stop",
        "stream",
        "temperature",
        "tool_choice",
        "tools",
        "top_p",
    ];
    let messages = body["messages"].as_array().unwrap();
    let follows = |pair: &[Value]| {
        let [before, next] =
            [&pair[0]["role"], &pair[1]["role"]].map(|role| role.as_str().unwrap());
        match before {
            "system" => ["system", "user", "assistant"].contains(&next),
            "user" => ["user", "assistant", "system"].contains(&next),
            "assistant" => ["assistant", "user", "tool"].contains(&next),
            _ => ["assistant", "tool"].contains(&next),
        }
    };
    let last = messages.last().unwrap();
    let ids = messages
        .iter()
        .flat_map(|message| message["tool_calls"].as_array().into_iter().flatten());
    let is_unknown = |message: &Value| has(message, "reasoning_content") || has(message, "refusal");
    None.or_else(|| members(body, &known))
        .or_else(|| {
            messages
                .windows(2)
                .find(|pair| !follows(pair))
                .map(|pair| format!("{} after {}", pair[1]["role"], pair[0]["role"]))
        })
        .or_else(|| {
            refuse(
                last["role"] == "assistant" && last["prefix"] != true,
                "the last role",
            )
        })
        .or_else(|| {
            refuse(
                ids.into_iter()
                    .any(|call| call["id"].as_str().unwrap().len() != 9),
                "the id of a call",
            )
        })
        .or_else(|| {
            refuse(
                messages.iter().any(is_unknown),
                "an extra input of a message",
            )
        })
        .or_else(|| words(body, "reasoning_effort", &["none", "high"]))
        .or_else(|| {
            refuse(
                body["temperature"]
                    .as_f64()
                    .is_some_and(|value| value > 1.5),
                "temperature",
            )
        })
        .or_else(|| tools(body, 64))
}

/// <https://console.groq.com/docs/openai>, <https://console.groq.com/docs/reasoning>
fn groq(body: &Value, efforts: &[&str]) -> Option<String> {
    any(
        body,
        &[
            "logprobs",
            "top_logprobs",
            "logit_bias",
            "prompt_cache_key",
            "safety_identifier",
            "verbosity",
        ],
    )
    .or_else(|| words(body, "reasoning_effort", efforts))
    .or_else(|| {
        words(
            body,
            "service_tier",
            &["auto", "on_demand", "flex", "performance"],
        )
    })
    .or_else(|| of_messages(body, "reasoning_content"))
    .or_else(|| tools(body, 64))
}

/// <https://ai.google.dev/gemini-api/docs/openai>
fn gemini(body: &Value, efforts: &[&str]) -> Option<String> {
    any(
        body,
        &[
            "frequency_penalty",
            "presence_penalty",
            "logit_bias",
            "seed",
            "prompt_cache_key",
            "safety_identifier",
            "store",
            "verbosity",
        ],
    )
    .or_else(|| words(body, "reasoning_effort", efforts))
    .or_else(|| tools(body, 64))
}

/// <https://ai.google.dev/gemini-api/docs/thought-signatures>
fn gemini_calls(body: &Value) -> Option<String> {
    let mut messages = body["messages"].as_array().into_iter().flatten();
    let is_unsigned = |message: &Value| {
        let call = message.pointer("/tool_calls/0");
        call.is_some_and(|call| !call["extra_content"]["google"]["thought_signature"].is_string())
    };
    refuse(messages.any(is_unsigned), "thought_signature")
}

/// <https://api-docs.deepseek.com/guides/thinking_mode>, <https://api-docs.deepseek.com/guides/json_mode>
fn deepseek(body: &Value) -> Option<String> {
    let thinks = body["thinking"]["type"] != "disabled";
    let choice = &body["tool_choice"];
    refuse(
        body["response_format"]["type"] == "json_schema",
        "json_schema",
    )
    .or_else(|| {
        refuse(
            thinks && (choice == "required" || choice.is_object()),
            "tool_choice beside thinking",
        )
    })
    .or_else(|| refuse(body["reasoning_effort"] == "none", "no effort"))
    .or_else(|| of_messages_is(body, "content", Value::is_array))
}

/// <https://api-docs.deepseek.com/guides/anthropic_api>, <https://github.com/deepseek-ai/DeepSeek-V3/issues/1376>
fn deepseek_messages(body: &Value) -> Option<String> {
    let thinks = body["thinking"]["type"] != "disabled";
    let is_forced = matches!(body["tool_choice"]["type"].as_str(), Some("any" | "tool"));
    let messages = body["messages"].as_array().unwrap().iter();
    let mut blocks = messages
        .filter_map(|message| message["content"].as_array())
        .flatten();
    let is_unknown = |block: &Value| matches!(block["type"].as_str(), Some("image" | "document"));
    refuse(has(&body["output_config"], "format"), "output_config")
        .or_else(|| refuse(thinks && is_forced, "tool_choice beside thinking"))
        .or_else(|| refuse(blocks.any(is_unknown), "an image or a document"))
        .or_else(|| {
            refuse(
                thinks && has_calls_without_thoughts(body),
                "no thinking block",
            )
        })
}

/// <https://github.com/QwenLM/qwen-code/pull/3788>
fn has_calls_without_thoughts(body: &Value) -> bool {
    let messages = body["messages"].as_array().into_iter().flatten();
    let mut contents = messages.filter_map(|message| message["content"].as_array());
    contents.any(|blocks| {
        let has = |kind: &str| blocks.iter().any(|block| block["type"] == kind);
        has("tool_use") && !has("thinking")
    })
}

/// <https://docs.x.ai/developers/model-capabilities/text/reasoning>
fn xai(body: &Value, efforts: &[&str]) -> Option<String> {
    let effort = body["reasoning"]["effort"]
        .as_str()
        .or(body["reasoning_effort"].as_str());
    any(body, &["presence_penalty", "frequency_penalty", "stop"]).or_else(|| {
        effort
            .filter(|effort| !efforts.contains(effort))
            .map(|effort| format!("effort {effort}"))
    })
}

/// <https://inference-docs.cerebras.ai/resources/openai>
fn cerebras(body: &Value) -> Option<String> {
    any(
        body,
        &[
            "frequency_penalty",
            "logit_bias",
            "presence_penalty",
            "parallel_tool_calls",
            "service_tier",
            "prompt_cache_key",
            "verbosity",
        ],
    )
    .or_else(|| refuse(body["tool_choice"].is_object(), "a named function"))
    .or_else(|| {
        let tools = body["tools"].as_array().into_iter().flatten();
        let mut strict = tools.map(|tool| &tool["function"]["strict"]);
        let first = strict.next();
        refuse(
            strict.any(|other| Some(other) != first),
            "tools that differ in `strict`",
        )
    })
    .or_else(|| of_messages(body, "reasoning_content"))
}

/// <https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model>
fn moonshot(body: &Value) -> Option<String> {
    let thinks = body["thinking"]["type"] != "disabled";
    let choice = &body["tool_choice"];
    any(
        body,
        &[
            "temperature",
            "top_p",
            "presence_penalty",
            "frequency_penalty",
        ],
    )
    .or_else(|| {
        refuse(
            thinks && (choice == "required" || choice.is_object()),
            "tool_choice beside thinking",
        )
    })
    .or_else(|| of_calls_lack(body, "reasoning_content"))
    .or_else(|| {
        refuse(
            body["tools"]
                .as_array()
                .into_iter()
                .flatten()
                .any(has_typed_alternatives),
            "a type beside anyOf",
        )
    })
}

/// <https://pkg.go.dev/github.com/moonshotai/walle>
fn has_typed_alternatives(value: &Value) -> bool {
    has(value, "type") && value["anyOf"].is_array()
        || match value {
            Value::Object(members) => members.values().any(has_typed_alternatives),
            Value::Array(list) => list.iter().any(has_typed_alternatives),
            _ => false,
        }
}

/// <https://github.com/MoonshotAI/Kimi-K2/issues/141>
fn kimi_code(body: &Value) -> Option<String> {
    let thinking = body["thinking"]["type"].as_str();
    refuse(
        thinking.is_some_and(|kind| kind != "enabled"),
        "thinking that is not enabled",
    )
}

/// <https://docs.z.ai/api-reference/llm/chat-completion>
fn zai(body: &Value) -> Option<String> {
    let choice = &body["tool_choice"];
    any(
        body,
        &[
            "presence_penalty",
            "frequency_penalty",
            "max_completion_tokens",
        ],
    )
    .or_else(|| refuse(choice == "required" || choice.is_object(), "tool_choice"))
    .or_else(|| {
        let stops = body["stop"].as_array();
        refuse(
            stops.is_some_and(|stops| stops.len() > 1),
            "several stop words",
        )
    })
    .or_else(|| {
        refuse(
            body["response_format"]["type"] == "json_schema",
            "json_schema",
        )
    })
    .or_else(|| {
        refuse(
            body["temperature"]
                .as_f64()
                .is_some_and(|value| value > 1.0),
            "temperature",
        )
    })
}

/// <https://lmstudio.ai/docs/developer/openai-compat/chat-completions>
fn lm_studio(body: &Value) -> Option<String> {
    refuse(
        body["response_format"]["type"] == "json_object",
        "response_format",
    )
    .or_else(|| refuse(body["tool_choice"].is_object(), "tool_choice"))
    .or_else(|| open(body, &["none", "low", "medium", "high"]))
}

/// Servers of open models, whose templates want one system message at the beginning:
/// <https://github.com/ggml-org/llama.cpp/issues/20733>
fn open(body: &Value, efforts: &[&str]) -> Option<String> {
    let messages = body["messages"].as_array().unwrap();
    let is_late = |message: &Value| message["role"] == "system" || message["role"] == "developer";
    refuse(
        messages[1..].iter().any(is_late),
        "a system message behind the beginning",
    )
    .or_else(|| words(body, "reasoning_effort", efforts))
    .or_else(|| refuse(body["top_p"] == 0, "top_p"))
}

/// The same templates behind Responses, whose `instructions` are the first message:
/// <https://github.com/vercel/ai/issues/20300>, <https://github.com/openai/codex/issues/12669>
fn open_responses(body: &Value) -> Option<String> {
    let inputs = body["input"].as_array().map_or(&[][..], Vec::as_slice);
    let first = usize::from(!has(body, "instructions"));
    let is_late = |item: &Value| item["role"] == "system" || item["role"] == "developer";
    refuse(
        inputs.iter().skip(first).any(is_late),
        "a system message behind the beginning",
    )
    .or_else(|| items(body))
}

fn refuse(is_wrong: bool, why: &str) -> Option<String> {
    is_wrong.then(|| why.to_owned())
}

fn has(body: &Value, name: &str) -> bool {
    body.get(name).is_some_and(|value| !value.is_null())
}

/// Any of these members.
fn any(body: &Value, names: &[&str]) -> Option<String> {
    names
        .iter()
        .find(|name| has(body, name))
        .map(|name| (*name).to_owned())
}

/// Any other member than these.
fn members(body: &Value, known: &[&str]) -> Option<String> {
    let mut names = body.as_object().unwrap().keys();
    names.find(|name| !known.contains(&name.as_str())).cloned()
}

fn words(body: &Value, name: &str, known: &[&str]) -> Option<String> {
    let word = body[name].as_str()?;
    refuse(!known.contains(&word), &format!("{name} {word}"))
}

fn of_messages(body: &Value, name: &str) -> Option<String> {
    of_messages_is(body, name, |value| !value.is_null())
}

fn of_messages_is(body: &Value, name: &str, is_wrong: fn(&Value) -> bool) -> Option<String> {
    let mut messages = body["messages"].as_array().unwrap().iter();
    refuse(
        messages.any(|message| is_wrong(&message[name])),
        &format!("{name} of a message"),
    )
}

fn of_calls_lack(body: &Value, name: &str) -> Option<String> {
    let mut messages = body["messages"].as_array().unwrap().iter();
    refuse(
        messages.any(|message| has(message, "tool_calls") && !has(message, name)),
        &format!("calls without {name}"),
    )
}

fn long_label(body: &Value, longest: usize) -> Option<String> {
    let labels = ["user", "safety_identifier", "prompt_cache_key"];
    let is_long = |name: &&&str| {
        body[**name]
            .as_str()
            .is_some_and(|label| label.chars().count() > longest)
    };
    labels.iter().find(is_long).map(|name| (*name).to_owned())
}

/// The names of tools: `^[a-zA-Z0-9_-]+$`.
fn tools(body: &Value, longest: usize) -> Option<String> {
    let is_fit = |name: &str| {
        name.len() <= longest
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    let mut tools = body["tools"].as_array().into_iter().flatten();
    let name = |tool: &Value| {
        tool["name"]
            .as_str()
            .or(tool["function"]["name"].as_str())
            .unwrap()
            .to_owned()
    };
    refuse(tools.any(|tool| !is_fit(&name(tool))), "the name of a tool").or_else(|| {
        refuse(
            has(body, "tool_choice") && !has(body, "tools"),
            "tool_choice without tools",
        )
    })
}

/// The schemas of tools and of the answer: objects with a type, arrays with items, and what `strict` wants.
fn schemas(body: &Value) -> Option<String> {
    let tools = body["tools"].as_array().into_iter().flatten();
    let of_tools = tools.map(|tool| match tool.get("function") {
        Some(function) => (&function["parameters"], function["strict"] == true),
        // Absent, it is strict: https://developers.openai.com/api/docs/guides/function-calling#strict-mode
        None => (&tool["parameters"], tool["strict"] != false),
    });
    let answers = [
        &body["response_format"]["json_schema"],
        &body["text"]["format"],
    ];
    let of_answers = answers.into_iter().filter(|form| has(form, "schema"));
    let of_answers = of_answers.map(|form| (&form["schema"], form["strict"] == true));
    let mut all = of_tools
        .chain(of_answers)
        .filter(|(schema, _)| !schema.is_null());
    all.find_map(|(schema, strict)| {
        refuse(schema["type"] != "object", "a schema without a type")
            .or_else(|| schema_fault(schema, strict))
    })
}

fn schema_fault(schema: &Value, strict: bool) -> Option<String> {
    let Value::Object(members) = schema else {
        return None;
    };
    let none = Map::new();
    let properties = members
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    let required = members
        .get("required")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    let is_object = members.get("type").is_some_and(|kind| kind == "object");
    let is_open = is_object
        && (members.get("additionalProperties") != Some(&false.into())
            || required != properties.len());
    refuse(
        is_object && !members.contains_key("properties"),
        "an object schema without properties",
    )
    .or_else(|| {
        refuse(
            members.get("type").is_some_and(|kind| kind == "array")
                && !members.contains_key("items"),
            "an array schema without items",
        )
    })
    .or_else(|| refuse(strict && is_open, "a strict schema that is open"))
    .or_else(|| {
        properties
            .values()
            .find_map(|property| schema_fault(property, strict))
    })
}

/// The calls of a conversation and their results.
fn calls(body: &Value) -> Option<String> {
    let items = body["input"]
        .as_array()
        .or(body["messages"].as_array())
        .map_or(&[][..], Vec::as_slice);
    let ids = |item: &Value| -> Vec<String> {
        let calls = item["tool_calls"].as_array().into_iter().flatten();
        let own = (item["type"] == "function_call").then(|| item["call_id"].clone());
        calls
            .map(|call| call["id"].clone())
            .chain(own)
            .map(|id| id.as_str().unwrap().to_owned())
            .collect()
    };
    let called: Vec<_> = items.iter().flat_map(ids).collect();
    let results = items
        .iter()
        .filter(|item| item["type"] == "function_call_output" || item["role"] == "tool");
    let results: Vec<_> = results
        .map(|item| {
            item["call_id"]
                .as_str()
                .or(item["tool_call_id"].as_str())
                .unwrap()
                .to_owned()
        })
        .collect();
    let is_last_a_call = items.last().is_some_and(|item| !ids(item).is_empty());
    let longest = if has(body, "messages") { 40 } else { 64 };
    refuse(
        results.iter().any(|id| !called.contains(id)),
        "a result without a call",
    )
    .or_else(|| {
        refuse(
            !is_last_a_call && called.iter().any(|id| !results.contains(id)),
            "a call without a result",
        )
    })
    .or_else(|| {
        refuse(
            called.iter().any(|id| id.len() > longest),
            "the id of a call",
        )
    })
}

const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
