//! Tests of prices; the sums are done by hand.

mod list;
mod properties;

use wire::ServiceTier;

use super::*;

/// Reads the fields of a price, in TOML.
fn price(toml: &str) -> Price {
    toml::from_str(toml).unwrap()
}

fn tiered() -> Price {
    price(
        r#"
        input = "1.25"
        cached_input = "0.125"
        output = "10.00"
        tiers = [
            { above = 200000, input = "2.50", output = "15.00" },
            { above = 400000, input = "4.00", cached_input = "0.40" },
        ]
        "#,
    )
}

fn usage(input: u64, cache_read: u64, cache_write: u64, output: u64, reasoning: u64) -> Usage {
    Usage {
        input,
        cache_read,
        cache_write,
        output,
        reasoning,
        ..Usage::default()
    }
}

/// The usage of a prompt of `cache_write` tokens, all written to a cache, and `cache_write_1h` of
/// them for an hour.
fn written(cache_write: u64, cache_write_1h: u64) -> Usage {
    Usage {
        cache_write_1h,
        ..usage(cache_write, 0, cache_write, 0, 0)
    }
}

fn cost(price: &Price, usage: Usage) -> String {
    price.cost(&usage, &[]).to_string()
}

#[test]
fn a_price_per_million_tokens_is_kept_in_pico_units_a_token() {
    let read = |text: &str| text.parse::<PicoPrice>();
    assert_eq!(read("1.25").unwrap(), PicoPrice::from_pico(1_250_000));
    assert_eq!(read("0.000001").unwrap(), PicoPrice::from_pico(1));
    assert_eq!(read("75").unwrap().to_string(), "75.00");
    assert_eq!(
        read("0.0000001").unwrap_err().to_string(),
        "\"0.0000001\" is too precise: expected at most 6 digits after the point"
    );
    assert!(read("-1").is_err());
}

/// 600 × 1.25 + 400 × 0.125 + 200 × 10 = 750 + 50 + 2000 millionths.
#[test]
fn cached_tokens_use_cache_price_reasoning_uses_output_price() {
    assert_eq!(cost(&tiered(), usage(1000, 400, 0, 200, 150)), "0.0028");
}

/// 500 × 1.25 + 400 × 0.125 + 100 × 1.5625 + 50 × 10 + 150 × 12
/// = 625 + 50 + 156.25 + 500 + 1800 millionths.
#[test]
fn each_kind_of_token_has_its_own_price() {
    let price = price(
        r#"
        input = "1.25"
        cached_input = "0.125"
        cache_write = "1.5625"
        output = "10.00"
        reasoning = "12.00"
        "#,
    );
    assert_eq!(cost(&price, usage(1000, 400, 100, 200, 150)), "0.00313125");
}

/// A million tokens for an hour, and a million for five minutes: the prices of
/// <https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching#pricing> for an input of 5.
#[test]
fn writes_for_an_hour_have_their_own_price() {
    let price = price(
        r#"
        input = "5.00"
        cache_write = "6.25"
        cache_write_1h = "10.00"
        output = "25.00"
        tiers = [{ above = 2000000, cache_write_1h = "20.00" }]
        "#,
    );
    assert_eq!(cost(&price, written(1_000_000, 1_000_000)), "10.00");
    assert_eq!(cost(&price, written(2_000_000, 1_000_000)), "16.25");
    // A part above its total counts in full, and the tier applies to it.
    assert_eq!(cost(&price, written(0, 3_000_000)), "60.00");
}

#[test]
fn writes_for_an_hour_cost_twice_the_input_by_default() {
    let price = price(
        r#"
        input = "5.00"
        cache_write = "6.25"
        output = "25.00"
        tiers = [{ above = 1000000, input = "7.00" }]
        "#,
    );
    assert_eq!(cost(&price, written(1_000_000, 1_000_000)), "10.00");
    assert_eq!(cost(&price, written(2_000_000, 2_000_000)), "28.00");
    // 1000 × 10 + 100 × 25 millionths.
    assert_eq!(price.estimate(1000, 100, None).to_string(), "0.0125");
}

