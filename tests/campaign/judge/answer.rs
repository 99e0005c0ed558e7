//! Checks a successful response, complete or truncated, against its upstream's response.

use grammar::End as StreamEnd;
use serde_json::Value;
use simulator::Protocol;
use testkit::Response;
use testkit::events::{added_up, ends, events};
use testkit::reading::{End, Reading};
use testkit::requests::Question;

use super::{Case, Verdict, reason};
use crate::drawing::LONG;
use crate::fault::{Fault, Kind};

/// Checks a stream: its grammar, its only end, and that it has the upstream's content.
pub(super) fn stream(case: &Case<'_>, response: &Response) -> Verdict {
    assert!(case.fault.stream, "a stream that was not requested");
    check_grammar(case.fault, response);
    let ours = read(case.fault, response);
    assert!(
        !ours.has_more,
        "something comes after the end: {}",
        response.text()
    );
    match &ours.end {
        End::Missing => panic!("a stream without an end: {}", response.text()),
        End::Success => {
            check_success(case, response, &ours);
            Verdict::StreamWhole
        }
        End::Failure(code) => {
            reason::check_event(case, code.as_deref());
            check_begun(case, &ours);
            Verdict::StreamFailed
        }
    }
}

/// Checks a plain reply.
pub(super) fn reply(case: &Case<'_>, response: &Response) -> Verdict {
    let Case { fault, sent, .. } = case;
    assert!(!fault.stream, "a plain reply where a stream was requested");
    if !response.is_complete() {
        assert!(may_break_off(case), "a plain reply breaks off");
        assert!(
            sent.body.starts_with(&response.body),
            "not how the upstream's reply begins"
        );
        return Verdict::BrokenOff;
    }
    if is_passed_unread(case, response) {
        // It is the body that the upstream wrote, whether it is JSON or not.
        let is_same = is_same_reply(&sent.body, &response.body);
        assert!(sent.is_ok() && sent.is_whole && is_same, "another reply");
        let is_json = serde_json::from_slice::<Value>(&sent.body).is_ok();
        assert!(
            !is_json || case.theirs.end == End::Success,
            "a false success: {}",
            response.text()
        );
        return Verdict::Reply;
    }
    // A tolerated reply is relayed unchanged, without the members that it lacks.
    let is_relayed = fault.client == fault.upstream;
    if !(is_relayed && fault.kind.changes_bytes()) {
        grammar::plain(fault.client, response);
    }
    let ours = read(fault, response);
    if ours.end == End::Success {
        check_success(case, response, &ours);
    } else {
        // A changed word may be an unknown one, which is passed on.
        assert!(
            matches!(fault.kind, Kind::Changed(..)),
            "a reply without success: {}",
            response.text()
        );
    }
    Verdict::Reply
}

/// Returns true if the reply is the one that the upstream sent. The gateway repairs the base64 of its images:
/// padding, white space and the alphabet for URLs.
fn is_same_reply(sent: &[u8], reply: &[u8]) -> bool {
    let repaired = |body: &[u8]| {
        let mut body: Value = serde_json::from_slice(body).ok()?;
        let images = body.get_mut("data").and_then(Value::as_array_mut);
        for image in images.into_iter().flatten() {
            if let Some(Value::String(base64)) = image.get_mut("b64_json") {
                base64.retain(|letter| !letter.is_ascii_whitespace() && letter != '=');
                *base64 = base64.replace('-', "+").replace('_', "/");
            }
        }
        Some(body)
    };
    sent == reply || repaired(sent).is_some_and(|sent| Some(sent) == repaired(reply))
}

/// Returns true if a reply is so long that it is streamed through.
fn is_passed_unread(case: &Case<'_>, response: &Response) -> bool {
    case.fault.client == Protocol::Images && !case.fault.stream && response.body.len() > LONG
}

/// Returns true if a plain reply may be truncated, even before its head was sent: a long one is
/// streamed through.
pub(super) fn may_break_off(case: &Case<'_>) -> bool {
    let Case { fault, sent, .. } = case;
    let is_json = serde_json::from_slice::<Value>(&sent.body).is_ok();
    let is_broken = !sent.is_whole || !is_json || case.theirs.end != End::Success;
    fault.client == Protocol::Images && !fault.stream && sent.body.len() > LONG && is_broken
}

