//! Equivalent requests of two protocols have the same neutral form.

use engine::{AssistantPart, TextRequest, Turn};
use serde_json::Value;
use sluicegate_translate::inbound::{ClientProtocol, Responses};

use crate::clients::{named, neutral, read_responses};

/// Returns the neutral form of a request, without the fields that the other protocol cannot
/// represent.
fn shared(protocol: &str, body: &Value) -> TextRequest {
    let mut request = neutral(named(protocol), body.to_string().as_bytes())
        .unwrap()
        .unwrap()
        .request;
    request.tools.iter_mut().for_each(|tool| tool.strict = None);
    request.parallel_calls = request.parallel_calls.filter(|parallel| !parallel);
    for turn in &mut request.turns {
        let Turn::Assistant(parts) = turn else {
            continue;
        };
        for part in parts {
            if let AssistantPart::Reasoning { signature, .. } = part {
                *signature = None;
            }
        }
    }
    request
}

#[track_caller]
fn assert_same(fixture: &str) {
    let fixture: Value = serde_json::from_str(fixture).unwrap();
    let side =
        |protocol: &str, body: &str| shared(fixture[protocol].as_str().unwrap(), &fixture[body]);
    let (from, to) = (side("from", "input"), side("to", "output"));
    assert!(from.turns.len() >= 4, "{from:?}");
    assert_eq!(from, to);
}

#[test]
fn responses_and_chat() {
    assert_same(include_str!("fixtures/translate-responses-to-chat.json"));
}

#[test]
fn responses_and_messages() {
    assert_same(include_str!(
        "fixtures/translate-responses-to-messages.json"
    ));
}

#[test]
fn messages_and_chat() {
    assert_same(include_str!("fixtures/translate-messages-to-chat.json"));
}

#[test]
fn fields_outside_the_neutral_model_are_dropped() {
    let read = |body: &str| read_responses(body.as_bytes());
    let hosted = r#"{"model":"m","input":[{"role":"user","content":"Hi."}],"tools":[{"type":"web_search"}]}"#;
    assert_eq!(
        Responses::request(read(hosted).unwrap()).unwrap().dropped,
        ["tools[]"]
    );
    let unknown = r#"{"model":"m","input":[{"role":"user","content":"Hi."},
        {"type":"computer_call","call_id":"c","action":{}}]}"#;
    assert_eq!(
        Responses::request(read(unknown).unwrap()).unwrap().dropped,
        ["input[1]"]
    );
}
