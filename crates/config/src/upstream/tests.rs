//! The problems of upstreams, word for word.

use super::*;
use crate::file::Config;

/// The problems of an upstream with these settings.
fn problems_of(settings: &str) -> String {
    let config = match Config::parse(&format!("[[upstreams]]\nname = \"u\"\n{settings}")) {
        Ok(config) => config,
        // Only the last line has the problem; the others show the place.
        Err(error) => return error.to_string().trim().lines().last().unwrap().to_owned(),
    };
    let upstream = &config.upstreams[0];
    match upstream.options(upstream.credential()) {
        Err(problems) => problems.join("; "),
        Ok(options) => ::upstream::Upstream::new(options)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default(),
    }
}

/// The same, with a protocol and a URL.
fn problems(settings: &str) -> String {
    problems_of(&format!(
        "protocol = \"chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n{settings}"
    ))
}

#[test]
fn the_source_of_a_key_is_one_of_three() {
    for (settings, problem) in [
        (
            "api_key = {}",
            "upstreams[0].api_key: one of 'env', 'file' and 'command' is needed",
        ),
        (
            "api_key = { env = \"A\", file = \"b\" }",
            "upstreams[0].api_key: one of 'env', 'file' and 'command' is needed",
        ),
        (
            "api_key = { env = \"A\", refresh = \"5m\" }",
            "upstreams[0].api_key: 'refresh' is only allowed with 'command'",
        ),
        (
            "api_key = { command = [] }",
            "upstreams[0].api_key: 'command' names no program; a list such as [\"az\", \"account\"] is accepted",
        ),
        (
            "api_key = { command = [\"cat\"], refresh = \"10ms\" }",
            "upstreams[0].api_key: 'refresh' is 10ms; 1s to 24h is accepted",
        ),
        (
            "api_key = { vault = \"x\" }",
            "upstreams[0].api_key.vault: unknown field `vault`, expected one of `env`, `file`, `command`, `refresh`",
        ),
        (
            "api_key = { command = [\"false\"] }",
            "api_key: the command 'false' has failed with exit status: 1",
        ),
        (
            "api_key = { command = [\"echo\", \"two words\"] }",
            "`api_key` is empty or has characters that a header cannot carry; visible ASCII characters are accepted.",
        ),
        (
            "api_key = { env = \"SURELY_NOT_SET\" }",
            "api_key: the environment has no variable 'SURELY_NOT_SET'",
        ),
        ("api_key = { command = [\"echo\", \"key\"] }", ""),
    ] {
        assert_eq!(problems(settings), problem, "{settings}");
    }
}

#[test]
fn only_responses_have_websockets() {
    assert_eq!(
        problems("websocket = true"),
        "websocket: an upstream of the protocol 'chat' has none; 'responses' has one"
    );
    let settings =
        "protocol = \"responses\"\nbase_url = \"https://a.example/v1\"\nwebsocket = true";
    assert_eq!(problems_of(settings), "");
    let config = Config::parse(&format!("[[upstreams]]\nname = \"u\"\n{settings}")).unwrap();
    assert_eq!(
        config.upstreams[0].describe(),
        "https://a.example/v1, without a key, over WebSocket for clients that use it"
    );
}

#[test]
fn the_header_of_the_key_is_checked() {
    let key = "api_key = { command = [\"echo\", \"key\"] }";
    for (settings, problem) in [
        (
            "auth = \"basic\"",
            "upstreams[0].auth: 'basic' is not known; \"bearer\", \"x-api-key\" and { header = \"api-key\" } are accepted",
        ),
        (
            "auth = { header = \"a b\" }",
            "upstreams[0].auth: 'a b' is not the name of a header; \"bearer\", \"x-api-key\" and { header = \"api-key\" } are accepted",
        ),
        (
            "auth = 7",
            "upstreams[0].auth: neither a word nor a table with only `header`; \"bearer\", \"x-api-key\" and { header = \"api-key\" } are accepted",
        ),
        (
            "auth = { header = \"api-key\", prefix = \"Key\" }",
            "upstreams[0].auth: neither a word nor a table with only `header`; \"bearer\", \"x-api-key\" and { header = \"api-key\" } are accepted",
        ),
        (
            "auth = { header = \"host\" }",
            "`auth` has the header `host`, which the gateway sets itself.",
        ),
        (
            "auth = { header = \"x-key\" }\nheaders = { X-Key = \"x\" }",
            "`headers` has `x-key`, which the gateway sets itself.",
        ),
        ("auth = { header = \"api-key\" }", ""),
    ] {
        assert_eq!(
            problems(&format!("{key}\n{settings}")),
            problem,
            "{settings}"
        );
    }
}