/// A client gets every answer that the upstream completed.
pub(super) fn check_withheld(case: &Case<'_>, verdict: Verdict) {
    let kind = &case.fault.kind;
    if case.observed.client.stayed && kind.lets_through() && !case.may_be_late() {
        assert!(
            case.theirs.end != End::Success,
            "a success is withheld: {verdict:?}"
        );
        assert!(!kind.is_harmless(), "nothing went wrong: {verdict:?}");
    }
}

/// Parses a response as a client of its protocol does.
pub(super) fn read(fault: &Fault, response: &Response) -> Reading {
    let reading = Reading::of(
        fault.client,
        &response.body,
        response.is_complete(),
        fault.pictures(),
    );
    if fault.kind.changes_bytes() {
        reading
    } else {
        reading.checked()
    }
}

/// Every event is within the grammar of its protocol, parsed with the types that the gateway sends.
fn check_grammar(fault: &Fault, response: &Response) {
    let is_stranger = |data: &Vec<u8>| {
        let event = responses::Event::read(&String::from_utf8_lossy(data));
        matches!(event, Ok(responses::Event::Other(_)))
    };
    // A tolerated stream is relayed unchanged, outside of the grammar.
    let is_relayed = fault.client == fault.upstream;
    let has_strangers =
        fault.client == Protocol::Responses && events(&response.body).iter().any(is_stranger);
    if is_relayed && fault.kind.bends_events() || has_strangers {
        assert!(response.is_complete(), "the body came to its end");
        let pictures = completed(&response.body);
        let ends = ends(&response.body) + usize::from(pictures == fault.pictures() as usize);
        assert_eq!(ends, 1, "exactly one end: {}", response.text());
        return;
    }
    let _: StreamEnd<Value> = match fault.client {
        Protocol::Images => {
            grammar::pictures(fault.drawing.operation(), fault.drawing.count, response)
        }
        client => grammar::stream(client, response),
    };
}

/// The number of complete pictures in a stream.
fn completed(stream: &[u8]) -> usize {
    const TYPES: [&str; 2] = ["image_generation.completed", "image_edit.completed"];
    let is_picture = |data: &Vec<u8>| {
        let event: Value = serde_json::from_slice(data).unwrap_or_default();
        TYPES.iter().any(|kind| event["type"] == *kind)
    };
    events(stream)
        .iter()
        .filter(|data| is_picture(data))
        .count()
}

/// A client sees a success only if its upstream succeeded, and gets the complete reply.
fn check_success(case: &Case<'_>, response: &Response, ours: &Reading) {
    let Case {
        fault,
        sent,
        theirs,
        ..
    } = case;
    let context = || {
        format!(
            "of: {} {}",
            sent.status,
            String::from_utf8_lossy(&sent.body)
        )
    };
    assert_eq!(
        theirs.end,
        End::Success,
        "a false success: {}\n{}",
        response.text(),
        context()
    );
    check_model(fault, ours);
    if fault.client != Protocol::Images && !fault.kind.changes_bytes() {
        assert!(
            !ours.models.is_empty(),
            "no model is named: {}",
            response.text()
        );
    }
    check_dropped(case, response);
    if case.is_comparable() {
        assert_eq!(
            ours.words,
            theirs.words,
            "the words of the answer\n{}",
            context()
        );
        assert_eq!(
            ours.is_cut, theirs.is_cut,
            "whether the limit on the output cut it"
        );
        if let Kind::Rewritten(_) = fault.kind
            && fault.question != Question::Refusal
        {
            let filtered = [ours.is_filtered, theirs.is_filtered];
            assert_eq!(filtered[0], filtered[1], "whether a filter cut it");
        }
        // If the upstream reported no usage, a client gets none, or zeros.
        assert_eq!(
            ours.usage.unwrap_or_default().totals(),
            theirs.usage.unwrap_or_default().totals(),
            "the usage\n{}",
            context()
        );
        check_nonce(fault, ours);
        check_added(case, response);
    }
}

