//! The same answers over WebSocket.

use std::sync::Arc;

use serde_json::Value;
use simulator::Protocol;
use testkit::dialects::{Case, Mode};
use testkit::events::data;
use testkit::requests::protocol_name;
use testkit::websocket::{Socket, is_end};
use testkit::{CLIENT_KEY, Gateway, in_parallel};

use crate::player::Player;
use crate::{Visit, gateway, visits};

/// Over WebSocket the messages of a response are the data of the events of a stream: of each case,
/// whether it is relayed, translated or broken.
#[test]
fn messages_are_the_events_of_a_stream() {
    let mut cases = Case::all();
    cases.extend(Case::recorded());
    let cases = Arc::new(cases);
    let mut visits = visits(&cases);
    visits.retain(|visit| visit.client == Protocol::Responses && visit.mode == Mode::Stream);
    assert!(visits.len() > 100, "{} visits", visits.len());
    let gateway = gateway(&visits, &Player::start(Arc::clone(&cases)).url);
    let differences = in_parallel(&visits, |visit| difference(visit, &gateway));
    let differences: Vec<_> = differences.into_iter().flatten().collect();
    assert_eq!(differences, [""; 0]);
}

/// Describes how the messages of a case differ from the events of its stream, if they do.
fn difference(visit: &Visit<'_>, gateway: &Gateway) -> Option<String> {
    let mut body = visit.body("Hello.");
    body["stream_options"] = serde_json::json!({"include_obfuscation": false});
    let response = gateway.ask(Protocol::Responses, &body);
    let mut socket = Socket::open(gateway, CLIENT_KEY);
    socket.create(&body);
    let (expected, found) = match response.status {
        200 => {
            let mut events = data(&response);
            events.retain(|event| event != "[DONE]");
            let messages = std::iter::repeat_with(|| socket.event_text()).take(events.len());
            (events, messages.collect())
        }
        status => {
            let event = socket.event();
            assert!(is_end(&event));
            let error = |status: &Value, error: &Value| vec![format!("{status} {error}")];
            let expected = error(&status.into(), &response.json()["error"]);
            (expected, error(&event["status"], &event["error"]))
        }
    };
    let alike = |texts: &[String]| texts.iter().map(|text| alike(text)).collect::<Vec<_>>();
    let (expected, found) = (alike(&expected), alike(&found));
    let name = || format!("{} {}", visit.case.name, protocol_name(visit.case.protocol));
    (expected != found).then(|| format!("{}: {found:?} is not {expected:?}", name()))
}

/// An event without the ids and the times that differ from request to request.
fn alike(text: &str) -> String {
    let mut event: Value = match serde_json::from_str(text) {
        Ok(event) => event,
        Err(_) => return text.to_owned(),
    };
    blank(&mut event);
    event.to_string()
}

fn blank(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(blank),
        Value::Object(members) => {
            for (name, member) in members {
                match name.as_str() {
                    "id" | "item_id" | "call_id" | "created_at" | "completed_at"
                    | "encrypted_content" => *member = Value::Null,
                    _ => blank(member),
                }
            }
        }
        _ => {}
    }
}
