//! Import of the public price list of LiteLLM, `model_prices_and_context_window.json`.

mod number;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

pub use self::number::PerTokenError;
use crate::{PicoPrice, Price, PriceEntry, PriceError, Tier};

/// The result of an import. It serializes as a document with the list `prices`.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Import {
    /// The prices of tokens, in the order of the names of the models.
    pub prices: Vec<PriceEntry>,
    /// The entries without a usable price, in the same order.
    #[serde(skip)]
    pub skipped: Vec<Skipped>,
    /// The fields of imported entries that contain another price, such as a search price, and the
    /// number of entries in which each field was left out.
    #[serde(skip)]
    pub ignored: BTreeMap<String, usize>,
}

/// An entry that was not imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{model:?} was skipped: {reason}")]
#[non_exhaustive]
pub struct Skipped {
    /// The name of the entry.
    pub model: String,
    /// The reason.
    pub reason: SkipReason,
}

/// The reason why an entry was not imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkipReason {
    /// The entry describes the format.
    #[error("it describes the format")]
    Sample,
    /// The entry is not a JSON object.
    #[error("it is not an object")]
    Type,
    /// The entry has no price for the tokens of the prompt, or for generated ones: contains the
    /// name of the field.
    #[error("it has no field `{0}`")]
    Missing(&'static str),
    /// A field with a price is invalid.
    #[error("field `{0}`: {1}")]
    Field(String, PerTokenError),
    /// The name cannot be a model name.
    #[error("{0}")]
    Model(PriceError),
}

/// The error for a document that is not a JSON object.
#[derive(Debug, thiserror::Error)]
#[error("not a price list: expected a JSON object with an object for each model: {0}")]
pub struct ImportError(#[from] serde_json::Error);

/// The values of one JSON object, as they are written.
type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// Imports the price list of LiteLLM. Numbers are read exactly from their decimal text.
///
/// An entry with an invalid price is skipped as a whole, since a wrong price is worse than none.
///
/// # Errors
/// Returns an error if `json` is not a JSON object.
pub fn import_litellm(json: &str) -> Result<Import, ImportError> {
    let models: Fields<'_> = serde_json::from_str(json)?;
    let mut import = Import::default();
    for (model, value) in models {
        match import.entry(&model, value) {
            Ok(entry) => import.prices.push(entry),
            Err(reason) => import.skipped.push(Skipped { model, reason }),
        }
    }
    Ok(import)
}

impl Import {
    /// Reads an entry, and counts its fields that are left out.
    fn entry(&mut self, model: &str, value: &RawValue) -> Result<PriceEntry, SkipReason> {
        if model == SAMPLE {
            return Err(SkipReason::Sample);
        }
        let fields: Fields<'_> = serde_json::from_str(value.get()).map_err(|_| SkipReason::Type)?;
        let price = price(&fields)?;
        let entry = PriceEntry::new(model, price).map_err(SkipReason::Model)?;
        let others = fields
            .into_iter()
            .filter(|(name, value)| is_other_price(name, value));
        for (name, _) in others {
            let count = self.ignored.entry(name).or_default();
            *count = count.saturating_add(1);
        }
        Ok(entry)
    }
}

/// Reads token prices, including tier prices.
fn price(fields: &Fields<'_>) -> Result<Price, SkipReason> {
    // Prices without a tier have a limit of 0 tokens and no service tier.
    let mut tiers: BTreeMap<(Option<&str>, u64), Tier> = BTreeMap::new();
    for (name, value) in fields {
        let Some(name_of) = parse_name(name) else {
            continue;
        };
        let price = number::per_token(value.get());
        let price = price.map_err(|error| SkipReason::Field(name.clone(), error))?;
        if price.is_some() {
            let (service_tier, above) = (name_of.service_tier, name_of.above);
            let tier = tiers.entry((service_tier, above)).or_default();
            tier.above = above;
            tier.service_tier = service_tier.map(str::to_owned);
            *name_of.kind.of(tier) = price;
        }
    }
    let base = tiers.remove(&(None, 0)).unwrap_or_default();
    let input = base.input.ok_or(SkipReason::Missing(Kind::Input.field()));
    // Models that generate nothing but images may have no other price for their output.
    let output = base.output.or(base.image_output);
    let output = output.ok_or(SkipReason::Missing(Kind::Output.field()));
    let mut price = Price::new(input?, output?);
    price.cached_input = base.cached_input;
    price.cache_write = base.cache_write;
    price.cache_write_1h = base.cache_write_1h;
    price.audio_input = base.audio_input;
    price.image_input = base.image_input;
    price.reasoning = base.reasoning;
    price.audio_output = base.audio_output;
    price.image_output = base.image_output;
    price.tiers = tiers.into_values().collect();
    Ok(price)
}

/// A kind of token that has a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Input,
    CachedInput,
    CacheWrite,
    CacheWrite1h,
    AudioInput,
    ImageInput,
    Output,
    Reasoning,
    AudioOutput,
    ImageOutput,
}

