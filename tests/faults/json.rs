//! J: invalid JSON bodies, and JSON with unexpected values.

use serde_json::{Value, json};
use simulator::{Protocol, Simulator};
use testkit::requests::{self, PROTOCOLS, ask, path, protocol_name};
use testkit::{CLIENT_KEY, Connection, Gateway, Request, Response, UPSTREAM_KEY, changed};

use crate::GATEWAY;

/// A body that is truncated at any byte is refused with 400 and the position of the error, and none
/// of it is repeated in the message.
#[test]
fn j01_a_body_that_breaks_off_at_any_byte() {
    let test = RequestTest::new();
    for protocol in PROTOCOLS {
        let whole = question(protocol, "canary-of-the-prompt").to_string();
        let mut connection = Connection::open(test.gateway.address());
        for cut in 0..whole.len() {
            connection.send(raw(protocol, &whole.as_bytes()[..cut]).bytes());
            let response = connection.response();
            assert_refused(protocol, &response, "invalid_json");
            assert!(
                response.text().contains("line 1, column ")
                    || response.text().contains("line 1 column "),
                "{}",
                response.text()
            );
            assert!(!response.text().contains("canary"), "{}", response.text());
        }
    }
    test.nobody_was_asked();
}

/// A body that is not exactly one JSON document in UTF-8 is refused with 400.
#[test]
fn j01_body_that_is_not_a_utf8_json_document_is_rejected() {
    let test = RequestTest::new();
    for protocol in PROTOCOLS {
        let whole = question(protocol, "Hello.").to_string();
        let with = |member: &str| format!("{},{member}}}", &whole[..whole.len() - 1]).into_bytes();
        let utf_16: Vec<u8> = whole.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for body in [
            Vec::new(),
            b" \n".to_vec(),
            format!("{whole}{whole}").into_bytes(),
            format!("{whole} x").into_bytes(),
            format!("{whole}\0").into_bytes(),
            format!("\u{feff}{whole}").into_bytes(),
            utf_16,
            with("\"x\":\"\u{fffd}\"")
                .iter()
                .flat_map(|byte| {
                    if *byte == 0xef {
                        vec![0xff]
                    } else {
                        vec![*byte]
                    }
                })
                .collect(),
            with("\"x\":\"\\ud800\""),
            [&with("\"x\":\"")[..whole.len() + 4], b"\xc0\xaf\"}"].concat(),
            with("\"x\":NaN"),
            with("\"x\":-Infinity"),
            with("\"x\":01"),
            with("\"x\":'y'"),
            with("/* y */\"x\":1"),
            with("\"x\":1,"),
            with("\"x\":\"a\nb\""),
        ] {
            let response = test.send(&raw(protocol, &body));
            assert_refused(protocol, &response, "invalid_json");
        }
        let fine = with("\"x\":[1.50,\"\\u0000\"]");
        assert_eq!(
            test.send(&raw(protocol, &fine)).status,
            200,
            "what was added is not what is wrong"
        );
    }
}

/// Nesting beyond the limit is refused with 400 on every route, at any depth.
#[test]
fn j02_excessive_nesting_is_rejected_on_every_route() {
    let test = RequestTest::new();
    for protocol in PROTOCOLS {
        let whole = question(protocol, "Hello.").to_string();
        let nested = |open: &str, close: &str, depth: usize| {
            let value = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            raw(
                protocol,
                format!("{},\"x\":{value}}}", &whole[..whole.len() - 1]).as_bytes(),
            )
        };
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            assert_eq!(test.send(&nested(open, close, 63)).status, 200);
            for depth in [64, 128, 1_000_000] {
                assert_refused(
                    protocol,
                    &test.send(&nested(open, close, depth)),
                    "invalid_json",
                );
            }
        }
    }
}

