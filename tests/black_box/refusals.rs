//! Every error that a client can be told before an answer begins: status, headers and body to the letter, and the
//! order in which they are looked for (spec §7, wire-reference §0.4, §6).

use std::thread;

use serde_json::{Value, json};

use crate::chat::RED;
use crate::client::{Connection, Request, Response};
use crate::server::{IMAGES, MESSAGES, Server, TEXT};

/// One row of the tables of errors.
#[derive(serde::Deserialize)]
struct Row {
    when: String,
    status: u16,
    headers: serde_json::Map<String, Value>,
    body: Value,
}

fn rows(table: &str) -> Vec<Row> {
    serde_json::from_str(table).expect("a table of errors")
}

/// Whether a response is the one of a row. Ids are only compared with each other.
#[track_caller]
fn assert_row(row: &Row, response: &Response) {
    let id = response.header("x-request-id").expect("every response has an id");
    assert!(id.starts_with("req_") && id.len() > 20, "{id}");
    let (mut expected, mut found) = (row.body.clone(), response.json());
    if expected.get("request_id").is_some() {
        expected["request_id"] = json!(id);
    }
    if SAYS_MORE.contains(&row.when.as_str()) {
        let sentences = [&mut expected, &mut found].map(|body| body["error"]["message"].take());
        let [begins, says] = sentences.each_ref().map(|sentence| sentence.as_str().expect("a sentence"));
        assert!(says.starts_with(begins.trim_end_matches('.')), "{}: {says}", row.when);
    }
    assert_eq!((response.status, found), (row.status, expected), "{}", row.when);
    for (name, value) in &row.headers {
        let value = value.as_str().unwrap_or_default();
        let value = if value == "req_<id>" { id } else { value };
        assert_eq!(response.header(name), Some(value), "{}: {name}", row.when);
    }
}

/// The rows whose sentence goes on to say where, what was found, or what to do.
const SAYS_MORE: [&str; 3] = ["body does not parse", "no Authorization", "wrong content type"];

fn user() -> Value {
    json!([{"role": "user", "content": "Hi."}])
}

/// A body just over the limit of [`small`].
fn large() -> Value {
    json!({"model": "alt-flash", "input": "x".repeat(1 << 16)})
}

/// A gateway that takes little, and not for long.
fn small() -> Server {
    Server::configured("[limits]\njson_body = \"64KiB\"\nbody_idle = \"200ms\"\nconcurrency = 1\n")
}

/// The request that is answered by a row of the OpenAI-style errors.
fn provoke(when: &str) -> Option<Request> {
    let responses = |body: Value| Request::post("/v1/responses", &body).bearer(TEXT);
    let generation = |body: Value| Request::post("/v1/images/generations", &body).bearer(IMAGES);
    let edit = |body: Value| Request::post("/v1/images/edits", &body).bearer(IMAGES);
    Some(match when {
        "Responses without model" => responses(json!({"input": user()})),
        "Responses without input" => responses(json!({"model": "alt-flash"})),
        "string input for model-5.5" => responses(json!({"model": "model-5.5", "input": "Hi."})),
        "image endpoint without prompt" => generation(json!({})),
        "partial_images -1" => generation(json!({"prompt": "x", "partial_images": -1})),
        "partial_images 4" => generation(json!({"prompt": "x", "partial_images": 4})),
        "mask.file_id" => edit(json!({"prompt": "x", "images": [{"image_url": RED}], "mask": {"file_id": "f"}})),
        "edit without image" => edit(json!({"prompt": "x"})),
        "text key on an image endpoint" => Request::post("/v1/images/generations", &json!({})).bearer(TEXT),
        "body does not parse" => Request::post_bytes("/v1/responses", b"{\"model\":").bearer(TEXT),
        "no Authorization" => Request::post("/v1/responses", &json!({})),
        "unknown key" => Request::post("/v1/responses", &json!({})).bearer("sg_nobody"),
        "unknown model" => responses(json!({"model": "nope", "input": user()})),
        "unknown path" => Request::post("/v1/nope", &json!({})).bearer(TEXT),
        "wrong method" => Request::get("/v1/responses").bearer(TEXT),
        "body over the limit" => responses(large()),
        "wrong content type" => {
            Request::post_bytes("/v1/responses", b"{}").header("content-type", "text/plain").bearer(TEXT)
        }
        _ => return None,
    })
}

