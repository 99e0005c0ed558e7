//! Messages: <https://platform.claude.com/docs/en/build-with-claude/streaming>.

use relay::Messages;
use vendor::Protocol;

use super::{contradiction, passed, relayed, translated};

const START: &str = r#"{"type":"message_start","message":{"type":"message","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}"#;
const TEXT: &str =
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
const STOP: &str = r#"{"type":"content_block_stop","index":0}"#;
const REASON: &str =
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#;
const END: &str = r#"{"type":"message_stop"}"#;

fn delta(index: &str, delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta",{index}"delta":{{{delta}}}}}"#)
}

fn text(index: u32, text: &str) -> String {
    delta(
        &format!(r#""index":{index},"#),
        &format!(r#""type":"text_delta","text":"{text}""#),
    )
}

/// SDKs append a delta to the content of its block if both have the same kind, and ignore other
/// deltas.
#[test]
fn a_delta_of_another_kind_than_its_block_is_a_contradiction() {
    let call = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#;
    let thinking = r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#;
    let index = r#""index":0,"#;
    for (block, other) in [
        (TEXT, r#""type":"thinking_delta","thinking":"a""#),
        (TEXT, r#""type":"input_json_delta","partial_json":"{}""#),
        (TEXT, r#""type":"text_delta","text":"a","thinking":"b""#),
        (TEXT, r#""type":"other_delta","text":"a""#),
        (thinking, r#""type":"text_delta","text":"a""#),
        (call, r#""type":"text_delta","text":"a""#),
    ] {
        let events = [START, block, &delta(index, other), STOP, REASON, END];
        assert_eq!(
            contradiction(Messages::default(), Protocol::Messages, &events),
            "contradicting events: a delta of another kind than its block",
            "{other}"
        );
    }
}

#[test]
fn content_within_other_events_is_a_contradiction() {
    let start = START.replace("[]", r#"[{"type":"text","text":"Hi"}]"#);
    assert_eq!(
        contradiction(Messages::default(), Protocol::Messages, &[&start]),
        "contradicting events: content within message_start"
    );
    let late = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","text":"Hi"}}"#;
    assert_eq!(
        contradiction(Messages::default(), Protocol::Messages, &[START, late]),
        "contradicting events: content within message_delta"
    );
    // An empty block has none.
    let empty = START.replace("[]", r#"[{"type":"text","text":""}]"#);
    passed(
        Messages::default(),
        &[&empty, TEXT, &text(0, "a"), STOP, REASON, END],
    );
}

/// The official SDKs append each block that starts to the content, and find it by its index there:
/// <https://github.com/anthropics/anthropic-sdk-python/blob/main/src/anthropic/lib/streaming/_messages.py>.
#[test]
fn blocks_are_numbered_in_the_order_of_their_starts() {
    let at =
        |event: &str, index: u32| event.replace(r#""index":0"#, &format!(r#""index":{index}"#));
    let events = |first, second| {
        [
            START.to_owned(),
            at(TEXT, first),
            text(first, "a"),
            at(STOP, first),
            at(TEXT, second),
            text(second, "b"),
            text(second, "c"),
            at(STOP, second),
            REASON.to_owned(),
            END.to_owned(),
        ]
    };
    for (first, second) in [(0, 1), (0, 2), (1, 2), (1, 0)] {
        let sent = events(first, second);
        let sent: Vec<_> = sent.iter().map(String::as_str).collect();
        assert_eq!(
            passed(Messages::default(), &sent),
            events(0, 1),
            "{first} {second}"
        );
        assert_eq!(translated(Protocol::Messages, &sent).text, "abc");
    }
}

#[test]
fn blocks_without_an_index_are_numbered() {
    let [block, stop] = [TEXT, STOP].map(|event| event.replace(r#""index":0,"#, ""));
    let stop = stop.replace(r#","index":0"#, "");
    let piece = |text: &str| delta("", &format!(r#""type":"text_delta","text":"{text}""#));
    let events = [
        START,
        &block,
        &piece("a"),
        &piece("b"),
        &stop,
        &block,
        &piece("c"),
        &piece("d"),
        &stop,
        REASON,
        END,
    ];
    let indexes: Vec<_> = passed(Messages::default(), &events)
        .iter()
        .map(|event| super::json(event)["index"].as_u64())
        .collect();
    let (zero, one) = (Some(0), Some(1));
    assert_eq!(
        indexes,
        [None, zero, zero, zero, zero, one, one, one, one, None, None]
    );
    assert_eq!(translated(Protocol::Messages, &events).text, "abcd");
}

/// SDKs would append the second input to the first.
#[test]
fn blocks_that_are_all_numbered_zero_get_indexes_of_their_own() {
    let call = |id: &str| {
        format!(
            r#"{{"type":"content_block_start","index":0,"content_block":{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}}}"#
        )
    };
    let input = delta(
        r#""index":0,"#,
        r#""type":"input_json_delta","partial_json":"{}""#,
    );
    let reason = REASON.replace("end_turn", "tool_use");
    let events = [
        START,
        &call("a"),
        &input,
        STOP,
        &call("b"),
        &input,
        STOP,
        &reason,
        END,
    ];
    let passed = passed(Messages::default(), &events);
    assert_eq!(passed[..4], events[..4]);
    for (mended, own) in passed[4..7].iter().zip(&events[4..7]) {
        assert_eq!(*mended, own.replace(r#""index":0"#, r#""index":1"#));
    }
}

#[test]
fn a_delta_without_a_type_gets_that_of_its_block() {
    let bare = delta(r#""index":0,"#, r#""text":"a""#);
    let typed = delta(r#""index":0,"#, r#""type":"text_delta","text":"a""#);
    let passed = passed(
        Messages::default(),
        &[START, TEXT, &bare, &bare, STOP, REASON, END],
    );
    assert_eq!(passed[2..4], [typed.clone(), typed]);
}

/// Blocks may be open at the same time. A translated answer has one text, so it fails.
#[test]
fn interleaved_texts_are_relayed_and_not_translated() {
    let [block, stop] = [TEXT, STOP].map(|event| event.replace(r#""index":0"#, r#""index":1"#));
    let events = [
        START,
        TEXT,
        &text(0, "a"),
        &block,
        &text(1, "c"),
        &text(0, "b"),
        STOP,
        &stop,
        REASON,
        END,
    ];
    assert_eq!(passed(Messages::default(), &events), events);
    let failed = crate::streams::parse_stream(Protocol::Messages, &events).1;
    let Err(engine::EngineError::Upstream(why)) = failed else {
        panic!("{failed:?}")
    };
    assert_eq!(why, "the pieces of several texts are out of their order");
}

#[test]
fn a_cut_pair_is_joined_within_its_block() {
    let events = [
        START,
        TEXT,
        &text(0, r"a\ud83d"),
        &text(0, r"\ude00"),
        STOP,
        REASON,
        END,
    ];
    let passed = passed(Messages::default(), &events);
    assert_eq!(passed[2..4], [text(0, "a"), text(0, r"\ud83d\ude00")]);
    assert_eq!(translated(Protocol::Messages, &events).text, "a\u{1f600}");
    let (_, end) = relayed(
        Messages::default(),
        &[START, TEXT, &text(0, r"a\ud83d"), STOP, REASON, END],
    );
    end.unwrap_err();
}

#[test]
fn every_model_of_a_message_is_renamed() {
    let start = START.replace(r#""role""#, r#""model":"theirs","model":"theirs","role""#);
    let events = [&*start, TEXT, &text(0, "a"), STOP, REASON, END];
    let passed = passed(Messages::default(), &events);
    assert_eq!(passed[0], start.replace("theirs", "ours"));
}
