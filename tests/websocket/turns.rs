//! The responses of a connection, and what they continue.

use serde_json::{Value, json};
use simulator::{Protocol, Simulator};
use testkit::requests::{Question, ask, protocol_name};
use testkit::websocket::{Socket, message};
use testkit::{CLIENT_KEY, Config, Gateway, await_that};

use crate::GATEWAY;

const ROADS: [Protocol; 3] = [Protocol::Responses, Protocol::Chat, Protocol::Messages];

/// A request of a turn, without a stored response.
fn request(model: &str, input: &[Value]) -> Value {
    let mut body = Question::ParallelTools.body(Protocol::Responses, model, true);
    body["store"] = false.into();
    body["input"] = input.into();
    body
}

/// The results of the calls of a response.
fn results(response: &Value) -> Vec<Value> {
    let calls = response["output"].as_array().unwrap().iter();
    let calls = calls.filter(|item| item["type"] == "function_call");
    calls
        .map(|call| {
            json!({
                "type": "function_call_output",
                "call_id": call["call_id"],
                "output": "Sunny.",
            })
        })
        .collect()
}

/// Ten turns that each send only new items reach the server like the turns of a client over HTTP
/// that sends everything each time, on each road.
#[test]
fn ten_turns_with_tools_continue_each_other() {
    for road in ROADS {
        let (gateway, simulator) = GATEWAY.with_upstream("");
        let model = protocol_name(road);
        let mut socket = Socket::open(&gateway, CLIENT_KEY);
        let (mut all, mut previous) = (Vec::<Value>::new(), None::<Value>);
        for turn in 0..10 {
            let new = match &previous {
                Some(previous) if turn % 2 == 1 => results(previous),
                _ => vec![message("Weather and time in Paris, in parallel.")],
            };
            assert!(!new.is_empty(), "{model} {turn}");
            let mut body = request(model, &new);
            if let Some(previous) = &previous {
                body["previous_response_id"] = previous["id"].clone();
            }
            let response = socket.turn(&body);
            let before = previous.as_ref().map_or(&Value::Null, |it| &it["id"]);
            assert_eq!(&response["previous_response_id"], before, "{model} {turn}");

            all.extend(new);
            let over_http = gateway.ask(Protocol::Responses, &request(model, &all));
            assert_eq!(over_http.status, 200, "{}", over_http.text());
            let asked = simulator.requests();
            let [.., by_socket, by_http] = &asked[..] else {
                panic!("two requests")
            };
            assert_eq!(by_socket.json(), by_http.json(), "{model} {turn}");
            all.extend(response["output"].as_array().unwrap().clone());
            previous = Some(response);
        }
        drop(socket);
        gateway.await_quiet();
        let served = gateway.sum_of("sluicegate_requests_total{", "route=\"responses\"");
        assert_eq!(served, 20.0);
    }
}

/// A response of another WebSocket is refused as unknown, with its id; one of the same connection can be continued twice.
#[test]
fn h20_a_response_is_continued_on_its_connection() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    let first = socket.turn(&request("chat", &[message("One.")]));
    let mut next = request("chat", &[message("Two.")]);
    next["previous_response_id"] = first["id"].clone();
    for _ in 0..2 {
        socket.turn(&next);
    }
    let asked = simulator.requests();
    assert_eq!(asked[1].json(), asked[2].json());

    let mut other = Socket::open(&gateway, CLIENT_KEY);
    let refused = other.refused(&next);
    // As in https://developers.openai.com/api/docs/guides/websocket-mode.
    let id = first["id"].as_str().unwrap();
    let error = json!({
        "type": "invalid_request_error",
        "code": "previous_response_not_found",
        "message": format!("Previous response with id '{id}' not found."),
        "param": "previous_response_id",
    });
    assert_eq!(
        refused,
        json!({"type": "error", "status": 400, "error": error})
    );
    next["previous_response_id"] = Value::Null;
    other.turn(&next);
}

