//! Parses every fixture, checks that nothing is lost, and compares its meaning with a snapshot.

use serde_json::{Value, json};
use sluicegate_responses::{
    Echo, Encoder, Event, Finish, FunctionCall, Head, OutputItem, Request, Response, ResponseError,
    Rules, StreamError,
};
use strategies::without_nulls;
use wire::{ApiError, ErrorKind};

use crate::{decode, events, fixture, fold, text};

/// Rules with every exception allowed.
fn lenient() -> Rules {
    let mut rules = Rules::default();
    rules.string_input = true;
    rules
}

#[test]
fn requests_are_valid_and_nothing_is_lost() {
    insta::glob!("fixtures/responses-request-*.json", |path| {
        let body = std::fs::read(path).unwrap();
        if path.ends_with("responses-request-item-reference.json") {
            return;
        }
        let request = Request::read(&body)
            .unwrap()
            .validate(&lenient())
            .unwrap()
            .into_inner();
        let written = serde_json::to_value(&request).unwrap();
        assert_eq!(
            without_nulls(written),
            without_nulls(with_types(serde_json::from_slice(&body).unwrap()))
        );
        insta::assert_debug_snapshot!(request);
    });
}

/// An item with a role and without a type is a message, and is written with its type.
fn with_types(mut request: Value) -> Value {
    for item in request["input"].as_array_mut().into_iter().flatten() {
        item.as_object_mut()
            .unwrap()
            .entry("type")
            .or_insert("message".into());
    }
    request
}

#[test]
fn a_reference_to_an_item_is_refused_with_advice() {
    let case: Value =
        serde_json::from_str(&fixture("responses-request-item-reference.json")).unwrap();
    let request = Request::read(case["request"].to_string().as_bytes()).unwrap();
    assert_eq!(
        serde_json::to_value(&request).unwrap(),
        with_types(case["request"].clone())
    );
    let error = ApiError::from(request.validate(&Rules::default()).unwrap_err());
    assert_eq!(Value::from(error.kind.status()), case["expect"]["status"]);
    assert_eq!(
        serde_json::to_value(error.body()).unwrap(),
        case["expect"]["body"]
    );
}

#[test]
fn missing_parameters_are_reported_in_the_words_of_the_service() {
    let cases: Vec<Value> = serde_json::from_str(&fixture("errors-openai-style.json")).unwrap();
    for (when, body) in [
        (
            "Responses without model",
            r#"{"input":[{"role":"user","content":"Hi."}]}"#,
        ),
        ("Responses without input", r#"{"model":"model-5.5"}"#),
        (
            "string input for model-5.5",
            r#"{"model":"model-5.5","input":"Hi."}"#,
        ),
    ] {
        let case = cases.iter().find(|case| case["when"] == when).unwrap();
        let found =
            Request::read(body.as_bytes()).and_then(|request| request.validate(&Rules::default()));
        let error = ApiError::from(found.unwrap_err());
        assert_eq!(Value::from(error.kind.status()), case["status"], "{when}");
        assert_eq!(
            serde_json::to_value(error.body()).unwrap(),
            case["body"],
            "{when}"
        );
    }
}

#[test]
fn responses_are_read_and_nothing_is_lost() {
    insta::glob!("fixtures/responses-response-*.json", |path| {
        let body = std::fs::read(path).unwrap();
        let response: Response = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            serde_json::to_value(&response).unwrap(),
            serde_json::from_slice::<Value>(&body).unwrap()
        );
        insta::assert_debug_snapshot!(response);
    });
}

