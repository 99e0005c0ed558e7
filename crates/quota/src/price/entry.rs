//! Entries of the price list, as an operator writes them.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PicoPrice, PicturePrice, Price, Tier};
use crate::Money;

/// An entry of the price list: a price, the models that it is for, and the time from which it
/// applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Fields")]
#[schemars(!try_from, deny_unknown_fields)]
#[non_exhaustive]
pub struct PriceEntry {
    /// The name of a model, or a pattern with `*` for any characters.
    #[schemars(example = &"model-5.*")]
    pub model: String,
    /// The name of the upstream whose model it is, or `embedded`. Absent: any.
    #[schemars(example = &"house")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// The time from which the price applies. Absent: always.
    #[schemars(with = "Option<String>", extend("format" = "date-time"), example = &"2027-01-01T00:00:00Z")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<Timestamp>,
    /// The price.
    #[serde(flatten)]
    pub price: Price,
}

/// The reason why the fields of a price are refused. `Display` names the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PriceError {
    /// An entry of the price list has no model.
    #[error("missing field `model`: expected the name of a model, or a pattern with '*'")]
    NoModel,
    /// The model is blank, or has white space or control characters.
    #[error(
        "field `model`: {0:?} is no name of a model: expected one, with '*' for any characters"
    )]
    Model(String),
    /// The price of this model is refused.
    #[error("the price of {model:?}: {error}")]
    Entry {
        /// The model.
        model: String,
        /// The reason.
        error: Box<Self>,
    },
    /// A price that is not for a model of its own has this field.
    #[error("unknown field `{0}`: expected it in an entry of `prices` only")]
    Unexpected(&'static str),
    /// A tier applies to all requests.
    #[error("field `tiers`: a tier has no condition: expected `above`, `service_tier` or both")]
    Unconditional,
    /// The tiers are not in rising order: contains the limit that is too low.
    #[error("field `tiers`: `above` is {0} after a tier as high: expected rising numbers")]
    Tiers(u64),
    /// The price of a picture is negative.
    #[error("field `pictures`: `price` is {0}: expected no negative amount")]
    Picture(Money),
}

impl PriceEntry {
    /// Creates an entry that always applies.
    ///
    /// # Errors
    /// Returns [`PriceError::Model`] if `model` cannot be the name of a model or a pattern.
    pub fn new(model: impl Into<String>, price: Price) -> Result<Self, PriceError> {
        let model = model.into();
        if model.is_empty() || model.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(PriceError::Model(model));
        }
        Ok(Self {
            model,
            upstream: None,
            valid_from: None,
            price,
        })
    }
}

/// All fields of an entry. It is flat, since an error in a flattened struct has lost its line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fields {
    model: Option<String>,
    upstream: Option<String>,
    valid_from: Option<Timestamp>,
    input: PicoPrice,
    cached_input: Option<PicoPrice>,
    cache_write: Option<PicoPrice>,
    cache_write_1h: Option<PicoPrice>,
    audio_input: Option<PicoPrice>,
    image_input: Option<PicoPrice>,
    output: PicoPrice,
    reasoning: Option<PicoPrice>,
    audio_output: Option<PicoPrice>,
    image_output: Option<PicoPrice>,
    #[serde(default)]
    tiers: Vec<Tier>,
    #[serde(default)]
    pictures: Vec<PicturePrice>,
}

impl Fields {
    fn check(&self) -> Result<(), PriceError> {
        let is_open = |tier: &Tier| tier.above == 0 && tier.service_tier.is_none();
        if self.tiers.iter().any(is_open) {
            return Err(PriceError::Unconditional);
        }
        if let Some(above) = self.falling() {
            return Err(PriceError::Tiers(above));
        }
        let negative = self.pictures.iter().find(|price| price.price < Money::ZERO);
        negative.map_or(Ok(()), |picture| Err(PriceError::Picture(picture.price)))
    }

    /// Returns the limit of the first tier that does not rise above the last one of its service
    /// tier.
    fn falling(&self) -> Option<u64> {
        let is_lower = |(i, high): &(usize, &Tier)| {
            let before = self.tiers[..*i].iter();
            let mut before = before
                .rev()
                .filter(|low| low.service_tier == high.service_tier);
            before.next().is_some_and(|low| high.above <= low.above)
        };
        let mut tiers = self.tiers.iter().enumerate();
        tiers.find(is_lower).map(|(_, high)| high.above)
    }

    fn into_price(self) -> Result<Price, PriceError> {
        self.check()?;
        Ok(Price {
            input: self.input,
            cached_input: self.cached_input,
            cache_write: self.cache_write,
            cache_write_1h: self.cache_write_1h,
            audio_input: self.audio_input,
            image_input: self.image_input,
            output: self.output,
            reasoning: self.reasoning,
            audio_output: self.audio_output,
            image_output: self.image_output,
            tiers: self.tiers,
            pictures: self.pictures,
        })
    }
}

impl TryFrom<Fields> for PriceEntry {
    type Error = PriceError;

    fn try_from(mut fields: Fields) -> Result<Self, PriceError> {
        let model = fields.model.take().ok_or(PriceError::NoModel)?;
        let (upstream, valid_from) = (fields.upstream.take(), fields.valid_from);
        // A parser of TOML shows the place of the whole list.
        let price = fields.into_price().map_err(|error| PriceError::Entry {
            model: model.clone(),
            error: Box::new(error),
        })?;
        let entry = Self::new(model, price)?;
        Ok(Self {
            upstream,
            valid_from,
            ..entry
        })
    }
}

impl TryFrom<Fields> for Price {
    type Error = PriceError;

    fn try_from(fields: Fields) -> Result<Self, PriceError> {
        let unexpected = [
            ("model", fields.model.is_some()),
            ("upstream", fields.upstream.is_some()),
            ("valid_from", fields.valid_from.is_some()),
        ];
        match unexpected.iter().find(|(_, is_there)| *is_there) {
            Some((name, _)) => Err(PriceError::Unexpected(name)),
            None => fields.into_price(),
        }
    }
}
