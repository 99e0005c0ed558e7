//! Properties of relayed streams and replies.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;
use sluicegate_relay::{Chat, Messages, Responses};
use strategies::{changed, documents, json_value};

use crate::laws::{FIXTURES, data, fixture};
use crate::laws::{MESSAGES, RESPONSES, ends_well_messages, is_frequent, model, relayed};

proptest! {
    #[test]
    fn how_the_bytes_come_changes_nothing(which in any::<Index>(), cuts in prop::collection::vec(any::<Index>(), 0..12)) {
        let name = RESPONSES[which.index(RESPONSES.len())];
        let stream = fixture(name);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
        cuts.sort_unstable();
        let starts = std::iter::once(0).chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain([stream.len()]);
        let pieces: Vec<&[u8]> = starts.zip(ends).map(|(start, end)| &stream[start..end]).collect();
        let split = relayed(Responses::default(), "m", &pieces);
        let joined = relayed(Responses::default(), "m", &[&stream]);
        prop_assert_eq!((split.0, split.1.ok()), (joined.0, joined.1.ok()));
    }

    #[test]
    fn unknown_fields_of_events_pass_as_they_came(value in json_value(), at in any::<Index>(), pretty in any::<bool>()) {
        let stream = String::from_utf8(fixture("messages-stream-tool-use.sse")).unwrap();
        let text = if pretty { format!("{value:#}").replace('\n', "") } else { value.to_string() };
        let event = at.index(data(stream.as_bytes()).len());
        let mut seen = 0;
        let mut changed = String::new();
        for line in stream.split_inclusive('\n') {
            if let Some(rest) = line.strip_prefix("data: {") {
                if seen == event {
                    changed += &format!("data: {{\"a_field_of_tomorrow\": {text},{rest}");
                    seen += 1;
                    continue;
                }
                seen += 1;
            }
            changed += line;
        }
        let (out, ended) = relayed(Messages::default(), &model(stream.as_bytes()), &[changed.as_bytes()]);
        prop_assert!(ended.is_ok(), "{:?}", ended);
        prop_assert_eq!(String::from_utf8(out).unwrap(), changed);
    }

    #[test]
    fn unknown_fields_of_replies_pass_as_they_came(value in json_value()) {
        let body = String::from_utf8(fixture("chat-response-text.json")).unwrap();
        let body = body.replacen('{', &format!("{{ \"tomorrow\" : {value:#} ,"), 1);
        let (reply, _) = sluicegate_relay::reply::<Chat>(body.as_bytes(), &model(body.as_bytes())).unwrap();
        prop_assert_eq!(String::from_utf8(reply).unwrap(), body);
    }

    #[test]
    fn frequent_replies_are_read_as_the_types_read_them(
        reply in changed(documents(FIXTURES, "chat-response")),
        details in prop::collection::vec((0..5_usize, json_value()), 0..4),
        is_pretty: bool,
    ) {
        let mut reply = reply;
        for (name, value) in details {
            let name = ["prompt_tokens_details", "completion_tokens_details", "a", "total_tokens", "b"][name];
            if let Some(usage) = reply.get_mut("usage").and_then(Value::as_object_mut) {
                usage.shift_remove(name);
                usage.insert(name.to_owned(), value);
            }
        }
        is_frequent((if is_pretty { format!("{reply:#}") } else { reply.to_string() }).as_bytes(), "m\"");
    }

    #[test]
    fn fast_reader_agrees_with_the_types_on_changed_replies(
        which in prop::sample::select(vec!["text", "reasoning", "length", "tool-calls"]),
        changes in prop::collection::vec((any::<Index>(), any::<Index>(), 1..20_usize, 0..3_u8), 0..3),
    ) {
        let mut body = fixture(&format!("chat-response-{which}.json"));
        for (from, to, length, how) in changes {
            let (from, to) = (from.index(body.len()), to.index(body.len()));
            let part = body[from..(from + length).min(body.len())].to_vec();
            match how {
                0 => body[to] = body[from],
                1 => drop(body.splice(to..to, part)),
                _ => drop(body.drain(from..from + part.len() - 1)),
            }
        }
        is_frequent(&body, "m");
    }

    #[test]
    fn changed_streams_end_exactly_once(
        which in any::<Index>(),
        changes in prop::collection::vec((any::<Index>(), any::<Index>(), 0..3_u8), 0..4),
    ) {
        let name = MESSAGES[which.index(MESSAGES.len())];
        let stream = String::from_utf8(fixture(name)).unwrap();
        let mut events: Vec<_> = stream.split_inclusive("\n\n").map(str::to_owned).collect();
        for (from, to, how) in changes {
            let (from, to) = (from.index(events.len()), to.index(events.len()));
            match how {
                0 => events.swap(from, to),
                1 => events.insert(to, events[from].clone()),
                _ => events[from] = events[from].replace(['1', 't'], "e"),
            }
        }
        let (out, ended) = relayed(Messages::default(), "m", &[events.concat().as_bytes()]);
        match ended {
            Ok(_) => prop_assert_eq!(ends_well_messages(&out), Some(true)),
            Err(_) => prop_assert!(out_fails(&out)),
        }
    }
}

/// Returns true if the last event of a stream, and no other, is a failure.
fn out_fails(stream: &[u8]) -> bool {
    let events = data(stream);
    let failures = events.iter().filter(|data| {
        serde_json::from_str::<Value>(data).is_ok_and(|event| event["type"] == "error")
    });
    failures.count() == 1 && events.last().is_some_and(|data| data.contains("\"error\""))
}
