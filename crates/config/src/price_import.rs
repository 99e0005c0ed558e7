//! Converts price lists of others for the configuration.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use quota::{Import, SkipReason};

use crate::error::ConfigError;

/// A converted price list.
pub struct Converted {
    /// The prices as `[[prices]]` of a configuration.
    pub prices: String,
    /// A summary for people: the number of imported models, the skipped models with the reasons,
    /// and the fields that were left out.
    pub summary: String,
}

/// Converts the public price list of LiteLLM.
///
/// # Errors
/// Returns an error if the file cannot be read or is no such list.
pub fn litellm(file: &Path) -> Result<Converted, ConfigError> {
    let name = file.display();
    let unusable = |error: String| ConfigError::one(format!("{name}: {error}"));
    let json = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
    let import = quota::import_litellm(&json).map_err(|error| unusable(error.to_string()))?;
    Ok(Converted {
        prices: toml::to_string(&import).map_err(|error| unusable(error.to_string()))?,
        summary: summary(&import),
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
}
