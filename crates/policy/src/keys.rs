//! The API keys of clients: from the file, from the environment, or generated for this run.

use std::env;

use auth::{Entry, Key, KeyHash, KeyRing, Scope, Scopes};
use catalog::Protocol;
use config::{Config, ConfigError, key};

use crate::clock;

/// The environment variable of the key for each scope.
const VARIABLES: [(Scope, &str); 3] = [
    (Scope::Text, "SLUICEGATE_TEXT_KEY"),
    (Scope::Messages, "SLUICEGATE_MESSAGES_KEY"),
    (Scope::Images, "SLUICEGATE_IMAGE_KEY"),
];

/// The environment variable of the key of the admin API.
pub const ADMIN_VARIABLE: &str = "SLUICEGATE_ADMIN_KEY";

/// The length below which a key in the environment gets a warning.
const MIN_LENGTH: usize = 16;

/// A key that was generated for this run, to be printed once.
pub struct GeneratedKey {
    /// The scope that the key has.
    pub scope: Scope,
    /// The environment variable that keeps it across runs.
    pub variable: &'static str,
    /// The key.
    pub key: Key,
}

/// Collects the keys of a run, and lists the keys that it generated. A key is generated only
/// without a file (`from_file` is false), without the environment variable of its scope, and if a
/// model is served in its scope. A file without keys is rejected, unless there is a store of keys:
/// the gateway is never open.
pub fn gather(
    config: &Config,
    from_file: bool,
) -> Result<(Vec<Entry>, Vec<GeneratedKey>), ConfigError> {
    let mut entries = config.entries()?;
    let mut generated = Vec::new();
    for (scope, variable) in VARIABLES {
        match from_environment(variable)? {
            Some(key) => add(&mut entries, scope, &key),
            None if from_file || !serves(config, scope) => {}
            None => {
                let key = generate()?;
                add(&mut entries, scope, &key);
                generated.push(GeneratedKey {
                    scope,
                    variable,
                    key,
                });
            }
        }
    }
    if entries.is_empty() && config.state.accounting.is_none() {
        let names = VARIABLES.map(|(_, variable)| variable).join(", ");
        return Err(ConfigError::one(format!(
            "no keys: add [[keys]] to the file (see `sluicegate keys new`), set one of {names}, or have a store of keys by state.accounting"
        )));
    }
    Ok((entries, generated))
}

/// True if a model of the configuration is served on an endpoint that needs this scope.
fn serves(config: &Config, scope: Scope) -> bool {
    let scope_of = |protocol| match protocol {
        Protocol::Responses | Protocol::Chat => Scope::Text,
        Protocol::Messages => Scope::Messages,
        _ => Scope::Images,
    };
    config.models.as_ref().is_none_or(|models| {
        let mut protocols = models.iter().flat_map(|entry| entry.model.protocols());
        protocols.any(|protocol| scope_of(protocol) == scope)
    })
}

/// Logs each key of the environment that is short enough to be guessed.
pub fn warn_of_short_keys() {
    let of_clients = VARIABLES.map(|(_, variable)| variable);
    for variable in of_clients.into_iter().chain([ADMIN_VARIABLE]) {
        let length = env::var_os(variable).map_or(0, |text| text.to_string_lossy().trim().len());
        if (1..MIN_LENGTH).contains(&length) {
            tracing::warn!(
                variable,
                "the key has fewer than {MIN_LENGTH} characters: use `sluicegate keys new`"
            );
        }
    }
}

/// Generates a key of 256 bits.
pub fn generate() -> Result<Key, ConfigError> {
    let bits = clock::random()
        .map_err(|error| ConfigError::one(format!("cannot read random bytes: {error}")))?;
    Ok(Key::from_bits(bits))
}

fn from_environment(variable: &str) -> Result<Option<Key>, ConfigError> {
    let Some(text) = env::var_os(variable).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let key = Key::parse(text.to_string_lossy().as_bytes());
    key.map(Some)
        .map_err(|error| ConfigError::one(format!("{variable}: {error}")))
}

