//! The tables of errors, for errors that take more than a request: an upstream, a limit, a slow
//! client, a shutdown.

use std::io::Write as _;
use std::sync::atomic::Ordering;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use simulator::{Play, Protocol, Request, Simulator, honest, scenario};
use testkit::requests::{PROTOCOLS, TEXT_PROTOCOLS, ask, protocol_name};
use testkit::rows::Table;
use testkit::upstreams::{FaultTest, Lane, PATIENT, lanes, request};
use testkit::{CLIENT_KEY, Config, Connection, Gateway, Response, await_that};

use crate::GATEWAY;

/// Upstream failures, the concurrency limit, a slow upload and the shutdown are reported exactly as
/// in the tables of errors.
#[test]
fn j06_each_error_of_an_upstream_has_exactly_this_body() {
    let (openai, messages) = (
        lanes_of(|client| client != Protocol::Messages),
        lanes_of(|client| client == Protocol::Messages),
    );
    Table::openai().check_scenes(&[
        ("slow upload", slow_upload(&openai)),
        (
            "non-streaming request over the concurrency limit",
            over_the_limit(&openai),
        ),
        ("upstream failure", played("html-200", &openai)),
        ("draining", draining(&openai)),
        ("upstream timeout", played("stall-head", &openai)),
    ]);
    Table::messages().check_scenes(&[
        ("over the concurrency limit", over_the_limit(&messages)),
        ("upstream timeout", played("stall-head", &messages)),
        ("upstream overloaded", played("status-529", &messages)),
    ]);
}

fn lanes_of(client: impl Fn(Protocol) -> bool) -> Vec<Lane> {
    lanes()
        .into_iter()
        .filter(|lane| client(lane.client))
        .collect()
}

/// Responses to requests for a plain reply and for a stream before an upstream that plays this
/// scenario.
fn played(name: &str, lanes: &[Lane]) -> Vec<Response> {
    let scenario = scenario::named(name).unwrap();
    let test = FaultTest::playing(
        GATEWAY,
        move |request| scenario.play(request),
        "request_timeout = \"500ms\"",
        "head_timeout = \"100ms\"",
    );
    let both = lanes
        .iter()
        .flat_map(|lane| [false, true].map(|stream| test.ask(*lane, stream).response))
        .collect();
    test.end();
    both
}

/// Responses to requests for a plain reply while the only permit is out.
fn over_the_limit(lanes: &[Lane]) -> Vec<Response> {
    let gated = |request: &Request| Play::new().gate().then(honest::answer(request));
    let test = FaultTest::playing(
        GATEWAY,
        gated,
        "concurrency = 1\nconcurrency_per_key = 1",
        PATIENT,
    );
    let mut holder = test.open(lanes[0], false);
    test.await_requests(1);
    let over = lanes
        .iter()
        .map(|lane| test.ask(*lane, false).response)
        .collect();
    test.simulator.release_all();
    assert_eq!(holder.response().status, 200);
    test.end();
    over
}

/// Responses to requests whose bodies stop in the middle. Their connections are closed.
fn slow_upload(lanes: &[Lane]) -> Vec<Response> {
    let test = FaultTest::playing(GATEWAY, honest::answer, "body_idle = \"200ms\"", PATIENT);
    let slow = |lane: &Lane| {
        test.sent.fetch_add(1, Ordering::Relaxed);
        let mut connection = Connection::open(test.gateway.address());
        let whole = request(*lane, false, "Hello.").bytes();
        connection.send(&whole[..whole.len() - 5]);
        let response = connection.response();
        assert!(connection.is_closed());
        response
    };
    let given_up = lanes.iter().map(slow).collect();
    assert_eq!(
        test.simulator.requests().len(),
        0,
        "no upstream request was sent"
    );
    test.end();
    given_up
}

/// Responses to requests that have no response yet when the process exits.
fn draining(lanes: &[Lane]) -> Vec<Response> {
    let limits = "lame_duck = \"1ms\"\ndrain = \"100ms\"";
    let mut test = FaultTest::playing(GATEWAY, |_| Play::new().hold(), limits, PATIENT);
    let open: Vec<_> = lanes
        .iter()
        .flat_map(|lane| [false, true].map(|stream| test.open(*lane, stream)))
        .collect();
    test.await_requests(open.len());
    test.gateway.signal("TERM");
    let cut = open
        .into_iter()
        .map(|mut connection| connection.response())
        .collect();
    assert_eq!(test.gateway.wait().code(), Some(0));
    cut
}

