//! Conforming replies: their content, and that a stream has the same content as a plain reply.

use serde_json::{Value, json};
use sluicegate_simulator::{Protocol, Simulator};
use testkit::{Connection, End, Response};

use crate::folds::{fold, read};
use crate::samples::{
    PROTOCOLS, capped, forced, path, sample, shaped, thinking, with_pictures, with_result,
    with_tools,
};

const TEXT: [Protocol; 3] = [Protocol::Responses, Protocol::Chat, Protocol::Messages];

/// Sends a request with and without a stream, asserts that the content is the same, and returns the
/// plain reply.
#[track_caller]
fn reply_of(protocol: Protocol, body: Value) -> Value {
    let streamed = {
        let mut body = body.clone();
        body["stream"] = true.into();
        let answer = exchange(path(protocol), &body);
        assert_eq!(
            (answer.status, answer.end),
            (200, End::Complete),
            "{}",
            answer.text()
        );
        assert_eq!(
            answer.header("content-type"),
            Some("text/event-stream; charset=utf-8")
        );
        fold(protocol, &answer.body).unwrap_or_else(|error| panic!("{protocol:?} {body}: {error}"))
    };
    let mut body = body;
    body["stream"] = false.into();
    let answer = exchange(path(protocol), &body);
    assert_eq!(
        (answer.status, answer.end),
        (200, End::Complete),
        "{}",
        answer.text()
    );
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let plain = read(protocol, &answer.body);
    assert_eq!(
        essence(protocol, &streamed),
        essence(protocol, &plain),
        "{protocol:?} {body}"
    );
    plain
}

/// Sends a request to a new server, so that every request is its first and the ids are the same.
fn exchange(path: &str, body: &Value) -> Response {
    let simulator = Simulator::honest().unwrap();
    let mut client = Connection::open(simulator.address());
    client.post(path, body);
    client.response()
}

