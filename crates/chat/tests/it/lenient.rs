//! The lenient reader: forms that it tolerates, ends that it refuses, and its law.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use sluicegate_chat::lenient::{
    Answer, Call, Collector, Finish, ReadError, Reader, Tokens, Update, collect,
};
use sluicegate_chat::{Encoder, FinishReason, Head, Usage};

use crate::fold;

/// Reads a stream of these events.
fn read(events: &[Value]) -> Result<Answer, ReadError> {
    let mut collector = Collector::default();
    for event in events {
        collector.event(&event.to_string())?;
    }
    collector.finish()
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"delta": delta}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"delta": {}, "finish_reason": reason}]})
}

fn call(id: &str, name: &str, arguments: &str) -> Call {
    Call {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    }
}

#[test]
fn a_stream_may_lack_everything_but_its_content_and_its_end() {
    let answer = read(&[delta(json!({"content": "Hello."})), finish("stop")]).unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.finish, answer.tokens),
        ("Hello.", Finish::Stop, None)
    );
}

#[test]
fn chunks_without_choices_are_read() {
    let first = json!({"id": "", "created": 0, "choices": [], "prompt_filter_results": []});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4.0}});
    let stream = [
        first,
        delta(json!({"content": "a"})),
        finish("stop"),
        usage,
        json!({"usage": {}}),
    ];
    let tokens = Tokens {
        input: 3,
        output: 4,
        ..Tokens::default()
    };
    assert_eq!(read(&stream).unwrap().tokens, Some(tokens));
}

#[test]
fn empty_finish_reason_is_ignored() {
    let mut chunk = delta(json!({"content": "a"}));
    chunk["choices"][0]["finish_reason"] = json!("");
    assert_eq!(
        read(std::slice::from_ref(&chunk)),
        Err(ReadError::Truncated)
    );
    assert_eq!(read(&[chunk, finish("stop")]).unwrap().finish, Finish::Stop);
    assert_eq!(
        Collector::default().event("[DONE]"),
        Err(ReadError::Truncated)
    );
}

#[test]
fn thoughts_have_many_names() {
    for thoughts in [
        json!({"reasoning_content": "Hm."}),
        json!({"reasoning": "Hm."}),
        json!({"thinking": "Hm."}),
        json!({"reasoning": "Hm.", "reasoning_content": "Hm.", "content": null}),
        json!({"reasoning_content": {"text": "Hm."}}),
        json!({"reasoning_content": {"reasoningText": {"text": "Hm.", "signature": "s"}}}),
        json!({"reasoning_content": {"reasoningContent": {"reasoningText": {"text": "Hm."}}}}),
        json!({"reasoning_content": {"signature": "s"}, "reasoning": "Hm."}),
        json!({"reasoning_details": [{"type": "reasoning.text", "text": "Hm."}]}),
        json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]}),
        json!({"content": [{"type": "thinking", "thinking": "Hm."}]}),
        json!({"content": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}]}),
    ] {
        let answer = read(&[delta(thoughts.clone()), finish("stop")]).unwrap();
        assert_eq!(
            (answer.reasoning.as_str(), answer.text.as_str()),
            ("Hm.", ""),
            "{thoughts}"
        );
    }
    let parts = json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
    assert_eq!(read(&[delta(parts), finish("stop")]).unwrap().text, "ab");
}

#[test]
fn a_message_beside_a_delta_does_not_count() {
    let mut chunk = delta(json!({"content": "a"}));
    chunk["choices"][0]["message"] = json!({"content": "aa"});
    assert_eq!(read(&[chunk, finish("stop")]).unwrap().text, "a");
}

#[test]
fn a_whole_reply_at_the_end_repeats_the_deltas() {
    let whole = |text: &str| json!({"object": "chat.completion", "choices": [{"message": {"content": text}, "finish_reason": "stop"}]});
    let stream = |last| {
        [
            delta(json!({"content": "a"})),
            delta(json!({"content": "b"})),
            last,
        ]
    };
    assert_eq!(read(&stream(whole("ab"))).unwrap().text, "ab");
    assert_eq!(read(&[whole("ab")]).unwrap().text, "ab");
    let differs = read(&stream(whole("abc")));
    assert!(
        matches!(differs, Err(ReadError::Contradiction(_))),
        "{differs:?}"
    );
}

