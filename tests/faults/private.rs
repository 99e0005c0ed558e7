//! P: secrets and private data in responses, upstream requests, logs and metrics.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use simulator::{Play, Protocol, Request as Asked, Simulator, honest};
use testkit::requests::{self, PROTOCOLS, RED, TEXT_PROTOCOLS, ask, path, protocol_name};
use testkit::upstreams::lanes;
use testkit::{
    CLIENT_KEY, Config, Connection, Request, Response, UPSTREAM_KEY, await_that, changed,
};

use crate::GATEWAY;

/// An upstream receives exactly these headers, whatever a client sends and in every client
/// protocol.
#[test]
fn p01_an_upstream_sees_a_stated_set_of_headers() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let sees = |path: &str, body: &Value, owed: &[String]| {
        let request = hostile(&Request::post(path, body).bearer(CLIENT_KEY));
        let request = request
            .header("anthropic-version", "2026-10-21")
            .header("anthropic-beta", "one");
        let response = request.send(gateway.address());
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(seen(&simulator), owed, "{path} with {body}");
    };
    for lane in lanes() {
        for stream in [false, true] {
            let body = ask(lane.client, protocol_name(lane.upstream), "Hello.", stream);
            let owed = owed(lane.upstream, stream, true);
            let is_messages =
                (lane.client, lane.upstream) == (Protocol::Messages, Protocol::Messages);
            sees(
                path(lane.client),
                &body,
                &if is_messages { versioned(owed) } else { owed },
            );
            assert_eq!(
                simulator.requests().pop().unwrap().path,
                path(lane.upstream),
                "{lane:?}"
            );
        }
    }
    let mut count = ask(
        Protocol::Messages,
        protocol_name(Protocol::Messages),
        "Hello.",
        false,
    );
    count.as_object_mut().unwrap().remove("max_tokens");
    sees(
        "/v1/messages/count_tokens",
        &count,
        &versioned(owed(Protocol::Messages, false, true)),
    );
}

/// An upstream without a configured key receives no key at all.
#[test]
fn p02_an_upstream_without_a_key_sees_no_key() {
    let simulator = Simulator::honest().unwrap();
    let plan = PROTOCOLS
        .into_iter()
        .fold(Config::new(""), |plan, protocol| {
            let targets = format!("[{{ upstream = \"{}\" }}]", protocol_name(protocol));
            plan.keyless(protocol_name(protocol), protocol, &simulator.base_url())
                .model(protocol_name(protocol), protocol, &targets)
        });
    let gateway = plan.start(GATEWAY);
    for protocol in PROTOCOLS {
        let response = hostile(&requests::request(protocol, &question(protocol, false)))
            .send(gateway.address());
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(
            seen(&simulator),
            owed(protocol, false, false),
            "{protocol:?}"
        );
    }
}

/// No value that a client sends can inject a header or a line.
#[test]
fn p03_nothing_breaks_out_into_a_header() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let evil = "x\r\nset-cookie: a=b\r\n\r\n<script>";
    let mut requests = vec![
        Request::get("/v1/models/%0d%0aset-cookie:a=b").bearer(CLIENT_KEY),
        Request::get("/v1/%0d%0aset-cookie:a=b").bearer(CLIENT_KEY),
        Request::get("/v1/models?after=%0d%0aset-cookie:a=b").bearer(CLIENT_KEY),
    ];
    for client in TEXT_PROTOCOLS {
        for upstream in TEXT_PROTOCOLS {
            let mut body = changed(
                question(client, false),
                &json!({evil: evil, "user": evil, "metadata": {evil: evil}}),
            );
            body["model"] = protocol_name(upstream).into();
            requests.push(requests::request(client, &body));
        }
    }
    for protocol in PROTOCOLS {
        let body = changed(question(protocol, true), &json!({"model": evil}));
        requests.push(requests::request(protocol, &body));
        requests.push(
            requests::request(protocol, &question(protocol, true))
                .header("x-request-id", "a\tset-cookie:a=b"),
        );
    }
    for request in requests {
        let response = request.send(gateway.address());
        assert!(response.status < 500, "{}: {request:?}", response.text());
        for (name, value) in &response.headers {
            assert!(RESPONSE_HEADERS.contains(&name.as_str()), "{name}: {value}");
            assert!(
                !value.contains("cookie")
                    && value.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
                "{value}"
            );
        }
    }
}

