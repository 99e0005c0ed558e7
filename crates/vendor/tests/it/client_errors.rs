//! Clients of every protocol get each error that a vendor has published with a status, a
//! type, a code and words that the client's own vendor uses.

use engine::EngineError;
use serde_json::{Value, json};
use sluicegate_vendor::failure;
use sluicegate_vendor::{api_error, in_stream};
use wire::ApiError;

/// An error of a vendor, and its meaning. See `vendor-errors.json`.
#[derive(serde::Deserialize)]
struct Published {
    server: String,
    status: Option<u16>,
    body: Value,
    means: String,
    /// The lengths of the prompt and of the output, and the limit.
    #[serde(default)]
    sizes: [Option<u64>; 3],
}

/// The errors that come with a status, as a client of another protocol gets them.
fn translated() -> Vec<(Published, ApiError)> {
    let published: Vec<Published> = serde_json::from_str(crate::PUBLISHED).unwrap();
    let translated = published.into_iter().filter_map(|published| {
        let text = match &published.body {
            Value::String(text) => text.clone(),
            body => body.to_string(),
        };
        let error: EngineError = failure(published.status?, text.as_bytes(), None);
        let mut error = api_error(&error);
        error.forget_reported();
        Some((published, error))
    });
    translated.collect()
}

fn openai(error: &ApiError) -> (u16, Value) {
    (error.kind.status(), json!(error.body().error))
}

fn anthropic(error: &ApiError) -> (u16, Value) {
    let body = messages::ErrorBody::new(error, "req_1");
    (messages::status(error.kind), json!(body.error))
}

/// The status, the type and the code of OpenAI, and the status and the type of Anthropic, for each
/// meaning. The types and codes are from <https://platform.openai.com/docs/guides/error-codes> and
/// <https://docs.anthropic.com/en/api/errors>, but for two codes of the gateway's own:
/// `upstream_error` and `upstream_timeout`.
fn owed(means: &str) -> Vec<(u16, &str, &str, u16, &str)> {
    const INVALID: &str = "invalid_request_error";
    const NONE_OF_THE_CLIENTS: (u16, &str, &str, u16, &str) =
        (502, "server_error", "upstream_error", 502, "api_error");
    match means {
        "Invalid" | "Signature" => vec![(400, INVALID, "invalid_value", 400, INVALID)],
        "LongPrompt" => vec![(400, INVALID, "context_length_exceeded", 400, INVALID)],
        "AgainstPolicy" => vec![(400, INVALID, "content_policy_violation", 400, INVALID)],
        "TooLarge" => vec![(413, INVALID, "request_too_large", 413, "request_too_large")],
        "Rate" => vec![(
            429,
            "requests",
            "rate_limit_exceeded",
            429,
            "rate_limit_error",
        )],
        "Overload" => vec![(
            503,
            "server_error",
            "service_unavailable",
            529,
            "overloaded_error",
        )],
        // Clients know a used-up quota, and nothing else about the operator's account.
        "Account" => vec![
            NONE_OF_THE_CLIENTS,
            (
                429,
                "insufficient_quota",
                "insufficient_quota",
                429,
                "rate_limit_error",
            ),
        ],
        "Timeout" => vec![(
            504,
            "server_error",
            "upstream_timeout",
            504,
            "timeout_error",
        )],
        _ => vec![NONE_OF_THE_CLIENTS],
    }
}

#[test]
fn each_meaning_has_the_status_type_and_code_of_the_clients_vendor() {
    for (published, error) in translated() {
        let ((status, one), (other_status, other)) = (openai(&error), anthropic(&error));
        let word = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let (kind, code) = (word(&one, "type"), word(&one, "code"));
        let other_kind = word(&other, "type");
        let found = (status, &*kind, &*code, other_status, &*other_kind);
        let Published { server, body, .. } = &published;
        assert!(
            owed(&published.means).contains(&found),
            "{server}: {found:?}: {body}"
        );
    }
}

/// The sentences of the vendors for a prompt that is too long. Agents shorten the conversation when
/// they find them: <https://github.com/musistudio/claude-code-router/issues/1799>.
fn sentences([prompt, output, limit]: [Option<u64>; 3]) -> [String; 2] {
    match (prompt, output, limit) {
        (Some(prompt), _, Some(limit)) if prompt > limit => [
            format!(
                "This model's maximum context length is {limit} tokens. However, your messages \
                 resulted in {prompt} tokens. Please reduce the length of the messages."
            ),
            format!("prompt is too long: {prompt} tokens > {limit} maximum"),
        ],
        (Some(prompt), Some(output), Some(limit)) => [
            format!(
                "This model's maximum context length is {limit} tokens. However, you requested {} \
                 tokens ({prompt} in the messages, {output} in the completion). Please reduce the \
                 length of the messages or completion.",
                prompt + output
            ),
            format!(
                "input length and `max_tokens` exceed context limit: {prompt} + {output} > {limit}, \
                 decrease input length or `max_tokens` and try again"
            ),
        ],
        _ => [
            "Your input exceeds the context window of this model. Please adjust your input and try \
             again."
                .to_owned(),
            "prompt is too long".to_owned(),
        ],
    }
}

