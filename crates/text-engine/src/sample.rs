//! Samples the next token from the scores of the model.

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};

use engine::Sampling;
use rand::distr::{Alphanumeric, SampleString};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use toktrie::TokenId;

/// Draws the tokens of one generation.
pub(crate) struct Sampler {
    sampling: Sampling,
    /// Number of times that each token was drawn.
    counts: HashMap<TokenId, u32>,
    /// The most recent tokens, oldest first.
    recent: VecDeque<TokenId>,
    rng: StdRng,
}

/// The kind of text that a token is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Unconstrained text.
    Free,
    /// Text constrained by a grammar: at a low temperature, so that it ends.
    Grammar,
}

impl Sampler {
    /// Creates a sampler. `salt` distinguishes generations with the same seed.
    pub(crate) fn new(sampling: Sampling, salt: u64) -> Self {
        let rng = match sampling.seed {
            Some(seed) => StdRng::seed_from_u64(seed.cast_unsigned() ^ salt.rotate_left(32)),
            None => StdRng::from_os_rng(),
        };
        Self {
            sampling,
            counts: HashMap::new(),
            recent: VecDeque::new(),
            rng,
        }
    }

    /// Draws the next token from the allowed ones. Returns `None` if no token is allowed.
    pub(crate) fn draw(
        &mut self,
        scores: &[f32],
        purpose: Purpose,
        allowed: impl Fn(TokenId) -> bool,
    ) -> Option<TokenId> {
        let mut finite = Vec::with_capacity(scores.len());
        for score in scores {
            finite.push(if score.is_finite() { *score } else { f32::MIN });
        }
        self.penalize(&mut finite, purpose);
        let best = likeliest(&finite, &allowed)?;
        let temperature = self.temperature(purpose);
        let token = match temperature > 0.0 {
            true => self.draw_by_chance(&finite, best, temperature, allowed),
            false => best,
        };
        self.note(token);
        Some(token)
    }

    /// Counts a token for the penalties; also called for tokens that were forced instead of drawn.
    pub(crate) fn note(&mut self, token: TokenId) {
        *self.counts.entry(token).or_default() += 1;
        self.recent.push_back(token);
        if self.recent.len() > REPETITION_WINDOW {
            self.recent.pop_front();
        }
    }

    /// A random unique identifier.
    pub(crate) fn id(&mut self, prefix: &str) -> String {
        format!("{prefix}_{}", Alphanumeric.sample_string(&mut self.rng, 24))
    }

    /// A request that leaves the choice to the model gets the likeliest text: a small model loses
    /// its way if chance picks another word. Constrained text keeps a little chance, because the
    /// likeliest continuation of a list may be one more element, again and again.
    fn temperature(&self, purpose: Purpose) -> f32 {
        let Sampling {
            temperature,
            top_p,
            top_k,
            ..
        } = &self.sampling;
        match (temperature, purpose) {
            (Some(requested), Purpose::Free) => *requested as f32,
            (Some(requested), Purpose::Grammar) => (*requested as f32).min(GRAMMAR_TEMPERATURE),
            (None, Purpose::Free) if top_p.is_none() && top_k.is_none() => 0.0,
            (None, _) => DEFAULT_TEMPERATURE,
        }
    }

    /// The nucleus size. The default of the model applies only if the request sets neither `top_p`
    /// nor `temperature`.
    fn top_p(&self) -> f32 {
        let default = if self.sampling.temperature.is_none() {
            DEFAULT_TOP_P
        } else {
            1.0
        };
        self.sampling.top_p.unwrap_or(default) as f32
    }

    /// Lowers the scores of the tokens that were drawn.
    fn penalize(&self, scores: &mut [f32], purpose: Purpose) {
        let presence = self.sampling.presence_penalty.unwrap_or(0.0) as f32;
        let frequency = self.sampling.frequency_penalty.unwrap_or(0.0) as f32;
        for (token, count) in &self.counts {
            let Some(score) = scores.get_mut(*token as usize) else {
                continue;
            };
            *score -= presence + frequency * *count as f32;
            if purpose == Purpose::Free && self.recent.contains(token) {
                *score = if *score > 0.0 {
                    *score / REPETITION_PENALTY
                } else {
                    *score * REPETITION_PENALTY
                };
            }
        }
    }