#[test]
fn events_of_the_server_s_own_are_ignored() {
    let own = json!({"hook_results": {"before_request_hooks": []}});
    let stream = [
        own.clone(),
        delta(json!({"content": "a"})),
        own.clone(),
        finish("stop"),
    ];
    assert_eq!(read(&stream).unwrap().text, "a");
    assert_eq!(read(std::slice::from_ref(&own)), Err(ReadError::Truncated));
    assert!(matches!(
        collect(&own.to_string()),
        Err(ReadError::Malformed(_))
    ));
}

#[test]
fn calls_come_in_many_forms() {
    let whole = json!([{"function": {"name": "f", "arguments": {"x": 1.50}}}]);
    let old = json!({"function_call": {"name": "f", "arguments": "{\"x\":1.50}"}});
    for pieces in [
        vec![delta(json!({ "tool_calls": whole }))],
        vec![delta(old)],
        vec![
            delta(
                json!({"tool_calls": [{"id": "", "function": {"name": "f", "arguments": "{\"x\":"}}]}),
            ),
            delta(json!({"tool_calls": [{"function": {"arguments": "1.50}"}}]})),
        ],
    ] {
        let stream = [pieces.clone(), vec![finish("stop")]].concat();
        let answer = read(&stream).unwrap();
        let expected = call("", "f", answer.calls[0].arguments.as_str());
        assert_eq!((answer.calls.len(), &answer.calls[0]), (1, &expected));
        let arguments: Value = serde_json::from_str(&expected.arguments).unwrap();
        assert_eq!(arguments, json!({"x": 1.5}), "{pieces:?}");
        assert_eq!(answer.finish, Finish::ToolCalls);
    }
    let repeated = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]});
    let answer = read(&[
        delta(repeated.clone()),
        delta(repeated),
        finish("tool_calls"),
    ])
    .unwrap();
    assert_eq!(answer.calls, [call("a", "f", "")]);
}

/// The SDK of OpenAI joins the pieces of a name:
/// <https://github.com/openai/openai-python/blob/main/src/openai/lib/streaming/chat/_completions.py>
#[test]
fn the_name_of_a_call_may_come_in_pieces() {
    let piece = |function: Value| {
        delta(json!({"tool_calls": [{"index": 0, "id": "a", "function": function}]}))
    };
    let end = || finish("tool_calls");
    let named = |names: &[&str]| {
        let mut stream: Vec<_> = names
            .iter()
            .map(|name| piece(json!({ "name": name })))
            .collect();
        stream.push(piece(json!({"arguments": "{}"})));
        stream.push(end());
        read(&stream).map(|answer| answer.calls)
    };
    let whole = Ok(vec![call("a", "get_weather", "{}")]);
    assert_eq!(named(&["get_", "weather"]), whole);
    assert_eq!(named(&["get", "_", "", "weather"]), whole);
    assert_eq!(named(&["get_weather", "get_weather"]), whole);

    let contradiction = Err(ReadError::Contradiction("a call with two names"));
    assert_eq!(named(&["get_", "get_weather"]), contradiction);
    let late = [
        piece(json!({"name": "get_", "arguments": "{"})),
        piece(json!({"name": "weather", "arguments": "}"})),
        end(),
    ];
    assert_eq!(read(&late).map(|answer| answer.calls), contradiction);
}

