//! API keys: authentication, capabilities and models, as a table over every route.

use serde_json::{Value, json};
use testkit::{IMAGES, MESSAGES, Request, Response, TEXT};

use crate::GATEWAY;
use crate::chat::RED;

/// Every route that requires a key, with a valid body.
fn routes() -> Vec<(&'static str, Request)> {
    let user = json!([{"role": "user", "content": "Hi."}]);
    vec![
        (
            "text",
            Request::post(
                "/v1/responses",
                &json!({"model": "alt-flash", "input": "Hi.", "max_output_tokens": 1}),
            ),
        ),
        (
            "text",
            Request::post(
                "/v1/chat/completions",
                &json!({"model": "alt-flash", "messages": user, "max_tokens": 1}),
            ),
        ),
        (
            "messages",
            Request::post(
                "/v1/messages",
                &json!({"model": "msg-sonnet-5", "messages": user, "max_tokens": 1}),
            ),
        ),
        (
            "messages",
            Request::post(
                "/v1/messages/count_tokens",
                &json!({"model": "msg-sonnet-5", "messages": user}),
            ),
        ),
        (
            "text",
            Request::post(
                "/v1/responses/input_tokens",
                &json!({"model": "alt-flash", "input": "x"}),
            ),
        ),
        (
            "images",
            Request::post("/v1/images/generations", &json!({"prompt": "x"})),
        ),
        (
            "images",
            Request::post("/v1/images/edits", &json!({"prompt": "x", "image": RED})),
        ),
        ("any", Request::get("/v1/models")),
        ("any", Request::get("/v1/models/alt-flash")),
    ]
}

#[track_caller]
fn assert_unauthorized(response: &Response, code: &str) {
    assert_eq!(response.status, 401, "{}", response.text());
    assert_eq!(response.header("www-authenticate"), Some("Bearer"));
    let body = response.json();
    match body["type"].as_str() {
        Some("error") => assert_eq!(body["error"]["type"], "authentication_error"),
        _ => assert_eq!(body["error"]["code"], code),
    }
}

/// Without exactly one key in one header of the right scheme every route answers 401, and a key in
/// the URL is never read.
#[test]
fn a01_without_a_key_nothing_is_served() {
    let server = GATEWAY.shared();
    for (_, route) in routes() {
        let send = |request: Request| request.send(server.address());
        assert_unauthorized(&send(route.clone()), "missing_api_key");
        for header in [
            "",
            "Basic dXNlcjpwYXNz",
            "Bearer",
            "Bearer ",
            TEXT,
            "Token abc",
        ] {
            let response = send(route.clone().header("authorization", header));
            assert_eq!(response.status, 401, "{header:?}: {}", response.text());
        }
        let twice = route.clone().bearer(TEXT).bearer(TEXT);
        assert_eq!(send(twice).status, 401, "two keys are no key");
    }
    let in_query = Request::get(&format!("/v1/models?api_key={TEXT}&key={TEXT}"));
    assert_unauthorized(&in_query.send(server.address()), "missing_api_key");
}

/// An unknown and an expired key are refused with the same 401, apart from the request id.
#[test]
fn a02_unknown_and_expired_keys_are_refused_alike() {
    let key = "sg_an_expired_key_0000000000000000000";
    let hash = auth::KeyHash::of(&auth::Key::parse(key).unwrap());
    let server = GATEWAY.without_engines(&format!(
        "[[keys]]\nname = \"old\"\nhash = \"{hash}\"\nscopes = [\"text\", \"messages\"]\nexpires = \"2020-01-01\"\n"
    ));
    for (_, route) in routes() {
        let bodies = [key, "sg_an_unknown_key_0000000000000000000"].map(|key| {
            let response = route.clone().bearer(key).send(server.address());
            assert_unauthorized(&response, "invalid_api_key");
            let id = response.header("x-request-id").unwrap().to_owned();
            response.text().replace(&id, "")
        });
        assert_eq!(bodies[0], bodies[1], "but for the request id");
    }
}

/// A key that differs in its last byte, or is truncated or extended, is refused.
#[test]
fn a03_every_byte_of_a_key_counts() {
    let server = GATEWAY.shared();
    let (start, _) = TEXT.split_at(TEXT.len() - 1);
    for key in [
        format!("{start}1"),
        start.to_owned(),
        format!("{TEXT}0"),
        TEXT.to_uppercase(),
        format!("{}x", &TEXT[..20]),
    ] {
        assert_unauthorized(&server.get(&key, "/v1/models"), "invalid_api_key");
    }
    assert_eq!(server.get(TEXT, "/v1/models").status, 200);
}

