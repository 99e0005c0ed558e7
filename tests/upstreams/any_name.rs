//! Models whose id ends in `*`: the client's name of the model passes through.

use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use simulator::{Protocol, Simulator};
use testkit::log;
use testkit::requests::{PROTOCOLS, RED, TEXT_PROTOCOLS, ask, path, protocol_name};
use testkit::{
    CLIENT_KEY, Config, Form, Gateway, IMAGES, MESSAGES, Request, TEXT, UPSTREAM_KEY,
    check_request_headers,
};

use crate::GATEWAY;

/// A gateway in front of one conforming upstream of each protocol.
fn gateway() -> (Gateway, Simulator) {
    let simulator = Simulator::honest().unwrap();
    let url = simulator.base_url();
    let hash = auth::KeyHash::of(&auth::Key::parse(NARROW).unwrap());
    let plan = Config::new("")
        .key(&format!(
            "name = \"narrow\"\nhash = \"{hash}\"\nscopes = [\"text\"]\nmodels = [\"o3*\"]"
        ))
        .upstream("chat", Protocol::Chat, &url, "")
        .upstream("messages", Protocol::Messages, &url, "")
        .upstream("images", Protocol::Images, &url, "");
    let plan = [
        ("*", Protocol::Chat, r#"[{ upstream = "chat" }]"#),
        (
            "gpt-5",
            Protocol::Chat,
            r#"[{ upstream = "chat", model = "exact" }]"#,
        ),
        (
            "gpt-*",
            Protocol::Chat,
            r#"[{ upstream = "chat", model = "short" }]"#,
        ),
        (
            "gpt-5-*",
            Protocol::Chat,
            r#"[{ upstream = "chat", model = "long" }]"#,
        ),
        ("claude-*", Protocol::Chat, r#"[{ upstream = "messages" }]"#),
        (
            "model-image-*",
            Protocol::Images,
            r#"[{ upstream = "images" }]"#,
        ),
    ]
    .into_iter()
    .fold(plan, |plan, (id, family, targets)| {
        plan.model(id, family, targets)
    });
    (plan.start(GATEWAY), simulator)
}

/// The model that the last request asked the upstream for.
fn asked(simulator: &Simulator) -> Option<String> {
    let request = simulator.requests().pop().unwrap();
    Some(request.model()).filter(|model| !model.is_empty())
}

/// A name that no model has reaches the upstream as the client has sent it, relayed and translated,
/// and the answer has it again.
#[test]
fn names_pass_through_as_they_were_sent() {
    let (gateway, simulator) = gateway();
    for protocol in TEXT_PROTOCOLS {
        for (name, stream) in [
            ("qwen/qwen3:8b", false),
            ("qwen/qwen3:8b", true),
            ("claude-x", false),
        ] {
            let response = gateway.ask(protocol, &ask(protocol, name, "Hello.", stream));
            assert_eq!(response.status, 200, "{protocol:?}: {}", response.text());
            assert_eq!(asked(&simulator).as_deref(), Some(name), "{protocol:?}");
            assert!(
                response.text().contains(&format!("\"model\":\"{name}\"")),
                "{protocol:?}: {}",
                response.text()
            );
        }
    }
    let count = json!({"model": "claude-x", "messages": [{"role": "user", "content": "Hello."}]});
    let counted = gateway.post(CLIENT_KEY, "/v1/messages/count_tokens", &count);
    assert_eq!(counted.status, 200, "{}", counted.text());
    assert_eq!(asked(&simulator).as_deref(), Some("claude-x"));
}

#[test]
fn the_most_exact_model_counts() {
    let (gateway, simulator) = gateway();
    for (name, at_upstream) in [
        ("gpt-5", "exact"),
        ("gpt-5-mini", "long"),
        ("gpt-5.1", "short"),
        ("o3", "o3"),
    ] {
        let response = gateway.ask(Protocol::Chat, &ask(Protocol::Chat, name, "Hello.", false));
        assert_eq!(response.status, 200, "{name}: {}", response.text());
        assert_eq!(asked(&simulator).as_deref(), Some(at_upstream), "{name}");
        assert_eq!(response.json()["model"], name);
    }
}

/// A request for pictures passes its model through, as JSON and as a form; if it has none, the
/// upstream's default counts.
#[test]
fn pictures_pass_their_model_through_if_they_have_one() {
    let (gateway, simulator) = gateway();
    let images = json!([{"image_url": format!("data:image/png;base64,{RED}")}]);
    for name in [Some("model-image-7"), None] {
        let named = |mut body: Value| {
            if let Some(name) = name {
                body["model"] = name.into();
            }
            body
        };
        let form = name.map_or(Form::default(), |name| Form::default().text("model", name));
        let red = STANDARD.decode(RED).unwrap();
        for request in [
            Request::post("/v1/images/generations", &named(json!({"prompt": "x"}))),
            Request::post(
                "/v1/images/edits",
                &named(json!({"prompt": "x", "images": images})),
            ),
            form.text("prompt", "x").file("image", &red).request(),
        ] {
            let response = request.clone().bearer(CLIENT_KEY).send(gateway.address());
            assert_eq!(response.status, 200, "{request:?}: {}", response.text());
            assert_eq!(asked(&simulator).as_deref(), name, "{request:?}");
        }
    }
}

/// Patterns are not in the list of models, and neither are the names that match them.
#[test]
fn patterns_are_not_listed() {
    let (gateway, _simulator) = gateway();
    let list = gateway.get(CLIENT_KEY, "/v1/models").json();
    let ids = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| &model["id"]);
    assert_eq!(ids.collect::<Vec<_>>(), ["gpt-5"]);
    assert_eq!(gateway.get(CLIENT_KEY, "/v1/models/o3").status, 404);
}

/// The patterns of a key are compared with the client's name of the model.
#[test]
fn a_key_is_held_to_the_name_that_the_client_has_sent() {
    let (gateway, simulator) = gateway();
    let post = |name| {
        let body = ask(Protocol::Chat, name, "Hello.", false);
        gateway.post(NARROW, "/v1/chat/completions", &body)
    };
    assert_eq!(post("o3-mini").status, 200);
    let refused = post("o4-mini");
    assert_eq!(
        (refused.status, refused.json()["error"]["code"].as_str()),
        (403, Some("insufficient_permissions"))
    );
    assert_eq!(simulator.requests().len(), 1, "no upstream request is sent");
}

/// The log has the client's name of the model, the metrics have no label that a client can choose,
/// and a name that is too long for the log is no model.
#[test]
fn names_of_clients_are_logged_but_label_no_metric() {
    let (gateway, simulator) = gateway();
    let post =
        |name: &str| gateway.ask(Protocol::Chat, &ask(Protocol::Chat, name, "Hello.", false));
    let response = post("an-unknown-name");
    assert_eq!(log::line(&gateway, &response)["model"], "an-unknown-name");
    let metrics = Request::get("/metrics").send(gateway.admin.unwrap());
    assert!(!metrics.text().contains("an-unknown-name"));
    let response = post(&"x".repeat(257));
    assert_eq!(response.status, 404, "{}", response.text());
    assert!(log::line(&gateway, &response)["model"].is_null());
    assert_eq!(simulator.requests().len(), 1);
}

/// `--upstream` serves any model of a server without a configuration file, to clients of all
/// protocols that can be translated to its own.
#[test]
fn an_upstream_is_served_without_a_file() {
    for protocol in PROTOCOLS {
        let simulator = Simulator::honest().unwrap();
        let mut command = GATEWAY.command();
        command.env("THE_KEY", UPSTREAM_KEY).args([
            "serve",
            "--upstream",
            &simulator.base_url(),
            "--protocol",
            protocol_name(protocol),
            "--api-key-env",
            "THE_KEY",
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
        ]);
        let gateway = Gateway::run(&command, Stdio::piped(), None);
        let clients = match protocol {
            Protocol::Images => &[Protocol::Images][..],
            _ => &TEXT_PROTOCOLS,
        };
        for client in clients {
            let key = match client {
                Protocol::Messages => MESSAGES,
                Protocol::Images => IMAGES,
                _ => TEXT,
            };
            let response =
                gateway.post(key, path(*client), &ask(*client, "any/model", "Hi.", false));
            assert_eq!(response.status, 200, "{client:?}: {}", response.text());
            let request = simulator.requests().pop().unwrap();
            assert_eq!(request.protocol(), Some(protocol));
            assert_eq!(request.model(), "any/model");
            check_request_headers(&request);
        }
    }
}

/// Arguments that contradict each other are refused by name.
#[test]
fn an_upstream_does_not_go_with_a_file() {
    let failure = |arguments: &[&str]| {
        let mut command = GATEWAY.command();
        let output = command.arg("serve").args(arguments).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let upstream = ["--upstream", "http://127.0.0.1:1/v1"];
    for (arguments, named) in [
        (
            &["--protocol", "chat", "--config", "f.toml"][..],
            "'--config <FILE>'",
        ),
        (&[][..], "--protocol"),
        (&["--protocol", "fax"][..], "images"),
        (
            &["--protocol", "chat", "--api-key-env", "SURELY_NOT_SET"][..],
            "SURELY_NOT_SET",
        ),
    ] {
        let message = failure(&[&upstream[..], arguments].concat());
        assert!(message.contains(named), "{named}: {message}");
    }
    let message = failure(&["--upstream", "nowhere/v1", "--protocol", "chat"]);
    assert!(message.contains("nowhere/v1"), "{message}");
    let message = failure(&["--protocol", "chat"]);
    assert!(message.contains("--upstream"), "{message}");
}

/// A key that may use the models that begin with `o3`.
const NARROW: &str = "sg_test_narrow_key_00000000000000000000";

/// A name with slashes and colons is one model in the list, by its path, for a key and a quota.
#[test]
fn a_name_may_have_slashes_and_colons() {
    const NAME: &str = "qwen/qwen3:8b";
    let simulator = Simulator::honest().unwrap();
    let targets = r#"[{ upstream = "chat" }]"#;
    let hash = auth::KeyHash::of(&auth::Key::parse(NARROW).unwrap());
    let gateway = Config::new("")
        .key(&format!(
            "name = \"narrow\"\nhash = \"{hash}\"\nscopes = [\"text\"]\nmodels = [\"qwen/*\"]"
        ))
        .quota("models = [\"qwen/qwen3:8b\"]\nrequests_per_minute = 1")
        .upstream("chat", Protocol::Chat, &simulator.base_url(), "")
        .model(NAME, Protocol::Chat, targets)
        .model("meta/llama", Protocol::Chat, targets)
        .start(GATEWAY);
    let get = |path: &str| Request::get(path).bearer(NARROW).send(gateway.address());
    let list = get("/v1/models").json();
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
    assert_eq!(list["data"][0]["id"], NAME);
    for path in ["/v1/models/qwen/qwen3:8b", "/v1/models/qwen%2Fqwen3%3A8b"] {
        let found = get(path);
        assert_eq!(
            (found.status, &found.json()["id"]),
            (200, &json!(NAME)),
            "{path}"
        );
    }
    for path in [
        "/v1/models/qwen",
        "/v1/models/meta/llama",
        "/v1/models/qwen/qwen3:8b/",
    ] {
        assert_eq!(get(path).status, 404, "{path}");
    }
    let page = get("/v1/models?after_id=qwen%2Fqwen3%3A8b");
    assert_eq!((page.status, &page.json()["data"]), (200, &json!([])));
    let body = ask(Protocol::Chat, NAME, "Hello.", false);
    let request = Request::post("/v1/chat/completions", &body).bearer(NARROW);
    let answer = request.send(gateway.address());
    assert_eq!(
        (answer.status, &answer.json()["model"]),
        (200, &json!(NAME))
    );
    assert_eq!(asked(&simulator).as_deref(), Some(NAME));
    assert_eq!(request.send(gateway.address()).status, 429);
}
