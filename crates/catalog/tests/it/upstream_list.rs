//! The facts in the lists of models of several vendors. The entries are shortened ones of their pages.

use serde_json::json;
use sluicegate_catalog::upstream_list;

/// Reads a list, and returns its facts as JSON.
fn facts_in(list: &str) -> serde_json::Value {
    serde_json::to_value(upstream_list::read(list.as_bytes()).unwrap()).unwrap()
}

/// <https://openrouter.ai/docs/models>
#[test]
fn openrouter() {
    let list = r#"{"data":[{"id":"google/gemini-2.5-pro-preview","context_length":1048576,
        "architecture":{"input_modalities":["file","image","text"],"output_modalities":["text"],
        "tokenizer":"Gemini","instruct_type":null},"top_provider":{"is_moderated":true,
        "context_length":1048576,"max_completion_tokens":65536},
        "supported_parameters":["tools","max_tokens"],"expiration_date":"2026-12-31"}]}"#;
    let expected = json!({"google/gemini-2.5-pro-preview": {
        "max_input_tokens": 1_048_576,
        "max_output_tokens": 65_536,
        "input_modalities": ["text", "image", "file"],
        "output_modalities": ["text"],
        "retires_at": "2026-12-31T00:00:00Z",
    }});
    assert_eq!(facts_in(list), expected);
}

/// `ModelCard` in <https://github.com/vllm-project/vllm/blob/main/vllm/entrypoints/openai/protocol.py>
#[test]
fn vllm() {
    let list = r#"{"object":"list","data":[{"id":"Qwen/Qwen3-Coder-30B","object":"model",
        "created":1735142223,"owned_by":"vllm","root":"Qwen/Qwen3-Coder-30B","parent":null,
        "max_model_len":262144,"permission":[]}]}"#;
    let expected = json!({"Qwen/Qwen3-Coder-30B": {"max_input_tokens": 262_144}});
    assert_eq!(facts_in(list), expected);
}

/// <https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md>, where `models` is for
/// clients of Ollama.
#[test]
fn llama_cpp() {
    let list = |meta: &str| {
        format!(
            r#"{{"models":[{{"name":"a.gguf","model":"a.gguf","capabilities":["completion"]}}],
            "object":"list","data":[{{"id":"a.gguf","object":"model","created":1735142223,
            "owned_by":"llamacpp","meta":{{"vocab_type":2,"n_vocab":128256,{meta}}}}}]}}"#
        )
    };
    let expected = json!({"a.gguf": {"max_input_tokens": 131_072}});
    assert_eq!(facts_in(&list(r#""n_ctx_train":131072"#)), expected);
    let expected = json!({"a.gguf": {"max_input_tokens": 4096}});
    let loaded = facts_in(&list(r#""n_ctx_train":131072,"n_ctx":4096"#));
    assert_eq!(loaded, expected);
}

/// <https://platform.claude.com/docs/en/api/models/list>
#[test]
fn anthropic() {
    let list = r#"{"data":[{"type":"model","id":"claude-opus-4-6","display_name":"Claude Opus 4.6",
        "created_at":"2026-02-04T00:00:00Z","max_input_tokens":200000,"max_tokens":128000,
        "capabilities":{"batch":{"supported":true},"citations":{"supported":true},
        "code_execution":{"supported":false},"context_management":{"supported":true,
        "clear_thinking_20251015":{"supported":true},"clear_tool_uses_20250919":{"supported":true},
        "compact_20260112":{"supported":false}},"effort":{"supported":true,"low":{"supported":true},
        "medium":{"supported":true},"high":{"supported":true},"max":{"supported":false}},
        "image_input":{"supported":true},"pdf_input":{"supported":true},
        "structured_outputs":{"supported":true},"thinking":{"supported":true,
        "types":{"adaptive":{"supported":true},"enabled":{"supported":true}}}}}],
        "has_more":false,"first_id":"claude-opus-4-6","last_id":"claude-opus-4-6"}"#;
    let expected = json!({"claude-opus-4-6": {
        "max_input_tokens": 200_000,
        "max_output_tokens": 128_000,
        "input_modalities": ["text", "image", "file"],
        "capabilities": [
            "tools", "parallel_tool_calls", "structured_outputs", "thinking", "adaptive_thinking",
            "effort_low", "effort_medium", "effort_high", "citations", "clear_thinking",
            "clear_tool_uses",
        ],
    }});
    assert_eq!(facts_in(list), expected);
}

/// <https://docs.mistral.ai/api/endpoint/models>: the flags do not name all that a model can do.
#[test]
fn mistral() {
    let list = r#"{"object":"list","data":[{"id":"mistral-medium-2508","object":"model",
        "created":1735142223,"owned_by":"mistralai","capabilities":{"completion_chat":true,
        "function_calling":true,"completion_fim":false,"fine_tuning":false,"vision":true},
        "max_context_length":131072,"deprecation":"2026-08-31T12:00:00Z"}]}"#;
    let expected = json!({"mistral-medium-2508": {
        "max_input_tokens": 131_072,
        "deprecated_at": "2026-08-31T12:00:00Z",
    }});
    assert_eq!(facts_in(list), expected);
}

