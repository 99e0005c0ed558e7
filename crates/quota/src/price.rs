//! Prices of models, and the cost of a request.

mod entry;
mod table;
mod token_price;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use self::entry::{PriceEntry, PriceError};
pub use self::table::{NoPrice, PriceTable, RepeatedPrice, UnknownPrice};
pub use self::token_price::PicoPrice;
use crate::{Money, Picture, Usage};

/// The price of a model: of its tokens, and of each picture that it generates. The currency is that
/// of the operator's budgets.
///
/// In a document, prices of tokens are strings in units per million tokens, and those of pictures
/// in units. Unknown fields are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "entry::Fields")]
#[non_exhaustive]
pub struct Price {
    /// A token of the prompt.
    pub input: PicoPrice,
    /// A token of the prompt that was read from a cache. `None` means as `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<PicoPrice>,
    /// A token of the prompt that was written to a cache. `None` means as `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<PicoPrice>,
    /// A token of the prompt that was written to a cache to be kept for an hour. `None` means twice
    /// `input`, which is
    /// [Anthropic's ratio](https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching#pricing).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<PicoPrice>,
    /// A generated token.
    pub output: PicoPrice,
    /// A generated token of reasoning. `None` means as `output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<PicoPrice>,
    /// Other prices for long prompts, in rising order of `above`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<Tier>,
    /// The prices of pictures, of which the first that matches applies. A picture that none matches
    /// costs as much as the dearest of the list, so that it is never free by accident. Without a
    /// list, pictures cost only their tokens.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<PicturePrice>,
}

/// The prices of all tokens of a request whose prompt is longer than a number of tokens. What a
/// tier leaves out stays as it is without the tier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Tier {
    /// The tier applies if the prompt has more tokens than this.
    pub above: u64,
    /// Replaces [`Price::input`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<PicoPrice>,
    /// Replaces [`Price::cached_input`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<PicoPrice>,
    /// Replaces [`Price::cache_write`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<PicoPrice>,
    /// Replaces [`Price::cache_write_1h`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<PicoPrice>,
    /// Replaces [`Price::output`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<PicoPrice>,
    /// Replaces [`Price::reasoning`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<PicoPrice>,
}

/// The price of a picture of some size and quality.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PicturePrice {
    /// The size, such as `1024x1024`; `*` matches any.
    #[serde(default = "anything")]
    pub size: String,
    /// The quality, such as `high`; `*` matches any.
    #[serde(default = "anything")]
    pub quality: String,
    /// The price; not negative.
    pub price: Money,
}

/// The price of each kind of token for one request.
#[derive(Clone, Copy)]
struct Rates {
    input: PicoPrice,
    cached_input: PicoPrice,
    cache_write: PicoPrice,
    cache_write_1h: PicoPrice,
    output: PicoPrice,
    reasoning: PicoPrice,
}

impl Price {
    /// The price of a model that costs nothing.
    pub const FREE: Self = Self::new(PicoPrice::ZERO, PicoPrice::ZERO);

    /// Creates a price without tiers or pictures, and without other prices for cached tokens and
    /// reasoning.
    #[must_use]
    pub const fn new(input: PicoPrice, output: PicoPrice) -> Self {
        Self {
            input,
            cached_input: None,
            cache_write: None,
            cache_write_1h: None,
            output,
            reasoning: None,
            tiers: Vec::new(),
            pictures: Vec::new(),
        }
    }

