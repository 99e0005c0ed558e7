//! Converts price lists of others for the configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::num::NonZeroU64;
use std::path::Path;

use catalog::{Facts, Modality};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use quota::{Import, SkipReason};
use serde::Serialize;
use serde_json::Value;

use crate::error::ConfigError;

/// A converted price list.
pub struct Converted {
    /// The prices as `[[prices]]` of a configuration, or the facts as `[facts]`.
    pub settings: String,
    /// A summary for people: the number of imported models, and the models and fields that were
    /// left out, with the reasons.
    pub summary: String,
}

/// Converts the public price list of LiteLLM.
///
/// # Errors
/// Returns an error if the file cannot be read or is no such list.
pub fn litellm(file: &Path) -> Result<Converted, ConfigError> {
    converted(file, |json| {
        let import = quota::import_litellm(json).map_err(|error| error.to_string())?;
        Ok((toml::to_string(&import), summary(&import)))
    })
}

/// Converts the limits, the media and the last days of models in the public price list of LiteLLM.
///
/// Its other flags name only some capabilities, and an absent flag is false for one and unknown for
/// another, so that no complete list follows from them.
///
/// # Errors
/// Returns an error if the file cannot be read or is no such list.
pub fn litellm_facts(file: &Path) -> Result<Converted, ConfigError> {
    converted(file, |json| {
        let list: BTreeMap<String, Value> = serde_json::from_str(json)
            .map_err(|error| format!("not a price list: expected a JSON object: {error}"))?;
        let facts = list
            .iter()
            .map(|(model, entry)| (model.as_str(), facts(entry)));
        let facts: BTreeMap<_, _> = facts
            .filter(|(_, facts)| *facts != Facts::default())
            .collect();
        let summary = format!(
            "imported facts of {} of {} models\n",
            facts.len(),
            list.len()
        );
        Ok((toml::to_string(&FactTable { facts }), summary))
    })
}

/// The section of a configuration with the facts of models.
#[derive(Serialize)]
struct FactTable<'a> {
    facts: BTreeMap<&'a str, Facts>,
}

/// Reads an entry of the list, as the
/// [list](https://github.com/BerriAI/litellm/blob/main/model_prices_and_context_window.json) describes
/// it. `sample_spec`, its description, has texts in place of numbers, and so no facts.
fn facts(entry: &Value) -> Facts {
    let limit = |name| {
        entry
            .get(name)
            .and_then(Value::as_u64)
            .and_then(NonZeroU64::new)
    };
    let mut facts = Facts::default();
    facts.max_input_tokens = limit("max_input_tokens");
    facts.max_output_tokens = limit("max_output_tokens");
    facts.input_modalities = media(entry, "supported_modalities");
    facts.output_modalities = media(entry, "supported_output_modalities");
    facts.retires_at = entry.get("deprecation_date").and_then(date);
    facts
}

/// Reads a list of media. One with an unknown word is left out, because it would not be complete.
fn media(entry: &Value, name: &str) -> Option<BTreeSet<Modality>> {
    let words = entry.get(name)?.as_array()?;
    words
        .iter()
        .map(|word| Modality::named(word.as_str()?))
        .collect()
}

/// Reads a date as the start of the day in UTC.
fn date(value: &Value) -> Option<Timestamp> {
    let date: Date = value.as_str()?.parse().ok()?;
    Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// Reads a file and converts it to settings and a summary.
fn converted(
    file: &Path,
    convert: impl Fn(&str) -> Result<(Result<String, toml::ser::Error>, String), String>,
) -> Result<Converted, ConfigError> {
    let name = file.display();
    let unusable = |error: String| ConfigError::one(format!("{name}: {error}"));
    let json = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
    let (settings, summary) = convert(&json).map_err(unusable)?;
    Ok(Converted {
        settings: settings.map_err(|error| unusable(error.to_string()))?,
        summary,
    })
}

fn summary(import: &Import) -> String {
    let mut lines = format!("imported the prices of {} models\n", import.prices.len());
    let mut reasons = BTreeMap::<String, Vec<&str>>::new();
    for skipped in &import.skipped {
        if skipped.reason != SkipReason::Sample {
            let models = reasons.entry(skipped.reason.to_string()).or_default();
            models.push(&skipped.model);
        }
    }
    // Writing to a string does not fail.
    for (reason, models) in reasons {
        let _ = writeln!(lines, "skipped {}: {reason}", shown(&models));
    }
    for (field, count) in &import.ignored {
        let _ = writeln!(lines, "left out the field `{field}` of {count} models");
    }
    lines
}

/// Returns the models, or the first of them if there are many.
fn shown(models: &[&str]) -> String {
    match models.len() {
        0..=MOST_SHOWN => models.join(", "),
        all => format!("{all} models, such as {}", models[..MOST_SHOWN].join(", ")),
    }
}

const MOST_SHOWN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_lists_skipped_models_with_reasons() {
        let json = r#"{
            "sample_spec": {"input_cost_per_token": 0, "output_cost_per_token": 0},
            "chat": {"input_cost_per_token": 4e-07, "output_cost_per_token": 1.6e-06, "input_cost_per_character": 1e-05},
            "a": {}, "b": {}, "c": {}, "d": {},
            "odd": {"input_cost_per_token": "1", "output_cost_per_token": 0}
        }"#;
        let import = quota::import_litellm(json).unwrap();
        assert_eq!(
            toml::to_string(&import).unwrap(),
            "[[prices]]\nmodel = \"chat\"\ninput = \"0.40\"\noutput = \"1.60\"\n"
        );
        assert_eq!(
            summary(&import),
            "imported the prices of 1 models\n\
             skipped odd: field `input_cost_per_token`: \"1\" is not a price: expected a number\n\
             skipped 4 models, such as a, b, c: it has no field `input_cost_per_token`\n\
             left out the field `input_cost_per_character` of 1 models\n"
        );
    }

    /// Entries as they are in the public list.
    #[test]
    fn facts_are_what_the_list_states() {
        let entry = |json: &str| toml::to_string(&facts(&serde_json::from_str(json).unwrap()));
        let sonnet = r#"{
            "deprecation_date": "2026-05-14", "input_cost_per_token": 3e-06,
            "litellm_provider": "anthropic", "max_input_tokens": 200000, "max_output_tokens": 64000,
            "max_tokens": 64000, "mode": "chat", "output_cost_per_token": 1.5e-05,
            "supports_function_calling": true, "supports_vision": true
        }"#;
        assert_eq!(
            entry(sonnet).unwrap(),
            "max_input_tokens = 200000\nmax_output_tokens = 64000\nretires_at = \"2026-05-14T00:00:00Z\"\n"
        );
        let audio = r#"{
            "max_input_tokens": 128000, "max_output_tokens": 16384, "mode": "chat",
            "supported_modalities": ["text", "audio"], "supported_output_modalities": ["text", "audio"]
        }"#;
        assert_eq!(
            entry(audio).unwrap(),
            "max_input_tokens = 128000\nmax_output_tokens = 16384\n\
             input_modalities = [\"text\", \"audio\"]\noutput_modalities = [\"text\", \"audio\"]\n"
        );
        let sample = r#"{
            "max_input_tokens": "max input tokens, if the provider specifies it. if not default to max_tokens",
            "deprecation_date": "date when the model becomes deprecated in the format YYYY-MM-DD",
            "supported_modalities": ["text", "smell"], "supports_vision": true
        }"#;
        assert_eq!(entry(sample).unwrap(), "");
    }
}
