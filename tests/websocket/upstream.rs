//! Upstreams that offer WebSockets themselves: each connection of a client has its own to them, and
//! its turns go over it.

use std::net::TcpListener;
use std::thread;

use serde_json::{Value, json};
use simulator::{Cut, Framing, Play, Protocol, Request, Simulator, honest, scenario};
use testkit::requests::{Question, ask};
use testkit::upstreams::{HASTY, assert_closed};
use testkit::websocket::{Socket, is_end};
use testkit::{CLIENT_KEY, Config, Gateway, UPSTREAM_KEY, await_that};
use tokio_tungstenite::tungstenite::{Bytes, Message, accept};

use crate::GATEWAY;

/// The model of the tests, of an upstream of Responses.
const MODEL: &str = "responses";

/// A request for a short answer.
fn request(text: &str) -> Value {
    let mut body = ask(Protocol::Responses, MODEL, text, true);
    body["store"] = false.into();
    body
}

/// A gateway in front of an upstream that is asked over WebSocket.
fn over_websocket(simulator: &Simulator, settings: &str) -> Gateway {
    over_http(simulator, &format!("websocket = true\n{settings}"))
}

fn over_http(simulator: &Simulator, settings: &str) -> Gateway {
    let url = simulator.base_url();
    let config = Config::new("").served(Protocol::Responses, &url, settings);
    config.start(GATEWAY)
}

/// Switches to a WebSocket, and plays these replies there.
fn switching(
    behave: impl Fn(&Request) -> Play + Send + Sync + 'static,
) -> impl Fn(&Request) -> Play + Send + Sync + 'static {
    move |request| match request.is_handshake() {
        true => Play::websocket(request),
        false => behave(request),
    }
}

/// The same reply to the same request, however many there were before.
fn repeated(request: &Request) -> Play {
    let number = 0;
    honest::answer(&Request {
        number,
        ..request.clone()
    })
}

/// The events of a response, as a client gets them.
fn texts(gateway: &Gateway, body: &Value) -> Vec<String> {
    let mut socket = Socket::open(gateway, CLIENT_KEY);
    socket.create(body);
    let mut texts = Vec::new();
    loop {
        texts.push(socket.event_text());
        if is_end(&serde_json::from_str(&texts[texts.len() - 1]).unwrap()) {
            return texts;
        }
    }
}

/// The methods of the requests so far.
fn methods(simulator: &Simulator) -> Vec<String> {
    let requests = simulator.requests().into_iter();
    requests.map(|request| request.method).collect()
}

/// The turns of a client go over one connection with the key of the upstream, which ends with the
/// client's. Another client has another one.
#[test]
fn turns_of_a_client_share_a_websocket_of_the_upstream() {
    let simulator = Simulator::honest().unwrap();
    let gateway = over_websocket(&simulator, "");
    let mut first = Socket::open(&gateway, CLIENT_KEY);
    for text in ["One.", "Two."] {
        first.turn(&request(text));
    }
    let mut second = Socket::open(&gateway, CLIENT_KEY);
    second.turn(&request("Three."));
    first.turn(&request("Four."));

    let asked = simulator.requests();
    let places = asked.iter().map(|asked| (&*asked.method, asked.connection));
    assert_eq!(
        places.collect::<Vec<_>>(),
        [
            ("GET", 0),
            ("WEBSOCKET", 0),
            ("WEBSOCKET", 0),
            ("GET", 1),
            ("WEBSOCKET", 1),
            ("WEBSOCKET", 0)
        ]
    );
    let handshake = &asked[0];
    assert_eq!(handshake.path, "/v1/responses");
    let key = format!("Bearer {UPSTREAM_KEY}");
    assert_eq!(handshake.header("authorization"), Some(&*key));
    assert_eq!(handshake.header("sec-websocket-extensions"), None);
    assert_eq!(handshake.header("content-type"), None);
    assert_eq!(
        asked[1].json(),
        json!({
            "type": "response.create",
            "model": "their-model",
            "input": [{"role": "user", "content": "One."}],
            "store": false,
        })
    );
    drop(first);
    assert_closed(&simulator, 0);
    second.turn(&request("Five."));
    assert_eq!(simulator.connections(), 2);
}