    /// Returns the cost of `usage` and `pictures`, rounded once to nano-units, half to even. It
    /// saturates at [`Money::MAX`].
    #[must_use]
    pub fn cost(&self, usage: &Usage, pictures: &[Picture<'_>]) -> Money {
        let rates = self.rates(usage.prompt());
        let shorter_writes = usage.cache_write.saturating_sub(usage.cache_write_1h);
        let tokens = [
            (usage.input.saturating_sub(usage.cached()), rates.input),
            (usage.cache_read, rates.cached_input),
            (shorter_writes, rates.cache_write),
            (usage.cache_write_1h, rates.cache_write_1h),
            (usage.output.saturating_sub(usage.reasoning), rates.output),
            (usage.reasoning, rates.reasoning),
        ];
        let tokens = tokens.into_iter().map(|(count, price)| price.times(count));
        let pictures = pictures.iter().map(|picture| self.picture(*picture));
        round(tokens.chain(pictures).fold(0, u128::saturating_add))
    }

    /// Returns an upper limit of the cost of the tokens of a request, to be reserved before its
    /// usage is known: a prompt of at most `input` tokens, all of the dearest kind, and at most
    /// `max_output` generated ones. The cost of pictures is known beforehand, by
    /// [`cost`](Self::cost). Writes to a cache for an hour are a kind only if the price has one for
    /// writes, because the estimates of all other models would be twice as high.
    #[must_use]
    pub fn estimate(&self, input: u64, max_output: u64) -> Money {
        // A longer prompt can be cheaper if a tier grants a discount.
        let shorter = self.tiers.iter().map(|tier| tier.above.min(input));
        let pico = shorter.chain([input]).map(|prompt| {
            let rates = self.rates(prompt);
            let has_writes = self.cache_write.or(self.cache_write_1h).is_some();
            let write = match has_writes {
                true => rates.cache_write.max(rates.cache_write_1h),
                false => rates.cache_write,
            };
            let dearest = rates.input.max(rates.cached_input).max(write);
            let generated = rates.output.max(rates.reasoning).times(max_output);
            dearest.times(prompt).saturating_add(generated)
        });
        round(pico.max().unwrap_or_default())
    }

    /// Returns the prices for a prompt of this many tokens.
    fn rates(&self, prompt: u64) -> Rates {
        let tier = self.tiers.iter().rfind(|tier| prompt > tier.above);
        let other = |get: fn(&Tier) -> Option<PicoPrice>| tier.and_then(get);
        let input = other(|tier| tier.input).unwrap_or(self.input);
        let output = other(|tier| tier.output).unwrap_or(self.output);
        let cached_input = other(|tier| tier.cached_input).or(self.cached_input);
        let cache_write = other(|tier| tier.cache_write).or(self.cache_write);
        let cache_write_1h = other(|tier| tier.cache_write_1h).or(self.cache_write_1h);
        let reasoning = other(|tier| tier.reasoning).or(self.reasoning);
        Rates {
            input,
            cached_input: cached_input.unwrap_or(input),
            cache_write: cache_write.unwrap_or(input),
            cache_write_1h: cache_write_1h.unwrap_or(input.doubled()),
            output,
            reasoning: reasoning.unwrap_or(output),
        }
    }

    /// Returns the price of one picture in pico-units.
    fn picture(&self, picture: Picture<'_>) -> u128 {
        let dearest = || self.pictures.iter().max_by_key(|price| price.price);
        let first = self.pictures.iter().find(|price| price.matches(picture));
        let nanos = first
            .or_else(dearest)
            .map_or(0, |price| price.price.nanos());
        u128::try_from(nanos).unwrap_or(0) * PICO_PER_NANO
    }
}

impl PicturePrice {
    /// Creates the price of a picture of any size and quality.
    #[must_use]
    pub fn any(price: Money) -> Self {
        Self {
            size: anything(),
            quality: anything(),
            price,
        }
    }

    fn matches(&self, picture: Picture<'_>) -> bool {
        let fits = |pattern: &str, found: &str| pattern == ANY || pattern == found;
        fits(&self.size, picture.size) && fits(&self.quality, picture.quality)
    }
}

/// Rounds pico-units to nano-units, half to even.
fn round(pico: u128) -> Money {
    let (nanos, rest) = (pico / PICO_PER_NANO, pico % PICO_PER_NANO);
    let half = PICO_PER_NANO / 2;
    let is_up = rest > half || rest == half && nanos % 2 == 1;
    let nanos = i64::try_from(nanos + u128::from(is_up));
    nanos.map_or(Money::MAX, Money::from_nanos)
}

fn anything() -> String {
    ANY.to_owned()
}

const ANY: &str = "*";
const PICO_PER_NANO: u128 = 1_000;
