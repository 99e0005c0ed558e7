//! Every error that a client can get before a response starts: status, headers and the exact body,
//! and the order of the checks.

use std::thread;

use serde_json::{Value, json};
use testkit::rows::Table;
use testkit::{Connection, Gateway, IMAGES, MESSAGES, Request, TEXT};

use crate::GATEWAY;
use crate::chat::RED;

fn user() -> Value {
    json!([{"role": "user", "content": "Hi."}])
}

/// A body just over the limit of [`small`].
fn large() -> Value {
    json!({"model": "alt-flash", "input": "x".repeat(1 << 16)})
}

/// A gateway with low limits.
fn small() -> Gateway {
    GATEWAY.configured("[limits]\njson_body = \"64KiB\"\nconcurrency = 1\n")
}

/// The requests for the rows of the OpenAI-style errors.
fn openai() -> Vec<(&'static str, Request)> {
    let responses = |body: Value| Request::post("/v1/responses", &body).bearer(TEXT);
    let generation = |body: Value| Request::post("/v1/images/generations", &body).bearer(IMAGES);
    let edit = |body: Value| Request::post("/v1/images/edits", &body).bearer(IMAGES);
    let mask = json!({"prompt": "x", "images": [{"image_url": RED}], "mask": {"file_id": "f"}});
    let plain_text =
        Request::post_bytes("/v1/responses", b"{}").header("content-type", "text/plain");
    vec![
        (
            "Responses without model",
            responses(json!({"input": user()})),
        ),
        (
            "Responses without input",
            responses(json!({"model": "alt-flash"})),
        ),
        (
            "string input for model-5.5",
            responses(json!({"model": "model-5.5", "input": "Hi."})),
        ),
        ("image endpoint without prompt", generation(json!({}))),
        (
            "partial_images -1",
            generation(json!({"prompt": "x", "partial_images": -1})),
        ),
        (
            "partial_images 4",
            generation(json!({"prompt": "x", "partial_images": 4})),
        ),
        ("mask.file_id", edit(mask)),
        ("edit without image", edit(json!({"prompt": "x"}))),
        (
            "text key on an image endpoint",
            Request::post("/v1/images/generations", &json!({})).bearer(TEXT),
        ),
        (
            "body does not parse",
            Request::post_bytes("/v1/responses", b"{\"model\":").bearer(TEXT),
        ),
        (
            "no Authorization",
            Request::post("/v1/responses", &json!({})),
        ),
        (
            "unknown key",
            Request::post("/v1/responses", &json!({})).bearer("sg_nobody"),
        ),
        (
            "unknown model",
            responses(json!({"model": "nope", "input": user()})),
        ),
        (
            "unknown path",
            Request::post("/v1/nope", &json!({})).bearer(TEXT),
        ),
        ("wrong method", Request::get("/v1/responses").bearer(TEXT)),
        ("body over the limit", responses(large())),
        ("wrong content type", plain_text.bearer(TEXT)),
    ]
}

/// The requests for the rows of the Messages-style errors.
fn messages() -> Vec<(&'static str, Request)> {
    let messages = |body: Value| Request::post("/v1/messages", &body).bearer(MESSAGES);
    vec![
        (
            "missing max_tokens",
            messages(json!({"model": "msg-sonnet-5", "messages": user()})),
        ),
        (
            "empty messages",
            messages(json!({"model": "msg-sonnet-5", "messages": [], "max_tokens": 1})),
        ),
        (
            "unknown key",
            Request::post("/v1/messages", &json!({})).header("x-api-key", "sg_nobody"),
        ),
        (
            "text key on /v1/messages",
            Request::post("/v1/messages", &json!({})).bearer(TEXT),
        ),
        (
            "unknown model",
            messages(json!({"model": "nope", "messages": user(), "max_tokens": 1})),
        ),
        ("body over the limit", messages(large())),
    ]
}