/// A gateway whose model `mine` has an upstream that answers each request with this error, and then
/// a conforming one if there is a second.
fn failing(
    protocol: Protocol,
    (status, headers, body): (u16, &[(&str, &str)], &[u8]),
    second: Option<&Simulator>,
) -> (Gateway, Simulator) {
    let own = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let (headers, body): (Vec<_>, _) = (own.collect(), body.to_vec());
    let play = move |_: &Request| {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        Play::answer(status, &headers.collect::<Vec<_>>(), body.clone())
    };
    let first = Simulator::start(play).unwrap();
    let passed = r#"pass_headers = ["x-theirs"]"#;
    let mut config = Config::new("").upstream("one", protocol, &first.base_url(), passed);
    if let Some(second) = second {
        config = config.upstream("two", protocol, &second.base_url(), "");
    }
    let targets = match second {
        Some(_) => r#"[{ upstream = "one" }, { upstream = "two" }]"#,
        None => r#"[{ upstream = "one" }]"#,
    };
    (
        config.model("mine", protocol, targets).start(GATEWAY),
        first,
    )
}

/// The response to a client of this protocol.
fn answer(gateway: &Gateway, client: Protocol, stream: bool) -> Response {
    gateway.ask(client, &ask(client, "mine", "Hello.", stream))
}

