//! Any bytes as a client's request, encoded for an upstream of each protocol: the result is valid
//! in that protocol.

use engine::TextRequest;
use field_map::Outline;
use translate::inbound::{Chat, ClientProtocol, Inbound, Messages, Responses};
use translate::outbound::encode::{self, Quirks, Settings};
use vendor::Protocol;

/// Checks one input; a panic is a finding.
pub fn check(body: &[u8]) {
    for client in Protocol::ALL {
        let Some(inbound) = neutral(client, body) else {
            continue;
        };
        for upstream in Protocol::ALL {
            check_encoding(upstream, &inbound.request);
        }
        check_dropped(client, body);
    }
}

/// A client's request in neutral form, if it is valid and can be translated.
fn neutral(client: Protocol, body: &[u8]) -> Option<Inbound> {
    match client {
        Protocol::Responses => {
            let request = responses::Request::read(body)
                .ok()?
                .validate(&responses::Rules::default());
            Responses::request(request.ok()?).ok()
        }
        Protocol::Chat => {
            let request = chat::Request::read(body)
                .ok()?
                .validate(&chat::Rules::default());
            Chat::request(request.ok()?).ok()
        }
        Protocol::Messages => {
            let request = messages::Request::read(body)
                .ok()?
                .validate(&messages::Rules::default());
            Messages::request(request.ok()?).ok()
        }
    }
}

fn check_encoding(upstream: Protocol, request: &TextRequest) {
    let settings = Settings {
        stream: request.model.len().is_multiple_of(2),
        max_tokens: 1024,
        sampling: true,
        sealed: request.model.len().is_multiple_of(3),
        quirks: Quirks::NONE,
    };
    let Ok(encoded) = encode::request(upstream, request, &settings) else {
        return;
    };
    let problem = match upstream {
        Protocol::Responses => {
            let request = responses::Request::read(&encoded.body);
            request
                .and_then(|request| request.validate(&responses::Rules::default()))
                .err()
        }
        Protocol::Chat => {
            let request = chat::Request::read(&encoded.body);
            request
                .and_then(|request| request.validate(&chat::Rules::default()))
                .err()
        }
        Protocol::Messages => {
            let request = messages::Request::read(&encoded.body);
            request
                .and_then(|request| request.validate(&messages::Rules::default()))
                .err()
        }
    };
    assert!(
        problem.is_none(),
        "{upstream:?} refuses the request: {problem:?}"
    );
}

/// Dropped fields have plain names, each once, and a field that is dropped for the client's own
/// protocol cannot be expressed in any.
fn check_dropped(client: Protocol, body: &[u8]) {
    let outline = Outline::read(client, body).expect("a valid request has an outline");
    let anew = outline.dropped_fields(client).unwrap_or_default();
    for upstream in Protocol::ALL {
        let Ok(mut lost) = outline.dropped_fields(upstream) else {
            continue;
        };
        let count = lost.len();
        lost.sort();
        lost.dedup();
        assert_eq!(lost.len(), count, "each once");
        assert!(
            lost.iter()
                .all(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic()))
        );
        assert!(
            anew.iter().all(|name| lost.contains(name)),
            "encoded again it drops more than for {upstream:?}: {anew:?}"
        );
    }
}
