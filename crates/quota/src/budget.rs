//! Budgets of money by calendar window.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Currency, Money, Period, Window, Zone};

/// An amount of money that may be spent in each period of a calendar window.
///
/// In a document it is written as
/// `{ amount = "50.00", currency = "USD", window = "month", zone = "Europe/Berlin" }`. Without
/// `zone`, it is UTC. Unknown fields are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Fields")]
#[schemars(!try_from, deny_unknown_fields)]
#[non_exhaustive]
pub struct Budget {
    /// The amount: more than nothing, and at most 9,007,199.
    #[schemars(example = &"50.00")]
    pub amount: Money,
    /// The currency of the amount, in which the prices are to be as well.
    #[schemars(example = &"USD")]
    pub currency: Currency,
    /// The window.
    #[schemars(example = &"month")]
    pub window: Window,
    /// The zone by whose clock the periods of the window begin.
    #[schemars(default)]
    pub zone: Zone,
}

/// The error for the amount of a budget: not above zero, or above [`Money::MAX_BUDGET`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("field `amount` is {0}: expected more than 0.00 and at most {max}", max = Money::MAX_BUDGET)]
pub struct BudgetError(pub Money);

impl Budget {
    /// Creates a budget.
    ///
    /// # Errors
    /// Returns an error if the amount is not above zero, or above [`Money::MAX_BUDGET`].
    pub fn new(
        amount: Money,
        currency: Currency,
        window: Window,
        zone: Zone,
    ) -> Result<Self, BudgetError> {
        if amount <= Money::ZERO || amount > Money::MAX_BUDGET {
            return Err(BudgetError(amount));
        }
        Ok(Self {
            amount,
            currency,
            window,
            zone,
        })
    }

    /// Returns the period of the budget that contains the time `at`.
    #[must_use]
    pub fn period(&self, at: Timestamp) -> Period {
        self.window.period(at, &self.zone)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    amount: Money,
    currency: Currency,
    window: Window,
    #[serde(default)]
    zone: Zone,
}

impl TryFrom<Fields> for Budget {
    type Error = BudgetError;

    fn try_from(fields: Fields) -> Result<Self, BudgetError> {
        Self::new(fields.amount, fields.currency, fields.window, fields.zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    struct Quota {
        budget: Budget,
    }

    fn read(fields: &str) -> Result<Budget, String> {
        let quota = toml::from_str::<Quota>(&format!("budget = {{ {fields} }}"));
        quota
            .map(|quota| quota.budget)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_budget_is_read_and_written() {
        let fields =
            r#"amount = "50.00", currency = "USD", window = "month", zone = "Europe/Berlin""#;
        let budget = read(fields).unwrap();
        assert_eq!(budget.amount.nanos(), 50_000_000_000);
        assert_eq!(budget.currency.as_str(), "USD");
        assert_eq!(budget.window, Window::Month);
        assert_eq!(budget.zone.name(), "Europe/Berlin");
        let written = toml::to_string(&budget).unwrap();
        assert_eq!(toml::from_str::<Budget>(&written).unwrap(), budget);
        let at = "2026-11-30T23:00:00Z".parse().unwrap();
        assert_eq!(budget.period(at).id(), "2026-12");
    }

    #[test]
    fn the_zone_is_utc_by_default() {
        let budget = read(r#"amount = "1", currency = "EUR", window = "day""#).unwrap();
        assert_eq!(budget.zone, Zone::UTC);
    }

    #[test]
    fn an_invalid_budget_is_reported_with_its_field() {
        let with_amount = |amount| {
            read(&format!(
                "amount = {amount}, currency = \"USD\", window = \"day\""
            ))
        };
        assert!(with_amount("\"9007199.00\"").is_ok());
        assert!(with_amount("\"0.000000001\"").is_ok());
        let accepted = "expected more than 0.00 and at most 9007199.00";
        for (found, expected) in [
            (
                with_amount("\"0\""),
                format!("field `amount` is 0.00: {accepted}"),
            ),
            (
                with_amount("\"-1\""),
                format!("field `amount` is -1.00: {accepted}"),
            ),
            (
                with_amount("\"9007199.000000001\""),
                format!("field `amount` is 9007199.000000001: {accepted}"),
            ),
            (
                with_amount("50.0"),
                "invalid type: floating point `50.0`, expected an amount as a string".to_owned(),
            ),
            (
                read(r#"amount = "1", currency = "usd", window = "day""#),
                "\"usd\" is not a currency: expected three capital letters".to_owned(),
            ),
            (
                read(r#"amount = "1", currency = "USD", window = "year""#),
                "unknown variant `year`, expected one of `hour`, `day`, `week`, `month`".to_owned(),
            ),
            (
                read(r#"amount = "1", currency = "USD", window = "day", zone = "Berlin""#),
                "\"Berlin\" is not a time zone: expected an IANA name".to_owned(),
            ),
            (
                read(r#"amount = "1", currency = "USD", window = "day", zoned = "UTC""#),
                "unknown field `zoned`".to_owned(),
            ),
        ] {
            let message = found.unwrap_err();
            assert!(message.contains(&expected), "{message}");
        }
    }
}
