//! Responses that an upstream keeps, for a model that allows it: see
//! <https://platform.openai.com/docs/guides/conversation-state>.

use serde_json::{Value, json};
use simulator::{Play, Protocol, Request, Simulator};
use testkit::requests::ask;
use testkit::{CLIENT_KEY, Gateway, Response, TEXT, changed};

use crate::GATEWAY;

const ALLOW: &str =
    "\nallow = [\"store\", \"previous_response_id\", \"background\"]\nprotocols = [\"responses\"]";

/// A server that keeps one response, `resp_NAME`, and reports each request about it.
fn server(name: &'static str) -> Simulator {
    let behave = move |request: &Request| {
        let json = &[("content-type", "application/json")];
        let id = format!("resp_{name}");
        let response = |status: &str| json!({"id": id, "object": "response", "status": status, "model": "their-model", "output": []});
        let path = request.path.split('?').next().unwrap();
        let reply = match (request.method.as_str(), path.strip_prefix("/v1/responses")) {
            ("POST", Some("")) if request.json()["background"] == true => response("queued"),
            ("POST", Some("")) if request.streams() => {
                let created =
                    json!({"type": "response.created", "response": response("in_progress")});
                let completed =
                    json!({"type": "response.completed", "response": response("completed")});
                return Play::events(
                    [created, completed].map(|event| format!("data: {event}\n\n")),
                );
            }
            ("POST", Some("")) => response("completed"),
            ("GET", Some(rest)) if rest == format!("/{id}") => response("in_progress"),
            ("DELETE", Some(rest)) if rest == format!("/{id}") => {
                json!({"id": id, "deleted": true})
            }
            ("POST", Some(rest)) if rest == format!("/{id}/cancel") => response("cancelled"),
            ("GET", Some(rest)) if rest == format!("/{id}/input_items") => {
                json!({"object": "list", "data": [], "query": request.path})
            }
            _ => return Play::answer(404, json, "{\"error\":{\"message\":\"not here\"}}"),
        };
        Play::answer(200, json, reply.to_string())
    };
    Simulator::start(behave).unwrap()
}

/// A gateway with a model at two servers: `first`, which is always tried first, and `second`.
fn gateway(first: &Simulator, second: &Simulator) -> Gateway {
    let text = |name: &str, simulator: &Simulator| {
        let url = simulator.base_url();
        format!(
            "[[upstreams]]\nname = \"{name}\"\nprotocol = \"responses\"\nbase_url = \"{url}\"\n"
        )
    };
    let model = |id: &str, targets: &str| {
        format!("[[models]]\nid = \"{id}\"\nfamily = \"text\"\ntargets = [{targets}]{ALLOW}\n")
    };
    let target = |name: &str| format!("{{ upstream = \"{name}\", model = \"their-model\" }}");
    let both = format!("{}, {}", target("first"), target("second"));
    GATEWAY.configured(
        &[
            OTHER.to_owned(),
            text("first", first),
            text("second", second),
            model("both", &both),
            model("second-only", &target("second")),
        ]
        .concat(),
    )
}

/// The entry of [`CLIENT_KEY`], which is another key than [`TEXT`].
const OTHER: &str = "[[keys]]\nname = \"other\"\n\
    hash = \"sha256:557bedf70bab3080de0f497b624b67c6d466ed8ad6a5960d60581b05f186a5b3\"\nscopes = [\"text\"]\n";

fn post(gateway: &Gateway, key: &str, model: &str, change: &Value) -> Response {
    let body = changed(ask(Protocol::Responses, model, "Hi.", false), change);
    gateway.post(key, "/v1/responses", &body)
}

fn about(gateway: &Gateway, key: &str, method: &str, rest: &str) -> Response {
    let request = testkit::Request::get(&format!("/v1/responses/{rest}"));
    request.method(method).bearer(key).send(gateway.address())
}

#[test]
fn requests_about_a_response_go_to_the_upstream_that_keeps_it() {
    for change in [
        json!({}),
        json!({"stream": true}),
        json!({"background": true}),
    ] {
        let (first, second) = (server("first"), server("second"));
        let gateway = gateway(&first, &second);
        let made = post(&gateway, TEXT, "second-only", &change);
        assert_eq!(made.status, 200, "{}", made.text());
        for (method, rest, expected) in [
            (
                "GET",
                "resp_second",
                json!({"id": "resp_second", "object": "response", "status": "in_progress",
                "model": "second-only", "output": []}),
            ),
            (
                "POST",
                "resp_second/cancel",
                json!({"id": "resp_second", "object": "response", "status": "cancelled",
                "model": "second-only", "output": []}),
            ),
            (
                "GET",
                "resp_second/input_items?limit=3&x=1&order=asc",
                json!({"object": "list", "data": [],
                "query": "/v1/responses/resp_second/input_items?limit=3&order=asc"}),
            ),
            (
                "DELETE",
                "resp_second",
                json!({"id": "resp_second", "deleted": true}),
            ),
        ] {
            let response = about(&gateway, TEXT, method, rest);
            assert_eq!((response.status, response.json()), (200, expected));
        }
        assert_eq!(about(&gateway, TEXT, "GET", "resp_second").status, 404);
        assert_eq!(first.requests().len(), 0);
        assert_eq!(second.requests().len(), 5);
        gateway.await_quiet();
    }
}

