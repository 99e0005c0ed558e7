//! Recorded responses with expectations that were written by hand.

use std::fs;
use std::path::Path;

use simulator::Protocol::{self, Chat, Images, Messages, Responses};

use super::json::without_exponents;
use super::{Call, End, Ending, Reading, Reason, Usage};

/// A recorded response of a protocol.
fn recorded(protocol: Protocol, name: &str) -> Vec<u8> {
    let package = match protocol {
        Responses => "responses",
        Chat => "chat",
        Messages => "messages",
        Images => "images",
    };
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    fs::read(crates.join(package).join("tests/it/fixtures").join(name)).unwrap()
}

fn read(protocol: Protocol, name: &str) -> Reading {
    Reading::of(protocol, &recorded(protocol, name), true, 1)
}

/// The text of a successful response, whether it was truncated, and its tokens.
type Content = (
    Protocol,
    &'static str,
    &'static str,
    bool,
    Option<(u64, u64)>,
);

#[test]
fn a_success_is_read_to_its_end() {
    let contents: [Content; 16] = [
        (
            Responses,
            "responses-stream-incomplete.sse",
            "Once upon a time there was",
            true,
            Some((11, 6)),
        ),
        (
            Responses,
            "responses-stream-parallel-function-calls.sse",
            CALLS,
            false,
            Some((60, 41)),
        ),
        (
            Responses,
            "responses-response-parallel-function-calls.json",
            CALLS,
            false,
            Some((60, 41)),
        ),
        (
            Responses,
            "responses-response-reasoning.json",
            DIGITS,
            false,
            Some((21, 64)),
        ),
        (
            Responses,
            "responses-response-refusal.json",
            "I can't help with that.",
            false,
            Some((19, 9)),
        ),
        (Chat, "chat-stream-usage.sse", "1 2 3", false, Some((11, 5))),
        (Chat, "chat-stream-length.sse", "Once upon a", true, None),
        (
            Chat,
            "chat-response-length.json",
            "Once upon a",
            true,
            Some((12, 3)),
        ),
        (
            Chat,
            "chat-response-reasoning.json",
            COMPARED,
            false,
            Some((20, 31)),
        ),
        (
            Chat,
            "chat-response-tool-calls.json",
            r#"{"city":"Oslo"}{"city":"Rome"}"#,
            false,
            Some((48, 36)),
        ),
        (
            Messages,
            "messages-stream-tool-use.sse",
            r#"I'll check.{"city": "Oslo"}{"city":"Rome"}"#,
            false,
            Some((61, 44)),
        ),
        (
            Messages,
            "messages-stream-thinking.sse",
            COMPARED,
            false,
            Some((22, 52)),
        ),
        (
            Messages,
            "messages-response-thinking.json",
            COMPARED,
            false,
            Some((22, 52)),
        ),
        (
            Messages,
            "messages-response-tool-use.json",
            r#"I'll check.{"city":"Oslo"}"#,
            false,
            Some((61, 44)),
        ),
        (
            Messages,
            "messages-response-max-tokens.json",
            "Once upon a",
            true,
            Some((12, 3)),
        ),
        (
            Messages,
            "messages-stream-max-tokens.sse",
            "Once upon a",
            true,
            Some((12, 3)),
        ),
    ];
    for (protocol, name, words, is_cut, usage) in contents {
        let reading = read(protocol, name);
        let usage = usage.map(|(input, output)| [input, output]);
        assert_eq!(
            (reading.end, reading.words.as_str()),
            (End::Success, words),
            "{name}"
        );
        assert_eq!(
            (
                reading.is_cut,
                reading.usage.map(Usage::totals),
                reading.has_more
            ),
            (is_cut, usage, false),
            "{name}"
        );
        assert_eq!(reading.is_incomplete, is_cut, "{name}");
        let model = match protocol {
            Chat => "alt-flash",
            Messages => "msg-sonnet-5",
            _ if name.contains("reasoning") => "alt-flash",
            _ => "model-5.5",
        };
        assert_eq!(
            reading.models.into_iter().collect::<Vec<_>>(),
            [model],
            "{name}"
        );
    }
}

