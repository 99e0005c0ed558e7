//! Checks the translations against their tables, and properties that hold for any output of a
//! model.

#![allow(clippy::unwrap_used, reason = "test helpers may panic")]

mod answers;
mod caching;
mod client_tools;
mod clients;
mod conversations;
mod ends;
mod fidelity;
mod field_map;
mod histories;
mod images;
mod logprobs;
mod outbound_requests;
mod provenance;
mod readings;
mod requests;
mod round_trip;
mod rules;
mod schemas;
mod stream_laws;
mod streams;
mod vendor_rules;
mod vendor_rules_messages;

use sluicegate_translate::inbound::Stamp;

/// The stamp of all answers.
fn stamp() -> Stamp {
    Stamp {
        bits: 7,
        created_at: NOW,
    }
}

/// A minimal request in each protocol.
fn responses_request() -> responses::ValidRequest {
    let body = br#"{"model":"m","input":[{"role":"user","content":"Hi."}],"tools":[{"type":"function","name":"f"}]}"#;
    responses::Request::read(body)
        .unwrap()
        .validate(&responses::Rules::default())
        .unwrap()
}

fn chat_request() -> chat::ValidRequest {
    let body = br#"{"model":"m","messages":[{"role":"user","content":"Hi."}],"stream_options":{"include_usage":true}}"#;
    chat::Request::read(body)
        .unwrap()
        .validate(&chat::Rules::default())
        .unwrap()
}

fn messages_request() -> messages::ValidRequest {
    let body = br#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi."}]}"#;
    messages::Request::read(body)
        .unwrap()
        .validate(&messages::Rules::default())
        .unwrap()
}

const NOW: i64 = 1_789_000_000;
