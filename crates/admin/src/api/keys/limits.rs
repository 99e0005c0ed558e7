//! The limits of a key as JSON.

use std::fmt::Display;
use std::str::FromStr;

use quota::{Budget, BudgetError, Caps, Currency, Money, Window, Zone};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::body::whole;
use crate::api::failure::Failure;

wire::objects!(Limits, BudgetForm);

/// The limits of a key. Absent ones do not limit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub(crate) struct Limits {
    /// Requests that are answered at the same time.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    concurrency: Option<u64>,
    /// Requests that begin in a minute.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    requests_per_minute: Option<u64>,
    /// Tokens of prompts and answers in a minute.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "whole")]
    tokens_per_minute: Option<u64>,
    /// Money in a calendar window.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<BudgetForm>,
}

/// An amount of money that may be spent in each period of a calendar window.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
#[schemars(rename = "Budget")]
pub(crate) struct BudgetForm {
    /// The amount, such as `50.00`.
    amount: String,
    /// The ISO 4217 code of the currency, such as `USD`.
    currency: String,
    /// The window: `hour`, `day`, `week` or `month`.
    #[schemars(extend("enum" = ["hour", "day", "week", "month"]))]
    window: String,
    /// The time zone by whose clock periods begin, such as `Europe/Berlin`. Absent: UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
}

impl Limits {
    pub(super) fn of(caps: &Caps) -> Self {
        Self {
            concurrency: caps.concurrency,
            requests_per_minute: caps.requests_per_minute,
            tokens_per_minute: caps.tokens_per_minute,
            budget: caps.budget.as_ref().map(BudgetForm::of),
        }
    }

    /// Returns the caps, or the first problem.
    pub(super) fn caps(&self) -> Result<Caps, Failure> {
        let caps = Caps {
            concurrency: self.concurrency,
            requests_per_minute: self.requests_per_minute,
            tokens_per_minute: self.tokens_per_minute,
            budget: self.budget.as_ref().map(BudgetForm::budget).transpose()?,
        };
        match caps.problems().first() {
            // A problem begins with the name of its field.
            Some(problem) => {
                let field = problem.split(':').next().unwrap_or_default();
                let message = format!("limits.{problem}");
                Err(Failure::value(&format!("limits.{field}"), message))
            }
            None => Ok(caps),
        }
    }
}

impl BudgetForm {
    fn of(budget: &Budget) -> Self {
        let window = WINDOWS.iter().find(|(_, window)| *window == budget.window);
        Self {
            amount: budget.amount.to_string(),
            currency: budget.currency.to_string(),
            window: window.map_or("", |(name, _)| name).to_owned(),
            zone: Some(budget.zone.name().to_owned()),
        }
    }

    fn budget(&self) -> Result<Budget, Failure> {
        let amount: Money = field("amount", &self.amount)?;
        let currency: Currency = field("currency", &self.currency)?;
        let window = WINDOWS.iter().find(|(name, _)| *name == self.window);
        let (_, window) = window.ok_or_else(|| {
            let found = wire::truncate_for_error(&self.window);
            let problem = format!("is '{found}', but must be hour, day, week or month");
            Failure::invalid("limits.budget.window", problem)
        })?;
        let zone = self.zone.as_deref().map(|zone| field("zone", zone));
        let zone: Zone = zone.transpose()?.unwrap_or_default();
        Budget::new(amount, currency, *window, zone).map_err(|BudgetError(found)| {
            let most = Money::MAX_BUDGET;
            let problem = format!("is {found}, but must be more than 0.00 and at most {most}");
            Failure::invalid("limits.budget.amount", problem)
        })
    }
}

/// Parses a field of a budget.
fn field<T: FromStr<Err: Display>>(name: &str, text: &str) -> Result<T, Failure> {
    text.parse()
        .map_err(|error| Failure::invalid(&format!("limits.budget.{name}"), error))
}

const WINDOWS: [(&str, Window); 4] = [
    ("hour", Window::Hour),
    ("day", Window::Day),
    ("week", Window::Week),
    ("month", Window::Month),
];
