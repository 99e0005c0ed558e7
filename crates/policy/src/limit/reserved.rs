//! The usage that a request may have, which is reserved for it.

use engine::Usage;
use quota::{Demand, MissingPrices, Money, PicoPrice, Picture, PicturePrice, Price};
use relay::Delivered;
use wire::ServiceTier;

use super::estimate::prompt_tokens;
use crate::prices::TargetPrices;

/// The usage that a request may have, as far as its body says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    /// Tokens of the prompt, as estimated.
    pub prompt: u64,
    /// The answers that the request asks for.
    pub answers: Answers,
    /// Pictures of the answer.
    pub pictures: Pictures,
    /// Previews of each picture.
    pub previews: u64,
}

/// The answers that a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// The number of answers.
    pub count: u64,
    /// The most tokens of each of them, if the request limits them.
    pub limit: Option<u64>,
    /// The service tier that was requested.
    pub service_tier: ServiceTier,
}

/// Pictures of one size and quality.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pictures {
    /// The number of pictures.
    pub count: u64,
    /// Width and height, such as `1024x1024`; blank if they are left to the model.
    pub size: String,
    /// The quality, such as `high`; blank if it is left to the model.
    pub quality: String,
}

impl From<Delivered> for Pictures {
    fn from(delivered: Delivered) -> Self {
        let Delivered {
            count,
            size,
            quality,
        } = delivered;
        Self {
            count,
            size,
            quality,
        }
    }
}

impl Answers {
    /// One answer, with this limit of its tokens.
    pub fn one(limit: Option<u64>) -> Self {
        Self {
            count: 1,
            limit,
            ..Self::default()
        }
    }

    /// Sets the service tier by the name that the request has for it.
    pub fn at_service_tier(self, name: Option<&str>) -> Self {
        let name = name.unwrap_or_default().as_bytes();
        Self {
            service_tier: ServiceTier::named(name),
            ..self
        }
    }

    /// Returns the tokens of all answers, each with as many as its limit, or this many without one.
    fn at_most(self, unlimited: u64) -> u64 {
        self.limit.unwrap_or(unlimited).saturating_mul(self.count)
    }

    /// Returns the tokens of all answers if each has this many, or its limit if that is less.
    fn of_length(self, typical: u64) -> u64 {
        let each = self.limit.map_or(typical, |limit| limit.min(typical));
        each.saturating_mul(self.count)
    }
}

impl Reserved {
    /// Estimates the possible usage of a request with this JSON body.
    pub fn of_text(body: &[u8], answers: Answers) -> Self {
        Self {
            prompt: prompt_tokens(body),
            answers,
            ..Self::default()
        }
    }

    /// Returns the tokens of `count` of its pictures, with their previews.
    fn picture_tokens(&self, count: u64) -> u64 {
        let previews = self.previews.saturating_mul(TOKENS_OF_PREVIEW);
        let each = tokens_of_picture(&self.pictures.size, &self.pictures.quality);
        each.saturating_add(previews).saturating_mul(count)
    }

    fn cost(&self, price: &Price, tokens: Tokens) -> Money {
        let service_tier = self.answers.service_tier.special();
        price
            .estimate(tokens.prompt, tokens.answer, service_tier)
            .saturating_add(self.pictures.most(price))
    }
}

/// The most tokens of a request.
#[derive(Clone, Copy, Debug, Default)]
struct Tokens {
    prompt: u64,
    answer: u64,
}

/// The estimated usage of a request, from which its reservations and its charge follow.
#[derive(Clone, Debug)]
pub(super) struct Estimate {
    reserved: Reserved,
    /// The prices of the targets that may answer.
    prices: TargetPrices,
    /// The most tokens, by the limit of the request or of the configuration.
    most: Tokens,
    /// The reservation: in budgets, the most that the request may cost; in rates, the tokens that
    /// it probably uses.
    demand: Demand,
}

impl Estimate {
    /// Estimates a request. Without a limit of its own, each of its answers has at most
    /// `answer_tokens`.
    pub(super) fn new(reserved: Reserved, prices: TargetPrices, answer_tokens: u64) -> Self {
        let makes_pictures = reserved.pictures.count > 0;
        let most = match makes_pictures {
            // A target with prices for each picture does not bill their tokens.
            true if !prices.all().any(bills_tokens_of_pictures) => Tokens::default(),
            true => Tokens {
                prompt: reserved.prompt,
                answer: reserved.picture_tokens(reserved.pictures.count),
            },
            false => Tokens {
                prompt: reserved.prompt,
                answer: reserved.answers.at_most(answer_tokens),
            },
        };
        let costs = prices.all().map(|price| reserved.cost(price, most));
        let demand = Demand {
            tokens: most.prompt.saturating_add(most.answer),
            money: costs.max().unwrap_or_default(),
        };
        Self {
            reserved,
            prices,
            most,
            demand,
        }
    }

