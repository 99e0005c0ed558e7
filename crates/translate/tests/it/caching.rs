//! Breakpoints of the prompt cache, both ways.

use serde_json::{Value, json};
use vendor::Protocol::{Chat, Messages, Responses};

use crate::rules::served;

/// A Chat client marks as OpenRouter documents it: <https://openrouter.ai/docs/features/prompt-caching>
fn of_chat() -> Value {
    let mark = json!({ "type": "ephemeral" });
    json!({
        "model": "m",
        "messages": [
            { "role": "system", "content": [
                { "type": "text", "text": "Be terse.", "cache_control": { "type": "ephemeral", "ttl": "1h" } } ] },
            { "role": "user", "content": [
                { "type": "text", "text": "Hi.", "cache_control": mark }, { "type": "text", "text": "So?" } ] },
        ],
        "tools": [
            { "type": "function", "function": { "name": "f" } },
            { "type": "function", "function": { "name": "g" }, "cache_control": mark },
        ],
    })
}

/// <https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching>
#[test]
fn marks_of_a_chat_client_reach_claude() {
    let (sent, dropped) = served(Chat, (None, Messages), &of_chat());
    assert_eq!(
        sent["system"],
        json!([{ "type": "text", "text": "Be terse.", "cache_control": { "type": "ephemeral", "ttl": "1h" } }])
    );
    assert_eq!(
        sent["messages"],
        json!([{ "role": "user", "content": [
            { "type": "text", "text": "Hi.", "cache_control": { "type": "ephemeral" } },
            { "type": "text", "text": "So?" },
        ] }])
    );
    assert_eq!(sent["tools"][0].get("cache_control"), None);
    // A longer lifetime comes before a shorter one, and the tools before the instructions.
    assert_eq!(
        sent["tools"][1]["cache_control"],
        json!({ "type": "ephemeral", "ttl": "1h" })
    );
    assert_eq!(dropped, ["cache_breakpoint"]);
}

/// <https://docs.litellm.ai/docs/completion/prompt_caching>
#[test]
fn a_mark_of_a_whole_message_reaches_claude() {
    let mark = json!({ "type": "ephemeral" });
    let request = json!({ "model": "m", "messages": [
        { "role": "system", "content": "Be terse.", "cache_control": mark },
        { "role": "user", "content": "Hi.", "cache_control": mark },
    ] });
    let (sent, dropped) = served(Chat, (None, Messages), &request);
    assert_eq!(
        sent["system"],
        json!([{ "type": "text", "text": "Be terse.", "cache_control": mark }])
    );
    assert_eq!(
        sent["messages"][0]["content"],
        json!([{ "type": "text", "text": "Hi.", "cache_control": mark }])
    );
    assert_eq!(dropped, Vec::<String>::new());
}

/// Only GPT-5.6 and later have explicit breakpoints, on parts of content:
/// <https://platform.openai.com/docs/guides/prompt-caching>
#[test]
fn marks_of_claude_code_reach_the_models_of_openai_that_know_them() {
    let request = |model: &str| {
        json!({
            "model": model, "max_tokens": 99,
            "messages": [
                { "role": "user", "content": [
                    { "type": "text", "text": "Hi.", "cache_control": { "type": "ephemeral", "ttl": "1h" } } ] },
                { "role": "assistant", "content": [{ "type": "tool_use", "id": "a", "name": "f", "input": {} }] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "a", "content": [{ "type": "text", "text": "4" }],
                        "cache_control": { "type": "ephemeral" } },
                ] },
            ],
        })
    };
    let (sent, dropped) = served(Messages, (None, Responses), &request("gpt-5.6-sol"));
    assert_eq!(
        sent["input"][0]["content"],
        json!([{ "type": "input_text", "text": "Hi.",
            "prompt_cache_breakpoint": { "mode": "explicit", "ttl": "12h" } }])
    );
    assert_eq!(
        sent["input"][2]["output"],
        json!([{ "type": "input_text", "text": "4",
            "prompt_cache_breakpoint": { "mode": "explicit", "ttl": "30m" } }])
    );
    assert_eq!(dropped, Vec::<String>::new());
    let (sent, dropped) = served(Messages, (None, Responses), &request("gpt-5.1"));
    assert!(!sent.to_string().contains("breakpoint"));
    assert_eq!(dropped, ["cache_breakpoint"]);
    let (sent, dropped) = served(Messages, (None, Chat), &request("qwen3"));
    assert_eq!(sent["messages"][0]["content"], "Hi.");
    assert_eq!(dropped, ["cache_breakpoint"]);
}

/// An answer of the model has no breakpoint in OpenAI's protocols.
#[test]
fn a_mark_on_earlier_output_is_named() {
    let request = json!({ "model": "gpt-5.6-sol", "max_tokens": 99, "messages": [
        { "role": "user", "content": "Hi." },
        { "role": "assistant", "content": [
            { "type": "text", "text": "Hello.", "cache_control": { "type": "ephemeral" } } ] },
        { "role": "user", "content": "So?" },
    ] });
    let (_, dropped) = served(Messages, (None, Responses), &request);
    assert_eq!(dropped, ["cache_breakpoint"]);
}

#[test]
fn breakpoints_of_openai_become_marks_for_claude() {
    let mark = json!({ "mode": "explicit", "ttl": "12h" });
    let request = json!({ "model": "m", "input": [
        { "role": "developer", "content": [
            { "type": "input_text", "text": "Be terse.", "prompt_cache_breakpoint": { "mode": "explicit" } } ] },
        { "role": "user", "content": [
            { "type": "input_text", "text": "Hi.", "prompt_cache_breakpoint": mark } ] },
    ] });
    let (sent, _) = served(Responses, (None, Messages), &request);
    // A longer lifetime comes before a shorter one.
    for marked in [&sent["system"][0], &sent["messages"][0]["content"][0]] {
        assert_eq!(
            marked["cache_control"],
            json!({ "type": "ephemeral", "ttl": "1h" })
        );
    }
}
