//! The quotas of a policy: quotas of the configuration, and limits of stored keys.

use std::collections::HashMap;
use std::sync::Arc;

use config::quota::{QueueSettings, QuotaRule};
use quota::{Budget, Caps, Claim, FailMode, LeaseSettings, LimitId, Refused, Terms};

use super::Limiter;
use super::queues::QueueId;

/// The quotas of a policy. They apply once they are registered with a limiter.
#[derive(Debug, Default)]
pub struct Quotas {
    rules: Vec<(QuotaRule, Registered)>,
    /// The own limits of keys, by the names of the keys.
    of_keys: HashMap<String, (Caps, Registered)>,
    /// True if one of them limits tokens or money, so that requests need an estimate.
    pub count_tokens: bool,
    /// True if requests can wait for one of them.
    pub(crate) have_queues: bool,
}

/// The identities of a quota in the limiter; absent before it is registered.
#[derive(Clone, Copy, Debug, Default)]
struct Registered {
    rates: Option<LimitId>,
    /// The budget, a limit of its own. Its name has its window: a new window starts a new one.
    budget: Option<LimitId>,
}

/// The queue of a quota that applies to a request.
#[derive(Debug)]
pub(super) struct QuotaQueue<'a> {
    pub(super) id: QueueId,
    pub(super) settings: QueueSettings,
    /// The name of the quota.
    quota: &'a str,
}

impl QuotaQueue<'_> {
    /// Returns true if it is the queue of the quota that has refused a request, and it helps to
    /// wait.
    pub(super) fn is_for(&self, refused: &Refused) -> bool {
        *self.quota == *refused.limit && !refused.is_degraded
    }
}

impl Quotas {
    /// Combines the quotas of a configuration with the limits of the keys of a store.
    pub fn new(rules: Vec<QuotaRule>, of_keys: HashMap<String, Caps>) -> Self {
        let counts = |caps: &Caps| caps.tokens_per_minute.is_some() || caps.budget.is_some();
        Self {
            count_tokens: rules.iter().any(|rule| counts(&rule.caps))
                || of_keys.values().any(counts),
            have_queues: rules.iter().any(|rule| rule.queue.is_some()),
            rules: rules
                .into_iter()
                .map(|rule| (rule, Registered::default()))
                .collect(),
            of_keys: of_keys
                .into_iter()
                .map(|(key, caps)| (key, (caps, Registered::default())))
                .collect(),
        }
    }