/// A request over a WebSocket is refused by an event with the status and the error of HTTP, and the connection goes on.
#[test]
fn h20_j06_a_refusal_is_an_event() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    let mut wrong = ask(Protocol::Responses, "nothing", "Hi.", true);
    for (member, value) in [("model", json!("nothing")), ("temperature", json!(7))] {
        let before = std::mem::replace(&mut wrong[member], value);
        let over_http = gateway.ask(Protocol::Responses, &wrong);
        let event = socket.refused(&wrong);
        assert_eq!(event["status"], over_http.status);
        assert_eq!(event["error"], over_http.json()["error"]);
        wrong[member] = before;
        wrong["model"] = "chat".into();
    }
    for (text, code, param) in [
        ("{", "invalid_json", None),
        (
            r#"{"type":"response.cancel"}"#,
            "invalid_value",
            Some("type"),
        ),
        (
            r#"{"type":"response.create","background":true}"#,
            "unsupported_parameter",
            Some("background"),
        ),
    ] {
        socket.text(text);
        let error = &socket.event()["error"];
        assert_eq!(error["code"], code, "{text}");
        assert_eq!(error["param"].as_str(), param, "{text}");
    }
    socket.text(r#"{"type":"response.steer","previous_response_id":"resp_1","input":"Stop."}"#);
    let failed = socket.event();
    assert_eq!(failed["type"], "response.steer.failed");
    assert_eq!(failed["error"]["code"], "steering_not_supported");
    assert_eq!(simulator.requests().len(), 0);
    socket.turn(&ask(Protocol::Responses, "chat", "Hi.", true));
}

/// Each response has a line in the log that names the transport, and the handshake has one.
#[test]
fn responses_are_logged_with_their_transport() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    socket.turn(&ask(Protocol::Responses, "chat", "Hi.", true));
    drop(socket);
    gateway.ask(
        Protocol::Responses,
        &ask(Protocol::Responses, "chat", "Hi.", true),
    );
    let expected = [
        (json!("websocket"), Value::Null),
        (json!("responses"), json!("websocket")),
        (json!("responses"), Value::Null),
    ];
    await_that("three lines are logged", || {
        let log = gateway.log.lock().unwrap();
        let lines = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let lines = lines.filter(|line| line["log"] == "access");
        let found = lines.map(|line| (line["route"].clone(), line["transport"].clone()));
        found.eq(expected.clone())
    });
}

/// Requests that are sent at once over a WebSocket are served one after the other.
#[test]
fn h12_requests_of_a_stream_wait_for_each_other() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    let words = ["One.", "Two.", "Three."];
    for word in words {
        socket.create(&ask(Protocol::Responses, "chat", word, true));
    }
    for _ in words {
        let events = socket.events();
        assert_eq!(events[0]["type"], "response.created");
        assert_eq!(events[0]["sequence_number"], 0);
    }
    let asked = simulator.requests();
    let texts = asked.iter().map(|asked| {
        let body = asked.json();
        body["messages"][0]["content"].as_str().unwrap().to_owned()
    });
    assert_eq!(texts.collect::<Vec<_>>(), words);
}

/// The memory for the conversations of WebSockets is bounded: a response that has no room is unknown later.
#[test]
fn h20_a_conversation_without_room_is_not_kept() {
    let simulator = Simulator::honest().unwrap();
    let small = "[websocket]\nkeep_bytes = \"8KiB\"";
    let gateway: Gateway = Config::before(&simulator, "", "")
        .section(small)
        .start(GATEWAY);
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    let continued = |socket: &mut Socket, text: &str| {
        let first = socket.turn(&request("chat", &[message(text)]));
        let mut next = request("chat", &[message("Go on.")]);
        next["previous_response_id"] = first["id"].clone();
        socket.create(&next);
        socket.events().pop().unwrap()["type"].clone()
    };
    assert_eq!(continued(&mut socket, "Short."), "response.completed");
    assert_eq!(continued(&mut socket, &"Long. ".repeat(1000)), "error");
    assert_eq!(continued(&mut socket, "Short."), "response.completed");
}
