//! The usage and the cost that a request is charged with when it ends.

use engine::Usage;
use quota::{MissingPrices, Money, Price};
use wire::ServiceTier;

use super::estimate::text_tokens;
use super::reserved::{Estimate, Pictures, bills_tokens_of_pictures};

/// The end of an attempt to have a request answered by a target.
#[derive(Clone, Debug, Default)]
pub enum FinalUsage {
    /// The answer came to its end.
    Complete(Counts),
    /// The answer ended before that, and no model works on it any more.
    Partial(Counts),
    /// A model may still work on the answer. The whole reservation counts, so that nobody gains by
    /// leaving before the usage is known.
    Unfinished(Counts),
    /// No model has worked on it.
    #[default]
    Unused,
}

/// The counts of an answer, or of the part of it that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The usage, if the model has reported it.
    pub usage: Option<Usage>,
    /// The number of events.
    pub events: u64,
    /// The length of all texts, thoughts and arguments, in bytes.
    pub content: u64,
    /// The pictures, with the properties that the answer states.
    pub pictures: Pictures,
}

/// The usage that a request is charged for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// The tokens.
    pub usage: Usage,
    /// The number of pictures.
    pub pictures: u64,
    /// The cost; `None` if the model has no price.
    pub cost: Option<Money>,
    /// The prices that were missing for an exact cost.
    pub missing_prices: MissingPrices,
}

impl FinalUsage {
    /// Returns the usage that the target has reported, if it has.
    pub fn usage(&self) -> Option<Usage> {
        match self {
            Self::Complete(counts) | Self::Partial(counts) | Self::Unfinished(counts) => {
                counts.usage
            }
            Self::Unused => None,
        }
    }

    /// Returns the counts of an answer that ended early as `Partial`, or `Unused` if all are zero.
    pub fn partial(counts: Counts) -> Self {
        if counts == Counts::default() {
            Self::Unused
        } else {
            Self::Partial(counts)
        }
    }

    /// Returns the tokens of an answer whose length is known for certain.
    pub(super) fn reported_answer(&self) -> u64 {
        match self {
            Self::Complete(counts) => counts.usage.map_or(0, |usage| usage.output),
            Self::Partial(_) | Self::Unfinished(_) | Self::Unused => 0,
        }
    }
}

impl Counts {
    /// Estimates the tokens of the content. Most models send an event for each token, and some send
    /// many tokens in one.
    fn tokens(&self) -> u64 {
        self.events.max(text_tokens(self.content))
    }
}

/// The end of an attempt at a target.
#[derive(Clone, Debug, Default)]
pub struct Attempt {
    /// The position of the target in the model's list of targets.
    pub target: usize,
    /// The result of the attempt, as far as it is known.
    pub known: FinalUsage,
}

impl Estimate {
    /// Returns the charge for all attempts of a request. Estimates replace only unreported counts.
    pub(super) fn charge(&self, attempts: &[Attempt]) -> Charge {
        // With prices, the cost of an unused model is known: zero.
        let is_priced = self.prices().all().next().is_some();
        let unused = Charge {
            cost: is_priced.then_some(Money::ZERO),
            ..Charge::default()
        };
        let charges = attempts.iter().map(|attempt| self.charge_of(attempt));
        charges.fold(unused, Charge::plus)
    }

    /// Returns the tokens that rates count for all attempts of a request: for one that may go on, at
    /// most the reservation, which is the probable number.
    pub(super) fn probable_tokens(&self, attempts: &[Attempt]) -> u64 {
        let tokens = attempts.iter().map(|attempt| {
            let charged = self.charge_of(attempt).tokens();
            match attempt.known {
                FinalUsage::Unfinished(_) => charged.min(self.reserved_tokens()),
                FinalUsage::Complete(_) | FinalUsage::Partial(_) | FinalUsage::Unused => charged,
            }
        });
        tokens.fold(0, u64::saturating_add)
    }

