//! Pictures by URL: every route validates them in the same way, and none sends requests to internal
//! addresses.

use serde_json::{Value, json};
use testkit::{Gateway, IMAGES, MESSAGES, Request, TEXT};

use crate::GATEWAY;

/// A request to each route that accepts the URL of a picture.
fn routes(url: &str) -> [(&'static str, &'static str, Value); 6] {
    let ask = json!({"type": "text", "text": "What is this?"});
    let chat = json!([ask, {"type": "image_url", "image_url": {"url": url}}]);
    let responses = json!([{"type": "input_image", "image_url": url, "detail": "auto"}]);
    let message = json!([ask, {"type": "image", "source": {"type": "url", "url": url}}]);
    let messages = json!([{"role": "user", "content": message}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": [message[1]]}]);
    let called = json!([
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]},
        {"role": "user", "content": result},
    ]);
    [
        (
            TEXT,
            "/v1/responses",
            json!({"model": "model-5.5", "input": [{"role": "user", "content": responses}]}),
        ),
        (
            TEXT,
            "/v1/chat/completions",
            json!({"model": "alt-flash", "messages": [{"role": "user", "content": chat}]}),
        ),
        (
            MESSAGES,
            "/v1/messages",
            json!({"model": "msg-sonnet-5", "max_tokens": 4, "messages": messages}),
        ),
        (
            MESSAGES,
            "/v1/messages",
            json!({"model": "msg-sonnet-5", "max_tokens": 4, "messages": called}),
        ),
        (
            MESSAGES,
            "/v1/messages/count_tokens",
            json!({"model": "msg-sonnet-5", "messages": messages}),
        ),
        (
            IMAGES,
            "/v1/images/edits",
            json!({"prompt": "x", "images": [{"image_url": url}]}),
        ),
    ]
}

fn fetches(server: &Gateway, outcome: &str) -> f64 {
    let text = Request::get("/metrics").send(server.admin.expect("an admin address"));
    let name = format!("sluicegate_fetches_total{{outcome=\"{outcome}\"}} ");
    text.text()
        .lines()
        .find_map(|line| line.strip_prefix(&name)?.parse().ok())
        .unwrap_or(0.0)
}

/// Every route that accepts picture URLs refuses URLs with internal addresses, in the one module
/// that fetches.
#[test]
fn f15_f02_no_route_leads_inside() {
    let server = GATEWAY.configured("");
    let inside = [
        "https://127.0.0.1/a.png",
        "https://localhost/a.png",
        "https://[::1]/a.png",
        "https://2130706433/a.png",
    ];
    for url in inside {
        for (key, path, body) in routes(url) {
            let before = fetches(&server, "url");
            let response = server.post(key, path, &body);
            assert_eq!(response.status, 400, "{path} {url}: {}", response.text());
            assert!(
                response.text().contains("image URL is not allowed"),
                "{}",
                response.text()
            );
            assert_eq!(
                fetches(&server, "url"),
                before + 1.0,
                "{path} used the one module that fetches"
            );
        }
    }
}

/// With fetching disabled, or enabled for other hosts only, a picture URL is refused with 400 on
/// every route.
#[test]
fn f14_fetching_can_be_off_or_for_some_hosts_alone() {
    let off = GATEWAY.configured("[fetch]\nmode = \"off\"\n");
    let some =
        GATEWAY.configured("[fetch]\nmode = \"allow_list\"\nhosts = [\"img.example.com\"]\n");
    for (server, outcome) in [(off, "off"), (some, "url")] {
        for (key, path, body) in routes("https://www.example.org/a.png") {
            let response = server.post(key, path, &body);
            assert_eq!(response.status, 400, "{path}: {}", response.text());
        }
        assert_eq!(fetches(&server, outcome), 6.0);
    }
}

/// More picture URLs than the limit for one request are refused with 400 before any is fetched.
#[test]
fn f11_too_many_addresses_are_refused_before_any_is_fetched() {
    let server = GATEWAY.configured("");
    let part = |number: usize| {
        let url = format!("https://pictures.example/{number}.png");
        json!({"type": "input_image", "image_url": url})
    };
    let parts: Vec<_> = (0..17).map(part).collect();
    let body = json!({"model": "model-5.5", "input": [{"role": "user", "content": parts}]});
    let response = server.post(TEXT, "/v1/responses", &body);
    assert_eq!(response.status, 400, "{}", response.text());
    assert!(
        response.text().contains("at most 16 are fetched"),
        "{}",
        response.text()
    );
    let metrics = Request::get("/metrics").send(server.admin.expect("an admin address"));
    assert!(
        !metrics.text().contains("sluicegate_fetches_total{"),
        "nothing was fetched"
    );
}