#[test]
fn echoed_request_fields_may_be_null_or_absent() {
    let least = json!({"id": "resp_1", "object": "response", "created_at": 1.0, "status": "completed", "model": "m"});
    let response: Response = serde_json::from_str(&least.to_string()).unwrap();
    let written = serde_json::to_value(&response).unwrap();
    let mut nulls = written.clone();
    for (name, value) in nulls.as_object_mut().unwrap() {
        *value = least.get(name).cloned().unwrap_or_default();
    }
    assert_eq!(
        serde_json::from_str::<Response>(&nulls.to_string()).unwrap(),
        response
    );
    assert_eq!(
        (&written["tool_choice"], &written["parallel_tool_calls"]),
        (&json!("auto"), &json!(true))
    );
    assert_eq!(
        (&written["temperature"], &written["presence_penalty"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(written["text"], json!({"format": {"type": "text"}}));
    assert_eq!(
        (&written["usage"], &written["service_tier"]),
        (&Value::Null, &json!("default"))
    );
}

#[test]
fn a_response_repeats_its_request() {
    let request =
        Request::read(fixture("responses-request-parts-and-options.json").as_bytes()).unwrap();
    let head = Head {
        id: "resp_1".into(),
        created_at: 1,
        model: request.model.clone(),
    };
    let (mut encoder, mut out) = (Encoder::new(head, Echo::of(&request)), Vec::new());
    encoder.finish(Finish::Completed, None, 2, &mut out);
    let (requested, response) = (
        serde_json::to_value(&request).unwrap(),
        serde_json::to_value(fold(&out).unwrap()).unwrap(),
    );
    for name in [
        "model",
        "instructions",
        "max_output_tokens",
        "temperature",
        "top_p",
        "metadata",
        "text",
        "reasoning",
        "parallel_tool_calls",
        "truncation",
    ] {
        assert_eq!(response[name], requested[name], "{name}");
    }
    for name in [
        "input",
        "include",
        "stream",
        "x_unknown_extension",
        "output_text",
    ] {
        assert_eq!(response.get(name), None, "{name}");
    }
    assert_eq!(
        (&response["store"], &response["background"]),
        (&json!(false), &json!(false))
    );

    let options = json!({"model": "m", "input": [], "store": true, "text": {"verbosity": "low"},
        "reasoning": {"generate_summary": "auto"}, "service_tier": "auto"});
    let head = Head {
        id: "resp_1".into(),
        created_at: 1,
        model: "m".into(),
    };
    let request = Request::read(options.to_string().as_bytes()).unwrap();
    let (mut encoder, mut out) = (Encoder::new(head, Echo::of(&request)), Vec::new());
    encoder.finish(Finish::Completed, None, 2, &mut out);
    let response = serde_json::to_value(fold(&out).unwrap()).unwrap();
    assert_eq!(
        response["text"],
        json!({"format": {"type": "text"}, "verbosity": "low"})
    );
    assert_eq!(
        response["reasoning"],
        json!({"effort": null, "summary": "auto"})
    );
    assert_eq!(
        (&response["store"], &response["service_tier"]),
        (&json!(false), &json!("default"))
    );
}

#[test]
fn streams_are_within_the_grammar_and_amount_to_a_response() {
    insta::glob!("fixtures/responses-{stream,upstream}-*.sse", |path| {
        let stream = std::fs::read_to_string(path).unwrap();
        let (events, end) = decode([stream.as_bytes()]);
        let is_truncated = path.ends_with("responses-stream-truncated-invalid.sse");
        assert_eq!(
            end.is_err(),
            is_truncated,
            "the bytes end between two events"
        );
        if !is_truncated {
            let without_comments = stream.replace(": keep-alive\n\n", "");
            assert_eq!(
                lines(&text(&events)),
                lines(&without_comments),
                "serialized as received"
            );
        }
        match fold(&events) {
            Ok(response) => insta::assert_snapshot!(pretty(&response)),
            Err(error) => insta::assert_debug_snapshot!(error),
        }
    });
}

/// Returns the lines of a stream with their data parsed: the order of fields is not compared, nor
/// are the null fields of `error` events, which are never emitted.
fn lines(stream: &str) -> Vec<Value> {
    let line = |line: &str| match line.strip_prefix("data: ") {
        Some(data) => match serde_json::from_str::<Value>(data).unwrap() {
            data if data["type"] == "error" => without_nulls(data),
            data => data,
        },
        None => Value::from(line),
    };
    stream.split('\n').map(line).collect()
}

fn pretty(response: &Response) -> String {
    serde_json::to_string_pretty(&serde_json::to_value(response).unwrap()).unwrap()
}

#[test]
fn a_stream_amounts_to_the_response_that_was_not_streamed() {
    for name in ["text", "function-call", "incomplete", "refusal"] {
        let stream = fixture(&format!("responses-stream-{name}.sse"));
        let response: Response =
            serde_json::from_str(&fixture(&format!("responses-response-{name}.json"))).unwrap();
        assert_eq!(fold(&events(&stream)).unwrap(), response, "{name}");
    }
}

#[test]
fn a_failure_is_reported_wherever_it_stands() {
    let failure = |name: &str| match fold(&events(&fixture(name))) {
        Err(StreamError::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    };
    let nested = failure("responses-upstream-error-event-nested.sse");
    assert_eq!(
        (nested.code.as_str(), nested.message.as_str()),
        ("server_error", "The upstream failed.")
    );
    let flat = failure("responses-upstream-error-event-flat.sse");
    let mut expected = nested;
    expected.kind.clear();
    assert_eq!(flat, expected);
}

#[test]
fn our_encoder_writes_the_same_bytes() {
    insta::glob!("fixtures/responses-stream-*.sse", |path| {
        if path.ends_with("responses-stream-truncated-invalid.sse") {
            return;
        }
        let events = events(&std::fs::read_to_string(path).unwrap());
        // The fixtures derive item ids from a shorter part of the response's id, and set the phase
        // of a message early.
        let ours = text(&reencoded(&events)).replace("_8f3a1c5e7b9d24600", "_8f3a1c5e0");
        let without_phase = |added: &str| {
            added.replace(
                r#","content":[],"phase":"commentary"}"#,
                r#","content":[]}"#,
            )
        };
        assert_eq!(ours, without_phase(&text(&events)), "{}", path.display());
    });
}

/// Re-encodes the content of the events with our encoder.
fn reencoded(events: &[Event]) -> Vec<Event> {
    let Event::Created(created) = &events[0] else {
        panic!("a stream begins with response.created")
    };
    let head = Head {
        id: created.response.id.clone(),
        created_at: created.response.created_at,
        model: created.response.model.clone(),
    };
    let mut encoder = Encoder::new(head, Echo::of(&request_for(&created.response)));
    let mut out = Vec::new();
    events
        .iter()
        .for_each(|event| encode(event, &mut encoder, &mut out));
    out
}

/// Returns a request that yields a response with these fields.
fn request_for(response: &Response) -> Request {
    let mut request = Request::default();
    request.max_output_tokens = response.max_output_tokens;
    request.reasoning = Some(response.reasoning.clone());
    request.tools = Some(response.tools.clone());
    request.tool_choice = Some(response.tool_choice.clone());
    request
}

fn encode(event: &Event, encoder: &mut Encoder, out: &mut Vec<Event>) {
    let usage = |response: &Response| (response.usage, response.completed_at.unwrap_or_default());
    match event {
        Event::InProgress(_) => encoder.open(out),
        Event::OutputItemAdded(event) => {
            if let OutputItem::FunctionCall(FunctionCall { call_id, name, .. }) = &event.item {
                encoder.call(call_id, name, out);
            }
        }
        Event::OutputTextDelta(event) => encoder.text(&event.delta, out),
        Event::RefusalDelta(event) => encoder.refusal(&event.delta, out),
        Event::SummaryTextDelta(event) => encoder.reasoning(&event.delta, out),
        Event::ContentPartDone(_) | Event::SummaryPartDone(_) => encoder.end_part(out),
        Event::ArgumentsDelta(event) => encoder.arguments(&event.delta, out),
        Event::Completed(event) => {
            let (usage, completed_at) = usage(&event.response);
            encoder.finish(Finish::Completed, usage, completed_at, out);
        }
        Event::Incomplete(event) => {
            let reason = event.response.incomplete_details.clone().unwrap().reason;
            encoder.finish(Finish::Incomplete(reason), event.response.usage, 0, out);
        }
        Event::Failed(event) => encoder.fail(&failure(event.response.error.clone().unwrap()), out),
        _ => {}
    }
}

#[expect(clippy::disallowed_methods, reason = "an error of the test alone")]
fn failure(error: ResponseError) -> ApiError {
    match error.code.as_str() {
        "gateway_concurrency_limit" => ApiError::concurrency_limit(),
        _ => ApiError::new(ErrorKind::Upstream, "upstream_error", error.message),
    }
}
