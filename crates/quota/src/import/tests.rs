//! Tests of the import, with entries in the form of the public list.

use super::*;

const LIST: &str = r#"{
    "sample_spec": {
        "input_cost_per_token": 0.0000000000,
        "output_cost_per_token": 0.000,
        "max_tokens": "LEGACY parameter",
        "mode": "one of: chat, embedding, completion"
    },
    "model-pro": {
        "cache_creation_input_token_cost": 1.625e-06,
        "cache_creation_input_token_cost_above_1hr": 2.5e-06,
        "cache_read_input_token_cost": 1.25e-07,
        "cache_read_input_token_cost_above_200k_tokens": 2.5e-07,
        "input_cost_per_audio_token": 7e-07,
        "input_cost_per_token": 1.25e-06,
        "input_cost_per_token_above_200k_tokens": 2.5e-06,
        "input_cost_per_token_above_272k_tokens": null,
        "input_cost_per_token_batches": null,
        "max_input_tokens": 1048576,
        "mode": "chat",
        "output_cost_per_reasoning_token": 1.2e-05,
        "output_cost_per_token": 1e-05,
        "output_cost_per_token_above_200k_tokens": 1.5e-05,
        "output_cost_per_token_above_200k_tokens_priority": 3e-05,
        "output_cost_per_token_priority": 2e-05,
        "search_context_cost_per_query": {"search_context_size_low": 0.03},
        "supports_vision": true
    },
    "embedding": {
        "input_cost_per_audio_token": 1e-06,
        "input_cost_per_image": 0,
        "input_cost_per_token": 0.00000002,
        "mode": "embedding",
        "output_cost_per_token": 0.0
    },
    "painter": {
        "input_cost_per_image_token": 1e-05,
        "input_cost_per_token": 5e-06,
        "output_cost_per_image_token": 4e-05
    },
    "1024-x-1024/pictures": {"input_cost_per_pixel": 1.9e-08, "output_cost_per_pixel": 0.0},
    "half-priced": {"input_cost_per_token": 1e-06, "output_cost_per_token": null},
    "too-fine": {"input_cost_per_token": 2.5e-13, "output_cost_per_token": 1e-06},
    "quoted": {"input_cost_per_token": 1e-06, "output_cost_per_token": "1e-06"},
    "with space": {"input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06},
    "rules": ["^claude-"]
}"#;

#[test]
fn prices_are_imported_with_their_tiers() {
    let import = import_litellm(LIST).unwrap();
    let expected = r#"[[prices]]
model = "embedding"
input = "0.02"
audio_input = "1.00"
output = "0.00"

[[prices]]
model = "model-pro"
input = "1.25"
cached_input = "0.125"
cache_write = "1.625"
cache_write_1h = "2.50"
audio_input = "0.70"
output = "10.00"
reasoning = "12.00"

[[prices.tiers]]
above = 200000
input = "2.50"
cached_input = "0.25"
output = "15.00"

[[prices.tiers]]
service_tier = "priority"
output = "20.00"

[[prices.tiers]]
above = 200000
service_tier = "priority"
output = "30.00"

[[prices]]
model = "painter"
input = "5.00"
image_input = "10.00"
output = "40.00"
image_output = "40.00"
"#;
    assert_eq!(toml::to_string(&import).unwrap(), expected);
}

#[test]
fn skipped_models_and_ignored_fields_are_reported() {
    let import = import_litellm(LIST).unwrap();
    let skipped: Vec<_> = import.skipped.iter().map(Skipped::to_string).collect();
    assert_eq!(
        skipped,
        [
            "\"1024-x-1024/pictures\" was skipped: it has no field `input_cost_per_token`",
            "\"half-priced\" was skipped: it has no field `output_cost_per_token`",
            "\"quoted\" was skipped: field `output_cost_per_token`: \"1e-06\" is not a price: \
             expected a number",
            "\"rules\" was skipped: it is not an object",
            "\"sample_spec\" was skipped: it describes the format",
            "\"too-fine\" was skipped: field `input_cost_per_token`: 2.5e-13 is too precise: \
             expected a multiple of 1e-12",
            "\"with space\" was skipped: field `model`: \"with space\" is no name of a model: \
             expected one, with '*' for any characters",
        ]
    );
    let ignored: Vec<_> = import
        .ignored
        .iter()
        .map(|(name, count)| (&**name, *count))
        .collect();
    assert_eq!(ignored, [("search_context_cost_per_query", 1)]);
}

#[test]
fn limits_of_tiers_are_read_from_the_names_of_fields() {
    let limit = |name| parse_name(name).map(|name| (name.kind.field(), name.above));
    let input = "input_cost_per_token";
    assert_eq!(
        limit("input_cost_per_token_above_272k_tokens"),
        Some((input, 272_000))
    );
    assert_eq!(
        limit("input_cost_per_token_above_512_tokens"),
        Some((input, 512))
    );
    let written = "cache_creation_input_token_cost_above_1hr";
    assert_eq!(limit(written), Some((written, 0)));
    assert_eq!(
        limit("cache_creation_input_token_cost_above_1hr_above_200k_tokens"),
        Some((written, 200_000))
    );
    let tier = |name| parse_name(name).map(|name| (name.service_tier, name.above));
    assert_eq!(tier("output_cost_per_token_flex"), Some((Some("flex"), 0)));
    assert_eq!(
        tier("input_cost_per_token_batches"),
        Some((Some("batch"), 0))
    );
    assert_eq!(
        tier("input_cost_per_token_above_200k_tokens_priority"),
        Some((Some("priority"), 200_000))
    );
    for name in [
        "cache_read_input_token_cost_per_audio_token",
        "input_cost_per_token_above_k_tokens",
        "input_cost_per_token_above_99999999999999999999_tokens",
        "input_cost_per_token_above_99999999999999999k_tokens",
        "input_cost_per_token_fast",
        "cache_creation_input_token_cost_above_5hr",
        "output_cost_per_image",
    ] {
        assert_eq!(limit(name), None, "{name}");
    }
}

#[test]
fn another_document_is_refused() {
    let message = import_litellm("[]").unwrap_err().to_string();
    let expected = "not a price list: expected a JSON object with an object for each model: ";
    assert!(message.starts_with(expected), "{message}");
}