/// The events are those that the client gets if the upstream is asked over HTTP, byte for byte.
#[test]
fn events_equal_those_over_http() {
    let simulator = Simulator::start(repeated).unwrap();
    let websocket = over_websocket(&simulator, "");
    let http = over_http(&simulator, "");
    for question in Question::ALL {
        let mut body = question.body(Protocol::Responses, MODEL, true);
        body["store"] = false.into();
        assert_eq!(
            texts(&websocket, &body),
            texts(&http, &body),
            "{question:?}"
        );
    }
    let usage = |gateway: &Gateway| {
        gateway.await_quiet();
        let tokens = gateway.sum("sluicegate_tokens_total{");
        (
            tokens,
            gateway.sum_of("sluicegate_streams_ended_total{", "outcome=\"completed\""),
        )
    };
    let counted = usage(&websocket);
    assert!(counted.0 > 0.0, "{counted:?}");
    assert_eq!(counted, usage(&http));
    let asked = methods(&simulator);
    let of = |method| asked.iter().filter(|asked| *asked == method).count();
    assert_eq!((of("GET"), of("WEBSOCKET"), of("POST")), (9, 9, 9));
}

/// Errors are read by the same table as over HTTP, before the first event and after it.
#[test]
fn u16_u17_errors_over_a_websocket_are_those_of_http() {
    for name in [
        "status-400",
        "status-401",
        "status-429-retry-7",
        "status-500",
        "status-503",
        "failed-first",
        "failed-middle",
        "limited-first",
        "reset-after-1",
        "reset-after-4",
        "close-at-3000",
        "malformed-event",
    ] {
        let scenario = scenario::named(name).unwrap();
        let play = switching(move |request| scenario.play(request));
        let simulator = Simulator::start(play).unwrap();
        let body = request("Hi.");
        let [websocket, http] = [over_websocket, over_http].map(|start| start(&simulator, ""));
        let ends = [&websocket, &http].map(|gateway| {
            let last = texts(gateway, &body).pop().unwrap();
            let mut last: Value = serde_json::from_str(&last).unwrap();
            for member in ["id", "created_at"] {
                last["response"][member] = Value::Null;
            }
            // It has jitter.
            last["headers"]["retry-after-ms"] = Value::Null;
            gateway.await_quiet();
            last
        });
        assert_ne!(ends[0]["type"], "response.completed", "{name}");
        assert_eq!(ends[0], ends[1], "{name}");
    }
}

/// The headers of an error that stands for an HTTP response are in its event, where Codex reads them:
/// <https://github.com/openai/codex/blob/main/codex-rs/codex-api/src/endpoint/responses_websocket.rs>.
/// OpenAI sends the milliseconds, Azure also under another name.
#[test]
fn an_error_over_a_websocket_says_when_to_try_again() {
    for (headers, owed) in [
        (
            json!({"retry-after-ms": "26500", "retry-after": "30"}),
            "27",
        ),
        (json!({"x-ms-retry-after-ms": 26500}), "27"),
        (json!({"Retry-After": 30}), "30"),
    ] {
        let error = json!({"type": "error", "status": 429, "headers": headers,
            "error": {"type": "rate_limit_error", "code": "rate_limit_exceeded", "message": "Slow down."}});
        let limited = switching(move |_| Play::events([format!("data: {error}\n\n")]));
        let simulator = Simulator::start(limited).unwrap();
        let gateway = over_websocket(&simulator, "");
        let event = texts(&gateway, &request("Hi.")).pop().unwrap();
        let event: Value = serde_json::from_str(&event).unwrap();
        assert_eq!(event["status"], 429, "{event}");
        assert_eq!(event["headers"]["retry-after"], owed, "{headers}");
        assert!(event["headers"]["retry-after-ms"].is_string(), "{event}");
        gateway.await_quiet();
    }
}

