//! F and I: pictures in requests, by URL and as data.

use serde_json::{Value, json};
use simulator::{Protocol, Simulator};
use testkit::requests::{RED, TEXT_PROTOCOLS, protocol_name};
use testkit::{CLIENT_KEY, Config, Gateway, Response};

use crate::GATEWAY;

/// A picture URL in an edit is validated before anything is fetched or forwarded, in a form and as
/// JSON.
#[test]
fn f01_f02_f15_addresses_of_edits_lead_nowhere_inside() {
    let red = format!("data:image/png;base64,{RED}");
    for edits in ["multipart", "json", "as_sent"] {
        let test = EditTest::new(edits, "");
        for url in INSIDE {
            let response = test.edit(&json!([{"image_url": url}]));
            assert_eq!(
                (response.status, &response.json()["error"]["param"]),
                (400, &json!("images[0].image_url")),
                "{url}"
            );
            assert_eq!(response.json()["error"]["code"], "invalid_value", "{url}");
            // Beside `images` it is not read by the gateway, but may be by an upstream.
            let body = json!({"model": "images", "prompt": "x", "images": [{"image_url": red}], "image": url});
            let response = test.gateway.post(CLIENT_KEY, "/v1/images/edits", &body);
            assert_eq!(
                (response.status, &response.json()["error"]["param"]),
                (400, &json!("image")),
                "{url}"
            );
        }
        test.nobody_was_asked();
    }
}

/// A picture URL in a conversation is validated before it is sent to an upstream, relayed or
/// translated and in any position.
#[test]
fn f01_f02_f15_addresses_in_conversations_lead_nowhere_inside() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let places = |url: &str| {
        let source = json!({"type": "url", "url": url});
        let result = json!({"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image", "source": source}]});
        let call = json!({"type": "tool_use", "id": "a", "name": "f", "input": {}});
        let responses = |part: Value| {
            (
                "/v1/responses",
                "input",
                json!([{"role": "user", "content": [part]}]),
            )
        };
        let messages = |messages: Value| ("/v1/messages", "messages", messages);
        [
            responses(json!({"type": "input_image", "image_url": url})),
            responses(json!({"type": "input_file", "file_url": url})),
            (
                "/v1/responses",
                "input",
                json!([
                    {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_image", "image_url": url}]},
                ]),
            ),
            (
                "/v1/chat/completions",
                "messages",
                json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]),
            ),
            messages(json!([{"role": "user", "content": [{"type": "image", "source": source}]}])),
            messages(
                json!([{"role": "user", "content": [{"type": "document", "source": source}]}]),
            ),
            messages(
                json!([{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]),
            ),
        ]
    };
    for model in TEXT_PROTOCOLS.map(protocol_name) {
        let asked = simulator.requests().len();
        for url in INSIDE.iter().filter(|url| url.starts_with("https://")) {
            for (path, field, input) in places(url) {
                let response = gateway.post(
                    CLIENT_KEY,
                    path,
                    &json!({"model": model, "max_tokens": 9, field: input}),
                );
                assert_eq!(response.status, 400, "{path} {input}: {}", response.text());
                assert!(
                    response.text().contains("not allowed"),
                    "{path} {input}: {}",
                    response.text()
                );
                let code = match path {
                    "/v1/chat/completions" => json!("invalid_image_url"),
                    "/v1/responses" => json!("invalid_value"),
                    _ => Value::Null,
                };
                assert_eq!(response.json()["error"]["code"], code, "{path} {input}");
            }
        }
        assert_eq!(
            simulator.requests().len(),
            asked,
            "no upstream request was sent"
        );
        for (path, field, input) in places("https://pictures.example/a.png") {
            let asked = simulator.requests().len();
            let response = gateway.post(
                CLIENT_KEY,
                path,
                &json!({"model": model, "max_tokens": 9, field: input}),
            );
            assert!(
                !response.text().contains("not allowed"),
                "{path} {input}: {}",
                response.text()
            );
            assert!(response.status != 200 || simulator.requests().len() == asked + 1);
        }
    }
    assert!(!simulator.requests().is_empty());
}

/// Pictures that are to be fetched reserve their share of the body memory before they are
/// downloaded.
#[test]
fn f11_l06_fetched_pictures_share_the_memory_for_bodies() {
    let test = EditTest::new(
        "multipart",
        "picture = \"1MiB\"\nedit_body = \"1MiB\"\njson_body = \"64KiB\"\nbody_memory = \"1MiB\"",
    );
    let response = test.edit(&json!([{"image_url": "https://pictures.example/a.png"}]));
    assert_eq!(
        (response.status, response.header("retry-after")),
        (503, Some("1")),
        "{}",
        response.text()
    );
    assert_eq!(
        test.gateway.sum("sluicegate_fetches_total"),
        0.0,
        "nothing is fetched for which there is no room"
    );
    let inline = format!("data:image/png;base64,{RED}");
    assert_eq!(
        test.edit(&json!([{"image_url": inline}])).status,
        200,
        "its share is back"
    );
}

