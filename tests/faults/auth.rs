//! A: authentication, model permissions and key revocation.

use std::fs;

use ::auth::{Key, KeyHash};
use serde_json::{Value, json};
use simulator::{Play, Protocol, Request as Asked, Simulator, Step, honest};
use testkit::requests::{self, PROTOCOLS, RED, ask, protocol_name};
use testkit::{CLIENT_KEY, Connection, Gateway, Request, await_that};

use crate::GATEWAY;

/// On every endpoint a model that the key does not allow is refused with 403 and an unknown model
/// with 404, before any request is sent upstream.
#[test]
fn a06_every_endpoint_asks_for_the_models_of_a_key() {
    let simulator = Simulator::honest().unwrap();
    let key = "sg_a_narrow_key_000000000000000000000";
    let hash = KeyHash::of(&Key::parse(key).unwrap());
    let narrow = format!(
        "[[keys]]\nname = \"narrow\"\nhash = \"{hash}\"\nscopes = [\"text\", \"messages\", \"images\"]\n\
         models = [\"cha*\"]\n"
    );
    let gateway = GATEWAY.before(&simulator, &narrow, "");
    let status = |path: &str, body: &Value| gateway.post(key, path, body).status;
    let picture = format!("data:image/png;base64,{RED}");
    let asked_for = |model: &str| {
        let text = [Protocol::Responses, Protocol::Chat, Protocol::Messages].map(|protocol| {
            (
                requests::path(protocol).to_owned(),
                ask(protocol, model, "Hello.", false),
            )
        });
        let count = json!({"model": model, "messages": [{"role": "user", "content": "Hello."}]});
        let edit = json!({"model": model, "prompt": "x", "images": [{"image_url": picture}]});
        let rest = [
            ("/v1/messages/count_tokens", count),
            (
                "/v1/responses/input_tokens",
                json!({"model": model, "input": "Hello."}),
            ),
            (
                "/v1/images/generations",
                json!({"model": model, "prompt": "x"}),
            ),
            ("/v1/images/edits", edit),
        ];
        text.into_iter()
            .chain(rest.map(|(path, body)| (path.to_owned(), body)))
            .collect::<Vec<_>>()
    };
    for (path, body) in asked_for("messages")
        .into_iter()
        .take(5)
        .chain(asked_for("images").into_iter().skip(5))
    {
        assert_eq!(status(&path, &body), 403, "{path}");
    }
    for (path, body) in asked_for("nobody") {
        assert_eq!(status(&path, &body), 404, "{path}");
    }
    assert!(simulator.requests().is_empty());
    let list = gateway.get(key, "/v1/models").json();
    assert_eq!(
        (
            &list["data"][0]["id"],
            list["data"].as_array().unwrap().len()
        ),
        (&json!("chat"), 1)
    );
    assert_eq!(gateway.get(key, "/v1/models/messages").status, 404);
    for (path, body) in asked_for("chat").into_iter().take(3) {
        assert_eq!(status(&path, &body), 200, "{path}");
    }
}

/// Every route in the OpenAPI document requires a key before it does anything else.
#[test]
fn a07_every_route_that_is_described_asks_for_a_key() {
    let (gateway, simulator) = GATEWAY.with_upstream("[responses]\nkeep = \"1h\"\n");
    let described = GATEWAY.command().arg("openapi").output().unwrap();
    let document: Value = serde_json::from_slice(&described.stdout).unwrap();
    let mut routes = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        let path = path.replace("{id}", "chat");
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] {
            let is_described = operations[method.to_lowercase()].is_object();
            let is_served = is_described || (method == "HEAD" && operations["get"].is_object());
            let ask = |key: Option<&str>| {
                let request = Request::post_bytes(&path, b"{}").method(method);
                let request = key.into_iter().fold(request, Request::bearer);
                let mut connection = Connection::open(gateway.address());
                connection.send(request.bytes());
                let head = connection.head().unwrap();
                (
                    head.status,
                    head.header("www-authenticate") == Some("Bearer"),
                )
            };
            for key in [None, Some("sg_nobody")] {
                let owed = if is_served { (401, true) } else { (405, false) };
                assert_eq!(ask(key), owed, "{method} {path}");
            }
            routes += usize::from(is_described);
        }
    }
    assert_eq!(routes, 13);
    assert!(
        simulator.requests().is_empty(),
        "no upstream request was sent"
    );
}