/// 1000 × 3 + 100 × 6 millionths.
#[test]
fn tokens_without_a_price_of_their_own_cost_as_input_and_output() {
    let price = price("input = \"3.00\"\noutput = \"6.00\"");
    assert_eq!(cost(&price, usage(1000, 300, 300, 100, 60)), "0.0036");
}

/// Some servers report a prompt without its cached tokens: 30 × 0.125 + 5 × 1.25 + 7 × 10
/// = 3.75 + 6.25 + 70 millionths.
#[test]
fn parts_above_their_total_count_in_full() {
    assert_eq!(cost(&tiered(), usage(10, 30, 5, 2, 7)), "0.00008");
    // The sum of the parts selects the tier: 150001 × 0.125 + 50000 × 2.5 millionths.
    let parts = usage(0, 150_001, 50_000, 0, 0);
    assert_eq!(cost(&tiered(), parts), "0.143750125");
}

#[test]
fn a_tier_applies_to_all_tokens_above_its_limit_and_not_at_it() {
    // 200000 × 1.25 + 1000 × 10 millionths.
    assert_eq!(cost(&tiered(), usage(200_000, 0, 0, 1000, 0)), "0.26");
    // 200001 × 2.5 + 1000 × 15 millionths.
    assert_eq!(cost(&tiered(), usage(200_001, 0, 0, 1000, 0)), "0.5150025");
    // Prices that the tier does not state stay: 200001 × 0.125 millionths.
    let cached = usage(200_001, 200_001, 0, 0, 0);
    assert_eq!(cost(&tiered(), cached), "0.025000125");
    // The last tier leaves out `output`, so the price of the first one stays:
    // 400000 × 4 + 1 × 0.4 + 1000 × 15 millionths.
    let long = usage(400_001, 1, 0, 1000, 0);
    assert_eq!(cost(&tiered(), long), "1.6150004");
}

/// Each tier states the prices that it changes.
#[test]
fn lower_tier_keeps_the_prices_that_a_higher_one_leaves_out() {
    let price = price(
        r#"
        input = "1.00"
        output = "10.00"
        tiers = [
            { above = 100000, input = "2.00" },
            { above = 200000, output = "20.00" },
            { service_tier = "priority", output = "30.00", reasoning = "50.00" },
            { service_tier = "priority", above = 100000, reasoning = "60.00" },
            { service_tier = "priority", above = 200000, input = "4.00" },
        ]
        "#,
    );
    let at = |service_tier, input| {
        let usage = Usage {
            service_tier,
            ..usage(input, 0, 0, 3000, 1000)
        };
        cost(&price, usage)
    };
    // 100000 × 1 + 3000 × 10 millionths, 150000 × 2 + 3000 × 10, and 250000 × 2 + 3000 × 20.
    assert_eq!(at(ServiceTier::Standard, 100_000), "0.13");
    assert_eq!(at(ServiceTier::Standard, 150_000), "0.33");
    assert_eq!(at(ServiceTier::Standard, 250_000), "0.56");
    // 100000 × 1 + 2000 × 30 + 1000 × 50 millionths, 150000 × 2 + 2000 × 30 + 1000 × 60, and
    // 250000 × 4 + 2000 × 30 + 1000 × 60.
    assert_eq!(at(ServiceTier::Priority, 100_000), "0.21");
    assert_eq!(at(ServiceTier::Priority, 150_000), "0.42");
    assert_eq!(at(ServiceTier::Priority, 250_000), "1.12");
    // 250000 × 2 + 3000 × 20 millionths, and 250000 × 4 + 3000 × 60.
    assert_eq!(price.estimate(250_000, 3000, None).to_string(), "0.56");
    let priority = price.estimate(250_000, 3000, Some("priority"));
    assert_eq!(priority.to_string(), "1.18");
}

