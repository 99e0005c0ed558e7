//! The policy: the part of a configuration that can be reloaded while the gateway serves.
//!
//! It is reloaded on SIGHUP and when the file changes. A request keeps the policy that it started
//! with, and an invalid file changes nothing.

use std::sync::{Arc, PoisonError, RwLock};

use accounting::LiveKeys;
use auth::{Entry, RingErrors};
use catalog::{Catalog, Facts, Family, Model};
use config::quota::QuotaRule;
use config::{Config, ConfigError};
use tokio::sync::Notify;
use translate::count::CountRules;
use upstream::Network;

use crate::keys::{self, GeneratedKey};
use crate::lifecycle::Lifecycle;
use crate::limit::{Limiter, Quotas};
use crate::policy_keys::{PolicyKeys, StoredKeys};
use crate::prices::Prices;
use crate::targets::{Routes, Target};

/// The keys and their quotas, the models and their targets.
pub struct Policy {
    /// The keys of clients.
    pub keys: PolicyKeys,
    /// The quotas of keys and models.
    pub quotas: Quotas,
    /// The quotas of the configuration, without the limits of keys of the store.
    rules: Arc<[QuotaRule]>,
    /// The prices of models and targets.
    pub prices: Prices,
    /// The models.
    pub catalog: Arc<Catalog>,
    /// The targets of models.
    pub routes: Arc<Routes>,
}

/// The current policy, which a reload replaces.
pub struct Policies {
    current: RwLock<Arc<Policy>>,
    /// The limiter with which the quotas of the current policy are registered.
    limiter: Arc<Limiter>,
    /// Wakes the connections whose streams are to be ended.
    lifecycle: Lifecycle,
    /// Wakes the requests that wait for a permit, and the reader of spending, after each change.
    changed: Notify,
}

impl Policy {
    /// Builds the policy of a configuration, and returns the keys that were generated for it. Its
    /// upstreams are reached over `network`.
    pub fn read(
        config: &Config,
        from_file: bool,
        network: Network,
    ) -> Result<(Self, Vec<GeneratedKey>), ConfigError> {
        Self::read_with(config, from_file, network, Arc::default())
    }

    /// Builds the policy of a configuration, as [`Policy::read`] does, with the keys of a store.
    pub fn read_with(
        config: &Config,
        from_file: bool,
        network: Network,
        stored: Arc<StoredKeys>,
    ) -> Result<(Self, Vec<GeneratedKey>), ConfigError> {
        let (keys, generated) = keys::gather(config, from_file)?;
        let routes = Routes::new(config, network)?;
        Ok((Self::new(config, keys, stored, routes)?, generated))
    }

    fn new(
        config: &Config,
        fixed: Vec<Entry>,
        stored: Arc<StoredKeys>,
        routes: Routes,
    ) -> Result<Self, ConfigError> {
        let keys = PolicyKeys::new(fixed.into(), stored)?;
        let rules = config.quota_rules()?;
        Ok(Self {
            quotas: Quotas::new(rules.clone(), keys.limits().clone()),
            keys,
            rules: rules.into(),
            prices: Prices::new(config)?,
            catalog: Arc::new(config.catalog()?),
            routes: Arc::new(routes),
        })
    }

    /// Returns the same policy with other keys of the store. Its quotas are not registered yet.
    fn with_stored_keys(&self, stored: Arc<StoredKeys>) -> Result<Self, RingErrors> {
        let keys = self.keys.with_stored(stored)?;
        Ok(Self {
            quotas: Quotas::new(self.rules.to_vec(), keys.limits().clone()),
            keys,
            rules: Arc::clone(&self.rules),
            prices: self.prices.clone(),
            catalog: Arc::clone(&self.catalog),
            routes: Arc::clone(&self.routes),
        })
    }

    /// Returns the facts of a model: of the configuration for the model, else those on which clients can rely
    /// whichever of its targets answers.
    pub fn facts(&self, model: &Model) -> Facts {
        let targets = self.routes.configured(model);
        let of_either = |one: Facts, other| one.of_either(&other);
        let of_targets = targets.iter().map(Target::facts).reduce(of_either);
        model.facts.clone().or(&of_targets.unwrap_or_default())
    }