/// A client that adds up the events by their indexes gets the same as one of the upstream. Events
/// that are lost, repeated, late or bent by the upstream may be outside of the protocol.
fn check_added(case: &Case<'_>, response: &Response) {
    let Case { fault, sent, .. } = case;
    // An upstream may answer with a plain reply.
    let has_streams = response.is_stream() && !events(&sent.body).is_empty();
    if fault.kind.bends_events() || !has_streams {
        return;
    }
    let theirs = added_up(fault.upstream, &sent.body);
    let ours = added_up(fault.client, &response.body);
    let (Some(ours), Some(theirs)) = (ours, theirs) else {
        return;
    };
    assert_eq!(ours.problems, [""; 0], "what a client cannot place");
    let [ours, theirs] = [ours, theirs].map(|content| {
        let answer = content.answers.get(&0).cloned().unwrap_or_default();
        // Messages has no refusals of its own.
        (
            answer.text + &answer.refusal,
            answer.reasoning,
            answer.calls.len(),
        )
    });
    assert_eq!(ours, theirs, "what a client adds up");
}

/// The part before a failure is a prefix of the upstream's reply.
fn check_begun(case: &Case<'_>, ours: &Reading) {
    check_model(case.fault, ours);
    if case.is_comparable() {
        let theirs = &case.theirs.words;
        assert!(
            theirs.starts_with(&ours.words),
            "'{}' is not how '{theirs}' begins",
            ours.words
        );
    }
}

/// A reply names the model that was requested, and never by its name at the upstream. If bytes were
/// changed, the name of the `model` member may be among them.
fn check_model(fault: &Fault, ours: &Reading) {
    let asked = &fault.model;
    let is_named = ours.models.iter().all(|model| model == asked);
    assert!(
        is_named || fault.kind.changes_bytes(),
        "the model is {:?}, not {asked}",
        ours.models
    );
}

/// The reply belongs to this request and to no other.
fn check_nonce(fault: &Fault, ours: &Reading) {
    let is_lost = matches!(fault.kind, Kind::Changed(..));
    let is_text = fault.question == Question::Text && fault.strict.is_none();
    if is_text && fault.client != Protocol::Images && !is_lost {
        assert!(
            ours.words.contains(&fault.nonce()),
            "the answer to another request: {}",
            ours.words
        );
    }
}

/// A client is informed of the fields of its request that the upstream's protocol cannot express,
/// even if the upstream takes long to begin.
fn check_dropped(case: &Case<'_>, response: &Response) {
    // Each vendor has fields of its own that it lacks.
    if case.fault.strict.is_some() || !case.fault.transport.has_headers() {
        return;
    }
    let found = response.header("x-sluicegate-dropped");
    let of = |fault: &Fault| dropped(fault.client, fault.upstream, fault.question);
    // If the first target took long to fail, the head was written before.
    let (owed, before) = (of(case.fault), of(case.drawn));
    assert!(
        found == owed || found == before,
        "dropped: {found:?}, not {owed:?}"
    );
}

/// The fields of a request that are dropped between two protocols.
fn dropped(client: Protocol, upstream: Protocol, question: Question) -> Option<&'static str> {
    use Protocol::{Chat, Messages, Responses};
    use Question::{ForcedTool, Images, ParallelTools, Reasoning, Schema, ToolResults};
    match (client, upstream, question) {
        (Responses, Messages, ParallelTools | ForcedTool | ToolResults) => Some("tools[].strict"),
        (Chat, Messages, ParallelTools | ForcedTool | ToolResults) => {
            Some("tools[].function.strict")
        }
        (Responses, Messages, Images) => Some("input[].content[].detail"),
        (Chat, Messages, Images) => Some("messages[].content[].image_url.detail"),
        (Responses, Messages, Schema) => Some("text.format.name"),
        (Chat, Messages, Schema) => Some("response_format.json_schema.name"),
        (Responses, Chat, Reasoning) => Some("reasoning.summary"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_base64_of_images_may_be_repaired() {
        let sent = br#"{"created":1,"data":[{"b64_json":"iVBO\nRw-_a"}]}"#;
        let is_same = |reply: &str| is_same_reply(sent, reply.as_bytes());
        assert!(is_same(
            r#"{"created":1,"data":[{"b64_json":"iVBORw+/a==="}]}"#
        ));
        assert!(!is_same(
            r#"{"created":1,"data":[{"b64_json":"iVBORw+/b==="}]}"#
        ));
        assert!(!is_same(
            r#"{"created":2,"data":[{"b64_json":"iVBO\nRw-_a"}]}"#
        ));
        assert!(!is_same(r#"{"created":1,"data":[]}"#));
        assert!(is_same_reply(b"no JSON", b"no JSON") && !is_same_reply(b"no JSON", b"{}"));
    }
}