#[test]
fn headers_that_are_not_the_operators_are_refused() {
    for (settings, problem) in [
        (
            "headers = { \"a b\" = \"x\" }",
            "headers: 'a b' is not the name of a header",
        ),
        (
            "headers = { a = \"x\\ny\" }",
            "headers: the value of 'a' has characters that a header cannot carry",
        ),
        (
            "headers = { x-a = \"1\", X-A = \"2\" }",
            "headers: 'x-a' is set twice",
        ),
        (
            "headers = { Authorization = \"Bearer x\" }",
            "headers: 'Authorization' carries credentials; set 'api_key' and 'auth' instead",
        ),
        (
            "headers = { X-API-Key = \"x\" }",
            "headers: 'X-API-Key' carries credentials; set 'api_key' and 'auth' instead",
        ),
        (
            "auth = { header = \"api-key\" }\nheaders = { api-key = \"x\" }",
            "headers: 'api-key' carries credentials; set 'api_key' and 'auth' instead",
        ),
        (
            "headers = { x-goog-api-key = \"x\" }",
            "headers: 'x-goog-api-key' carries credentials; set 'api_key' and 'auth' instead",
        ),
        (
            "headers = { Connection = \"close\" }",
            "`headers` has `connection`, which the gateway sets itself.",
        ),
        (
            "pass_headers = [\"Set-Cookie\"]",
            "`pass_headers` has `set-cookie`, which is not passed on: it concerns the connection, the content or a session, or the gateway sets it itself.",
        ),
        (
            "pass_headers = [\"\"]",
            "pass_headers: '' is not the name of a header",
        ),
        (
            "headers = { OpenAI-Project = \"p-1\" }\npass_headers = [\"x-request-id\", \"x-ratelimit-reset\"]",
            "",
        ),
    ] {
        assert_eq!(problems(settings), problem, "{settings}");
    }
}

#[test]
fn the_url_of_a_proxy_is_checked() {
    for (settings, problem) in [
        (
            "proxy = \"10.0.0.1\"",
            "proxy: not a URL such as http://10.0.0.1:3128, and not \"env\"",
        ),
        (
            "proxy = \"socks5://10.0.0.1\"",
            "`proxy` has the scheme `socks5`; `http` is accepted.",
        ),
        (
            "proxy = \"http://me:secret@10.0.0.1\"",
            "proxy: a user or password is accepted in the environment only: set it to \"env\"",
        ),
        ("proxy = \"http://10.0.0.1:3128\"", ""),
    ] {
        assert_eq!(problems(settings), problem, "{settings}");
    }
}

#[test]
fn the_list_of_models_is_on_the_host_of_the_base_url() {
    let list = |settings: &str| {
        let settings = format!("name = \"u\"\nprotocol = \"chat\"\n{settings}");
        let mut upstream: Upstream = toml::from_str(&settings).unwrap();
        upstream.complete().unwrap();
        let options = upstream.options(Ok(None)).unwrap();
        let list = upstream.model_list_options(&options)?;
        Ok::<_, String>(list.map(|options| options.base_url.to_string()))
    };
    let base = "base_url = \"http://127.0.0.1:1234/v1\"\n";
    for (settings, url) in [
        ("", None),
        (
            "model_list = \"models\"",
            Some("http://127.0.0.1:1234/v1/models"),
        ),
        (
            "model_list = \"models?limit=1000\"",
            Some("http://127.0.0.1:1234/v1/models?limit=1000"),
        ),
        // https://lmstudio.ai/docs/developer/rest/endpoints
        (
            "model_list = \"/api/v0/models\"",
            Some("http://127.0.0.1:1234/api/v0/models"),
        ),
        (
            "model_list = \"models\"\nquirks = { path_prefix = \"/openai\" }",
            Some("http://127.0.0.1:1234/v1/openai/models"),
        ),
    ] {
        assert_eq!(list(&format!("{base}{settings}")).unwrap().as_deref(), url);
    }
    for (other, problem) in [
        (
            "http://127.0.0.1:1235/models",
            "model_list: 'http://127.0.0.1:1235/models' is not on the host of the base URL",
        ),
        (
            "//evil.example/models",
            "model_list: 'http://evil.example/models' is not on the host of the base URL",
        ),
        ("http://[", "model_list: 'http://[': invalid IPv6 address"),
    ] {
        let found = list(&format!("{base}model_list = \"{other}\""));
        assert_eq!(found.unwrap_err(), problem);
    }
}

