//! The prices of the configuration.

use std::sync::Arc;

use auth::Pattern;
use config::{Config, ConfigError};
use quota::{NoPrice, Price, PriceEntry, PriceTable, UnknownPrice};
use wire::ServiceTier;

use crate::clock;
use crate::targets::Target;

/// The prices of models, as clients name them.
#[derive(Clone, Debug, Default)]
pub struct Prices {
    /// `None` if the configuration has none, and no store of usage: then nothing is priced.
    table: Option<Arc<PriceTable>>,
    /// The list as it is written.
    entries: Arc<[PriceEntry]>,
    unknown: UnknownPrice,
}

impl Prices {
    /// Reads the prices of a configuration.
    ///
    /// # Errors
    /// Returns the problems of the prices.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        if config.prices.is_empty() && config.state.accounting.is_none() {
            return Ok(Self::default());
        }
        check_upstreams(config)?;
        check_service_tiers(config)?;
        let table = PriceTable::new(config.prices.clone(), config.state.unknown_price.clone())
            .map_err(|error| ConfigError::one(format!("prices: {error}")))?;
        Ok(Self {
            table: Some(Arc::new(table)),
            entries: config.prices.clone().into(),
            unknown: config.state.unknown_price.clone(),
        })
    }

    /// Returns the price list of the configuration.
    pub fn entries(&self) -> &[PriceEntry] {
        &self.entries
    }

    /// Returns the handling of models without a price.
    pub fn unknown(&self) -> &UnknownPrice {
        &self.unknown
    }

    /// Returns the prices of the requests for a model now, as these targets answer them. They are empty
    /// if there are no prices at all.
    ///
    /// # Errors
    /// Returns an error if there are prices, but none for one of these targets, and such models are
    /// to be refused.
    pub fn of(&self, model: &str, targets: &[Target]) -> Result<TargetPrices, NoPrice> {
        let Some(table) = &self.table else {
            return Ok(TargetPrices::default());
        };
        let now = clock::timestamp();
        let mut own = Vec::new();
        for target in targets {
            let there = target.model.as_deref();
            let price = table.price_of_target(target.label(), (model, there), now, matches);
            own.extend(price.map(|price| (target.place, price.clone())));
        }
        let of_name = table.price(model, now, matches);
        let of_name = match of_name {
            // No target has the price of the name.
            Err(_) if !own.is_empty() && own.len() == targets.len() => None,
            price => Some(price?.clone()),
        };
        Ok(TargetPrices { of_name, own })
    }
}

/// The prices of the targets that may answer a request.
#[derive(Clone, Debug, Default)]
pub struct TargetPrices {
    /// The price of the client's name for the model, for targets without a price of their own.
    of_name: Option<Price>,
    /// The prices of the targets that have their own, by their places among the targets.
    own: Vec<(usize, Price)>,
}

impl TargetPrices {
    /// No price at all.
    #[cfg(test)]
    pub const fn none() -> Self {
        Self {
            of_name: None,
            own: Vec::new(),
        }
    }

    /// Returns all prices that may apply.
    pub fn all(&self) -> impl Iterator<Item = &Price> {
        let own = self.own.iter().map(|(_, price)| price);
        own.chain(&self.of_name)
    }

    /// Returns the price of the target at this place.
    pub fn get(&self, target: usize) -> Option<&Price> {
        let own = self.own.iter().find(|(place, _)| *place == target);
        own.map(|(_, price)| price).or(self.of_name.as_ref())
    }
}

/// Refuses prices for upstreams that do not exist, which would never apply.
fn check_upstreams(config: &Config) -> Result<(), ConfigError> {
    let is_known = |name: &str| {
        let mut upstreams = config.upstreams.iter();
        name == Target::EMBEDDED.label() || upstreams.any(|upstream| upstream.name == name)
    };
    let named = |entry: &PriceEntry| Some((entry.upstream.clone()?, entry.model.clone()));
    let mut named = config.prices.iter().filter_map(named);
    match named.find(|(upstream, _)| !is_known(upstream)) {
        None => Ok(()),
        Some((upstream, model)) => Err(ConfigError::one(format!(
            "prices: the price of '{model}' is for the upstream '{upstream}': expected the name of one \
             of [[upstreams]], or 'embedded'"
        ))),
    }
}

/// Refuses prices at service tiers that no answer states, which would never apply.
fn check_service_tiers(config: &Config) -> Result<(), ConfigError> {
    let known = ServiceTier::NAMED.map(ServiceTier::as_str);
    let listed = config
        .prices
        .iter()
        .map(|entry| (Some(&entry.model), &entry.price));
    let default = match &config.state.unknown_price {
        UnknownPrice::Default(price) => Some((None, price)),
        UnknownPrice::Refuse | UnknownPrice::Free => None,
    };
    for (model, price) in listed.chain(default) {
        let mut names = price
            .tiers
            .iter()
            .filter_map(|tier| tier.service_tier.as_deref());
        if let Some(name) = names.find(|name| !known.contains(name)) {
            let place = model.map_or("state.unknown_price".to_owned(), |model| {
                format!("prices: the price of '{model}'")
            });
            return Err(ConfigError::one(format!(
                "{place} has a tier for the service tier '{name}': expected one of '{}'; the usual \
                 service tier has the price itself",
                known.join("', '")
            )));
        }
    }
    Ok(())
}

fn matches(pattern: &str, model: &str) -> bool {
    pattern
        .parse::<Pattern>()
        .is_ok_and(|pattern| pattern.matches(model))
}
