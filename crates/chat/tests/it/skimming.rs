//! Tests that a request with skipped messages gets the same verdict as one that is read completely.

use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};
use sluicegate_chat::{Message, Request, Rules};

/// Messages of the most frequent forms.
const FREQUENT: [&str; 12] = [
    r#"{"role":"system","content":"Be brief."}"#,
    r#"{"role":"developer","content":[{"type":"text","text":"Be brief."}]}"#,
    r#"{"role":"user","content":"Hi. \"\u00e9\n\\","name":"ann"}"#,
    r#"{"content":[],"role":"user"}"#,
    r#"{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"text":"b","type":"text"}]}"#,
    r#"{"role":"assistant","content":"Hello.","refusal":null}"#,
    r#"{"role":"assistant","content":"Hello.","reasoning_content":"A greeting."}"#,
    r#"{"role":"assistant","content":"Hello.","reasoning":"A greeting.","tool_calls":[]}"#,
    r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}"#,
    r#"{"role":"assistant","tool_calls":[{"type":"function","function":{"arguments":"","name":"f"},"id":"c1"}]}"#,
    r#"{"role":"tool","tool_call_id":"c1","content":"7"}"#,
    r#"{"role":"tool","content":[{"type":"text","text":"7"}],"tool_call_id":"c1"}"#,
];

/// Messages that have to be read: some are valid, and others are not.
const OTHERS: [&str; 25] = [
    r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}"#,
    r#"{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}"#,
    r#"{"role":"user","content":[{"type":"text"}]}"#,
    r#"{"role":"user","content":[{"text":"a"}]}"#,
    r#"{"role":"user","content":[{"type":"text","text":"a","type":"text"}]}"#,
    r#"{"role":"user","content":null}"#,
    r#"{"role":"user","content":7}"#,
    r#"{"role":"user"}"#,
    r#"{"content":"Hi."}"#,
    r#"{"role":"user","content":"Hi.","content":"Hi."}"#,
    r#"{"role":"user","content":"Hi.","tool_call_id":"c1"}"#,
    r#"{"role":"user","content":"Hi.","tool_calls":[]}"#,
    r#"{"role":"user","content":"Hi.","x":1}"#,
    r#"{"role":"user","content":"\ud800"}"#,
    r#"{"role":"user","c\u006fntent":"Hi."}"#,
    r#"{"role":"critic","content":"Hi."}"#,
    r#"{"role":"function","name":"f","content":"Hi."}"#,
    r#"{"role":"assistant"}"#,
    r#"{"role":"assistant","content":null}"#,
    r#"{"role":"assistant","content":null,"tool_calls":[]}"#,
    r#"{"role":"assistant","content":null,"refusal":"No."}"#,
    r#"{"role":"assistant","tool_calls":[{"id":"c1","function":{"name":"f","arguments":""}}]}"#,
    r#"{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f"}}]}"#,
    r#"{"role":"assistant","tool_calls":[{"id":"c1","type":"custom","custom":{}}]}"#,
    r#"{"role":"tool","content":"7"}"#,
];

/// Members of a request besides its model and its messages; some are not valid.
const MEMBERS: [&str; 12] = [
    r#""stream":true"#,
    r#""stream_options":{"include_usage":true}"#,
    r#""temperature":0.5"#,
    r#""temperature":9"#,
    r#""max_tokens":1e3"#,
    r#""n":2"#,
    r#""tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]"#,
    r#""tool_choice":"required""#,
    r#""metadata":{"user_id":"u"}"#,
    r#""messages":[]"#,
    r#""functions":[]"#,
    r#""model":"m""#,
];