/// Under every failure no secret appears in the log, in the metrics or in an error, and each log
/// line is one JSON object without control characters.
#[test]
fn p04_p05_i09_no_secret_is_disclosed() {
    let simulator = Simulator::start(indiscreet).unwrap();
    let plan = Config::before(&simulator, "json_body = \"256KiB\"", "");
    let mut command = GATEWAY.command();
    command
        .env("SLUICEGATE_LOG", "trace")
        .env("CANARY", "canary-of-the-environment");
    let gateway = plan.start_by(GATEWAY, command);
    let responses: Vec<Response> = bundle()
        .iter()
        .map(|request| request.send(gateway.address()))
        .collect();
    let last = responses
        .last()
        .unwrap()
        .header("x-request-id")
        .unwrap()
        .to_owned();
    await_that("the last is logged", || {
        gateway.log.lock().unwrap().contains(&last)
    });
    gateway.await_quiet();

    let statuses: BTreeSet<_> = responses.iter().map(|response| response.status).collect();
    assert!(
        [200, 400, 401, 404, 405, 413, 415, 502]
            .iter()
            .all(|status| statuses.contains(status)),
        "{statuses:?}"
    );
    assert!(
        !statuses.contains(&503),
        "each was put to the upstream: {statuses:?}"
    );
    for response in &responses {
        // The client's own input may be repeated to it.
        assert_private("an answer", &String::from_utf8_lossy(&response.body), &KEYS);
        response
            .headers
            .iter()
            .for_each(|(_, value)| assert_private("a header", value, &ALL));
    }
    let metrics = Request::get("/metrics").send(gateway.admin.unwrap());
    assert_private("the metrics", metrics.text(), &ALL);
    let log = gateway.log.lock().unwrap();
    assert!(log.lines().count() > responses.len(), "{log}");
    // Of a URL that is not fetched, host and path are logged.
    assert!(
        log.contains(": 127.0.0.1/a.png\"") && log.contains(": localhost/a.png\""),
        "{log}"
    );
    for line in log.lines() {
        assert_private("the log", line, &ALL);
        assert!(
            serde_json::from_str::<Value>(line).is_ok_and(|line| line.is_object()),
            "{line}"
        );
        assert!(
            !line.contains(|c: char| c.is_control() || c == '\u{202e}'),
            "{line:?}"
        );
    }
}

/// Metric labels have bounded sets of values: names of models, keys and paths create no new series.
#[test]
fn p06_the_number_of_series_is_bounded() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let mut connection = Connection::open(gateway.address());
    let mut ask_all = |number: usize| {
        let model = json!({"model": format!("model-{number}"), "messages": [{"role": "user", "content": "Hi."}]});
        for request in [
            requests::request(Protocol::Chat, &model),
            Request::get("/v1/models").bearer(&format!("sg_key_{number}")),
            Request::get(&format!("/v1/path_{number}")),
            Request::get(&format!("/v1/models/model_{number}")).bearer(CLIENT_KEY),
            Request::get("/v1/models").method(&format!("M{number}")),
            Request::get("/v1/models")
                .bearer(CLIENT_KEY)
                .header("x-request-id", &format!("id-{number}")),
        ] {
            connection.send(request.bytes());
            let response = connection.response();
            if response.header("connection") == Some("close") {
                connection = Connection::open(gateway.address());
            }
        }
    };
    let series = || {
        let metrics = Request::get("/metrics").send(gateway.admin.unwrap());
        let lines = metrics.text().lines().filter(|line| !line.starts_with('#'));
        lines
            .filter_map(|line| line.rsplit_once(' '))
            .map(|(series, _)| series.to_owned())
            .collect::<BTreeSet<_>>()
    };
    ask_all(0);
    let counted = |count: usize| gateway.sum("sluicegate_requests_total{") == (6 * count) as f64;
    await_that("all are counted", || counted(1));
    // The closed connection is counted too, a moment later.
    await_that("its end is counted", || {
        gateway.sum("sluicegate_connections_ended_total{reason=\"done\"") >= 1.0
    });
    let before = series();
    (1..ROUNDS).for_each(&mut ask_all);
    await_that("all are counted", || counted(ROUNDS));
    assert_eq!(series(), before);
}

