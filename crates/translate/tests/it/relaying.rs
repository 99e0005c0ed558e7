//! Relayed streams: byte for byte but for the closed list of edits, one end, and no success that
//! was not the upstream's.

use bytes::Bytes;
use engine::EngineError;
use images::Operation;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use sluicegate_translate::api_error;
use sluicegate_translate::relay::{
    self, Chat, End, Guard, Images, Messages, RelayProtocol, Responses,
};
use strategies::{PNG, json_value};

use crate::streams::{data, fixture};

/// Relays a stream that arrives in these pieces, including the event of its failure.
fn relayed<S: RelayProtocol>(
    protocol: S,
    model: &str,
    pieces: &[&[u8]],
) -> (Vec<u8>, Result<End, EngineError>) {
    let (mut guard, mut out) = (Guard::new(protocol, model.to_owned()), Vec::new());
    let ended = pieces.iter().find_map(|piece| {
        guard
            .feed(Bytes::copy_from_slice(piece), &mut out)
            .transpose()
    });
    let ended = ended.unwrap_or_else(|| guard.finish(&mut out));
    if let Err(error) = &ended {
        guard.fail(&api_error(error), &mut out);
        // The second call writes nothing.
        guard.fail(&api_error(error), &mut out);
    }
    (out, ended)
}

/// The streams among the fixtures that succeed, by protocol.
const RESPONSES: [&str; 8] = [
    "responses-stream-text.sse",
    "responses-stream-unicode-newlines.sse",
    "responses-stream-function-call.sse",
    "responses-stream-parallel-function-calls.sse",
    "responses-stream-empty-arguments.sse",
    "responses-stream-reasoning-summary.sse",
    "responses-stream-refusal.sse",
    "responses-stream-incomplete.sse",
];
const CHAT: [&str; 5] = [
    "chat-stream-text.sse",
    "chat-stream-usage.sse",
    "chat-stream-reasoning.sse",
    "chat-stream-length.sse",
    "chat-stream-tool-calls.sse",
];
const MESSAGES: [&str; 4] = [
    "messages-stream-text.sse",
    "messages-stream-tool-use.sse",
    "messages-stream-thinking.sse",
    "messages-stream-max-tokens.sse",
];
const IMAGES: [(&str, Operation, u32); 4] = [
    ("images-stream-generate.sse", Operation::Generation, 1),
    (
        "images-stream-generate-no-preview.sse",
        Operation::Generation,
        1,
    ),
    ("images-stream-generate-two.sse", Operation::Generation, 2),
    ("images-stream-edit.sse", Operation::Edit, 1),
];

/// Runs `law` with every stream and its protocol.
macro_rules! each_stream {
    ($law:ident) => {{
        RESPONSES
            .iter()
            .for_each(|name| $law(&fixture(name), Responses::default, ends_well_responses));
        CHAT.iter()
            .for_each(|name| $law(&fixture(name), Chat::default, ends_well_chat));
        MESSAGES
            .iter()
            .for_each(|name| $law(&fixture(name), Messages::default, ends_well_messages));
        for (name, operation, count) in IMAGES {
            let ends = |stream: &[u8]| ends_well_images(stream, operation, count);
            $law(&fixture(name), || Images::new(operation, count), ends);
        }
    }};
}

/// Returns `None` if a stream of the gateway has not ended, else true if it succeeded. The terminal
/// events of the protocol are `succeeded` and `failed`, by their type; of Chat, `[DONE]` and a
/// chunk with an error.
fn ends_well(stream: &[u8], succeeded: &[&str], failed: &[&str]) -> Option<bool> {
    let mut end = None;
    for data in data(stream) {
        assert_eq!(end, None, "after the end: {data}");
        let event: Value = if data == "[DONE]" {
            json!({"type": data})
        } else {
            serde_json::from_str(&data).unwrap()
        };
        let kind = event["type"]
            .as_str()
            .unwrap_or(if event["error"].is_object() {
                "error"
            } else {
                "chunk"
            });
        end = succeeded
            .contains(&kind)
            .then_some(true)
            .or(failed.contains(&kind).then_some(false));
    }
    end
}

fn ends_well_responses(stream: &[u8]) -> Option<bool> {
    ends_well(
        stream,
        &["response.completed", "response.incomplete"],
        &["response.failed", "error"],
    )
}