    /// Returns the reservation if answers rarely have more than `typical` tokens, as far as that is
    /// known.
    pub(super) fn demand(&mut self, typical: Option<u64>) -> Demand {
        if self.reserved.pictures.count == 0 {
            let answers = self.reserved.answers;
            let answers = answers.of_length(typical.unwrap_or(TYPICAL_ANSWER));
            self.demand.tokens = self.most.prompt.saturating_add(answers);
        }
        self.demand
    }

    pub(super) fn reserved(&self) -> &Reserved {
        &self.reserved
    }

    pub(super) fn prices(&self) -> &TargetPrices {
        &self.prices
    }

    /// Returns the length of each answer, if all together have this many tokens.
    pub(super) fn length(&self, tokens: u64) -> u64 {
        tokens.div_ceil(self.reserved.answers.count.max(1))
    }

    /// Returns the tokens that were reserved in rates.
    pub(super) fn reserved_tokens(&self) -> u64 {
        self.demand.tokens
    }

    /// Returns the most that the request may use.
    pub(super) fn most(&self) -> Demand {
        Demand {
            tokens: self.most.prompt.saturating_add(self.most.answer),
            money: self.demand.money,
        }
    }

    /// Returns the most that the request may use, as tokens of the prompt and of the answer.
    pub(super) fn most_usage(&self) -> Usage {
        Usage {
            input: self.most.prompt,
            output: self.most.answer,
            ..Usage::default()
        }
    }

    /// Returns the usage of this many pictures.
    pub(super) fn usage_of_pictures(&self, count: u64) -> Usage {
        Usage {
            input: self.most.prompt,
            output: self.reserved.picture_tokens(count),
            ..Usage::default()
        }
    }
}

impl Pictures {
    /// Returns the pictures in `stated`. Properties that it leaves open are taken from these
    /// pictures.
    pub(super) fn with(&self, stated: &Self) -> Self {
        let known = |stated: &String, own: &String| match &**stated {
            "" | AUTO => own.clone(),
            _ => stated.clone(),
        };
        Self {
            count: stated.count,
            size: known(&stated.size, &self.size),
            quality: known(&stated.quality, &self.quality),
        }
    }

    pub(super) fn cost(&self, price: &Price) -> Money {
        self.times(price.cost(&Usage::default(), &[self.each()]))
    }

    /// Returns the missing prices that one of these pictures needs.
    pub(super) fn missing_prices(&self, price: &Price) -> MissingPrices {
        let each = [self.each()];
        let pictures = if self.count > 0 { &each[..] } else { &[] };
        price.missing(&Usage::default(), pictures)
    }

    fn each(&self) -> Picture<'_> {
        Picture {
            size: &self.size,
            quality: &self.quality,
        }
    }

    /// Returns the highest cost of these pictures, if the model chooses the properties left open. A
    /// choice that the list lacks costs as much as its dearest entry.
    fn most(&self, price: &Price) -> Money {
        let is_open = |own: &str| matches!(own, "" | AUTO);
        if ![&self.size, &self.quality]
            .into_iter()
            .any(|own| is_open(own))
        {
            return self.cost(price);
        }
        let fits = |entry: &str, own: &str| entry == ANY || entry == own;
        let covers_all = |entry: &PicturePrice| {
            fits(&entry.size, &self.size) && fits(&entry.quality, &self.quality)
        };
        let is_complete = price.pictures.iter().any(covers_all);
        let may_apply = |entry: &&PicturePrice| {
            let may_fit = |entry: &str, own: &str| is_open(own) || fits(entry, own);
            let (size, quality) = (&entry.size, &entry.quality);
            !is_complete || may_fit(size, &self.size) && may_fit(quality, &self.quality)
        };
        let entries = price.pictures.iter().filter(may_apply);
        let dearest = entries.map(|entry| entry.price).max();
        self.times(dearest.unwrap_or_default())
    }

    fn times(&self, each: Money) -> Money {
        let count = i64::try_from(self.count).unwrap_or(i64::MAX);
        Money::from_nanos(each.nanos().saturating_mul(count))
    }
}

/// Returns true if a model with this price bills pictures by their tokens.
pub(super) fn bills_tokens_of_pictures(price: &Price) -> bool {
    let output = price.output.max(price.image_output.unwrap_or_default());
    price.pictures.is_empty() && output > PicoPrice::ZERO
}

/// Returns the tokens of a generated picture, with the largest size or best quality if the model
/// chooses it: <https://platform.openai.com/docs/guides/image-generation#cost-and-latency>.
fn tokens_of_picture(size: &str, quality: &str) -> u64 {
    let [square, portrait, landscape] = match quality {
        "low" => [272, 408, 400],
        "medium" => [1_056, 1_584, 1_568],
        _ => [4_160, 6_240, 6_208],
    };
    match size {
        "1024x1024" => square,
        "1536x1024" => landscape,
        _ => portrait,
    }
}

/// The tokens of a preview, from the same page.
const TOKENS_OF_PREVIEW: u64 = 100;
/// The tokens that rates reserve for an answer of a key before its first answer has ended.
const TYPICAL_ANSWER: u64 = 1_000;
/// The size or quality that the model chooses.
const AUTO: &str = "auto";
/// Any size or quality of a price.
const ANY: &str = "*";