/// A response may be incomplete for another reason than its limit, or for an unknown one.
#[test]
fn a_response_may_be_incomplete_for_any_reason() {
    let stream = String::from_utf8(recorded(Responses, "responses-stream-incomplete.sse")).unwrap();
    let filtered = stream.replace("max_output_tokens\"}", "content_filter\"}");
    assert_ne!(filtered, stream);
    let reading = Reading::of(Responses, filtered.as_bytes(), true, 1);
    assert_eq!(
        (reading.end, reading.is_incomplete, reading.is_cut),
        (End::Success, true, false)
    );
}

#[test]
fn a_failure_has_its_code() {
    for (protocol, name, words, code) in [
        (
            Responses,
            "responses-stream-failed-mid.sse",
            "Once ",
            "server_error",
        ),
        (
            Responses,
            "responses-response-failed.json",
            "",
            "server_error",
        ),
        (Chat, "chat-stream-error.sse", "Hel", "server_error"),
        (
            Messages,
            "messages-stream-error.sse",
            "Hel",
            "overloaded_error",
        ),
        (
            Images,
            "images-response-error-member.json",
            "",
            "image_generation_failed",
        ),
    ] {
        let reading = read(protocol, name);
        let end = End::Failure(Some(code.to_owned()));
        assert_eq!(
            (reading.end, reading.words.as_str(), reading.has_more),
            (end, words, false),
            "{name}"
        );
    }
}

/// A stream is a success once every picture has arrived, and sums up the tokens of each.
#[test]
fn each_picture_has_its_end() {
    let two = recorded(Images, "images-stream-generate-two.sse");
    let read = |pictures| Reading::of(Images, &two, true, pictures);
    assert_eq!(
        (read(2).end, read(2).usage.map(Usage::totals)),
        (End::Success, Some([12, 544]))
    );
    assert_eq!(
        (read(2).words.len(), read(2).events, read(2).has_more),
        (900, 3, false)
    );
    assert_eq!((read(1).end, read(1).has_more), (End::Success, true));
    assert_eq!(read(3).end, End::Missing);
    assert_eq!(
        self::read(Images, "images-response-two.json")
            .usage
            .map(Usage::totals),
        Some([12, 544])
    );
}

/// A stream that is truncated before its terminal event is not a success; everything after that
/// event is ignored.
#[test]
fn half_a_stream_is_no_success() {
    for (protocol, name) in [
        (Responses, "responses-stream-incomplete.sse"),
        (Messages, "messages-stream-tool-use.sse"),
        (Chat, "chat-stream-usage.sse"),
        (Images, "images-stream-edit.sse"),
    ] {
        let whole = recorded(protocol, name);
        for length in 0..whole.len() {
            assert_eq!(
                Reading::of(protocol, &whole[..length], false, 1).end,
                End::Missing,
                "{length} bytes of {name}"
            );
        }
        let more = [&whole[..], b"data: {\"error\":{}}\n\n"].concat();
        let reading = Reading::of(protocol, &more, true, 1);
        assert_eq!(
            (reading.end, reading.has_more),
            (End::Success, true),
            "{name}"
        );
    }
}

/// A stream of Chat that is finished may lack its terminal event, if the body ends properly; any
/// other may not.
#[test]
fn a_finished_stream_of_chat_may_end() {
    let usage = recorded(Chat, "chat-stream-usage.sse");
    let finished = usage.strip_suffix(b"data: [DONE]\n\n").unwrap();
    let end = |stream: &[u8], is_whole| Reading::of(Chat, stream, is_whole, 1).end;
    assert_eq!(
        (end(finished, true), end(finished, false)),
        (End::Success, End::Missing)
    );
    assert_eq!(end(b"data: [DONE]\n\n", true), End::Failure(None));
    assert_eq!(
        Reading::of(Responses, b"data: [DONE]\n\n", true, 1).end,
        End::Failure(None)
    );
}

/// A number that is out of range is still valid JSON; a malformed one is not.
#[test]
fn numbers_may_be_beyond_all_bounds() {
    let text = String::from_utf8(recorded(Chat, "chat-stream-usage.sse")).unwrap();
    let (before, after) = text.split_once("\"created\":").unwrap();
    let end = |number: &str| {
        Reading::of(
            Chat,
            format!("{before}\"created\":{number}{after}").as_bytes(),
            true,
            1,
        )
        .end
    };
    assert_eq!(
        (end("1E99"), end("17E+89000019")),
        (End::Success, End::Success)
    );
    assert_eq!(
        (end("1E9999-"), end("1E9999e")),
        (End::Failure(None), End::Failure(None))
    );
    let kept = br#"{"a":"1E9 \" 2E9","b":1.5E-999,"c":true,"d":[2E9]}"#;
    assert_eq!(
        without_exponents(kept),
        br#"{"a":"1E9 \" 2E9","b":1.5,"c":true,"d":[2]}"#
    );
}