/// A host that answers the handshake with another status is asked over HTTP, and gets no other
/// handshake of this client.
#[test]
fn a_refused_handshake_leads_to_http() {
    for status in [200, 404, 426] {
        let refusing = move |request: &Request| match request.is_handshake() {
            true => Play::json(status, &json!({})),
            false => honest::answer(request),
        };
        let simulator = Simulator::start(refusing).unwrap();
        let gateway = over_websocket(&simulator, "");
        let mut socket = Socket::open(&gateway, CLIENT_KEY);
        for text in ["One.", "Two."] {
            socket.turn(&request(text));
        }
        assert_eq!(methods(&simulator), ["GET", "POST", "POST"], "{status}");
    }
}

/// A request that the upstream refuses as too big for a message, with 1009 (RFC 6455, section 7.4.1), goes
/// over HTTP. The next one may fit.
#[test]
fn a_request_that_is_too_big_for_a_message_goes_over_http() {
    let refusing = switching(
        |request| match request.is_message() && request.number == 1 {
            true => Play::new().bytes(&b"\x88\x02\x03\xf1"[..]).close(),
            false => honest::answer(request),
        },
    );
    let simulator = Simulator::start(refusing).unwrap();
    let gateway = over_websocket(&simulator, "");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    for text in ["One.", "Two."] {
        socket.turn(&request(text));
    }
    assert_eq!(
        methods(&simulator),
        ["GET", "WEBSOCKET", "POST", "GET", "WEBSOCKET"]
    );
}

/// A server without a free place may have one later.
#[test]
fn a_handshake_is_repeated_after_a_failure_that_passes() {
    let refusing = |request: &Request| match request.number {
        0 => Play::json(503, &json!({})),
        _ => honest::answer(request),
    };
    let simulator = Simulator::start(refusing).unwrap();
    let gateway = over_websocket(&simulator, "");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    for text in ["One.", "Two."] {
        socket.turn(&request(text));
    }
    assert_eq!(methods(&simulator), ["GET", "POST", "GET", "WEBSOCKET"]);
}

/// A handshake that breaks, or that is not answered in time, is a failure of the connection, and the
/// retry goes over HTTP.
#[test]
fn u01_u02_a_broken_handshake_leads_to_http() {
    let garbage = || Play::new().bytes("SSH-2.0-OpenSSH_9.6\r\n").close();
    for broken in [
        Play::new().close(),
        Play::new().reset(),
        Play::new().hold(),
        garbage(),
        Play::new().head(101, &[("upgrade", "websocket")], Framing::Bare),
    ] {
        let play = broken.clone();
        let breaking = move |request: &Request| match request.is_handshake() {
            true => play.clone(),
            false => honest::answer(request),
        };
        let simulator = Simulator::start(breaking).unwrap();
        let gateway = over_websocket(&simulator, HASTY);
        let mut socket = Socket::open(&gateway, CLIENT_KEY);
        for text in ["One.", "Two."] {
            socket.turn(&request(text));
        }
        assert_eq!(methods(&simulator), ["GET", "POST", "POST"], "{broken:?}");
    }
}

/// A handshake that names an extension has failed, because none was offered (RFC 6455, section 4.1).
#[test]
fn a_handshake_with_an_extension_leads_to_http() {
    for (extensions, owed) in [
        ("permessage-deflate", ["GET", "POST", "POST"]),
        ("", ["GET", "WEBSOCKET", "WEBSOCKET"]),
    ] {
        let extending = move |request: &Request| match request.is_handshake() {
            true => Play::websocket(request).with_header("sec-websocket-extensions", extensions),
            false => honest::answer(request),
        };
        let simulator = Simulator::start(extending).unwrap();
        let gateway = over_websocket(&simulator, "");
        let mut socket = Socket::open(&gateway, CLIENT_KEY);
        for text in ["One.", "Two."] {
            socket.turn(&request(text));
        }
        assert_eq!(methods(&simulator), owed, "{extensions}");
    }
}

