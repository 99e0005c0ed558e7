//! Checks the stop reasons and the usage in each protocol against the tables in the fixtures.

use engine::{Stop, TextEvent, Usage};
use serde_json::{Value, json};
use sluicegate_translate::inbound::{Chat, ClientProtocol, Messages, Reply, Responses};

use crate::{NOW, chat_request, messages_request, responses_request, stamp};

/// Returns the reply of a model that outputs "Hi." and stops for this reason.
fn reply<D: ClientProtocol>(request: &D::Request, stop: Stop, usage: Option<Usage>) -> Value {
    let mut reply = Reply::<D>::new(request, &stamp());
    reply.event(TextEvent::Text("Hi.".to_owned()), NOW);
    if stop == Stop::ToolCalls {
        reply.event(
            TextEvent::Call {
                id: "call_1".to_owned(),
                name: "f".to_owned(),
            },
            NOW,
        );
        reply.event(TextEvent::Arguments("{}".to_owned()), NOW);
    }
    reply.event(TextEvent::Finished { stop, usage }, NOW);
    serde_json::to_value(reply.finish().unwrap()).unwrap()
}

fn replies(stop: &Stop, usage: Option<Usage>) -> [Value; 3] {
    [
        reply::<Responses>(&responses_request(), stop.clone(), usage),
        reply::<Chat>(&chat_request(), stop.clone(), usage),
        reply::<Messages>(&messages_request(), stop.clone(), usage),
    ]
}

#[test]
fn each_end_has_its_word_in_each_protocol() {
    let table: Value =
        serde_json::from_str(include_str!("fixtures/translate-stop-reasons.json")).unwrap();
    let rows = table["rows"].as_array().unwrap();
    let mut checked = 0;
    for row in rows {
        let stop = match row["meaning"].as_str().unwrap() {
            "natural end" => Stop::End,
            "custom stop string hit" => Stop::StopText("END".to_owned()),
            "output limit" => Stop::MaxTokens,
            "context window full" => Stop::ContextFull,
            "tool call" => Stop::ToolCalls,
            "refused or filtered" => Stop::Refused,
            "paused turn (upstream only)" => Stop::Paused,
            // A failure: tested in `answers`.
            _ => continue,
        };
        checked += 1;
        let [responses, chat, messages] = replies(&stop, None);
        assert_eq!(responses["status"], row["responses"]["status"], "{row}");
        let reason = row["responses"].get("reason").unwrap_or(&Value::Null);
        assert_eq!(
            responses["incomplete_details"]
                .get("reason")
                .unwrap_or(&Value::Null),
            reason,
            "{row}"
        );
        assert_eq!(chat["choices"][0]["finish_reason"], row["chat"], "{row}");
        assert_eq!(messages["stop_reason"], row["messages"], "{row}");
        let expected = if stop == Stop::StopText("END".to_owned()) {
            json!("END")
        } else {
            Value::Null
        };
        assert_eq!(messages["stop_sequence"], expected);
    }
    assert_eq!(checked, rows.len() - 1);
}

#[test]
fn usage_is_counted_as_each_protocol_defines() {
    let table: Value = serde_json::from_str(include_str!("fixtures/translate-usage.json")).unwrap();
    let usage = Usage {
        input: 100,
        cache_read: 40,
        cache_write: 10,
        output: 30,
        reasoning: 12,
        ..Usage::default()
    };
    let [responses, chat, messages] = replies(&Stop::End, Some(usage));
    assert_eq!(responses["usage"], table["responses"]);
    assert_eq!(chat["usage"], table["chat"]);
    for (name, count) in table["messages"].as_object().unwrap() {
        assert_eq!(&messages["usage"][name], count, "{name}");
    }
}

/// <https://github.com/zed-industries/zed/pull/62466>
#[test]
fn parts_of_the_reasoning_are_paragraphs_for_chat_clients() {
    let mut reply = Reply::<Chat>::new(&chat_request(), &stamp());
    for event in [
        TextEvent::Reasoning("**A".to_owned()),
        TextEvent::Reasoning("**".to_owned()),
        TextEvent::ReasoningSignature("S1".to_owned()),
        TextEvent::Reasoning("**B**".to_owned()),
        TextEvent::ReasoningSignature("S2".to_owned()),
        TextEvent::Text("Hi.".to_owned()),
        TextEvent::Finished {
            stop: Stop::End,
            usage: None,
        },
    ] {
        reply.event(event, NOW);
    }
    let reply = serde_json::to_value(reply.finish().unwrap()).unwrap();
    let message = &reply["choices"][0]["message"];
    assert_eq!(message["reasoning_content"], "**A**\n\n**B**");
}