#[test]
fn settings_missing_from_the_preset_are_required() {
    for (settings, problem) in [
        (
            "base_url = \"http://127.0.0.1:1\"",
            "upstream 'u': protocol: one of responses, chat, messages and images is needed, or a preset",
        ),
        (
            "protocol = \"chat\"",
            "upstream 'u': base_url: a URL such as https://host/v1 is needed",
        ),
        (
            "preset = \"aws\"",
            "upstream 'u': preset: 'aws' is not known; there are: anthropic, azure, bedrock, cerebras, deepseek, fireworks, gemini, groq, litellm, llama-cpp, lm-studio, mistral, moonshot, ollama, openai, openrouter, sglang, together, vertex, vllm, xai, zai",
        ),
        (
            "preset = \"azure\"",
            "upstream 'u': base_url: preset 'azure' needs one, such as https://RESOURCE.openai.azure.com/openai/v1",
        ),
        (
            "preset = \"bedrock\"\nprotocol = \"messages\"",
            "upstream 'u': base_url: preset 'bedrock' needs one, such as https://bedrock-mantle.us-east-1.api.aws/anthropic/v1",
        ),
        (
            "preset = \"groq\"\nprotocol = \"messages\"",
            "upstream 'u': protocol: preset 'groq' has chat, responses, not messages",
        ),
    ] {
        assert_eq!(problems_of(settings), problem, "{settings}");
    }
}

#[test]
fn quirks_are_checked() {
    for (settings, problem) in [
        (
            "quirks = { colour = true }",
            "upstream 'u': quirks: colour: unknown field `colour`, expected one of `no_stream_options`, `max_tokens_name`, `system_not_developer`, `drop_members`, `echo_reasoning`, `unsigned_thinking`, `tool_ids`, `no_parallel_tools`, `thinking`, `affinity_header`, `path_prefix`, `key_header`, `no_instructions_with_previous`",
        ),
        (
            "quirks = { max_tokens_name = \"limit\" }",
            "upstream 'u': quirks: max_tokens_name: unknown variant `limit`, expected `max_tokens` or `max_completion_tokens`",
        ),
        (
            "quirks = { tool_ids = \"short\" }",
            "upstream 'u': quirks: tool_ids: unknown variant `short`, expected one of `any`, `plain`, `alnum9`",
        ),
        (
            "quirks = { thinking = { \"claude-*\" = \"hard\" } }",
            "upstream 'u': quirks: thinking.claude-*: unknown variant `hard`, expected one of `adaptive`, `budget`, `off`",
        ),
        (
            "quirks = [\"no_stream_option\"]",
            "upstreams[0].quirks: is [\"no_stream_option\"], but must be a table such as { no_stream_options = true }, with some of no_stream_options, max_tokens_name, system_not_developer, drop_members, echo_reasoning, unsigned_thinking, tool_ids, no_parallel_tools, thinking, affinity_header, path_prefix, key_header, no_instructions_with_previous",
        ),
        (
            "quirks = { drop_members = [\"store\", \"model\"] }",
            "upstream 'u': quirks: drop_members: 'model' is needed by every request",
        ),
        (
            "quirks = { path_prefix = \"openai\" }",
            "upstream 'u': quirks: path_prefix: 'openai' is not a path such as \"/openai/v1\"",
        ),
        (
            "quirks = { affinity_header = \"host\" }",
            "upstream 'u': quirks: affinity_header: 'host' is not a header such as \"x-session-affinity\"",
        ),
        (
            "auth = \"bearer\"\nquirks = { key_header = \"api-key\" }",
            "upstream 'u': quirks: 'key_header' and 'auth' are the same; set one of them",
        ),
        (
            "quirks = { no_stream_options = true, drop_members = [\"store\"], thinking = \"off\", path_prefix = \"/a\", key_header = \"api-key\" }",
            "",
        ),
    ] {
        assert_eq!(problems(settings), problem, "{settings}");
    }
}