    /// Returns true if there are no quotas.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.of_keys.is_empty()
    }

    /// Replaces the quotas of the limiter by these.
    pub fn register(&mut self, limiter: &Limiter) {
        let lending = |mode| {
            limiter
                .lease_client()
                .map(|lease_client| lease_client.lending(mode))
        };
        let mut limits = Vec::new();
        for (rule, _) in &self.rules {
            push_limits(&rule.name, &rule.caps, lending(rule.mode), &mut limits);
        }
        for (key, (caps, _)) in &self.of_keys {
            let name = format!("{OWN_LIMITS}{key}");
            push_limits(&name, caps, lending(FailMode::Closed), &mut limits);
        }
        let ids = limiter.set_quotas(&limits);
        let mut ids = ids.into_iter();
        for (rule, registered) in &mut self.rules {
            *registered = Registered::take(&rule.caps, &mut ids);
        }
        for (caps, registered) in self.of_keys.values_mut() {
            *registered = Registered::take(caps, &mut ids);
        }
    }

    /// Returns the claims of a request on the quotas that apply to it.
    pub(super) fn claims<'a>(
        &'a self,
        key: &'a str,
        model: &'a str,
    ) -> impl Iterator<Item = Claim<'a>> {
        let all = self.applying(key, model);
        all.flat_map(|(_, registered, scope)| {
            [registered.rates, registered.budget]
                .into_iter()
                .flatten()
                .map(move |limit| Claim { limit, scope })
        })
    }

    /// Returns the queues that a request of a key for a model may have to wait in.
    pub(super) fn queues<'a>(
        &'a self,
        key: &'a str,
        model: &'a str,
    ) -> impl Iterator<Item = QuotaQueue<'a>> {
        let rules = self.applying_rules(key, model);
        rules.filter_map(move |(rule, registered)| {
            let settings = rule.queue?;
            let id = QueueId {
                limit: registered.rates?,
                scope: rule.scope(key).to_owned(),
            };
            Some(QuotaQueue {
                id,
                settings,
                quota: &rule.name,
            })
        })
    }

    /// Returns the claims of the requests of a key for a model on the budgets that apply to them.
    pub fn budgets<'a>(&'a self, key: &'a str, model: &'a str) -> impl Iterator<Item = Claim<'a>> {
        let all = self.applying(key, model);
        all.filter_map(|(_, registered, scope)| {
            let limit = registered.budget?;
            Some(Claim { limit, scope })
        })
    }

    /// Returns all budgets.
    pub(crate) fn all_budgets(&self) -> impl Iterator<Item = (LimitId, &Budget)> {
        let rules = self.rules.iter().map(|(rule, id)| (&rule.caps, id));
        let of_keys = self.of_keys.values().map(|(caps, id)| (caps, id));
        rules
            .chain(of_keys)
            .filter_map(|(caps, id)| Some((id.budget?, caps.budget.as_ref()?)))
    }

    /// Returns the names, caps and queues of the quotas of a key, for any model.
    pub fn of_key<'a>(
        &'a self,
        key: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a Caps, Option<QueueSettings>)> {
        let rules = self.rules.iter().map(|(rule, _)| rule);
        let rules = rules.filter(move |rule| rule.fits_key(key));
        let own = self.of_keys.get(key).into_iter();
        rules
            .map(|rule| (rule.name.as_str(), &rule.caps, rule.queue))
            .chain(own.map(|(caps, _)| (THIS_KEY, caps, None)))
    }

    /// The names of the quotas that apply to the requests of a key for a model, and true for each one
    /// that counts the key by itself.
    pub fn names<'a>(
        &'a self,
        key: &'a str,
        model: &'a str,
    ) -> impl Iterator<Item = (&'a str, bool)> {
        let rules = self.applying_rules(key, model);
        let own = self.of_keys.contains_key(key).then_some((THIS_KEY, true));
        rules
            .map(move |(rule, _)| (rule.name.as_str(), !rule.scope(key).is_empty()))
            .chain(own)
    }

    fn applying_rules<'a>(
        &'a self,
        key: &'a str,
        model: &'a str,
    ) -> impl Iterator<Item = &'a (QuotaRule, Registered)> {
        let rules = self.rules.iter();
        rules.filter(move |(rule, _)| rule.applies(key, model))
    }

    fn applying<'a>(
        &'a self,
        key: &'a str,
        model: &'a str,
    ) -> impl Iterator<Item = (&'a Caps, &'a Registered, &'a str)> {
        let own = self.of_keys.get(key).into_iter();
        self.applying_rules(key, model)
            .map(move |(rule, id)| (&rule.caps, id, rule.scope(key)))
            .chain(own.map(|(caps, id)| (caps, id, "")))
    }
}

impl Registered {
    /// Takes the identities of caps that [`push_limits`] has added.
    fn take(caps: &Caps, ids: &mut impl Iterator<Item = LimitId>) -> Self {
        Self {
            rates: ids.next(),
            budget: caps.budget.as_ref().and_then(|_| ids.next()),
        }
    }
}

/// The name of a key's own limits for the owner of the key.
const THIS_KEY: &str = "this key";
/// The beginning of the names of keys' own limits.
pub const OWN_LIMITS: &str = "own limits of ";

/// Adds the limits of caps: one for everything but the budget, and one for the budget, if there is
/// one.
fn push_limits(
    name: &str,
    caps: &Caps,
    lending: Option<LeaseSettings>,
    limits: &mut Vec<(Arc<str>, Terms)>,
) {
    let budget = caps.budget.clone();
    let rates = Caps {
        budget: None,
        ..caps.clone()
    };
    let terms = |caps| Terms { caps, lending };
    limits.push((name.into(), terms(rates)));
    if let Some(budget) = budget {
        let kind = format!("{:?}", budget.window).to_lowercase();
        let window = format!("{name}, {kind} in {}", budget.zone.name());
        let caps = Caps {
            budget: Some(budget),
            ..Caps::default()
        };
        limits.push((window.into(), terms(caps)));
    }
}