/// The fields of a reply that do not depend on streaming.
fn essence(protocol: Protocol, reply: &Value) -> Value {
    let members: &[&str] = match protocol {
        Protocol::Responses | Protocol::Messages => return reply.clone(),
        Protocol::Chat => &["id", "created", "model"],
        Protocol::Images => &[
            "created",
            "data",
            "size",
            "quality",
            "background",
            "output_format",
        ],
    };
    let mut essence: Value = members
        .iter()
        .map(|member| ((*member).to_owned(), reply[*member].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    for choice in reply["choices"].as_array().into_iter().flatten() {
        let message = &choice["message"];
        let message = ["content", "refusal", "reasoning_content", "tool_calls"]
            .map(|member| message[member].clone());
        essence["choices"][choice["index"].to_string()] = json!([message, choice["finish_reason"]]);
    }
    essence["total"] = reply["usage"]["total_tokens"].clone();
    essence
}

/// The text and the finish reason of a reply.
fn text(protocol: Protocol, reply: &Value) -> (String, String) {
    let (text, end) = match protocol {
        Protocol::Responses => {
            let items = reply["output"].as_array().unwrap();
            let message = items.iter().find(|item| item["type"] == "message").unwrap();
            (&message["content"][0]["text"], &reply["status"])
        }
        Protocol::Chat => (
            &reply["choices"][0]["message"]["content"],
            &reply["choices"][0]["finish_reason"],
        ),
        _ => {
            let blocks = reply["content"].as_array().unwrap();
            (
                &blocks.iter().find(|block| block["type"] == "text").unwrap()["text"],
                &reply["stop_reason"],
            )
        }
    };
    (
        text.as_str().unwrap().to_owned(),
        end.as_str().unwrap().to_owned(),
    )
}

/// The names and arguments of the calls of a reply.
fn calls(protocol: Protocol, reply: &Value) -> Vec<(String, Value)> {
    let arguments = |text: &Value| serde_json::from_str(text.as_str().unwrap()).unwrap();
    let name = |value: &Value| value.as_str().unwrap().to_owned();
    match protocol {
        Protocol::Responses => {
            let calls = reply["output"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|item| item["type"] == "function_call");
            calls
                .map(|call| (name(&call["name"]), arguments(&call["arguments"])))
                .collect()
        }
        Protocol::Chat => {
            let calls = reply["choices"][0]["message"]["tool_calls"]
                .as_array()
                .unwrap()
                .iter();
            calls
                .map(|call| &call["function"])
                .map(|call| (name(&call["name"]), arguments(&call["arguments"])))
                .collect()
        }
        _ => {
            let calls = reply["content"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|block| block["type"] == "tool_use");
            calls
                .map(|call| (name(&call["name"]), call["input"].clone()))
                .collect()
        }
    }
}

#[test]
fn a_text_is_repeated() {
    for (protocol, end) in TEXT.into_iter().zip(["completed", "stop", "end_turn"]) {
        let reply = reply_of(
            protocol,
            sample(
                protocol,
                "m",
                "Grüße,\n \"Welt\"! 🦀\n\ndata: [DONE]\n\n",
                false,
            ),
        );
        let expected = "You said: Grüße,\n \"Welt\"! 🦀\n\ndata: [DONE]\n\n";
        assert_eq!(
            text(protocol, &reply),
            (expected.to_owned(), end.to_owned())
        );
        assert_eq!(reply["model"], "m");
    }
}

#[test]
fn numbers_are_counted_as_far_as_asked() {
    let reply = reply_of(
        Protocol::Chat,
        sample(Protocol::Chat, "m", "count to 200, please", false),
    );
    let (text, _) = text(Protocol::Chat, &reply);
    assert_eq!(
        text.split(' ')
            .map(|word| word.parse::<u32>().unwrap())
            .sum::<u32>(),
        20_100
    );
    assert_eq!(reply["usage"]["completion_tokens"], 200);
}

#[test]
fn a_forced_tool_is_called() {
    for (protocol, end) in TEXT
        .into_iter()
        .zip(["completed", "tool_calls", "tool_use"])
    {
        let body = forced(
            protocol,
            with_tools(protocol, sample(protocol, "m", "Hello.", false), 2),
        );
        let reply = reply_of(protocol, body);
        assert_eq!(
            calls(protocol, &reply),
            [("get_weather".to_owned(), json!({"city": "example"}))]
        );
        let reason = match protocol {
            Protocol::Responses => &reply["status"],
            Protocol::Chat => &reply["choices"][0]["finish_reason"],
            _ => &reply["stop_reason"],
        };
        assert_eq!(*reason, end);
    }
}

#[test]
fn tools_are_called_in_parallel_when_that_is_asked_for() {
    for protocol in TEXT {
        let mut body = with_tools(protocol, sample(protocol, "m", "Hello.", false), 2);
        match protocol {
            Protocol::Messages => {
                body["tool_choice"] = json!({"type": "auto", "disable_parallel_tool_use": false});
            }
            _ => body["parallel_tool_calls"] = true.into(),
        }
        let names: Vec<_> = calls(protocol, &reply_of(protocol, body))
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["get_weather", "get_time"], "{protocol:?}");

        let body = thinking(
            protocol,
            with_tools(
                protocol,
                sample(protocol, "m", "Call in parallel.", false),
                1,
            ),
        );
        let names: Vec<_> = calls(protocol, &reply_of(protocol, body))
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["get_weather", "get_weather"], "{protocol:?}");
    }
}

#[test]
fn a_tool_that_is_named_is_called_and_its_result_is_quoted() {
    for protocol in TEXT {
        let body = with_tools(protocol, sample(protocol, "m", "Use get_time.", false), 2);
        assert_eq!(
            calls(protocol, &reply_of(protocol, body.clone()))[0].0,
            "get_time"
        );
        let reply = reply_of(protocol, with_result(protocol, body, "14 °C"));
        assert_eq!(text(protocol, &reply).0, "The tool said: 14 °C");
    }
}

#[test]
fn tools_may_be_left_alone() {
    for protocol in TEXT {
        let mut body = with_tools(
            protocol,
            sample(protocol, "m", "Use get_time in parallel.", false),
            2,
        );
        body["tool_choice"] = if protocol == Protocol::Messages {
            json!({"type": "none"})
        } else {
            "none".into()
        };
        assert_eq!(
            text(protocol, &reply_of(protocol, body)).0,
            "You said: Use get_time in parallel."
        );
    }
}

#[test]
fn pictures_are_counted() {
    for protocol in TEXT {
        let reply = reply_of(
            protocol,
            with_pictures(protocol, sample(protocol, "m", "", false)),
        );
        assert_eq!(
            text(protocol, &reply).0,
            "I see 2 images: image/png, url. You said: Look.",
            "{protocol:?}"
        );
    }
}

#[test]
fn thoughts_come_first() {
    for protocol in TEXT {
        let reply = reply_of(
            protocol,
            thinking(protocol, sample(protocol, "m", "Hello.", false)),
        );
        let thoughts = match protocol {
            Protocol::Responses => &reply["output"][0]["summary"][0]["text"],
            Protocol::Chat => &reply["choices"][0]["message"]["reasoning_content"],
            _ => &reply["content"][0]["thinking"],
        };
        assert_eq!(thoughts, "The user said something. I answer it.");
        assert_eq!(text(protocol, &reply).0, "You said: Hello.");
    }
    let reply = reply_of(
        Protocol::Messages,
        thinking(
            Protocol::Messages,
            sample(Protocol::Messages, "m", "Hello.", false),
        ),
    );
    assert_eq!(reply["content"][0]["signature"], "c2lnbmF0dXJl");
}

