//! Prices of models, and the cost of a request.

mod entry;
mod missing;
mod table;
mod token_price;

#[cfg(test)]
mod tests;

use engine::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::entry::{PriceEntry, PriceError};
pub use self::missing::{MissingPrices, PriceKind};
pub use self::table::{NoPrice, PriceTable, RepeatedPrice, UnknownPrice};
pub use self::token_price::PicoPrice;
use crate::{Money, Picture};

/// The price of a model: its token prices, and the price of each generated picture. The currency is
/// the same as in the operator's budgets.
///
/// In a document, prices are strings: token prices in units per million tokens, and picture prices
/// in units. Unknown fields are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "entry::Fields")]
#[schemars(!try_from, deny_unknown_fields)]
#[non_exhaustive]
pub struct Price {
    /// A token of the prompt.
    pub input: PicoPrice,
    /// A token of the prompt that was read from a cache. Absent: as `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"0.125")]
    pub cached_input: Option<PicoPrice>,
    /// A token of the prompt that was written to a cache. Absent: as `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"1.5625")]
    pub cache_write: Option<PicoPrice>,
    /// A token of the prompt that was written to a cache to be stored for an hour. Absent:
    /// twice `input`, which is
    /// [Anthropic's ratio](https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching#pricing).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"2.50")]
    pub cache_write_1h: Option<PicoPrice>,
    /// A token of the prompt that is audio. Absent: as `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"40")]
    pub audio_input: Option<PicoPrice>,
    /// A token of the prompt that is an image. Absent: as `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"10")]
    pub image_input: Option<PicoPrice>,
    /// A generated token.
    #[schemars(example = &"10")]
    pub output: PicoPrice,
    /// A generated token of reasoning. Absent: as `output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"10")]
    pub reasoning: Option<PicoPrice>,
    /// A generated token of audio. Absent: as `output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"80")]
    pub audio_output: Option<PicoPrice>,
    /// A generated token of an image. Absent: as `output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"30")]
    pub image_output: Option<PicoPrice>,
    /// Other prices for long prompts and for service tiers. Entries with the same service tier are
    /// in rising order of `above`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub tiers: Vec<Tier>,
    /// Picture prices; the first match applies. A picture without a match costs as much as the most
    /// expensive entry, so that it is never free by accident. Without a list, pictures cost only
    /// their tokens.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub pictures: Vec<PicturePrice>,
}

/// The prices of all tokens of a request whose prompt is longer than a number of tokens, or that
/// was processed at a service tier, or both. A price that a tier leaves out stays as it is without
/// the tier: it is the price of the next lower tier that applies and has one. Tiers with the service
/// tier of a request take precedence over tiers without a service tier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Tier {
    /// The tier applies if the prompt has more tokens than this; 0 for any prompt.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(example = 200_000)]
    pub above: u64,
    /// The tier applies if the answer states this service tier, such as `flex`. Absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"flex")]
    pub service_tier: Option<String>,
    /// Replaces the price `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<PicoPrice>,
    /// Replaces the price `cached_input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<PicoPrice>,
    /// Replaces the price `cache_write`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<PicoPrice>,
    /// Replaces the price `cache_write_1h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<PicoPrice>,
    /// Replaces the price `audio_input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio_input: Option<PicoPrice>,
    /// Replaces the price `image_input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_input: Option<PicoPrice>,
    /// Replaces the price `output`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<PicoPrice>,
    /// Replaces the price `reasoning`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<PicoPrice>,
    /// Replaces the price `audio_output`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio_output: Option<PicoPrice>,
    /// Replaces the price `image_output`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_output: Option<PicoPrice>,
}

/// The price of a picture of some size and quality.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PicturePrice {
    /// The size, such as `1024x1024`; `*` matches any.
    #[serde(default = "anything")]
    #[schemars(example = &"1024x1024")]
    pub size: String,
    /// The quality, such as `high`; `*` matches any.
    #[serde(default = "anything")]
    #[schemars(example = &"high")]
    pub quality: String,
    /// The price; not negative.
    #[schemars(example = &"0.167")]
    pub price: Money,
}