    fn draw_by_chance(
        &mut self,
        scores: &[f32],
        best: TokenId,
        temperature: f32,
        allowed: impl Fn(TokenId) -> bool,
    ) -> TokenId {
        let most = scores[best as usize];
        let least = most - NEGLIGIBLE * temperature;
        let likely = (0..).zip(scores).filter(|(_, score)| **score >= least);
        let mut shares: Vec<(TokenId, f32)> = likely
            .filter(|(token, _)| allowed(*token))
            .map(|(token, score)| (token, ((score - most) / temperature).exp()))
            .collect();
        let top_k = self
            .sampling
            .top_k
            .and_then(|top| usize::try_from(top).ok());
        if let Some(top_k @ 1..) = top_k.filter(|top| *top < shares.len()) {
            shares.select_nth_unstable_by(top_k, greatest_first);
            shares.truncate(top_k);
        }
        let top_p = self.top_p();
        if top_p < 1.0 {
            keep_nucleus(&mut shares, top_p);
        }
        let sum: f32 = shares.iter().map(|(_, share)| share).sum();
        let mut point = self.rng.random::<f32>() * sum;
        let drawn = shares.iter().find(|(_, share)| {
            point -= share;
            point <= 0.0
        });
        drawn.map_or(best, |(token, _)| *token)
    }
}

/// The allowed token with the highest score; the first one on a tie.
fn likeliest(scores: &[f32], allowed: impl Fn(TokenId) -> bool) -> Option<TokenId> {
    let mut best: Option<(TokenId, f32)> = None;
    for (token, score) in (0..).zip(scores) {
        if best.is_none_or(|(_, most)| *score > most) && allowed(token) {
            best = Some((token, *score));
        }
    }
    best.map(|(token, _)| token)
}

/// Keeps the greatest shares whose sum reaches `top_p` of the total: at least one.
fn keep_nucleus(shares: &mut Vec<(TokenId, f32)>, top_p: f32) {
    let mut left = top_p * shares.iter().map(|(_, share)| share).sum::<f32>();
    // Most nuclei are small, so the shares are sorted part by part.
    let (mut kept, mut size) = (0, 64);
    while kept < shares.len() {
        let rest = &mut shares[kept..];
        let size_of_part = size.min(rest.len());
        if size_of_part < rest.len() {
            rest.select_nth_unstable_by(size_of_part, greatest_first);
        }
        let part = &mut rest[..size_of_part];
        part.sort_unstable_by(greatest_first);
        for (_, share) in part {
            kept += 1;
            left -= *share;
            if left <= 0.0 {
                return shares.truncate(kept);
            }
        }
        size *= 4;
    }
}

/// Orders shares from the greatest to the least, and equal ones by token.
fn greatest_first(left: &(TokenId, f32), right: &(TokenId, f32)) -> Ordering {
    let by_share = right.1.total_cmp(&left.1);
    by_share.then_with(|| left.0.cmp(&right.0))
}

const DEFAULT_TEMPERATURE: f32 = 0.2;

const DEFAULT_TOP_P: f64 = 0.9;

const GRAMMAR_TEMPERATURE: f32 = 0.3;

/// Penalty for repeating one of the recent tokens (CTRL, <https://arxiv.org/abs/1909.05858>, §4.1).
const REPETITION_PENALTY: f32 = 1.05;

const REPETITION_WINDOW: usize = 64;