/// Every response has `X-Content-Type-Options: nosniff` and must not be stored, and a stream also
/// disables buffering in proxies.
#[test]
fn p08_answers_are_neither_stored_nor_gathered() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let owed = |response: &Response, caching: &str, gathering: Option<&str>| {
        let of = |name: &str| response.header(name);
        assert_eq!(
            of("x-content-type-options"),
            Some("nosniff"),
            "{}",
            response.text()
        );
        assert_eq!(
            (of("cache-control"), of("x-accel-buffering")),
            (Some(caching), gathering),
            "{}",
            response.text()
        );
    };
    for protocol in PROTOCOLS {
        owed(
            &gateway.ask(protocol, &question(protocol, false)),
            "no-store",
            None,
        );
        owed(
            &gateway.ask(protocol, &question(protocol, true)),
            "no-cache",
            Some("no"),
        );
        owed(&gateway.ask(protocol, &json!({})), "no-store", None);
    }
    for path in ["/v1/models", "/v1/models/chat", "/v1/models/none", "/none"] {
        owed(
            &Request::get(path)
                .bearer(CLIENT_KEY)
                .send(gateway.address()),
            "no-store",
            None,
        );
    }
    owed(
        &Request::get("/v1/models").send(gateway.address()),
        "no-store",
        None,
    );
}

fn question(protocol: Protocol, stream: bool) -> Value {
    ask(protocol, protocol_name(protocol), "Hello.", stream)
}

/// A request with headers that must not be forwarded.
fn hostile(request: &Request) -> Request {
    let private = [
        ("cookie", "session=private"),
        ("proxy-authorization", "Basic private"),
        ("x-api-key", "sg_private"),
        ("api-key", "private"),
        ("x-forwarded-for", "203.0.113.9"),
        ("x-forwarded-host", "private.example"),
        ("forwarded", "for=203.0.113.9"),
        ("via", "1.1 private"),
        ("x-real-ip", "203.0.113.9"),
        ("connection", "keep-alive, x-private"),
        ("x-private", "private"),
        ("te", "trailers"),
        ("user-agent", "private/1.0"),
        ("referer", "https://private.example/"),
        ("origin", "https://private.example"),
        ("accept", "private/*"),
        ("accept-encoding", "gzip"),
        ("accept-language", "de"),
        ("openai-organization", "org-private"),
        ("idempotency-key", "private"),
        ("traceparent", "00-private"),
        ("x-request-id", "private"),
        ("x-stainless-os", "private"),
    ];
    private
        .iter()
        .fold(request.clone(), |request, (name, value)| {
            request.header(name, value)
        })
}

/// Returns the headers of the last request that an upstream received.
fn seen(simulator: &Simulator) -> Vec<String> {
    let request = simulator.requests().pop().unwrap();
    let shown = |(name, value): &(String, String)| match name.as_str() {
        "content-length" => format!("{name}: {}", *value == request.body.len().to_string()),
        "host" => format!("{name}: {}", *value == simulator.address().to_string()),
        _ => format!("{name}: {value}"),
    };
    let mut headers: Vec<_> = request.headers.iter().map(shown).collect();
    headers.sort_unstable();
    headers
}

/// The headers that an upstream is expected to receive.
fn owed(protocol: Protocol, stream: bool, key: bool) -> Vec<String> {
    let mut headers = vec![
        format!(
            "accept: {}",
            if stream {
                "text/event-stream"
            } else {
                "application/json"
            }
        ),
        "accept-encoding: identity".to_owned(),
        "content-length: true".to_owned(),
        "content-type: application/json".to_owned(),
        "host: true".to_owned(),
        format!("user-agent: sluicegate/{}", env!("CARGO_PKG_VERSION")),
    ];
    match (key, protocol) {
        (false, _) => {}
        (true, Protocol::Messages) => headers.push(format!("x-api-key: {UPSTREAM_KEY}")),
        (true, _) => headers.push(format!("authorization: Bearer {UPSTREAM_KEY}")),
    }
    if protocol == Protocol::Messages {
        headers.push("anthropic-version: 2023-06-01".to_owned());
    }
    headers.sort_unstable();
    headers
}