/// A connection that closes before the first event of a response leads to the next target, as one
/// that closes before the head of a response.
#[test]
fn u08_a_socket_that_closes_before_the_first_event_leads_to_the_next_target() {
    let first = Simulator::start(switching(|_| Play::new().reset())).unwrap();
    let second = Simulator::honest().unwrap();
    let gateway = Config::new("")
        .upstream("first", Protocol::Responses, &first.base_url(), "websocket = true")
        .upstream("second", Protocol::Responses, &second.base_url(), "websocket = true")
        .model(
            MODEL,
            Protocol::Responses,
            r#"[{ upstream = "first", model = "their-model" }, { upstream = "second", model = "their-model" }]"#,
        )
        .start(GATEWAY);
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    for text in ["One.", "Two."] {
        socket.turn(&request(text));
    }
    let handshake_and_turn = ["GET", "WEBSOCKET"];
    assert_eq!(methods(&first), handshake_and_turn.repeat(2));
    assert_eq!(methods(&second), ["GET", "WEBSOCKET", "WEBSOCKET"]);
    drop(socket);
    gateway.await_quiet();
}

/// A host without connections is left alone once its circuit breaker is open, over WebSocket too.
#[test]
fn u08_closed_sockets_open_the_circuit_breaker() {
    let first = Simulator::start(switching(|_| Play::new().reset())).unwrap();
    let second = Simulator::honest().unwrap();
    let targets = r#"[{ upstream = "first" }, { upstream = "second" }]"#;
    let gateway = Config::new("")
        .upstream(
            "first",
            Protocol::Responses,
            &first.base_url(),
            "websocket = true",
        )
        .upstream("second", Protocol::Responses, &second.base_url(), "")
        .model(MODEL, Protocol::Responses, targets)
        .start(GATEWAY);
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    for _ in 0..25 {
        socket.turn(&request("Hi."));
    }
    assert_eq!(first.requests().len(), 2 * 20);
}

/// A stall is a timeout: of the head before the first event, and between two events of `event_idle`.
#[test]
fn u05_u07_a_socket_that_says_nothing_times_out() {
    for (events, code) in [(0, None), (6, Some("server_error"))] {
        let stalling =
            switching(move |request| honest::answer(request).cut_after(events, Cut::Hold));
        let simulator = Simulator::start(stalling).unwrap();
        let [websocket, http] = [over_websocket, over_http].map(|start| start(&simulator, HASTY));
        let [over_websocket, over_http] = [&websocket, &http].map(|gateway| {
            let mut socket = Socket::open(gateway, CLIENT_KEY);
            socket.create(&request("Hi."));
            socket.events().pop().unwrap()
        });
        assert_eq!(over_websocket["type"], over_http["type"]);
        assert_eq!(over_websocket["error"], over_http["error"]);
        let in_response = &over_websocket["response"]["error"]["code"];
        assert_eq!(in_response.as_str(), code);
        // The connection has an unfinished response, so that it is not used again.
        assert_closed(&simulator, 1);
    }
}

/// A client that leaves in the middle of a response closes the connection to the upstream.
#[test]
fn c01_a_client_that_leaves_closes_the_websocket_of_the_upstream() {
    let simulator = Simulator::start(switching(|request| {
        honest::answer(request).cut_after(6, Cut::Hold)
    }));
    let simulator = simulator.unwrap();
    let gateway = over_websocket(&simulator, "");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    socket.create(&request("Hi."));
    socket.event();
    drop(socket);
    assert_closed(&simulator, 0);
    await_that("client_gone", || {
        gateway.sum_of("sluicegate_streams_ended_total{", "outcome=\"client_gone\"") > 0.0
    });
    gateway.await_quiet();
}

/// A connection that the upstream closes between two responses is replaced.
#[test]
fn u06_a_socket_that_closes_while_it_is_idle_is_replaced() {
    let simulator = Simulator::start(switching(|request| honest::answer(request).close())).unwrap();
    let gateway = over_websocket(&simulator, "");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    for text in ["One.", "Two."] {
        socket.turn(&request(text));
    }
    assert_eq!(methods(&simulator), ["GET", "WEBSOCKET"].repeat(2));
}