/// Keys with metacharacters, of huge length or with non-ASCII bytes are refused like any wrong key.
#[test]
fn a04_hostile_keys_are_only_wrong_keys() {
    let server = GATEWAY.shared();
    let long = "k".repeat(60_000);
    for key in [
        "' OR '1'='1",
        "*)(uid=*",
        "%s%n",
        "{{7*7}}",
        "../../etc/passwd",
        "k\u{e9}y",
        &long,
    ] {
        assert_unauthorized(&server.get(key, "/v1/models"), "invalid_api_key");
    }
    for spelled in [
        format!("bearer {TEXT}"),
        format!("BEARER   {TEXT}  "),
        format!("  Bearer {TEXT}"),
    ] {
        let response = Request::get("/v1/models")
            .header("authorization", &spelled)
            .send(server.address());
        assert_eq!(response.status, 200, "{spelled:?}");
    }
}

/// On every route a key without the route's capability is refused with 403.
#[test]
fn a05_a_key_opens_its_own_capability_alone() {
    let server = GATEWAY.shared();
    for (needs, route) in routes() {
        for (scope, key) in [("text", TEXT), ("messages", MESSAGES), ("images", IMAGES)] {
            let response = route.clone().bearer(key).send(server.address());
            let opens = needs == "any" || needs == scope;
            match response.status {
                403 if !opens => assert_permission_error(&response.json()),
                status => assert_eq!(
                    (status, opens),
                    (200, true),
                    "{needs} with {scope}: {}",
                    response.text()
                ),
            }
        }
    }
}

/// A missing capability is refused with 403 before the body is read.
#[test]
fn a05_capability_is_judged_before_the_body() {
    let server = GATEWAY.shared();
    let response = Request::post_bytes("/v1/responses", b"{")
        .bearer(IMAGES)
        .send(server.address());
    assert_eq!(
        (response.status, &response.json()["error"]["code"]),
        (403, &json!("insufficient_permissions"))
    );
}

fn assert_permission_error(body: &Value) {
    if body["type"] == "error" {
        assert_eq!(body["error"]["type"], "permission_error");
    } else {
        assert_eq!(body["error"]["type"], "invalid_request_error");
        assert_eq!(body["error"]["code"], "insufficient_permissions");
    }
}

/// An unknown model is 404, a model that the key may not use is 403, and the models list contains
/// those that the key may use.
#[test]
fn a06_unknown_and_forbidden_models_have_different_errors() {
    let key = "sg_a_narrow_key_000000000000000000000";
    let hash = auth::KeyHash::of(&auth::Key::parse(key).unwrap());
    let server = GATEWAY.configured(&format!(
        "[[keys]]\nname = \"narrow\"\nhash = \"{hash}\"\nscopes = [\"text\"]\nmodels = [\"model-5.*\"]\n"
    ));
    let ask = |model: &str| {
        let body = json!({"model": model, "input": [{"role": "user", "content": "Hi."}], "max_output_tokens": 1});
        server.post(key, "/v1/responses", &body)
    };
    let (unknown, forbidden, allowed) = (ask("nope"), ask("alt-flash"), ask("model-5.5"));
    assert_eq!(
        (unknown.status, &unknown.json()["error"]["code"]),
        (404, &json!("model_not_found"))
    );
    assert_eq!(
        (forbidden.status, &forbidden.json()["error"]["code"]),
        (403, &json!("insufficient_permissions"))
    );
    assert_eq!(allowed.status, 200, "{}", allowed.text());
    let list = server.get(key, "/v1/models").json();
    let mut ids: Vec<_> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(
        ids,
        [
            "model-5.5",
            "model-5.6-luna",
            "model-5.6-sol",
            "model-5.6-terra"
        ]
    );
    assert_eq!(server.get(key, "/v1/models/alt-flash").status, 404);
}

#[test]
fn x_api_key_is_read_on_messages_and_models_alone() {
    let server = GATEWAY.shared();
    for (needs, route) in routes() {
        let key = match needs {
            "text" => TEXT,
            "images" => IMAGES,
            _ => MESSAGES,
        };
        let status = route
            .clone()
            .header("x-api-key", key)
            .send(server.address())
            .status;
        let is_read = ["messages", "any"].contains(&needs);
        assert_eq!(status, if is_read { 200 } else { 401 }, "{needs}");
    }
    // Clients may carry another vendor's key in the other header.
    let both = Request::get("/v1/models")
        .bearer("sk-of-another-vendor")
        .header("x-api-key", MESSAGES);
    assert_eq!(both.send(server.address()).status, 200);
}