/// Numbers that are relayed keep their exact spelling; numbers that do not fit their field are
/// refused with 400.
#[test]
fn j03_numbers_keep_their_spelling_or_are_refused() {
    let test = RequestTest::new();
    for protocol in requests::TEXT_PROTOCOLS {
        let whole = question(protocol, "Hello.").to_string();
        let with = |member: &str| format!("{},{member}}}", &whole[..whole.len() - 1]);
        let odd = "\"x\":[-0,1.0,1.50e0,1E+2,9007199254740993,0.1000000000000000055511151231257827,1e-400]";
        let response = test.send(&raw(protocol, with(odd).as_bytes()));
        assert_eq!(response.status, 200, "{}", response.text());
        let forwarded = test.simulator.requests();
        let body = std::str::from_utf8(&forwarded.last().unwrap().body).unwrap();
        assert!(body.contains(odd), "{body}");
        let cap = cap(protocol);
        for number in [
            "1e400",
            "1.5",
            "9223372036854775808",
            "1e19",
            &"9".repeat(100_000),
        ] {
            let body = changed(question(protocol, "Hello."), &json!({cap: "number"}));
            let response = test.send(&raw(
                protocol,
                body.to_string().replace("\"number\"", number).as_bytes(),
            ));
            assert_eq!(
                response.status,
                400,
                "{cap} {number:.20}: {}",
                response.text()
            );
        }
        for number in ["16.0", "1.6e1", "16"] {
            let body = changed(question(protocol, "Hello."), &json!({cap: "number"}));
            test.send(&raw(
                protocol,
                body.to_string().replace("\"number\"", number).as_bytes(),
            ));
            // Accepting that spelling is up to the upstream.
            let forwarded = test.simulator.requests().pop().unwrap();
            let spelled = format!("\"{cap}\":{number}");
            assert!(
                std::str::from_utf8(&forwarded.body)
                    .unwrap()
                    .contains(&spelled),
                "{protocol:?} {number}"
            );
        }
    }
}

/// Values that are forwarded without interpretation are validated too: numbers out of range and
/// lone surrogates in a tool's schema are refused with 400, for every upstream protocol.
#[test]
fn j03_j09_a_schema_is_made_of_values() {
    let test = RequestTest::new();
    for client in requests::TEXT_PROTOCOLS {
        for upstream in requests::TEXT_PROTOCOLS {
            let schema = json!({"type": "object", "properties": {"a": {"maximum": "HERE"}}});
            let tool = match client {
                Protocol::Messages => json!({"name": "f", "input_schema": schema}),
                Protocol::Chat => {
                    json!({"type": "function", "function": {"name": "f", "parameters": schema}})
                }
                _ => {
                    json!({"type": "function", "name": "f", "parameters": schema, "strict": false})
                }
            };
            let body = changed(
                question(client, "Hello."),
                &json!({"model": protocol_name(upstream), "tools": [tool]}),
            );
            let with = |value: &str| {
                test.send(&raw(
                    client,
                    body.to_string().replace("\"HERE\"", value).as_bytes(),
                ))
            };
            for value in [
                "1e400",
                "-1E+999",
                &"9".repeat(400),
                r#""\ud800""#,
                r#"["\udc00\ud800"]"#,
            ] {
                assert_refused(client, &with(value), "invalid_json");
            }
            for value in ["1e300", "1.50", r#""\ud83d\ude00 \\ud800""#] {
                let response = with(value);
                assert_eq!(
                    response.status,
                    200,
                    "{client:?} before {upstream:?}: {value}: {}",
                    response.text()
                );
            }
        }
    }
}

