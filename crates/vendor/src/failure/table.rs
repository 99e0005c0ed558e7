//! Decides the meaning of an error, by the first row of the table that applies to it.

use super::complaint::Complaint;
use super::rows::ROWS;

/// The meaning of an error. Each has one consequence, for every vendor and status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The prompt is too long for the model, or for the account's limit for one request.
    LongPrompt,
    /// The content is against a policy.
    AgainstPolicy,
    /// Earlier reasoning lacks the server's signature, or has one of another server.
    Signature,
    /// The operator's account is disabled, in arrears, or has used up its quota.
    Account,
    /// The operator's key, model or address is wrong.
    Configuration,
    /// The rate is too high.
    Rate,
    /// The upstream is overloaded.
    Overload,
    /// The request is too large.
    TooLarge,
    /// The request is invalid.
    Invalid,
    /// The upstream has taken too long.
    Timeout,
    /// The upstream has failed in any other way.
    Failure,
}

/// A row of the table: one wording of one server. All of its conditions have to hold.
#[derive(Debug)]
pub(super) struct Row {
    /// The vendor or server that is known for it.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "it is for readers, and the tests check it")
    )]
    server: &'static str,
    meaning: Meaning,
    /// The statuses that it comes with; empty for any.
    statuses: &'static [u16],
    /// The code, type or status in the body, in lower case.
    word: Option<&'static str>,
    /// A part of the code or type, in lower case.
    part: Option<&'static str>,
    /// Phrases of the message, in lower case.
    phrases: &'static [&'static str],
}

/// Begins a row.
pub(super) const fn row(server: &'static str, meaning: Meaning) -> Row {
    Row {
        server,
        meaning,
        statuses: &[],
        word: None,
        part: None,
        phrases: &[],
    }
}

impl Row {
    /// The code, type or status in the body is `word`.
    pub(super) const fn word(self, word: &'static str) -> Self {
        Self {
            word: Some(word),
            ..self
        }
    }

    /// The code, type or status in the body contains `part`.
    pub(super) const fn part(self, part: &'static str) -> Self {
        Self {
            part: Some(part),
            ..self
        }
    }

    /// The message has all of these phrases.
    pub(super) const fn says(self, phrases: &'static [&'static str]) -> Self {
        Self { phrases, ..self }
    }

    /// The status of the response is one of these.
    pub(super) const fn with(self, statuses: &'static [u16]) -> Self {
        Self { statuses, ..self }
    }

    fn applies(&self, error: &Complaint, status: Option<u16>) -> bool {
        let has_part = |part| error.words.iter().any(|word| word.contains(part));
        (self.statuses.is_empty() || status.is_some_and(|status| self.statuses.contains(&status)))
            && self.word.is_none_or(|word| error.has_word(word))
            && self.part.is_none_or(has_part)
            && (self.phrases.is_empty() || error.says(self.phrases).is_some())
    }
}

impl Meaning {
    /// The meaning of a status alone.
    pub(super) const fn of_status(status: u16) -> Self {
        match status {
            400 | 422 => Self::Invalid,
            402 => Self::Account,
            408 | 504 | 522 | 524 => Self::Timeout,
            413 => Self::TooLarge,
            429 => Self::Rate,
            451 => Self::AgainstPolicy,
            503 | 529 => Self::Overload,
            300..=399 | 401 | 403..=407 | 410 | 411 | 414..=417 | 421 | 426 | 501 | 505 => {
                Self::Configuration
            }
            _ => Self::Failure,
        }
    }
}

/// Returns the meaning of an error that the table knows.
pub(super) fn meaning(error: &Complaint, status: Option<u16>) -> Option<Meaning> {
    deciding(error, status).map(|row| row.meaning)
}

fn deciding(error: &Complaint, status: Option<u16>) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.applies(error, status))
}

/// Returns the status that an error without one stands for: a number among its words, or the status
/// of a known word.
pub(super) fn status(error: &Complaint) -> Option<u16> {
    error.words.iter().find_map(|word| status_of(word))
}

