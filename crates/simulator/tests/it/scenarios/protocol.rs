//! Deviations from the protocols that are common among servers.

use serde_json::{Value, json};
use sluicegate_simulator::Protocol;
use testkit::End;

use super::{Exchange, stream};
use crate::folds::decode;
use crate::samples::{sample, thinking, with_tools};

#[test]
fn responses_fail_by_an_event_of_their_own() {
    for (name, member) in [
        ("responses-error-event", "error"),
        ("responses-error-event-flat", "code"),
    ] {
        let text = stream(name, Protocol::Responses).response().body;
        let events = decode(&text).unwrap();
        let [_, _, last] = &events[..] else {
            panic!("{events:?}")
        };
        let last: Value = serde_json::from_str(last).unwrap();
        assert_eq!(
            (&last["type"], &last["sequence_number"]),
            (&json!("error"), &json!(2))
        );
        assert!(!last[member].is_null());
        assert!(stream(name, Protocol::Responses).fold().is_err());
        assert!(
            stream(name, Protocol::Messages).fold().is_ok(),
            "other protocols are not affected"
        );
    }
}

/// The chunks of a `vllm` stream.
fn chunks(body: &Value) -> Vec<Value> {
    let answer = Exchange::of(Protocol::Chat, body).response();
    assert_eq!(answer.end, End::Complete);
    assert!(answer.text().starts_with(": connected\n\n"));
    decode(&answer.body)
        .unwrap()
        .iter()
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

#[test]
fn open_servers_speak_chat_in_their_own_way() {
    let body = thinking(
        Protocol::Chat,
        sample(Protocol::Chat, "vllm", "Hello.", true),
    );
    let chunks = chunks(&body);
    assert!(
        chunks
            .iter()
            .all(|chunk| chunk["choices"][0]["delta"]["role"] == "assistant")
    );
    let gather = |name: &str| -> String {
        chunks
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["delta"][name].as_str())
            .collect()
    };
    assert_eq!(gather("reasoning"), "The user said something. I answer it.");
    assert_eq!(
        (
            gather("reasoning_content").as_str(),
            gather("content").as_str()
        ),
        ("", "You said: Hello.")
    );
    let (last, before) = chunks.split_last().unwrap();
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert!(last["usage"]["total_tokens"].is_number());
    assert!(before.iter().all(|chunk| chunk["usage"].is_null()));
}

#[test]
fn open_servers_call_in_their_own_way() {
    let mut body = with_tools(
        Protocol::Chat,
        sample(Protocol::Chat, "vllm", "Call in parallel.", true),
        2,
    );
    let chunks = chunks(&body);
    let pieces: Vec<&Value> = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].get(0))
        .collect();
    assert!(
        pieces
            .iter()
            .all(|piece| piece.get("index").is_none() && piece["id"].is_string())
    );
    let mut ids: Vec<_> = pieces
        .iter()
        .map(|piece| piece["id"].as_str().unwrap())
        .collect();
    ids.dedup();
    assert_eq!(ids.len(), 2);
    assert_eq!(
        chunks.last().unwrap()["choices"][0]["finish_reason"],
        "stop"
    );

    body["stream"] = false.into();
    let reply = Exchange::of(Protocol::Chat, &body).response().json();
    let call = &reply["choices"][0]["message"]["tool_calls"][1];
    assert_eq!(
        call["function"],
        json!({"name": "get_time", "arguments": {"city": "example"}})
    );
    assert_eq!(reply["choices"][0]["finish_reason"], "stop");
}

#[test]
fn a_cloud_adds_filter_results() {
    let mut exchange = stream("filtered", Protocol::Chat);
    let events = decode(&exchange.response().body).unwrap();
    assert_eq!(events.len(), exchange.honest_events().len() + 1);
    let first: Value = serde_json::from_str(&events[0]).unwrap();
    assert_eq!((&first["choices"], &first["id"]), (&json!([]), &json!("")));
    assert!(first["prompt_filter_results"].is_array());
    let second: Value = serde_json::from_str(&events[1]).unwrap();
    assert!(second["choices"][0]["content_filter_results"]["hate"].is_object());
    let reply = super::plain("filtered", Protocol::Chat).response().json();
    assert!(
        reply["prompt_filter_results"].is_array()
            && reply["choices"][0]["content_filter_results"].is_object()
    );
}

#[test]
fn thoughts_stand_in_the_text() {
    let expected =
        "<think>The user said something. I answer it.</think>You said: one two three four";
    let folded = stream("think-tags", Protocol::Chat).fold().unwrap();
    assert_eq!(folded["choices"][0]["message"]["content"], expected);
    let reply = super::plain("think-tags", Protocol::Chat).response().json();
    assert_eq!(reply["choices"][0]["message"]["content"], expected);
}