/// A repeated field is refused with 400 wherever the gateway reads it, so that no upstream can read
/// a different value than the gateway did.
#[test]
fn j04_a_field_that_is_given_twice_is_refused() {
    let test = RequestTest::new();
    for protocol in PROTOCOLS {
        let whole = question(protocol, "Hello.").to_string();
        for twice in [
            "\"model\":\"other\"",
            "\"stream\":true",
            "\"mod\\u0065l\":\"other\"",
        ] {
            let body = format!("{},{twice}}}", &whole[..whole.len() - 1]);
            assert_refused(
                protocol,
                &test.send(&raw(protocol, body.as_bytes())),
                "invalid_json",
            );
        }
    }
    for protocol in requests::TEXT_PROTOCOLS {
        let whole = question(protocol, "Hello.").to_string();
        let nested = whole.replace(
            "\"role\":\"user\"",
            "\"role\":\"user\",\"role\":\"assistant\"",
        );
        assert_ne!(nested, whole);
        assert_eq!(
            test.send(&raw(protocol, nested.as_bytes())).status,
            400,
            "{protocol:?}"
        );
    }
    test.nobody_was_asked();
}

/// Values of the wrong type, and null for a required field, are refused with 400 that names the
/// field.
#[test]
fn j05_values_of_a_wrong_type_are_refused_by_name() {
    let test = RequestTest::new();
    let refused = |protocol: Protocol, field: &str, value: Value| {
        let body = changed(question(protocol, "Hello."), &json!({field: value}));
        let response = test.send(&raw(protocol, body.to_string().as_bytes()));
        assert_eq!(
            response.status,
            400,
            "{protocol:?} {body}: {}",
            response.text()
        );
        let error = response.json()["error"].clone();
        let names_it = error["message"].as_str().unwrap().contains(field);
        assert!(
            names_it && (protocol == Protocol::Messages || error["param"] == field),
            "{body}: {error}"
        );
    };
    for protocol in PROTOCOLS {
        for value in [json!("true"), json!(1), json!([]), json!({})] {
            refused(protocol, "stream", value);
        }
        for value in [json!(7), json!([]), json!({}), json!(true)] {
            refused(protocol, "model", value);
        }
        let content = if protocol == Protocol::Responses {
            "input"
        } else {
            "messages"
        };
        let content = if protocol == Protocol::Images {
            "prompt"
        } else {
            content
        };
        for value in [json!(null), json!(7), json!({}), json!(true)] {
            refused(protocol, content, value);
        }
    }
    for protocol in requests::TEXT_PROTOCOLS {
        refused(protocol, "model", json!(null));
        refused(protocol, "temperature", json!("warm"));
        refused(protocol, "tools", json!("all"));
    }
    // An array of the values of an object is not an object, even if the values fit.
    refused(Protocol::Chat, "response_format", json!(["text"]));
    let choice = json!({"tool_choice": {"type": "function", "function": ["look"]}});
    let response = test.send(&raw(
        Protocol::Chat,
        changed(question(Protocol::Chat, "Hello."), &choice)
            .to_string()
            .as_bytes(),
    ));
    assert_eq!(
        (response.status, &response.json()["error"]["param"]),
        (400, &json!("tool_choice.function")),
        "{}",
        response.text()
    );
    test.nobody_was_asked();
}

/// Unknown fields are accepted, and one that names a host, a key or headers has no effect on where
/// a request is sent.
#[test]
fn j07_unknown_fields_change_nothing() {
    let test = RequestTest::new();
    let elsewhere = Simulator::honest().unwrap();
    let url = elsewhere.base_url();
    for protocol in PROTOCOLS {
        let unknown = json!({
            "api_base": url, "base_url": url, "api_key": "sk-stolen", "api_type": "azure", "organization": "theirs",
            "headers": {"authorization": "Bearer sk-stolen", "x-added": "1"}, "extra_headers": {"x-added": "1"},
            "extra_body": {"model": "other"}, "extra_query": {"a": "b"}, "proxy": url, "callback_url": url,
            "webhook": url, "timeout": 0, "fallbacks": [{"api_base": url}], "custom_llm_provider": "other",
            "mock_response": "mocked",
        });
        let body = changed(question(protocol, "Hello."), &unknown);
        let response = test.send(&raw(protocol, body.to_string().as_bytes()));
        assert_eq!(response.status, 200, "{protocol:?}: {}", response.text());
        let forwarded = test.simulator.requests().pop().unwrap();
        assert_eq!(forwarded.path, path(protocol), "no query is added");
        assert!(
            forwarded
                .headers
                .iter()
                .all(|(name, value)| name != "x-added" && !value.contains("stolen"))
        );
        assert!(
            forwarded
                .headers
                .iter()
                .any(|(_, value)| value.contains(UPSTREAM_KEY))
        );
        assert_eq!(forwarded.model(), "their-model");
    }
    assert_eq!(
        elsewhere.connections(),
        0,
        "no request is sent to a host that a request names"
    );
}

