//! The deviations of an upstream from its protocol, in the configuration.

use http::HeaderName;
use schemars::schema_for;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml::{Table, Value};
use translate::quirks::Quirks;

use super::headers;

/// Reads the table of quirks. The error for another value, such as a list of words, says which words there
/// are and how they are written.
pub(crate) fn table<'de, D: Deserializer<'de>>(from: D) -> Result<Table, D::Error> {
    match Value::deserialize(from)? {
        Value::Table(table) => Ok(table),
        found => Err(D::Error::custom(format!(
            "is {found}, but must be a table such as {{ no_stream_options = true }}, with some of {}",
            words()
        ))),
    }
}

/// The names of all quirks.
fn words() -> String {
    let schema = schema_for!(Quirks);
    let quirks = schema.get("properties").and_then(|all| all.as_object());
    let names: Vec<_> = quirks
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    names.join(", ")
}

/// Parses the quirks of an upstream.
pub(crate) fn parse(found: &Table) -> Result<Quirks, String> {
    let read = serde_path_to_error::deserialize(Value::Table(found.clone()));
    let quirks: Quirks = read.map_err(|error: serde_path_to_error::Error<toml::de::Error>| {
        format!("quirks: {}: {}", error.path(), error.inner().message())
    })?;
    for name in &quirks.drop_members {
        if NEEDED.contains(&name.as_str()) {
            return Err(format!(
                "quirks: drop_members: '{name}' is needed by every request"
            ));
        }
    }
    if let Some(prefix) = &quirks.path_prefix
        && !is_path(prefix)
    {
        return Err(format!(
            "quirks: path_prefix: '{prefix}' is not a path such as \"/openai/v1\""
        ));
    }
    affinity_header(&quirks)?;
    Ok(quirks)
}

/// The name of the header that binds the requests of a conversation to a server.
pub(crate) fn affinity_header(quirks: &Quirks) -> Result<Option<HeaderName>, String> {
    let Some(name) = &quirks.affinity_header else {
        return Ok(None);
    };
    let parsed = headers::name("quirks: affinity_header", name)?;
    if !parsed.as_str().starts_with("x-") || parsed == "x-api-key" {
        return Err(format!(
            "quirks: affinity_header: '{name}' is not a header such as \"x-session-affinity\""
        ));
    }
    Ok(Some(parsed))
}

fn is_path(prefix: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#');
    prefix.starts_with('/') && !prefix.ends_with('/') && prefix.bytes().all(is_plain)
}

/// The members without which a request means nothing.
const NEEDED: [&str; 5] = ["input", "messages", "model", "prompt", "stream"];
