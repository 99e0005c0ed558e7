//! Violations of the stream grammar, and the ends of a stream.

use serde_json::{Value, json};
use sluicegate_responses::{
    Event, Fold, Grammar, Offence, Response, ResponseError, Status, StreamError,
};

use crate::fold;

fn event(value: &Value) -> Event {
    Event::read(&value.to_string()).unwrap()
}

/// Returns an event that carries the response.
fn lifecycle(name: &str, status: &str, output: Value) -> Value {
    let response = json!({"id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": "m", "output": output});
    json!({"type": format!("response.{name}"), "response": response})
}

fn created() -> Value {
    lifecycle("created", "in_progress", json!([]))
}

fn opening() -> [Value; 2] {
    [
        created(),
        lifecycle("in_progress", "in_progress", json!([])),
    ]
}

fn completed(output: Value) -> Value {
    lifecycle("completed", "completed", output)
}

fn failed() -> Value {
    let mut event = lifecycle("failed", "failed", json!([]));
    event["response"]["error"] = json!({"code": "server_error", "message": "No."});
    event
}

fn message(id: &str, status: &str, texts: &[&str]) -> Value {
    let parts = texts
        .iter()
        .map(|text| json!({"type": "output_text", "text": text}));
    json!({"type": "message", "id": id, "status": status, "role": "assistant", "content": parts.collect::<Value>()})
}

fn call(id: &str, status: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": id, "status": status, "call_id": "call_1", "name": "f", "arguments": arguments})
}

fn reasoning(id: &str, texts: &[&str]) -> Value {
    let parts = texts
        .iter()
        .map(|text| json!({"type": "summary_text", "text": text}));
    json!({"type": "reasoning", "id": id, "summary": parts.collect::<Value>()})
}

