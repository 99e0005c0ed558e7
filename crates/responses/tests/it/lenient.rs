//! The lenient reader: forms that it tolerates, and ends that it refuses. Its law is in `laws`.

use serde_json::{Value, json};
use sluicegate_responses::lenient::{
    Answer, Call, Collector, Finish, Kind, ReadError, Reader, collect, reported_tokens,
};

/// Reads a stream of these events.
fn read(events: &[Value]) -> Result<Answer, ReadError> {
    let mut collector = Collector::default();
    for event in events {
        collector.event(&event.to_string())?;
    }
    collector.finish()
}

fn delta(text: &str) -> Value {
    json!({"type": "response.output_text.delta", "delta": text})
}

fn done(text: &str) -> Value {
    json!({"type": "response.output_text.done", "text": text})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": text}]})
}

fn called(arguments: &str) -> Value {
    json!({"type": "function_call", "id": "i", "call_id": "c", "name": "f", "arguments": arguments})
}

fn added(item: Value) -> Value {
    json!({"type": "response.output_item.added", "item": item})
}

fn item_done(item: Value) -> Value {
    json!({"type": "response.output_item.done", "item": item})
}

fn arguments(text: &str) -> Value {
    json!({"type": "response.function_call_arguments.delta", "item_id": "i", "delta": text})
}

fn completed(output: Value) -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "output": output}})
}

fn end() -> Value {
    completed(json!([]))
}

fn contradicts(events: &[Value]) -> bool {
    matches!(
        read(events),
        Err(ReadError::Contradiction(_) | ReadError::Call(_))
    )
}

#[test]
fn a_text_may_come_in_pieces_or_once_or_at_the_end() {
    for stream in [
        vec![delta("Hel"), delta("lo."), end()],
        vec![delta("Hel"), done("Hello."), end()],
        vec![done("Hello."), end()],
        vec![item_done(message("Hello.")), end()],
        vec![completed(json!([message("Hello.")]))],
        vec![
            delta("Hello."),
            done("Hello."),
            item_done(message("Hello.")),
            completed(json!([message("Hello.")])),
        ],
        // The item has another id at the end.
        vec![
            added(message("")),
            delta("Hello."),
            completed(
                json!([{"type": "message", "id": "n", "content": [{"type": "output_text", "text": "Hello."}]}]),
            ),
        ],
    ] {
        let answer = read(&stream).unwrap_or_else(|error| panic!("{error}: {stream:?}"));
        assert_eq!(
            (answer.text.as_str(), answer.finish),
            ("Hello.", Finish::Completed),
            "{stream:?}"
        );
    }
}

#[test]
fn a_call_may_come_in_pieces_or_once_or_at_the_end() {
    let call = Call {
        id: "c".into(),
        name: "f".into(),
        arguments: "{\"x\":1}".into(),
    };
    let whole = called("{\"x\":1}");
    let all = json!({"type": "response.function_call_arguments.done", "item_id": "i", "arguments": "{\"x\":1}"});
    for stream in [
        vec![
            added(called("")),
            arguments("{\"x\""),
            arguments(":1}"),
            item_done(whole.clone()),
            end(),
        ],
        vec![added(called("")), all, end()],
        vec![item_done(whole.clone()), end()],
        vec![completed(json!([whole]))],
    ] {
        assert_eq!(
            read(&stream).unwrap().calls,
            std::slice::from_ref(&call),
            "{stream:?}"
        );
    }
    let without = read(&[item_done(called("")), end()]).unwrap();
    assert_eq!(without.calls[0].arguments, "");
}