/// Waits for a line of the log about a failure of the upstream as an error.
fn await_error(gateway: &Gateway, cause: &str) {
    await_that("the failure is logged as an error", || {
        let log = gateway.log.lock().unwrap();
        let mut lines = log
            .lines()
            .filter(|line| line.contains("upstream request failed"));
        lines.any(|line| line.contains(r#""level":"ERROR""#) && line.contains(cause))
    });
}

fn is_logged_as_failure(gateway: &Gateway) -> bool {
    gateway.await_quiet();
    gateway
        .log
        .lock()
        .unwrap()
        .contains("upstream request failed")
}

/// An error of the operator's account is a 502 without its words, and the next target is tried. See
/// <https://docs.anthropic.com/en/api/errors>, <https://help.aliyun.com/zh/model-studio/error-code>,
/// <https://console.groq.com/docs/errors>
#[test]
fn u23_an_error_of_the_account_is_the_operators() {
    let chat = |message: &str, code: &str| json!({"error": {"message": message, "code": code}});
    for (status, body) in [
        (
            400,
            json!({"type": "error", "error": {"type": "invalid_request_error",
            "message": "This organization has been disabled."}}),
        ),
        (
            400,
            json!({"type": "error", "error": {"type": "invalid_request_error",
            "message": "Your credit balance is too low to access the Anthropic API."}}),
        ),
        (
            400,
            chat(
                "Access denied, please make sure your account is in good standing.",
                "Arrearage",
            ),
        ),
        (
            400,
            chat(
                "Organization has been restricted.",
                "organization_restricted",
            ),
        ),
        (402, chat("Insufficient Balance", "invalid_request_error")),
        (
            403,
            chat(
                "Your team has used all available credits.",
                "permission-denied",
            ),
        ),
    ] {
        let error = (status, &[][..], body.to_string().into_bytes());
        let (gateway, _simulator) = failing(Protocol::Chat, (error.0, error.1, &error.2), None);
        for (client, stream) in [
            (Protocol::Chat, false),
            (Protocol::Chat, true),
            (Protocol::Messages, false),
        ] {
            let got = answer(&gateway, client, stream);
            assert_eq!(got.status, 502, "{body}");
            assert_eq!(got.header("x-should-retry"), Some("false"));
            let message = got.json()["error"]["message"].clone();
            assert_eq!(message, "The upstream returned an invalid reply.");
        }
        await_error(&gateway, "account disabled or without credit");
        let second = Simulator::honest().unwrap();
        let (gateway, _simulator) =
            failing(Protocol::Chat, (error.0, error.1, &error.2), Some(&second));
        assert_eq!(answer(&gateway, Protocol::Chat, true).status, 200, "{body}");
    }
}

/// A used-up quota of the operator is a 429 that is not to be retried. See
/// <https://platform.openai.com/docs/guides/error-codes>,
/// <https://platform.moonshot.ai/docs/api/chat>
#[test]
fn u23_a_used_up_quota_is_not_to_be_retried() {
    let message = "You exceeded your current quota, please check your plan and billing details.";
    for error in [
        json!({"message": message, "type": "insufficient_quota", "code": "insufficient_quota"}),
        json!({"message": "Your account is suspended", "type": "exceeded_current_quota_error"}),
    ] {
        let body = json!({ "error": error }).to_string();
        let failure = (429, &[("retry-after", "3")][..], body.as_bytes());
        let (gateway, _simulator) = failing(Protocol::Chat, failure, None);
        for client in [Protocol::Chat, Protocol::Responses] {
            let got = answer(&gateway, client, true);
            assert_eq!(got.status, 429, "{body}");
            assert_eq!(got.json()["error"]["code"], "insufficient_quota");
            assert_eq!(got.json()["error"]["message"], message);
            assert_eq!(got.header("x-should-retry"), Some("false"));
            assert_eq!(got.header("retry-after"), None);
        }
        await_error(&gateway, "account disabled or without credit");
    }
    let limited =
        json!({"error": {"message": "Rate limit reached.", "code": "rate_limit_exceeded"}});
    let limited = limited.to_string();
    let failure = (429, &[("retry-after", "3")][..], limited.as_bytes());
    let (gateway, _simulator) = failing(Protocol::Chat, failure, None);
    let got = answer(&gateway, Protocol::Chat, true);
    assert_eq!((got.status, got.header("retry-after")), (429, Some("3")));
    assert_eq!(got.header("x-should-retry"), None);
}

/// Content against a policy is a 400, with any status of the upstream, and is tried nowhere else. See
/// <https://docs.x.ai/docs/key-information/debugging>, <https://openrouter.ai/docs/api-reference/errors>
#[test]
fn u23_content_against_a_policy_is_tried_nowhere_else() {
    for (status, body) in [
        (
            403,
            json!({"code": "The caller does not have permission to execute the specified operation",
            "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"}),
        ),
        (
            403,
            json!({"error": {"code": 403, "message": "x/y requires moderation on OpenRouter. Your \
            input was flagged for \"violence\"."}}),
        ),
        (
            451,
            json!({"error": {"type": "censorship_blocked", "message": "Blocked."}}),
        ),
        (
            500,
            json!({"error": {"code": "sensitive_words_detected", "message": "Blocked."}}),
        ),
    ] {
        let second = Simulator::honest().unwrap();
        let body = body.to_string();
        let failure = (status, &[][..], body.as_bytes());
        let (gateway, _simulator) = failing(Protocol::Chat, failure, Some(&second));
        let got = answer(&gateway, Protocol::Messages, false);
        assert_eq!(got.status, 400, "{body}");
        assert_eq!(got.json()["error"]["type"], "invalid_request_error");
        let got = answer(&gateway, Protocol::Responses, true);
        assert_eq!(
            got.json()["error"]["code"],
            "content_policy_violation",
            "{body}"
        );
        assert_eq!(second.requests().len(), 0);
        assert!(!is_logged_as_failure(&gateway));
    }
}

/// A prompt that is too long goes to the next target, in the words of any server. See
/// <https://github.com/ggml-org/llama.cpp/pull/15780>,
/// <https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/546>
#[test]
fn u23_a_prompt_too_long_for_a_server_goes_to_the_next() {
    for (status, body) in [
        (
            400,
            json!({"error": {"code": 400, "type": "exceed_context_size_error", "n_ctx": 4096,
            "message": "the request exceeds the available context size, try increasing it"}}),
        ),
        (
            500,
            json!({"error": {"code": 500, "type": "server_error",
            "message": "Context size has been exceeded."}}),
        ),
        (
            400,
            json!({"error": "Trying to keep the first 9000 tokens when context the overflows."}),
        ),
        (
            400,
            json!({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw":
            "{\"error\":{\"message\":\"prompt is too long: 210000 tokens > 200000 maximum\"}}"}}}),
        ),
    ] {
        let body = body.to_string();
        let failure = (status, &[][..], body.as_bytes());
        let second = Simulator::honest().unwrap();
        let (gateway, _simulator) = failing(Protocol::Chat, failure, Some(&second));
        for client in [Protocol::Chat, Protocol::Messages] {
            assert_eq!(answer(&gateway, client, true).status, 200, "{body}");
        }
        let (gateway, _simulator) = failing(Protocol::Chat, failure, None);
        let got = answer(&gateway, Protocol::Responses, false);
        assert_eq!(got.status, 400, "{body}");
        assert_eq!(got.json()["error"]["code"], "context_length_exceeded");
    }
}