/// A connection at the age that its server permits is replaced, and the request is sent again. The
/// error is the one of OpenAI's guide.
#[test]
fn a_socket_that_is_too_old_is_replaced() {
    let aging = switching(|request| match request.nth_on_connection {
        2 => Play::json(
            400,
            &json!({"error": {
                "type": "invalid_request_error",
                "code": "websocket_connection_limit_reached",
                "message": "Responses websocket connection limit reached (60 minutes). Create a \
                            new websocket connection to continue.",
            }}),
        ),
        _ => honest::answer(request),
    });
    let simulator = Simulator::start(aging).unwrap();
    let gateway = over_websocket(&simulator, "");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    for text in ["One.", "Two."] {
        socket.turn(&request(text));
    }
    let asked = simulator.requests();
    assert_eq!(asked[2].json(), asked[4].json());
    let connections = asked.iter().map(|asked| asked.connection);
    assert_eq!(connections.collect::<Vec<_>>(), [0, 0, 0, 1, 1]);
}

/// The pings of an upstream are answered between two responses.
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "a server behind the gateway, in a test"
)]
fn pings_of_an_idle_upstream_are_answered() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let mut socket = accept(listener.accept().unwrap().0).unwrap();
        socket.read().unwrap();
        for event in [
            json!({"type": "response.created", "response": {"id": "resp_1", "output": []}}),
            json!({"type": "response.completed", "response": {
                "id": "resp_1", "status": "completed", "output": [],
                "usage": {"input_tokens": 1, "output_tokens": 0, "total_tokens": 1},
            }}),
        ] {
            socket.send(Message::text(event.to_string())).unwrap();
        }
        socket
            .send(Message::Ping(Bytes::from_static(b"1")))
            .unwrap();
        socket.read().unwrap()
    });
    let settings = "websocket = true";
    let gateway = Config::new("")
        .served(Protocol::Responses, &url, settings)
        .start(GATEWAY);
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    socket.turn(&request("Hi."));
    assert_eq!(
        server.join().unwrap(),
        Message::Pong(Bytes::from_static(b"1"))
    );
}

/// A request with this text that continues a response.
fn continuing(response: &Value, text: &str) -> Value {
    let mut body = request(text);
    body["previous_response_id"] = response["id"].clone();
    body
}

/// The inputs of the messages so far, and the response that each one continues.
fn inputs(simulator: &Simulator) -> Vec<(Value, Value)> {
    let asked = simulator.requests().into_iter();
    let messages = asked.filter(Request::is_message);
    let input = |message: Request| {
        let mut body = message.json();
        (body["input"].take(), body["previous_response_id"].take())
    };
    messages.map(input).collect()
}

