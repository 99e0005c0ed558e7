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

/// Any prices of a tier.
fn any_tier() -> impl Strategy<Value = Tier> {
    prop::array::uniform10(pico()).prop_map(|prices| {
        let [
            input,
            cached,
            write,
            write_1h,
            output,
            reasoning,
            media @ ..,
        ] = prices.map(Some);
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

/// Any price, with tiers that may be cheaper.
fn any_price() -> impl Strategy<Value = Price> {
    let tiers = (any_tier(), any_tier(), any_tier());
    (tiers, 1..u64::MAX).prop_map(|((base, long, flex), above)| Price {
        input: base.input.unwrap(),
        cached_input: base.cached_input,
        cache_write: base.cache_write,
        cache_write_1h: base.cache_write_1h,
        audio_input: base.audio_input,
        image_input: base.image_input,
        output: base.output.unwrap(),
        reasoning: base.reasoning,
        audio_output: base.audio_output,
        image_output: base.image_output,
        tiers: vec![
            Tier { above, ..long },
            Tier {
                service_tier: Some("flex".into()),
                ..flex
            },
        ],
        pictures: Vec::new(),
    })
}

/// A price whose tier is cheaper for no kind of token.
fn rising_price() -> impl Strategy<Value = Price> {
    any_price().prop_map(|mut price| {
        let at_least = |low: PicoPrice| move |high: PicoPrice| high.max(low);
        for tier in &mut price.tiers {
            tier.input = tier.input.map(at_least(price.input));
            tier.cached_input = tier.cached_input.max(price.cached_input);
            tier.cache_write = tier.cache_write.max(price.cache_write);
            tier.cache_write_1h = tier.cache_write_1h.max(price.cache_write_1h);
            tier.output = tier.output.map(at_least(price.output));
            tier.reasoning = tier.reasoning.max(price.reasoning);
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
