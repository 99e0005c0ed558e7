//! Properties of costs, for any usage.

use proptest::prelude::*;

use super::*;

/// The usage with these counts; the last four are audio and image tokens.
fn used(counts: [u64; 10]) -> Usage {
    let [input, read, write, write_1h, output, reasoning, media @ ..] = counts;
    let [audio_input, image_input, audio_output, image_output] = media;
    Usage {
        cache_write_1h: write_1h,
        audio_input,
        image_input,
        audio_output,
        image_output,
        ..usage(input, read, write, output, reasoning)
    }
}

fn any_usage() -> impl Strategy<Value = Usage> {
    any::<[u64; 10]>().prop_map(used)
}

fn pico() -> impl Strategy<Value = PicoPrice> {
    prop_oneof![0..100_000_000_u64, any::<u64>()].prop_map(PicoPrice::from_pico)
}

/// Any tier; most of them leave out some of the prices.
fn any_tier() -> impl Strategy<Value = Tier> {
    // Vectors, because the strategies of arrays would fill the stack.
    prop::collection::vec(prop::option::of(pico()), 10).prop_map(|prices| {
        let [
            input,
            cached,
            write,
            write_1h,
            output,
            reasoning,
            media @ ..,
        ] = <[_; 10]>::try_from(prices).unwrap();
        let [audio_input, image_input, audio_output, image_output] = media;
        Tier {
            above: 0,
            service_tier: None,
            input,
            cached_input: cached,
            cache_write: write,
            cache_write_1h: write_1h,
            audio_input,
            image_input,
            output,
            reasoning,
            audio_output,
            image_output,
        }
    })
}

/// Any price with a price for cache writes, and with tiers that may be cheaper.
fn any_price() -> impl Strategy<Value = Price> {
    let tiers = prop::collection::vec(any_tier(), 5);
    let above = prop_oneof![1..u64::from(u32::MAX), 1..u64::MAX];
    (tiers, pico(), above).prop_map(|(tiers, write, above)| {
        let [base, long, longer, flex, long_flex] = <[_; 5]>::try_from(tiers).unwrap();
        let flex_tier = |above, tier| Tier {
            above,
            service_tier: Some("flex".into()),
            ..tier
        };
        Price {
            input: base.input.unwrap_or_default(),
            cached_input: base.cached_input,
            cache_write: Some(write),
            cache_write_1h: base.cache_write_1h,
            audio_input: base.audio_input,
            image_input: base.image_input,
            output: base.output.unwrap_or_default(),
            reasoning: base.reasoning,
            audio_output: base.audio_output,
            image_output: base.image_output,
            tiers: vec![
                Tier { above, ..long },
                Tier {
                    above: above.saturating_add(1 + above / 2),
                    ..longer
                },
                flex_tier(0, flex),
                flex_tier(above, long_flex),
            ],
            pictures: Vec::new(),
        }
    })
}

/// A price with a tier that is cheaper for no kind of token.
fn rising_price() -> impl Strategy<Value = Price> {
    any_price().prop_map(|mut price| {
        let raise = |higher: &mut Option<PicoPrice>, lower: PicoPrice| {
            *higher = higher.map(|price| price.max(lower));
        };
        let (input, output) = (price.input, price.output);
        price.tiers.truncate(1);
        for tier in &mut price.tiers {
            raise(&mut tier.input, input);
            raise(&mut tier.cached_input, price.cached_input.unwrap_or(input));
            raise(&mut tier.cache_write, price.cache_write.unwrap_or(input));
            raise(&mut tier.output, output);
            raise(&mut tier.reasoning, price.reasoning.unwrap_or(output));
        }
        price
    })
}

proptest! {
    #[test]
    fn no_usage_panics(price in any_price(), usage in any_usage()) {
        let cost = price.cost(&usage, &[Picture { size: "", quality: "" }]);
        prop_assert!(cost >= Money::ZERO);
    }

    #[test]
    fn a_token_more_of_any_kind_costs_no_less(
        price in rising_price(),
        counts in any::<[u32; 5]>(),
        more in any::<u32>(),
    ) {
        let [input, read, write, output, reasoning] = counts.map(u64::from);
        let more = u64::from(more);
        let before = price.cost(&usage(input, read, write, output, reasoning), &[]);
        for after in [
            usage(input + more, read, write, output, reasoning),
            usage(input + more, read + more, write, output, reasoning),
            usage(input + more, read, write + more, output, reasoning),
            usage(input, read, write, output + more, reasoning),
            usage(input, read, write, output + more, reasoning + more),
        ] {
            prop_assert!(price.cost(&after, &[]) >= before, "{after:?}");
        }
    }

    #[test]
    fn an_estimate_covers_every_shorter_request(
        price in any_price(),
        counts in any::<[u32; 10]>(),
        service_tier in prop_oneof![Just(ServiceTier::Standard), Just(ServiceTier::Flex)],
        more in any::<(u32, u32)>(),
    ) {
        let usage = Usage {
            service_tier,
            ..used(counts.map(u64::from))
        };
        let input = usage.prompt() + u64::from(more.0);
        let max_output = usage.output.max(usage.reasoning) + u64::from(more.1);
        prop_assert!(price.estimate(input, max_output, service_tier.special()) >= price.cost(&usage, &[]));
    }

    #[test]
    fn a_price_is_read_as_it_was_written(price in any_price()) {
        // JSON, because TOML has no integers above the largest signed 64-bit number.
        let json = serde_json::to_string(&price).unwrap();
        prop_assert_eq!(serde_json::from_str::<Price>(&json).unwrap(), price);
    }
}