/// Bodies with very many or unusual members are parsed in linear and not quadratic time, and more
/// than a million values are refused with 400.
#[test]
fn j08_many_members_are_read_in_time() {
    let test = RequestTest::new();
    for (client, upstream) in requests::TEXT_PROTOCOLS
        .into_iter()
        .zip(requests::TEXT_PROTOCOLS.into_iter().cycle().skip(1))
    {
        let mut whole = question(client, "Hello.");
        whole["model"] = protocol_name(upstream).into();
        let whole = whole.to_string();
        let with = |member: String| format!("{},{member}}}", &whole[..whole.len() - 1]);
        let keys: Vec<String> = (0..50_000)
            .map(|key| format!("\"the_same_prefix_{key}\":0"))
            .collect();
        for body in [
            with(keys.join(",")),
            with(format!("\"x\":\"{}\"", "\\u0000".repeat(500_000))),
        ] {
            let response = test.send(&raw(client, body.as_bytes()));
            assert_eq!(
                response.status,
                200,
                "{client:?} before {upstream:?}: {:.300}",
                response.text()
            );
        }
    }
    for (protocol, named) in [(Protocol::Responses, false), (Protocol::Chat, true)] {
        let function = if named {
            json!({"name": "x"})
        } else {
            json!(null)
        };
        let allowed = vec![json!({"type": "function", "name": "x", "function": function}); 50_000];
        let choice =
            json!({"type": "allowed_tools", "tools": allowed, "allowed_tools": {"tools": allowed}});
        let body = changed(
            question(protocol, "Hello."),
            &json!({"tools": vec![json!({"type": "mcp"}); 50_000], "tool_choice": choice}),
        );
        assert_eq!(test.send(&requests::request(protocol, &body)).status, 400);
    }
    for protocol in PROTOCOLS {
        let whole = question(protocol, "Hello.").to_string();
        let items = |count: usize| format!("[{}0]", "0,".repeat(count));
        let with = |count: usize| format!("{},\"x\":{}}}", &whole[..whole.len() - 1], items(count));
        assert_eq!(
            test.send(&raw(protocol, with(300_000).as_bytes())).status,
            200
        );
        assert_refused(
            protocol,
            &test.send(&raw(protocol, with(1_000_000).as_bytes())),
            "invalid_json",
        );
        let content = if protocol == Protocol::Responses {
            "input"
        } else {
            "messages"
        };
        let content = if protocol == Protocol::Images {
            "prompt"
        } else {
            content
        };
        let response = test.send(&raw(
            protocol,
            format!("{{\"{content}\":{}}}", items(300_000)).as_bytes(),
        ));
        assert_eq!(response.status, 400);
        assert!(
            response.body.len() < 4 << 10,
            "the error has {} bytes",
            response.body.len()
        );
    }
}

