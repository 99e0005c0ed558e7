//! The price list of a gateway, and the search for the price of a model.

use std::collections::HashMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Price, PriceEntry};

/// The treatment of models that have no price.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnknownPrice {
    /// Its requests are refused.
    #[default]
    Refuse,
    /// Its requests cost nothing.
    Free,
    /// Its requests have this price.
    Default(Price),
}

/// A price list. The models of its entries are names or patterns; the caller says which models a
/// pattern matches.
#[derive(Clone, Debug, Default)]
pub struct PriceTable {
    general: List,
    /// The prices of models at one upstream, by the name of the upstream.
    of_upstreams: HashMap<String, List>,
    unknown: UnknownPrice,
}

/// The prices of names and patterns.
#[derive(Clone, Debug, Default)]
struct List {
    names: HashMap<String, History>,
    /// In the order of the list.
    patterns: Vec<(String, History)>,
}

/// The error for two entries of a price list that have the same model and time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the model {model:?}{} has two prices with `valid_from` {}: expected different times",
    .upstream.as_ref().map_or_else(String::new, |name| format!(" of the upstream {name:?}")),
    .valid_from.map_or_else(|| "absent".to_owned(), |at| at.to_string())
)]
pub struct RepeatedPrice {
    /// The model of both entries.
    pub model: String,
    /// The upstream of both entries.
    pub upstream: Option<String>,
    /// Their time.
    pub valid_from: Option<Timestamp>,
}

/// The error for a model that has no price at some time, and must not be used for that reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model {0:?} has no price")]
pub struct NoPrice(pub String);

/// The prices of one name or pattern, in rising order of the times from which they apply; the price
/// that always applies is the first.
#[derive(Clone, Debug, Default)]
struct History(Vec<(Option<Timestamp>, Price)>);

impl PriceTable {
    /// Creates a price list.
    ///
    /// # Errors
    /// Returns an error if two entries have the same model and time.
    pub fn new(
        entries: impl IntoIterator<Item = PriceEntry>,
        unknown: UnknownPrice,
    ) -> Result<Self, RepeatedPrice> {
        let mut table = Self {
            unknown,
            ..Self::default()
        };
        entries
            .into_iter()
            .try_for_each(|entry| table.insert(entry))?;
        Ok(table)
    }

    /// Returns the price of `model` at the time `at`.
    ///
    /// Of several prices of one name or pattern, the latest that is valid at that time applies. The
    /// name itself is preferred to a pattern, and patterns are tried in the order of the list;
    /// `matches` is called with a pattern and the model.
    ///
    /// # Errors
    /// Returns an error if the list has no price for the model at that time, and such models are to
    /// be refused.
    pub fn price(
        &self,
        model: &str,
        at: Timestamp,
        matches: impl Fn(&str, &str) -> bool,
    ) -> Result<&Price, NoPrice> {
        let listed = self.general.price(model, at, matches);
        match (listed, &self.unknown) {
            (Some(price), _) | (None, UnknownPrice::Default(price)) => Ok(price),
            (None, UnknownPrice::Free) => Ok(const { &Price::FREE }),
            (None, UnknownPrice::Refuse) => Err(NoPrice(model.to_owned())),
        }
    }

    /// Returns the price that a model has at one upstream at the time `at`, and that replaces the
    /// price of its name. An entry for the upstream is preferred; otherwise, the price of the
    /// upstream's name for the model applies. The second argument has the model's name, and the
    /// upstream's name for it if that is different. `matches` is called as by
    /// [`price`](Self::price).
    pub fn price_of_target(
        &self,
        upstream: &str,
        (name, there): (&str, Option<&str>),
        at: Timestamp,
        matches: impl Fn(&str, &str) -> bool,
    ) -> Option<&Price> {
        let listed = self.of_upstreams.get(upstream);
        let listed = listed.and_then(|list| list.price(there.unwrap_or(name), at, matches));
        let other = there.filter(|there| *there != name);
        listed.or_else(|| self.general.names.get(other?)?.at(at))
    }

    fn insert(&mut self, entry: PriceEntry) -> Result<(), RepeatedPrice> {
        let PriceEntry {
            model,
            upstream,
            valid_from,
            price,
        } = entry;
        let list = match &upstream {
            Some(name) => self.of_upstreams.entry(name.clone()).or_default(),
            None => &mut self.general,
        };
        if list.history(&model).insert(valid_from, price) {
            Ok(())
        } else {
            Err(RepeatedPrice {
                model,
                upstream,
                valid_from,
            })
        }
    }
}

impl List {
    /// Returns the price of a name at the time `at`: its own price, or else the price of the first
    /// matching pattern that has one at that time.
    fn price(
        &self,
        model: &str,
        at: Timestamp,
        matches: impl Fn(&str, &str) -> bool,
    ) -> Option<&Price> {
        let fits = |(pattern, _): &&(String, _)| matches(pattern, model);
        let patterns = self.patterns.iter().filter(fits);
        let histories = self.names.get(model).into_iter();
        let mut histories = histories.chain(patterns.map(|(_, history)| history));
        histories.find_map(|history| history.at(at))
    }

    /// Returns the prices of a name or pattern, to which one is to be added.
    fn history(&mut self, model: &str) -> &mut History {
        if !model.contains('*') {
            return self.names.entry(model.to_owned()).or_default();
        }
        let same = |(pattern, _): &(String, _)| pattern == model;
        let place = self.patterns.iter().position(same).unwrap_or_else(|| {
            self.patterns.push((model.to_owned(), History::default()));
            self.patterns.len() - 1
        });
        &mut self.patterns[place].1
    }
}

impl History {
    /// Adds a price. Returns false if there is one with the same time.
    fn insert(&mut self, from: Option<Timestamp>, price: Price) -> bool {
        let place = self.0.binary_search_by_key(&from, |(from, _)| *from);
        if let Err(place) = place {
            self.0.insert(place, (from, price));
        }
        place.is_err()
    }

    /// Returns the latest price that is valid at the time `at`.
    fn at(&self, at: Timestamp) -> Option<&Price> {
        let valid = self.0.partition_point(|(from, _)| *from <= Some(at));
        let (_, price) = self.0.get(valid.checked_sub(1)?)?;
        Some(price)
    }
}