    fn charge_of(&self, attempt: &Attempt) -> Charge {
        let asked = &self.reserved().pictures;
        let price = self.prices().get(attempt.target);
        let (usage, pictures) = match asked.count {
            0 => (self.of_text(&attempt.known), Pictures::default()),
            _ => self.of_pictures(&attempt.known, price.is_some_and(bills_tokens_of_pictures)),
        };
        let pictures = asked.with(&pictures);
        let cost = |price: &Price| {
            let tokens = price.cost(&usage, &[]);
            tokens.saturating_add(pictures.cost(price))
        };
        // The output of a model of pictures is images, so `output` is their price.
        let image_output = if asked.count > 0 {
            0
        } else {
            usage.image_output
        };
        let of_text = Usage {
            image_output,
            ..usage
        };
        let missing = |price: &Price| {
            let tokens = price.missing(&of_text, &[]);
            tokens.and(pictures.missing_prices(price))
        };
        Charge {
            usage,
            pictures: pictures.count,
            cost: price.map(cost),
            missing_prices: price.map(missing).unwrap_or_default(),
        }
    }

    fn of_text(&self, known: &FinalUsage) -> Usage {
        let (counts, answer) = match known {
            FinalUsage::Complete(counts) if counts.usage.is_some() => (counts, 0),
            FinalUsage::Complete(counts) | FinalUsage::Partial(counts) => (counts, counts.tokens()),
            FinalUsage::Unfinished(counts) => {
                (counts, counts.tokens().max(self.most_usage().output))
            }
            FinalUsage::Unused => return Usage::default(),
        };
        let reported = counts.usage.unwrap_or_else(|| Usage {
            service_tier: self.reserved().answers.service_tier,
            ..Usage::default()
        });
        Usage {
            // No prompt is empty.
            input: match reported.prompt() {
                0 => self.reserved().prompt,
                _ => reported.input,
            },
            output: reported.output.max(answer),
            ..reported
        }
    }

    /// Returns the usage and the pictures of a request for pictures. Tokens are estimated only if
    /// the target bills them. Output tokens count as image tokens unless the target says otherwise.
    fn of_pictures(&self, known: &FinalUsage, bills_tokens: bool) -> (Usage, Pictures) {
        let (mut usage, pictures) = self.counted_pictures(known, bills_tokens);
        if usage.image_output == 0 {
            usage.image_output = usage.output;
        }
        (usage, pictures)
    }

    fn counted_pictures(&self, known: &FinalUsage, bills_tokens: bool) -> (Usage, Pictures) {
        match known {
            FinalUsage::Complete(counts) | FinalUsage::Partial(counts) => {
                // Pictures that never came cost nothing.
                let have_come =
                    matches!(known, FinalUsage::Complete(_)) || counts.pictures.count > 0;
                let usage = match counts.usage {
                    None if bills_tokens && have_come => {
                        self.usage_of_pictures(counts.pictures.count)
                    }
                    reported => reported.unwrap_or_default(),
                };
                (usage, counts.pictures.clone())
            }
            FinalUsage::Unfinished(counts) => {
                let (reported, most) = (counts.usage.unwrap_or_default(), self.most_usage());
                let usage = Usage {
                    input: reported.input.max(most.input),
                    output: reported.output.max(most.output),
                    ..reported
                };
                (usage, self.reserved().pictures.clone())
            }
            FinalUsage::Unused => (Usage::default(), Pictures::default()),
        }
    }
}

impl Charge {
    /// Returns the tokens of the prompt and of the answer.
    pub(super) fn tokens(&self) -> u64 {
        self.usage.prompt().saturating_add(self.usage.output)
    }

    fn plus(self, other: Self) -> Self {
        let [one, two] = [self.usage, other.usage];
        let cost = match (self.cost, other.cost) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            (one, two) => one.or(two),
        };
        Self {
            usage: Usage {
                input: one.prompt().saturating_add(two.prompt()),
                cache_read: one.cache_read.saturating_add(two.cache_read),
                cache_write: one.cache_write.saturating_add(two.cache_write),
                cache_write_1h: one.cache_write_1h.saturating_add(two.cache_write_1h),
                audio_input: one.audio_input.saturating_add(two.audio_input),
                image_input: one.image_input.saturating_add(two.image_input),
                output: one.output.saturating_add(two.output),
                reasoning: one.reasoning.saturating_add(two.reasoning),
                audio_output: one.audio_output.saturating_add(two.audio_output),
                image_output: one.image_output.saturating_add(two.image_output),
                service_tier: match two.service_tier {
                    ServiceTier::Standard => one.service_tier,
                    special => special,
                },
            },
            pictures: self.pictures.saturating_add(other.pictures),
            cost,
            missing_prices: self.missing_prices.and(other.missing_prices),
        }
    }
}