/// The same from a client of Messages, which states its version of the API.
fn versioned(mut headers: Vec<String>) -> Vec<String> {
    headers.retain(|header| !header.starts_with("anthropic-version"));
    headers.extend([
        "anthropic-version: 2026-10-21".to_owned(),
        "anthropic-beta: one".to_owned(),
    ]);
    headers.sort_unstable();
    headers
}

/// Successful and failing requests of every protocol, with a secret in every possible place.
fn bundle() -> Vec<Request> {
    let mut all = Vec::new();
    for protocol in PROTOCOLS {
        for upstream in if protocol == Protocol::Images {
            &[Protocol::Images][..]
        } else {
            &TEXT_PROTOCOLS[..]
        } {
            for fault in faults() {
                for stream in [false, true] {
                    let text = format!("{fault} {PROMPT}");
                    let mut body = changed(
                        ask(protocol, protocol_name(*upstream), &text, stream),
                        &json!({PROMPT: PROMPT}),
                    );
                    body["user"] = PROMPT.into();
                    all.push(
                        requests::request(protocol, &body)
                            .header("cookie", COOKIE)
                            .header("user-agent", COOKIE),
                    );
                }
            }
        }
        let wrong = |change: Value| {
            requests::request(protocol, &changed(question(protocol, false), &change))
        };
        let content = if protocol == Protocol::Responses {
            "input"
        } else {
            "messages"
        };
        let content = if protocol == Protocol::Images {
            "prompt"
        } else {
            content
        };
        all.extend([
            wrong(json!({content: {PROMPT: PROMPT}})),
            wrong(json!({content: [{"role": PROMPT, "content": PROMPT}]})),
            wrong(json!({"stream": PROMPT})),
            wrong(json!({"model": PROMPT})),
            wrong(json!({"tool_choice": PROMPT, "size": PROMPT, "metadata": PROMPT})),
            Request::post_bytes(path(protocol), PROMPT.as_bytes()).bearer(CLIENT_KEY),
            Request::post_bytes(path(protocol), PROMPT.repeat(20_000).as_bytes())
                .bearer(CLIENT_KEY),
            Request::post_bytes(path(protocol), b"{}")
                .bearer(CLIENT_KEY)
                .header("content-type", "text/canary-kind"),
            Request::post_bytes(path(protocol), b"{}").bearer(WRONG_KEY),
            Request::post_bytes(path(protocol), b"{}").header("x-api-key", WRONG_KEY),
            Request::get(&format!("{}?key={CLIENT_KEY}&x={QUERY}", path(protocol)))
                .bearer(CLIENT_KEY),
        ]);
    }
    all.extend(
        [
            "prompt",
            "image\"; filename=\"canary-of-the-file.png",
            "mask\"; filename=\"\u{202e}canary",
        ]
        .map(form),
    );
    for fault in faults() {
        let mut count = ask(
            Protocol::Messages,
            protocol_name(Protocol::Messages),
            &format!("{fault} {PROMPT}"),
            false,
        );
        count.as_object_mut().unwrap().remove("max_tokens");
        all.push(Request::post("/v1/messages/count_tokens", &count).bearer(CLIENT_KEY));
    }
    for url in [
        format!("https://user:{QUERY}@pictures.example/a.png"),
        format!("https://127.0.0.1/a.png?signature={QUERY}"),
        format!("https://localhost/a.png?signature={QUERY}"),
        format!("data:image/png;base64,{RED}!"),
        format!("data:image/png;base64,{}", &RED[..60]),
    ] {
        let edit = json!({"model": "images", "prompt": PROMPT, "images": [{"image_url": url}]});
        all.push(Request::post("/v1/images/edits", &edit).bearer(CLIENT_KEY));
    }
    all.push(Request::get(&format!("/v1/models/{QUERY}")).bearer(CLIENT_KEY));
    all.push(
        Request::get(&format!("/{QUERY}?{QUERY}"))
            .bearer(CLIENT_KEY)
            .header("x-request-id", "canary of the id"),
    );
    all
}

/// Each between successful responses, so that the circuit breaker of the upstream does not open.
fn faults() -> impl Iterator<Item = &'static str> {
    FAULTS
        .into_iter()
        .flat_map(|fault| [fault, "please-answer"])
}