/// A reply that lacks its finish reason or its last byte is not a success.
#[test]
fn an_unfinished_reply_is_no_success() {
    for (protocol, name, finish) in [
        (Responses, "responses-response-text.json", "\"completed\""),
        (Chat, "chat-response-text.json", "\"stop\""),
        (Messages, "messages-response-text.json", "\"end_turn\""),
    ] {
        let text = String::from_utf8(recorded(protocol, name)).unwrap();
        let end = |text: &str, is_whole| Reading::of(protocol, text.as_bytes(), is_whole, 1).end;
        assert_eq!(
            (end(&text, true), end(&text, false)),
            (End::Success, End::Missing),
            "{name}"
        );
        assert_eq!(
            end(&text.replacen(finish, "null", 1), true),
            End::Missing,
            "{name}"
        );
        assert_eq!(end("{}", true), End::Missing, "{name}");
    }
    assert_eq!(
        Reading::of(Images, b"{\"data\":[]}", true, 1).end,
        End::Missing
    );
}

/// The contradiction in a stream of these events.
fn contradiction(protocol: Protocol, events: &[&str]) -> Option<&'static str> {
    let stream: String = events
        .iter()
        .map(|data| format!("data: {data}\n\n"))
        .collect();
    Reading::of(protocol, stream.as_bytes(), true, 1).contradiction
}