/// A call that is done under the index of the next item, without an id and with another `call_id`,
/// is the open one with these arguments, as in vLLM:
/// <https://github.com/vllm-project/vllm/blob/v0.10.2/vllm/entrypoints/openai/serving_responses.py>.
#[test]
fn a_call_that_is_done_under_the_next_index_is_one_call() {
    let begun = json!({"type": "response.output_item.added", "output_index": 0,
        "item": {"type": "function_call", "id": "", "call_id": "c", "name": "f", "arguments": ""}});
    let piece = json!({"type": "response.function_call_arguments.delta", "item_id": "i", "output_index": 0,
        "delta": "{\"x\":1}"});
    let done = |name: &str, arguments: &str| {
        [
            json!({"type": "response.function_call_arguments.done", "item_id": "i", "output_index": 1,
                "arguments": arguments}),
            json!({"type": "response.output_item.done", "output_index": 1,
                "item": {"type": "function_call", "id": null, "call_id": "d", "name": name, "arguments": arguments}}),
        ]
    };
    let [all, item] = done("f", "{\"x\":1}");
    for late in [vec![all.clone(), item.clone()], vec![item.clone()]] {
        let stream = [vec![begun.clone(), piece.clone()], late, vec![end()]].concat();
        let call = Call {
            id: "c".into(),
            name: "f".into(),
            arguments: "{\"x\":1}".into(),
        };
        assert_eq!(read(&stream).unwrap().calls, [call], "{stream:?}");
    }
    // Another call, which leaves the first one open.
    for (name, arguments) in [("g", "{\"x\":1}"), ("f", "{\"x\":2}")] {
        let [_, other] = done(name, arguments);
        assert!(contradicts(&[begun.clone(), piece.clone(), other, end()]));
    }
    // Two calls are open, and neither is meant for sure.
    let mut second = [begun.clone(), piece.clone()];
    second[0]["output_index"] = 2.into();
    second[1]["output_index"] = 2.into();
    let [second, more] = second;
    assert!(contradicts(&[begun, piece, second, more, item, end()]));
}

/// A part that is announced has its texts under its own index, or all of them under others.
#[test]
fn announced_parts_may_have_other_indexes() {
    let added = |index: u64| json!({"type": "response.content_part.added", "content_index": index, "part": {"type": "output_text", "text": ""}});
    let delta = |index: u64, text: &str| json!({"type": "response.output_text.delta", "content_index": index, "delta": text});
    let two = |first: &str, second: &str| {
        item_done(json!({"type": "message", "id": "m",
            "content": [{"type": "output_text", "text": first}, {"type": "output_text", "text": second}]}))
    };
    let begun = || json!({"type": "response.output_item.added", "item": {"type": "message", "id": "m", "content": []}});
    for stream in [
        // Both parts are announced before their texts.
        vec![
            begun(),
            added(0),
            added(1),
            delta(0, "Old"),
            delta(1, " oak."),
            two("Old", " oak."),
            end(),
        ],
        // The second part is not announced.
        vec![
            begun(),
            added(0),
            delta(0, "Old"),
            delta(1, " oak."),
            two("Old", " oak."),
            end(),
        ],
        // The indexes grow with each event, and the item has a further part at the end.
        vec![
            begun(),
            added(0),
            delta(1, "Ol"),
            delta(2, "d"),
            two("Old", " oak."),
            end(),
        ],
        // The parts are counted from 1.
        vec![
            begun(),
            added(1),
            delta(1, "Old"),
            added(2),
            delta(2, " oak."),
            two("Old", " oak."),
            end(),
        ],
        vec![begun(), added(1), two("Old", " oak."), end()],
        // The one part is announced as the second one.
        vec![
            begun(),
            added(1),
            delta(1, "Old"),
            delta(1, " oak."),
            item_done(message("Old oak.")),
            end(),
        ],
    ] {
        let answer = read(&stream).unwrap_or_else(|error| panic!("{error}: {stream:?}"));
        assert_eq!(answer.text, "Old oak.", "{stream:?}");
    }
    // Clients cannot place a part before the first one.
    assert!(contradicts(&[
        begun(),
        added(1),
        delta(1, "oak"),
        added(0),
        delta(0, "Old "),
        two("Old ", "oak"),
        end()
    ]));
    // A text that is lost is still noticed.
    assert!(contradicts(&[
        begun(),
        added(0),
        delta(1, "Ol"),
        delta(3, "oak"),
        item_done(message("Old oak")),
        end()
    ]));
}

