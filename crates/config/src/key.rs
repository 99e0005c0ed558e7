//! An API key in the configuration file: its hash, scopes and expiry.

use auth::{Entry, KeyHash, Pattern, Scope, Scopes};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
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
///
/// # Errors
/// Returns the problem of the setting `expires`.
pub fn expiry(text: &str) -> Result<i64, String> {
    let end = end_of_day(text).or_else(|| point_in_time(text));
    let found = wire::truncate_for_error(text);
    match end {
        Some(end) if end < Timestamp::UNIX_EPOCH => {
            Err(format!("expires: '{found}' is before 1970"))
        }
        Some(end) => Ok(end.as_second()),
        None => Err(format!(
            "expires: '{found}' is neither a date such as 2027-01-31 nor a time such as 2027-01-31T12:00:00Z"
        )),
    }
}

/// Returns the end of a day, or the last timestamp if that is later than each timestamp of jiff.
fn end_of_day(text: &str) -> Option<Timestamp> {
    // A date is parsed in this form only, because a time without an offset would be read as a date too.
    let day = Date::strptime("%Y-%m-%d", text).ok()?;
    let end = day.tomorrow().and_then(|next| next.to_zoned(TimeZone::UTC));
    let end = end.map(|end| end.timestamp());
    end.ok().or((day.year() > 0).then_some(Timestamp::MAX))
}

/// Returns a point in time, or the last timestamp for the hours of the year 9999 that jiff does not have.
fn point_in_time(text: &str) -> Option<Timestamp> {
    let last = || {
        let at: DateTime = text.strip_suffix('Z')?.parse().ok()?;
        (at.year() == 9999).then_some(Timestamp::MAX)
    };
    text.parse().ok().or_else(last)
}

/// The hash of a key that nobody has, as an example.
pub(crate) const HASH: &str =
    "sha256:0000000000000000000000000000000000000000000000000000000000000000";

#[cfg(test)]
mod tests {
    use super::expiry;

    /// The Unix seconds come from `date -u -d TIME +%s`.
    #[test]
    fn expiries_are_ends_of_days_and_points_in_time() {
        for (text, second) in [
            ("2027-01-31", 1_801_440_000),
            ("2027-01-31T12:00:00Z", 1_801_396_800),
            ("2027-01-31T12:00:00+02:00", 1_801_389_600),
            ("1970-01-01", 86_400),
            // The last second before a leap second that the clock of the system does not have.
            ("2016-12-31T23:59:60Z", 1_483_228_799),
            // The last timestamp of jiff is 9999-12-30T22:00:00Z.
            ("9999-12-29", 253_402_128_000),
            ("9999-12-30", 253_402_207_200),
            ("9999-12-31", 253_402_207_200),
            ("9999-12-31T23:59:59Z", 253_402_207_200),
        ] {
            assert_eq!(expiry(text), Ok(second), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["0000-01-01", "0001-01-01T00:00:00Z", "1969-12-30"] {
            let expected = Err(format!("expires: '{text}' is before 1970"));
            assert_eq!(expiry(text), expected);
        }
        for text in [
            "soon",
            "2027-02-29",
            "2027-01-31T12:00:00",
            "2027-01-31 12:00",
            "10000-01-01",
            "2027-12-31T24:00:00Z",
            "",
        ] {
            let expected = Err(format!(
                "expires: '{text}' is neither a date such as 2027-01-31 nor a time such as 2027-01-31T12:00:00Z"
            ));
            assert_eq!(expiry(text), expected);
        }
    }
}