fn ends_well_chat(stream: &[u8]) -> Option<bool> {
    ends_well(stream, &["[DONE]"], &["error"])
}

fn ends_well_messages(stream: &[u8]) -> Option<bool> {
    ends_well(stream, &["message_stop"], &["error"])
}

fn ends_well_images(stream: &[u8], operation: Operation, count: u32) -> Option<bool> {
    let (mut grammar, mut failed) = (images::Grammar::new(operation, Some(count)), false);
    for data in data(stream) {
        let event = images::Event::read(&data).unwrap();
        failed |= matches!(event, images::Event::Error(_));
        grammar.push(&event).unwrap();
    }
    grammar.is_ended().then_some(!failed)
}

/// Returns the model's name in a stream.
fn model(stream: &[u8]) -> String {
    let text = String::from_utf8_lossy(stream);
    let named = text
        .split_once("\"model\":")
        .and_then(|(_, rest)| rest.split('"').nth(1));
    named.unwrap_or_default().to_owned()
}

/// Returns a stream without its comments.
fn events(stream: &[u8]) -> String {
    let text = String::from_utf8(stream.to_vec()).unwrap();
    text.split_inclusive("\n\n")
        .filter(|event| !event.starts_with(':'))
        .collect()
}

#[test]
fn a_stream_passes_byte_for_byte() {
    fn law<S: RelayProtocol>(
        stream: &[u8],
        protocol: impl Fn() -> S,
        _: impl Fn(&[u8]) -> Option<bool>,
    ) {
        let (out, ended) = relayed(protocol(), &model(stream), &[stream]);
        ended.unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), events(stream));
    }
    each_stream!(law);
}

/// Truncation and usage are taken from the upstream's stream.
#[test]
fn the_end_of_a_stream_has_what_the_upstream_counted() {
    fn end<S: RelayProtocol>(protocol: S, name: &str) -> (bool, Option<(u64, u64)>) {
        end_of(protocol, fixture(name))
    }
    fn end_of<S: RelayProtocol>(protocol: S, stream: Vec<u8>) -> (bool, Option<(u64, u64)>) {
        let (mut guard, mut out) = (Guard::new(protocol, "m".to_owned()), Vec::new());
        let fed = guard.feed(stream.into(), &mut out).unwrap();
        let end = fed.unwrap_or_else(|| guard.finish(&mut out).unwrap());
        (
            end.incomplete,
            end.usage.map(|usage| (usage.input, usage.output)),
        )
    }
    assert_eq!(
        end(Responses::default(), "responses-stream-incomplete.sse"),
        (true, Some((11, 6)))
    );
    let calls = end(
        Responses::default(),
        "responses-stream-parallel-function-calls.sse",
    );
    assert_eq!(calls, (false, Some((60, 41))));
    assert_eq!(
        end(Chat::default(), "chat-stream-usage.sse"),
        (false, Some((11, 5)))
    );
    assert_eq!(end(Chat::default(), "chat-stream-length.sse"), (true, None));
    assert_eq!(
        end(Messages::default(), "messages-stream-max-tokens.sse"),
        (true, Some((12, 3)))
    );
    assert_eq!(
        end(Messages::default(), "messages-stream-tool-use.sse"),
        (false, Some((61, 44)))
    );
    // Tokens read from a cache are part of the input.
    let cached = String::from_utf8(fixture("messages-stream-max-tokens.sse")).unwrap();
    let cached = cached.replace(
        r#""cache_read_input_tokens":0"#,
        r#""cache_read_input_tokens":7"#,
    );
    assert_eq!(
        end_of(Messages::default(), cached.into()),
        (true, Some((19, 3)))
    );
    let two = end(
        Images::new(Operation::Generation, 2),
        "images-stream-generate-two.sse",
    );
    assert_eq!(two, (false, Some((12, 544))));
}

