//! The settings of an upstream: its headers, its key, and its deviations from the protocol.

use std::fs;

use serde_json::{Value, json};
use simulator::{Play, Protocol, Request as Asked, Simulator, honest};
use testkit::log;
use testkit::requests::{ask, path};
use testkit::upstreams::closed_port;
use testkit::{CLIENT_KEY, Config, Gateway, Request, Response, await_that};

use crate::GATEWAY;

/// An honest answer with additional headers.
fn with_headers(request: &Asked, headers: &[(&str, &str)]) -> Play {
    let content_type = if request.streams() {
        "text/event-stream"
    } else {
        "application/json"
    };
    let mut all = vec![("content-type", content_type)];
    all.extend(headers);
    Play::answer(200, &all, honest::answer(request).body_bytes())
}

/// A gateway whose model `mine` is served by this upstream, with these settings as lines of TOML.
fn before(protocol: Protocol, base_url: &str, settings: &str) -> Gateway {
    Config::new("")
        .upstream("only", protocol, base_url, settings)
        .model("mine", protocol, r#"[{ upstream = "only" }]"#)
        .start(GATEWAY)
}

fn hello(gateway: &Gateway, client: Protocol, stream: bool) -> Response {
    let response = gateway.ask(client, &ask(client, "mine", "Hello.", stream));
    assert_eq!(response.status, 200, "{}", response.text());
    response
}

/// The operator's headers and key go to the upstream with each request, relayed or translated, and
/// headers of clients replace none of them.
#[test]
fn fixed_headers_and_the_header_of_the_key_are_sent() {
    let simulator = Simulator::honest().unwrap();
    let settings = r#"
        auth = { header = "api-key" }
        headers = { "OpenAI-Project" = "p-1", "anthropic-version" = "2099-01-01" }
    "#;
    for upstream in [Protocol::Messages, Protocol::Chat] {
        let gateway = before(upstream, &simulator.base_url(), settings);
        for client in [Protocol::Messages, Protocol::Chat] {
            let request = Request::post(path(client), &ask(client, "mine", "Hello.", false))
                .bearer(CLIENT_KEY)
                .header("anthropic-version", "2023-06-01")
                .header("openai-project", "p-2")
                .header("api-key", "k-2");
            assert_eq!(request.send(gateway.address()).status, 200);
            let asked = simulator.requests().pop().unwrap();
            let values = |name: &str| {
                let all = asked.headers.iter().filter(|(found, _)| found == name);
                all.map(|(_, value)| value.as_str()).collect::<Vec<_>>()
            };
            assert_eq!(values("api-key"), ["simulator-secret"], "{asked:?}");
            assert_eq!(values("openai-project"), ["p-1"]);
            assert_eq!(values("anthropic-version"), ["2099-01-01"]);
            assert_eq!(values("authorization"), [""; 0]);
        }
    }
}

/// Clients get the response headers that the operator has named, on both roads, streamed and plain,
/// and no others. The upstream's id of the request is in the log in any case.
#[test]
fn named_headers_are_passed_on_and_the_id_is_logged() {
    let headers = [
        ("x-request-id", "req_theirs"),
        ("openai-processing-ms", "17"),
        ("openai-organization", "org-simulator-secret"),
    ];
    let simulator = Simulator::start(move |request| with_headers(request, &headers)).unwrap();
    let settings = r#"pass_headers = ["openai-processing-ms", "x-absent"]"#;
    let gateway = before(Protocol::Chat, &simulator.base_url(), settings);
    for client in [Protocol::Chat, Protocol::Messages, Protocol::Responses] {
        for stream in [false, true] {
            let response = hello(&gateway, client, stream);
            assert_eq!(response.header("openai-processing-ms"), Some("17"));
            assert_eq!(response.header("openai-organization"), None);
            assert!(response.header("x-request-id").unwrap().len() > 20);
            let line = log::line(&gateway, &response);
            assert_eq!(line["upstream_request_id"], "req_theirs", "{line}");
        }
    }
    let gateway = before(
        Protocol::Images,
        &simulator.base_url(),
        r#"pass_headers = ["x-request-id"]"#,
    );
    let body = json!({"model": "mine", "prompt": "A boat."});
    let response = gateway.ask(Protocol::Images, &body);
    assert_eq!(response.status, 200);
    assert_eq!(response.header("x-request-id"), Some("req_theirs"));
    assert_eq!(
        response
            .headers
            .iter()
            .filter(|(name, _)| name == "x-request-id")
            .count(),
        1
    );
}

/// The id of a failed request is in the log as well.
#[test]
fn the_id_of_a_failure_is_logged() {
    let fail = |_: &Asked| Play::answer(401, &[("request-id", "req_refused")], "{}");
    let simulator = Simulator::start(fail).unwrap();
    let gateway = before(Protocol::Messages, &simulator.base_url(), "");
    let body = ask(Protocol::Chat, "mine", "Hello.", false);
    assert_eq!(gateway.ask(Protocol::Chat, &body).status, 502);
    let find = || {
        let log = gateway.log.lock().unwrap();
        log.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .any(|line| {
                line["message"] == "upstream request failed"
                    && line["upstream_request_id"] == "req_refused"
            })
    };
    await_that("the failure is in the log", find);
}

/// With `env` the proxy of the environment is used, but for the hosts of `NO_PROXY`.
#[test]
fn the_proxy_of_the_environment_is_used() {
    let simulator = Simulator::honest().unwrap();
    let closed = closed_port();
    let proxy = format!("http://{}", closed.local_addr().unwrap());
    let status = |variables: &[(&str, &str)]| {
        let mut command = GATEWAY.command();
        for name in ["HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"] {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
        let gateway = Config::new("")
            .upstream(
                "only",
                Protocol::Chat,
                &simulator.base_url(),
                r#"proxy = "env""#,
            )
            .model("mine", Protocol::Chat, r#"[{ upstream = "only" }]"#)
            .start_by(GATEWAY, command);
        let body = ask(Protocol::Chat, "mine", "Hello.", false);
        gateway.ask(Protocol::Chat, &body).status
    };
    assert_eq!(status(&[]), 200);
    assert_eq!(status(&[("HTTP_PROXY", &proxy)]), 502);
    let without_scheme = proxy.trim_start_matches("http://");
    assert_eq!(status(&[("HTTP_PROXY", without_scheme)]), 502);
    for list in ["10.0.0.1, 127.0.0.1", "localhost 127.0.0.0/8"] {
        let variables = [("http_proxy", proxy.as_str()), ("NO_PROXY", list)];
        assert_eq!(status(&variables), 200, "{list}");
    }
}

/// A relayed request is edited for the deviations of the server, and dropped fields are named.
#[test]
fn relayed_requests_are_edited_for_the_server() {
    let simulator = Simulator::honest().unwrap();
    let gateway = before(Protocol::Chat, &simulator.base_url(), QUIRKS);
    let body = json!({
        "model": "mine",
        "max_tokens": 7,
        "logprobs": false,
        "parallel_tool_calls": true,
        "messages": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hello."}],
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    let response = gateway.ask(Protocol::Chat, &body);
    assert_eq!(response.status, 200, "{}", response.text());
    let dropped = response.header("x-sluicegate-dropped");
    assert_eq!(
        dropped,
        Some("logprobs, stream_options, parallel_tool_calls")
    );
    let asked = simulator.requests().pop().unwrap();
    assert_eq!(asked.path, "/v1/extra/chat/completions");
    let expected = json!({
        "model": "mine",
        "max_completion_tokens": 7,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello."}],
        "stream": true,
    });
    assert_eq!(asked.json(), expected);

    // The gateway adds no options of the stream for its own log.
    let mut body = ask(Protocol::Chat, "mine", "Hello.", true);
    body.as_object_mut().unwrap().remove("stream_options");
    let response = gateway.ask(Protocol::Chat, &body);
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.header("x-sluicegate-dropped"), None);
    let asked = simulator.requests().pop().unwrap().json();
    assert_eq!(asked.get("stream_options"), None, "{asked}");
}

/// So is a translated one.
#[test]
fn translated_requests_are_edited_for_the_server() {
    let simulator = Simulator::honest().unwrap();
    let gateway = before(Protocol::Chat, &simulator.base_url(), QUIRKS);
    let body = json!({"model": "mine", "max_output_tokens": 77, "input": "Hello.", "stream": true});
    let response = gateway.ask(Protocol::Responses, &body);
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.header("x-sluicegate-dropped"), None);
    let asked = simulator.requests().pop().unwrap().json();
    assert_eq!(asked["max_completion_tokens"], 77, "{asked}");
    assert_eq!(asked.get("max_tokens"), None);
    assert_eq!(asked.get("stream_options"), None);
}

/// A translated request has the form of thinking and of the ids of calls that the server accepts.
#[test]
fn translated_requests_have_the_form_of_the_server() {
    let simulator = Simulator::honest().unwrap();
    let body = json!({
        "model": "mine",
        "reasoning_effort": "high",
        "max_tokens": 4096,
        "messages": [
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "tool_calls": [{"id": "call_of_another_server", "type": "function", "function": {"name": "now", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_of_another_server", "content": "12:00"},
        ],
    });
    let sent = |protocol, settings: &str, client, body: &Value| {
        let gateway = before(protocol, &simulator.base_url(), settings);
        let response = gateway.ask(client, body);
        assert_eq!(response.status, 200, "{}", response.text());
        simulator.requests().pop().unwrap().json()
    };
    for (thinking, expected) in [
        (r#""off""#, Value::Null),
        (r#"{ "mine" = "adaptive", "*" = "off" }"#, json!("adaptive")),
    ] {
        let settings = format!("quirks = {{ thinking = {thinking} }}");
        let asked = sent(Protocol::Messages, &settings, Protocol::Chat, &body);
        assert_eq!(asked["thinking"]["type"], expected, "{asked}");
    }
    let body = json!({
        "model": "mine",
        "input": [
            {"role": "user", "content": "Hello."},
            {"type": "function_call", "call_id": "call_of_another_server", "name": "now", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_of_another_server", "output": "12:00"},
        ],
    });
    let settings = "quirks = { tool_ids = \"alnum9\", echo_reasoning = true }";
    let asked = sent(Protocol::Chat, settings, Protocol::Responses, &body);
    let id = asked["messages"][1]["tool_calls"][0]["id"]
        .as_str()
        .unwrap();
    assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    assert_eq!(asked["messages"][2]["tool_call_id"], id);
    assert_eq!(asked["messages"][1]["reasoning_content"], "", "{asked}");
}

/// All requests of a conversation have the same value in the affinity header; requests of another
/// conversation have a different value.
#[test]
fn a_conversation_is_bound_to_a_server() {
    let simulator = Simulator::honest().unwrap();
    let gateway = before(Protocol::Chat, &simulator.base_url(), QUIRKS);
    let value = |client: Protocol, text: &str, more: &Value| {
        let mut body = ask(client, "mine", text, false);
        let members = more.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(members);
        let response = gateway.ask(client, &body);
        assert_eq!(response.status, 200, "{}", response.text());
        let asked = simulator.requests().pop().unwrap();
        asked.header("x-session-affinity").unwrap().to_owned()
    };
    let first = value(Protocol::Chat, "Hello.", &json!({}));
    assert!(first.len() == 16 && first.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(value(Protocol::Chat, "Hello.", &json!({"n": 1})), first);
    assert_ne!(value(Protocol::Chat, "Goodbye.", &json!({})), first);
    let user = json!({"metadata": {"user_id": "u-1"}});
    let of_user = value(Protocol::Messages, "Hello.", &user);
    assert_eq!(value(Protocol::Messages, "Goodbye.", &user), of_user);
}

/// Every quirk that changes the form of requests.
const QUIRKS: &str = r#"quirks = { max_tokens_name = "max_completion_tokens", no_stream_options = true, system_not_developer = true, drop_members = ["logprobs"], no_parallel_tools = true, affinity_header = "x-session-affinity", path_prefix = "/extra" }"#;

/// A gateway whose upstream takes the key that a command prints: the content of a file.
struct Commanded {
    gateway: Gateway,
    key: testkit::Scratch,
}

impl Commanded {
    fn before(simulator: &Simulator, refresh: &str) -> Self {
        let key = GATEWAY.file("token", "token-1\n");
        let config = Config::new("")
            .keyless("only", Protocol::Chat, &simulator.base_url())
            .model("mine", Protocol::Chat, r#"[{ upstream = "only" }]"#)
            .text("".as_ref());
        let command = format!(
            "api_key = {{ command = [\"cat\", \"{}\"], refresh = \"{refresh}\" }}\n[[models]]",
            key.0.display()
        );
        let gateway = GATEWAY.configured(&config.replacen("[[models]]", &command, 1));
        Self { gateway, key }
    }

    fn ask(&self) -> u16 {
        let body = ask(Protocol::Chat, "mine", "Hello.", false);
        self.gateway.ask(Protocol::Chat, &body).status
    }

    fn refreshes(&self, outcome: &str) -> f64 {
        let name = "sluicegate_key_refreshes_total{upstream=\"only\",outcome=";
        self.gateway.sum(&format!("{name}\"{outcome}\"}}"))
    }
}

fn last_key(simulator: &Simulator) -> String {
    let asked = simulator.requests().pop().unwrap();
    asked.header("authorization").unwrap().to_owned()
}

/// A key that a command prints is refreshed while the gateway serves. When the command fails, the
/// previous key stays, and the failure is logged without the key and counted.
#[test]
fn a_key_from_a_command_is_refreshed() {
    let simulator = Simulator::honest().unwrap();
    let commanded = Commanded::before(&simulator, "1s");
    assert_eq!(commanded.ask(), 200);
    assert_eq!(last_key(&simulator), "Bearer token-1");
    fs::write(&commanded.key.0, "token-2").unwrap();
    await_that("the new key is sent", || {
        commanded.ask() == 200 && last_key(&simulator) == "Bearer token-2"
    });
    assert!(commanded.refreshes("succeeded") >= 1.0);

    fs::remove_file(&commanded.key.0).unwrap();
    await_that("a refresh has failed", || {
        commanded.refreshes("failed") >= 1.0
    });
    assert_eq!(commanded.ask(), 200);
    assert_eq!(last_key(&simulator), "Bearer token-2");
    let is_logged = || {
        let log = commanded.gateway.log.lock().unwrap();
        log.lines().any(|line| {
            line.contains("key refresh failed, keeping the previous key")
                && line.contains("api_key: the command 'cat' has failed with exit status: 1: cat: ")
        })
    };
    await_that("the failure is logged", is_logged);
    assert!(!commanded.gateway.log.lock().unwrap().contains("token-"));
}

/// A key that the upstream rejects is refreshed at once, and so is every key after a reload.
#[test]
fn a_rejected_key_is_refreshed_early() {
    let simulator = Simulator::start(|request: &Asked| {
        if request.header("authorization") == Some("Bearer token-1") {
            return Play::json(401, &json!({"error": {"message": "Expired."}}));
        }
        honest::answer(request)
    })
    .unwrap();
    let commanded = Commanded::before(&simulator, "24h");
    fs::write(&commanded.key.0, "token-2").unwrap();
    assert_eq!(commanded.ask(), 502);
    await_that("the new key is sent", || commanded.ask() == 200);
    assert_eq!(last_key(&simulator), "Bearer token-2");

    fs::write(&commanded.key.0, "token-3").unwrap();
    commanded.gateway.signal("HUP");
    await_that("the key after the reload is sent", || {
        commanded.ask() == 200 && last_key(&simulator) == "Bearer token-3"
    });
}
