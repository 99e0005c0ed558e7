//! The order in which the targets of a model are tried.

/// Returns the order of targets with these weights, as indices; it contains every target once.
///
/// Without any weight, targets keep the order of the configuration. With at least one weight, each
/// request draws an order from `random` (uniform over all values): the higher its weight, the
/// earlier a target tends to be; a missing weight counts as 1. Targets of weight 0 are a last
/// resort: they follow all others, in the order of the configuration.
#[must_use]
pub fn order(weights: &[Option<u32>], random: u64) -> Vec<usize> {
    if weights.iter().all(Option::is_none) {
        return (0..weights.len()).collect();
    }
    let weighted = weights
        .iter()
        .enumerate()
        .map(|(index, weight)| (index, weight.unwrap_or(1)));
    let (mut drawn, last_resort): (Vec<_>, Vec<_>) = weighted.partition(|(_, weight)| *weight > 0);
    shuffle(&mut drawn, random);
    drawn
        .into_iter()
        .chain(last_resort)
        .map(|(index, _)| index)
        .collect()
}

/// Shuffles by drawing without replacement: at each position, the probability of each remaining
/// target is proportional to its weight.
fn shuffle(targets: &mut [(usize, u32)], mut random: u64) {
    let mut total: u64 = targets.iter().map(|(_, weight)| u64::from(*weight)).sum();
    for position in 0..targets.len() {
        let remaining = &mut targets[position..];
        let drawn = draw(remaining, total, random);
        total -= u64::from(remaining[drawn].1);
        // The others keep their order, as if the drawn one had been removed.
        remaining[..=drawn].rotate_right(1);
        random = mix(random);
    }
}

/// Returns the index of the target that `random` selects, each with a probability proportional to
/// its weight.
fn draw(targets: &[(usize, u32)], total: u64, random: u64) -> usize {
    let mut point = ((u128::from(random) * u128::from(total)) >> 64) as u64;
    let is_drawn = |(_, weight): &(usize, u32)| {
        let is_within = point < u64::from(*weight);
        point = point.saturating_sub(u64::from(*weight));
        is_within
    };
    targets.iter().position(is_drawn).unwrap_or_default()
}

/// Returns the next random number: one step of SplitMix64.
const fn mix(random: u64) -> u64 {
    let random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let random = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let random = (random ^ (random >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    random ^ (random >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    /// Counts how often each target is drawn first.
    fn firsts(weights: &[Option<u32>], draws: u32) -> Vec<u32> {
        let mut firsts = vec![0; weights.len()];
        for at in 0..draws {
            firsts[order(weights, mix(u64::from(at)))[0]] += 1;
        }
        firsts
    }

    #[test]
    fn without_weights_the_order_is_the_stated_one() {
        assert_eq!(order(&[], 7), [0; 0]);
        assert!((0..100).all(|random| order(&[None; 4], mix(random)) == [0, 1, 2, 3]));
    }

    #[test]
    fn weights_are_shares() {
        let firsts = firsts(&[Some(7), None, Some(2)], 10_000);
        for (first, expected) in firsts.into_iter().zip([7_000, 1_000, 2_000]) {
            assert!(
                u32::abs_diff(first, expected) < 200,
                "{first} for {expected}"
            );
        }
    }

    #[test]
    fn the_second_is_drawn_among_the_others() {
        let weights = [Some(98), Some(1), Some(1)];
        let seconds = (0..10_000)
            .map(|at| order(&weights, mix(at)))
            .filter(|order| order[0] == 0 && order[1] == 1);
        let seconds = seconds.count();
        assert!((4_600..5_200).contains(&seconds), "{seconds}");
    }

    #[test]
    fn weight_0_is_a_last_resort() {
        let weights = [Some(0), Some(1), Some(0), Some(3)];
        for random in 0..1_000 {
            let order = order(&weights, mix(random));
            assert_eq!(order[2..], [0, 2]);
        }
        assert_eq!(order(&[Some(0), Some(0)], u64::MAX), [0, 1]);
    }

    proptest! {
        #[test]
        fn every_target_has_one_place(weights in vec(option::of(any::<u32>()), 0..20), random: u64) {
            let mut order = order(&weights, random);
            order.sort_unstable();
            prop_assert!(order.into_iter().eq(0..weights.len()));
        }
    }
}