/// Half a nano-unit for each token, and a pico-unit more or less.
#[test]
fn a_half_is_rounded_to_even_and_only_the_sum_is_rounded() {
    let half = price("input = \"0.0005\"\noutput = \"0.0005\"");
    let nanos = |price: &Price, input, output| {
        let usage = usage(input, 0, 0, output, 0);
        price.cost(&usage, &[]).nanos()
    };
    for (tokens, expected) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 2), (7, 4)] {
        assert_eq!(nanos(&half, tokens, 0), expected, "{tokens} tokens");
    }
    assert_eq!(nanos(&half, 1, 1), 1);
    assert_eq!(
        nanos(&price("input = \"0.000501\"\noutput = \"0\""), 1, 0),
        1
    );
    assert_eq!(
        nanos(&price("input = \"0.000499\"\noutput = \"0\""), 3, 0),
        1
    );
    assert_eq!(
        nanos(&price("input = \"0.001499\"\noutput = \"0\""), 1, 0),
        1
    );
}

#[test]
fn pictures_cost_by_size_and_quality() {
    let price = price(
        r#"
        input = "5.00"
        output = "40.00"
        pictures = [
            { size = "1024x1024", quality = "high", price = "0.167" },
            { size = "1024x1024", price = "0.042" },
            { size = "*", quality = "low", price = "0.016" },
            { size = "1536x1024", quality = "high", price = "0.25" },
        ]
        "#,
    );
    let cost = |pictures: &[(&'static str, &'static str)]| {
        let pictures: Vec<_> = pictures
            .iter()
            .map(|&(size, quality)| Picture { size, quality })
            .collect();
        price.cost(&usage(100, 0, 0, 0, 0), &pictures).to_string()
    };
    // 100 × 5 millionths for the prompt.
    assert_eq!(cost(&[]), "0.0005");
    assert_eq!(cost(&[("1024x1024", "high")]), "0.1675");
    assert_eq!(cost(&[("1024x1024", "low")]), "0.0425");
    assert_eq!(cost(&[("1536x1024", "low")]), "0.0165");
    assert_eq!(
        cost(&[("1536x1024", "high"), ("1024x1024", "high")]),
        "0.4175"
    );
    // No entry matches, so the price is the dearest one.
    assert_eq!(cost(&[("1536x1024", "auto")]), "0.2505");
    assert_eq!(cost(&[("", "")]), "0.2505");
    let without = Picture {
        size: "1024x1024",
        quality: "high",
    };
    assert_eq!(tiered().cost(&Usage::default(), &[without]), Money::ZERO);
}

#[test]
fn a_huge_cost_saturates() {
    let most = PicoPrice::from_pico(u64::MAX);
    let price = Price::new(most, most);
    let all = usage(u64::MAX, u64::MAX, u64::MAX, u64::MAX, u64::MAX);
    assert_eq!(price.cost(&all, &[]), Money::MAX);
    assert_eq!(price.estimate(u64::MAX, u64::MAX, None), Money::MAX);
    // The largest amount, exactly: (2^63 - 1) × 1000 pico-units.
    let nano = PicoPrice::from_pico(1000);
    let price = Price::new(nano, nano);
    let largest = i64::MAX.unsigned_abs();
    let nanos = |input| price.cost(&usage(input, 0, 0, 0, 0), &[]).nanos();
    assert_eq!(nanos(largest - 1), i64::MAX - 1);
    assert_eq!((nanos(largest), nanos(largest + 1)), (i64::MAX, i64::MAX));
}