/// The meaning of the name of a field with a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FieldName {
    kind: Kind,
    /// The limit of the tier, or 0.
    above: u64,
    /// The service tier as answers name it.
    service_tier: Option<&'static str>,
}

impl Kind {
    /// All kinds. If one field name begins with another field name, the longer name comes first.
    const ALL: [Self; 10] = [
        Self::Input,
        Self::CachedInput,
        Self::CacheWrite1h,
        Self::CacheWrite,
        Self::AudioInput,
        Self::ImageInput,
        Self::Output,
        Self::Reasoning,
        Self::AudioOutput,
        Self::ImageOutput,
    ];

    /// The name of the field with the price.
    fn field(self) -> &'static str {
        match self {
            Self::Input => "input_cost_per_token",
            Self::CachedInput => "cache_read_input_token_cost",
            Self::CacheWrite => "cache_creation_input_token_cost",
            Self::CacheWrite1h => "cache_creation_input_token_cost_above_1hr",
            Self::AudioInput => "input_cost_per_audio_token",
            Self::ImageInput => "input_cost_per_image_token",
            Self::Output => "output_cost_per_token",
            Self::Reasoning => "output_cost_per_reasoning_token",
            Self::AudioOutput => "output_cost_per_audio_token",
            Self::ImageOutput => "output_cost_per_image_token",
        }
    }

    /// Returns the place of the price in a tier.
    fn of(self, tier: &mut Tier) -> &mut Option<PicoPrice> {
        match self {
            Self::Input => &mut tier.input,
            Self::CachedInput => &mut tier.cached_input,
            Self::CacheWrite => &mut tier.cache_write,
            Self::CacheWrite1h => &mut tier.cache_write_1h,
            Self::AudioInput => &mut tier.audio_input,
            Self::ImageInput => &mut tier.image_input,
            Self::Output => &mut tier.output,
            Self::Reasoning => &mut tier.reasoning,
            Self::AudioOutput => &mut tier.audio_output,
            Self::ImageOutput => &mut tier.image_output,
        }
    }
}

/// Parses the name of a field, such as `input_cost_per_token_above_200k_tokens_priority`. Returns
/// `None` for the names of fields without a price that is read.
fn parse_name(name: &str) -> Option<FieldName> {
    let rest = |kind: Kind| Some((kind, name.strip_prefix(kind.field())?));
    let (kind, rest) = Kind::ALL.into_iter().find_map(rest)?;
    let of_tier = |(suffix, tier): &(&str, &'static str)| Some((rest.strip_suffix(suffix)?, *tier));
    let (limit, service_tier) = match SERVICE_TIERS.iter().find_map(of_tier) {
        Some((limit, tier)) => (limit, Some(tier)),
        None => (rest, None),
    };
    Some(FieldName {
        kind,
        above: if limit.is_empty() { 0 } else { above(limit)? },
        service_tier,
    })
}

/// Parses a limit, such as `_above_200k_tokens`.
fn above(limit: &str) -> Option<u64> {
    let limit = limit.strip_prefix("_above_")?.strip_suffix("_tokens")?;
    let (digits, unit) = match limit.strip_suffix('k') {
        Some(digits) => (digits, 1000),
        None => (limit, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Returns true for a price that [`parse_name`] does not know, such as the price of a search or of
/// a second of video, and that is neither null nor zero.
fn is_other_price(name: &str, value: &RawValue) -> bool {
    let is_price = name.contains("cost") || name == "tiered_pricing";
    let is_nothing = matches!(
        number::per_token(value.get()),
        Ok(None | Some(PicoPrice::ZERO))
    );
    is_price && parse_name(name).is_none() && !is_nothing
}

/// The ends of the names of prices at a service tier, and its name in answers.
const SERVICE_TIERS: [(&str, &str); 3] = [
    ("_flex", "flex"),
    ("_priority", "priority"),
    ("_batches", "batch"),
];
/// The entry of the list that describes the format.
const SAMPLE: &str = "sample_spec";