/// vLLM adds a message with the index and the id of the reasoning before it, and the further events
/// of the message have their own: <https://github.com/vllm-project/vllm/pull/35184>.
#[test]
fn a_message_may_be_added_under_the_index_of_reasoning() {
    let event = |kind: &str, index: u64, rest: Value| {
        let mut event = json!({"type": format!("response.{kind}"), "output_index": index});
        event
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        event
    };
    let thought = json!({"type": "reasoning", "id": "r", "content": [{"type": "reasoning_text", "text": "Hm."}]});
    let answer = read(&[
        event("output_item.added", 0, json!({"item": {"type": "reasoning", "id": "r"}})),
        event("reasoning_text.delta", 0, json!({"item_id": "r", "content_index": 0, "delta": "Hm."})),
        event("output_item.done", 0, json!({"item": thought})),
        event("output_item.added", 0, json!({"item": {"type": "message", "id": "r", "content": []}})),
        event("content_part.added", 1, json!({"item_id": "m", "content_index": 0, "part": {"type": "output_text", "text": ""}})),
        event("output_text.delta", 1, json!({"item_id": "m", "content_index": 1, "delta": "Old"})),
        event("output_text.delta", 1, json!({"item_id": "m", "content_index": 2, "delta": " oak."})),
        event("output_item.done", 1, json!({"item": message("Old oak.")})),
        completed(json!([thought, message("Old oak.")])),
    ])
    .unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.reasoning.as_str()),
        ("Old oak.", "Hm.")
    );
}

/// An event with an index that no item has, and the id of one that is done, begins another item.
#[test]
fn an_id_of_an_item_that_is_done_may_be_used_again() {
    let delta = |index: u64, text: &str| json!({"type": "response.output_text.delta", "output_index": index, "item_id": "m", "delta": text});
    let done = |index: u64, text: &str| json!({"type": "response.output_item.done", "output_index": index, "item": message(text)});
    let answer = read(&[
        delta(0, "Old"),
        done(0, "Old"),
        delta(1, " oak."),
        done(1, " oak."),
        completed(json!([message("Old"), message(" oak.")])),
    ]);
    assert_eq!(answer.unwrap().text, "Old oak.");
}

#[test]
fn thoughts_have_many_events() {
    for event in [
        json!({"type": "response.reasoning_text.delta", "delta": "Hm."}),
        json!({"type": "response.reasoning.delta", "delta": "Hm."}),
        json!({"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "Hm."}),
        item_done(
            json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}),
        ),
        item_done(
            json!({"type": "reasoning", "content": [{"type": "reasoning_text", "text": "Hm."}]}),
        ),
    ] {
        assert_eq!(
            read(&[event.clone(), end()]).unwrap().reasoning,
            "Hm.",
            "{event}"
        );
    }
}