/// Missing and out-of-range values are refused with 400, and the code and the field that the tables
/// of errors have.
#[test]
fn j06_each_error_has_exactly_this_body() {
    let server = small();
    for (table, requests) in [(Table::openai(), openai()), (Table::messages(), messages())] {
        let send =
            |(when, request): (&'static str, Request)| (when, request.send(server.address()));
        table.check_requests(&requests.into_iter().map(send).collect::<Vec<_>>());
    }
}

#[test]
fn over_the_limit_each_protocol_has_its_own_error() {
    let server = small();
    let long = json!({"model": "alt-flash", "input": "Tell a long story.", "stream": true, "max_output_tokens": 400});
    let mut holder = Connection::open(server.address());
    holder.send(Request::post("/v1/responses", &long).bearer(TEXT).bytes());
    assert_eq!(holder.head().unwrap().status, 200, "the only permit is out");

    let (openai, messages) = (Table::openai(), Table::messages());
    let over = openai.row("non-streaming request over the concurrency limit");
    over.check(&server.post(
        TEXT,
        "/v1/responses",
        &json!({"model": "alt-flash", "input": "Hi."}),
    ));
    for streams in [false, true] {
        let body = json!({"model": "alt-flash", "messages": user(), "stream": streams});
        over.check(&server.post(TEXT, "/v1/chat/completions", &body));
    }
    let over = messages.row("over the concurrency limit");
    for streams in [false, true] {
        let body = json!({"model": "msg-sonnet-5", "messages": user(), "max_tokens": 1, "stream": streams});
        over.check(&server.post(MESSAGES, "/v1/messages", &body));
    }
    let streamed = server.post(
        TEXT,
        "/v1/responses",
        &json!({"model": "alt-flash", "input": "Hi.", "stream": true}),
    );
    let failure = grammar::responses(&streamed).failure();
    assert!(
        failure.contains("gateway_concurrency_limit") && failure.contains("try again in 1s"),
        "{failure}"
    );
    assert_eq!(
        testkit::events::data(&streamed).len(),
        2,
        "response.created and response.failed"
    );
}

#[test]
fn the_checks_come_in_their_order() {
    let server = small();
    // Each request is also wrong in every way that is checked later.
    let post = |path: &str, key: &str, kind: &str, body: &str| {
        Request::post_bytes(path, body.as_bytes())
            .bearer(key)
            .header("content-type", kind)
    };
    let too_large = "{".repeat(1 << 17);
    let responses = "/v1/responses";
    let unknown_field = r#"{"model":"nope","input":7}"#;
    for (status, code, request) in [
        (
            404,
            "unknown_url",
            post("/v1/nope", "nobody", "x/y", &too_large).method("PUT"),
        ),
        (
            405,
            "method_not_allowed",
            post(responses, "nobody", "x/y", &too_large).method("PUT"),
        ),
        (
            401,
            "invalid_api_key",
            post(responses, "nobody", "x/y", &too_large),
        ),
        (
            403,
            "insufficient_permissions",
            post(responses, IMAGES, "x/y", &too_large),
        ),
        (
            413,
            "request_too_large",
            post(responses, TEXT, "x/y", &too_large),
        ),
        (
            415,
            "unsupported_content_type",
            post(responses, TEXT, "x/y", "{"),
        ),
        (
            400,
            "invalid_json",
            post(responses, TEXT, "application/json", "{"),
        ),
        (
            400,
            "invalid_type",
            post(responses, TEXT, "application/json", unknown_field),
        ),
        (
            404,
            "model_not_found",
            post(
                responses,
                TEXT,
                "application/json",
                r#"{"model":"nope","input":"Hi."}"#,
            ),
        ),
        (
            400,
            "model_not_supported",
            post(
                responses,
                TEXT,
                "application/json",
                r#"{"model":"msg-sonnet-5","input":[{"role":"user","content":"Hi."}]}"#,
            ),
        ),
    ] {
        let response = request.send(server.address());
        assert_eq!(
            (response.status, &response.json()["error"]["code"]),
            (status, &json!(code)),
            "{}",
            response.text()
        );
    }
}

/// All problems of a body are reported in one response, each with its path.
#[test]
fn j05_every_violation_is_reported_at_once_with_its_path() {
    let server = GATEWAY.shared();
    let body = json!({"model": "alt-flash", "input": [{"role": "nobody", "content": "Hi."}], "temperature": 9, "max_output_tokens": 0});
    let response = server.post(TEXT, "/v1/responses", &body);
    let error = &response.json()["error"];
    assert_eq!(response.status, 400);
    for path in ["input[0].role", "temperature", "max_output_tokens"] {
        assert!(
            error["message"].as_str().unwrap().contains(path),
            "{path}: {error}"
        );
    }
}

/// A body that is not a JSON object of the right shape is refused with 400, and the server keeps
/// running.
#[test]
fn j01_hostile_bodies_are_refused_and_the_server_lives() {
    let server = GATEWAY.shared();
    let deep = "[".repeat(100_000);
    for body in [
        deep.as_str(),
        "",
        "null",
        "7",
        "\"x\"",
        "[]",
        "{}",
        "{\"model\":\"\\ud800\"}",
        "\u{feff}{}",
        "{\"a\":1e999}",
    ] {
        for path in ["/v1/responses", "/v1/chat/completions"] {
            let response = Request::post_bytes(path, body.as_bytes())
                .bearer(TEXT)
                .send(server.address());
            let error = &response.json()["error"];
            assert_eq!(
                (response.status, &error["type"]),
                (400, &json!("invalid_request_error")),
                "{body:.40}: {error}"
            );
            assert_eq!(
                error.as_object().unwrap().len(),
                4,
                "all four members, always: {error}"
            );
        }
    }
    let twice = r#"{"model":"alt-flash","model":"model-5.5","input":"Hi."}"#;
    assert_eq!(
        Request::post_bytes("/v1/responses", twice.as_bytes())
            .bearer(TEXT)
            .send(server.address())
            .status,
        400
    );
}

#[test]
fn stored_files_and_text_models_on_image_endpoints_are_refused() {
    let server = GATEWAY.shared();
    let images = json!([{"image_url": RED}, {"file_id": "file-1"}]);
    let stored = server.post(
        IMAGES,
        "/v1/images/edits",
        &json!({"prompt": "x", "images": images}),
    );
    let error = &stored.json()["error"];
    assert_eq!(
        (stored.status, &error["code"]),
        (400, &json!("unsupported_parameter"))
    );
    assert_eq!(error["param"], "images[1].file_id");
    let body = json!({"prompt": "A boat", "model": "alt-flash"});
    let text = server.post(IMAGES, "/v1/images/generations", &body);
    assert_eq!(
        (text.status, &text.json()["error"]["code"]),
        (400, &json!("model_not_supported"))
    );
}

#[test]
fn a_failing_request_does_not_disturb_its_neighbours() {
    let server = GATEWAY.shared();
    let good = json!({"model": "alt-flash", "input": "Say hello.", "max_output_tokens": 4, "reasoning": {"effort": "none"}});
    thread::scope(|scope| {
        let bad = scope.spawn(|| {
            (0..20).all(|_| server.post(TEXT, "/v1/responses", &json!({})).status == 400)
        });
        let served = server.post(TEXT, "/v1/responses", &good);
        assert_eq!(
            (served.status, bad.join().expect("no client failed")),
            (200, true),
            "{}",
            served.text()
        );
    });
}