#[test]
fn json_fits_its_schema() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 9}, "age": {"type": ["null", "integer"], "minimum": 18},
            "tags": {"type": "array", "items": {"enum": ["red", "blue"]}, "minItems": 2},
            "place": {"$ref": "#/$defs/place"}, "kind": {"anyOf": [{"const": "a"}, {"const": "b"}]},
        },
        "$defs": {"place": {"type": "object", "properties": {"open": {"type": "boolean"}}}},
    });
    for protocol in TEXT {
        let reply = reply_of(
            protocol,
            shaped(protocol, sample(protocol, "m", "Hello.", false), &schema),
        );
        let value: Value = serde_json::from_str(&text(protocol, &reply).0).unwrap();
        let expected = json!({
            "name": "exampleee", "age": 18, "tags": ["red", "red"], "place": {"open": true}, "kind": "a",
        });
        assert_eq!(value, expected);
    }
}

#[test]
fn a_small_cap_cuts_the_text() {
    for (protocol, end) in TEXT.into_iter().zip(["incomplete", "length", "max_tokens"]) {
        let body = capped(protocol, sample(protocol, "m", "one two three", false), 3);
        assert_eq!(
            text(protocol, &reply_of(protocol, body)),
            ("You said: one".to_owned(), end.to_owned())
        );
        let body = capped(protocol, sample(protocol, "m", "one", false), 8);
        assert_eq!(
            text(protocol, &reply_of(protocol, body)),
            ("You said:".to_owned(), end.to_owned())
        );
        // A number with a zero fraction is an integer.
        let body = capped(protocol, sample(protocol, "m", "one two three", false), 3.0);
        assert_eq!(
            text(protocol, &reply_of(protocol, body)),
            ("You said: one".to_owned(), end.to_owned())
        );
    }
}

#[test]
fn a_stop_text_stops() {
    let mut body = sample(Protocol::Messages, "m", "one two three", false);
    body["stop_sequences"] = json!(["three", "two"]);
    let reply = reply_of(Protocol::Messages, body);
    assert_eq!(
        text(Protocol::Messages, &reply),
        ("You said: one ".to_owned(), "stop_sequence".to_owned())
    );
    assert_eq!(reply["stop_sequence"], "two");
    let mut body = sample(Protocol::Chat, "m", "one two three", false);
    body["stop"] = "two".into();
    assert_eq!(
        text(Protocol::Chat, &reply_of(Protocol::Chat, body)),
        ("You said: one ".to_owned(), "stop".to_owned())
    );
}

#[test]
fn a_refusal_has_the_shape_of_its_protocol() {
    let refused = |protocol| reply_of(protocol, sample(protocol, "m", "Please refuse.", false));
    let words = "I can't help with that.";
    let part = json!({"type": "refusal", "refusal": words});
    assert_eq!(
        refused(Protocol::Responses)["output"][0]["content"][0],
        part
    );
    assert_eq!(
        refused(Protocol::Chat)["choices"][0]["message"]["refusal"],
        words
    );
    assert_eq!(
        text(Protocol::Messages, &refused(Protocol::Messages)),
        (words.to_owned(), "refusal".to_owned())
    );
}

#[test]
fn several_answers_are_given_when_asked_for() {
    let sample = |n: u64| {
        let mut body = sample(Protocol::Chat, "m", "Hello.", false);
        body["n"] = n.into();
        reply_of(Protocol::Chat, body)
    };
    let (one, three) = (sample(1), sample(3));
    assert_eq!(
        (
            one["choices"].as_array().unwrap().len(),
            three["choices"].as_array().unwrap().len()
        ),
        (1, 3)
    );
    // "You said: Hello." has three tokens, which are counted for each choice.
    assert_eq!(
        (
            &one["usage"]["completion_tokens"],
            &three["usage"]["completion_tokens"]
        ),
        (&json!(3), &json!(9))
    );
    assert_eq!(
        one["usage"]["prompt_tokens"],
        three["usage"]["prompt_tokens"]
    );
}

