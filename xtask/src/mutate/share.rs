//! A share of the mutations for the short tier: a few of one crate, which follow from the seed.

use std::collections::BTreeSet;

use super::list::{self, Mutation};
use super::page::Page;
use super::{Plan, judge};
use crate::outcome::{Outcome, no_problems};

/// Tries the share of this seed again. Only mutations that have been tried in their current form
/// take part: a new one should not fail an unrelated change.
pub(crate) fn run(seed: u64) -> Outcome {
    let all = list::read()?;
    let page = Page::read(&all)?;
    let tried: Vec<_> = all
        .iter()
        .filter(|mutation| !mutation.slow && page.is_tried(mutation))
        .collect();
    let chosen = choose(&tried, seed);
    let plan = Plan {
        minutes: Some(MINUTES),
        ..Plan::default()
    };
    let (_, wrong) = judge(&chosen, &plan, |_, _| Ok(()))?;
    no_problems("mutations", &wrong)
}

/// Some mutations of one crate, so that little is built between them.
fn choose<'a>(all: &[&'a Mutation], seed: u64) -> Vec<&'a Mutation> {
    let crates: BTreeSet<_> = all.iter().map(|mutation| mutation.place().0).collect();
    let chosen = crates.iter().nth(index(seed, crates.len()));
    let within: Vec<_> = all
        .iter()
        .filter(|mutation| Some(&mutation.place().0) == chosen)
        .copied()
        .collect();
    let first = index(seed, within.len());
    within
        .iter()
        .cycle()
        .skip(first)
        .take(MOST.min(within.len()))
        .copied()
        .collect()
}

fn index(seed: u64, count: usize) -> usize {
    (seed % count.max(1) as u64) as usize
}

/// The number of mutations in a share.
const MOST: usize = 6;
/// The number of minutes after which none is started any more.
const MINUTES: u16 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_of_one_crate_and_follows_from_the_seed() {
        let all = list::read().unwrap();
        let all: Vec<_> = all.iter().collect();
        for seed in [0, 1, 7, u64::MAX] {
            let names = |seed| {
                choose(&all, seed)
                    .iter()
                    .map(|mutation| mutation.name.clone())
                    .collect::<Vec<_>>()
            };
            assert_eq!(names(seed), names(seed));
            let crates: BTreeSet<_> = choose(&all, seed)
                .iter()
                .map(|mutation| mutation.place().0)
                .collect();
            assert_eq!(crates.len(), 1);
            let distinct: BTreeSet<_> = names(seed).into_iter().collect();
            assert!((1..=MOST).contains(&distinct.len()));
            assert_eq!(distinct.len(), names(seed).len(), "none twice");
        }
    }

    #[test]
    fn without_mutations_there_is_no_share() {
        assert!(choose(&[], 7).is_empty());
    }
}