    /// Returns the models with their facts.
    pub fn catalog_with_facts(&self) -> Catalog {
        self.catalog.with_facts(|model| self.facts(model))
    }

    /// Returns the rules by which a request to count tokens for the model of this name is validated. They
    /// are lenient without one, so that the client gets the error about the model.
    pub fn count_rules(&self, name: &str, protocol: catalog::Protocol) -> CountRules {
        let mut rules = CountRules::default();
        rules.responses.string_input = true;
        if let Some(model) = self.catalog.find(name) {
            (rules.messages, rules.responses) = (model.messages_rules(), model.responses_rules());
            let may_relay = self.routes.may_relay(model, protocol);
            (rules.messages.unknown_types, rules.responses.unknown_types) = (may_relay, may_relay);
        }
        rules
    }

    /// True if a model needs the embedded image engine (`images`) or text engine.
    pub fn needs_embedded(&self, images: bool) -> bool {
        let is_of = |family| (family == Family::Images) == images;
        self.catalog
            .iter()
            .any(|model| is_of(model.family) && self.routes.uses_embedded(model))
    }

    /// Builds the policy of a changed configuration. Unchanged upstreams keep their connections.
    pub fn reload(config: &Config, before: &Self, opened: AtStart) -> Result<Self, ConfigError> {
        let (keys, _) = keys::gather(config, true)?;
        let routes = Routes::reload(config, &before.routes)?;
        let stored = Arc::clone(before.keys.stored());
        let policy = Self::new(config, keys, stored, routes)?;
        policy.check_opened(before, opened)?;
        Ok(policy)
    }

    /// Refuses a policy that needs a part of the gateway which was not opened at the start.
    fn check_opened(&self, before: &Self, opened: AtStart) -> Result<(), ConfigError> {
        for (images, is_loaded, kind) in
            [(false, opened.text, "text"), (true, opened.images, "image")]
        {
            if self.needs_embedded(images) && !is_loaded && !before.needs_embedded(images) {
                let why = "which was not loaded at the start: restart to load it";
                return Err(ConfigError::one(format!(
                    "a model needs the embedded {kind} engine, {why}"
                )));
            }
        }
        if self.rules.iter().any(|rule| rule.caps.budget.is_some()) && !opened.store {
            let why = "which was not set at the start: restart to open the store";
            return Err(ConfigError::one(format!(
                "a budget needs state.accounting, {why}"
            )));
        }
        Ok(())
    }
}

impl Policies {
    /// Creates the first policy, and registers its quotas with the limiter.
    pub fn new(mut policy: Policy, limiter: Arc<Limiter>, lifecycle: Lifecycle) -> Self {
        policy.quotas.register(&limiter);
        Self {
            current: RwLock::new(Arc::new(policy)),
            limiter,
            lifecycle,
            changed: Notify::new(),
        }
    }

    /// Returns the current policy.
    pub fn current(&self) -> Arc<Policy> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the limiter with which quotas are registered.
    pub fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// Replaces the policy with the policy of a changed configuration.
    pub fn replace(&self, mut policy: Policy) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        // The keys of the store may have changed since the configuration was read.
        if policy.keys.epoch() != current.keys.epoch()
            && let Ok(newer) = policy.with_stored_keys(Arc::clone(current.keys.stored()))
        {
            policy = newer;
        }
        policy.quotas.register(&self.limiter);
        *current = Arc::new(policy);
        self.changed.notify_waiters();
    }

    /// Waits until the policy is replaced.
    pub(crate) async fn replaced(&self) {
        self.changed.notified().await;
    }

    /// Waits until the current policy no longer has a key.
    pub async fn revoked(&self, key: &Entry) {
        loop {
            let changed = self.changed.notified();
            if !self.current().keys.has(key) {
                return;
            }
            changed.await;
        }
    }

    /// Replaces the keys of the store, and ends the streams of the keys with the ids `ended`.
    pub(crate) fn replace_stored_keys(&self, keys: LiveKeys, ended: &[String]) {
        let before = self.set_stored_keys(keys);
        if ended.is_empty() {
            return;
        }
        for id in ended {
            before.keys.stored().end_streams(id);
        }
        self.lifecycle.wake_all();
    }

    /// Replaces the keys of the store, and returns the policy with the former ones.
    fn set_stored_keys(&self, keys: LiveKeys) -> Arc<Policy> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let before = Arc::clone(&current);
        match before.with_stored_keys(Arc::new(before.keys.stored().renewed(keys))) {
            Ok(mut policy) => {
                policy.quotas.register(&self.limiter);
                *current = Arc::new(policy);
                self.changed.notify_waiters();
            }
            Err(error) => {
                tracing::error!(%error, "the keys of the store are invalid, keeping the previous ones");
            }
        }
        before
    }
}

