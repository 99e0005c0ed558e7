//! Every client protocol against every upstream protocol, over all kinds of replies.
//!
//! The bytes on the wire are in the snapshots: the upstream request and the client response. Beside
//! them each stream keeps its grammar, and its fold is the plain reply.

use serde_json::Value;
use simulator::{Protocol, Simulator};
use testkit::Response;
use testkit::requests::{Question, protocol_name};

use crate::GATEWAY;
use crate::folded;
use crate::redact::Redactor;

macro_rules! pairs {
    ($($name:ident: $client:ident, $upstream:ident;)*) => {$(
        #[test]
        fn $name() {
            pair(Protocol::$client, Protocol::$upstream);
        }
    )*};
}

pairs! {
    responses_of_responses: Responses, Responses;
    responses_of_chat: Responses, Chat;
    responses_of_messages: Responses, Messages;
    chat_of_responses: Chat, Responses;
    chat_of_chat: Chat, Chat;
    chat_of_messages: Chat, Messages;
    messages_of_responses: Messages, Responses;
    messages_of_chat: Messages, Chat;
    messages_of_messages: Messages, Messages;
}

/// Sends all questions, plain and streamed.
fn pair(client: Protocol, upstream: Protocol) {
    let (gateway, simulator) = GATEWAY.with_upstream("");
    for question in Question::ALL {
        let [plain, streamed] = [false, true].map(|stream| {
            let response = gateway.ask(
                client,
                &question.body(client, protocol_name(upstream), stream),
            );
            keep(client, upstream, question, &simulator, &response);
            response
        });
        grammar::stream(client, &streamed).reply();
        let (mut folded, mut plain) = (
            folded::reply(client, &streamed),
            grammar::plain(client, &plain),
        );
        blind(&mut folded);
        blind(&mut plain);
        assert_eq!(
            folded,
            whole(client, plain),
            "{question:?}: the fold is the plain reply"
        );
    }
    gateway.await_quiet();
    assert_eq!(gateway.metric("sluicegate_panics_total"), 0.0);
}

/// Compares requests and responses with their snapshot.
fn keep(
    client: Protocol,
    upstream: Protocol,
    question: Question,
    simulator: &Simulator,
    response: &Response,
) {
    let request = simulator
        .requests()
        .pop()
        .expect("a request of the gateway");
    let mut redactor = Redactor::new();
    let request_json = serde_json::to_string_pretty(&request.json()).unwrap();
    let dropped = response
        .header("x-sluicegate-dropped")
        .map(|names| format!("dropped: {names}\n"));
    let kind = response.header("content-type").unwrap_or_default();
    let text = format!(
        "{} {}\n{}\n\n{} {kind}\n{}\n{}",
        request.method,
        request.path,
        redactor.redact(&request_json),
        response.status,
        dropped.unwrap_or_default(),
        redactor.redact(response.text()),
    );
    let mode = if kind.starts_with("text/event-stream") {
        "stream"
    } else {
        "plain"
    };
    let name = format!("{}.{mode}", question.name());
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!(
        "snapshots/{}_of_{}",
        protocol_name(client),
        protocol_name(upstream)
    ));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// The plain reply without members that only Chat servers put into this form.
fn whole(client: Protocol, mut plain: Value) -> Value {
    if client == Protocol::Chat {
        plain["choices"][0]["message"]
            .as_object_mut()
            .unwrap()
            .remove("annotations");
    }
    plain
}

/// Replaces values that differ between replies, ids and times, by the name of their type.
fn blind(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match name.as_str() {
                    "id" | "call_id" | "signature" | "data" if value.is_string() => {
                        *value = "string".into();
                    }
                    "created" | "created_at" | "completed_at" if value.is_number() => {
                        *value = "number".into();
                    }
                    _ => blind(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(blind),
        _ => {}
    }
}