/// NUL, line separators and all other characters are relayed as they were written; a lone surrogate
/// is refused with 400.
#[test]
fn j09_characters_are_relayed_as_they_were_written() {
    let test = RequestTest::new();
    for protocol in requests::TEXT_PROTOCOLS {
        let whole = question(protocol, "TEXT").to_string();
        let written = "\\u0000 \u{2028}\u{2029}\\u2028 \u{7f}\u{85}\u{feff}\u{10ffff}\\ud83d\\ude00 \\/ \u{202e}\\u0041";
        let response = test.send(&raw(protocol, whole.replace("TEXT", written).as_bytes()));
        assert_eq!(response.status, 200, "{protocol:?}: {}", response.text());
        let forwarded = test.simulator.requests().pop().unwrap();
        assert!(
            std::str::from_utf8(&forwarded.body)
                .unwrap()
                .contains(written),
            "as it was written"
        );
        for half in ["\\ud800", "\\udc00", "\\ud800\\ud800", "\\ud800x"] {
            let response = test.send(&raw(protocol, whole.replace("TEXT", half).as_bytes()));
            assert_refused(protocol, &response, "invalid_json");
        }
    }
}

/// A body with another media type is refused with 415; one without a media type is parsed as JSON,
/// and parameters of the media type are ignored.
#[test]
fn j10_a_body_of_another_type_is_refused() {
    let test = RequestTest::new();
    for protocol in PROTOCOLS {
        let body = question(protocol, "Hello.").to_string();
        let send = |kind: &str| {
            let request = Request::post_bytes(path(protocol), body.as_bytes()).bearer(CLIENT_KEY);
            test.send(&request.header("content-type", kind))
        };
        for kind in [
            "text/plain",
            "text/json",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=b",
            "application/octet-stream",
            "application/jsonl",
            "json",
            ";",
            "*/*",
        ] {
            assert_refused(protocol, &send(kind), "unsupported_content_type");
        }
        for kind in [
            "application/json",
            "Application/JSON ; charset=latin1",
            "application/vnd.a+json",
        ] {
            assert_eq!(send(kind).status, 200, "{protocol:?} {kind}");
        }
        let untyped = Request::post_bytes(path(protocol), body.as_bytes()).bearer(CLIENT_KEY);
        assert_eq!(test.send(&untyped).status, 200);
        let latin: Vec<u8> = body
            .bytes()
            .map(|byte| if byte == b'.' { 0xe9 } else { byte })
            .collect();
        let latin = Request::post_bytes(path(protocol), &latin)
            .header("content-type", "application/json; charset=latin1");
        assert_refused(
            protocol,
            &test.send(&latin.bearer(CLIENT_KEY)),
            "invalid_json",
        );
    }
}

/// Counts out of range are refused with 400 that names the field, and no memory is allocated for
/// them.
#[test]
fn j11_counts_out_of_range_are_refused_by_name() {
    let test = RequestTest::new();
    let refused = |protocol: Protocol, field: &str, value: Value| {
        let body = changed(question(protocol, "Hello."), &json!({field: value}));
        let response = test.send(&raw(protocol, body.to_string().as_bytes()));
        assert_eq!(
            response.status,
            400,
            "{protocol:?} {field} {value}: {}",
            response.text()
        );
        assert!(
            response.json()["error"]["message"]
                .as_str()
                .unwrap()
                .contains(field),
            "{}",
            response.text()
        );
    };
    for value in [json!(0), json!(-1), json!(i64::MIN), json!(-1.0)] {
        for protocol in requests::TEXT_PROTOCOLS {
            refused(protocol, cap(protocol), value.clone());
        }
        refused(Protocol::Images, "n", value.clone());
        refused(Protocol::Chat, "n", value);
    }
    for value in [
        json!(11),
        json!(1_000_000_000),
        json!(1e18),
        json!(i64::MAX),
    ] {
        refused(Protocol::Images, "n", value);
    }
    for value in [json!(-1), json!(4), json!(1_000_000_000)] {
        refused(Protocol::Images, "partial_images", value);
    }
    for value in [json!(129), json!(1_000_000_000), json!(i64::MAX)] {
        refused(Protocol::Chat, "n", value);
    }
    test.nobody_was_asked();
    // Values that only the server interprets are up to the server.
    let change = json!({"output_compression": 101});
    let body = changed(question(Protocol::Images, "Hello."), &change);
    let response = test.send(&raw(Protocol::Images, body.to_string().as_bytes()));
    assert_eq!(response.status, 200, "{}", response.text());
    for protocol in requests::TEXT_PROTOCOLS {
        // No memory is allocated for an output cap: the accepted range is up to the upstream.
        let body = changed(
            question(protocol, "Hello."),
            &json!({cap(protocol): 1_000_000_000_000_000_000_i64}),
        );
        assert_eq!(
            test.send(&raw(protocol, body.to_string().as_bytes()))
                .status,
            200,
            "{protocol:?}"
        );
    }
}

