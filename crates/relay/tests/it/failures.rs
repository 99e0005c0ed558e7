//! Failures within relayed streams.

use engine::EngineError;
use images::Operation;
use serde_json::{Value, json};
use sluicegate_relay::{Chat, Guard, Images, Messages, RelayProtocol, Responses};

use crate::laws::{
    completion, each_stream, ends_well_chat, ends_well_images, ends_well_messages,
    ends_well_responses, refused, relayed,
};
use crate::laws::{data, fixture};

#[test]
fn failures_of_upstreams_become_our_own() {
    for name in [
        "responses-stream-failed-mid.sse",
        "responses-upstream-error-event-flat.sse",
    ] {
        let (out, ended) = relayed(Responses::default(), "m", &[&fixture(name)]);
        ended.unwrap_err();
        assert_eq!(ends_well_responses(&out), Some(false), "{name}");
    }
    let (out, ended) = relayed(Chat::default(), "m", &[&fixture("chat-stream-error.sse")]);
    ended.unwrap_err();
    assert_eq!(ends_well_chat(&out), Some(false));
    let (out, ended) = relayed(
        Messages::default(),
        "m",
        &[&fixture("messages-stream-error.sse")],
    );
    ended.unwrap_err();
    assert_eq!(ends_well_messages(&out), Some(false));
    let (out, ended) = relayed(
        Images::new(Operation::Generation, 1),
        "m",
        &[&fixture("images-stream-error.sse")],
    );
    ended.unwrap_err();
    assert_eq!(
        ends_well_images(&out, Operation::Generation, 1),
        Some(false)
    );
}

fn chunk(finish_reason: Option<&str>) -> Value {
    let choice = json!({"index": 0, "delta": {"role": "assistant", "content": "Hi"}, "finish_reason": finish_reason});
    json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})
}

/// Adds an error to an event or a reply.
fn failing(mut value: Value) -> Value {
    value["error"] = json!({"code": 429, "message": "Provider at 10.0.0.7 (key team7-key) broke"});
    value
}

#[test]
fn a_failure_within_a_chunk_is_one() {
    for reason in ["error", "abort", "insufficient_system_resource"] {
        let error = refused(Chat::default(), &chunk(Some(reason)));
        assert!(matches!(error, EngineError::Upstream(_)), "{error:?}");
        let reply = completion(Some(reason)).to_string();
        assert!(
            sluicegate_relay::reply::<Chat>(reply.as_bytes(), "m").is_err(),
            "{reason}"
        );
    }
    for reason in [None, Some("stop")] {
        let event = failing(chunk(reason));
        let error = refused(Chat::default(), &event);
        assert!(
            matches!(error, EngineError::RateLimited { .. }),
            "{error:?}"
        );
        let escaped = event.to_string().replace("\"error\"", "\"\\u0065rror\"");
        let (_, ended) = relayed(
            Chat::default(),
            "m",
            &[format!("data: {escaped}\n\n").as_bytes()],
        );
        assert!(
            matches!(ended, Err(EngineError::RateLimited { .. })),
            "{ended:?}"
        );
        let reply = sluicegate_relay::reply::<Chat>(
            failing(completion(reason)).to_string().as_bytes(),
            "m",
        );
        assert!(
            matches!(reply, Err(EngineError::RateLimited { .. })),
            "{reply:?}"
        );
    }
}

#[test]
fn a_failure_under_200_keeps_its_meaning() {
    let limited = [
        json!({"error": {"message": "slow", "code": 429}}),
        json!({"error": {"message": "slow", "type": null, "code": "rate_limit_exceeded"}}),
        json!({"object": "error", "message": "slow", "code": 429}),
    ];
    for error_body in limited {
        let reply = error_body.to_string();
        for error in [
            refused(Chat::default(), &error_body),
            sluicegate_relay::reply::<Chat>(reply.as_bytes(), "m").unwrap_err(),
            sluicegate_relay::reply::<Responses>(reply.as_bytes(), "m").unwrap_err(),
            sluicegate_relay::reply::<Images>(reply.as_bytes(), "m").unwrap_err(),
            sluicegate_relay::reply_as_stream(reply.as_bytes(), Operation::Edit, 1).unwrap_err(),
        ] {
            assert!(
                matches!(error, EngineError::RateLimited { .. }),
                "{error_body}: {error:?}"
            );
        }
    }
    let error_body =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let error = refused(Messages::default(), &error_body);
    assert!(matches!(error, EngineError::Overloaded { .. }), "{error:?}");
    let error =
        sluicegate_relay::reply::<Messages>(error_body.to_string().as_bytes(), "m").unwrap_err();
    assert!(matches!(error, EngineError::Overloaded { .. }), "{error:?}");
}