#[test]
fn too_long_prompt_error_has_the_words_that_agents_know() {
    let long = translated()
        .into_iter()
        .filter(|(error, _)| error.means == "LongPrompt");
    for (published, error) in long {
        for error in [in_stream(&error), error] {
            let found =
                [openai(&error), anthropic(&error)].map(|(_, error)| error["message"].clone());
            assert_eq!(found, sentences(published.sizes), "{}", published.body);
        }
    }
}

/// In a stream too, the words of the upstream's vendor do not take the place of the one code that
/// clients know.
#[test]
fn a_vendors_own_code_for_a_long_prompt_is_not_passed_on() {
    let body = json!({"error": {"code": "1261", "type": "theirs", "message": "Prompt exceeds max length"}});
    let error = api_error(&failure(400, body.to_string().as_bytes(), None));
    for error in [in_stream(&error), error] {
        let (_, found) = openai(&error);
        assert_eq!(found["code"], "context_length_exceeded");
        assert_eq!(found["type"], "invalid_request_error");
    }
}

/// The delay of a response without a `Retry-After` header is in its body:
/// <https://github.com/dcdpr/jp/pull/1061>,
/// <https://learn.microsoft.com/azure/ai-services/openai/how-to/quota>,
/// <https://platform.openai.com/docs/guides/rate-limits>.
#[test]
fn the_delay_of_a_retry_is_read_from_the_body() {
    let gemini = json!([{"error": {"code": 429, "message": "Resource has been exhausted (e.g. check quota).",
        "status": "RESOURCE_EXHAUSTED", "details": [
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "36.5s"}]}}]);
    let azure = json!({"error": {"code": "429", "message": "Requests to the ChatCompletions_Create Operation \
        have exceeded token rate limit. Please retry after 7 seconds."}});
    let openai = json!({"error": {"message": "Rate limit reached for gpt-4o on tokens per min (TPM): Limit \
        30000, Used 28000, Requested 4000. Please try again in 4.2s. Visit the page.",
        "type": "tokens", "param": null, "code": "rate_limit_exceeded"}});
    let overloaded = json!({"error": "Overloaded, please try again in 3s."});
    let after = |status, body: &Value, header| {
        let error = api_error(&failure(status, body.to_string().as_bytes(), header));
        error.retry_after.map(std::num::NonZeroU32::get)
    };
    for (status, body, owed) in [
        (429, &gemini, 37),
        (429, &azure, 7),
        (429, &openai, 5),
        (503, &overloaded, 3),
    ] {
        assert_eq!(after(status, body, None), Some(owed), "{body}");
        assert_eq!(after(status, body, Some(9)), Some(9), "{body}");
    }
}

/// Once content has begun. <https://platform.claude.com/docs/en/build-with-claude/streaming#error-events>
#[test]
fn an_overload_within_a_stream_stays_one() {
    let error = in_stream(&api_error(&failure(529, b"{}", None)));
    let sentence = "Our servers are currently overloaded. Please try again later.";
    let theirs = json!({"type": "overloaded_error", "message": "Overloaded"});
    assert_eq!(anthropic(&error), (529, theirs));
    let (_, ours) = openai(&error);
    let owed =
        json!({"type": "server_error", "code": "server_error", "message": sentence, "param": null});
    assert_eq!(ours, owed);
}

/// Clients retry `server_error`, which cannot help. Codex knows `invalid_prompt`:
/// <https://platform.openai.com/docs/api-reference/responses/object#responses/object-error>.
#[test]
fn policy_violation_in_a_stream_is_no_server_failure() {
    let body =
        json!({"error": {"message": "The response was filtered.", "code": "content_filter"}});
    let error = in_stream(&api_error(&failure(400, body.to_string().as_bytes(), None)));
    let sentence = "Invalid prompt: your prompt was flagged as potentially violating our usage policy. \
                    Please try again with a different prompt.";
    let (_, ours) = openai(&error);
    let owed = json!({"type": "invalid_request_error", "code": "invalid_prompt", "message": sentence, "param": null});
    assert_eq!(ours, owed);
    let sentence = "Output blocked by content filtering policy";
    let theirs = json!({"type": "invalid_request_error", "message": sentence});
    assert_eq!(anthropic(&error), (400, theirs));
}

/// <https://github.com/router-for-me/CLIProxyAPI/issues/1666>, <https://docs.bigmodel.cn/cn/api/api-code>
#[test]
fn a_used_up_plan_is_a_used_up_quota() {
    let codex = json!({"error": {"type": "usage_limit_reached", "message": "The usage limit has been reached",
        "plan_type": "plus", "resets_in_seconds": 529_498}});
    let zhipu = json!({"error": {"code": "1308", "message": "已达到 5 小时的使用上限。"}});
    for body in [codex, zhipu] {
        let error = api_error(&failure(429, body.to_string().as_bytes(), None));
        assert_eq!(
            (error.code, error.retry_after),
            ("insufficient_quota", None),
            "{body}"
        );
    }
}
