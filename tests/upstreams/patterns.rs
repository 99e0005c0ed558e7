//! Keys with model patterns, on every endpoint.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use simulator::{Protocol, Simulator};
use testkit::requests::{RED, TEXT_PROTOCOLS, ask, path, protocol_name};
use testkit::{Config, Form, Gateway, Request, Response};

use crate::GATEWAY;

/// On every endpoint a model that no pattern of the key matches is refused with 403, streamed or
/// not, and no upstream request is sent.
#[test]
fn a06_model_matching_no_pattern_is_403_on_every_endpoint() {
    let (gateway, simulator) = gateway();
    for stream in [false, true] {
        for (text, image) in OPEN {
            for request in requests(Some(text), Some(image), stream) {
                let response = request.clone().bearer(NARROW).send(gateway.address());
                assert_eq!(response.status, 200, "{request:?}: {}", response.text());
            }
        }
    }
    assert_eq!(simulator.requests().len(), 2 * 2 * ENDPOINTS);
    for stream in [false, true] {
        for (text, image) in CLOSED {
            for request in requests(Some(text), Some(image), stream) {
                is_forbidden(&request.bearer(NARROW).send(gateway.address()));
            }
        }
    }
    assert_eq!(
        simulator.requests().len(),
        2 * 2 * ENDPOINTS,
        "no upstream request is sent"
    );
    gateway.await_quiet();
}

/// A request for pictures without a model is refused with 403 if no pattern matches the default
/// model.
#[test]
fn a06_the_default_model_of_pictures_needs_a_pattern_too() {
    let (gateway, simulator) = gateway();
    let pictures = || {
        requests(None, None, false)
            .into_iter()
            .skip(ENDPOINTS - PICTURES)
    };
    for request in pictures() {
        is_forbidden(&request.bearer(NARROW).send(gateway.address()));
    }
    assert!(
        simulator.requests().is_empty(),
        "no upstream request is sent"
    );
    for request in pictures() {
        let response = request.bearer(WIDE).send(gateway.address());
        assert_eq!(response.status, 200, "{}", response.text());
    }
    assert_eq!(simulator.requests().len(), PICTURES);
}

/// A key without patterns may use every model; one whose patterns match none may use none.
#[test]
fn a06_a_key_without_patterns_may_use_every_model() {
    let (gateway, simulator) = gateway();
    for (text, image) in [OPEN.as_slice(), &CLOSED].concat() {
        for request in requests(Some(text), Some(image), false) {
            let response = request.clone().bearer(WIDE).send(gateway.address());
            assert_eq!(response.status, 200, "{request:?}: {}", response.text());
            let before = simulator.requests().len();
            is_forbidden(&request.bearer(NOTHING).send(gateway.address()));
            assert_eq!(
                simulator.requests().len(),
                before,
                "no upstream request is sent"
            );
        }
    }
}

