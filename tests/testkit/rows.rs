//! The tables of the errors that a client can get before a response starts, word for word.
//!
//! Each row is provoked somewhere: in `refusals` those that a request alone provokes; in `errors`
//! of `tests/upstreams` those that need an upstream, a limit, a slow client or a shutdown. One row
//! of each table needs a panic, which the tests of `crates/gateway/src/service.rs` inject.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::client::Response;

/// The errors of one style.
pub struct Table {
    rows: Vec<Row>,
    /// The rows that need more than a request.
    scenes: &'static [&'static str],
    /// The row that needs a panic.
    panic: &'static str,
}

/// One row of a table.
#[derive(serde::Deserialize)]
pub struct Row {
    when: String,
    status: u16,
    headers: Map<String, Value>,
    body: Value,
}

impl Table {
    /// The errors of Responses, Chat Completions, Images and the list of models.
    pub fn openai() -> Self {
        let scenes = &[
            "slow upload",
            "non-streaming request over the concurrency limit",
            "upstream failure",
            "draining",
            "upstream timeout",
        ];
        let panic = "internal error before the first byte";
        Self::new(
            include_str!("../black_box/fixtures/errors-openai-style.json"),
            scenes,
            panic,
        )
    }

    /// The errors of Messages.
    pub fn messages() -> Self {
        let scenes = &[
            "over the concurrency limit",
            "upstream timeout",
            "upstream overloaded",
        ];
        Self::new(
            include_str!("../black_box/fixtures/errors-messages-style.json"),
            scenes,
            "internal error",
        )
    }

    fn new(rows: &str, scenes: &'static [&'static str], panic: &'static str) -> Self {
        Self {
            rows: serde_json::from_str(rows).expect("a table of errors"),
            scenes,
            panic,
        }
    }

    /// The row of this name.
    #[track_caller]
    pub fn row(&self, when: &str) -> &Row {
        self.rows
            .iter()
            .find(|row| row.when == when)
            .unwrap_or_else(|| panic!("no row {when}"))
    }

    /// Asserts that these are all rows that a request alone provokes, each with a matching
    /// response.
    #[track_caller]
    pub fn check_requests(&self, responses: &[(&str, Response)]) {
        let owed = self.names(|when| !self.scenes.contains(&when) && when != self.panic);
        assert_eq!(
            responses
                .iter()
                .map(|(when, _)| *when)
                .collect::<BTreeSet<_>>(),
            owed,
            "every row is provoked"
        );
        responses
            .iter()
            .for_each(|(when, response)| self.row(when).check(response));
    }

    /// Asserts that these are all rows that need more than a request, each with matching responses.
    #[track_caller]
    pub fn check_scenes(&self, scenes: &[(&str, Vec<Response>)]) {
        let owed = self.names(|when| self.scenes.contains(&when));
        assert_eq!(owed.len(), self.scenes.len(), "each scene is of a row");
        assert_eq!(
            scenes
                .iter()
                .map(|(when, _)| *when)
                .collect::<BTreeSet<_>>(),
            owed,
            "every row is provoked"
        );
        for (when, responses) in scenes {
            assert!(!responses.is_empty(), "{when}");
            responses
                .iter()
                .for_each(|response| self.row(when).check(response));
        }
    }

    fn names(&self, which: impl Fn(&str) -> bool) -> BTreeSet<&str> {
        self.rows
            .iter()
            .map(|row| row.when.as_str())
            .filter(|when| which(when))
            .collect()
    }
}

impl Row {
    /// Asserts that a response is the one of this row. Ids are only compared with each other.
    #[track_caller]
    pub fn check(&self, response: &Response) {
        let id = response
            .header("x-request-id")
            .expect("every response has an id");
        assert!(id.starts_with("req_") && id.len() > 20, "{id}");
        let mut expected = self.body.clone();
        if expected.get("request_id").is_some() {
            expected["request_id"] = json!(id);
        }
        if let Some((_, sentence)) = SAY_MORE.iter().find(|(when, _)| *when == self.when) {
            let begins = expected["error"]["message"]
                .as_str()
                .expect("a sentence")
                .trim_end_matches('.');
            assert!(sentence.starts_with(begins), "{}: {begins}", self.when);
            expected["error"]["message"] = json!(sentence);
        }
        assert_eq!(
            (response.status, response.json()),
            (self.status, expected),
            "{}",
            self.when
        );
        for (name, value) in &self.headers {
            let value = value.as_str().unwrap_or_default();
            let value = if value == "req_<id>" { id } else { value };
            assert_eq!(response.header(name), Some(value), "{}: {name}", self.when);
        }
    }
}

/// The row whose message continues in the gateway, with the place.
const SAY_MORE: [(&str, &str); 1] = [(
    "body does not parse",
    "We could not parse the JSON body of your request. (HINT: line 1, column 9)",
)];