/// The request that is answered by a row of the Messages-style errors.
fn provoke_messages(when: &str) -> Option<Request> {
    let messages = |body: Value| Request::post("/v1/messages", &body).bearer(MESSAGES);
    Some(match when {
        "missing max_tokens" => messages(json!({"model": "msg-sonnet-5", "messages": user()})),
        "empty messages" => messages(json!({"model": "msg-sonnet-5", "messages": [], "max_tokens": 1})),
        "unknown key" => Request::post("/v1/messages", &json!({})).header("x-api-key", "sg_nobody"),
        "text key on /v1/messages" => Request::post("/v1/messages", &json!({})).bearer(TEXT),
        "unknown model" => messages(json!({"model": "nope", "messages": user(), "max_tokens": 1})),
        "body over the limit" => messages(large()),
        _ => return None,
    })
}

/// What is missing or out of range is 400 with its code and field, as the tables of errors have it.
#[test]
fn j06_each_error_is_told_to_the_letter() {
    let server = small();
    let mut told = 0;
    for row in rows(include_str!("fixtures/errors-openai-style.json")) {
        if let Some(request) = provoke(&row.when) {
            assert_row(&row, &request.send(server.address()));
            told += 1;
        }
    }
    for row in rows(include_str!("fixtures/errors-messages-style.json")) {
        if let Some(request) = provoke_messages(&row.when) {
            assert_row(&row, &request.send(server.address()));
            told += 1;
        }
    }
    assert_eq!(told, 23);
}

fn row(table: &str, when: &str) -> Row {
    rows(table).into_iter().find(|row| row.when == when).expect("the row is there")
}

#[test]
fn over_the_limit_each_protocol_is_told_in_its_own_words() {
    let server = small();
    let long = json!({"model": "alt-flash", "input": "Tell a long story.", "stream": true, "max_output_tokens": 400});
    let mut holder = Connection::open(server.address());
    holder.send(&Request::post("/v1/responses", &long).bearer(TEXT).bytes());
    assert_eq!(holder.head().0, 200, "the only permit is out");

    let over =
        row(include_str!("fixtures/errors-openai-style.json"), "non-streaming request over the concurrency limit");
    assert_row(&over, &server.post(TEXT, "/v1/responses", &json!({"model": "alt-flash", "input": "Hi."})));
    for streams in [false, true] {
        let body = json!({"model": "alt-flash", "messages": user(), "stream": streams});
        assert_row(&over, &server.post(TEXT, "/v1/chat/completions", &body));
    }
    let over = row(include_str!("fixtures/errors-messages-style.json"), "over the concurrency limit");
    for streams in [false, true] {
        let body = json!({"model": "msg-sonnet-5", "messages": user(), "max_tokens": 1, "stream": streams});
        assert_row(&over, &server.post(MESSAGES, "/v1/messages", &body));
    }
    let streamed = server.post(TEXT, "/v1/responses", &json!({"model": "alt-flash", "input": "Hi.", "stream": true}));
    let failure = crate::stream::responses(&streamed).failure();
    assert!(failure.contains("gateway_concurrency_limit") && failure.contains("try again in 1s"), "{failure}");
    assert_eq!(crate::stream::data(&streamed).len(), 2, "response.created and response.failed");
}

#[test]
fn a_body_that_does_not_come_is_given_up() {
    let server = small();
    let slow = row(include_str!("fixtures/errors-openai-style.json"), "slow upload");
    let mut connection = Connection::open(server.address());
    let head = format!(
        "POST /v1/responses HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {TEXT}\r\ncontent-length: 50\r\n\r\n{{\"model\""
    );
    connection.send(head.as_bytes());
    assert_row(&slow, &connection.response());
    assert!(connection.is_closed());
}