#[test]
fn events_are_classified_for_relaying() {
    let mut reader = Reader::new();
    let mut kind = |event: &str| reader.event(event, &mut Vec::new()).unwrap();
    let created = r#"{"type":"response.created","sequence_number":4,"response":{"id":"r"}}"#;
    assert_eq!(kind(created), Kind::Response);
    assert_eq!(kind(r#"{"type":"keepalive"}"#), Kind::Unknown);
    assert_eq!(kind(r#"{"type":"response.of_tomorrow"}"#), Kind::Unknown);
    assert_eq!(kind("[DONE]"), Kind::Done);
    assert_eq!(kind(&delta("a").to_string()), Kind::Content);
    assert_eq!(kind(&end().to_string()), Kind::End);
    assert_eq!(reader.next_number(), 5);
}

#[test]
fn events_without_numbers_are_read_and_lost_ones_are_noticed() {
    let numbered = |number: u64| json!({"type": "response.output_text.delta", "delta": "a", "sequence_number": number});
    assert_eq!(
        read(&[numbered(7), delta("b"), numbered(8), end()])
            .unwrap()
            .text,
        "aba"
    );
    assert!(contradicts(&[numbered(7), numbered(9)]));
    assert!(contradicts(&[numbered(7), numbered(7)]));
}

#[test]
fn complete_forms_that_differ_from_their_deltas_are_failures() {
    assert!(contradicts(&[delta("Hello"), done("Help"), end()]));
    assert!(contradicts(&[
        delta("Hello"),
        item_done(message("Help")),
        end()
    ]));
    assert!(contradicts(&[
        delta("Hello"),
        completed(json!([message("Help")]))
    ]));
    assert!(contradicts(&[
        item_done(message("Hello")),
        completed(json!([message("Hello!")]))
    ]));
    assert!(contradicts(&[
        added(called("")),
        arguments("{\"x\":1}"),
        item_done(called("{\"x\":2}"))
    ]));
    // The final output lacks an item that came before.
    assert!(contradicts(&[
        item_done(called("{}")),
        completed(json!([message("a")]))
    ]));
    assert!(contradicts(&[
        delta("Hello"),
        completed(json!([called("{}")]))
    ]));
    // A delta of an item that is done.
    let first = json!({"type": "message", "id": "m", "content": []});
    let late = json!({"type": "response.output_text.delta", "item_id": "m", "delta": "a"});
    assert!(contradicts(&[item_done(first), late]));
}

#[test]
fn calls_that_cannot_be_executed_are_failures() {
    assert!(contradicts(&[
        added(called("")),
        arguments("{\"path\":\"/srv/da"),
        end()
    ]));
    // Its arguments look complete, but nothing says that they are.
    assert!(contradicts(&[added(called("")), arguments("{}"), end()]));
    assert!(contradicts(&[
        item_done(called("{\"path\":\"/srv/da")),
        end()
    ]));
    assert!(contradicts(&[
        item_done(json!({"type": "function_call", "call_id": "c"})),
        end()
    ]));
    assert!(contradicts(&[
        item_done(json!({"type": "function_call", "name": "f"})),
        end()
    ]));
    // A client executes a call once it is done, whatever comes later.
    let mut done = called("{\"path\":\"/srv/da");
    done["status"] = "completed".into();
    assert_eq!(
        read(&[item_done(done)]),
        Err(ReadError::Call("its arguments are truncated, or no JSON"))
    );
    // The server reports itself that the call is cut.
    let cut = json!({"type": "response.incomplete", "response": {}});
    let answer = read(&[added(called("")), arguments("{\"path"), cut]).unwrap();
    assert_eq!(
        (answer.calls[0].arguments.as_str(), answer.finish),
        ("{\"path", Finish::MaxOutputTokens)
    );
}

#[test]
fn the_status_has_to_mean_the_end() {
    let ended = |kind: &str, response: Value| read(&[json!({"type": kind, "response": response})]);
    let finish = |kind, response| ended(kind, response).unwrap().finish;
    assert_eq!(finish("response.completed", json!({})), Finish::Completed);
    let reason =
        |reason: &str| json!({"status": "incomplete", "incomplete_details": {"reason": reason}});
    assert_eq!(
        finish("response.incomplete", reason("content_filter")),
        Finish::ContentFilter
    );
    assert_eq!(
        finish("response.incomplete", reason("max_output_tokens")),
        Finish::MaxOutputTokens
    );
    for response in [
        json!({"status": "incomplete"}),
        json!({"status": "in_progress"}),
        json!({"status": "cancelled"}),
        json!({"output": [{"type": "message", "status": "incomplete", "content": []}]}),
    ] {
        let read = ended("response.completed", response.clone());
        assert!(
            matches!(read, Err(ReadError::Contradiction(_))),
            "{response}"
        );
    }
    let with_reason =
        json!({"status": "completed", "incomplete_details": {"reason": "max_output_tokens"}});
    for (kind, response) in [
        ("response.completed", with_reason),
        ("response.incomplete", json!({"status": "completed"})),
        ("response.incomplete", json!({"status": "queued"})),
    ] {
        let read = ended(kind, response.clone());
        assert!(
            matches!(read, Err(ReadError::Contradiction(_))),
            "{kind} {response}"
        );
    }
    for response in [json!({"status": "failed"}), json!({"error": {"code": "x"}})] {
        let read = ended("response.completed", response.clone());
        assert!(matches!(read, Err(ReadError::Reported(_))), "{response}");
    }
    assert_eq!(read(&[delta("a")]), Err(ReadError::Truncated));
}

/// The counts of a response with this usage, in a reply and at the end of a stream: input, reads,
/// writes, output and reasoning.
fn counted(usage: &Value) -> [u64; 5] {
    let response = json!({"status": "completed", "output": [], "usage": usage});
    let reply = collect(&response.to_string()).unwrap().tokens;
    let event = json!({"type": "response.completed", "response": response});
    assert_eq!(read(&[event]).unwrap().tokens, reply);
    assert_eq!(reported_tokens(&response.to_string()), reply);
    let tokens = reply.unwrap();
    [
        tokens.input,
        tokens.cache_read,
        tokens.cache_write,
        tokens.output,
        tokens.reasoning,
    ]
}

#[test]
fn counts_are_read_in_every_spelling_and_add_up() {
    // <https://platform.openai.com/docs/guides/prompt-caching>
    assert_eq!(
        counted(
            &json!({"input_tokens": 2600, "output_tokens": 300, "total_tokens": 2900,
            "input_tokens_details": {"cached_tokens": 2000, "cache_write_tokens": 400},
            "output_tokens_details": {"reasoning_tokens": 120}})
        ),
        [2600, 2000, 400, 300, 120]
    );
    // <https://docs.x.ai/docs/guides/reasoning>: reasoning beside the answer.
    assert_eq!(
        counted(
            &json!({"input_tokens": 100, "output_tokens": 10, "total_tokens": 410,
            "output_tokens_details": {"reasoning_tokens": 300}})
        ),
        [100, 0, 0, 310, 300]
    );
    // Servers that keep the names of Chat Completions.
    assert_eq!(
        counted(
            &json!({"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 60}})
        ),
        [100, 60, 0, 10, 0]
    );
}

#[test]
fn counts_before_the_end_are_kept() {
    let mut reader = Reader::new();
    let events = [
        json!({"type": "response.created", "response": {"usage": null}}),
        json!({"type": "response.in_progress", "response": {"usage": {"input_tokens": 70, "output_tokens": 3}}}),
        json!({"type": "response.in_progress", "response": {"usage": {"input_tokens": 0, "output_tokens": 5}}}),
    ];
    for event in &events {
        reader.event(&event.to_string(), &mut Vec::new()).unwrap();
    }
    assert_eq!(reader.unsettled_usage(), Some([70, 5, 75]));
    // The response that fails has a usage as well.
    let failed = json!({"type": "response.failed", "response": {"status": "failed", "usage": {"input_tokens": 70, "output_tokens": 9}}});
    assert!(reader.event(&failed.to_string(), &mut Vec::new()).is_err());
    let tokens = reader.tokens().unwrap();
    assert_eq!((tokens.input, tokens.output), (70, 9));
}

#[test]
fn a_plain_reply_has_to_be_finished() {
    let reply = |status: &str| {
        collect(&json!({"status": status, "output": [message("Hello.")]}).to_string())
    };
    assert_eq!(reply("completed").unwrap().text, "Hello.");
    assert_eq!(reply("incomplete").unwrap().finish, Finish::MaxOutputTokens);
    assert!(matches!(reply("failed"), Err(ReadError::Reported(_))));
    for status in ["in_progress", "queued", "cancelled", ""] {
        assert_eq!(reply(status), Err(ReadError::Truncated), "{status}");
    }
    for body in ["null", "[]", "{}", r#"{"status":"completed"}"#] {
        assert!(
            matches!(collect(body), Err(ReadError::Malformed(_))),
            "{body}"
        );
    }
    for body in [
        r#"{"error":{"message":"m"}}"#,
        r#"{"object":"error","message":"m"}"#,
    ] {
        assert_eq!(collect(body), Err(ReadError::Reported(body.into())));
    }
}

#[test]
fn events_of_the_server_s_own_are_ignored() {
    let mut reader = Reader::new();
    let own = json!({"hook_results": {}}).to_string();
    assert_eq!(reader.event(&own, &mut Vec::new()), Ok(Kind::Unknown));
    assert_eq!(reader.finish(), None);
}

#[test]
fn an_answer_has_4096_items_at_most() {
    let at = |index: u32| {
        let item = json!({"type": "message", "id": "m"});
        read(&[json!({"type": "response.output_item.added", "output_index": index, "item": item})])
    };
    assert_eq!(at(4096), Err(ReadError::Index(4096)));
    assert_eq!(at(4095), Err(ReadError::Truncated));
}

#[test]
fn events_without_their_content_are_malformed() {
    for event in [
        json!([]),
        json!({"delta": "a"}),
        json!({"sequence_number": 1}),
        json!({"type": "response.output_text.delta"}),
        json!({"type": "response.output_text.delta", "delta": 5}),
        json!({"type": "response.output_text.done"}),
        json!({"type": "response.output_item.added"}),
        json!({"type": "response.output_item.done", "item": 5}),
        json!({"type": "response.completed"}),
    ] {
        let read = read(std::slice::from_ref(&event));
        assert!(
            matches!(read, Err(ReadError::Malformed(_))),
            "{event}: {read:?}"
        );
    }
    let far = json!({"type": "response.output_text.delta", "output_index": 4096, "delta": "a"});
    assert_eq!(read(&[far]), Err(ReadError::Index(4096)));
}
