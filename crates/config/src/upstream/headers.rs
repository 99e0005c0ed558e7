//! The fixed headers of requests to an upstream, and the response headers that clients get.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};

/// Parses `headers`. Whether a header may be set at all is checked by `upstream::Options`.
pub(crate) fn fixed(found: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in found {
        let parsed = self::name("headers", name)?;
        if CREDENTIALS.contains(&parsed.as_str()) {
            return Err(format!(
                "headers: '{name}' carries credentials; set 'api_key' and 'auth' instead"
            ));
        }
        let value = HeaderValue::try_from(value.trim()).map_err(|_| {
            format!("headers: the value of '{name}' has characters that a header cannot carry")
        })?;
        if headers.insert(parsed, value).is_some() {
            return Err(format!("headers: '{name}' is set twice"));
        }
    }
    Ok(headers)
}

/// Parses `pass_headers`.
pub(crate) fn passed(found: &[String]) -> Result<Vec<HeaderName>, String> {
    found
        .iter()
        .map(|name| self::name("pass_headers", name))
        .collect()
}

pub(crate) fn name(setting: &str, name: &str) -> Result<HeaderName, String> {
    name.parse()
        .map_err(|_| format!("{setting}: '{name}' is not the name of a header"))
}

/// The headers that carry credentials, among them those in which
/// [Anthropic](https://docs.anthropic.com/en/api/overview#authentication),
/// [Azure](https://learn.microsoft.com/en-us/azure/ai-foundry/openai/reference#authentication) and
/// [Gemini](https://ai.google.dev/gemini-api/docs/api-key) take a key.
const CREDENTIALS: [&str; 5] = [
    "authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
];
