//! Parses every fixture, checks that nothing is lost, and compares its meaning with a snapshot.

use serde_json::Value;
use sluicegate_chat::{Completion, Request, Rules};
use strategies::without_nulls;

use crate::{events, fold, text};

#[test]
fn requests_are_valid_and_nothing_is_lost() {
    insta::glob!("fixtures/chat-request-*.json", |path| {
        let body = std::fs::read(path).unwrap();
        let request = Request::read(&body)
            .unwrap()
            .validate(&Rules::default())
            .unwrap()
            .into_inner();
        let written = serde_json::to_value(&request).unwrap();
        assert_eq!(
            without_nulls(written),
            without_nulls(serde_json::from_slice(&body).unwrap())
        );
        insta::assert_debug_snapshot!(request);
    });
}

#[test]
fn replies_are_read_and_nothing_is_lost() {
    insta::glob!("fixtures/chat-response-*.json", |path| {
        let body = std::fs::read(path).unwrap();
        let reply: Completion = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            serde_json::to_value(&reply).unwrap(),
            serde_json::from_slice::<Value>(&body).unwrap()
        );
        insta::assert_debug_snapshot!(reply);
    });
}

#[test]
fn streams_are_within_the_grammar_and_amount_to_a_reply() {
    insta::glob!("fixtures/chat-stream-*.sse", |path| {
        let stream = std::fs::read_to_string(path).unwrap();
        let events = events(&stream);
        // A chunk without text may have `"content":null` or omit it: only this difference is not
        // preserved.
        assert_eq!(
            text(&events),
            stream.replace(",\"content\":null", ""),
            "serialized as received"
        );
        match fold(&events) {
            Ok(reply) => insta::assert_json_snapshot!(reply),
            Err(error) => insta::assert_snapshot!(error),
        }
    });
}