#[test]
fn the_name_of_the_model_is_all_that_changes() {
    fn law<S: RelayProtocol>(
        stream: &[u8],
        protocol: impl Fn() -> S,
        _: impl Fn(&[u8]) -> Option<bool>,
    ) {
        let (out, ended) = relayed(protocol(), "a \"name\"", &[stream]);
        ended.unwrap();
        let theirs = format!("\"model\":\"{}\"", model(stream));
        let expected = events(stream).replace(&theirs, r#""model":"a \"name\"""#);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
    each_stream!(law);
}

#[test]
fn an_event_of_several_lines_keeps_its_name() {
    let stream = String::from_utf8(fixture("messages-stream-text.sse")).unwrap();
    let lines = stream.replacen("data: {", "data: {\ndata: ", 1);
    let (out, ended) = relayed(Messages::default(), "mine", &[lines.as_bytes()]);
    ended.unwrap();
    assert!(
        out.starts_with(b"event: message_start\ndata: {\ndata: "),
        "{}",
        String::from_utf8_lossy(&out)
    );
    let stream = String::from_utf8(fixture("chat-stream-text.sse")).unwrap();
    let (out, ended) = relayed(
        Chat::default(),
        "mine",
        &[stream.replace("data: {", "data: {\ndata: ").as_bytes()],
    );
    ended.unwrap();
    assert!(
        !String::from_utf8(out).unwrap().contains("event:"),
        "the events have no name"
    );
}

#[test]
fn a_stream_that_is_cut_anywhere_ends_once_and_with_a_failure() {
    fn law<S: RelayProtocol>(
        stream: &[u8],
        protocol: impl Fn() -> S,
        ends_well: impl Fn(&[u8]) -> Option<bool>,
    ) {
        let (complete, _) = relayed(protocol(), "m", &[stream]);
        let (mut successes, mut last_out) = (0, Vec::new());
        // Every offset near both ends; in between, every 11th offset covers each part of an event.
        let near_an_end = |cut: &usize| *cut < 300 || cut + 300 > stream.len();
        let cuts: Vec<_> = (0..stream.len())
            .filter(|cut| near_an_end(cut) || cut % 11 == 0)
            .collect();
        for cut in cuts.iter().copied() {
            let (out, ended) = relayed(protocol(), "m", &[&stream[..cut]]);
            // Offsets within one event give the same result.
            if out == last_out {
                successes += usize::from(ended.is_ok());
                continue;
            }
            last_out.clone_from(&out);
            if ended.is_ok() {
                // Nothing is missing, or only the `[DONE]` of a finished Chat stream, which is
                // appended.
                successes += 1;
                assert_eq!(ends_well(&out), Some(true), "cut at {cut}");
                continue;
            }
            // Before the first event a failure is reported by the status instead.
            assert!(
                ends_well(&out) == Some(false) || out.is_empty(),
                "cut at {cut}"
            );
            let passed = out
                .iter()
                .zip(&complete)
                .take_while(|(left, right)| left == right)
                .count();
            assert!(
                data(&out).len() <= data(&complete[..passed]).len() + 1,
                "at most one event is the gateway's"
            );
        }
        assert!(
            successes < cuts.len() / 2,
            "{successes} of {} cuts were taken for ends",
            cuts.len()
        );
    }
    each_stream!(law);
}

/// The name of an event matches the `type` in its data, since clients dispatch on either.
#[test]
fn s13_the_data_says_what_an_event_is_called() {
    fn law<S: RelayProtocol>(
        stream: &[u8],
        protocol: impl Fn() -> S,
        _: impl Fn(&[u8]) -> Option<bool>,
    ) {
        let expected = events(stream);
        for name in ["event: ping\n", "event: thread.x\n", ""] {
            let bare: String = expected
                .split_inclusive('\n')
                .filter(|line| !line.starts_with("event:"))
                .collect();
            let misnamed = bare.replace("data: ", &format!("{name}data: "));
            let (out, ended) = relayed(protocol(), &model(stream), &[misnamed.as_bytes()]);
            ended.unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
    each_stream!(law);
}

/// A missing or repeated event violates the grammar, or is harmless.
#[test]
fn clients_get_nothing_that_leaves_the_grammar() {
    fn law<S: RelayProtocol>(
        stream: &[u8],
        protocol: impl Fn() -> S,
        ends_well: impl Fn(&[u8]) -> Option<bool>,
    ) {
        let all = events(stream);
        let all: Vec<_> = all.split_inclusive("\n\n").collect();
        let mut failed = 0;
        for at in 0..all.len() {
            for again in [&all[at..=at], &[]] {
                let changed = [&all[..at], again, again, &all[at + 1..]].concat().concat();
                let (out, ended) = relayed(protocol(), &model(stream), &[changed.as_bytes()]);
                assert!(
                    out.is_empty() && ended.is_err() || ends_well(&out) == Some(ended.is_ok()),
                    "{changed}"
                );
                failed += usize::from(ended.is_err());
            }
        }
        assert!(failed > 0);
    }
    each_stream!(law);
}

/// Events without data are ignored.
#[test]
fn s10_empty_events_are_left_out() {
    fn law<S: RelayProtocol>(
        stream: &[u8],
        protocol: impl Fn() -> S,
        _: impl Fn(&[u8]) -> Option<bool>,
    ) {
        let expected = events(stream);
        let with = expected.replace("\n\n", "\n\ndata:\n\nevent: ping\ndata: \n\n");
        let (out, ended) = relayed(protocol(), &model(stream), &[with.as_bytes()]);
        ended.unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
    each_stream!(law);
}

/// An event over the limit fails before it is complete.
#[test]
fn s04_an_event_has_a_longest_length() {
    let (head, more) = (&b"data: {\"x\":\""[..], vec![b'x'; 1 << 20]);
    let pieces: Vec<_> = std::iter::once(head)
        .chain(std::iter::repeat_n(&more[..], 33))
        .collect();
    let (mut guard, mut out) = (Guard::new(Chat::default(), "m".to_owned()), Vec::new());
    let fed: Vec<_> = pieces
        .iter()
        .map(|piece| guard.feed(Bytes::copy_from_slice(piece), &mut out).is_ok())
        .collect();
    // The head and 31 MiB.
    assert_eq!(fed.iter().position(|ok| !ok), Some(32), "{fed:?}");
    assert!(out.is_empty());
}

#[test]
fn what_comes_after_the_end_is_dropped() {
    fn law<S: RelayProtocol>(
        stream: &[u8],
        protocol: impl Fn() -> S,
        _: impl Fn(&[u8]) -> Option<bool>,
    ) {
        let (once, _) = relayed(protocol(), "m", &[stream]);
        let twice = [stream, stream].concat();
        assert_eq!(relayed(protocol(), "m", &[&twice]).0, once);
    }
    each_stream!(law);
}

#[test]
fn an_end_is_the_last_that_is_let_out() {
    fn law<S: RelayProtocol>(
        stream: &[u8],
        protocol: impl Fn() -> S,
        _: impl Fn(&[u8]) -> Option<bool>,
    ) {
        let (mut guard, mut out) = (Guard::new(protocol(), model(stream)), Vec::new());
        assert!(
            guard
                .feed(Bytes::copy_from_slice(stream), &mut out)
                .unwrap()
                .is_some()
        );
        let before = out.clone();
        assert!(matches!(
            guard.feed(Bytes::copy_from_slice(stream), &mut out),
            Ok(None)
        ));
        guard.fail(
            &api_error(&EngineError::Timeout("late".to_owned())),
            &mut out,
        );
        assert!(
            out == before,
            "{}",
            String::from_utf8_lossy(&out[before.len()..])
        );
    }
    each_stream!(law);
}

#[test]
fn what_is_no_utf8_is_a_failure() {
    let mut stream = fixture("chat-stream-text.sse");
    let names: Vec<_> = memchr::memmem::find_iter(&stream, "\"model\":\"").collect();
    names
        .iter()
        .for_each(|at| stream[at + "\"model\":\"".len()] = 0xff);
    let (_, ended) = relayed(Chat::default(), "m", &[&stream]);
    assert!(matches!(ended, Err(EngineError::Upstream(_))), "{ended:?}");
}

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

/// Returns the failure of a stream of one event, which must not be forwarded.
fn refused<S: RelayProtocol>(protocol: S, event: &Value) -> EngineError {
    let (out, ended) = relayed(
        protocol,
        "m",
        &[format!("data: {event}\n\n").as_bytes(), b"data: [DONE]\n\n"],
    );
    assert!(
        !String::from_utf8(out).unwrap().contains("team7"),
        "{event}"
    );
    ended.unwrap_err()
}

fn chunk(finish_reason: Option<&str>) -> Value {
    let choice = json!({"index": 0, "delta": {"role": "assistant", "content": "Hi"}, "finish_reason": finish_reason});
    json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})
}

fn completion(finish_reason: Option<&str>) -> Value {
    let message = json!({"role": "assistant", "content": "Hi"});
    let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason});
    json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})
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
            relay::reply::<Chat>(reply.as_bytes(), "m").is_err(),
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
        let reply = relay::reply::<Chat>(failing(completion(reason)).to_string().as_bytes(), "m");
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
            relay::reply::<Chat>(reply.as_bytes(), "m").unwrap_err(),
            relay::reply::<Responses>(reply.as_bytes(), "m").unwrap_err(),
            relay::reply::<Images>(reply.as_bytes(), "m").unwrap_err(),
            relay::reply_as_stream(reply.as_bytes(), Operation::Edit, 1).unwrap_err(),
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
    let error = relay::reply::<Messages>(error_body.to_string().as_bytes(), "m").unwrap_err();
    assert!(matches!(error, EngineError::Overloaded { .. }), "{error:?}");
}

