//! Assertions about the outcomes of faults, which need the grammar.

use serde_json::Value;
use simulator::Protocol;
use testkit::events::{delta_text, events};
use testkit::upstreams::{Outcome, plain_text};

use crate::{End, plain, stream};

/// The assertions about an outcome that validate its stream or its reply.
pub trait Judged {
    /// Asserts that it is a complete stream or reply, with everything that the upstream sent.
    fn is_whole(&self);

    /// Asserts that it is a stream that failed in the middle, after a part of the upstream's
    /// events.
    fn fails(&self);

    /// Asserts that it failed, with an error status if nothing had been sent yet.
    fn fails_at_once_or_later(&self);

    /// Asserts that it timed out, with an error status if nothing had been sent yet.
    fn stalls(&self);

    /// Asserts that it is a stream with a complete reply, though not in the pieces of a conforming
    /// one.
    fn has_all_text(&self);

    /// Asserts that it is a stream that failed with this code in the middle, after a part of the
    /// upstream's events.
    fn fails_with(&self, code: &str);

    /// Asserts that it is a stream with so many events of the upstream, and then the failure.
    fn fails_after(&self, count: usize);
}

impl Judged for Outcome {
    #[track_caller]
    fn is_whole(&self) {
        let text = match self.is_stream() {
            true => {
                let reply = stream(self.lane.client, &self.response);
                assert!(matches!(reply, End::Reply(_)), "{:?}: {reply:?}", self.lane);
                delta_text(self.lane.client, &self.response.body)
            }
            false => plain_text(self.lane.client, &plain(self.lane.client, &self.response)),
        };
        assert_eq!(
            text,
            self.honest,
            "{:?}: {}",
            self.lane,
            self.response.text()
        );
    }

    #[track_caller]
    fn fails(&self) {
        self.fails_with("server_error");
    }

    #[track_caller]
    fn fails_at_once_or_later(&self) {
        if self.response.status == 200 {
            self.fails();
        } else {
            self.is_bad_gateway();
        }
    }

    #[track_caller]
    fn stalls(&self) {
        if self.response.status == 200 {
            self.fails();
        } else {
            self.is_late();
        }
    }

    #[track_caller]
    fn has_all_text(&self) {
        stream(self.lane.client, &self.response).reply();
        let text = delta_text(self.lane.client, &self.response.body);
        assert!(
            !text.is_empty() && self.honest.ends_with(&text),
            "{:?}: '{text}'",
            self.lane
        );
    }

    #[track_caller]
    fn fails_with(&self, code: &str) {
        assert_eq!(
            self.response.status,
            200,
            "{:?}: {}",
            self.lane,
            self.response.text()
        );
        let failure = stream(self.lane.client, &self.response).failure();
        let failure: Value = serde_json::from_str(&failure).unwrap();
        let (found, owed) = match self.lane.client {
            Protocol::Messages => (&failure["type"], messages_type(code)),
            _ => (&failure["error"]["code"], code),
        };
        let found = if found.is_null() {
            &failure["code"]
        } else {
            found
        };
        assert_eq!(found, owed, "{:?}: {failure}", self.lane);
        let text = delta_text(self.lane.client, &self.response.body);
        assert!(
            self.honest.starts_with(&text),
            "{:?}: '{text}' of '{}'",
            self.lane,
            self.honest
        );
    }

    #[track_caller]
    fn fails_after(&self, count: usize) {
        self.fails();
        let received = events(&self.response.body);
        assert_eq!(
            received.len(),
            count + 1,
            "{:?}: {}",
            self.lane,
            self.response.text()
        );
    }
}

fn messages_type(code: &str) -> &str {
    match code {
        "rate_limit_exceeded" => "rate_limit_error",
        _ => "api_error",
    }
}