/// The parts of the gateway that were opened at the start. None is opened later.
#[derive(Clone, Copy, Debug, Default)]
pub struct AtStart {
    /// True if the embedded text engine was loaded.
    pub text: bool,
    /// True if the embedded image engine was loaded.
    pub images: bool,
    /// True if the store of keys and usage was opened.
    pub store: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise what was spent would be forgotten with the process.
    #[test]
    fn reload_adds_no_budget_without_an_open_store() {
        let with_budget = r#"
            [state]
            accounting = "sqlite:a.db"
            [[quotas]]
            budget = { amount = "50.00", currency = "USD", window = "month" }
        "#;
        let config = Config::parse("").unwrap();
        let (before, _) = Policy::read(&config, false, Network::default()).unwrap();
        let reload = |store| {
            let opened = AtStart {
                store,
                ..AtStart::default()
            };
            let config = Config::parse(with_budget).unwrap();
            let reloaded = Policy::reload(&config, &before, opened);
            reloaded.err().map(|error| error.to_string())
        };
        assert_eq!(
            reload(false).unwrap(),
            "a budget needs state.accounting, which was not set at the start: restart to open the store"
        );
        assert_eq!(reload(true), None);
    }

    #[test]
    fn facts_come_from_the_targets_unless_the_model_has_them() {
        let text = r#"
            [facts.small]
            max_input_tokens = 8192
            max_output_tokens = 2048
            capabilities = ["tools", "thinking"]
            retires_at = "2027-01-01T00:00:00Z"

            [facts.large]
            max_input_tokens = 32768
            capabilities = ["structured_outputs", "tools"]
            retires_at = "2026-12-01T00:00:00Z"

            [[upstreams]]
            name = "u"
            protocol = "chat"
            base_url = "http://127.0.0.1:1/v1"

            [[models]]
            id = "named"
            family = "text"
            protocols = ["chat"]
            facts = { max_output_tokens = 1000 }
            targets = [{ upstream = "u", model = "small" }]

            [[models]]
            id = "either"
            family = "text"
            protocols = ["chat"]
            targets = [{ upstream = "u", model = "large" }, { upstream = "u", model = "small" }]

            [[models]]
            id = "perhaps"
            family = "text"
            protocols = ["chat"]
            targets = [{ upstream = "u", model = "large" }, { engine = "local" }]
        "#;
        let config = Config::parse(text).unwrap();
        let (policy, _) = Policy::read(&config, false, Network::default()).unwrap();
        let catalog = policy.catalog_with_facts();
        let facts = |id: &str| toml::to_string(&catalog.find(id).unwrap().facts).unwrap();
        assert_eq!(
            facts("named"),
            "max_input_tokens = 8192\nmax_output_tokens = 1000\n\
             capabilities = [\"tools\", \"thinking\"]\nretires_at = \"2027-01-01T00:00:00Z\"\n"
        );
        assert_eq!(
            facts("either"),
            "max_input_tokens = 8192\ncapabilities = [\"tools\"]\nretires_at = \"2026-12-01T00:00:00Z\"\n"
        );
        assert_eq!(facts("perhaps"), "retires_at = \"2026-12-01T00:00:00Z\"\n");
    }
}