fn status_of(word: &str) -> Option<u16> {
    if let Ok(status) = word.parse() {
        return (400..600).contains(&status).then_some(status);
    }
    let known = STATUSES.iter().find(|(marker, _)| word.contains(marker));
    known.map(|(_, status)| *status)
}

/// Parts of codes and types, and the statuses that they stand for. The first match counts.
const STATUSES: [(&str, u16); 18] = [
    ("rate_limit", 429),
    ("concurrency_limit", 429),
    ("too_many_requests", 429),
    ("overloaded", 503),
    ("slow_down", 503),
    ("unavailable", 503),
    ("timeout", 504),
    ("too_large", 413),
    ("quota", 402),
    ("billing", 402),
    ("api_key", 401),
    ("authentication", 401),
    ("unauthorized", 401),
    ("permission", 403),
    ("not_found", 404),
    ("invalid_", 400),
    ("badrequest", 400),
    ("bad_request", 400),
];

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    /// An error as a vendor has published it, or a user has reported it.
    #[derive(serde::Deserialize)]
    pub(in super::super) struct Published {
        pub(in super::super) server: String,
        /// Its page, or the report.
        page: String,
        status: Option<u16>,
        pub(in super::super) body: Value,
        means: String,
        /// The lengths of the prompt and of the output, and the limit of a prompt that is too long.
        #[serde(default)]
        pub(in super::super) sizes: [Option<u64>; 3],
    }

    impl Published {
        pub(in super::super) fn complaint(&self) -> Complaint {
            complaint(&self.body)
        }
    }

    pub(in super::super) fn published() -> Vec<Published> {
        let text = include_str!("../../tests/it/fixtures/vendor-errors.json");
        serde_json::from_str(text).unwrap()
    }

    fn complaint(body: &Value) -> Complaint {
        match body {
            Value::String(text) => Complaint::read(text.as_bytes()),
            body => Complaint::read(body.to_string().as_bytes()),
        }
    }

    #[test]
    fn every_published_error_has_its_meaning() {
        let wrong = published().into_iter().filter_map(|published| {
            let Published {
                server,
                page,
                body,
                means,
                ..
            } = &published;
            let error = complaint(body);
            let status = published.status.or_else(|| status(&error));
            let found = meaning(&error, status).or(status.map(Meaning::of_status));
            let found = format!("{:?}", found.unwrap_or(Meaning::Failure));
            (found != *means).then(|| format!("{server}, {page}: {found}, not {means}: {body}"))
        });
        let wrong: Vec<_> = wrong.collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn every_row_decides_a_published_error() {
        let mut decided = BTreeSet::new();
        for Published { status, body, .. } in published() {
            let error = complaint(&body);
            let status = status.or_else(|| self::status(&error));
            if let Some(row) = deciding(&error, status) {
                decided.insert(std::ptr::from_ref(row) as usize);
            }
        }
        let idle = ROWS
            .iter()
            .filter(|row| !decided.contains(&(std::ptr::from_ref(*row) as usize)));
        let idle: Vec<_> = idle.map(|row| format!("{row:?}")).collect();
        assert!(idle.is_empty(), "{}", idle.join("\n"));
    }

    #[test]
    fn every_row_has_a_condition_in_lower_case() {
        for row in ROWS {
            let mut texts: Vec<_> = row.phrases.to_vec();
            texts.extend([row.word, row.part].into_iter().flatten());
            assert!(!texts.is_empty() || !row.statuses.is_empty(), "{row:?}");
            assert!(
                texts.iter().all(|text| *text == text.to_lowercase()),
                "{row:?}"
            );
        }
    }

    #[test]
    fn every_server_of_the_table_has_published_an_error() {
        let servers: BTreeSet<_> = published().into_iter().map(|error| error.server).collect();
        for row in ROWS {
            assert!(servers.contains(row.server), "{}", row.server);
        }
    }
}