/// Addresses to which no request may be sent.
const INSIDE: [&str; 21] = [
    "http://pictures.example/a.png",
    "ftp://pictures.example/a.png",
    "file:///etc/passwd",
    "gopher://pictures.example/a.png",
    "//pictures.example/a.png",
    "pictures.example/a.png",
    "https://user:word@pictures.example/a.png",
    "https://pictures.example:8443/a.png",
    "https:///a.png",
    "https://pictures.example/a.png#b",
    "https://localhost./a.png",
    "https://127.1/a.png",
    "https://2130706433/a.png",
    "https://0x7f.1/a.png",
    "https://0177.0.0.1/a.png",
    "https://\u{2460}\u{2461}\u{2466}.0.0.1/a.png",
    "https://[::ffff:127.0.0.1]/a.png",
    "https://[fe80::1%25lo]/a.png",
    "https://169.254.169.254/latest/meta-data",
    "https://[fd00:ec2::254]/latest/meta-data",
    "https://ok.example\\@127.0.0.1/a.png",
];

/// An edit with more pictures than the limit is refused with 400 before any is fetched.
#[test]
fn f11_an_edit_has_sixteen_pictures_at_most() {
    let test = EditTest::new("multipart", "");
    let many: Vec<_> = (0..17)
        .map(|i| json!({"image_url": format!("https://pictures.example/{i}.png")}))
        .collect();
    let response = test.edit(&many.into());
    assert_eq!(
        (response.status, &response.json()["error"]["param"]),
        (400, &json!("images")),
        "{}",
        response.text()
    );
    assert_eq!(test.gateway.sum("sluicegate_fetches_total"), 0.0);
    test.nobody_was_asked();
}

/// Base64 must use the standard alphabet with padding and no whitespace, and the rest of a data URL
/// must be well-formed.
#[test]
fn i04_i05_data_urls_are_read_strictly() {
    let test = EditTest::new("multipart", "");
    let data = |data: &str| format!("data:image/png;base64,{data}");
    let (unpadded, spaced) = (
        RED.trim_end_matches('='),
        format!("{} {}", &RED[..8], &RED[8..]),
    );
    for url in [
        data(""),
        data(unpadded),
        data(&format!("{RED}=")),
        data(&format!("{RED}AAAA")),
        data(&spaced),
        data(&RED.replacen('A', "\n", 1)),
        data(&RED.replace('+', "-").replace('/', "_")),
        data(&RED.replacen('A', "%41", 1)),
        data(&RED.replacen('A', "\u{e4}", 1)),
        data(&RED[..21]),
        format!("data:image/png,{RED}"),
        format!("data:image/png;base64{RED}"),
        format!("data:text/html;base64,{RED}"),
        format!("data:image/svg+xml;base64,{RED}"),
        format!("data:{};base64,{RED}", "x".repeat(100_000)),
        format!("data;image/png;base64,{RED}"),
        RED.to_owned(),
    ] {
        let response = test.edit(&json!([{"image_url": url}]));
        let shown: String = url.chars().take(60).collect();
        assert_eq!(
            (response.status, &response.json()["error"]["param"]),
            (400, &json!("images[0].image_url")),
            "{shown}"
        );
        assert!(
            response.body.len() < 1 << 10,
            "the error has {} bytes",
            response.body.len()
        );
    }
    test.nobody_was_asked();
    assert_eq!(test.edit(&json!([{"image_url": data(RED)}])).status, 200);
}

/// A gateway in front of a conforming upstream, which receives edits in this form.
struct EditTest {
    gateway: Gateway,
    simulator: Simulator,
}

impl EditTest {
    fn new(edits: &str, limits: &str) -> Self {
        let simulator = Simulator::honest().unwrap();
        let plan = Config::new(limits).upstream(
            "images",
            Protocol::Images,
            &simulator.base_url(),
            &format!("edits = \"{edits}\""),
        );
        let gateway = plan
            .model("images", Protocol::Images, r#"[{ upstream = "images" }]"#)
            .start(GATEWAY);
        Self { gateway, simulator }
    }

    fn edit(&self, images: &Value) -> Response {
        let body = json!({"model": "images", "prompt": "x", "images": images});
        self.gateway.post(CLIENT_KEY, "/v1/images/edits", &body)
    }

    #[track_caller]
    fn nobody_was_asked(&self) {
        assert!(self.simulator.requests().is_empty());
        self.gateway.await_quiet();
    }
}