/// Claude Code compacts its conversation when it finds the words of Messages, and asks for a shorter
/// answer when the output alone is too long. See <https://github.com/musistudio/claude-code-router/issues/1799>,
/// <https://github.com/anthropics/claude-code/issues/476>.
#[test]
fn a_prompt_too_long_is_told_in_the_words_of_the_client() {
    for (theirs, openai, messages) in [
        (
            "This model's maximum context length is 32768 tokens. However, your prompt contains 40000 input tokens.",
            "This model's maximum context length is 32768 tokens. However, your messages resulted in 40000 tokens. \
             Please reduce the length of the messages.",
            "prompt is too long: 40000 tokens > 32768 maximum",
        ),
        (
            "input length and `max_tokens` exceed context limit: 196655 + 21333 > 200000, decrease input length \
             or `max_tokens` and try again",
            "This model's maximum context length is 200000 tokens. However, you requested 217988 tokens \
             (196655 in the messages, 21333 in the completion). Please reduce the length of the messages or \
             completion.",
            "input length and `max_tokens` exceed context limit: 196655 + 21333 > 200000, decrease input length \
             or `max_tokens` and try again",
        ),
        (
            "Prompt exceeds max length",
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            "prompt is too long",
        ),
    ] {
        let body =
            json!({"error": {"message": theirs, "type": "their_type", "code": "their_code"}});
        let body = body.to_string();
        for upstream in TEXT_PROTOCOLS {
            let (gateway, _simulator) = failing(upstream, (400, &[], body.as_bytes()), None);
            for (client, stream) in TEXT_PROTOCOLS
                .iter()
                .flat_map(|client| [(*client, false), (*client, true)])
            {
                let got = answer(&gateway, client, stream);
                assert_eq!(got.status, 400, "{upstream:?} {client:?}: {}", got.text());
                let error = &got.json()["error"];
                assert_eq!(
                    error["type"], "invalid_request_error",
                    "{upstream:?} {client:?}"
                );
                match client {
                    Protocol::Messages => assert_eq!(error["message"], messages),
                    _ => {
                        assert_eq!(error["message"], openai);
                        assert_eq!(error["code"], "context_length_exceeded");
                    }
                }
            }
        }
    }
}

/// Another server may take a larger request, or reasoning that it does not check.
#[test]
fn a_request_that_only_this_server_refuses_goes_to_the_next() {
    let signature = "messages.1.content.0: Invalid `signature` in `thinking` block";
    for (status, body) in [
        (
            413,
            json!({"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size."}}),
        ),
        (
            400,
            json!({"error": {"type": "invalid_request_error", "code": "invalid_encrypted_content", "message": "No."}}),
        ),
        (
            400,
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": signature}}),
        ),
    ] {
        let body = body.to_string();
        let second = Simulator::honest().unwrap();
        let failure = (status, &[][..], body.as_bytes());
        let (gateway, _simulator) = failing(Protocol::Chat, failure, Some(&second));
        for client in TEXT_PROTOCOLS {
            assert_eq!(answer(&gateway, client, true).status, 200, "{body}");
        }
        assert_eq!(second.requests().len(), TEXT_PROTOCOLS.len());
    }
}

/// The code, the type and the parameter of the vendor stay for clients of its protocol, in each
/// protocol and with each status. Others get the words of their own protocol.
#[test]
fn u24_words_of_the_vendor_stay_in_its_protocol() {
    for protocol in PROTOCOLS {
        for (status, owed) in [(400, 400), (413, 413), (429, 429), (503, 503), (500, 502)] {
            let error =
                json!({"message": "m", "type": "their_type", "code": "their_code", "param": "p"});
            let body = match protocol {
                Protocol::Messages => json!({"type": "error", "error": error}),
                _ => json!({ "error": error }),
            };
            let body = body.to_string();
            let (gateway, _simulator) = failing(protocol, (status, &[], body.as_bytes()), None);
            let got = answer(&gateway, protocol, true);
            let owed = if protocol == Protocol::Messages && owed == 503 {
                529
            } else {
                owed
            };
            let found = got.json()["error"].clone();
            assert_eq!(got.status, owed, "{protocol:?}: {found}");
            assert_eq!(
                found["type"], "their_type",
                "{protocol:?} {status}: {found}"
            );
            if protocol != Protocol::Messages {
                assert_eq!(
                    found["code"], "their_code",
                    "{protocol:?} {status}: {found}"
                );
            }
            if protocol == Protocol::Chat && status == 400 {
                assert_eq!(found["param"], "p");
                let other = answer(&gateway, Protocol::Responses, false).json()["error"].clone();
                assert_eq!(
                    (&other["code"], &other["type"]),
                    (&json!("invalid_value"), &json!("invalid_request_error"))
                );
            }
        }
    }
    let refused = json!({"error": {"message": "Rejected by the safety system.", "param": null,
        "type": "image_generation_user_error", "code": "moderation_blocked"}});
    let body = refused.to_string();
    let (gateway, _simulator) = failing(Protocol::Images, (400, &[], body.as_bytes()), None);
    for stream in [false, true] {
        let got = answer(&gateway, Protocol::Images, stream);
        assert_eq!((got.status, got.json()), (400, refused.clone()));
    }
}