#[test]
fn a_reply_in_the_background_may_be_unfinished() {
    let (first, second) = (server("first"), server("second"));
    let gateway = gateway(&first, &second);
    let made = post(&gateway, TEXT, "both", &json!({"background": true}));
    let expected = json!({"id": "resp_first", "object": "response", "status": "queued", "model": "both",
        "output": []});
    assert_eq!((made.status, made.json()), (200, expected));
}

/// The first target does not know the response that the second one keeps.
#[test]
fn a_response_is_continued_where_it_is_kept() {
    let (first, second) = (server("first"), server("second"));
    let gateway = gateway(&first, &second);
    assert_eq!(post(&gateway, TEXT, "second-only", &json!({})).status, 200);
    let change = json!({"previous_response_id": "resp_second"});
    assert_eq!(
        post(&gateway, TEXT, "both", &change).json()["id"],
        "resp_second"
    );
    assert_eq!(
        second.requests()[1].json()["previous_response_id"],
        "resp_second"
    );
    assert_eq!(first.requests().len(), 0);
    assert_eq!(
        post(&gateway, TEXT, "both", &json!({})).json()["id"],
        "resp_first"
    );
}

#[test]
fn the_responses_of_a_key_are_unknown_to_others() {
    let (first, second) = (server("first"), server("second"));
    let gateway = gateway(&first, &second);
    assert_eq!(post(&gateway, TEXT, "both", &json!({})).status, 200);
    for (method, rest) in [
        ("GET", "resp_first"),
        ("DELETE", "resp_first"),
        ("POST", "resp_first/cancel"),
        ("GET", "resp_first/input_items"),
    ] {
        let response = about(&gateway, CLIENT_KEY, method, rest);
        let expected = json!({"error": {"message": "Response with id 'resp_first' not found.",
            "type": "invalid_request_error", "param": null, "code": "not_found"}});
        assert_eq!((response.status, response.json()), (404, expected));
    }
    let change = json!({"previous_response_id": "resp_first"});
    let response = post(&gateway, CLIENT_KEY, "both", &change);
    assert_eq!(
        (response.status, &response.json()["error"]["code"]),
        (400, &json!("previous_response_not_found"))
    );
    assert_eq!(first.requests().len(), 1);
}

/// If it is not known which key made a response, requests that refer to it are relayed only if the
/// model allows it: another key may have made it, because all keys share the upstream's account.
#[test]
fn unknown_responses_are_relayed_only_if_the_model_allows_it() {
    let (first, second) = (server("first"), server("second"));
    let change = json!({"previous_response_id": "resp_of_an_earlier_run"});
    let closed = gateway(&first, &second);
    let response = post(&closed, TEXT, "both", &change);
    assert_eq!(
        (response.status, &response.json()["error"]["code"]),
        (400, &json!("previous_response_not_found"))
    );
    assert_eq!(first.requests().len() + second.requests().len(), 0);
    let url = first.base_url();
    let open = GATEWAY.configured(&format!(
        "[[upstreams]]\nname = \"first\"\nprotocol = \"responses\"\nbase_url = \"{url}\"\n\
         [[models]]\nid = \"open\"\nfamily = \"text\"\nprotocols = [\"responses\"]\n\
         targets = [{{ upstream = \"first\" }}]\nallow = [\"unknown_responses\"]\n"
    ));
    assert_eq!(post(&open, TEXT, "open", &change).status, 200);
    let asked = first.requests().pop().unwrap().json();
    assert_eq!(asked["previous_response_id"], "resp_of_an_earlier_run");
}

#[test]
fn a_response_that_its_upstream_does_not_know_is_not_found() {
    let (first, second) = (server("first"), server("second"));
    let gateway = gateway(&first, &second);
    assert_eq!(about(&gateway, TEXT, "GET", "resp_first").status, 404);
    assert_eq!(first.requests().len(), 0, "no request is sent");
    let streamed = about(&gateway, TEXT, "GET", "resp_first?stream=true");
    assert_eq!(
        (streamed.status, &streamed.json()["error"]["param"]),
        (400, &json!("stream"))
    );
}
