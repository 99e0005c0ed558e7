//! The checks that the targets of several protocols share.

use serde_json::Value;

/// Any lines as the events of a stream: encoding a parsed event gives the same event, the fold goes
/// as far as the grammar, and only a stream that ended well (`$good`) is a reply.
macro_rules! read_events {
    ($protocol:ident, $lines:expr, $good:pat) => {{
        let (mut grammar, mut fold) = ($protocol::Grammar::default(), $protocol::Fold::default());
        for event in $lines
            .lines()
            .filter_map(|line| $protocol::Event::read(line).ok())
        {
            let written = event.data();
            assert_eq!(
                $protocol::Event::read(&written).as_ref(),
                Ok(&event),
                "nothing is lost"
            );
            assert!(!written.contains(['\r', '\n']), "an event is one line");
            let kept = grammar.push(&event).is_ok();
            assert_eq!(
                fold.push(&event).is_ok(),
                kept,
                "the fold goes as far as the grammar"
            );
            if !kept {
                return;
            }
            assert_eq!(
                grammar.is_ended(),
                event.is_terminal(),
                "only a terminal event ends a stream"
            );
            if grammar.is_ended() {
                assert_eq!(
                    fold.finish().is_ok(),
                    matches!(event, $good),
                    "only a stream that ended well is a reply"
                );
                return;
            }
        }
        assert!(
            fold.finish().is_err(),
            "a stream without an end is no reply"
        );
    }};
}

/// Any bytes as a request: a parsed request is encoded and parsed again to the same request, and a
/// refused one has its problems reported. A valid request is passed to `$check`.
macro_rules! read_request {
    ($protocol:ident, $body:expr, $check:expr) => {
        match $protocol::Request::read($body) {
            Ok(request) => {
                let written = serde_json::to_vec(&request).expect("a request has a JSON form");
                assert_eq!(
                    $protocol::Request::read(&written).as_ref(),
                    Ok(&request),
                    "nothing is lost"
                );
                assert!(
                    !$crate::protocol::is_too_deep($body),
                    "what nests too deep is refused"
                );
                match request.validate(&$protocol::Rules::default()) {
                    Ok(valid) => $check(valid),
                    Err(found) => assert!(!found.is_empty(), "a refusal says why"),
                }
            }
            Err(found) => assert!(
                !found.is_empty() && !found.to_string().is_empty(),
                "a refusal says why"
            ),
        }
    };
}

/// Returns true if a document nests arrays and objects more than 64 deep.
pub(crate) fn is_too_deep(document: &[u8]) -> bool {
    serde_json::from_slice(document).is_ok_and(|value| nesting(&value) > 64)
}

fn nesting(value: &Value) -> usize {
    match value {
        Value::Array(entries) => 1 + entries.iter().map(nesting).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(nesting).max().unwrap_or(0),
        _ => 0,
    }
}

pub(crate) use {read_events, read_request};
