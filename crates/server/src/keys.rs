//! Where keys come from: the file, the environment, or made for this run.

use std::env;

use auth::{Entry, Key, KeyHash, KeyRing, Scope, Scopes};

use crate::clock;
use crate::config::{Config, ConfigError};

/// The variable that names a key for each capability.
const VARIABLES: [(Scope, &str); 3] = [
    (Scope::Text, "SLUICEGATE_TEXT_KEY"),
    (Scope::Messages, "SLUICEGATE_MESSAGES_KEY"),
    (Scope::Images, "SLUICEGATE_IMAGE_KEY"),
];

/// Every key of a run, and those that nobody knows yet.
pub(crate) struct Keys {
    /// All of them.
    pub(crate) ring: KeyRing,
    /// GeneratedKey for this run: to be shown once.
    pub(crate) made: Vec<GeneratedKey>,
}

/// A key that was made for this run.
pub(crate) struct GeneratedKey {
    /// What it opens.
    pub(crate) scope: Scope,
    /// The variable by which it can be kept across runs.
    pub(crate) variable: &'static str,
    /// The key itself.
    pub(crate) key: Key,
}

/// Gathers the keys of a run. Keys are made only where there is no file (`from_file` is false) and the environment
/// names none for that capability: a file without keys is refused, never open.
pub(crate) fn gather(config: &Config, from_file: bool) -> Result<Keys, ConfigError> {
    let mut entries = config.entries()?;
    let mut made = Vec::new();
    for (scope, variable) in VARIABLES {
        match from_environment(variable)? {
            Some(key) => add(&mut entries, scope, &key),
            None if from_file => {}
            None => {
                let key = make()?;
                add(&mut entries, scope, &key);
                made.push(GeneratedKey { scope, variable, key });
            }
        }
    }
    if entries.is_empty() {
        let names = VARIABLES.map(|(_, variable)| variable).join(", ");
        return Err(ConfigError::one(format!(
            "no keys: add [[keys]] to the file (see `sluicegate keys new`), or set one of {names}"
        )));
    }
    Ok(Keys { ring: KeyRing::new(entries)?, made })
}

/// A new key with 256 bits.
pub(crate) fn make() -> Result<Key, ConfigError> {
    let bits = clock::random().map_err(|error| ConfigError::one(format!("the system gives no randomness: {error}")))?;
    Ok(Key::from_bits(bits))
}

fn from_environment(variable: &str) -> Result<Option<Key>, ConfigError> {
    let Some(text) = env::var_os(variable).filter(|text| !text.is_empty()) else { return Ok(None) };
    let key = Key::parse(text.to_string_lossy().as_bytes());
    key.map(Some).map_err(|error| ConfigError::one(format!("{variable}: {error}")))
}

/// Adds a key; one that is there for another capability gets this one too.
fn add(entries: &mut Vec<Entry>, scope: Scope, key: &Key) {
    let hash = KeyHash::of(key);
    match entries.iter_mut().find(|entry| entry.hash == hash) {
        Some(entry) => entry.scopes = entry.scopes.union(scope.into()),
        None => entries.push(Entry::new(format!("{}-key", scope.as_str()), hash, Scopes::from(scope))),
    }
}

/// What a person is shown of a new key: the key once, and the lines for the configuration.
pub(crate) fn announce(
    name: &str,
    scopes: &[Scope],
    expires: Option<&str>,
    models: &[String],
) -> Result<String, ConfigError> {
    let key = make()?;
    let words: Vec<_> = scopes.iter().map(|scope| scope.as_str()).collect();
    let mut table = toml::Table::new();
    table.insert("name".into(), name.into());
    table.insert("hash".into(), KeyHash::of(&key).to_string().into());
    table.insert("scopes".into(), words.into());
    if !models.is_empty() {
        table.insert("models".into(), models.to_vec().into());
    }
    if let Some(expires) = expires {
        table.insert("expires".into(), end(expires)?.into());
    }
    // What is shown must be taken: the lines are read back as a configuration would be.
    let lines = table.to_string();
    let read: crate::config::key::Key = toml::from_str(&lines).map_err(|error| ConfigError::one(error.to_string()))?;
    let config = Config { keys: vec![read], ..Config::default() };
    KeyRing::new(config.entries()?)?;
    Ok(format!(
        "{}\n\nThat was the key; it is not shown again. For the configuration:\n\n[[keys]]\n{lines}",
        key.expose()
    ))
}

/// A span from now as the time at which it ends; anything else as it is.
fn end(text: &str) -> Result<String, ConfigError> {
    let Ok(span) = text.parse::<jiff::Span>() else { return Ok(text.to_owned()) };
    let now = jiff::Timestamp::from_second(clock::unix_seconds()).unwrap_or_default().to_zoned(jiff::tz::TimeZone::UTC);
    match now.checked_add(span) {
        Ok(end) if end > now => Ok(end.timestamp().to_string()),
        _ => Err(ConfigError::one(format!("expires: '{text}' does not lead into the future"))),
    }
}
