//! The permit of a request, and the usage that is charged when it ends.

use std::sync::Arc;

use quota::{Demand, Money, Picture, Price, Usage, Used};

use super::estimate::prompt_tokens;
use super::lender::Lender;
use super::queues::QueuesToWake;
use super::quota_state::QuotaState;
use super::{Clock, Limiter};

/// A permit to be answered. It is given back when it is dropped, which the response body does last;
/// [`Permit::end`] also counts what was used.
#[derive(Debug)]
pub(crate) struct Permit {
    permit: quota::Permit,
    /// `None` if the usage of the request does not matter to any limit or journal.
    estimate: Option<Box<Estimate>>,
    clock: Clock,
    /// The store that gets back what is not used, if the quotas are lent.
    lender: Option<Arc<Lender>>,
    /// The queues of requests that wait for what this one gives back.
    queues: Option<Box<QueuesToWake>>,
}

/// The estimate of the usage of a request.
#[derive(Debug)]
pub(super) struct Estimate {
    pub(super) reserved: Reserved,
    /// The price of the model, if it has one.
    pub(super) price: Option<Price>,
}

/// The reservation of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reserved {
    /// Tokens of the prompt.
    pub(crate) prompt: u64,
    /// Tokens of the answer.
    pub(crate) answer: u64,
    /// Pictures of the answer.
    pub(crate) pictures: Pictures,
}

/// Pictures of one size and quality.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pictures {
    pub(crate) count: u64,
    /// Width and height, such as `1024x1024`; blank if the request leaves it to the model.
    pub(crate) size: String,
    /// The quality, such as `high`; blank if the request leaves it to the model.
    pub(crate) quality: String,
}

/// The knowledge of the usage of a request when it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    /// The usage, as the model has reported it.
    Usage(engine::Usage),
    /// The number of events of a stream that ended without its usage. Most models send an event for
    /// each token.
    Events(u64),
    /// Nothing, of a request that a model has worked on: all that was reserved counts, so that
    /// nobody gains by leaving before the usage is known.
    Nothing,
    /// No model has worked on it.
    Unused,
}

/// The usage that a request is charged for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charge {
    pub(crate) usage: Usage,
    pub(crate) pictures: u64,
    /// The cost; `None` if the model has no price.
    pub(crate) cost: Option<Money>,
}

impl Permit {
    pub(super) fn new(
        permit: quota::Permit,
        estimate: Option<Box<Estimate>>,
        limiter: &Limiter,
        queues: Option<Box<QueuesToWake>>,
    ) -> Self {
        let lender = limiter.lender.clone();
        if permit.is_due()
            && let Some(lender) = &lender
        {
            lender.wake();
        }
        Self {
            permit,
            estimate,
            clock: limiter.clock,
            lender,
            queues,
        }
    }

    /// Returns the state of the quotas at the admission.
    pub(crate) fn quotas(&self) -> QuotaState {
        QuotaState {
            remaining: self.permit.remaining(),
            is_degraded: self.permit.is_degraded(),
        }
    }

    /// Returns what is reserved.
    pub(crate) fn demand(&self) -> Demand {
        let estimate = self.estimate.as_ref();
        estimate
            .map(|estimate| estimate.demand())
            .unwrap_or_default()
    }

    /// Gives the permit back, and counts what was used. Without an estimate there is no charge.
    pub(crate) fn end(self, known: Known) -> Charge {
        let Some(estimate) = &self.estimate else {
            // Otherwise, dropping the permit does the same and reads no clock.
            if self.lender.is_some() || self.queues.is_some() {
                self.settle(Used::default());
            }
            return Charge::default();
        };
        let charge = estimate.charge(known);
        let Usage { output, .. } = charge.usage;
        // Only real lengths teach what is typical.
        let is_real = matches!(known, Known::Usage(_));
        let used = Used {
            tokens: charge.usage.prompt().saturating_add(output),
            answer_tokens: if is_real { output } else { 0 },
            money: charge.cost.unwrap_or_default(),
        };
        self.settle(used);
        charge
    }

    fn settle(self, used: Used) {
        let now = self.clock.now();
        if self.permit.end(used, now)
            && let Some(lender) = self.lender
        {
            lender.wake();
        }
        if let Some(queues) = self.queues {
            queues.wake();
        }
    }
}

impl Estimate {
    pub(super) fn demand(&self) -> Demand {
        self.reserved.demand(self.price.as_ref())
    }

    fn charge(&self, known: Known) -> Charge {
        self.reserved.charge(known, self.price.as_ref())
    }
}

impl Reserved {
    /// Estimates what a request with this JSON body uses. Its answer has at most `limit` tokens, if
    /// the request limits it, and rarely more than `typical`, if that is known.
    pub(crate) fn estimate(body: &[u8], limit: Option<u64>, typical: Option<u64>) -> Self {
        let answer = typical.unwrap_or(TYPICAL_ANSWER);
        Self {
            prompt: prompt_tokens(body),
            answer: limit.map_or(answer, |limit| limit.min(answer)),
            pictures: Pictures::default(),
        }
    }

    fn demand(&self, price: Option<&Price>) -> Demand {
        let cost = |price: &Price| {
            let pictures = self.pictures.cost(price, self.pictures.count);
            price
                .estimate(self.prompt, self.answer)
                .saturating_add(pictures)
        };
        Demand {
            tokens: self.prompt.saturating_add(self.answer),
            money: price.map(cost).unwrap_or_default(),
        }
    }

    fn charge(&self, known: Known, price: Option<&Price>) -> Charge {
        let tokens = |input, output| Usage {
            input,
            output,
            ..Usage::default()
        };
        let usage = match known {
            Known::Usage(usage) => Usage {
                input: usage.input,
                cache_read: usage.cache_read,
                cache_write: usage.cache_write,
                cache_write_1h: usage.cache_write_1h,
                output: usage.output,
                reasoning: usage.reasoning,
            },
            Known::Events(events) => tokens(self.prompt, events),
            Known::Nothing => tokens(self.prompt, self.answer),
            Known::Unused => Usage::default(),
        };
        let pictures = match known {
            Known::Unused => 0,
            _ => self.pictures.count,
        };
        let cost = |price: &Price| {
            let pictures = self.pictures.cost(price, pictures);
            price.cost(&usage, &[]).saturating_add(pictures)
        };
        Charge {
            usage,
            pictures,
            cost: price.map(cost),
        }
    }
}

impl Pictures {
    fn cost(&self, price: &Price, count: u64) -> Money {
        let picture = Picture {
            size: &self.size,
            quality: &self.quality,
        };
        let each = price.cost(&Usage::default(), &[picture]).nanos();
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        Money::from_nanos(each.saturating_mul(count))
    }
}

/// The tokens that are reserved for the answers of a key of which none has ended yet.
const TYPICAL_ANSWER: u64 = 1_000;