#[test]
fn an_estimate_takes_the_dearest_kind_of_token() {
    // 1000 × 1.25 + 100 × 10 millionths.
    assert_eq!(tiered().estimate(1000, 100, None).to_string(), "0.00225");
    // 200001 × 2.5 + 100 × 15 millionths.
    assert_eq!(
        tiered().estimate(200_001, 100, None).to_string(),
        "0.5015025"
    );
    let anthropic = price(
        "input = \"3.00\"\ncache_write = \"3.75\"\noutput = \"15.00\"\nreasoning = \"20.00\"",
    );
    // All of it could be written for an hour: 1000 × 6 + 100 × 20 millionths.
    assert_eq!(anthropic.estimate(1000, 100, None).to_string(), "0.008");
    // With a discount for long prompts, 100 tokens are dearer than 101: 100 × 2 millionths.
    let discount =
        price("input = \"2.00\"\noutput = \"0\"\ntiers = [{ above = 100, input = \"1.00\" }]");
    assert_eq!(discount.estimate(101, 0, None).to_string(), "0.0002");
}

#[test]
fn an_estimate_has_the_price_that_a_tier_has_for_writes() {
    let price = price(
        r#"
        input = "1.00"
        output = "0"
        tiers = [
            { above = 100, cache_write = "1.25" },
            { service_tier = "priority", cache_write_1h = "9.00" },
        ]
        "#,
    );
    // 100 × 1 millionths: the price without tiers has none for writes.
    assert_eq!(price.estimate(100, 0, None).to_string(), "0.0001");
    // All of it could be written for an hour, at twice the input: 1000 × 2 millionths.
    assert_eq!(cost(&price, written(1000, 1000)), "0.002");
    assert_eq!(price.estimate(1000, 0, None).to_string(), "0.002");
    // 100 × 9 millionths.
    let priority = price.estimate(100, 0, Some("priority"));
    assert_eq!(priority.to_string(), "0.0009");
}

/// Prices of audio and of images, as OpenAI has them for `gpt-4o-audio-preview` and `gpt-image-1`:
/// <https://platform.openai.com/docs/pricing>.
fn with_media() -> Price {
    price(
        r#"
        input = "2.50"
        cached_input = "0.25"
        audio_input = "40"
        image_input = "10"
        output = "10"
        reasoning = "12"
        audio_output = "80"
        image_output = "30"
        "#,
    )
}

#[test]
fn audio_and_images_have_their_own_prices() {
    let spoken = Usage {
        audio_input: 300,
        image_input: 200,
        audio_output: 50,
        image_output: 40,
        ..usage(1000, 400, 0, 200, 100)
    };
    // Prompt: 400 × 0.25 + 300 × 40 + 200 × 10 + 100 × 2.50 = 14,350 millionths. Answer:
    // 100 × 12 + 50 × 80 + 40 × 30 + 10 × 10 = 6,500 millionths.
    assert_eq!(cost(&with_media(), spoken), "0.02085");
    // Audio that was read from a cache is charged once.
    let cached = Usage {
        audio_input: 900,
        ..usage(1000, 400, 0, 0, 0)
    };
    // 400 × 0.25 + 600 × 40 = 24,100 millionths.
    assert_eq!(cost(&with_media(), cached), "0.0241");
}

#[test]
fn media_without_a_price_cost_as_much_as_text_and_are_marked() {
    let spoken = Usage {
        audio_input: 300,
        image_output: 40,
        ..usage(1000, 0, 0, 200, 0)
    };
    // 1000 × 1.25 + 200 × 10 = 3,250 millionths.
    assert_eq!(cost(&tiered(), spoken), "0.00325");
    assert_eq!(
        tiered().missing(&spoken, &[]).to_string(),
        "audio_input image_output"
    );
    assert!(with_media().missing(&spoken, &[]).is_empty());
    assert!(
        tiered()
            .missing(&usage(1000, 400, 10, 200, 150), &[])
            .is_empty()
    );
}

/// OpenAI's service tiers: <https://platform.openai.com/docs/pricing>.
fn with_service_tiers() -> Price {
    price(
        r#"
        input = "1.25"
        cached_input = "0.125"
        output = "10"
        tiers = [
            { above = 1000, input = "2.50", output = "15" },
            { service_tier = "flex", input = "0.625", output = "5" },
            { service_tier = "priority", input = "2.50", cached_input = "0.25", output = "20" },
            { service_tier = "priority", above = 1000, input = "5.00" },
        ]
        "#,
    )
}