/// Adds a key, or adds the scope to the same key if it is there already.
fn add(entries: &mut Vec<Entry>, scope: Scope, key: &Key) {
    let hash = KeyHash::of(key);
    match entries.iter_mut().find(|entry| entry.hash == hash) {
        Some(entry) => entry.scopes = entry.scopes.union(scope.into()),
        None => entries.push(Entry::new(
            format!("{}-key", scope.as_str()),
            hash,
            Scopes::from(scope),
        )),
    }
}

/// Generates a key and returns the text to print: the key, and its entry for the configuration.
pub fn render_new(
    name: &str,
    scopes: &[Scope],
    expires: Option<&str>,
    models: &[String],
) -> Result<String, ConfigError> {
    let key = generate()?;
    let scopes: Vec<_> = scopes.iter().map(|scope| scope.as_str()).collect();
    let mut table = toml::Table::new();
    table.insert("name".into(), name.into());
    table.insert("hash".into(), KeyHash::of(&key).to_string().into());
    table.insert("scopes".into(), scopes.into());
    if !models.is_empty() {
        table.insert("models".into(), models.to_vec().into());
    }
    if let Some(expires) = expires {
        table.insert("expires".into(), resolve_expiry(expires)?.into());
    }
    // Parse the entry as a configuration would, to guarantee that it is valid.
    let lines = table.to_string();
    let read: key::Key =
        toml::from_str(&lines).map_err(|error| ConfigError::one(error.to_string()))?;
    let config = Config {
        keys: vec![read],
        ..Config::default()
    };
    KeyRing::new(config.entries()?)?;
    Ok(format!(
        "{}\n\nThat was the key; it is not shown again. For the configuration:\n\n[[keys]]\n{lines}",
        key.expose()
    ))
}

/// Parses an expiry to Unix seconds: a date, a time, or a span from now.
pub fn expiry(text: &str) -> Result<i64, String> {
    let resolved = resolve_expiry(text).map_err(|error| error.to_string())?;
    key::expiry(&resolved)
}

/// Reads the key of the admin API from the environment, if it is there.
pub fn admin_key_of_environment() -> Result<Option<Key>, ConfigError> {
    from_environment(ADMIN_VARIABLE)
}

/// Converts a span from now to a point in time. Any other text is returned unchanged.
fn resolve_expiry(text: &str) -> Result<String, ConfigError> {
    let Ok(span) = text.parse::<jiff::Span>() else {
        return Ok(text.to_owned());
    };
    let now = jiff::Timestamp::from_second(clock::unix_seconds())
        .unwrap_or_default()
        .to_zoned(jiff::tz::TimeZone::UTC);
    match now.checked_add(span) {
        Ok(end) if end > now => Ok(end.timestamp().to_string()),
        Ok(_) => Err(ConfigError::one(format!(
            "expires: '{text}' is not in the future"
        ))),
        Err(_) => Err(ConfigError::one(format!(
            "expires: '{text}' ends after the year 9999; a key without 'expires' does not expire"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use config::pass_through;

    use super::*;

    #[test]
    fn expiry_spans_end_in_the_future_before_the_year_10000() {
        assert!(expiry("90d").is_ok());
        for (text, problem) in [
            ("-1d", "expires: '-1d' is not in the future"),
            ("0s", "expires: '0s' is not in the future"),
            (
                "9000y",
                "expires: '9000y' ends after the year 9999; a key without 'expires' does not expire",
            ),
        ] {
            assert_eq!(expiry(text), Err(problem.to_owned()));
        }
    }

    #[test]
    fn a_key_is_generated_for_each_scope_that_is_served() {
        let scopes = |config: &Config| VARIABLES.map(|(scope, _)| serves(config, scope));
        let before = |protocol| pass_through::config("http://127.0.0.1:1/v1", protocol, None);
        assert_eq!(scopes(&Config::default()), [true, true, true]);
        assert_eq!(scopes(&before("chat").unwrap()), [true, true, false]);
        assert_eq!(scopes(&before("images").unwrap()), [false, false, true]);
    }
}
