//! In which order the targets of a model are asked.

/// The order of targets with these weights, as indices; every target is in it once.
///
/// When no weight is stated, the order is the stated one. When one is, each request draws its own order by `random`
/// (uniform over all values): the higher its weight, the earlier a target tends to be; a target without a weight counts
/// as 1. Targets of weight 0 come after all others, in the stated order: a last resort.
#[must_use]
pub fn order(weights: &[Option<u32>], random: u64) -> Vec<usize> {
    if weights.iter().all(Option::is_none) {
        return (0..weights.len()).collect();
    }
    let weighted = weights.iter().enumerate().map(|(index, weight)| (index, weight.unwrap_or(1)));
    let (mut drawn, resort): (Vec<_>, Vec<_>) = weighted.partition(|(_, weight)| *weight > 0);
    shuffle(&mut drawn, random);
    drawn.into_iter().chain(resort).map(|(index, _)| index).collect()
}

/// Draws without putting back: at each place, each target that is left has the chance of its weight.
fn shuffle(targets: &mut [(usize, u32)], mut random: u64) {
    let mut total: u64 = targets.iter().map(|(_, weight)| u64::from(*weight)).sum();
    for place in 0..targets.len() {
        let left = &mut targets[place..];
        let drawn = draw(left, total, random);
        total -= u64::from(left[drawn].1);
        // The others stay in order, as if the drawn one had been taken out.
        left[..=drawn].rotate_right(1);
        random = mix(random);
    }
}

/// The index of the target that `random` falls on, where each takes as much room as its weight.
fn draw(targets: &[(usize, u32)], total: u64, random: u64) -> usize {
    let mut point = ((u128::from(random) * u128::from(total)) >> 64) as u64;
    let falls_on = |(_, weight): &(usize, u32)| {
        let is_here = point < u64::from(*weight);
        point = point.saturating_sub(u64::from(*weight));
        is_here
    };
    targets.iter().position(falls_on).unwrap_or_default()
}

/// The next random number: one step of SplitMix64.
const fn mix(random: u64) -> u64 {
    let random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let random = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let random = (random ^ (random >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    random ^ (random >> 31)
}
