//! Chat Completions: <https://platform.openai.com/docs/api-reference/chat-streaming/streaming>.

use engine::EngineError;
use relay::Chat;
use vendor::Protocol;

use super::{contradiction, json, passed, relayed, translated};

/// The chunks of a relayed stream of two choices, which both end.
#[track_caller]
fn chunks(events: &[&str]) -> Vec<String> {
    let end = r#"{"object":"chat.completion.chunk","choices":[{"index":1,"delta":{},"finish_reason":"stop"},{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let mut chunks = passed(Chat::with_choices(2), &[events, &[end, "[DONE]"]].concat());
    chunks.truncate(events.len());
    chunks
}

fn chunk(choices: &str) -> String {
    format!(r#"{{"object":"chat.completion.chunk","choices":[{choices}]}}"#)
}

/// The chunk with other choices.
#[track_caller]
fn becomes(choices: &str, mended: &str) {
    assert_eq!(chunks(&[&chunk(choices)]), [chunk(mended)]);
}

#[test]
fn content_is_mended_in_the_choice_that_has_it() {
    becomes(
        r#"{"index":1,"delta":{"content":"ONE"}},{"index":0,"delta":{"content":[{"type":"text","text":"ZERO"}]}}"#,
        r#"{"index":1,"delta":{"content":"ONE"}},{"index":0,"delta":{"content":"ZERO"}}"#,
    );
    becomes(
        r#"{"index":1,"delta":{"content":["ONE"]}},{"index":0,"delta":{"content":["ZE",null,"RO"]}}"#,
        r#"{"index":1,"delta":{"content":"ONE"}},{"index":0,"delta":{"content":"ZERO"}}"#,
    );
    // Two pieces of one choice in a chunk.
    becomes(
        r#"{"index":0,"delta":{"content":["a"]}},{"index":0,"delta":{"content":["b"]}}"#,
        r#"{"index":0,"delta":{"content":"a"}},{"index":0,"delta":{"content":"b"}}"#,
    );
}

#[test]
fn calls_are_mended_in_the_choice_that_has_them() {
    becomes(
        r#"{"index":1,"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"keep","arguments":"{}"}}]}},{"index":0,"delta":{"tool_calls":[{"id":"a","type":"function","function":{"name":"delete_all","arguments":{"x":1}}}]}}"#,
        r#"{"index":1,"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"keep","arguments":"{}"}}]}},{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"delete_all","arguments":"{\"x\":1}"}}]}}"#,
    );
    // The id is half of the SHA-256 of `.0.0`.
    becomes(
        r#"{"index":1,"delta":{"function_call":{"name":"f","arguments":"{}"}}},{"index":0,"delta":{"content":"a"}}"#,
        r#"{"index":1,"delta":{"tool_calls":[{"function":{"arguments":"{}","name":"f"},"index":0,"id":"call_fa3e7d80c395b8740de9c194e1ae9441","type":"function"}]}},{"index":0,"delta":{"content":"a"}}"#,
    );
}

#[test]
fn missing_members_are_added_to_the_choice_that_lacks_them() {
    becomes(
        r#"{"index":1,"delta":{"content":"a"}},{"index":0}"#,
        r#"{"index":1,"delta":{"content":"a"}},{"delta":{},"index":0}"#,
    );
    assert_eq!(
        chunks(&[&chunk(r#"{"index":null,"delta":{"content":"a"}}"#)]),
        [chunk(r#"{"index":0,"delta":{"content":"a"}}"#)]
    );
}

/// A translated answer contains choice 0 only.
#[test]
fn choices_from_one_are_relayed_and_not_translated() {
    let one = chunk(r#"{"index":1,"delta":{"content":"a"},"finish_reason":"stop"}"#);
    let two = chunk(r#"{"index":2,"delta":{"content":"b"},"finish_reason":"stop"}"#);
    let events = [&*one, &*two, "[DONE]"];
    assert_eq!(passed(Chat::with_choices(2), &events), events);
    let (_, end) = crate::streams::parse_stream(Protocol::Chat, &events);
    assert!(matches!(end, Err(EngineError::Truncated(_))), "{end:?}");
    let reply = one.replace("delta", "message").into_bytes();
    assert_eq!(relay::reply::<Chat>(&reply, "ours").unwrap().0, reply);
    let end = sluicegate_translate::outbound::reply(Protocol::Chat, &reply);
    assert!(matches!(end, Err(EngineError::Truncated(_))), "{end:?}");
}

#[test]
fn several_choices_without_an_index_are_a_contradiction() {
    let two = chunk(r#"{"delta":{"content":"a"}},{"delta":{"content":"b"}}"#);
    assert_eq!(
        contradiction(Chat::default(), Protocol::Chat, &[&two]),
        "malformed event: several choices, of which one has no index"
    );
}

/// A chunk of a server that counts its calls from 1, and repeats their id and name.
#[test]
fn the_index_of_a_call_stays_that_of_the_upstream() {
    let piece = |arguments: &str| {
        chunk(&format!(
            r#"{{"index":0,"delta":{{"tool_calls":[{{"index":1,"id":"a","function":{{"name":"f","arguments":"{arguments}"}}}}]}}}}"#
        ))
    };
    let rest =
        chunk(r#"{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":":1}"}}]}}"#);
    assert_eq!(
        chunks(&[&piece(r#"{\"x\""#), &piece(":1}")]),
        [piece(r#"{\"x\""#), rest]
    );
}

/// Some servers number every call 0.
#[test]
fn two_calls_with_one_index_get_two() {
    let piece = |index: u32, id: &str| {
        chunk(&format!(
            r#"{{"index":0,"delta":{{"tool_calls":[{{"index":{index},"id":"{id}","function":{{"name":"f","arguments":""}}}}]}}}}"#
        ))
    };
    let rest = |index: u32| {
        chunk(&format!(
            r#"{{"index":0,"delta":{{"tool_calls":[{{"index":{index},"function":{{"arguments":"{{}}"}}}}]}}}}"#
        ))
    };
    let others = piece(1, "b").replace(r#""id":"b""#, r#""id":"b","type":"function""#);
    let mended = chunks(&[&piece(0, "a"), &piece(0, "b"), &rest(0), &piece(1, "c")]);
    let calls = |chunk: &str| json(chunk)["choices"][0]["delta"]["tool_calls"][0].clone();
    assert_eq!(calls(&mended[1]), calls(&others));
    assert_eq!(mended[2], rest(1));
    assert_eq!(
        calls(&mended[3])["index"],
        2,
        "the next call has another index"
    );
}

#[test]
fn members_that_clients_do_not_know_stay_in_a_mended_call() {
    becomes(
        r#"{"index":0,"delta":{"tool_calls":[{"id":"a","type":"function","extra_content":{"google":{"thought_signature":"s"}},"function":{"name":"f","arguments":"{}"}}]}}"#,
        r#"{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","extra_content":{"google":{"thought_signature":"s"}},"function":{"name":"f","arguments":"{}"}}]}}"#,
    );
}

#[test]
fn two_pieces_of_one_call_in_a_chunk_are_both_kept() {
    becomes(
        r#"{"index":0,"delta":{"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{"}},{"id":"a","function":{"arguments":"}"}}]}}"#,
        r#"{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{"}},{"index":0,"function":{"arguments":"}"}}]}}"#,
    );
}

/// <https://github.com/BerriAI/litellm/issues/12513>
#[test]
fn the_text_null_is_left_out_of_a_named_call() {
    let piece = |id: &str, name: &str| {
        chunk(&format!(
            r#"{{"index":0,"delta":{{"tool_calls":[{{"index":0,{id}"function":{{{name}"arguments":""}}}}]}}}}"#
        ))
    };
    let named = piece(r#""id":"a","type":"function","#, r#""name":"f","#);
    let null = r#""name":"null","#;
    for (id, name, mended_id) in [
        (r#""id":"null","#, null, ""),
        (r#""id":"null","#, r#""name":"f","#, ""),
        (r#""id":"null","#, "", ""),
        (r#""id":"","#, null, r#""id":"","#),
        ("", null, ""),
    ] {
        let mended = chunks(&[&named, &piece(id, name)]);
        assert_eq!(mended, [named.clone(), piece(mended_id, "")]);
    }
}

/// The SDKs append every name to the one before, so it may be a piece, but no repetition of more than the
/// name so far.
#[test]
fn a_call_with_two_names_is_a_contradiction() {
    let piece = |name: &str| {
        chunk(&format!(
            r#"{{"index":0,"delta":{{"tool_calls":[{{"index":0,"function":{{"name":"{name}","arguments":""}}}}]}}}}"#
        ))
    };
    assert_eq!(
        contradiction(
            Chat::default(),
            Protocol::Chat,
            &[&piece("get_"), &piece("get_weather")]
        ),
        "contradicting events: a call with two names"
    );
}

#[test]
fn the_name_of_the_choices_may_have_an_escape() {
    let finish = r#"{"object":"chat.completion.chunk","\u0063hoices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
    assert_eq!(
        passed(Chat::default(), &[finish, "[DONE]"]),
        [finish, "[DONE]"]
    );
    // Clients iterate over the choices.
    let null = r#"{"object":"chat.completion.chunk","choices":null,"usage":{"prompt_tokens":1}}"#;
    assert_eq!(
        passed(Chat::default(), &[finish, null, "[DONE]"])[1],
        null.replace(r#""choices":null"#, r#""choices":[]"#)
    );
}

#[test]
fn the_name_of_the_usage_may_have_an_escape() {
    let chunk = r#"{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}],"us\u0061ge":{"prompt_tokens":1,"prompt_tokens_\u0064etails":{}}}"#;
    let kept = |usage: &str| {
        let start = chunk.split_once(r#","us"#).unwrap().0;
        format!("{start}{usage}}}")
    };
    assert_eq!(
        passed(Chat::default(), &[chunk, "[DONE]"])[0],
        kept(r#","us\u0061ge":{"prompt_tokens":1}"#)
    );
    assert_eq!(
        passed(Chat::default().hiding_usage(), &[chunk, "[DONE]"])[0],
        kept("")
    );
}

/// JSON.stringify writes a half of a surrogate pair as an escape of its own.
#[test]
fn the_half_of_a_surrogate_pair_waits_for_the_other() {
    let delta = |content: &str| {
        chunk(&format!(
            r#"{{"index":0,"delta":{{"content":"{content}"}}}}"#
        ))
    };
    let finish = chunk(r#"{"index":0,"delta":{},"finish_reason":"stop"}"#);
    let events = [&*delta(r"a\ud83d"), &*delta(r"\ude00b"), &*finish, "[DONE]"];
    assert_eq!(
        passed(Chat::default(), &events),
        [&*delta("a"), &*delta(r"\ud83d\ude00b"), &*finish, "[DONE]"]
    );
    assert_eq!(translated(Protocol::Chat, &events).text, "a\u{1f600}b");
    for rest in [delta("b"), finish.clone()] {
        let events = [&*delta(r"a\ud83d"), &*rest, &*finish, "[DONE]"];
        assert_eq!(
            contradiction(Chat::default(), Protocol::Chat, &events),
            "contradicting events: half of a surrogate pair without the other half"
        );
    }
}

#[test]
fn a_half_in_the_arguments_waits_for_its_own_call() {
    let piece = |index: u32, head: &str, arguments: &str| {
        chunk(&format!(
            r#"{{"index":0,"delta":{{"tool_calls":[{{"index":{index},{head}"function":{{"name":"f","arguments":"{arguments}"}}}}]}}}}"#
        ))
    };
    let rest = |arguments: &str| {
        chunk(&format!(
            r#"{{"index":0,"delta":{{"tool_calls":[{{"index":0,"function":{{"arguments":"{arguments}"}}}}]}}}}"#
        ))
    };
    let end = chunk(r#"{"index":0,"delta":{},"finish_reason":"tool_calls"}"#);
    let output = translated(
        Protocol::Chat,
        &[
            &piece(0, r#""id":"a","#, r#"\"\ud83d"#),
            &piece(1, r#""id":"b","#, r#"\"x\""#),
            &rest(r#"\ude00\""#),
            &end,
            "[DONE]",
        ],
    );
    let arguments = output
        .calls
        .iter()
        .map(|(.., arguments)| arguments.as_str());
    assert_eq!(arguments.collect::<Vec<_>>(), ["\"\u{1f600}\"", "\"x\""]);
}

#[test]
fn null_beside_a_list_of_thoughts_is_no_reasoning() {
    let list = r#"[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]},{"type":"text","text":"a"}]"#;
    for (beside, mended) in [
        (
            r#","reasoning_content":null"#,
            r#","reasoning_content":"Hm.""#,
        ),
        (
            r#","reasoning_content":"""#,
            r#","reasoning_content":"Hm.""#,
        ),
        // Servers that have several places for it send the same in each.
        (
            r#","reasoning_content":"Hm.""#,
            r#","reasoning_content":"Hm.""#,
        ),
        (
            r#","reasoning_content":"So? ""#,
            r#","reasoning_content":"So? Hm.""#,
        ),
    ] {
        let own = chunk(&format!(
            r#"{{"index":0,"delta":{{"content":{list}{beside}}}}}"#
        ));
        let mended = chunk(&format!(
            r#"{{"index":0,"delta":{{"content":"a"{mended}}}}}"#
        ));
        assert_eq!(chunks(&[&own]), [mended], "{beside}");
    }
}

#[test]
fn a_message_in_place_of_a_delta_is_passed_as_one() {
    becomes(
        r#"{"index":1,"delta":{"content":"b"}},{"index":0,"delta":null,"message":{"role":"assistant","content":"a"}}"#,
        r#"{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"role":"assistant","content":"a"}}"#,
    );
}

/// Each choice has its own whole message at the end, which repeats its deltas.
#[test]
fn a_whole_reply_repeats_the_deltas_of_each_choice() {
    let deltas =
        chunk(r#"{"index":1,"delta":{"content":"longer"}},{"index":0,"delta":{"content":"a"}}"#);
    let whole = |text: &str| {
        format!(
            r#"{{"object":"chat.completion","choices":[{{"index":0,"message":{{"content":"a"}},"finish_reason":"stop"}},{{"index":1,"message":{{"content":"{text}"}},"finish_reason":"stop"}}]}}"#
        )
    };
    let events = |text| relayed(Chat::with_choices(2), &[&deltas, &whole(text), "[DONE]"]).1;
    events("longer").unwrap();
    assert!(events("another").is_err());
}

#[test]
fn every_model_of_a_reply_and_of_a_chunk_is_renamed() {
    let twice = r#"{"model":"theirs","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}],"m\u006fdel":"theirs"}"#;
    let ours = twice.replace("theirs", "ours");
    assert_eq!(passed(Chat::default(), &[twice, "[DONE]"])[0], ours);
    let reply = twice.replace("delta", "message");
    let (body, _) = relay::reply::<Chat>(reply.as_bytes(), "ours").unwrap();
    assert_eq!(
        String::from_utf8(body).unwrap(),
        ours.replace("delta", "message")
    );
}

#[test]
fn choices_of_a_plain_reply_are_mended_by_their_position() {
    let reply = |zero: &str, one: &str| {
        format!(
            r#"{{"model":"ours","choices":[{{"index":1,"message":{{"content":{one}}},"finish_reason":"stop"}},{{"index":0,"message":{{"content":{zero}}},"finish_reason":"stop"}}]}}"#
        )
    };
    let (body, _) =
        relay::reply::<Chat>(reply(r#"["ZERO"]"#, r#""ONE""#).as_bytes(), "ours").unwrap();
    assert_eq!(
        String::from_utf8(body).unwrap(),
        reply(r#""ZERO""#, r#""ONE""#)
    );
    let twice = reply("\"a\"", "\"b\"").replace(r#""index":1"#, r#""index":0"#);
    assert!(relay::reply::<Chat>(twice.as_bytes(), "ours").is_err());
}

#[test]
fn parts_without_an_update_are_reported_as_left_out() {
    let parts = chunk(
        r#"{"index":0,"delta":{"content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"no"},{"type":"image_url","image_url":{"url":"x"}}]},"finish_reason":"stop"}"#,
    );
    assert_eq!(passed(Chat::default(), &[&parts, "[DONE]"])[0], parts);
    let output = translated(Protocol::Chat, &[&parts, "[DONE]"]);
    assert_eq!((&*output.text, &*output.refusal), ("a", "no"));
}
