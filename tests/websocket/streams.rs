//! Several conversations on one connection, and requests that only prepare a response.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use simulator::{Play, Protocol, Request, Simulator, Step, honest};
use testkit::CLIENT_KEY;
use testkit::requests::ask;
use testkit::websocket::{Socket, is_end};

use crate::GATEWAY;

/// A request in a stream.
fn named(stream: &str, text: &str) -> Value {
    let mut body = ask(Protocol::Responses, "chat", text, true);
    body["store"] = false.into();
    body["stream_id"] = stream.into();
    body
}

/// Waits in the middle of the first stream.
fn hesitant_at_first(request: &Request) -> Play {
    let whole = honest::answer(request);
    if request.number > 0 {
        return whole;
    }
    let pieces = whole.pieces().enumerate();
    let play = pieces.fold(Play::stream(), |play, (place, piece)| {
        let play = if place == 1 { play.gate() } else { play };
        play.body(piece.clone())
    });
    play.step(Step::End)
}

/// Two streams run at the same time, and each message has the name of its stream. A conversation is
/// continued in another stream than it began in.
#[test]
fn streams_share_a_connection() {
    let simulator = Simulator::start(hesitant_at_first).unwrap();
    let gateway = GATEWAY.before(&simulator, "", "");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    socket.create(&named("slow", "One."));
    assert!(simulator.wait_for_requests(1, testkit::GUARD));
    socket.create(&named("quick", "Two."));
    let mut ended = BTreeMap::new();
    while !ended.contains_key("quick") {
        note(socket.event(), &mut ended);
    }
    assert!(!ended.contains_key("slow"));
    simulator.release_all();
    while !ended.contains_key("slow") {
        note(socket.event(), &mut ended);
    }

    let mut fork = named("fork.1-a_b", "Three.");
    fork["previous_response_id"] = ended["slow"]["id"].clone();
    socket.create(&fork);
    while !ended.contains_key("fork.1-a_b") {
        note(socket.event(), &mut ended);
    }
    let asked = simulator.requests();
    let messages = asked[2].json()["messages"].clone();
    let texts = messages.as_array().unwrap().iter();
    let of_user = texts.filter(|message| message["role"] == "user");
    let texts: Vec<_> = of_user.map(|message| message["content"].clone()).collect();
    assert_eq!(texts, ["One.", "Three."]);
}

/// Notes the response at the end of a stream.
fn note(event: Value, ended: &mut BTreeMap<String, Value>) {
    let stream = event["stream_id"].as_str().unwrap().to_owned();
    if is_end(&event) {
        assert_eq!(event["type"], "response.completed", "{event}");
        ended.insert(stream, event["response"].clone());
    }
}

/// Errors over a WebSocket have the name of their stream, unless the name is invalid.
#[test]
fn h20_errors_have_the_name_of_their_stream() {
    let (gateway, _simulator) = GATEWAY.with_upstream("");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    for number in 0..32 {
        socket.create(&named(&format!("stream-{number}"), "Hi."));
        while !is_end(&socket.event()) {}
    }
    let refused = socket.refused(&named("stream-32", "Hi."));
    let error = &refused["error"];
    assert_eq!(error["code"], "websocket_stream_limit_reached");
    assert_eq!(refused["stream_id"], "stream-32");
    let mut unknown = named("stream-31", "Hi.");
    unknown["previous_response_id"] = "resp_unknown".into();
    let refused = socket.refused(&unknown);
    let error = &refused["error"];
    assert_eq!(error["code"], "previous_response_not_found");
    assert_eq!(refused["stream_id"], "stream-31");
    let refused = socket.refused(&named("stream 31", "Hi."));
    let error = &refused["error"];
    assert_eq!(error["code"], "invalid_stream_id");
    assert_eq!(refused.get("stream_id"), None);
    socket.turn(&ask(Protocol::Responses, "chat", "Hi.", true));
}

