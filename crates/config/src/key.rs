//! An API key in the configuration file: its hash, scopes and expiry.

use auth::{Entry, KeyHash, Pattern, Scope, Scopes};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Deserialize;

wire::read_objects!(Key);

/// One key, given by its hash and never by the key itself.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Key {
    /// The name of the key in the log and in metrics.
    #[schemars(example = &"team-a")]
    pub name: String,
    /// Its hash, as `sluicegate keys new` prints it; the key itself is not stored.
    #[schemars(example = HASH)]
    hash: String,
    /// The scopes, which are the families of models whose endpoints it may use.
    #[schemars(with = "Vec<catalog::Family>", example = ["text", "messages"])]
    scopes: Vec<String>,
    /// The names or patterns of the models that it may use. Absent: all models.
    #[schemars(extend("examples" = [["model-5.*", "alt-flash"]]))]
    models: Option<Vec<String>>,
    /// The last day, in UTC, on which it is valid, or the time from which it is not. Absent: it does
    /// not expire.
    #[schemars(example = &"2027-01-01")]
    expires: Option<String>,
}

impl Key {
    /// Converts it to an entry of the key ring, or returns all its problems.
    pub(crate) fn entry(&self) -> Result<Entry, Vec<String>> {
        let mut problems = Vec::new();
        let mut note = |problem: String| problems.push(problem);
        let hash = self
            .hash
            .parse::<KeyHash>()
            .map_err(|error| note(format!("hash: {error}")))
            .ok();
        let scopes = self.scopes.iter().map(|scope| {
            scope
                .parse::<Scope>()
                .map_err(|error| note(format!("scopes: {error}")))
        });
        let scopes: Scopes = scopes
            .filter_map(Result::ok)
            .fold(Scopes::default(), |all, one| all.union(one.into()));
        let models = self.models.as_ref().map(|models| {
            let patterns = models.iter().map(|model| {
                model
                    .parse::<Pattern>()
                    .map_err(|error| note(format!("models: {error}")))
            });
            patterns.filter_map(Result::ok).collect()
        });
        let expires = self
            .expires
            .as_deref()
            .and_then(|text| expiry(text).map_err(&mut note).ok());
        let Some(hash) = hash.filter(|_| problems.is_empty()) else {
            return Err(problems);
        };
        let mut entry = Entry::new(self.name.clone(), hash, scopes);
        entry.models = models;
        entry.expires = expires;
        Ok(entry)
    }
}

/// Parses an expiry to the Unix second from which the key is refused: the end of a day in UTC, or a
/// point in time.
pub fn expiry(text: &str) -> Result<i64, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at.as_second());
    }
    let next_day = text
        .parse::<Date>()
        .and_then(Date::tomorrow)
        .and_then(|day| day.to_zoned(TimeZone::UTC));
    next_day.map(|day| day.timestamp().as_second()).map_err(|_| {
        format!("expires: '{text}' is neither a date such as 2027-01-31 nor a time such as 2027-01-31T12:00:00Z")
    })
}

/// The hash of a key that nobody has, as an example.
pub(crate) const HASH: &str =
    "sha256:0000000000000000000000000000000000000000000000000000000000000000";