fn added(index: u32, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u32, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

/// Returns an event that belongs to the item `a` at index 0.
fn inside(name: &str, members: Value) -> Value {
    let mut event = json!({"type": format!("response.{name}"), "item_id": "a", "output_index": 0});
    members
        .as_object()
        .unwrap()
        .iter()
        .for_each(|(name, value)| event[name] = value.clone());
    event
}

fn part(name: &str, index: u32, text: &str) -> Value {
    let part = json!({"type": "output_text", "text": text});
    inside(
        &format!("content_part.{name}"),
        json!({"content_index": index, "part": part}),
    )
}

fn text_delta(index: u32, delta: &str) -> Value {
    inside(
        "output_text.delta",
        json!({"content_index": index, "delta": delta}),
    )
}

fn text_done(index: u32, text: &str) -> Value {
    inside(
        "output_text.done",
        json!({"content_index": index, "text": text}),
    )
}

fn arguments_delta(delta: &str) -> Value {
    inside("function_call_arguments.delta", json!({ "delta": delta }))
}

fn arguments_done(arguments: &str) -> Value {
    inside(
        "function_call_arguments.done",
        json!({ "arguments": arguments }),
    )
}

fn summary(name: &str, index: u32, text: &str) -> Value {
    let part = json!({"type": "summary_text", "text": text});
    inside(
        &format!("reasoning_summary_part.{name}"),
        json!({"summary_index": index, "part": part}),
    )
}

fn summary_delta(index: u32, delta: &str) -> Value {
    inside(
        "reasoning_summary_text.delta",
        json!({"summary_index": index, "delta": delta}),
    )
}

fn summary_done(index: u32, text: &str) -> Value {
    inside(
        "reasoning_summary_text.done",
        json!({"summary_index": index, "text": text}),
    )
}

/// The events of the message `a` with the text "Hi.".
fn hi() -> Vec<Value> {
    vec![
        added(0, message("a", "in_progress", &[])),
        part("added", 0, ""),
        text_delta(0, "H"),
        text_delta(0, "i."),
        text_done(0, "Hi."),
        part("done", 0, "Hi."),
        done(0, message("a", "completed", &["Hi."])),
    ]
}

/// Adds sequence numbers to the events.
fn numbered(stream: &[Value]) -> Vec<Event> {
    let with_number = |(i, value): (usize, &Value)| {
        let mut value = value.clone();
        value
            .as_object_mut()
            .unwrap()
            .entry("sequence_number")
            .or_insert(i.into());
        event(&value)
    };
    stream.iter().enumerate().map(with_number).collect()
}

/// Returns the first violation of a stream, its end included, and the number of events before it.
fn offence(stream: &[Value]) -> Option<(usize, Offence)> {
    let mut grammar = Grammar::default();
    let stream = numbered(stream);
    for (i, event) in stream.iter().enumerate() {
        if let Err(offence) = grammar.push(event) {
            return Some((i, offence));
        }
    }
    grammar
        .finish()
        .err()
        .map(|offence| (stream.len(), offence))
}

/// Asserts that an opened stream with these further events violates the grammar at its last event.
#[track_caller]
fn refused(rest: &[Value], expected: Offence) {
    let stream = [&opening(), rest].concat();
    assert_eq!(offence(&stream), Some((stream.len() - 1, expected)));
}

#[track_caller]
fn accepted(rest: &[Value]) {
    assert_eq!(offence(&[&opening(), rest].concat()), None);
}

#[test]
fn a_stream_has_one_beginning() {
    let first = |event: Value| offence(&[event]);
    assert_eq!(offence(&[]), Some((0, Offence::Truncated)));
    assert_eq!(first(opening()[1].clone()), Some((0, Offence::Opening)));
    assert_eq!(
        first(added(0, message("a", "in_progress", &[]))),
        Some((0, Offence::Item))
    );
    assert_eq!(first(text_delta(0, "a")), Some((0, Offence::Stray)));
    assert_eq!(first(completed(json!([]))), Some((0, Offence::Opening)));
    assert_eq!(first(failed()), Some((0, Offence::Opening)));
    assert_eq!(
        offence(&[created(), created()]),
        Some((1, Offence::Opening))
    );
    assert_eq!(
        offence(&[created(), hi()[0].clone()]),
        Some((1, Offence::Item))
    );
    let two = [
        added(0, message("a", "in_progress", &[])),
        added(0, message("b", "in_progress", &[])),
    ];
    assert_eq!(
        offence(&[&opening()[..], &two].concat()),
        Some((3, Offence::Item)),
        "one is open at a time"
    );
    assert_eq!(
        offence(&[created(), completed(json!([]))]),
        Some((1, Offence::Opening))
    );
    refused(&[created()], Offence::Opening);
    refused(&[opening()[1].clone()], Offence::Opening);

    let with = |name: &str, value: Value| {
        let mut event = created();
        event["response"][name] = value;
        first(event)
    };
    assert_eq!(with("id", json!("")), Some((0, Offence::Opening)));
    assert_eq!(
        with("output", json!([message("a", "completed", &["Hi."])])),
        Some((0, Offence::Opening))
    );
    assert_eq!(with("status", json!("queued")), Some((0, Offence::Status)));
    let mut other = opening();
    other[1]["response"]["id"] = json!("resp_2");
    assert_eq!(offence(&other), Some((1, Offence::Identity)));
}

#[test]
fn a_stream_has_one_end() {
    accepted(&[completed(json!([]))]);
    accepted(&[lifecycle("incomplete", "incomplete", json!([]))]);
    accepted(&[failed()]);
    accepted(&[json!({"type": "error", "message": "No."})]);
    assert_eq!(offence(&[created(), failed()]), None);
    assert_eq!(
        offence(&[json!({"type": "error", "message": "No."})]),
        None,
        "an error needs no beginning"
    );

    let complete = [
        hi(),
        vec![completed(json!([message("a", "completed", &["Hi."])]))],
    ]
    .concat();
    accepted(&complete);
    for end in [
        completed(json!([])),
        failed(),
        json!({"type": "error"}),
        hi()[0].clone(),
        json!({"type": "new"}),
    ] {
        refused(&[completed(json!([])), end.clone()], Offence::AfterEnd);
        refused(&[failed(), end], Offence::AfterEnd);
    }
    for length in 0..complete.len() {
        let stream = [&opening(), &complete[..length]].concat();
        assert_eq!(offence(&stream), Some((stream.len(), Offence::Truncated)));
        let (open, end) = ((1..=6).contains(&length), completed(json!([])));
        if open {
            refused(&[&complete[..length], &[end]].concat(), Offence::Unclosed);
            accepted(&[&complete[..length], &[failed()]].concat());
        }
    }
}

#[test]
fn a_final_response_agrees_with_its_stream() {
    refused(
        &[lifecycle("completed", "incomplete", json!([]))],
        Offence::Status,
    );
    refused(
        &[lifecycle("incomplete", "completed", json!([]))],
        Offence::Status,
    );
    refused(
        &[lifecycle("failed", "in_progress", json!([]))],
        Offence::Status,
    );
    let mut other = completed(json!([]));
    other["response"]["id"] = json!("resp_2");
    refused(&[other], Offence::Identity);

    let ended = |output: Value| [hi(), vec![completed(output)]].concat();
    refused(&ended(json!([])), Offence::Output);
    refused(
        &ended(json!([message("b", "completed", &["Hi."])])),
        Offence::Output,
    );
    refused(
        &ended(json!([message("a", "completed", &["Ho."])])),
        Offence::Output,
    );
    refused(
        &ended(json!([message("a", "completed", &["Hi.", ""])])),
        Offence::Output,
    );
    let twice = json!([
        message("a", "completed", &["Hi."]),
        message("a", "completed", &["Hi."])
    ]);
    refused(&ended(twice), Offence::Output);
}

#[test]
fn numbers_count_from_nought_without_gaps() {
    let at = |number: Value| {
        let mut second = opening()[1].clone();
        second["sequence_number"] = number;
        offence(&[created(), second, failed()])
    };
    assert_eq!(at(json!(1)), None);
    assert_eq!(at(json!(0)), Some((1, Offence::Sequence)));
    assert_eq!(at(json!(2)), Some((1, Offence::Sequence)));
    let mut late = created();
    late["sequence_number"] = json!(1);
    assert_eq!(offence(&[late]), Some((0, Offence::Sequence)));
}

#[test]
fn items_come_one_after_another() {
    refused(&[added(1, message("a", "in_progress", &[]))], Offence::Item);
    refused(
        &[added(0, message("a", "in_progress", &["Hi."]))],
        Offence::Item,
    );
    refused(&[added(0, message("a", "completed", &[]))], Offence::Item);
    refused(&[added(0, call("a", "in_progress", "{}"))], Offence::Item);
    refused(&[added(0, reasoning("a", &["Hm."]))], Offence::Item);
    refused(
        &[added(0, message("", "in_progress", &[]))],
        Offence::ItemIdentity,
    );
    refused(
        &[done(0, message("a", "completed", &["Hi."]))],
        Offence::Item,
    );
    refused(
        &[added(0, reasoning("a", &[])), added(1, reasoning("b", &[]))],
        Offence::Item,
    );
    refused(
        &[added(0, reasoning("a", &[])), done(1, reasoning("a", &[]))],
        Offence::Item,
    );
    refused(
        &[hi(), vec![added(0, reasoning("b", &[]))]].concat(),
        Offence::Item,
    );
    refused(
        &[hi(), vec![added(1, reasoning("a", &[]))]].concat(),
        Offence::ItemIdentity,
    );
    refused(&[hi(), vec![text_delta(0, "!")]].concat(), Offence::Stray);

    let mut incomplete = hi();
    incomplete[6]["item"]["status"] = json!("incomplete");
    refused(
        &[incomplete.clone(), vec![added(1, reasoning("b", &[]))]].concat(),
        Offence::Item,
    );
    let output = json!([message("a", "incomplete", &["Hi."])]);
    refused(
        &[incomplete.clone(), vec![completed(output.clone())]].concat(),
        Offence::Status,
    );
    accepted(
        &[
            incomplete,
            vec![lifecycle("incomplete", "incomplete", output)],
        ]
        .concat(),
    );

    let two = [
        added(0, reasoning("a", &[])),
        done(0, reasoning("a", &[])),
        added(1, reasoning("b", &[])),
    ];
    let end = [
        done(1, reasoning("b", &[])),
        completed(json!([reasoning("a", &[]), reasoning("b", &[])])),
    ];
    accepted(&[&two[..], &end].concat());
}

#[test]
fn finished_item_must_match_its_stream() {
    let ended = |item: Value| [&hi()[..6], &[done(0, item)]].concat();
    refused(
        &ended(message("b", "completed", &["Hi."])),
        Offence::ItemIdentity,
    );
    refused(&ended(reasoning("a", &[])), Offence::ItemIdentity);
    refused(
        &ended(message("a", "in_progress", &["Hi."])),
        Offence::Status,
    );
    refused(&ended(message("a", "failed", &["Hi."])), Offence::Status);
    refused(&ended(message("a", "completed", &["Ho."])), Offence::Text);
    refused(&ended(message("a", "completed", &[])), Offence::Text);

    let called = |name: &str, value: &str| {
        let mut item = call("a", "completed", "{}");
        item[name] = json!(value);
        [
            added(0, call("a", "in_progress", "")),
            arguments_delta("{}"),
            arguments_done("{}"),
            done(0, item),
        ]
    };
    accepted(
        &[
            &called("name", "f")[..],
            &[completed(json!([call("a", "completed", "{}")]))],
        ]
        .concat(),
    );
    refused(&called("call_id", "call_2"), Offence::ItemIdentity);
    refused(&called("name", "g"), Offence::ItemIdentity);
    refused(&called("arguments", "{ }"), Offence::Text);
}

#[test]
fn a_message_has_parts_and_they_are_in_order() {
    let hi = hi();
    refused(&[&hi[..1], &[part("added", 1, "")]].concat(), Offence::Part);
    refused(
        &[&hi[..1], &[part("added", 0, "Hi.")]].concat(),
        Offence::Part,
    );
    refused(&[&hi[..1], &[text_delta(0, "a")]].concat(), Offence::Stray);
    refused(&[&hi[..1], &[hi[6].clone()]].concat(), Offence::Part);
    refused(&[&hi[..2], &[part("added", 1, "")]].concat(), Offence::Part);
    refused(&[&hi[..2], &[text_delta(1, "a")]].concat(), Offence::Stray);
    refused(
        &[
            &hi[..2],
            &[inside(
                "refusal.delta",
                json!({"content_index": 0, "delta": "a"}),
            )],
        ]
        .concat(),
        Offence::Stray,
    );
    refused(
        &[&hi[..2], &[arguments_delta("a")]].concat(),
        Offence::Stray,
    );
    refused(
        &[&hi[..2], &[summary("added", 0, "")]].concat(),
        Offence::Part,
    );
    refused(&[&hi[..4], &[text_done(0, "Hi")]].concat(), Offence::Text);
    refused(
        &[&hi[..4], &[part("done", 0, "Hi.")]].concat(),
        Offence::Part,
    );
    refused(&[&hi[..5], &[text_delta(0, "!")]].concat(), Offence::Stray);
    refused(&[&hi[..5], &[text_done(0, "Hi.")]].concat(), Offence::Stray);
    refused(
        &[&hi[..5], &[part("done", 1, "Hi.")]].concat(),
        Offence::Part,
    );
    refused(
        &[&hi[..5], &[part("done", 0, "Ho.")]].concat(),
        Offence::Text,
    );
    refused(&[&hi[..5], &[hi[6].clone()]].concat(), Offence::Part);

    let elsewhere = |name: &str, value: Value| {
        let mut delta = text_delta(0, "a");
        delta[name] = value;
        refused(&[&hi[..2], &[delta]].concat(), Offence::Stray);
    };
    elsewhere("item_id", json!("b"));
    elsewhere("output_index", json!(1));

    let annotation = inside(
        "output_text.annotation.added",
        json!({"content_index": 0, "annotation_index": 0, "annotation": {}}),
    );
    refused(
        &[&hi[..1], std::slice::from_ref(&annotation)].concat(),
        Offence::Stray,
    );
    let output = completed(json!([message("a", "completed", &["Hi."])]));
    accepted(&[&hi[..3], &[annotation], &hi[3..], &[output]].concat());
}

#[test]
fn refusals_are_parts_too() {
    let refusal = |text: &str| json!({"type": "refusal", "refusal": text});
    let at = |name: &str, members: Value| inside(name, members);
    let events = [
        added(0, message("a", "in_progress", &[])),
        at(
            "content_part.added",
            json!({"content_index": 0, "part": refusal("")}),
        ),
        at("refusal.delta", json!({"content_index": 0, "delta": "No."})),
        at(
            "refusal.done",
            json!({"content_index": 0, "refusal": "No."}),
        ),
        at(
            "content_part.done",
            json!({"content_index": 0, "part": refusal("No.")}),
        ),
    ];
    let mut item = message("a", "completed", &[]);
    item["content"] = json!([refusal("No.")]);
    accepted(
        &[
            &events[..],
            &[done(0, item.clone()), completed(json!([item]))],
        ]
        .concat(),
    );
    refused(
        &[&events[..2], &[text_delta(0, "No.")]].concat(),
        Offence::Stray,
    );
    refused(
        &[
            &events[..3],
            &[at(
                "refusal.done",
                json!({"content_index": 0, "refusal": "Yes."}),
            )],
        ]
        .concat(),
        Offence::Text,
    );
    refused(
        &[&events[..4], &[part("done", 0, "No.")]].concat(),
        Offence::Text,
    );
    refused(
        &[&events[..], &[done(0, message("a", "completed", &["No."]))]].concat(),
        Offence::Text,
    );
}

#[test]
fn a_call_ends_with_its_complete_arguments() {
    let opened = added(0, call("a", "in_progress", ""));
    refused(
        &[opened.clone(), done(0, call("a", "completed", ""))],
        Offence::Part,
    );
    refused(
        &[opened.clone(), arguments_delta("{"), arguments_done("{}")],
        Offence::Text,
    );
    refused(
        &[opened.clone(), arguments_done(""), arguments_delta("{}")],
        Offence::Stray,
    );
    refused(&[opened.clone(), part("added", 0, "")], Offence::Part);
    refused(&[opened.clone(), part("done", 0, "")], Offence::Part);
    let end = [
        done(0, call("a", "completed", "")),
        completed(json!([call("a", "completed", "")])),
    ];
    accepted(&[&[opened, arguments_done("")][..], &end].concat());
}

#[test]
fn reasoning_is_streamed_part_by_part() {
    let events = [
        added(0, reasoning("a", &[])),
        summary("added", 0, ""),
        summary_delta(0, "Hm."),
        summary_done(0, "Hm."),
        summary("done", 0, "Hm."),
        done(0, reasoning("a", &["Hm."])),
    ];
    accepted(&[&events[..], &[completed(json!([reasoning("a", &["Hm."])]))]].concat());
    refused(
        &[&events[..1], &[summary("added", 1, "")]].concat(),
        Offence::Part,
    );
    refused(
        &[&events[..1], &[summary("added", 0, "Hm.")]].concat(),
        Offence::Part,
    );
    refused(
        &[&events[..1], &[summary_delta(0, "Hm.")]].concat(),
        Offence::Stray,
    );
    refused(
        &[&events[..1], &[part("added", 0, "")]].concat(),
        Offence::Part,
    );
    refused(
        &[&events[..1], &[summary("done", 0, "")]].concat(),
        Offence::Part,
    );
    refused(
        &[&events[..2], &[events[5].clone()]].concat(),
        Offence::Part,
    );
    refused(
        &[&events[..3], &[summary_done(0, "Ha.")]].concat(),
        Offence::Text,
    );
    refused(
        &[&events[..3], &[summary("done", 0, "Hm.")]].concat(),
        Offence::Part,
    );
    refused(
        &[&events[..4], &[summary("done", 0, "Ha.")]].concat(),
        Offence::Text,
    );
    refused(
        &[&events[..4], &[summary_delta(0, "!")]].concat(),
        Offence::Stray,
    );
    refused(
        &[&events[..5], &[done(0, reasoning("a", &["Ha."]))]].concat(),
        Offence::Text,
    );
}

#[test]
fn unknown_events_are_reported_without_ending_the_fold() {
    let item = json!({"type": "web_search_call", "id": "a", "status": "in_progress"});
    accepted(&[
        added(0, item.clone()),
        done(0, item.clone()),
        completed(json!([item])),
    ]);
    let unknown_events = [
        json!({"type": "response.web_search_call.searching", "item_id": "a"}),
        json!({"type": "keepalive"}),
        inside(
            "reasoning_text.delta",
            json!({"content_index": 0, "delta": "Hm."}),
        ),
        inside(
            "reasoning_text.done",
            json!({"content_index": 0, "text": "Hm."}),
        ),
    ];
    for unknown in unknown_events {
        refused(std::slice::from_ref(&unknown), Offence::UnknownType);
        let mut fold = Fold::default();
        for event in numbered(&[&opening()[..], &[unknown.clone(), completed(json!([]))]].concat())
        {
            match fold.push(&event) {
                Err(StreamError::Offence(offence)) => assert_eq!(offence, Offence::UnknownType),
                other => assert_eq!(other, Ok(())),
            }
        }
        assert_eq!(fold.finish().unwrap().status, Status::Completed);
    }
    let unnumbered = event(&json!({"type": "keepalive"}));
    assert_eq!(
        Grammar::default().push(&unnumbered),
        Err(Offence::UnknownType)
    );
}

#[test]
fn a_stream_ends_in_one_of_four_ways() {
    let ended = |end: Value| fold(&numbered(&[&opening()[..], &[end]].concat()));
    let response = |status: &str| -> Response {
        serde_json::from_value(lifecycle("", status, json!([]))["response"].clone()).unwrap()
    };
    assert_eq!(ended(completed(json!([]))), Ok(response("completed")));
    assert_eq!(
        ended(lifecycle("incomplete", "incomplete", json!([]))),
        Ok(response("incomplete"))
    );
    let failure = |code: &str, message: &str| {
        let mut error = ResponseError::default();
        error.code = code.into();
        error.message = message.into();
        Err(StreamError::Failed(error))
    };
    assert_eq!(ended(failed()), failure("server_error", "No."));
    assert_eq!(
        ended(lifecycle("failed", "failed", json!([]))),
        failure("", "")
    );
    assert_eq!(
        ended(json!({"type": "error", "code": "c", "message": "No."})),
        failure("c", "No.")
    );
    assert_eq!(
        ended(json!({"type": "error", "error": {"code": "c", "message": "No."}})),
        failure("c", "No.")
    );
    assert_eq!(
        fold(&numbered(&opening())),
        Err(StreamError::Offence(Offence::Truncated))
    );

    let all = [
        failed(),
        completed(json!([])),
        lifecycle("incomplete", "incomplete", json!([])),
        json!({"type": "error"}),
    ];
    assert!(numbered(&all).iter().all(Event::is_terminal));
    assert!(
        !numbered(&[&opening()[..], &hi()].concat())
            .iter()
            .any(Event::is_terminal)
    );
}

#[test]
fn offences_have_messages() {
    let text = |error: StreamError| error.to_string();
    assert_eq!(
        text(StreamError::Offence(Offence::Truncated)),
        "the stream ended without a terminal event"
    );
    assert_eq!(
        text(StreamError::Offence(Offence::Text)),
        "a text that differs from the concatenation of its deltas"
    );
    assert_eq!(
        fold(&numbered(&[created(), failed()])).map_err(text),
        Err("the stream failed: No.".to_owned())
    );
}

#[test]
fn invalid_event_data_is_reported() {
    for data in [
        "",
        "[DONE]",
        "[]",
        r#"{"type":"response.created"}"#,
        r#"{"type":"response.output_text.delta","delta":1}"#,
    ] {
        let error = Event::read(data).unwrap_err();
        assert!(
            error.to_string().starts_with("invalid Responses event: "),
            "{error}"
        );
    }
}

#[test]
fn a_foreign_type_stays_on_its_line() {
    let event = Event::read(r#"{"type":"x\ndata: {}\n\nevent: response.completed"}"#).unwrap();
    let mut bytes = Vec::new();
    event.write(&mut bytes);
    assert_eq!(
        bytes,
        b"data: {\"type\":\"x\\ndata: {}\\n\\nevent: response.completed\"}\n\n"
    );
}