/// A request with `generate: false` is answered without a target, at any time, and can be continued.
#[test]
fn a_warm_up_reaches_no_target() {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    let body = |text: &str, previous: &Value| {
        let mut body = ask(Protocol::Responses, "chat", text, true);
        body["store"] = false.into();
        body["previous_response_id"] = previous.clone();
        body
    };
    let mut warm_up = body("One.", &Value::Null);
    warm_up["generate"] = false.into();
    warm_up["instructions"] = "Be brief.".into();
    socket.create(&warm_up);
    let events = socket.events();
    let kinds: Vec<_> = events.iter().map(|event| event["type"].clone()).collect();
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.in_progress",
            "response.completed"
        ]
    );
    let prepared = &events[2]["response"];
    assert_eq!(prepared["output"], json!([]));
    assert_eq!(prepared["usage"]["output_tokens"], 0);
    assert_eq!(prepared["instructions"], "Be brief.");

    let second = socket.turn(&body("Two.", &prepared["id"]));
    let mut warm_up = body("Three.", &second["id"]);
    warm_up["generate"] = false.into();
    let third = socket.turn(&warm_up);
    assert_eq!(third["previous_response_id"], second["id"]);
    socket.turn(&body("Four.", &third["id"]));
    let asked = simulator.requests();
    assert_eq!(asked.len(), 2);
    let messages = asked[1].json()["messages"].clone();
    let messages = messages.as_array().unwrap().iter();
    let of_user = messages.filter(|message| message["role"] == "user");
    let texts: Vec<_> = of_user.map(|message| message["content"].clone()).collect();
    assert_eq!(texts, ["One.", "Two.", "Three.", "Four."]);

    let mut wrong = body("One.", &Value::Null);
    wrong["generate"] = false.into();
    wrong.as_object_mut().unwrap().remove("model");
    let refused = socket.refused(&wrong);
    assert_eq!(refused["error"]["param"], "model");
}

/// A request with `generate: false` has the tokens of its input if its server counts them, and 0
/// otherwise. It succeeds also if the count fails.
#[test]
fn a_warm_up_has_the_tokens_that_its_server_counts() {
    let simulator = Simulator::start(without_long_counts).unwrap();
    let gateway = GATEWAY.before(&simulator, "", "");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    let mut tokens = |model: &str, text: &str, is_generated: bool, previous: &Value| {
        let mut body = ask(Protocol::Responses, model, text, true);
        body["store"] = false.into();
        body["generate"] = is_generated.into();
        body["previous_response_id"] = previous.clone();
        let response = socket.turn(&body);
        let usage = &response["usage"];
        let total =
            usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap();
        assert_eq!(usage["total_tokens"], total);
        (usage["input_tokens"].clone(), response["id"].clone())
    };
    // Messages has an endpoint that counts, and Chat Completions has none.
    let (first, prepared) = tokens("messages", "One.", false, &Value::Null);
    assert_eq!(tokens("messages", "One.", true, &Value::Null).0, first);
    let (both, _) = tokens("messages", "Two.", false, &prepared);
    assert_eq!(tokens("messages", "Two.", true, &prepared).0, both);
    assert!(both.as_u64() > first.as_u64() && first.as_u64() > Some(0));
    assert_eq!(tokens("chat", "One.", false, &Value::Null).0, 0);
    assert_eq!(tokens("messages", LONG, false, &Value::Null).0, 0);
    let paths = simulator.requests().into_iter().map(|request| request.path);
    let (answer, count) = ("/v1/messages", "/v1/messages/count_tokens");
    let paths: Vec<_> = paths.collect();
    assert_eq!(paths, [count, answer, count, answer, count]);
}

/// Fails to count the tokens of a long text.
fn without_long_counts(request: &Request) -> Play {
    let is_long = request.json().to_string().contains(LONG);
    match is_long && request.path.ends_with("/count_tokens") {
        true => Play::json(400, &json!({"error": {"message": "Too long."}})),
        false => honest::answer(request),
    }
}

const LONG: &str = "A long text.";