#[test]
fn streams_include_vendor_extras() {
    let body = |protocol| {
        exchange(path(protocol), &sample(protocol, "m", "Hello.", true))
            .text()
            .to_owned()
    };
    let responses = body(Protocol::Responses);
    assert!(
        responses.contains(r#""delta":"You","obfuscation":"kQz8LmT0xWc6R""#),
        "{responses}"
    );
    let chat = body(Protocol::Chat);
    assert_eq!(
        chat.matches(r#""system_fingerprint":"fp_44709d6fcb""#)
            .count(),
        chat.matches("data: {").count()
    );
    assert!(
        chat.contains(r#""usage":null,"obfuscation":"#)
            && chat.contains(r#""completion_tokens_details""#),
        "{chat}"
    );
    assert!(body(Protocol::Messages).contains("event: ping\ndata: {\"type\":\"ping\"}\n\n"));
}

#[test]
fn ids_follow_from_the_number_of_the_request() {
    let simulator = Simulator::honest().unwrap();
    let mut client = Connection::open(simulator.address());
    let ids = PROTOCOLS.map(|protocol| {
        client.post(path(protocol), &sample(protocol, "m", "Hello.", false));
        let answer = client.response();
        let id_header = if protocol == Protocol::Messages {
            "request-id"
        } else {
            "x-request-id"
        };
        (
            answer.json()["id"].as_str().unwrap_or_default().to_owned(),
            answer.header(id_header).unwrap().to_owned(),
        )
    });
    let expected = [
        ("resp_0000000000000000", "req_0000000000000000"),
        ("chatcmpl-0000000000000001", "req_0000000000000001"),
        ("msg_0000000000000002", "req_0000000000000002"),
        ("", "req_0000000000000003"),
    ];
    assert_eq!(
        ids,
        expected.map(|(id, request)| (id.to_owned(), request.to_owned()))
    );
}

#[test]
fn invalid_requests_are_refused_in_the_form_of_the_protocol() {
    let simulator = Simulator::honest().unwrap();
    let mut client = Connection::open(simulator.address());
    let mut refused = |path: &str, body: Value| {
        client.post(path, &body);
        let answer = client.response();
        (answer.status, answer.json())
    };
    for (path, body, code, param) in [
        (
            "/v1/responses",
            json!({"input": "x"}),
            "missing_required_parameter",
            json!("model"),
        ),
        (
            "/v1/responses",
            json!({"model": "m"}),
            "missing_required_parameter",
            json!("input"),
        ),
        (
            "/v1/chat/completions",
            json!({"model": "m"}),
            "missing_required_parameter",
            json!("messages"),
        ),
        (
            "/v1/images/generations",
            json!({"model": "m"}),
            "missing_required_parameter",
            json!("prompt"),
        ),
        (
            "/v1/images/edits",
            json!({"model": "m", "prompt": "x"}),
            "missing_required_parameter",
            json!("image"),
        ),
        (
            "/v1/chat/completions",
            json!([]),
            "invalid_json",
            Value::Null,
        ),
    ] {
        let (status, error) = refused(path, body);
        assert_eq!(
            (status, &error["error"]["code"], &error["error"]["param"]),
            (400, &json!(code), &param),
            "{error}"
        );
    }
    let (status, error) = refused(
        "/v1/messages",
        json!({"model": "m", "messages": [{"role": "user", "content": "x"}]}),
    );
    assert_eq!((status, &error["type"]), (400, &json!("error")));
    assert_eq!(
        error["error"],
        json!({"type": "invalid_request_error", "message": "max_tokens: Field required"})
    );
    assert_eq!(refused("/v1/nothing", json!({})).0, 404);
    client.send("GET /v1/responses HTTP/1.1\r\n\r\n");
    assert_eq!(client.response().status, 405);
}

#[test]
fn models_are_listed_and_tokens_are_counted() {
    let simulator = Simulator::honest().unwrap();
    let mut client = Connection::open(simulator.address());
    client.send("GET /v1/models?limit=1000 HTTP/1.1\r\n\r\n");
    let list = client.response().json();
    assert_eq!(
        (&list["data"][0]["id"], &list["object"]),
        (&json!("honest"), &json!("list"))
    );
    client.send("GET /v1/models/honest HTTP/1.1\r\n\r\n");
    assert_eq!(client.response().json(), list["data"][0]);
    client.send("GET /v1/models/other HTTP/1.1\r\n\r\n");
    assert_eq!(client.response().status, 404);
    let body = sample(Protocol::Messages, "m", "Hello.", false);
    client.post("/v1/messages/count_tokens", &body);
    let counted = client.response().json();
    client.post("/v1/messages?beta=true", &body);
    assert_eq!(
        counted["input_tokens"],
        client.response().json()["usage"]["input_tokens"]
    );
}
