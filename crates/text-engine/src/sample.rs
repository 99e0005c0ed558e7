//! Which token comes next, out of the scores that the network gave to each.

use std::collections::{HashMap, VecDeque};

use engine::Sampling;
use rand::distr::{Alphanumeric, SampleString};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use toktrie::TokenId;

/// Draws the tokens of one generation.
pub(crate) struct Sampler {
    wish: Sampling,
    /// How often each token was drawn.
    counts: HashMap<TokenId, u32>,
    /// The tokens drawn last.
    recent: VecDeque<TokenId>,
    rng: StdRng,
}

/// What a token is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Text as the model likes.
    Free,
    /// Text of a grammar: little chance, so that it comes to an end.
    Grammar,
}

impl Sampler {
    /// `salt` tells generations with the same seed apart.
    pub(crate) fn new(wish: Sampling, salt: u64) -> Self {
        let rng = match wish.seed {
            Some(seed) => StdRng::seed_from_u64(seed.cast_unsigned() ^ salt.rotate_left(32)),
            None => StdRng::from_os_rng(),
        };
        Self { wish, counts: HashMap::new(), recent: VecDeque::new(), rng }
    }

    /// The next token, of those that are allowed; none if none is.
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
        self.penalise(&mut odds, purpose);
        let temperature = self.temperature(purpose);
        let token = match temperature > 0.0 {
            true => self.draw_by_chance(odds, temperature)?,
            false => likeliest(&odds)?.0,
        };
        self.note(token);
        Some(token)
    }

    /// Takes notice of a token that came without being drawn.
    pub(crate) fn note(&mut self, token: TokenId) {
        *self.counts.entry(token).or_default() += 1;
        self.recent.push_back(token);
        if self.recent.len() > REPETITION_WINDOW {
            self.recent.pop_front();
        }
    }

    /// A name that no other has.
    pub(crate) fn id(&mut self, prefix: &str) -> String {
        format!("{prefix}_{}", Alphanumeric.sample_string(&mut self.rng, 24))
    }

    fn temperature(&self, purpose: Purpose) -> f32 {
        let wish = self.wish.temperature.unwrap_or(DEFAULT_TEMPERATURE) as f32;
        match purpose {
            Purpose::Free => wish,
            Purpose::Grammar => wish.min(GRAMMAR_TEMPERATURE),
        }
    }

    /// A caller who says nothing gets what the model was published with.
    fn top_p(&self) -> f32 {
        let default = if self.wish.temperature.is_none() { DEFAULT_TOP_P } else { 1.0 };
        self.wish.top_p.unwrap_or(default) as f32
    }

    fn penalise(&self, odds: &mut [(TokenId, f32)], purpose: Purpose) {
        let presence = self.wish.presence_penalty.unwrap_or(0.0) as f32;
        let frequency = self.wish.frequency_penalty.unwrap_or(0.0) as f32;
        for (token, score) in odds.iter_mut() {
            let Some(count) = self.counts.get(token) else { continue };
            *score -= presence + frequency * *count as f32;
            if purpose == Purpose::Free && self.recent.contains(token) {
                *score = if *score > 0.0 { *score / REPETITION_PENALTY } else { *score * REPETITION_PENALTY };
            }
        }
    }

    fn draw_by_chance(&mut self, mut odds: Vec<(TokenId, f32)>, temperature: f32) -> Option<TokenId> {
        let best = likeliest(&odds)?.1;
        odds.retain(|(_, score)| *score >= best - NEGLIGIBLE * temperature);
        odds.sort_by(|a, b| b.1.total_cmp(&a.1));
        let top_k = self.wish.top_k.and_then(|top| usize::try_from(top).ok()).filter(|top| *top > 0);
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

/// The token of the highest score; the first of several.
fn likeliest(odds: &[(TokenId, f32)]) -> Option<(TokenId, f32)> {
    odds.iter().copied().reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// How many of the shares, greatest first, make up `top_p` of them all: at least one.
fn nucleus(shares: &[(TokenId, f32)], top_p: f32) -> usize {
    let whole: f32 = shares.iter().map(|(_, share)| share).sum();
    let mut left = top_p * whole;
    let short_of_it = |(_, share): &&(TokenId, f32)| {
        left -= share;
        left > 0.0
    };
    shares.iter().take_while(short_of_it).count() + 1
}

const DEFAULT_TEMPERATURE: f64 = 0.2;

const DEFAULT_TOP_P: f64 = 0.9;

const GRAMMAR_TEMPERATURE: f32 = 0.3;

/// Against repeating a token of the last few (CTRL, arXiv 1909.05858 §4.1).
const REPETITION_PENALTY: f32 = 1.05;

const REPETITION_WINDOW: usize = 64;

/// Scores so far below the best, in units of the temperature, are as good as impossible.
const NEGLIGIBLE: f32 = 20.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(wish: Sampling) -> Sampler {
        Sampler::new(Sampling { seed: Some(7), ..wish }, 0)
    }

    fn drawn(wish: Sampling, scores: &[f32]) -> Vec<TokenId> {
        let mut sampler = sampler(wish);
        (0..64).filter_map(|_| sampler.draw(scores, Purpose::Free, |_| true)).collect()
    }

    #[test]
    fn temperature_zero_takes_the_likeliest() {
        let wish = Sampling { temperature: Some(0.0), ..Sampling::default() };
        assert_eq!(sampler(wish).draw(&[0.1, 3.0, 2.0], Purpose::Free, |_| true), Some(1));
    }

    #[test]
    fn only_what_is_allowed_is_drawn() {
        let mut sampler = sampler(Sampling { temperature: Some(2.0), ..Sampling::default() });
        assert_eq!(sampler.draw(&[9.0, 1.0], Purpose::Grammar, |token| token == 1), Some(1));
        assert_eq!(sampler.draw(&[9.0, 1.0], Purpose::Grammar, |_| false), None);
    }

    /// Scores that are no numbers still give a token.
    #[test]
    fn e04_scores_that_are_no_numbers_still_give_a_token() {
        for temperature in [0.0, 1.0] {
            let wish = Sampling { temperature: Some(temperature), ..Sampling::default() };
            let broken = [f32::NAN, f32::NEG_INFINITY, f32::INFINITY];
            assert!(sampler(wish).draw(&broken, Purpose::Free, |_| true).is_some());
        }
    }

    /// An empty nucleus holds the likeliest token.
    #[test]
    fn e04_an_empty_nucleus_holds_one() {
        let wish = Sampling { temperature: Some(1.0), top_p: Some(0.0), ..Sampling::default() };
        assert!(drawn(wish, &[1.0, 5.0, 4.0]).starts_with(&[1]));
    }

    #[test]
    fn one_of_the_top_one_is_the_likeliest() {
        let wish = Sampling { temperature: Some(2.0), top_k: Some(1), ..Sampling::default() };
        assert!(drawn(wish, &[1.0, 50.0, 4.0]).iter().all(|token| *token == 1));
    }

    #[test]
    fn a_penalty_makes_way_for_others() {
        let wish = Sampling { temperature: Some(0.0), presence_penalty: Some(2.0), ..Sampling::default() };
        assert_eq!(drawn(wish, &[1.0, 2.5, 0.0])[..2], [1, 0]);
    }

    /// A frequency penalty counts how often a token was drawn, and nothing else.
    #[test]
    fn a_penalty_grows_with_each_time_that_a_token_was_drawn() {
        let wish = Sampling { temperature: Some(0.0), frequency_penalty: Some(1.0), ..Sampling::default() };
        let mut sampler = sampler(wish);
        // By a grammar, so that nothing else counts against it: 2.5 becomes 1.5 and then 0.5, below the other's 1.
        let drawn: Vec<_> = (0..3).filter_map(|_| sampler.draw(&[1.0, 2.5], Purpose::Grammar, |_| true)).collect();
        assert_eq!(drawn, [1, 1, 0]);
    }

    /// The nucleus that the model was published with is for a caller who asks for nothing.
    #[test]
    fn a_nucleus_is_only_by_default() {
        let top_p = |temperature, top_p| sampler(Sampling { temperature, top_p, ..Sampling::default() }).top_p();
        assert_eq!((top_p(None, None), top_p(Some(0.2), None), top_p(None, Some(0.5))), (0.9, 1.0, 0.5));
    }

    #[test]
    fn a_seed_repeats_itself() {
        let wish = Sampling { temperature: Some(1.0), ..Sampling::default() };
        let scores = [1.0, 1.1, 0.9, 1.0];
        assert_eq!(drawn(wish.clone(), &scores), drawn(wish, &scores));
    }
}