/// <https://github.com/BerriAI/litellm/issues/12513>
#[test]
fn the_text_null_is_no_name_and_no_id_of_a_named_call() {
    let piece = |id: &str, name: &str, arguments: &str| json!({"id": id, "function": {"name": name, "arguments": arguments}});
    let read = |pieces: &[Value]| {
        let chunks = pieces
            .iter()
            .map(|piece| delta(json!({"tool_calls": [piece]})));
        let stream: Vec<_> = chunks.chain([finish("tool_calls")]).collect();
        read(&stream).map(|answer| answer.calls)
    };
    let (first, rest) = ("{\"x\":", "1}");
    for (id, name) in [
        ("", "null"),
        ("a", "null"),
        ("null", "f"),
        ("null", "null"),
        ("null", ""),
    ] {
        for (early, late) in [("", "{\"x\":1}"), (first, rest)] {
            for index in [Value::Null, json!(0)] {
                let mut pieces = [piece("a", "f", early), piece(id, name, late)];
                for piece in &mut pieces {
                    piece["index"] = index.clone();
                }
                if index.is_null() && id == "null" && name == "f" {
                    // Without an index this is how another call of the same function begins.
                    continue;
                }
                let owed = Ok(vec![call("a", "f", "{\"x\":1}")]);
                assert_eq!(read(&pieces), owed, "{pieces:?}");
            }
        }
    }
    // A function may have this name, and a call without an id this text.
    let mut other = piece("b", "null", "{}");
    other["index"] = json!(1);
    let mut named = piece("a", "f", "{}");
    named["index"] = json!(0);
    assert_eq!(
        read(&[named.clone(), other]),
        Ok(vec![call("a", "f", "{}"), call("b", "null", "{}")])
    );
    let other = piece("null", "g", "{}");
    assert_eq!(
        read(&[named, other]),
        Ok(vec![call("a", "f", "{}"), call("null", "g", "{}")])
    );
}

/// The call comes before the content that follows it, and also without arguments.
#[test]
fn a_call_without_arguments_keeps_its_place() {
    let named = delta(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f"}}]}));
    let mut reader = Reader::new();
    let mut updates = Vec::new();
    for event in [named, delta(json!({"content": "b"})), finish("stop")] {
        let (event, mut new) = (event.to_string(), Vec::new());
        reader.event(&event, &mut new).unwrap();
        updates.extend(new.iter().map(|update| format!("{update:?}")));
    }
    let expected = ["Call { call: 0, id: \"a\", name: \"f\" }", "Text(\"b\")"];
    assert_eq!(updates, expected);
}

#[test]
fn known_stop_reasons_are_mapped_and_others_are_errors() {
    for (word, finish_reason) in [
        ("eos", Finish::Stop),
        ("COMPLETE", Finish::Stop),
        ("end_turn", Finish::Stop),
        ("length", Finish::Length),
        ("MAX_TOKENS", Finish::Length),
        ("model_length", Finish::Length),
        ("content_filter", Finish::ContentFilter),
        ("SAFETY", Finish::ContentFilter),
        // <https://ai.google.dev/api/generate-content#FinishReason>
        ("SPII", Finish::ContentFilter),
        ("IMAGE_SAFETY", Finish::ContentFilter),
        ("IMAGE_PROHIBITED_CONTENT", Finish::ContentFilter),
        ("IMAGE_RECITATION", Finish::ContentFilter),
        // <https://github.com/NousResearch/hermes-agent/pull/53610>
        ("content_filter: PROHIBITED_CONTENT", Finish::ContentFilter),
        // <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html>
        ("guardrail_intervened", Finish::ContentFilter),
    ] {
        let answer = read(&[delta(json!({"content": "a"})), finish(word)]).unwrap();
        assert_eq!(answer.finish, finish_reason, "{word}");
    }
    for word in [
        "error",
        "network_error",
        "cancelled",
        "timeout",
        "Stop?",
        "stop: x",
        ":",
    ] {
        let read = read(&[delta(json!({"content": "a"})), finish(word)]);
        assert_eq!(read, Err(ReadError::Stop(word.to_owned())));
    }
}

#[test]
fn an_end_that_contradicts_the_content_is_a_failure() {
    let cut = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":\"Par"}}]});
    let contradiction = |stream: &[Value]| {
        let error = read(stream).unwrap_err();
        matches!(error, ReadError::Contradiction(_) | ReadError::Call(_))
    };
    assert!(contradiction(&[delta(cut.clone()), finish("tool_calls")]));
    assert!(contradiction(&[delta(cut.clone()), finish("stop")]));
    assert!(contradiction(&[
        delta(json!({"content": "a"})),
        finish("tool_calls")
    ]));
    assert!(contradiction(&[
        delta(json!({"content": "a"})),
        finish("stop"),
        delta(json!({"content": "b"}))
    ]));
    let again = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]});
    assert!(contradiction(&[
        delta(again.clone()),
        finish("tool_calls"),
        delta(again)
    ]));
    assert!(contradiction(&[finish("stop"), finish("length")]));
    let unnamed = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": "{}"}}]});
    assert!(contradiction(&[delta(unnamed), finish("tool_calls")]));
    // The server says itself that the call is cut.
    let answer = read(&[delta(cut), finish("length")]).unwrap();
    assert_eq!(answer.calls, [call("a", "f", "{\"x\":\"Par")]);
}

