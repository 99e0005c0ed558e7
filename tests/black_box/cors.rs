//! Web pages that call the gateway (CORS).

use testkit::{Gateway, NOWHERE, Request, Response, TEXT};

use crate::GATEWAY;

const PAGE: &str = "https://app.example";

fn for_pages() -> Gateway {
    GATEWAY.configured(&format!("cors.origins = [\"{PAGE}\"]\n{NOWHERE}"))
}

/// The question of a browser before a page sends a POST request with these headers.
fn preflight(origin: &str, headers: &str) -> Request {
    Request::get("/v1/chat/completions")
        .method("OPTIONS")
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", headers)
}

/// The headers of CORS in a response, and `Vary`.
fn cors(response: &Response) -> Vec<(&str, &str)> {
    let headers = response.headers.iter();
    let pairs = headers.map(|(name, value)| (name.as_str(), value.as_str()));
    pairs
        .filter(|(name, _)| name.starts_with("access-control-") || *name == "vary")
        .collect()
}

/// A preflight of a known page needs no key, and names the methods and the headers that it may send.
#[test]
fn preflight_is_answered_before_the_key_is_checked() {
    let gateway = for_pages();
    let asked = "authorization,content-type,x-stainless-os,x-evil";
    let response = preflight(PAGE, asked).send(gateway.address());
    assert_eq!((response.status, response.body.len()), (204, 0));
    let mut found = cors(&response);
    let exposed = found
        .iter()
        .position(|(name, _)| *name == "access-control-expose-headers");
    found.remove(exposed.unwrap());
    assert_eq!(
        found,
        [
            ("access-control-allow-methods", "GET, POST, DELETE"),
            ("access-control-max-age", "7200"),
            ("vary", "Access-Control-Request-Headers"),
            ("vary", "origin"),
            (
                "access-control-allow-headers",
                "authorization, content-type, x-stainless-os"
            ),
            ("access-control-allow-origin", PAGE),
        ]
    );
    assert!(response.header("x-request-id").is_some());
}

/// Responses to a known page, also errors, can be read by it, with the headers that clients use.
#[test]
fn responses_to_a_known_page_can_be_read() {
    let gateway = for_pages();
    for (key, status) in [(TEXT, 200), ("sk-nobody", 401)] {
        let request = Request::get("/v1/models")
            .bearer(key)
            .header("origin", PAGE);
        let response = request.send(gateway.address());
        assert_eq!(response.status, status);
        assert_eq!(response.header("access-control-allow-origin"), Some(PAGE));
        assert_eq!(response.header("vary"), Some("origin"));
        assert_eq!(response.header("access-control-allow-credentials"), None);
        let exposed = response.header("access-control-expose-headers").unwrap();
        for name in [
            "x-request-id",
            "request-id",
            "retry-after",
            "x-ratelimit-remaining-requests",
            "anthropic-ratelimit-tokens-reset",
            "x-sluicegate-dropped",
        ] {
            assert!(exposed.split(", ").any(|found| found == name), "{name}");
        }
    }
}

/// A page of another origin gets no headers that let it read a response, and its preflight is refused as
/// an unknown method.
#[test]
fn other_pages_cannot_read_anything() {
    let gateway = for_pages();
    for origin in [
        "https://evil.example",
        "http://app.example",
        "null",
        "https://app.example.evil",
    ] {
        let refused = preflight(origin, "authorization").send(gateway.address());
        assert_eq!(
            (refused.status, cors(&refused)),
            (405, vec![("vary", "origin")]),
            "{origin}"
        );
        let request = Request::get("/v1/models")
            .bearer(TEXT)
            .header("origin", origin);
        let served = request.send(gateway.address());
        assert_eq!(
            (served.status, cors(&served)),
            (200, vec![("vary", "origin")]),
            "{origin}"
        );
    }
    // A client without a page.
    let served = gateway.get(TEXT, "/v1/models");
    assert_eq!(cors(&served), [("vary", "origin")]);
}

/// Without the setting there are no such headers, and on the admin address there are never any.
#[test]
fn cors_is_off_by_default_and_on_the_admin_address() {
    let gateway = GATEWAY.without_engines("");
    for request in [
        preflight(PAGE, "authorization"),
        Request::get("/v1/models")
            .bearer(TEXT)
            .header("origin", PAGE),
    ] {
        assert_eq!(cors(&request.send(gateway.address())), []);
    }
    let gateway = for_pages();
    let admin = gateway.admin.unwrap();
    for path in ["/metrics", "/admin/v1/keys", "/play/v1/models", "/"] {
        let response = Request::get(path).header("origin", PAGE).send(admin);
        assert_eq!(cors(&response), [], "{path}");
        assert!(
            [403, 421].contains(&response.status),
            "{path}: {}",
            response.status
        );
        let asked = preflight(PAGE, "authorization").send(admin);
        assert_eq!(cors(&asked), []);
    }
}

/// Any origin is refused, because clients have keys.
#[test]
fn a_wildcard_is_an_error_at_the_start() {
    let file = GATEWAY.file(
        "sluicegate.toml",
        &format!("cors.origins = [\"*\"]\n{NOWHERE}"),
    );
    let mut command = GATEWAY.command();
    let output = command
        .args(["serve", "--config"])
        .arg(&file.0)
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(
        message.contains("cors.origins[0]: is '*', but must be one origin, without '*'"),
        "{message}"
    );
    assert_eq!(message.lines().count(), 1, "{message}");
}