#[test]
fn calls_may_be_null() {
    let mut reply = completion(Some("stop"));
    reply["choices"][0]["message"]["tool_calls"] = json!(null);
    let reply = reply.to_string();
    assert_eq!(
        relay::reply::<Chat>(reply.as_bytes(), "m").unwrap().0,
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

#[test]
fn codes_that_clients_know_pass_within_a_stream_and_words_do_not() {
    let stream = String::from_utf8(fixture("responses-stream-failed-mid.sse")).unwrap();
    let last_event = data(stream.as_bytes()).pop().unwrap();
    let mut failed: Value = serde_json::from_str(&last_event).unwrap();
    for (code, sentence) in [
        (
            "context_length_exceeded",
            "The prompt is longer than the context of the model.",
        ),
        ("insufficient_quota", "The quota of the model is used up."),
        ("usage_not_included", "The quota of the model is used up."),
        ("invalid_prompt", "The upstream refused the prompt."),
        ("server_is_overloaded", "The model is overloaded just now."),
        ("slow_down", "The model is overloaded just now."),
        (
            "a_word_of_theirs",
            "The server had an error while processing the request.",
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

#[test]
fn a_failure_lists_the_items_that_are_done() {
    let stream =
        String::from_utf8(fixture("responses-stream-parallel-function-calls.sse")).unwrap();
    let done: Vec<_> = stream
        .match_indices("event: response.output_item.done")
        .map(|(at, _)| at)
        .collect();
    let (out, ended) = relayed(Responses::default(), "m", &[&stream.as_bytes()[..done[2]]]);
    ended.unwrap_err();
    let events: Vec<Value> = data(&out)
        .iter()
        .map(|event| serde_json::from_str(event).unwrap())
        .collect();
    let complete: Vec<Value> = data(stream.as_bytes())
        .iter()
        .map(|event| serde_json::from_str(event).unwrap())
        .collect();
    let mut output = complete.last().unwrap()["response"]["output"].clone();
    output.as_array_mut().unwrap().truncate(2);
    assert_eq!(events.last().unwrap()["response"]["output"], output);
}

#[test]
fn what_comes_before_a_response_is_held_back() {
    let early = "data: {\"type\":\"keepalive\"}\n\n".as_bytes();
    let stream = fixture("responses-stream-text.sse");
    let (out, ended) = relayed(Responses::default(), "m", &[early, &stream]);
    assert_eq!(
        (&out, ended.ok()),
        (
            &relayed(Responses::default(), "m", &[&stream]).0,
            Some(end_of(&stream))
        )
    );
    let (out, ended) = relayed(Responses::default(), "m", &[early, b"data: {\n\n"]);
    ended.unwrap_err();
    assert_eq!(out, b"", "the failure can still be reported by the status");
}

/// The numbers of a relayed stream begin with 0: a dropped event that has a number leaves none to
/// the next one.
#[test]
fn a_numbered_event_before_a_response_is_a_failure() {
    let early = "data: {\"type\":\"keepalive\",\"sequence_number\":0}\n\n";
    let created = r#"{"type":"response.created","sequence_number":1,"response":{"id":"resp_1","object":"response","created_at":1786000000,"status":"in_progress","error":null,"model":"theirs","output":[]}}"#;
    let stream = format!("{early}event: response.created\ndata: {created}\n\n");
    let (out, ended) = relayed(Responses::default(), "m", &[stream.as_bytes()]);
    assert_eq!(out, b"");
    let EngineError::Upstream(why) = ended.unwrap_err() else {
        panic!("the upstream is at fault")
    };
    assert_eq!(why, "malformed event: a numbered event before the response");
}

fn end_of(stream: &[u8]) -> End {
    relayed(Responses::default(), "m", &[stream]).1.unwrap()
}

#[test]
fn replies_pass_byte_for_byte_but_for_the_model() {
    fn law<S: RelayProtocol>(name: &str) {
        let body = fixture(name);
        let theirs = model(&body);
        assert!(
            relay::reply::<S>(&body, &theirs).unwrap().0 == body,
            "{name}"
        );
        let renamed = String::from_utf8(relay::reply::<S>(&body, "mine").unwrap().0).unwrap();
        let expected = String::from_utf8(body)
            .unwrap()
            .replacen(&theirs, "mine", 1);
        assert_eq!(renamed, expected, "{name}");
    }
    for name in [
        "text",
        "function-call",
        "parallel-function-calls",
        "reasoning",
        "incomplete",
        "refusal",
    ] {
        law::<Responses>(&format!("responses-response-{name}.json"));
    }
    for name in ["text", "reasoning", "length", "tool-calls", "json-mode"] {
        law::<Chat>(&format!("chat-response-{name}.json"));
    }
    for name in [
        "text",
        "tool-use",
        "thinking",
        "max-tokens",
        "stop-sequence",
    ] {
        law::<Messages>(&format!("messages-response-{name}.json"));
    }
}

#[test]
fn a_reply_that_is_not_finished_is_no_success() {
    fn law<S: RelayProtocol>(mut reply: Value, member: &str, others: &[Value]) {
        assert!(
            relay::reply::<S>(reply.to_string().as_bytes(), "m").is_ok(),
            "{reply}"
        );
        for other in others {
            *reply.pointer_mut(member).unwrap() = other.clone();
            let ended = relay::reply::<S>(reply.to_string().as_bytes(), "m");
            assert!(
                matches!(ended, Err(EngineError::Truncated(_))),
                "{other}: {ended:?}"
            );
        }
    }
    let fixture = |name: &str| serde_json::from_slice::<Value>(&fixture(name)).unwrap();
    let response = fixture("responses-response-text.json");
    law::<Responses>(
        response,
        "/status",
        &[json!("in_progress"), json!("queued"), json!("cancelled")],
    );
    law::<Chat>(
        completion(Some("stop")),
        "/choices/0/finish_reason",
        &[json!(null)],
    );
    law::<Chat>(completion(Some("stop")), "/choices", &[json!([])]);
    law::<Messages>(
        fixture("messages-response-text.json"),
        "/stop_reason",
        &[json!(null)],
    );
}

/// Returns a reply with this number of images.
fn pictures(count: usize) -> Vec<u8> {
    let data = vec![json!({"b64_json": PNG}); count];
    let mut reply =
        json!({ "created": 1, "background": "opaque", "output_format": "png", "quality": "high" });
    (reply["size"], reply["data"]) = (json!("8x8"), json!(data));
    reply.to_string().into_bytes()
}

#[test]
fn a_reply_without_pictures_is_no_success() {
    relay::reply::<Images>(&pictures(1), "m").unwrap();
    let none = [
        json!({"data": []}),
        json!({}),
        json!({"data": [{"b64_json": ""}]}),
        json!({"data": [{"b64_json": PNG}, {"revised_prompt": "x"}]}),
        json!({"data": [{"b64_json": &PNG[..40]}]}),
    ];
    for reply in none {
        let ended = relay::reply::<Images>(reply.to_string().as_bytes(), "m");
        assert!(
            matches!(ended, Err(EngineError::Upstream(_))),
            "{reply}: {ended:?}"
        );
    }
}

/// A reply is relayed unchanged, whatever it lacks and whatever else it has.
#[test]
fn a_lean_reply_passes_and_becomes_a_lean_stream() {
    let lean = json!({"data": [{"b64_json": PNG, "revised_prompt": "A boat", "type": "image"}], "ours": 1});
    let body = lean.to_string();
    let (out, end) = relay::reply::<Images>(body.as_bytes(), "m").unwrap();
    assert_eq!((String::from_utf8(out).unwrap(), end.usage), (body, None));
    let body = serde_json::to_string_pretty(&lean).unwrap();
    let (out, _) = relay::reply_as_stream(body.as_bytes(), Operation::Edit, 1).unwrap();
    assert!(out.starts_with(b"event: image_edit.completed\ndata: {"));
    let event: Value = serde_json::from_str(&data(&out)[0]).unwrap();
    let expected =
        json!({"type": "image_edit.completed", "b64_json": PNG, "revised_prompt": "A boat"});
    assert_eq!(event, expected);
}

/// The members that all images share are in each event, and the usage is in the first.
#[test]
fn a_full_reply_becomes_a_full_stream() {
    let reply = fixture("images-response-two.json");
    let (out, end) = relay::reply_as_stream(&reply, Operation::Generation, 2).unwrap();
    assert_eq!(
        end.usage.map(|usage| (usage.input, usage.output)),
        Some((12, 544))
    );
    let events = data(&out);
    let events: Vec<_> = events
        .iter()
        .map(|data| images::Event::read(data).unwrap())
        .collect();
    let mut fold = images::Fold::new(Operation::Generation, Some(2));
    events
        .into_iter()
        .for_each(|event| fold.push(event).unwrap());
    let folded = serde_json::to_value(fold.finish().unwrap()).unwrap();
    assert_eq!(folded, serde_json::from_slice::<Value>(&reply).unwrap());
}

/// A stream may lack all but its images.
#[test]
fn a_lean_stream_passes() {
    let stream = format!(
        "data: {}\n\ndata: {}\n\n",
        json!({"type": "image_generation.partial_image", "b64_json": PNG}),
        json!({"type": "image_generation.completed", "b64_json": PNG}),
    );
    let protocol = Images::new(Operation::Generation, 1);
    let (out, ended) = relayed(protocol, "m", &[stream.as_bytes()]);
    ended.unwrap();
    assert_eq!(data(&out), data(stream.as_bytes()));
}

/// Clients of a stream expect the bytes of an image.
#[test]
fn a_url_passes_in_a_reply_and_fails_in_a_stream() {
    let picture = json!({"url": "https://pictures.example/a.png", "b64_json": null});
    let body = json!({"data": [picture]}).to_string();
    let (out, _) = relay::reply::<Images>(body.as_bytes(), "m").unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), body);
    let mut event = picture;
    event["type"] = "image_generation.completed".into();
    for error in [
        relay::reply_as_stream(body.as_bytes(), Operation::Generation, 1).unwrap_err(),
        refused(Images::new(Operation::Generation, 1), &event),
    ] {
        assert!(error.to_string().contains("`url`"), "{error}");
    }
}

#[test]
fn a_reply_with_other_than_the_pictures_asked_for_is_no_stream() {
    relay::reply_as_stream(&pictures(2), Operation::Generation, 2).unwrap();
    for count in [1, 3] {
        let ended = relay::reply_as_stream(&pictures(2), Operation::Generation, count);
        assert!(matches!(ended, Err(EngineError::Upstream(_))), "{ended:?}");
    }
}

#[test]
fn responses_does_not_end_as_chat_does() {
    let (out, ended) = relayed(Responses::default(), "m", &[b"data: [DONE]\n\n"]);
    assert!(
        out.is_empty() && matches!(ended, Err(EngineError::Truncated(_))),
        "{ended:?}"
    );
}

#[test]
fn a_reply_that_failed_is_no_success() {
    let mut reply: Value =
        serde_json::from_slice(&fixture("responses-response-failed.json")).unwrap();
    assert!(relay::reply::<Responses>(reply.to_string().as_bytes(), "m").is_err());
    reply["error"] = json!(null);
    let ended = relay::reply::<Responses>(reply.to_string().as_bytes(), "m");
    assert!(matches!(ended, Err(EngineError::Upstream(_))), "{ended:?}");
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
        let failed = misfits(&reply)
            .into_iter()
            .filter_map(|misfit| relay::reply::<S>(misfit.to_string().as_bytes(), "m").err());
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

#[test]
fn chat_clients_are_told_no_breakdown_of_the_usage() {
    let usage = r#"{"prompt_tokens":3,"prompt_tokens_details":{"cached_tokens":1},"completion_tokens":4,"total_tokens":7,"completion_tokens_details":{}}"#;
    let body = format!(
        r#"{{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"Hi"}},"finish_reason":"stop"}}],"usage":{usage}}}"#
    );
    let (reply, end) = relay::reply::<Chat>(body.as_bytes(), "m").unwrap();
    let reply = String::from_utf8(reply).unwrap();
    assert!(
        reply.ends_with(r#""usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}"#),
        "{reply}"
    );
    assert_eq!(
        end.usage.map(|usage| (usage.input, usage.output)),
        Some((3, 4))
    );
}

proptest! {
    #[test]
    fn how_the_bytes_come_changes_nothing(which in any::<Index>(), cuts in prop::collection::vec(any::<Index>(), 0..12)) {
        let name = RESPONSES[which.index(RESPONSES.len())];
        let stream = fixture(name);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
        cuts.sort_unstable();
        let starts = std::iter::once(0).chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain([stream.len()]);
        let pieces: Vec<&[u8]> = starts.zip(ends).map(|(start, end)| &stream[start..end]).collect();
        let split = relayed(Responses::default(), "m", &pieces);
        let joined = relayed(Responses::default(), "m", &[&stream]);
        prop_assert_eq!((split.0, split.1.ok()), (joined.0, joined.1.ok()));
    }

    #[test]
    fn unknown_fields_of_events_pass_as_they_came(value in json_value(), at in any::<Index>(), pretty in any::<bool>()) {
        let stream = String::from_utf8(fixture("messages-stream-tool-use.sse")).unwrap();
        let text = if pretty { format!("{value:#}").replace('\n', "") } else { value.to_string() };
        let event = at.index(data(stream.as_bytes()).len());
        let mut seen = 0;
        let mut changed = String::new();
        for line in stream.split_inclusive('\n') {
            if let Some(rest) = line.strip_prefix("data: {") {
                if seen == event {
                    changed += &format!("data: {{\"a_field_of_tomorrow\": {text},{rest}");
                    seen += 1;
                    continue;
                }
                seen += 1;
            }
            changed += line;
        }
        let (out, ended) = relayed(Messages::default(), &model(stream.as_bytes()), &[changed.as_bytes()]);
        prop_assert!(ended.is_ok(), "{:?}", ended);
        prop_assert_eq!(String::from_utf8(out).unwrap(), changed);
    }

    #[test]
    fn unknown_fields_of_replies_pass_as_they_came(value in json_value()) {
        let body = String::from_utf8(fixture("chat-response-text.json")).unwrap();
        let body = body.replacen('{', &format!("{{ \"tomorrow\" : {value:#} ,"), 1);
        let (reply, _) = relay::reply::<Chat>(body.as_bytes(), &model(body.as_bytes())).unwrap();
        prop_assert_eq!(String::from_utf8(reply).unwrap(), body);
    }

    #[test]
    fn whatever_an_upstream_sends_there_is_one_end(
        which in any::<Index>(),
        changes in prop::collection::vec((any::<Index>(), any::<Index>(), 0..3_u8), 0..4),
    ) {
        let name = MESSAGES[which.index(MESSAGES.len())];
        let stream = String::from_utf8(fixture(name)).unwrap();
        let mut events: Vec<_> = stream.split_inclusive("\n\n").map(str::to_owned).collect();
        for (from, to, how) in changes {
            let (from, to) = (from.index(events.len()), to.index(events.len()));
            match how {
                0 => events.swap(from, to),
                1 => events.insert(to, events[from].clone()),
                _ => events[from] = events[from].replace(['1', 't'], "e"),
            }
        }
        let (out, ended) = relayed(Messages::default(), "m", &[events.concat().as_bytes()]);
        match ended {
            Ok(_) => prop_assert_eq!(ends_well_messages(&out), Some(true)),
            Err(_) => prop_assert!(out_fails(&out)),
        }
    }
}

/// Returns true if the last event of a stream, and no other, is a failure.
fn out_fails(stream: &[u8]) -> bool {
    let events = data(stream);
    let failures = events.iter().filter(|data| {
        serde_json::from_str::<Value>(data).is_ok_and(|event| event["type"] == "error")
    });
    failures.count() == 1 && events.last().is_some_and(|data| data.contains("\"error\""))
}