#[test]
fn errors_have_many_forms() {
    for error in [
        json!({"error": {"message": "m"}}),
        json!({"error": "m", "choices": []}),
        json!({"error": [{"message": "m"}]}),
        json!({"object": "error", "message": "m"}),
        json!({"type": "error", "message": "m"}),
    ] {
        let read = read(&[
            delta(json!({"content": "a"})),
            error.clone(),
            finish("stop"),
        ]);
        assert_eq!(read, Err(ReadError::Reported(error.to_string())));
        assert_eq!(
            collect(&error.to_string()),
            Err(ReadError::Reported(error.to_string()))
        );
    }
    // OpenRouter: <https://openrouter.ai/docs/api-reference/overview>.
    let choice = json!({"choices": [{"index": 0, "delta": {"content": ""}, "message": {"content": ""},
        "finish_reason": "error", "error": {"code": 502, "message": "m"}}]});
    let reported = ReadError::Reported(r#"{"error":{"code":502,"message":"m"}}"#.to_owned());
    assert_eq!(read(std::slice::from_ref(&choice)), Err(reported.clone()));
    assert_eq!(collect(&choice.to_string()), Err(reported));
    let not_failed = json!({"error": null, "choices": [{"delta": {"content": "a"}, "finish_reason": "stop",
        "error": null}]});
    assert_eq!(read(&[not_failed]).unwrap().text, "a");
}

#[test]
fn content_of_another_type_is_malformed() {
    for chunk in [
        json!([]),
        json!({"choices": {}}),
        json!({"choices": [{"delta": 7}]}),
        json!({"choices": [{"delta": {"content": 7}}]}),
        json!({"choices": [{"delta": {"tool_calls": {}}}]}),
    ] {
        let read = read(std::slice::from_ref(&chunk));
        assert!(
            matches!(read, Err(ReadError::Malformed(_))),
            "{chunk}: {read:?}"
        );
    }
}

#[test]
fn an_index_has_a_limit() {
    let at = |index: u32| read(&[json!({"choices": [{"index": index, "delta": {}}]})]);
    assert_eq!(at(4096), Err(ReadError::Index(4096)));
    assert_eq!(at(4095), Err(ReadError::Truncated));
}

#[test]
fn a_plain_reply_is_read_as_a_stream_of_one_event() {
    let body = "\n\n{\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}";
    assert_eq!(collect(body).unwrap().text, "a");
    let unfinished = json!({"choices": [{"message": {"content": "a"}}]}).to_string();
    assert_eq!(collect(&unfinished), Err(ReadError::Truncated));
    let empty = json!({"choices": [{"finish_reason": "stop"}]}).to_string();
    assert!(matches!(collect(&empty), Err(ReadError::Malformed(_))));
    let calls = json!([{"function": {"name": "f"}}, {"function": {"name": "f"}}]);
    let body = json!({"choices": [{"message": {"tool_calls": calls}, "finish_reason": "stop"}]});
    assert_eq!(
        collect(&body.to_string()).unwrap().calls,
        [call("", "f", ""), call("", "f", "")]
    );
}

#[test]
fn choices_after_the_first_are_checked_but_emit_nothing() {
    let second = json!({"choices": [{"index": 1, "delta": {"content": "b"}}]});
    let mut reader = Reader::new();
    let mut updates = Vec::new();
    for event in [second.to_string(), finish("stop").to_string()] {
        let mut new = Vec::new();
        reader.event(&event, &mut new).unwrap();
        updates.extend(new.into_iter().map(|update| format!("{update:?}")));
    }
    assert_eq!(
        (updates.len(), reader.finish()),
        (0, Err(ReadError::Truncated))
    );
    let mut new = Vec::new();
    let text = delta(json!({"content": "a"})).to_string();
    assert_eq!(
        reader.event(&text, &mut new).unwrap_err(),
        ReadError::Contradiction("content after the finish reason, or another finish reason")
    );
    assert_eq!(new, [Update::Text("a".into())]);
}

/// One step of a model's output.
#[derive(Clone, Debug)]
enum Step {
    Text(String),
    Reasoning(String),
    Refusal(String),
    /// A call with the pieces of its arguments.
    Call(String, [String; 2]),
}

fn step() -> impl Strategy<Value = Step> {
    let words = "[a-z\u{e9}\u{2028}\"\\\\\r\n{}: ]{0,8}";
    let arguments = (words, any::<prop::sample::Index>()).prop_map(|(word, at)| {
        let text = json!({ "word": word }).to_string();
        let at = text.floor_char_boundary(at.index(text.len()));
        [text[..at].to_owned(), text[at..].to_owned()]
    });
    prop_oneof![
        words.prop_map(Step::Text),
        words.prop_map(Step::Reasoning),
        words.prop_map(Step::Refusal),
        ("[a-z_]{1,8}", arguments).prop_map(|(name, pieces)| Step::Call(name, pieces)),
    ]
}

proptest! {
    /// The lenient reader reads answers that the strict types accept to the same content.
    #[test]
    fn the_strict_and_the_lenient_reading_agree(steps in vec(step(), 0..12), is_cut in any::<bool>()) {
        let head = Head { id: "chatcmpl-1".into(), created: 1_789_000_000, model: "m".into() };
        let (mut encoder, mut events) = (Encoder::new(head, true), Vec::new());
        for (number, step) in steps.iter().enumerate() {
            match step {
                Step::Text(text) => encoder.text(text, &mut events),
                Step::Reasoning(text) => encoder.reasoning(text, &mut events),
                Step::Refusal(text) => encoder.refusal(text, &mut events),
                Step::Call(name, pieces) => {
                    encoder.call(&format!("call_{number}"), name, &mut events);
                    pieces.iter().for_each(|piece| encoder.arguments(piece, &mut events));
                }
            }
        }
        let reason = if is_cut { FinishReason::Length } else { FinishReason::Stop };
        encoder.finish(reason, Some(Usage::new(3, 4)), &mut events);
        let strict = fold(&events).unwrap();
        let mut collector = Collector::default();
        for event in &events {
            collector.event(&event.data()).unwrap();
        }
        let streamed = collector.finish().unwrap();
        prop_assert_eq!(&streamed, &collect(&serde_json::to_string(&strict).unwrap()).unwrap());

        let message = &strict.choices[0].message;
        prop_assert_eq!(Some(streamed.text.as_str()), message.content.as_deref().or(Some("")));
        prop_assert_eq!(streamed.reasoning.as_str(), message.reasoning_content.as_deref().unwrap_or_default());
        prop_assert_eq!(streamed.refusal.as_str(), message.refusal.as_deref().unwrap_or_default());
        prop_assert_eq!(streamed.tokens, Some(Tokens { input: 3, output: 4, ..Tokens::default() }));
        let called = steps.iter().any(|step| matches!(step, Step::Call(..)));
        let natural = if called { Finish::ToolCalls } else { Finish::Stop };
        prop_assert_eq!(streamed.finish, if is_cut { Finish::Length } else { natural });
        let calls: Vec<_> = message.tool_calls.iter().map(|call| serde_json::to_value(call).unwrap()).collect();
        prop_assert_eq!(calls.len(), streamed.calls.len());
        for (strict, lenient) in calls.iter().zip(&streamed.calls) {
            prop_assert_eq!(&strict["id"], &lenient.id);
            prop_assert_eq!(&strict["function"]["name"], &lenient.name);
            prop_assert_eq!(&strict["function"]["arguments"], &lenient.arguments);
        }
    }

    /// Whatever comes, nothing panics, and a success is one that the events say.
    #[test]
    fn no_event_upsets_the_reader(documents in vec(strategies::changed(vec![
        delta(json!({"content": "a", "reasoning": "b"})),
        delta(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]})),
        finish("stop"),
        json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}),
    ]), 0..8)) {
        let has_finish = documents.iter().any(|document| document.to_string().contains("stop"));
        let read = read(&documents);
        prop_assert!(has_finish || read.is_err());
    }
}