/// The headers that the operator has named reach the client with an error as well, on each road.
#[test]
fn u24_headers_are_passed_on_with_errors() {
    let headers = [
        ("x-theirs", "rejected"),
        ("retry-after", "2000"),
        ("x-others", "no"),
    ];
    let body = json!({"type": "error", "error": {"type": "theirs", "message": "m"}});
    let body = body.to_string();
    for (status, owed) in [(429, 429), (400, 400), (401, 502)] {
        for upstream in PROTOCOLS {
            let failure = (status, &headers[..], body.as_bytes());
            let (gateway, _simulator) = failing(upstream, failure, None);
            let clients = lanes().into_iter().filter(|lane| lane.upstream == upstream);
            for client in clients.map(|lane| lane.client) {
                for stream in [false, true] {
                    let got = answer(&gateway, client, stream);
                    assert_eq!(got.status, owed, "{client:?} {}", protocol_name(upstream));
                    assert_eq!(
                        got.header("x-theirs"),
                        Some("rejected"),
                        "{client:?} {status}"
                    );
                    assert_eq!(got.header("x-others"), None);
                    if owed == 429 {
                        assert_eq!(got.header("retry-after"), Some("2000"));
                    }
                }
            }
            if upstream == Protocol::Messages {
                let count =
                    json!({"model": "mine", "messages": [{"role": "user", "content": "Hi."}]});
                let got = gateway.post(CLIENT_KEY, "/v1/messages/count_tokens", &count);
                assert_eq!(got.header("x-theirs"), Some("rejected"));
            }
        }
    }
}

/// A compressed error that cannot be decoded costs nothing but its message.
#[test]
fn u24_a_compressed_error_keeps_its_status() {
    let headers = [
        ("content-encoding", "gzip"),
        ("retry-after", "7"),
        ("x-theirs", "y"),
    ];
    for (status, owed) in [(429, 429), (400, 400), (503, 503), (401, 502)] {
        for client in [Protocol::Chat, Protocol::Responses] {
            let failure = (status, &headers[..], &b"\x1f\x8b\x08\x00\x00"[..]);
            let (gateway, _simulator) = failing(Protocol::Chat, failure, None);
            for stream in [false, true] {
                let got = answer(&gateway, client, stream);
                assert_eq!(got.status, owed);
                assert_eq!(got.header("x-theirs"), Some("y"));
                let wait = matches!(owed, 429 | 503).then_some("7");
                assert_eq!(got.header("retry-after"), wait, "{status}");
            }
        }
    }
}

/// The message of an error in gzip reaches the client.
#[test]
fn u24_the_message_of_a_compressed_error_is_read() {
    let body = br#"{"error":{"message":"it is cold","code":"weather"}}"#;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).unwrap();
    let packed = encoder.finish().unwrap();
    let failure = (400, &[("content-encoding", "gzip")][..], &packed[..]);
    let (gateway, _simulator) = failing(Protocol::Chat, failure, None);
    for stream in [false, true] {
        let found: Value = answer(&gateway, Protocol::Chat, stream).json()["error"].clone();
        assert_eq!(found["message"], "it is cold");
        assert_eq!(found["code"], "weather");
    }
}

/// The reason in an error that another one wraps reaches the client. See
/// <https://openrouter.ai/docs/api-reference/errors>
#[test]
fn u24_the_reason_behind_a_wrapper_reaches_the_client() {
    let inner = json!({"error": {"message": "it is cold at 10.0.0.7", "code": "weather"}});
    let outer = json!({"error": {"message": "Provider returned error", "code": 400,
        "metadata": {"raw": inner.to_string(), "provider_name": "x"}}});
    let body = outer.to_string();
    let (gateway, _simulator) = failing(Protocol::Chat, (400, &[], body.as_bytes()), None);
    let found: Value = answer(&gateway, Protocol::Chat, false).json()["error"].clone();
    assert_eq!(found["message"], "it is cold at");
    assert_eq!(found["code"], "weather");
}