/// The models list contains the models that a key may use, on every page of it; every other model
/// is 404, like one that does not exist.
#[test]
fn a06_models_that_a_key_may_not_use_are_not_listed() {
    let (gateway, _simulator) = gateway();
    let get = |path: &str, key: &str| Request::get(path).bearer(key).send(gateway.address());
    let ids = |path: &str, key: &str| {
        let list = get(path, key).json();
        let ids = list["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|model| model["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    let listed = ids("/v1/models", NARROW);
    assert_eq!(
        BTreeSet::from_iter(listed.iter().map(String::as_str)),
        ["exact", "exact-image", "open-image", "open-text"].into()
    );
    for pair in listed.windows(2) {
        assert_eq!(
            ids(&format!("/v1/models?limit=1&after_id={}", pair[0]), NARROW),
            [pair[1].as_str()]
        );
    }
    assert_eq!(
        get("/v1/models?after_id=closed", NARROW).status,
        400,
        "as for a model that does not exist"
    );
    assert_eq!(ids("/v1/models", NOTHING), [""; 0]);
    assert_eq!(
        ids("/v1/models", WIDE).len(),
        2 * (OPEN.len() + CLOSED.len()) + 1
    );
    for id in OPEN.into_iter().flat_map(|(text, image)| [text, image]) {
        let path = format!("/v1/models/{id}");
        assert_eq!(
            (
                get(&path, NARROW).json()["id"].as_str(),
                get(&path, NOTHING).status
            ),
            (Some(id), 404)
        );
    }
    for id in CLOSED
        .into_iter()
        .flat_map(|(text, image)| [text, image])
        .chain(["none", DEFAULT])
    {
        let response = get(&format!("/v1/models/{id}"), NARROW);
        let code = &response.json()["error"]["code"];
        assert_eq!(
            (response.status, code),
            (404, &json!("model_not_found")),
            "{id}: {}",
            response.text()
        );
    }
}

/// Models of text and of pictures that [`NARROW`] may use, by a pattern with `*` and by one
/// without.
const OPEN: [(&str, &str); 2] = [("open-text", "open-image"), ("exact", "exact-image")];
/// Models that it may not use, some with similar names.
const CLOSED: [(&str, &str); 4] = [
    ("closed", "closed-image"),
    ("open", "opened-image"),
    ("exact-1", "exact-image-1"),
    ("my-open-text", "my-exact-image"),
];
/// The default model of requests for pictures.
const DEFAULT: &str = "model-image-2.5-flare";

/// The key for the models in [`OPEN`].
const NARROW: &str = "sg_test_narrow_key_00000000000000000000";
/// A key without patterns.
const WIDE: &str = "sg_test_wide_key_0000000000000000000000";
/// A key whose patterns match nothing.
const NOTHING: &str = "sg_test_nothing_key_0000000000000000000";

/// A gateway in front of a conforming upstream, with these keys and models.
fn gateway() -> (Gateway, Simulator) {
    let simulator = Simulator::honest().unwrap();
    let mut plan = Config::new("");
    for (name, key, models) in [
        (
            "narrow",
            NARROW,
            r#"models = ["open-*", "exact", "exact-image"]"#,
        ),
        ("wide", WIDE, ""),
        ("nothing", NOTHING, r#"models = ["another-*"]"#),
    ] {
        let hash = auth::KeyHash::of(&auth::Key::parse(key).unwrap());
        let scopes = r#"scopes = ["text", "messages", "images"]"#;
        plan = plan.key(&format!(
            "name = \"{name}\"\nhash = \"{hash}\"\n{scopes}\n{models}"
        ));
    }
    for protocol in [Protocol::Messages, Protocol::Images] {
        let name = protocol_name(protocol);
        plan = plan.upstream(name, protocol, &simulator.base_url(), "");
        let ids = [OPEN.as_slice(), &CLOSED].concat();
        let ids = ids.iter().map(|(text, image)| {
            if protocol == Protocol::Images {
                *image
            } else {
                *text
            }
        });
        for id in ids.chain((protocol == Protocol::Images).then_some(DEFAULT)) {
            plan = plan.model(id, protocol, &format!("[{{ upstream = \"{name}\" }}]"));
        }
    }
    (plan.start(GATEWAY), simulator)
}

/// A plain or streamed request to each endpoint; those for pictures come last.
fn requests(text: Option<&str>, image: Option<&str>, stream: bool) -> Vec<Request> {
    let named = |mut body: Value, model: Option<&str>| {
        body["model"] = model.into();
        body.as_object_mut()
            .unwrap()
            .retain(|_, value| !value.is_null());
        body
    };
    let question = |protocol| named(ask(protocol, "", "Hello.", stream), text);
    let mut all: Vec<_> = TEXT_PROTOCOLS
        .map(|protocol| Request::post(path(protocol), &question(protocol)))
        .into();
    let count = json!({"messages": [{"role": "user", "content": "Hello."}]});
    all.push(Request::post(
        "/v1/messages/count_tokens",
        &named(count, text),
    ));
    let generation = json!({"prompt": "x", "stream": stream});
    all.push(Request::post(
        "/v1/images/generations",
        &named(generation, image),
    ));
    let images = json!([{"image_url": format!("data:image/png;base64,{RED}")}]);
    let edit = json!({"prompt": "x", "stream": stream, "images": images});
    all.push(Request::post("/v1/images/edits", &named(edit, image)));
    let form = image.map_or_else(Form::default, |model| Form::default().text("model", model));
    let form = form.text("prompt", "x").text("stream", &stream.to_string());
    all.push(form.file("image", &STANDARD.decode(RED).unwrap()).request());
    assert_eq!(all.len(), ENDPOINTS);
    all
}

#[track_caller]
fn is_forbidden(response: &Response) {
    let body = response.json();
    assert_eq!(response.status, 403, "{body}");
    if body["type"] == "error" {
        assert_eq!(body["error"]["type"], "permission_error", "{body}");
    } else {
        assert_eq!(body["error"]["type"], "invalid_request_error", "{body}");
        assert_eq!(body["error"]["code"], "insufficient_permissions", "{body}");
        assert_eq!(body["error"]["param"], "model", "{body}");
    }
}

/// The number of requests, one for each endpoint and each form of an edit.
const ENDPOINTS: usize = 7;
/// The number of those for pictures.
const PICTURES: usize = 3;