fn request(messages: &[&str], members: &[&str]) -> String {
    let messages = format!(r#""messages":[{}]"#, messages.join(","));
    let members: Vec<_> = [r#""model":"m""#, &messages]
        .into_iter()
        .chain(members.iter().copied())
        .collect();
    format!("{{{}}}", members.join(" , "))
}

/// Skims a request, and compares it with the one that is read, by the strictest rules. Returns true
/// if its messages were passed over.
fn is_skimmed(body: &str) -> bool {
    let Some(skimmed) = Request::skim(body.as_bytes()) else {
        return false;
    };
    let mut read = Request::read(body.as_bytes()).expect("a request that is skimmed can be read");
    let verdict = |request: Request| request.validate(&Rules::default()).map(drop);
    assert_eq!(verdict(skimmed.clone()), verdict(read.clone()), "{body}");
    let [Message::User(_)] = &*skimmed.messages else {
        panic!("{:?}", skimmed.messages)
    };
    read.messages.clone_from(&skimmed.messages);
    assert_eq!(skimmed, read, "{body}");
    true
}

#[test]
fn messages_of_frequent_forms_are_passed_over() {
    for message in FREQUENT {
        assert!(is_skimmed(&request(&[message], &[])), "{message}");
    }
    assert!(is_skimmed(&request(&FREQUENT, &MEMBERS[..3])));
    for message in OTHERS {
        assert!(
            !is_skimmed(&request(&[FREQUENT[0], message], &[])),
            "{message}"
        );
    }
    assert!(!is_skimmed(&request(&[], &[])));
}

/// A document with more bytes than a request may have values is read, which counts them.
#[test]
fn a_very_long_request_is_read() {
    let long = |length: usize| {
        let text = "a".repeat(length);
        request(&[&format!(r#"{{"role":"user","content":"{text}"}}"#)], &[])
    };
    assert!(is_skimmed(&long(900_000)));
    assert!(!is_skimmed(&long(1_000_000)));
}

fn messages() -> impl Strategy<Value = Vec<&'static str>> {
    let message = prop_oneof![12 => select(&FREQUENT[..]), 1 => select(&OTHERS[..])];
    prop::collection::vec(message, 0..4)
}

proptest! {
    /// A request has the same verdict with and without its messages, however it is changed.
    #[test]
    fn a_request_is_judged_alike_without_its_messages(
        messages in messages(),
        members in subsequence(&MEMBERS[..], 0..4),
        changes in prop::collection::vec((any::<Index>(), "[\\PC\u{1}\n\"\\\\,:{}\\[\\]0-9.eEu-]?"), 0..2),
    ) {
        let mut letters: Vec<String> = request(&messages, &members).chars().map(String::from).collect();
        for (at, letter) in changes {
            let at = at.index(letters.len());
            letters[at] = letter;
        }
        is_skimmed(&letters.concat());
    }
}

/// Servers put opaque data of their own beside the members of the protocol: OpenRouter into messages
/// (<https://openrouter.ai/docs/use-cases/reasoning-tokens>), Gemini into calls
/// (<https://ai.google.dev/gemini-api/docs/thought-signatures>).
#[test]
fn messages_with_undefined_members_are_found() {
    let without = [
        r#"{"role":"system","content":"Be brief."}"#,
        r#"{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}"#,
        r#"{"role":"assistant","content":"Hello.","reasoning":"A greeting.","tool_calls":[]}"#,
        r#"{"role":"assistant","tool_calls":[{"id":"c1","type":"custom","custom":{"name":"f","input":""}}]}"#,
        r#"{"role":"tool","tool_call_id":"c1","content":"7"}"#,
    ];
    let with = [
        r#"{"role":"system","content":"Be brief.","x":1}"#,
        r#"{"role":"user","content":"Hi.","extra_content":{}}"#,
        r#"{"role":"assistant","content":"Hello.","reasoning_details":[]}"#,
        r#"{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{}}]}"#,
        r#"{"role":"tool","tool_call_id":"c1","content":"7","thinking_blocks":[]}"#,
        r#"{"role":"critic","content":"Hi."}"#,
    ];
    let has_extra = |message: &str| {
        serde_json::from_str::<Message>(message)
            .unwrap()
            .has_extra()
    };
    assert_eq!(without.map(has_extra), [false; 5]);
    assert_eq!(with.map(has_extra), [true; 6]);
}