/// <https://console.groq.com/docs/api-reference#models-list>
#[test]
fn groq() {
    let list = r#"{"object":"list","data":[{"id":"llama-3.3-70b-versatile","object":"model",
        "created":1733447754,"owned_by":"Meta","active":true,"context_window":131072,
        "public_apps":null,"max_completion_tokens":32768}]}"#;
    let expected = json!({"llama-3.3-70b-versatile": {
        "max_input_tokens": 131_072,
        "max_output_tokens": 32_768,
    }});
    assert_eq!(facts_in(list), expected);
}

/// <https://docs.together.ai/reference/models>
#[test]
fn together() {
    let list = r#"[{"id":"Austism/chronos-hermes-13b","object":"model","created":1692896905,
        "type":"chat","display_name":"Chronos Hermes (13B)","context_length":2048}]"#;
    let expected = json!({"Austism/chronos-hermes-13b": {"max_input_tokens": 2048}});
    assert_eq!(facts_in(list), expected);
}

/// <https://lmstudio.ai/docs/developer/rest/endpoints> and <https://lmstudio.ai/docs/developer/rest/list>
#[test]
fn lm_studio() {
    let list = r#"{"object":"list","data":[
        {"id":"qwen2-vl-7b","object":"model","type":"vlm","state":"not-loaded","max_context_length":32768},
        {"id":"llama-3.1-8b","object":"model","type":"llm","state":"loaded","max_context_length":131072,
         "loaded_context_length":4096}]}"#;
    let expected = json!({
        "llama-3.1-8b": {"max_input_tokens": 4096},
        "qwen2-vl-7b": {"max_input_tokens": 32_768},
    });
    assert_eq!(facts_in(list), expected);
    let list = r#"{"models":[{"type":"llm","publisher":"google","key":"google/gemma-3",
        "loaded_instances":[{"id":"google/gemma-3","config":{"context_length":8192}}],
        "max_context_length":131072,"capabilities":{"vision":true,"trained_for_tool_use":false}}]}"#;
    let expected = json!({"google/gemma-3": {"max_input_tokens": 8192}});
    assert_eq!(facts_in(list), expected);
}

/// <https://ai.google.dev/api/models>
#[test]
fn gemini() {
    let list = r#"{"models":[{"name":"models/gemini-2.0-flash","version":"2.0",
        "displayName":"Gemini 2.0 Flash","inputTokenLimit":1048576,"outputTokenLimit":8192,
        "supportedGenerationMethods":["generateContent","countTokens"]}]}"#;
    let expected = json!({"gemini-2.0-flash": {
        "max_input_tokens": 1_048_576,
        "max_output_tokens": 8192,
    }});
    assert_eq!(facts_in(list), expected);
}

/// <https://platform.openai.com/docs/api-reference/models/list>
#[test]
fn openai_states_no_facts() {
    let list = r#"{"object":"list","data":[{"id":"gpt-4o","object":"model","created":1686935002,
        "owned_by":"organization-owner"}]}"#;
    assert_eq!(facts_in(list), json!({}));
}

#[test]
fn members_of_other_types_and_unknown_media_state_nothing() {
    let list = r#"{"data":[{"id":"m","context_length":"4096","max_model_len":0,"max_tokens":-1,
        "deprecation":"soon","expiration_date":null,"architecture":{
        "input_modalities":["text","smell"],"output_modalities":["text",1]}},
        {"context_length":1},"m",null]}"#;
    assert_eq!(facts_in(list), json!({}));
}

#[test]
fn other_documents_are_refused() {
    for (list, problem) in [
        ("<html>", "expected value at line 1 column 1"),
        (
            r#"{"error":{"message":"no"}}"#,
            "it is neither an array nor an object with 'data' or 'models'",
        ),
        (
            r#"{"data":{}}"#,
            "it is neither an array nor an object with 'data' or 'models'",
        ),
    ] {
        assert_eq!(upstream_list::read(list.as_bytes()).unwrap_err(), problem);
    }
}
