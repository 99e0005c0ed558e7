//! The prices of the configuration.

use quota::{PriceEntry, UnknownPrice};
use schemars::JsonSchema;
use serde::Serialize;

use super::AdminRequest;
use super::failure::Failure;

/// The prices of models, in the order of the configuration.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PriceList {
    /// The prices.
    #[schemars(with = "Vec<PriceView>")]
    prices: Vec<PriceEntry>,
    /// The handling of models without a price: `refuse`, `free` or `default`.
    unknown_price: &'static str,
}

/// The price of a model: of tokens in units per million, and of pictures in units.
#[derive(JsonSchema)]
#[schemars(rename = "Price")]
#[expect(dead_code, reason = "describes a `PriceEntry`")]
struct PriceView {
    /// The model, with `*` for any characters.
    model: String,
    /// The upstream whose model it is. Absent: any.
    upstream: Option<String>,
    /// The time from which the price applies. Absent: always.
    valid_from: Option<String>,
    /// Tokens of the prompt.
    input: String,
    /// Tokens of the prompt that were read from a cache. Absent: as `input`.
    cached_input: Option<String>,
    /// Tokens of the prompt that were written to a cache. Absent: as `input`.
    cache_write: Option<String>,
    /// Tokens of the prompt that were written to a cache for an hour. Absent: twice `input`.
    cache_write_1h: Option<String>,
    /// Tokens of the prompt that are audio. Absent: as `input`.
    audio_input: Option<String>,
    /// Tokens of the prompt that are images. Absent: as `input`.
    image_input: Option<String>,
    /// Generated tokens.
    output: String,
    /// Generated tokens of reasoning. Absent: as `output`.
    reasoning: Option<String>,
    /// Generated tokens of audio. Absent: as `output`.
    audio_output: Option<String>,
    /// Generated tokens of images. Absent: as `output`.
    image_output: Option<String>,
    /// Other prices for long prompts and for service tiers.
    #[schemars(default)]
    tiers: Vec<TierView>,
    /// Prices of pictures.
    #[schemars(default)]
    pictures: Vec<PictureView>,
}

/// The prices of a request with a long prompt, or at a service tier.
#[derive(JsonSchema)]
#[schemars(rename = "PriceTier")]
#[expect(dead_code, reason = "describes a `quota::Tier`")]
struct TierView {
    /// The tier applies if the prompt has more tokens than this. Absent: to any prompt.
    #[schemars(default)]
    above: u64,
    /// The tier applies if the answer states this service tier. Absent: any.
    service_tier: Option<String>,
    /// Replaces the `input` of the price.
    input: Option<String>,
    /// Replaces the `cached_input` of the price.
    cached_input: Option<String>,
    /// Replaces the `cache_write` of the price.
    cache_write: Option<String>,
    /// Replaces the `cache_write_1h` of the price.
    cache_write_1h: Option<String>,
    /// Replaces the `audio_input` of the price.
    audio_input: Option<String>,
    /// Replaces the `image_input` of the price.
    image_input: Option<String>,
    /// Replaces the `output` of the price.
    output: Option<String>,
    /// Replaces the `reasoning` of the price.
    reasoning: Option<String>,
    /// Replaces the `audio_output` of the price.
    audio_output: Option<String>,
    /// Replaces the `image_output` of the price.
    image_output: Option<String>,
}

/// The price of a picture.
#[derive(JsonSchema)]
#[schemars(rename = "PicturePrice")]
#[expect(dead_code, reason = "describes a `quota::PicturePrice`")]
struct PictureView {
    /// The size, such as `1024x1024`; `*` for any.
    size: String,
    /// The quality, such as `high`; `*` for any.
    quality: String,
    /// The price of one picture.
    price: String,
}

/// Answers with the prices.
pub(super) async fn list(admin: &AdminRequest<'_>) -> Result<PriceList, Failure> {
    let policy = admin.state.policies.current();
    let unknown_price = match policy.prices.unknown() {
        UnknownPrice::Refuse => "refuse",
        UnknownPrice::Free => "free",
        UnknownPrice::Default(_) => "default",
    };
    Ok(PriceList {
        prices: policy.prices.entries().to_vec(),
        unknown_price,
    })
}