#[test]
fn calls_may_be_null() {
    let mut reply = completion(Some("stop"));
    reply["choices"][0]["message"]["tool_calls"] = json!(null);
    let reply = reply.to_string();
    assert_eq!(
        sluicegate_relay::reply::<Chat>(reply.as_bytes(), "m")
            .unwrap()
            .0,
        reply.as_bytes()
    );
}

/// Clients iterate over the choices of every event.
#[test]
fn every_event_of_chat_has_choices() {
    let own = r#"{"hook_results":{}}"#;
    let (first, last) = (chunk(None), chunk(Some("stop")));
    let stream = format!("data: {first}\n\ndata: {own}\n\ndata: {last}\n\ndata: [DONE]\n\n");
    let (out, ended) = relayed(Chat::default(), "m", &[stream.as_bytes()]);
    let mended = stream.replace(own, r#"{"choices":[],"hook_results":{}}"#);
    assert_eq!(String::from_utf8_lossy(&out), mended);
    assert!(ended.is_ok());
}

/// A member is added where the first one is removed.
#[test]
fn an_event_that_starts_with_a_hidden_usage_gets_its_object() {
    let last = chunk(Some("stop"));
    let stream = |event: &str| format!("data: {event}\n\ndata: {last}\n\ndata: [DONE]\n\n");
    for (own, mended) in [
        (
            r#"{"usage":null,"choices":[{"index":0,"delta":{}}]}"#,
            r#"{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{}}]}"#,
        ),
        (r#"{"usage":null}"#, r#"{"choices":[]}"#),
    ] {
        let relay = Chat::default().hiding_usage();
        let (out, ended) = relayed(relay, "m", &[stream(own).as_bytes()]);
        assert_eq!(String::from_utf8_lossy(&out), stream(mended));
        assert!(ended.is_ok(), "{own}");
    }
}

/// The accumulators of the SDKs skip chunks that have another `object`, or none. They also skip those
/// with an empty one, which are the filters of Azure.
#[test]
fn every_chunk_of_chat_has_the_object_of_chunks() {
    let last = chunk(Some("stop"));
    let named = |object: &str| {
        format!(r#"{{{object}"choices":[{{"index":0,"delta":{{"content":"Hi"}}}}]}}"#)
    };
    let object = r#""object":"chat.completion.chunk","#;
    for (own, mended) in [
        (named(""), named(object)),
        (named(r#""object":null,"#), named(object)),
        (named(r#""object":"chat.completion.done","#), named(object)),
        (named(r#""object":"","#), named(r#""object":"","#)),
        (named(object), named(object)),
        (
            r#"{"object":"own","choices":[]}"#.to_owned(),
            r#"{"object":"chat.completion.chunk","choices":[]}"#.to_owned(),
        ),
    ] {
        let stream = format!("data: {own}\n\ndata: {last}\n\ndata: [DONE]\n\n");
        let (out, ended) = relayed(Chat::default(), "m", &[stream.as_bytes()]);
        assert_eq!(String::from_utf8_lossy(&out), stream.replace(&own, &mended));
        assert!(ended.is_ok(), "{own}");
    }
}

/// Clients read the delta of a choice and its index without looking for them. A message in the place
/// of a delta is not hidden.
#[test]
fn every_choice_of_chat_has_a_delta_and_an_index() {
    let (first, last) = (chunk(None), chunk(Some("stop")));
    let message = r#""message":{"content":" there"},"index":0"#;
    for (own, mended) in [
        (r#""index":0"#, r#""delta":{},"index":0"#),
        (r#""delta":null,"index":0"#, r#""delta":{},"index":0"#),
        (r#""delta":{}"#, r#""index":0,"delta":{}"#),
        (r#""index":null"#, r#""delta":{},"index":0"#),
        (
            r#""logprobs":null"#,
            r#""delta":{},"index":0,"logprobs":null"#,
        ),
        (r#""delta":{},"index":0"#, r#""delta":{},"index":0"#),
        (message, r#""delta":{"content":" there"},"index":0"#),
    ] {
        let event = |choice: &str| {
            format!(
                r#"{{"object":"chat.completion.chunk","choices":[{{{choice},"finish_reason":"stop"}}]}}"#
            )
        };
        let stream = |event: &str| format!("data: {first}\n\ndata: {event}\n\ndata: [DONE]\n\n");
        let (out, ended) = relayed(Chat::default(), "m", &[stream(&event(own)).as_bytes()]);
        assert_eq!(String::from_utf8_lossy(&out), stream(&event(mended)));
        assert!(ended.is_ok(), "{own}");
    }
    let filter = r#"{"object":"","choices":[{"index":0,"finish_reason":null}]}"#;
    let mended = r#"{"object":"","choices":[{"delta":{},"index":0,"finish_reason":null}]}"#;
    let stream = |filter| format!("data: {last}\n\ndata: {filter}\n\ndata: [DONE]\n\n");
    let (out, _) = relayed(Chat::default(), "m", &[stream(filter).as_bytes()]);
    assert_eq!(String::from_utf8_lossy(&out), stream(mended));
}

/// Mistral and Databricks send content as a list of parts, and Gemini texts as one.
/// <https://docs.mistral.ai/capabilities/reasoning>
#[test]
fn content_of_texts_and_thoughts_becomes_a_text() {
    let event = |delta: &str| {
        format!(
            r#"{{"object":"chat.completion.chunk","choices":[{{"index":0,"delta":{{{delta}}},"finish_reason":"stop"}}]}}"#
        )
    };
    let thinking = r#""content":[{"type":"thinking","thinking":[{"type":"text","text":"A sum."}]},{"type":"text","text":"4"}]"#;
    let summary = r#""content":[{"type":"reasoning","summary":[{"type":"summary_text","text":"Eight","signature":""}]}]"#;
    let sealed = r#""content":[{"type":"reasoning","summary":[{"type":"summary_text","text":"Eight","signature":"c2ln"}]}]"#;
    let reference =
        r#""content":[{"type":"text","text":"4"},{"type":"reference","reference_ids":[1]}]"#;
    for (own, mended) in [
        (thinking, r#""reasoning_content":"A sum.","content":"4""#),
        (summary, r#""reasoning_content":"Eight","content":"""#),
        (r#""content":[]"#, r#""content":"""#),
        (
            r#""content":[{"type":"text","text":"a"},{"type":"text","text":"\n"}]"#,
            r#""content":"a\n""#,
        ),
        // A list stays as it is if a text has no place for a part of it.
        (sealed, sealed),
        (reference, reference),
    ] {
        let stream = |delta: &str| format!("data: {}\n\ndata: [DONE]\n\n", event(delta));
        let (out, _) = relayed(Chat::default(), "m", &[stream(own).as_bytes()]);
        assert_eq!(String::from_utf8_lossy(&out), stream(mended));
    }
}

/// Clients keep the stop reason of the last `message_delta`, also if it is null:
/// <https://github.com/anthropics/anthropic-sdk-python/issues/1940>.
#[test]
fn a_later_message_delta_keeps_the_stop_reason() {
    let start = r#"{"type":"message_start","message":{"type":"message","role":"assistant","content":[],"usage":{"output_tokens":1}}}"#;
    let delta =
        |delta: &str| format!(r#"{{"type":"message_delta",{delta}"usage":{{"output_tokens":1}}}}"#);
    let stop = r#"{"stop_reason":"stop_sequence","stop_sequence":"\n\"x"}"#;
    let known = delta(&format!(r#""delta":{stop},"#));
    for later in [
        r#""delta":{"stop_reason":null,"stop_sequence":null},"#,
        r#""delta":{"stop_reason":""},"#,
        r#""delta":{},"#,
        r#""delta":null,"#,
        "",
    ] {
        let stream: String = [start, &known, &delta(later)]
            .map(|event| format!("data: {event}\n\n"))
            .concat();
        let (out, _) = relayed(Messages::default(), "m", &[stream.as_bytes()]);
        let data: Vec<Value> = data(&out)
            .iter()
            .map(|data| serde_json::from_str(data).unwrap())
            .collect();
        let owed: Value = serde_json::from_str(stop).unwrap();
        assert_eq!(
            (&data[1]["delta"], &data[2]["delta"]),
            (&owed, &owed),
            "{later}"
        );
    }
    // Before the stop reason there is none to keep.
    let early = r#"{"type":"message_delta","delta":{"stop_reason":null,"stop_sequence":null},"usage":{"output_tokens":1}}"#;
    let stream = format!("data: {start}\n\ndata: {early}\n\n");
    let (out, _) = relayed(Messages::default(), "m", &[stream.as_bytes()]);
    assert_eq!(data(&out)[1], early);
}

#[test]
fn stream_errors_keep_known_codes_and_drop_messages() {
    let stream = String::from_utf8(fixture("responses-stream-failed-mid.sse")).unwrap();
    let last_event = data(stream.as_bytes()).pop().unwrap();
    let mut failed: Value = serde_json::from_str(&last_event).unwrap();
    for (code, sentence) in [
        (
            "context_length_exceeded",
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
        ),
        (
            "insufficient_quota",
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        (
            "usage_not_included",
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        (
            "invalid_prompt",
            "Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try \
             again with a different prompt.",
        ),
        (
            "server_is_overloaded",
            "Our servers are currently overloaded. Please try again later.",
        ),
        (
            "slow_down",
            "Our servers are currently overloaded. Please try again later.",
        ),
        (
            "a_word_of_theirs",
            "The server had an error while processing your request. Sorry about that!",
        ),
    ] {
        failed["response"]["error"] =
            json!({"code": code, "message": "Key team7-secret broke", "param": "team7"});
        let (out, ended) = relayed(
            Responses::default(),
            "m",
            &[stream.replace(&last_event, &failed.to_string()).as_bytes()],
        );
        assert!(ended.is_err() && !String::from_utf8_lossy(&out).contains("team7"));
        let last: Value = serde_json::from_str(&data(&out).pop().unwrap()).unwrap();
        let error = &last["response"]["error"];
        let passed = if code == "a_word_of_theirs" {
            "server_error"
        } else {
            code
        };
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!(passed), &json!(sentence))
        );
    }
}

/// Returns copies of a value, each with a secret in place of one member, at any depth.
fn misfits(original: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    let members = original
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (format!("/{name}"), value));
    let entries = original
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(at, value)| (format!("/{at}"), value));
    for (place, value) in members.chain(entries) {
        for other in [json!("swordfish"), json!(["swordfish"])]
            .into_iter()
            .chain(misfits(value))
        {
            let mut copy = original.clone();
            *copy.pointer_mut(&place).unwrap() = other;
            all.push(copy);
        }
    }
    all
}

#[test]
fn model_output_is_not_in_the_log() {
    fn law<S: RelayProtocol>(
        stream: &[u8],
        protocol: impl Fn() -> S,
        _: impl Fn(&[u8]) -> Option<bool>,
    ) {
        let (events, mut before, mut failures) = (data(stream), String::new(), 0);
        for event in &events {
            for misfit in serde_json::from_str(event).iter().flat_map(misfits) {
                let stream = format!("{before}data: {misfit}\n\n");
                let Err(error) = relayed(protocol(), "m", &[stream.as_bytes()]).1 else {
                    continue;
                };
                assert!(!quotes_output(&error.to_string()), "{error}");
                failures += 1;
            }
            before += &format!("data: {event}\n\n");
        }
        assert!(failures > 0, "nothing was refused");
    }
    // The word for the end is the server's, and not output of the model.
    fn quotes_output(error: &str) -> bool {
        error.contains("swordfish")
            && error != "the upstream failed: the answer ended with 'swordfish'"
    }
    fn reply_law<S: RelayProtocol>(name: &str) {
        let reply: Value = serde_json::from_slice(&fixture(name)).unwrap();
        let failed = misfits(&reply).into_iter().filter_map(|misfit| {
            sluicegate_relay::reply::<S>(misfit.to_string().as_bytes(), "m").err()
        });
        let errors: Vec<_> = failed.map(|error| error.to_string()).collect();
        assert!(
            !errors.is_empty() && !errors.iter().any(|error| quotes_output(error)),
            "{errors:?}"
        );
    }
    each_stream!(law);
    reply_law::<Responses>("responses-response-function-call.json");
    reply_law::<Chat>("chat-response-tool-calls.json");
    reply_law::<Messages>("messages-response-tool-use.json");
}

/// Returns true if a stream has content after these events.
fn has_content<S: RelayProtocol>(protocol: S, events: &[&str]) -> bool {
    let mut guard = Guard::new(protocol, "m".to_owned());
    let events = events.iter().map(|data| format!("data: {data}\n\n"));
    let stream: Vec<_> = events.collect();
    guard.feed(stream.concat().into(), &mut Vec::new()).unwrap();
    guard.has_content()
}

/// <https://platform.openai.com/docs/api-reference/responses-streaming>,
/// <https://docs.anthropic.com/en/docs/build-with-claude/streaming>,
/// <https://platform.openai.com/docs/api-reference/chat-streaming>,
/// <https://platform.openai.com/docs/api-reference/images-streaming>
#[test]
fn events_that_open_a_stream_are_no_content() {
    let responses = [
        r#"{"type":"response.created","response":{"status":"in_progress","output":[]}}"#,
        r#"{"type":"response.queued","response":{"status":"queued","output":[]}}"#,
        r#"{"type":"response.in_progress","response":{"status":"in_progress","output":[]}}"#,
        r#"{"type":"keepalive"}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"r","summary":[]}}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"r","summary":[]}}"#,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"i","content":[]}}"#,
        r#"{"type":"response.content_part.added","output_index":1,"content_index":0,"part":{"type":"output_text","text":""}}"#,
        r#"{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":""}"#,
    ];
    for count in 1..=responses.len() {
        let begun = &responses[..count];
        assert!(!has_content(Responses::default(), begun), "{count}");
    }
    let messages = [
        r#"{"type":"message_start","message":{"content":[],"usage":{"input_tokens":1}}}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
    ];
    for count in 1..=messages.len() {
        let begun = &messages[..count];
        assert!(!has_content(Messages::default(), begun), "{count}");
    }
    let chat = [
        r#"{"choices":[],"prompt_filter_results":[{"prompt_index":0}]}"#,
        r#"{"choices":[{"index":0,"delta":{"role":"assistant"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}]}"#,
        r#"{"choices":[{"index":1,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
        r#"{"hook_results":{}}"#,
    ];
    for count in 1..=chat.len() {
        assert!(!has_content(Chat::default(), &chat[..count]), "{count}");
    }
    let images = [r#"{"type":"image_generation.started"}"#];
    let protocol = Images::new(Operation::Generation, 1);
    assert!(!has_content(protocol, &images));
}

#[test]
fn texts_calls_and_other_output_are_content() {
    let created = r#"{"type":"response.created","response":{"output":[]}}"#;
    for event in [
        r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hi"}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"Hm"}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"f","call_id":"c","name":"g","arguments":""}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"web_search_call","id":"w","status":"in_progress"}}"#,
        r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#,
    ] {
        let begun = [created, event];
        assert!(has_content(Responses::default(), &begun), "{event}");
    }
    let start = r#"{"type":"message_start","message":{"content":[]}}"#;
    for event in [
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi"}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"g","input":{}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"t","name":"g","input":{}}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":0}}"#,
    ] {
        assert!(has_content(Messages::default(), &[start, event]), "{event}");
    }
    for event in [
        r#"{"choices":[{"index":0,"delta":{"content":"Hi"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"reasoning_content":"Hm"}}]}"#,
        r#"{"choices":[{"index":1,"delta":{"content":"Hi"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"g","arguments":""}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"audio":{"id":"a"}}}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}"#,
    ] {
        assert!(has_content(Chat::default(), &[event]), "{event}");
    }
    // An empty delta teaches the form of those that follow.
    let delta = |text: &str| {
        json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0,
               "delta": text})
        .to_string()
    };
    let (empty, full) = (delta(""), delta("Hi"));
    let begun = [created, &empty, &empty];
    assert!(!has_content(Responses::default(), &begun));
    let begun = [created, &empty, &full];
    assert!(has_content(Responses::default(), &begun));
}