/// The schema of a tool is not interpreted: one that refers to itself is relayed byte for byte.
#[test]
fn j12_a_schema_that_refers_to_itself_is_relayed() {
    let test = RequestTest::new();
    let schema = json!({
        "type": "object", "$ref": "#", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        "properties": {"x": {"$ref": "#"}, "y": {"$ref": "https://127.0.0.1:1/schema.json"}},
    });
    for client in requests::TEXT_PROTOCOLS {
        let tool = match client {
            Protocol::Responses => {
                json!({"type": "function", "name": "f", "parameters": schema, "strict": false})
            }
            Protocol::Chat => {
                json!({"type": "function", "function": {"name": "f", "parameters": schema}})
            }
            _ => json!({"name": "f", "input_schema": schema}),
        };
        for upstream in requests::TEXT_PROTOCOLS {
            let mut body = changed(question(client, "Hello."), &json!({"tools": [tool]}));
            body["model"] = protocol_name(upstream).into();
            let response = test.send(&raw(client, body.to_string().as_bytes()));
            assert_eq!(
                response.status,
                200,
                "{client:?} before {upstream:?}: {}",
                response.text()
            );
            let forwarded = test.simulator.requests().pop().unwrap();
            let forwarded_body = std::str::from_utf8(&forwarded.body).unwrap();
            assert!(
                forwarded_body.contains(&schema.to_string()),
                "{client:?} before {upstream:?}: {forwarded_body}"
            );
        }
    }
}

/// A gateway in front of a conforming upstream.
struct RequestTest {
    gateway: Gateway,
    simulator: Simulator,
}

impl RequestTest {
    fn new() -> Self {
        let (gateway, simulator) = GATEWAY.with_upstream("");
        Self { gateway, simulator }
    }

    fn send(&self, request: &Request) -> Response {
        request.send(self.gateway.address())
    }

    /// Asserts that no request has reached the upstream, since errors are found before one is sent.
    #[track_caller]
    fn nobody_was_asked(&self) {
        assert!(self.simulator.requests().is_empty());
        assert_eq!(self.gateway.metric("sluicegate_panics_total"), 0.0);
    }
}

/// A plain request to an upstream of the client's own protocol.
fn question(protocol: Protocol, text: &str) -> Value {
    ask(protocol, protocol_name(protocol), text, false)
}

/// A request with this body.
fn raw(protocol: Protocol, body: &[u8]) -> Request {
    Request::post_bytes(path(protocol), body)
        .bearer(CLIENT_KEY)
        .header("content-type", "application/json")
}

/// Asserts that the response is an invalid-request error, with this code where the protocol has
/// codes.
#[track_caller]
fn assert_refused(protocol: Protocol, response: &Response, code: &str) {
    let status = if code == "unsupported_content_type" {
        415
    } else {
        400
    };
    assert_eq!(response.status, status, "{protocol:?}: {}", response.text());
    let error = &response.json()["error"];
    assert_eq!(error["type"], "invalid_request_error", "{error}");
    assert!(
        protocol == Protocol::Messages || error["code"] == code,
        "{error}"
    );
}

/// The name of the field that limits the output tokens.
fn cap(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Responses => "max_output_tokens",
        _ => "max_tokens",
    }
}
