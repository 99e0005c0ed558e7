//! Samples the next token from the scores of the model.

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

    /// Draws the next token from the allowed ones. Returns `None` if there are none.
    pub(crate) fn draw(
        &mut self,
        scores: &[f32],
        purpose: Purpose,
        allowed: impl Fn(TokenId) -> bool,
    ) -> Option<TokenId> {
        let mut odds: Vec<(TokenId, f32)> = Vec::with_capacity(scores.len());
        for (token, score) in (0..).zip(scores) {
            if allowed(token) {
                odds.push((token, if score.is_finite() { *score } else { f32::MIN }));
            }
        }
        self.penalize(&mut odds, purpose);
        let temperature = self.temperature(purpose);
        let token = match temperature > 0.0 {
            true => self.draw_by_chance(odds, temperature)?,
            false => likeliest(&odds)?.0,
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

    fn temperature(&self, purpose: Purpose) -> f32 {
        let requested = self.sampling.temperature.unwrap_or(DEFAULT_TEMPERATURE) as f32;
        match purpose {
            Purpose::Free => requested,
            Purpose::Grammar => requested.min(GRAMMAR_TEMPERATURE),
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

    fn penalize(&self, odds: &mut [(TokenId, f32)], purpose: Purpose) {
        let presence = self.sampling.presence_penalty.unwrap_or(0.0) as f32;
        let frequency = self.sampling.frequency_penalty.unwrap_or(0.0) as f32;
        for (token, score) in odds.iter_mut() {
            let Some(count) = self.counts.get(token) else {
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
        mut odds: Vec<(TokenId, f32)>,
        temperature: f32,
    ) -> Option<TokenId> {
        let best = likeliest(&odds)?.1;
        odds.retain(|(_, score)| *score >= best - NEGLIGIBLE * temperature);
        odds.sort_by(|a, b| b.1.total_cmp(&a.1));
        let top_k = self
            .sampling
            .top_k
            .and_then(|top| usize::try_from(top).ok())
            .filter(|top| *top > 0);
        odds.truncate(top_k.unwrap_or(usize::MAX));
        for (_, score) in &mut odds {
            *score = ((*score - best) / temperature).exp();
        }
        odds.truncate(nucleus(&odds, self.top_p()));
        let sum: f32 = odds.iter().map(|(_, share)| share).sum();
        let mut point = self.rng.random::<f32>() * sum;
        for (token, share) in &odds {
            point -= share;
            if point <= 0.0 {
                return Some(*token);
            }
        }
        odds.first().map(|(token, _)| *token)
    }
}

/// The token with the highest score; the first one on a tie.
fn likeliest(odds: &[(TokenId, f32)]) -> Option<(TokenId, f32)> {
    odds.iter()
        .copied()
        .reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// The number of shares, greatest first, whose sum reaches `top_p` of the total: at least one.
fn nucleus(shares: &[(TokenId, f32)], top_p: f32) -> usize {
    let whole: f32 = shares.iter().map(|(_, share)| share).sum();
    let mut left = top_p * whole;
    let is_below = |(_, share): &&(TokenId, f32)| {
        left -= share;
        left > 0.0
    };
    shares.iter().take_while(is_below).count() + 1
}

const DEFAULT_TEMPERATURE: f64 = 0.2;

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
}