#[test]
fn a_service_tier_has_its_own_prices() {
    let at = |service_tier: &str, input| {
        let usage = Usage {
            service_tier: ServiceTier::named(service_tier.as_bytes()),
            ..usage(input, 100, 0, 100, 0)
        };
        cost(&with_service_tiers(), usage)
    };
    // 100 × 1.25 + 100 × 0.125 + 100 × 10
    assert_eq!(at("default", 200), "0.0011375");
    // 100 × 0.625 + 100 × 0.125 + 100 × 5
    assert_eq!(at("flex", 200), "0.000575");
    // 100 × 2.50 + 100 × 0.25 + 100 × 20
    assert_eq!(at("priority", 200), "0.002275");
    // 1100 × 2.50 + 100 × 0.125 + 100 × 15
    assert_eq!(at("default", 1200), "0.0042625");
    // The last tier has only a prompt price: 1100 × 5 + 100 × 0.25 + 100 × 20.
    assert_eq!(at("priority", 1200), "0.007525");
    // A service tier without prices costs as much as the usual one.
    assert_eq!(at("scale", 200), "0.0011375");
}

#[test]
fn a_service_tier_without_a_price_is_marked() {
    let missing = |service_tier: &str| {
        let usage = Usage {
            service_tier: ServiceTier::named(service_tier.as_bytes()),
            ..usage(200, 0, 0, 100, 0)
        };
        with_service_tiers().missing(&usage, &[]).to_string()
    };
    assert_eq!(missing("default"), "");
    assert_eq!(missing("flex"), "");
    assert_eq!(missing("scale"), "service_tier");
}

#[test]
fn service_tier_with_prices_for_longer_prompts_only_is_marked() {
    let price = price(
        r#"
        input = "1.25"
        output = "10"
        tiers = [{ service_tier = "priority", above = 1000, input = "5.00" }]
        "#,
    );
    let missing = |input| {
        let usage = Usage {
            service_tier: ServiceTier::Priority,
            ..usage(input, 0, 0, 100, 0)
        };
        price.missing(&usage, &[]).to_string()
    };
    assert_eq!(missing(1000), "service_tier");
    assert_eq!(missing(1001), "");
}

#[test]
fn the_requested_service_tier_is_reserved() {
    let reserved = |service_tier| {
        let money = with_service_tiers().estimate(200, 100, service_tier);
        money.to_string()
    };
    // 200 × 1.25 + 100 × 10
    assert_eq!(reserved(None), "0.00125");
    // 200 × 2.50 + 100 × 20
    assert_eq!(reserved(Some("priority")), "0.0025");
    // It may be processed at the usual one.
    assert_eq!(reserved(Some("flex")), "0.00125");
}

#[test]
fn a_picture_that_the_list_lacks_is_marked() {
    let price = price(
        r#"
        input = "0"
        output = "0"
        pictures = [{ size = "1024x1024", quality = "low", price = "0.011" }]
        "#,
    );
    let of = |size| {
        let quality = "low";
        price
            .missing(&Usage::default(), &[Picture { size, quality }])
            .to_string()
    };
    assert_eq!(of("1024x1024"), "");
    assert_eq!(of("1536x1024"), "pictures");
}

#[test]
fn tiers_need_a_condition_and_rise() {
    let error = |tiers: &str| {
        let toml = format!("input = \"1\"\noutput = \"1\"\ntiers = [{tiers}]");
        let error = toml::from_str::<Price>(&toml).unwrap_err();
        error.message().to_owned()
    };
    assert_eq!(
        error(r#"{ input = "2" }"#),
        "field `tiers`: a tier has no condition: expected `above`, `service_tier` or both"
    );
    assert_eq!(
        error(
            r#"{ service_tier = "flex", above = 9 }, { above = 5 }, { service_tier = "flex", above = 9 }"#
        ),
        "field `tiers`: `above` is 9 after a tier as high: expected rising numbers"
    );
}