/// A flood of wrong keys is refused one by one, takes no permit and does not delay requests with a
/// valid key.
#[test]
fn a09_flood_of_invalid_keys_does_not_delay_valid_requests() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let flood = || {
        let mut connection = Connection::open(gateway.address());
        for number in 0..FLOOD {
            let wrong = Request::get("/v1/models").bearer(&format!("sg_wrong_{number}"));
            connection.send(wrong.bytes());
            assert_eq!(connection.response().status, 401);
        }
    };
    let served = std::thread::scope(|scope| {
        let floods: Vec<_> = (0..4).map(|_| scope.spawn(flood)).collect();
        let mut served = 0;
        while served < 10 || floods.iter().any(|flood| !flood.is_finished()) {
            let response = gateway.ask(
                Protocol::Chat,
                &ask(Protocol::Chat, "chat", "Hello.", false),
            );
            assert_eq!(response.status, 200, "{}", response.text());
            served += 1;
        }
        served
    });
    assert_eq!(simulator.requests().len(), served);
    gateway.await_quiet();
    let refused =
        "sluicegate_requests_total{route=\"models\",status=\"401\",code=\"invalid_api_key\"}";
    await_that("each was counted", || {
        gateway.sum(refused) == (4 * FLOOD) as f64
    });
}

/// A key that is removed from the file is refused from then on, and streams that were opened with
/// it run to completion.
#[test]
fn a10_a_revoked_key_opens_nothing_and_its_streams_end_well() {
    let simulator = Simulator::start(hesitant).unwrap();
    let gateway = GATEWAY.before(&simulator, "", "");
    let mut streams: Vec<_> = PROTOCOLS.map(|protocol| open(&gateway, protocol)).into();
    let path = gateway.config_path();
    let before = fs::read_to_string(path).unwrap();
    fs::write(path, before.replace("557bedf7", "00000000")).unwrap();
    let status = || {
        Request::get("/v1/models")
            .bearer(CLIENT_KEY)
            .send(gateway.address())
            .status
    };
    await_that("the key is gone", || status() == 401);
    simulator.release_all();
    for (stream, protocol) in streams.iter_mut().zip(PROTOCOLS) {
        let mut received = Vec::new();
        while let Ok(chunk @ [_, ..]) = stream.chunk().as_deref() {
            received.extend(chunk);
        }
        let received = String::from_utf8(received).unwrap();
        let end = match protocol {
            Protocol::Responses => "response.completed",
            Protocol::Chat => "data: [DONE]",
            Protocol::Messages => "message_stop",
            Protocol::Images => "image_generation.completed",
        };
        assert!(
            received.contains(end) && !received.contains("error\":{"),
            "{protocol:?}: {received}"
        );
    }
    gateway.await_quiet();
}

/// Operator endpoints are not reachable on the client address, with any key, method or header.
#[test]
fn a11_nothing_of_the_operators_is_on_the_clients_address() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    for path in [
        "/metrics",
        "/livez",
        "/readyz",
        "/healthz",
        "/debug",
        "/debug/pprof",
        "/admin",
        "/v1/metrics",
        "/",
        "/console/app.js",
        "/console/keys",
        "/play/v1/models",
    ] {
        for method in ["GET", "HEAD", "POST", "OPTIONS"] {
            let mut connection = Connection::open(gateway.address());
            connection.send(Request::get(path).method(method).bearer(CLIENT_KEY).bytes());
            assert_eq!(connection.head().unwrap().status, 404, "{method} {path}");
        }
    }
    let admin = gateway.admin.unwrap();
    assert!(admin.ip().is_loopback() && admin != gateway.address());
    for path in ["/v1/models", "/debug", "/console/absent.js"] {
        assert_eq!(
            Request::get(path).bearer(CLIENT_KEY).send(admin).status,
            404,
            "{path}"
        );
    }
}

/// Opens a stream and waits until it has started.
fn open(gateway: &Gateway, protocol: Protocol) -> Connection {
    let mut stream = Connection::open(gateway.address());
    stream.send(
        requests::request(
            protocol,
            &ask(protocol, protocol_name(protocol), "Hello, you there.", true),
        )
        .bytes(),
    );
    assert_eq!(stream.head().unwrap().status, 200);
    stream
}

/// Pauses in the middle of a reply until the test continues it.
fn hesitant(request: &Asked) -> Play {
    let mut play = Play::stream();
    for (place, piece) in honest::answer(request).pieces().enumerate() {
        play = if place == 2 { play.gate() } else { play };
        play = play.body(piece.clone());
    }
    play.step(Step::End)
}

/// The number of wrong keys that one client sends.
const FLOOD: usize = 1000;