/// A form whose picture is in the part of this name.
fn form(name: &str) -> Request {
    let part = |head: &str, data: &str| {
        format!("--sgb\r\nContent-Disposition: form-data; name=\"{head}\"\r\n\r\n{data}\r\n")
    };
    let parts = [
        part("model", "images"),
        part("prompt", PROMPT),
        part(name, RED),
        part("canary-part", PROMPT),
    ];
    let body = parts.concat() + "--sgb--\r\n";
    let form = Request::post_bytes("/v1/images/edits", body.as_bytes()).bearer(CLIENT_KEY);
    form.header("content-type", "multipart/form-data; boundary=sgb")
}

/// A server that fails as the prompt says, and reveals everything it knows.
fn indiscreet(request: &Asked) -> Play {
    let text = String::from_utf8_lossy(&request.body).into_owned();
    let all = format!("{PROMPT} for {UPSTREAM_KEY} of {UPSTREAM_ACCOUNT} with {RED}");
    let error = |status: u16| {
        let body = json!({"type": "error", "error": {"message": all, "type": "invalid_request_error", "code": "x"}});
        Play::json(status, &body)
    };
    let fault = FAULTS
        .iter()
        .find(|fault| text.contains(*fault))
        .copied()
        .unwrap_or_default();
    match fault {
        "please-refuse" => error(400),
        "please-limit" => error(429),
        "please-deny" => error(401),
        "please-fail" => error(500),
        "please-babble" => Play::answer(
            200,
            &[("content-type", "application/json"), ("x-secret", &all)],
            all.clone(),
        ),
        "please-garble" => Play::events([format!(
            "data: {all}\n\nevent: {PROMPT}\ndata: {{\"{all}\n\n"
        )]),
        "please-break" => {
            let whole = honest::answer(request);
            let length = whole.body_bytes().len();
            whole.cut_at(length / 2, simulator::Cut::Close)
        }
        "please-stop" => {
            let mut asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            asked["stream"] = true.into();
            let streaming = Asked {
                body: serde_json::to_vec(&asked).unwrap().into(),
                ..request.clone()
            };
            let whole = honest::answer(&streaming);
            let events: Vec<_> = whole
                .pieces()
                .map(|event| String::from_utf8_lossy(event))
                .collect();
            let failure = json!({"type": "error", "message": all, "code": "invalid_request_error",
                "error": {"message": all, "type": "invalid_request_error", "code": "x"}});
            Play::events([format!(
                "{}event: error\ndata: {failure}\n\n",
                events[..events.len() / 2].concat()
            )])
        }
        _ => honest::answer(request),
    }
}

#[track_caller]
fn assert_private(place: &str, text: &str, secrets: &[&str]) {
    for secret in secrets {
        assert!(!text.contains(secret), "{place} has '{secret}': {text}");
    }
}

const FAULTS: [&str; 8] = [
    "please-refuse",
    "please-limit",
    "please-deny",
    "please-fail",
    "please-babble",
    "please-garble",
    "please-break",
    "please-stop",
];
const PROMPT: &str = "canary-of-the-prompt \u{1b}[31m\u{202e}\"quoted\"";
const COOKIE: &str = "canary-of-the-headers";
const QUERY: &str = "canary-of-the-query";
const WRONG_KEY: &str = "sg_canary_of_a_wrong_key";
const UPSTREAM_ACCOUNT: &str = "org-canary-of-the-account";
/// Keys that no client may see.
const KEYS: [&str; 6] = [
    CLIENT_KEY,
    UPSTREAM_KEY,
    WRONG_KEY,
    UPSTREAM_ACCOUNT,
    "canary-of-the-environment",
    "canary-of-the-headers",
];
/// Values that nothing may reveal: the picture by its beginning, and everything else that is called
/// a canary.
const ALL: [&str; 6] = [
    CLIENT_KEY,
    UPSTREAM_KEY,
    "canary",
    "quoted",
    "iVBORw0KGgo",
    "557bedf70bab3080",
];
/// Response headers that clients may see.
const RESPONSE_HEADERS: [&str; 12] = [
    "allow",
    "cache-control",
    "connection",
    "content-length",
    "content-type",
    "date",
    "request-id",
    "transfer-encoding",
    "x-accel-buffering",
    "x-content-type-options",
    "x-request-id",
    "x-sluicegate-dropped",
];
/// Each has six requests with distinct names.
const ROUNDS: usize = 1700;
