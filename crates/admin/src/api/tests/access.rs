//! Tests of who may call the admin API, and of its paths.

use super::*;

async fn send(harness: &Harness, request: http::request::Builder) -> Reply {
    let request = request.body(whole_client_body(Bytes::new())).unwrap();
    read(harness.admin.answer(request, &Arc::default()).await).await
}

#[tokio::test]
async fn only_the_admin_key_is_accepted() {
    let harness = Harness::new("");
    let with = |key: &str| {
        Request::get("/admin/v1/keys")
            .header(HOST, "localhost")
            .header(AUTHORIZATION, key)
    };
    let admin = format!("Bearer {ADMIN}");
    assert_eq!(send(&harness, with(&admin)).await.status, 200);
    let wrong = format!("Bearer {FIRST}");
    for key in [wrong.as_str(), "Bearer ", "Basic YTpi", "Bearer x"] {
        let reply = send(&harness, with(key)).await;
        assert_eq!(reply.status, 401, "{key}");
        assert_eq!(error(&reply).0, "invalid_admin_key");
    }
    let without = Request::get("/admin/v1/keys").header(HOST, "localhost");
    assert_eq!(send(&harness, without).await.status, 401);
}

/// A page of the web must not read metrics by a name that it has resolved to this address. Probes
/// and scrapes by an address, or without a host, go on.
#[tokio::test]
async fn every_path_of_the_admin_address_has_the_same_hosts() {
    let harness = Harness::new("");
    for path in ["/livez", "/readyz", "/metrics", "/", "/admin/v1/keys"] {
        for host in [
            "evil.example:9090",
            "localhost.evil.example",
            "0.0.0.0:9090",
        ] {
            let foreign = Request::get(path).header(HOST, host);
            assert_eq!(send(&harness, foreign).await.status, 421, "{path} {host}");
        }
    }
    for path in ["/livez", "/readyz", "/metrics"] {
        for host in ["localhost", "10.1.2.3:9090", "[fd00::1]:9090"] {
            let own = Request::get(path).header(HOST, host);
            assert_eq!(send(&harness, own).await.status, 200, "{path} {host}");
        }
        assert_eq!(
            send(&harness, Request::get(path)).await.status,
            200,
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_foreign_host_is_refused_before_the_key_is_looked_at() {
    let harness = Harness::new("");
    let foreign = Request::get("/admin/v1/keys").header(HOST, "evil.example:9090");
    let reply = send(&harness, foreign).await;
    assert_eq!(reply.status, 421);
    assert_eq!(error(&reply).0, "wrong_host");
}

#[tokio::test]
async fn without_its_key_or_store_there_is_no_admin_api() {
    let without_key = TestGateway::new(Engine::default(), "");
    let list = || request(Method::GET, "/admin/v1/keys").body(whole_client_body(Bytes::new()));
    let admin = admin_of(&without_key, None);
    let reply = read(admin.answer(list().unwrap(), &Arc::default()).await).await;
    assert_eq!(
        (reply.status, error(&reply).0),
        (404, json!("admin_api_disabled"))
    );
    let admin = admin_of(&TestGateway::new(Engine::default(), ""), Some(ADMIN));
    let reply = read(admin.answer(list().unwrap(), &Arc::default()).await).await;
    assert_eq!((reply.status, error(&reply).0), (404, json!("no_store")));
}

#[tokio::test]
async fn paths_methods_and_parameters_that_do_not_exist_are_refused() {
    let harness = Harness::new("");
    for path in [
        "/admin/v1",
        "/admin/v1/",
        "/admin/v1/key",
        "/admin/v1/keys/",
        "/admin/v1/keys/a/b",
    ] {
        assert_eq!(harness.get(path).await.status, 404, "{path}");
    }
    let put = request(Method::PUT, "/admin/v1/keys").body(whole_client_body(Bytes::new()));
    let response = harness.admin.answer(put.unwrap(), &Arc::default()).await;
    assert_eq!(response.status(), 405);
    assert_eq!(response.headers()["allow"], "GET, HEAD, POST");
    for (path, param, message) in [
        (
            "keys?revoke=true",
            "revoke",
            "revoke: is unknown; accepted: revoked",
        ),
        (
            "keys?revoked=yes",
            "revoked",
            "revoked: is 'yes', but must be one of true, false",
        ),
        (
            "keys?revoked=true&revoked=true",
            "revoked",
            "revoked: is given twice, but accepted once",
        ),
        (
            "usage?by=key,user",
            "by",
            "by: is 'key,user', but must be some of key, model, separated by commas",
        ),
        (
            "usage?from=monday",
            "from",
            "from: is 'monday', but must be a time such as 2027-01-31T12:00:00Z",
        ),
        (
            "usage?per=hour",
            "from",
            "from: is missing, but must be a time if 'per' is given",
        ),
        (
            "usage?per=minute&from=2026-01-01T00:00:00Z&to=2027-01-01T00:00:00Z",
            "per",
            "per: divides the time from 'from' to 'to' into 525600 intervals, but at most 10000 are accepted",
        ),
        (
            "usage?from=2027-02-01T00:00:00Z&to=2027-01-01T00:00:00Z",
            "to",
            "to: is before 'from'",
        ),
        (
            "usage/rows?from=2027-02-01T00:00:00Z&to=2027-01-01T00:00:00Z",
            "to",
            "to: is before 'from'",
        ),
        (
            "requests?outcome=upstream-error",
            "outcome",
            "outcome: is 'upstream-error', but must be one of completed, incomplete, refused, shed, upstream_error, \
             upstream_truncated, internal, timeout, client_gone, slow_reader, shutdown, revoked, lease_lost, \
             ended_by_operator",
        ),
        (
            "audit?limit=0",
            "limit",
            "limit: is \"0\", but must be a number from 1 to 1000",
        ),
        ("limits?a=b", "a", "a: is unknown; accepted: replicas"),
    ] {
        let reply = harness.get(&format!("/admin/v1/{path}")).await;
        let (_, found, text) = error(&reply);
        assert_eq!(reply.status, 400, "{path}");
        assert_eq!((found, text.as_str()), (json!(param), message), "{path}");
    }
}

/// The listener leaves out the content of a response to HEAD.
#[tokio::test]
async fn head_is_answered_as_get() {
    let harness = Harness::new("");
    for (path, status) in [
        ("/admin/v1/keys", 200),
        ("/admin/v1/keys/key_0", 404),
        ("/admin/v1/keys?revoke=true", 400),
        ("/admin/v1/live/req_0", 405),
    ] {
        let reply = send(&harness, request(Method::HEAD, path)).await;
        assert_eq!(reply.status, status, "{path}");
    }
    let reply = send(&harness, request(Method::HEAD, "/admin/v1/about")).await;
    assert_eq!(reply.json()["version"], "1.2.3");
}

/// An empty element of a list is ignored (RFC 9110 §5.6.1.2).
#[tokio::test]
async fn only_bodies_without_a_coding_are_read() {
    let harness = Harness::new("");
    for (coding, status) in [
        ("", 201),
        ("identity, identity", 201),
        ("gzip", 415),
        ("br", 415),
    ] {
        let body = json!({"name": format!("key-{}", coding.len()), "scopes": ["text"]});
        let request = request(Method::POST, "/admin/v1/keys")
            .header(http::header::CONTENT_ENCODING, coding)
            .body(whole_client_body(body.to_string()));
        let reply = read(
            harness
                .admin
                .answer(request.unwrap(), &Arc::default())
                .await,
        )
        .await;
        assert_eq!(reply.status, status, "{coding}");
    }
}

#[tokio::test]
async fn a_body_is_bounded() {
    let harness = Harness::new("");
    let body = json!({"name": "x".repeat(65_536), "scopes": ["text"]});
    let reply = harness.call(Method::POST, "/admin/v1/keys", body).await;
    assert_eq!(
        (reply.status, error(&reply).0),
        (413, json!("request_too_large"))
    );
    let reply = harness.call(Method::GET, "/admin/v1/keys", json!({})).await;
    assert_eq!(
        (reply.status, error(&reply).0),
        (400, json!("invalid_body"))
    );
}