/// Scores this far below the best, in units of the temperature, are treated as impossible.
const NEGLIGIBLE: f32 = 20.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(sampling: Sampling) -> Sampler {
        Sampler::new(
            Sampling {
                seed: Some(7),
                ..sampling
            },
            0,
        )
    }

    fn drawn(sampling: Sampling, scores: &[f32]) -> Vec<TokenId> {
        let mut sampler = sampler(sampling);
        (0..64)
            .filter_map(|_| sampler.draw(scores, Purpose::Free, |_| true))
            .collect()
    }

    #[test]
    fn sampling_is_greedy_unless_requested_or_constrained() {
        let of = |temperature, top_p, purpose| {
            let sampling = Sampling {
                temperature,
                top_p,
                ..Sampling::default()
            };
            sampler(sampling).temperature(purpose)
        };
        assert_eq!(of(None, None, Purpose::Free), 0.0);
        assert_eq!(of(None, None, Purpose::Grammar), 0.2);
        assert_eq!(of(None, Some(0.9), Purpose::Free), 0.2);
        assert_eq!(of(Some(1.0), None, Purpose::Free), 1.0);
        assert_eq!(of(Some(1.0), None, Purpose::Grammar), 0.3);
    }

    #[test]
    fn temperature_zero_takes_the_likeliest() {
        let sampling = Sampling {
            temperature: Some(0.0),
            ..Sampling::default()
        };
        assert_eq!(
            sampler(sampling).draw(&[0.1, 3.0, 2.0], Purpose::Free, |_| true),
            Some(1)
        );
    }

    #[test]
    fn only_allowed_tokens_are_drawn() {
        let mut sampler = sampler(Sampling {
            temperature: Some(2.0),
            ..Sampling::default()
        });
        assert_eq!(
            sampler.draw(&[9.0, 1.0], Purpose::Grammar, |token| token == 1),
            Some(1)
        );
        assert_eq!(sampler.draw(&[9.0, 1.0], Purpose::Grammar, |_| false), None);
    }

    /// Scores that are not finite still yield a token.
    #[test]
    fn e04_scores_that_are_no_numbers_still_give_a_token() {
        for temperature in [0.0, 1.0] {
            let sampling = Sampling {
                temperature: Some(temperature),
                ..Sampling::default()
            };
            let broken = [f32::NAN, f32::NEG_INFINITY, f32::INFINITY];
            assert!(
                sampler(sampling)
                    .draw(&broken, Purpose::Free, |_| true)
                    .is_some()
            );
        }
    }

    /// An empty nucleus holds the likeliest token.
    #[test]
    fn e04_an_empty_nucleus_holds_one() {
        let sampling = Sampling {
            temperature: Some(1.0),
            top_p: Some(0.0),
            ..Sampling::default()
        };
        assert!(drawn(sampling, &[1.0, 5.0, 4.0]).starts_with(&[1]));
    }

    #[test]
    fn one_of_the_top_one_is_the_likeliest() {
        let sampling = Sampling {
            temperature: Some(2.0),
            top_k: Some(1),
            ..Sampling::default()
        };
        assert!(
            drawn(sampling, &[1.0, 50.0, 4.0])
                .iter()
                .all(|token| *token == 1)
        );
    }

    #[test]
    fn a_penalty_lets_another_token_win() {
        let sampling = Sampling {
            temperature: Some(0.0),
            presence_penalty: Some(2.0),
            ..Sampling::default()
        };
        assert_eq!(drawn(sampling, &[1.0, 2.5, 0.0])[..2], [1, 0]);
    }

    /// A frequency penalty counts only the number of times that a token was drawn.
    #[test]
    fn a_penalty_grows_with_each_time_that_a_token_was_drawn() {
        let sampling = Sampling {
            temperature: Some(0.0),
            frequency_penalty: Some(1.0),
            ..Sampling::default()
        };
        let mut sampler = sampler(sampling);
        // With a grammar there is no repetition penalty: 2.5 becomes 1.5 and then 0.5, below the
        // other score of 1.
        let drawn: Vec<_> = (0..3)
            .filter_map(|_| sampler.draw(&[1.0, 2.5], Purpose::Grammar, |_| true))
            .collect();
        assert_eq!(drawn, [1, 1, 0]);
    }

    /// The default nucleus of the model applies only to requests without sampling parameters.
    #[test]
    fn a_nucleus_is_only_by_default() {
        let top_p = |temperature, top_p| {
            sampler(Sampling {
                temperature,
                top_p,
                ..Sampling::default()
            })
            .top_p()
        };
        assert_eq!(
            (
                top_p(None, None),
                top_p(Some(0.2), None),
                top_p(None, Some(0.5))
            ),
            (0.9, 1.0, 0.5)
        );
    }

    #[test]
    fn a_seed_repeats_itself() {
        let sampling = Sampling {
            temperature: Some(1.0),
            ..Sampling::default()
        };
        let scores = [1.0, 1.1, 0.9, 1.0];
        assert_eq!(drawn(sampling.clone(), &scores), drawn(sampling, &scores));
    }

    /// The nucleus is the same as if all shares were sorted, wherever the sorted parts end.
    #[test]
    fn a_nucleus_has_the_greatest_shares() {
        let shares: Vec<(TokenId, f32)> = (0..1000)
            .map(|token| (token, (token % 400) as f32))
            .collect();
        let mut ordered = shares.clone();
        ordered.sort_by(greatest_first);
        for count in [1, 2, 63, 64, 65, 319, 320, 321, 700] {
            let sum =
                |shares: &[(TokenId, f32)]| shares.iter().map(|(_, share)| share).sum::<f32>();
            let top_p = (sum(&ordered[..count]) - 0.5) / sum(&shares);
            let mut kept = shares.clone();
            keep_nucleus(&mut kept, top_p);
            assert_eq!(kept, ordered[..count]);
        }
    }

    /// Tokens are drawn as often as their shares say: 3 to 1 at the temperature of a grammar.
    #[test]
    fn tokens_are_drawn_by_their_shares() {
        let sampling = Sampling {
            temperature: Some(1.0),
            seed: Some(7),
            ..Sampling::default()
        };
        let mut sampler = Sampler::new(sampling, 0);
        let scores = [0.0, 3_f32.ln() * GRAMMAR_TEMPERATURE, -30.0];
        let drawn: Vec<TokenId> = (0..4000)
            .filter_map(|_| sampler.draw(&scores, Purpose::Grammar, |_| true))
            .collect();
        let share = |token| drawn.iter().filter(|drawn| **drawn == token).count();
        assert_eq!(drawn.len(), 4000);
        assert!(
            share(1).abs_diff(3000) < 120 && share(2) == 0,
            "{}",
            share(1)
        );
    }
}
