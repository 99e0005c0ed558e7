//! Tests of the console's sign-in, and of its requests to the public API.

use http::HeaderName;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, COOKIE, ETAG, IF_NONE_MATCH, ORIGIN,
    SET_COOKIE, VARY,
};

use super::*;

const ORIGIN_OF_CONSOLE: &str = "http://127.0.0.1:9090";

fn from_console(method: Method, path: &str, cookie: &str) -> http::request::Builder {
    Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, "127.0.0.1:9090")
        .header(ORIGIN, ORIGIN_OF_CONSOLE)
        .header(COOKIE, cookie)
        .header("x-sluicegate-console", "1")
}

async fn send(harness: &Harness, request: http::request::Builder, body: &str) -> Response<Body> {
    let request = request.body(whole_client_body(body.to_owned()));
    harness
        .admin
        .answer(request.unwrap(), &Arc::default())
        .await
}

async fn sign_in(harness: &Harness, body: Value) -> Response<Body> {
    let request = from_console(Method::POST, "/console/session", "");
    send(harness, request, &body.to_string()).await
}

/// Signs in, and returns the cookie as a browser sends it.
async fn cookie(harness: &Harness) -> String {
    let response = sign_in(harness, json!({"key": ADMIN})).await;
    assert_eq!(response.status(), 204);
    let cookie = response.headers()[SET_COOKIE].to_str().unwrap();
    assert!(
        cookie.ends_with("; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict"),
        "{cookie}"
    );
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn the_admin_key_or_a_one_time_token_begins_a_session() {
    let harness = Harness::new("");
    let token = harness.admin.access.sessions.issue_token();
    for (body, status) in [
        (json!({"key": "sg_wrong"}), 401),
        (json!({"token": "sg_wrong"}), 401),
        (json!({"token": token.expose()}), 204),
        (json!({"token": token.expose()}), 401),
        (json!({}), 400),
        (json!({"key": ADMIN, "token": "a"}), 400),
    ] {
        assert_eq!(
            sign_in(&harness, body.clone()).await.status(),
            status,
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_session_is_admitted_until_it_is_ended() {
    let harness = Harness::new("");
    let cookie = cookie(&harness).await;
    let status = async |method: Method, path: &str| {
        let request = from_console(method, path, &cookie);
        send(&harness, request, "").await.status().as_u16()
    };
    assert_eq!(status(Method::GET, "/admin/v1/keys").await, 200);
    assert_eq!(status(Method::GET, "/console/session").await, 200);
    assert_eq!(status(Method::HEAD, "/console/session").await, 200);
    assert_eq!(status(Method::GET, "/console/keys").await, 200);
    assert_eq!(status(Method::DELETE, "/console/session").await, 204);
    assert_eq!(status(Method::GET, "/admin/v1/keys").await, 401);
    assert_eq!(status(Method::GET, "/console/session").await, 401);
    assert_eq!(status(Method::GET, "/console/keys").await, 401);
}

/// A page of another origin can make a browser send requests to this address.
#[tokio::test]
async fn requests_of_other_origins_are_refused() {
    let harness = Harness::new("");
    let cookie = cookie(&harness).await;
    for path in [
        "/",
        "/admin/v1/keys",
        "/console/keys",
        "/metrics",
        "/play/v1/models",
    ] {
        for origin in ["http://evil.example", "null", "http://127.0.0.1:8080"] {
            let request = Request::get(path)
                .header(HOST, "127.0.0.1:9090")
                .header(ORIGIN, origin)
                .header(COOKIE, &cookie);
            let status = send(&harness, request, "").await.status();
            assert!(
                [403, 421].contains(&status.as_u16()),
                "{path} {origin}: {status}"
            );
        }
    }
    // A form can send a request without any header of its own.
    let form = Request::post("/admin/v1/keys")
        .header(HOST, "127.0.0.1:9090")
        .header(COOKIE, &cookie);
    let body = r#"{"name": "a", "scopes": ["text"]}"#;
    assert_eq!(send(&harness, form, body).await.status(), 403);
    let own = from_console(Method::POST, "/admin/v1/keys", &cookie);
    assert_eq!(send(&harness, own, body).await.status(), 201);
}

#[tokio::test]
async fn the_console_uses_the_public_api_like_everybody() {
    let harness = Harness::new("");
    let cookie = cookie(&harness).await;
    let body = r#"{"model": "text", "messages": [{"role": "user", "content": "Hi."}]}"#;
    let ask = |cookie: &str, key: &str| {
        from_console(Method::POST, "/play/v1/chat/completions", cookie)
            .header(CONTENT_TYPE, "application/json")
            .header(AUTHORIZATION, format!("Bearer {key}"))
    };
    assert_eq!(send(&harness, ask("", FIRST), body).await.status(), 401);
    assert_eq!(
        send(&harness, ask(&cookie, "sg_wrong"), body)
            .await
            .status(),
        401
    );
    let response = send(&harness, ask(&cookie, FIRST), body).await;
    assert_eq!(response.status(), 200);
    let id = response.headers()["x-request-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let reply = read(response).await;
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "Hello.");
    let report = harness.gateway.state.history.find(&id).unwrap();
    assert_eq!(report.outcome.as_str(), "completed");
}

#[tokio::test]
async fn the_files_have_a_content_security_policy() {
    let harness = Harness::new("");
    for (path, media_type) in [
        ("/", "text/html; charset=utf-8"),
        ("/console/app.js", "text/javascript; charset=utf-8"),
    ] {
        let request = Request::get(path).header(HOST, "localhost");
        let response = send(&harness, request, "").await;
        assert_eq!(response.status(), 200);
        let headers = response.headers();
        assert_eq!(headers[CONTENT_TYPE], media_type);
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.contains("require-trusted-types-for 'script'"),
            "{policy}"
        );
        assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    }
    let request = Request::get("/console/absent.js").header(HOST, "localhost");
    assert_eq!(send(&harness, request, "").await.status(), 404);
}

/// A browser keeps each encoding of a file by its tag, and asks again with it.
#[tokio::test]
async fn the_files_are_compressed_and_sent_once() {
    let harness = Harness::new("");
    let get = async |headers: &[(HeaderName, &str)]| {
        let request = Request::get("/console/dom.js").header(HOST, "localhost");
        let request = headers.iter().fold(request, |request, (name, value)| {
            request.header(name, *value)
        });
        let response = send(&harness, request, "").await;
        let (head, body) = response.into_parts();
        (head, body.collect().await.unwrap().to_bytes())
    };
    let (plain, text) = get(&[]).await;
    assert!(!plain.headers.contains_key(CONTENT_ENCODING));
    let (head, compressed) = get(&[(ACCEPT_ENCODING, "gzip, deflate")]).await;
    assert_eq!(head.headers[CONTENT_ENCODING], "gzip");
    assert_eq!(head.headers[VARY], "accept-encoding");
    // RFC 1952: ID1, ID2 and the method `deflate`.
    assert!(compressed.starts_with(&[0x1f, 0x8b, 8]) && compressed.len() < text.len() / 2);
    let tag = head.headers[ETAG].to_str().unwrap();
    assert_ne!(plain.headers[ETAG], tag);
    for (tags, status, length) in [
        (tag.to_owned(), 304, 0),
        (format!("\"a\", W/{tag}"), 304, 0),
        ("\"a\"".to_owned(), 200, compressed.len()),
    ] {
        let (head, body) = get(&[(ACCEPT_ENCODING, "gzip"), (IF_NONE_MATCH, &tags)]).await;
        assert_eq!(
            (head.status.as_u16(), body.len()),
            (status, length),
            "{tags}"
        );
        assert_eq!(head.headers[ETAG], tag);
    }
}