#[test]
fn an_end_has_to_mean_the_end() {
    let chunk = |delta: &str, reason: &str| {
        format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":"{reason}"}}]}}"#)
    };
    let ended = |reason: &str| contradiction(Chat, &[&chunk(r#"{"content":"a"}"#, reason)]);
    for reason in ["stop", "COMPLETE", "length", "SAFETY", ""] {
        assert_eq!(ended(reason), None, "{reason}");
    }
    for reason in ["network_error", "cancelled", "ok"] {
        let unknown = Some("no word for the end that is known");
        assert_eq!(ended(reason), unknown, "{reason}");
    }
    assert_eq!(ended("tool_calls"), Some("an end for calls without one"));
    let call = r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}"#;
    assert_eq!(contradiction(Chat, &[&chunk(call, "length")]), None);
    assert_eq!(
        contradiction(Chat, &[&chunk(call, "tool_calls")]),
        Some("truncated arguments")
    );
    let text = chunk(r#"{"content":"a"}"#, "stop");
    assert_eq!(
        contradiction(Chat, &[&text, &text]),
        Some("content after the end")
    );
}

#[test]
fn blocks_and_numbers_have_to_fit() {
    let start = r#"{"type":"message_start","message":{}}"#;
    let open = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text"}}"#;
    let delta = r#"{"type":"content_block_delta","index":0,"delta":{"text":"a"}}"#;
    let stop = r#"{"type":"content_block_stop","index":0}"#;
    let reason = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    let end = r#"{"type":"message_stop"}"#;
    let whole = [start, open, delta, stop, reason, end];
    assert_eq!(contradiction(Messages, &whole), None);
    let without = |lost: usize| {
        let mut events = whole.to_vec();
        events.remove(lost);
        contradiction(Messages, &events)
    };
    assert_eq!(without(0), Some("content before the start"));
    assert_eq!(without(1), Some("a delta of no block"));
    assert_eq!(without(2), None);
    assert_eq!(without(3), Some("an open block"));
    assert_eq!(without(4), Some("no word for the end that is known"));

    let created = r#"{"type":"response.created","sequence_number":0}"#;
    let text = r#"{"type":"response.output_text.delta","sequence_number":1,"delta":"a"}"#;
    let done = r#"{"type":"response.output_text.done","sequence_number":2,"text":"ab"}"#;
    let other = r#"{"type":"response.output_text.done","sequence_number":2,"text":"b"}"#;
    assert_eq!(contradiction(Responses, &[created, text, done]), None);
    assert_eq!(
        contradiction(Responses, &[created, done]),
        Some("an event is missing, or comes twice")
    );
    assert_eq!(
        contradiction(Responses, &[created, text, other]),
        Some("a complete text that differs from its deltas")
    );
    let completed = r#"{"type":"response.completed","response":{"status":"queued"}}"#;
    assert_eq!(
        contradiction(Responses, &[completed]),
        Some("another status")
    );
}

#[test]
fn the_content_of_a_recorded_response_has_its_parts() {
    let parts = |protocol, name: &str| {
        let Reading {
            text,
            reasoning,
            calls,
            problems,
            ..
        } = read(protocol, name);
        let calls: Vec<_> = calls
            .into_iter()
            .map(|Call { name, arguments }| (name, arguments))
            .collect();
        assert_eq!(problems, [""; 0], "{name}");
        (text, reasoning, calls)
    };
    let weather = |city: &str| ("get_weather".to_owned(), format!("{{\"city\":\"{city}\"}}"));
    let both = vec![weather("Oslo"), weather("Rome")];
    let checking = ("Checking both cities.".to_owned(), String::new(), both);
    for name in [
        "responses-stream-parallel-function-calls.sse",
        "responses-response-parallel-function-calls.json",
    ] {
        assert_eq!(parts(Responses, name), checking, "{name}");
    }
    let thought = (
        "9.8 is larger.".to_owned(),
        "Compare 9.80 with 9.11.".to_owned(),
        Vec::new(),
    );
    assert_eq!(parts(Messages, "messages-response-thinking.json"), thought);
}

/// A gateway must not send events that contradict each other, although some clients tolerate them.
#[test]
fn events_that_contradict_each_other_are_problems() {
    let problems = |protocol, events: &[&str]| {
        let stream: String = events
            .iter()
            .map(|data| format!("data: {data}\n\n"))
            .collect();
        Reading::of(protocol, stream.as_bytes(), true, 1).problems
    };
    let text = r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
    let done = "[DONE]";
    assert_eq!(problems(Chat, &[text, done]), [""; 0]);
    assert_eq!(problems(Chat, &[text]), ["no [DONE]"]);
    assert_eq!(problems(Chat, &[done]), ["[DONE] without a finish reason"]);
    assert_eq!(
        problems(Chat, &[text, done, done]),
        ["an event after the end: [DONE]"]
    );
    assert_eq!(
        problems(Chat, &[text, text, done]),
        [format!(
            "content after the finish reason: {}",
            &text[12..text.len() - 2]
        )]
    );
    assert_eq!(
        problems(Chat, &[r#"{"error":{"code":"a"}}"#]),
        [r#"an error without a message: {"code":"a"}"#]
    );
    let delta = r#"{"type":"response.output_text.delta","delta":"a"}"#;
    let longer = r#"{"type":"response.output_text.done","text":"ab"}"#;
    assert_eq!(
        problems(Responses, &[delta, longer]),
        [r#"text: "a" was streamed, "ab" is at the end"#]
    );
    let stray = r#"{"type":"content_block_stop","index":0}"#;
    assert_eq!(
        problems(Messages, &[stray]),
        [format!("the end of no block: {stray}")]
    );
}

#[test]
fn the_end_of_an_answer_has_documented_reasons() {
    let ending = |reason: &str| {
        let chunk = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{reason}"}}]}}"#);
        let stream = format!("data: {chunk}\n\ndata: [DONE]\n\n");
        Reading::of(Chat, stream.as_bytes(), true, 1).ending(Chat)
    };
    assert_eq!(ending("stop"), Ending::Complete);
    assert_eq!(
        ending("length"),
        Ending::Incomplete(Reason::MaxOutputTokens)
    );
    assert_eq!(
        ending("content_filter"),
        Ending::Incomplete(Reason::ContentFilter)
    );
    assert_eq!(ending("eos"), Ending::Other("eos".to_owned()));
    let incomplete = read(Responses, "responses-stream-incomplete.sse");
    let cut = Ending::Incomplete(Reason::MaxOutputTokens);
    assert_eq!(incomplete.ending(Responses), cut);
    let failed = read(Messages, "messages-stream-error.sse");
    assert_eq!(failed.ending(Messages), Ending::Failure);
    assert_eq!(Reading::default().ending(Images), Ending::Missing);
}

const CALLS: &str = r#"Checking both cities.{"city":"Oslo"}{"city":"Rome"}"#;
const COMPARED: &str = "Compare 9.80 with 9.11.9.8 is larger.";
const DIGITS: &str = "Compared the two numbers digit by digit.9.8 is larger.";