/// The price of each kind of token for one request.
#[derive(Clone, Copy)]
struct Rates {
    input: PicoPrice,
    cached_input: PicoPrice,
    cache_write: PicoPrice,
    cache_write_1h: PicoPrice,
    /// True if writes to a cache have a price of their own.
    has_writes: bool,
    audio_input: Option<PicoPrice>,
    image_input: Option<PicoPrice>,
    output: PicoPrice,
    reasoning: PicoPrice,
    audio_output: Option<PicoPrice>,
    image_output: Option<PicoPrice>,
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
            audio_input: None,
            image_input: None,
            output,
            reasoning: None,
            audio_output: None,
            image_output: None,
            tiers: Vec::new(),
            pictures: Vec::new(),
        }
    }

    /// Returns the cost of `usage` and `pictures`, rounded once to nano-units, half to even. It
    /// saturates at [`Money::MAX`].
    #[must_use]
    pub fn cost(&self, usage: &Usage, pictures: &[Picture<'_>]) -> Money {
        let rates = self.rates(usage.prompt(), usage.service_tier.special());
        let shorter_writes = usage.cache_write.saturating_sub(usage.cache_write_1h);
        let cached = [
            (usage.cache_read, rates.cached_input),
            (shorter_writes, rates.cache_write),
            (usage.cache_write_1h, rates.cache_write_1h),
            (usage.reasoning, rates.reasoning),
        ];
        let prompt = by_medium(
            usage.input.saturating_sub(usage.cached()),
            rates.input,
            [usage.audio_input, usage.image_input],
            [rates.audio_input, rates.image_input],
        );
        let answer = by_medium(
            usage.output.saturating_sub(usage.reasoning),
            rates.output,
            [usage.audio_output, usage.image_output],
            [rates.audio_output, rates.image_output],
        );
        let tokens = cached.into_iter().chain(prompt).chain(answer);
        let tokens = tokens.map(|(count, price)| price.times(count));
        let pictures = pictures.iter().map(|picture| self.picture(*picture));
        round(tokens.chain(pictures).fold(0, u128::saturating_add))
    }

    /// Returns the prices that the exact [`cost`](Self::cost) of `usage` and `pictures` needs and
    /// that this price lacks. A kind of token without a price of its own costs as much as text, and
    /// a service tier without one as much as the usual service tier.
    #[must_use]
    pub fn missing(&self, usage: &Usage, pictures: &[Picture<'_>]) -> MissingPrices {
        let prompt = usage.prompt();
        let rates = self.rates(prompt, usage.service_tier.special());
        let is_used = |count: u64, price: Option<PicoPrice>| count > 0 && price.is_none();
        let has_tier = |name: &str| self.applying(prompt, Some(name)).next().is_some();
        let has_picture = |picture: &Picture<'_>| {
            self.pictures.is_empty() || self.pictures.iter().any(|price| price.matches(*picture))
        };
        let mut missing = MissingPrices::default();
        for (kind, is_missing) in [
            (
                PriceKind::AudioInput,
                is_used(usage.audio_input, rates.audio_input),
            ),
            (
                PriceKind::ImageInput,
                is_used(usage.image_input, rates.image_input),
            ),
            (
                PriceKind::AudioOutput,
                is_used(usage.audio_output, rates.audio_output),
            ),
            (
                PriceKind::ImageOutput,
                is_used(usage.image_output, rates.image_output),
            ),
            (
                PriceKind::ServiceTier,
                !usage.service_tier.special().is_none_or(has_tier),
            ),
            (PriceKind::Picture, !pictures.iter().all(has_picture)),
        ] {
            if is_missing {
                missing.add(kind);
            }
        }
        missing
    }

    /// Returns an upper limit of the cost of the tokens of a request, to be reserved before its
    /// usage is known: a prompt of at most `input` tokens, all of the dearest kind, and at most
    /// `max_output` generated ones, at the service tier that was requested or at the usual one. The
    /// cost of pictures is known beforehand, by [`cost`](Self::cost). Writes to a cache for an hour
    /// are a kind only if the price has one for writes, because the estimates of all other models
    /// would be twice as high.
    #[must_use]
    pub fn estimate(&self, input: u64, max_output: u64, service_tier: Option<&str>) -> Money {
        // A longer prompt can be cheaper if a tier grants a discount.
        let shorter = self.tiers.iter().map(|tier| tier.above.min(input));
        let prompts = shorter.chain([input]);
        let pico = prompts.flat_map(|prompt| {
            let usual = self.rates(prompt, None);
            let requested = service_tier.map(|name| self.rates(prompt, Some(name)));
            let rates = [usual].into_iter().chain(requested);
            rates.map(move |rates| rates.dearest(prompt, max_output))
        });
        round(pico.max().unwrap_or_default())
    }

    /// Returns the prices for a prompt of this many tokens at a service tier.
    fn rates(&self, prompt: u64, service_tier: Option<&str>) -> Rates {
        let of_service_tier = service_tier.map(|name| self.applying(prompt, Some(name)));
        let usual = self.applying(prompt, None);
        let tiers = of_service_tier.into_iter().flatten().chain(usual);
        let other = |get: fn(&Tier) -> Option<PicoPrice>| tiers.clone().find_map(get);
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
            has_writes: cache_write.or(cache_write_1h).is_some(),
            audio_input: other(|tier| tier.audio_input).or(self.audio_input),
            image_input: other(|tier| tier.image_input).or(self.image_input),
            output,
            reasoning: reasoning.unwrap_or(output),
            audio_output: other(|tier| tier.audio_output).or(self.audio_output),
            image_output: other(|tier| tier.image_output).or(self.image_output),
        }
    }

    /// Returns the tiers with this service tier, or without one, that apply to a prompt: the one for
    /// the longest prompts first, whose prices replace the prices of the others.
    fn applying<'a>(
        &'a self,
        prompt: u64,
        service_tier: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Tier> + Clone {
        let is_of = move |tier: &Tier| tier.service_tier.as_deref() == service_tier;
        let tiers = self.tiers.iter().rev();
        tiers.filter(move |tier| is_of(tier) && tier.is_for(prompt))
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

impl Rates {
    /// Returns the cost in pico-units if all tokens are of the dearest kind.
    fn dearest(&self, prompt: u64, max_output: u64) -> u128 {
        let read = [
            Some(self.input),
            Some(self.cached_input),
            Some(self.cache_write),
            Some(self.cache_write_1h).filter(|_| self.has_writes),
            self.audio_input,
            self.image_input,
        ];
        let written = [
            Some(self.output),
            Some(self.reasoning),
            self.audio_output,
            self.image_output,
        ];
        let dearest = |kinds: &[Option<PicoPrice>], count: u64| {
            let price = kinds.iter().flatten().max();
            price.map_or(0, |price| price.times(count))
        };
        dearest(&read, prompt).saturating_add(dearest(&written, max_output))
    }
}

impl Tier {
    fn is_for(&self, prompt: u64) -> bool {
        self.above == 0 || prompt > self.above
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

/// Splits `count` tokens into text, audio and image tokens, each with its price. Audio and image
/// tokens without their own price cost as much as `text`. No more than `count` tokens are charged:
/// the audio and image counts may include tokens that were read from a cache.
fn by_medium(
    count: u64,
    text: PicoPrice,
    [audio, image]: [u64; 2],
    [price_of_audio, price_of_image]: [Option<PicoPrice>; 2],
) -> [(u64, PicoPrice); 3] {
    let audio = audio.min(count);
    let image = image.min(count - audio);
    [
        (count - audio - image, text),
        (audio, price_of_audio.unwrap_or(text)),
        (image, price_of_image.unwrap_or(text)),
    ]
}

/// Rounds pico-units to nano-units, half to even.
fn round(pico: u128) -> Money {
    let (nanos, rest) = (pico / PICO_PER_NANO, pico % PICO_PER_NANO);
    let half = PICO_PER_NANO / 2;
    let is_up = rest > half || rest == half && nanos % 2 == 1;
    let nanos = i64::try_from(nanos + u128::from(is_up));
    nanos.map_or(Money::MAX, Money::from_nanos)
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn anything() -> String {
    ANY.to_owned()
}

const ANY: &str = "*";
const PICO_PER_NANO: u128 = 1_000;