#[test]
fn the_checks_come_in_their_order() {
    let server = small();
    // Each request is wrong in every way that comes after, too.
    let post = |path: &str, key: &str, kind: &str, body: &str| {
        Request::post_bytes(path, body.as_bytes()).bearer(key).header("content-type", kind)
    };
    let too_large = "{".repeat(1 << 17);
    let responses = "/v1/responses";
    let unknown_field = r#"{"model":"nope","input":7}"#;
    for (status, code, request) in [
        (404, "not_found", post("/v1/nope", "nobody", "x/y", &too_large).method("PUT")),
        (405, "method_not_allowed", post(responses, "nobody", "x/y", &too_large).method("PUT")),
        (401, "invalid_api_key", post(responses, "nobody", "x/y", &too_large)),
        (403, "insufficient_permissions", post(responses, IMAGES, "x/y", &too_large)),
        (413, "request_too_large", post(responses, TEXT, "x/y", &too_large)),
        (415, "unsupported_media_type", post(responses, TEXT, "x/y", "{")),
        (400, "invalid_json", post(responses, TEXT, "application/json", "{")),
        (400, "invalid_type", post(responses, TEXT, "application/json", unknown_field)),
        (404, "model_not_found", post(responses, TEXT, "application/json", r#"{"model":"nope","input":"Hi."}"#)),
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
        assert_eq!((response.status, &response.json()["error"]["code"]), (status, &json!(code)), "{}", response.text());
    }
}

/// Everything that is wrong with a body is told at once, with its path.
#[test]
fn j05_every_violation_is_told_at_once_with_its_path() {
    let server = Server::shared();
    let body = json!({"model": "alt-flash", "input": [{"role": "nobody", "content": "Hi."}], "temperature": 9, "max_output_tokens": 0});
    let response = server.post(TEXT, "/v1/responses", &body);
    let error = &response.json()["error"];
    assert_eq!(response.status, 400);
    for path in ["input[0].role", "temperature", "max_output_tokens"] {
        assert!(error["message"].as_str().unwrap().contains(path), "{path}: {error}");
    }
}

/// What is no JSON object of the right shape is 400, and the server lives.
#[test]
fn j01_hostile_bodies_are_refused_and_the_server_lives() {
    let server = Server::shared();
    let deep = "[".repeat(100_000);
    for body in
        [deep.as_str(), "", "null", "7", "\"x\"", "[]", "{}", "{\"model\":\"\\ud800\"}", "\u{feff}{}", "{\"a\":1e999}"]
    {
        for path in ["/v1/responses", "/v1/chat/completions"] {
            let response = Request::post_bytes(path, body.as_bytes()).bearer(TEXT).send(server.address());
            let error = &response.json()["error"];
            assert_eq!(
                (response.status, &error["type"]),
                (400, &json!("invalid_request_error")),
                "{body:.40}: {error}"
            );
            assert_eq!(error.as_object().unwrap().len(), 4, "all four members, always: {error}");
        }
    }
    let twice = r#"{"model":"alt-flash","model":"model-5.5","input":"Hi."}"#;
    assert_eq!(Request::post_bytes("/v1/responses", twice.as_bytes()).bearer(TEXT).send(server.address()).status, 400);
}

#[test]
fn stored_files_and_text_models_on_image_endpoints_are_refused() {
    let server = Server::shared();
    let images = json!([{"image_url": RED}, {"file_id": "file-1"}]);
    let stored = server.post(IMAGES, "/v1/images/edits", &json!({"prompt": "x", "images": images}));
    let error = &stored.json()["error"];
    assert_eq!((stored.status, &error["code"]), (400, &json!("unsupported_parameter")));
    assert_eq!(error["param"], "images[1].file_id");
    let body = json!({"prompt": "A boat", "model": "alt-flash"});
    let text = server.post(IMAGES, "/v1/images/generations", &body);
    assert_eq!((text.status, &text.json()["error"]["code"]), (400, &json!("model_not_supported")));
}

/// A compressed body is 415, whatever is in it: nothing is ever unpacked.
#[test]
fn l11_compressed_bodies_are_refused_with_the_reason() {
    let server = Server::shared();
    let request = Request::post_bytes("/v1/responses", b"\x1f\x8b").bearer(TEXT).header("content-encoding", "gzip");
    let response = request.send(server.address());
    assert_eq!((response.status, &response.json()["error"]["code"]), (415, &json!("unsupported_media_type")));
}

#[test]
fn a_failing_request_does_not_disturb_its_neighbours() {
    let server = Server::shared();
    let good =
        json!({"model": "alt-flash", "input": "Say hello.", "max_output_tokens": 4, "reasoning": {"effort": "none"}});
    thread::scope(|scope| {
        let bad = scope.spawn(|| (0..20).all(|_| server.post(TEXT, "/v1/responses", &json!({})).status == 400));
        let served = server.post(TEXT, "/v1/responses", &good);
        assert_eq!((served.status, bad.join().expect("no client failed")), (200, true), "{}", served.text());
    });
}
