//! The order in which the targets of a model are tried.

/// A target, as far as the order depends on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// A number that identifies the target within its model, uniform over all values, such as a
    /// hash of its name.
    pub(crate) id: u64,
    /// The relative frequency with which it is first. A missing weight counts as 1, and 0 makes it
    /// a last resort.
    pub(crate) weight: Option<u32>,
}

/// Returns the order of targets, as indices; it contains every target once.
///
/// Without any weight, targets keep the order of the configuration. With at least one weight,
/// `draw` (uniform over all values) selects an order: the higher its weight, the earlier a target
/// tends to be. Targets of weight 0 follow all others, in the order of the configuration.
///
/// The same `draw` always selects the same order, and each target has its own place in it: without
/// one target, the others keep their order, and with a higher weight only that target moves. So a
/// `draw` that is a hash of a conversation keeps the conversation at its target for as long as the
/// target exists ([weighted rendezvous
/// hashing](https://datatracker.ietf.org/doc/draft-ietf-bess-weighted-hrw/)).
#[must_use]
pub(crate) fn order(targets: &[Candidate], draw: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..targets.len()).collect();
    if targets.iter().any(|target| target.weight.is_some()) {
        // The bits of floating point numbers that are not negative are ordered as the numbers are.
        order.sort_by_cached_key(|index| score(targets[*index], draw).to_bits());
    }
    order
}

/// Returns the score of a target for a draw; the target with the smallest score wins. Scores are
/// exponentially distributed with the weight as their rate, so that the probability of the smallest
/// score among some targets is in proportion to the weight; for weight 0 the score is infinite.
///
/// The last bits of a logarithm may differ between platforms. They matter only to two scores that
/// are equal but for them, which no deployment will see.
fn score(target: Candidate, draw: u64) -> f64 {
    // Between 0 and 1, and neither of them.
    let uniform = ((mix(draw ^ target.id) >> 12) as f64 + 0.5) / (1_u64 << 52) as f64;
    -uniform.ln() / f64::from(target.weight.unwrap_or(1))
}

/// Returns a number that is as good as random: one step of SplitMix64.
const fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    /// Targets of these weights, whose ids are 1, 2, …
    fn targets(weights: &[Option<u32>]) -> Vec<Candidate> {
        (1..)
            .zip(weights)
            .map(|(id, weight)| Candidate {
                id,
                weight: *weight,
            })
            .collect()
    }

    /// 10,000 different draws.
    fn draws() -> impl Iterator<Item = u64> {
        (0..10_000).map(mix)
    }

    #[test]
    fn without_weights_the_order_is_the_stated_one() {
        assert_eq!(order(&[], 7), [0; 0]);
        assert!(draws().all(|draw| order(&targets(&[None; 4]), draw) == [0, 1, 2, 3]));
    }

    #[test]
    fn traffic_is_split_by_weight() {
        let targets = targets(&[Some(7), None, Some(2)]);
        let mut firsts = [0_u32; 3];
        draws().for_each(|draw| firsts[order(&targets, draw)[0]] += 1);
        for (first, expected) in firsts.into_iter().zip([7_000, 1_000, 2_000]) {
            assert!(
                u32::abs_diff(first, expected) < 200,
                "{first} for {expected}"
            );
        }
    }

    #[test]
    fn the_second_is_drawn_among_the_others() {
        let targets = targets(&[Some(98), Some(1), Some(1)]);
        let seconds = draws()
            .map(|draw| order(&targets, draw))
            .filter(|order| order[0] == 0 && order[1] == 1);
        let seconds = seconds.count();
        assert!((4_600..5_200).contains(&seconds), "{seconds}");
    }

    #[test]
    fn weight_0_is_a_last_resort() {
        let weights = targets(&[Some(0), Some(1), Some(0), Some(3)]);
        assert!(draws().all(|draw| order(&weights, draw)[2..] == [0, 2]));
        assert_eq!(order(&targets(&[Some(0), Some(0)]), u64::MAX), [0, 1]);
    }

    /// Replicas of the gateway, of this version and of later ones, agree on the order.
    #[test]
    fn the_same_draw_selects_the_same_order_everywhere() {
        let targets = targets(&[Some(3), Some(1), Some(1)]);
        let orders: Vec<_> = (0..8).map(|draw| order(&targets, draw)).collect();
        assert_eq!(
            orders,
            [
                [0, 1, 2],
                [0, 2, 1],
                [1, 2, 0],
                [2, 0, 1],
                [1, 0, 2],
                [0, 2, 1],
                [0, 1, 2],
                [0, 2, 1],
            ]
        );
    }

    #[test]
    fn without_a_target_only_its_draws_move() {
        let all = targets(&[Some(3), Some(2), Some(1), Some(1)]);
        let others = [all[0], all[2], all[3]];
        let index_in_all = [0, 2, 3];
        for draw in draws() {
            let mut before = order(&all, draw);
            before.retain(|index| *index != 1);
            let after = order(&others, draw);
            assert!(
                before
                    .into_iter()
                    .eq(after.iter().map(|at| index_in_all[*at]))
            );
        }
    }

    #[test]
    fn with_a_higher_weight_draws_move_to_that_target_only() {
        let before = targets(&[Some(1), Some(1), Some(1)]);
        let after = targets(&[Some(1), Some(2), Some(1)]);
        let mut moved = 0;
        for draw in draws() {
            let (before, after) = (order(&before, draw)[0], order(&after, draw)[0]);
            assert!(after == before || after == 1);
            moved += u32::from(after != before);
        }
        // From a third of all to a half.
        assert!(u32::abs_diff(moved, 1_667) < 200, "{moved}");
    }

    proptest! {
        #[test]
        fn every_target_has_one_place(weights in vec(option::of(any::<u32>()), 0..20), draw: u64) {
            let mut order = order(&targets(&weights), draw);
            order.sort_unstable();
            prop_assert!(order.into_iter().eq(0..weights.len()));
        }
    }
}