/// A user's message, as the tests' requests have it.
fn said(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// The upstream gets the new items alone if it has made the latest response on this connection, and
/// the whole conversation otherwise.
#[test]
fn the_upstream_gets_only_new_items() {
    let simulator = Simulator::honest().unwrap();
    let gateway = over_websocket(&simulator, "");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    let first = socket.turn(&request("One."));
    let second = socket.turn(&continuing(&first, "Two."));
    assert_eq!(second["previous_response_id"], first["id"]);
    socket.turn(&continuing(&second, "Three."));
    socket.turn(&continuing(&first, "Four."));

    let output = &first["output"][0];
    assert_eq!(
        inputs(&simulator),
        [
            (json!([said("One.")]), Value::Null),
            (json!([said("Two.")]), first["id"].clone()),
            (json!([said("Three.")]), second["id"].clone()),
            (json!([said("One."), output, said("Four.")]), Value::Null),
        ]
    );
    assert_eq!(simulator.connections(), 1);
}

/// Streams of a client that run at the same time have a connection each, and each one is continued on
/// its own.
#[test]
fn streams_are_continued_on_their_own_websockets() {
    let gated = |request: &Request| {
        let whole = honest::answer(request);
        match request.is_message() && request.json()["input"][0]["content"] == "One." {
            true => Play::stream().gate().then(whole),
            false => whole,
        }
    };
    let simulator = Simulator::start(gated).unwrap();
    let gateway = over_websocket(&simulator, "");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    let named = |stream: &str, mut body: Value| {
        body["stream_id"] = stream.into();
        body
    };
    socket.create(&named("a", request("One.")));
    assert!(simulator.wait_for_requests(2, testkit::GUARD));
    let quick = socket.turn(&named("b", request("Two.")));
    simulator.release();
    let slow = socket.events().pop().unwrap()["response"].clone();
    for (stream, before) in [("a", &slow), ("b", &quick)] {
        socket.turn(&named(stream, continuing(before, "Go on.")));
    }
    let go_on = json!([said("Go on.")]);
    assert_eq!(
        inputs(&simulator)[2..],
        [
            (go_on.clone(), slow["id"].clone()),
            (go_on, quick["id"].clone())
        ]
    );
    assert_eq!(simulator.connections(), 2);
}

/// An upstream that has forgotten a response gets the whole conversation, and the client does not
/// notice. The error is the one of OpenAI's guide.
#[test]
fn a_response_that_the_upstream_has_forgotten_is_sent_again() {
    let forgetful = switching(|request| {
        let previous = &request.json()["previous_response_id"];
        match previous.as_str() {
            None => honest::answer(request),
            Some(id) => Play::json(
                400,
                &json!({"error": {
                    "type": "invalid_request_error",
                    "code": "previous_response_not_found",
                    "message": format!("Previous response with id '{id}' not found."),
                    "param": "previous_response_id",
                }}),
            ),
        }
    });
    let simulator = Simulator::start(forgetful).unwrap();
    let gateway = over_websocket(&simulator, "");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    let first = socket.turn(&request("One."));
    let second = socket.turn(&continuing(&first, "Two."));
    assert_eq!(second["previous_response_id"], first["id"]);
    let all = json!([said("One."), first["output"][0], said("Two.")]);
    assert_eq!(
        inputs(&simulator)[1..],
        [
            (json!([said("Two.")]), first["id"].clone()),
            (all, Value::Null)
        ]
    );
    assert_eq!(simulator.connections(), 1);
}

/// An upstream that refuses `instructions` together with `previous_response_id`, as xAI does
/// (<https://docs.x.ai/developers/rest-api-reference/inference/chat#create-new-response>), gets the whole
/// conversation with them. Others get them with what is new: OpenAI does not keep them.
#[test]
fn instructions_come_with_what_the_upstream_accepts() {
    for (settings, is_whole) in [
        ("", false),
        ("quirks = { no_instructions_with_previous = true }", true),
    ] {
        let simulator = Simulator::honest().unwrap();
        let gateway = over_websocket(&simulator, settings);
        let mut socket = Socket::open(&gateway, CLIENT_KEY);
        let instructed = |mut body: Value| {
            body["instructions"] = "Be kind.".into();
            body
        };
        let first = socket.turn(&instructed(request("One.")));
        let second = socket.turn(&instructed(continuing(&first, "Two.")));
        socket.turn(&continuing(&second, "Three."));

        let output = |response: &Value| response["output"][0].clone();
        let whole = json!([said("One."), output(&first), said("Two.")]);
        let owed = match is_whole {
            true => (whole, Value::Null),
            false => (json!([said("Two.")]), first["id"].clone()),
        };
        let without = (json!([said("Three.")]), second["id"].clone());
        assert_eq!(inputs(&simulator)[1..], [owed, without], "{settings}");
        let asked = simulator.requests();
        assert_eq!(asked[2].json()["instructions"], "Be kind.", "{settings}");
        assert_eq!(simulator.connections(), 1);
    }
}

/// A new connection of the upstream knows no response.
#[test]
fn a_new_websocket_gets_the_whole_conversation() {
    let closing = switching(|request| honest::answer(request).close());
    let simulator = Simulator::start(closing).unwrap();
    let gateway = over_websocket(&simulator, "");
    let mut socket = Socket::open(&gateway, CLIENT_KEY);
    let first = socket.turn(&request("One."));
    socket.turn(&continuing(&first, "Two."));
    let all = json!([said("One."), first["output"][0], said("Two.")]);
    assert_eq!(inputs(&simulator).pop(), Some((all, Value::Null)));
}

/// Requests that are no turn of a WebSocket go over HTTP.
#[test]
fn requests_over_http_stay_there() {
    let simulator = Simulator::honest().unwrap();
    let gateway = over_websocket(&simulator, "");
    for protocol in [Protocol::Responses, Protocol::Chat] {
        for stream in [false, true] {
            let answer = gateway.ask(protocol, &ask(protocol, MODEL, "Hi.", stream));
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    }
    assert_eq!(methods(&simulator), ["POST"; 4]);
}
