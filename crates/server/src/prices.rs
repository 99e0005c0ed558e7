//! The prices of the configuration.

use std::sync::Arc;

use auth::Pattern;
use quota::{NoPrice, Price, PriceEntry, PriceTable, UnknownPrice};

use crate::clock;
use crate::config::{Config, ConfigError};

/// The prices of models, as clients name them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prices {
    /// `None` if the configuration has none, and no store of usage: then nothing is priced.
    table: Option<Arc<PriceTable>>,
    /// The list as it is written.
    entries: Arc<[PriceEntry]>,
    unknown: UnknownPrice,
}

impl Prices {
    pub(crate) fn new(config: &Config) -> Result<Self, ConfigError> {
        if config.prices.is_empty() && config.state.accounting.is_none() {
            return Ok(Self::default());
        }
        let table = PriceTable::new(config.prices.clone(), config.state.unknown_price.clone())
            .map_err(|error| ConfigError::one(format!("prices: {error}")))?;
        Ok(Self {
            table: Some(Arc::new(table)),
            entries: config.prices.clone().into(),
            unknown: config.state.unknown_price.clone(),
        })
    }

    /// Returns the price list of the configuration.
    pub(crate) fn entries(&self) -> &[PriceEntry] {
        &self.entries
    }

    /// Returns the handling of models without a price.
    pub(crate) fn unknown(&self) -> &UnknownPrice {
        &self.unknown
    }

    /// Returns the price of a model now; `None` if there are no prices at all.
    ///
    /// # Errors
    /// Returns an error if there are prices, but none for this model, and such models are to be
    /// refused.
    pub(crate) fn of(&self, model: &str) -> Result<Option<Price>, NoPrice> {
        let Some(table) = &self.table else {
            return Ok(None);
        };
        table
            .price(model, clock::timestamp(), matches)
            .map(|price| Some(price.clone()))
    }
}

fn matches(pattern: &str, model: &str) -> bool {
    pattern
        .parse::<Pattern>()
        .is_ok_and(|pattern| pattern.matches(model))
}