#[test]
fn settings_that_send_no_request_are_refused() {
    for (settings, problem) in [
        (
            "connect_timeout = \"0s\"",
            "`connect_timeout` is 0ns; a time above 0 and of a day at most is accepted.",
        ),
        (
            "head_timeout = \"0s\"",
            "`head_timeout` is 0ns; a time above 0 and of a day at most is accepted.",
        ),
        (
            "event_idle = \"25h\"",
            "`event_idle` is 90000s; a time above 0 and of a day at most is accepted.",
        ),
        (
            "max_tokens = 0",
            "upstream 'u': max_tokens: must be more than 0",
        ),
    ] {
        assert_eq!(problems(settings), problem, "{settings}");
    }
    let unnamed = "[[upstreams]]\nname = \"\"\nprotocol = \"chat\"\nbase_url = \"http://h\"";
    assert_eq!(
        Config::parse(unnamed).unwrap_err().to_string(),
        "upstreams[0].name: is empty, but must be a name by which targets refer to it"
    );
}

#[test]
fn a_base_url_without_the_path_of_its_protocol_is_needed() {
    for (path, problem) in [
        (
            "/v1/chat/completions",
            "base_url: 'http://h/v1/chat/completions' ends in '/chat/completions', which is appended to it: leave that out",
        ),
        (
            "/openai/v1/responses/",
            "base_url: 'http://h/openai/v1/responses/' ends in '/responses', which is appended to it: leave that out",
        ),
        ("/v1", ""),
        ("/messages", ""),
    ] {
        let settings = format!("protocol = \"chat\"\nbase_url = \"http://h{path}\"");
        assert_eq!(problems_of(&settings), problem);
    }
}

#[test]
fn descriptions_have_no_key_of_a_url() {
    let text = "[[upstreams]]\nname = \"u\"\nprotocol = \"chat\"\n\
                base_url = \"https://h/v1?key=secret\"\n\
                fallback_base_url = \"https://me:secret@h/v1?api-version=1&key=secret\"";
    let config = Config::parse(text).unwrap();
    let settings = config.upstreams[0].to_toml();
    assert!(
        settings.contains("\nbase_url = \"https://h/v1?key=…\"\n"),
        "{settings}"
    );
    assert_eq!(
        config.upstreams[0].describe(),
        "https://h/v1?key=…, then https://…@h/v1?api-version=…&key=…, without a key"
    );
}

/// Each setting of the operator replaces the same setting of the preset.
#[test]
fn own_settings_override_the_preset() {
    let config = Config::parse(
        r#"
        [[upstreams]]
        name = "u"
        preset = "mistral"
        base_url = "https://proxy.example/mistral"
        api_key = { file = "/run/key" }
        auth = { header = "x-key" }
        quirks = { tool_ids = "any", path_prefix = "/v1" }
        "#,
    )
    .unwrap();
    let upstream = &config.upstreams[0];
    assert_eq!(
        upstream.to_toml(),
        r#"protocol = "chat"
base_url = "https://proxy.example/mistral"
api_key = { file = "/run/key" }
auth = { header = "x-key" }
quirks = { drop_members = ["logit_bias", "logprobs", "prompt_cache_retention", "safety_identifier", "seed", "service_tier", "store", "top_logprobs", "user", "verbosity"], max_tokens_name = "max_tokens", no_stream_options = true, path_prefix = "/v1", system_not_developer = true, tool_ids = "any" }
"#
    );
    let key = Credential::x_api_key("key").unwrap();
    let base_url = upstream.options(Ok(Some(key))).unwrap().base_url;
    assert_eq!(base_url.as_str(), "https://proxy.example/mistral/v1");
}

/// A model may think in silence for minutes, and a stream may take an hour.
#[test]
fn silence_and_long_streams_have_time_by_default() {
    let config = Config::parse(
        r#"
        [[upstreams]]
        name = "u"
        protocol = "chat"
        base_url = "https://house.example/v1"
        "#,
    )
    .unwrap();
    let options = config.upstreams[0].options(Ok(None)).unwrap();
    assert_eq!(options.event_idle, Duration::from_secs(300));
    assert_eq!(config.limits.stream_timeout, Duration::from_secs(3600));
}

#[test]
fn former_settings_are_unknown() {
    for settings in [
        "[local]\nthreads = 1",
        "[easel]\nthreads = 1",
        "[[upstreams]]\nname = \"u\"\nbase_url = \"http://127.0.0.1:1\"\nrepair = false",
    ] {
        let error = Config::parse(settings).unwrap_err().to_string();
        assert!(error.contains("unknown field"), "{settings}: {error}");
    }
}
