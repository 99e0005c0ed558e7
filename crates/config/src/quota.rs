//! A quota in the configuration file: the keys and models that it applies to, and its caps.

use std::time::Duration;

use auth::Pattern;
use quota::{Budget, Caps, FailMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Time;

wire::read_objects!(Quota, QueueSettings);

/// One quota. Every quota that fits a request applies to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct Quota {
    /// A pattern of key names; each key is counted by itself. Absent: all keys together.
    #[schemars(example = &"team-*")]
    key: Option<String>,
    /// Counts all keys that match the pattern together.
    shared: bool,
    /// Patterns of models, which are counted together. Absent: all models.
    #[schemars(extend("examples" = [["model-5.*"]]))]
    models: Option<Vec<String>>,
    /// Requests that are answered at the same time.
    #[schemars(example = 16)]
    concurrency: Option<u64>,
    /// Requests that begin in a minute.
    #[schemars(example = 600)]
    requests_per_minute: Option<u64>,
    /// Tokens of prompts and answers in a minute.
    #[schemars(example = 200_000)]
    tokens_per_minute: Option<u64>,
    /// Money in a window of the calendar.
    budget: Option<Budget>,
    /// The reaction when the store that lends the quota is away. Absent: `closed`.
    on_lost_store: OnLostStore,
    /// The number of gateways that share the quota, for `floor`.
    #[schemars(example = 4)]
    replicas: Option<u32>,
    /// Lets requests wait for room. Absent: they are refused at once.
    queue: Option<QueueSettings>,
}

/// The queue of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct QueueSettings {
    /// The longest time that a request waits.
    #[serde(with = "Time")]
    #[schemars(example = &"5s")]
    pub wait: Duration,
    /// The requests that wait at the same time; of each key, if each is counted by itself.
    #[serde(default = "default_depth")]
    pub depth: usize,
    /// The callers that take turns.
    #[serde(default)]
    fair: Fairness,
}

/// The callers that take turns in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Fairness {
    /// The keys.
    #[default]
    Key,
}

/// The reaction of a quota when the store that lends it is away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OnLostStore {
    /// Requests are refused once the lease is over.
    #[default]
    Closed,
    /// A fifth of the concurrency is never lent, and belongs to the gateways in equal parts.
    Floor,
    /// Requests are admitted, and counted.
    Open,
}

/// A quota whose patterns and caps are valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaRule {
    /// Identifies the quota across reloads, and for people.
    pub name: String,
    /// The names of keys that it is for; all without a pattern.
    pub key: Option<Pattern>,
    /// The names of models that it is for; all without patterns.
    pub models: Option<Vec<Pattern>>,
    /// True if each key is counted by itself.
    pub per_key: bool,
    /// The amounts that it limits.
    pub caps: Caps,
    /// The reaction when the store that lends the quota is away.
    pub mode: FailMode,
    /// The queue in which requests wait for room, if it has one.
    pub queue: Option<QueueSettings>,
}

/// Checks the quotas of a configuration.
///
/// # Errors
/// Returns the problems of all of them.
pub fn rules(quotas: &[Quota]) -> Result<Vec<QuotaRule>, Vec<String>> {
    let mut problems = Vec::new();
    let mut rules: Vec<QuotaRule> = Vec::new();
    for (index, quota) in quotas.iter().enumerate() {
        match quota.rule() {
            Ok(rule) if rules.iter().any(|other| other.name == rule.name) => {
                problems.push(format!(
                    "quotas[{index}]: there is another quota for the same keys and models ({}); put their caps into one",
                    rule.name
                ));
            }
            Ok(rule) => rules.push(rule),
            Err(found) => problems.extend(
                found
                    .iter()
                    .map(|problem| format!("quotas[{index}].{problem}")),
            ),
        }
    }
    if problems.is_empty() {
        Ok(rules)
    } else {
        Err(problems)
    }
}

impl Quota {
    /// Returns true if it says what happens when the store that lends it is away.
    pub(crate) fn is_for_lending(&self) -> bool {
        self.on_lost_store != OnLostStore::default()
    }

    /// Returns true if it limits money.
    pub fn has_budget(&self) -> bool {
        self.budget.is_some()
    }

    fn rule(&self) -> Result<QuotaRule, Vec<String>> {
        let mut problems = Vec::new();
        let key = self.key.as_ref().and_then(|text| {
            let pattern = text.parse::<Pattern>();
            pattern
                .map_err(|error| problems.push(format!("key: {error}")))
                .ok()
        });
        let models = self.models.as_ref().map(|models| {
            let patterns = models.iter().filter_map(|text| {
                let pattern = text.parse::<Pattern>();
                pattern
                    .map_err(|error| problems.push(format!("models: {error}")))
                    .ok()
            });
            patterns.collect::<Vec<_>>()
        });
        if models.as_ref().is_some_and(Vec::is_empty) && problems.is_empty() {
            problems.push(
                "models: is an empty list: expected a pattern, or no list for all models"
                    .to_owned(),
            );
        }
        if self.shared && self.key.is_none() {
            problems.push(
                "shared: is true without a key: all keys are counted together then anyway"
                    .to_owned(),
            );
        }
        let caps = Caps {
            concurrency: self.concurrency,
            requests_per_minute: self.requests_per_minute,
            tokens_per_minute: self.tokens_per_minute,
            budget: self.budget.clone(),
        };
        if caps == Caps::default() {
            problems.push(
                "concurrency: is absent, as are requests_per_minute, tokens_per_minute and budget: expected at least one of them"
                    .to_owned(),
            );
        }
        problems.extend(caps.problems());
        if let Some(queue) = &self.queue {
            problems.extend(queue.problems());
        }
        let mode = self.mode().unwrap_or_else(|problem| {
            problems.push(problem);
            FailMode::Closed
        });
        if problems.is_empty() {
            Ok(QuotaRule {
                name: self.name(),
                per_key: key.is_some() && !self.shared,
                key,
                models,
                caps,
                mode,
                queue: self.queue,
            })
        } else {
            Err(problems)
        }
    }

    fn mode(&self) -> Result<FailMode, String> {
        match (self.on_lost_store, self.replicas) {
            (_, Some(0)) => Err("replicas: is 0, but must be the number of gateways".to_owned()),
            (OnLostStore::Closed | OnLostStore::Open, Some(_)) => {
                Err("replicas: needs on_lost_store = \"floor\"".to_owned())
            }
            (OnLostStore::Closed, None) => Ok(FailMode::Closed),
            (OnLostStore::Open, None) => Ok(FailMode::Open),
            (OnLostStore::Floor, None) => Err(
                "replicas: is absent, but on_lost_store = \"floor\" needs the number of gateways"
                    .to_owned(),
            ),
            (OnLostStore::Floor, Some(replicas)) => Ok(FailMode::Floor {
                percent: FLOOR,
                replicas,
            }),
        }
    }

    /// The name of the quota: the keys and models that it applies to.
    fn name(&self) -> String {
        let keys = match (&self.key, self.shared) {
            (None, _) => "all keys".to_owned(),
            (Some(key), false) => format!("key {key}"),
            (Some(key), true) => format!("keys {key}"),
        };
        match &self.models {
            None => keys,
            Some(models) => format!("{keys} with {}", models.join(" ")),
        }
    }
}

impl QueueSettings {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.wait.is_zero() || self.wait > MAX_WAIT {
            problems.push("queue.wait: must be more than 0s and at most 5m".to_owned());
        }
        if self.depth == 0 || self.depth > MAX_DEPTH {
            let depth = self.depth;
            problems.push(format!(
                "queue.depth: is {depth}, but must be 1 to {MAX_DEPTH}"
            ));
        }
        problems
    }
}

impl QuotaRule {
    /// Returns true if the quota applies to the requests of a key for a model.
    pub fn applies(&self, key: &str, model: &str) -> bool {
        let fits = |pattern: &Pattern| pattern.matches(model);
        self.fits_key(key)
            && self
                .models
                .as_ref()
                .is_none_or(|patterns| patterns.iter().any(fits))
    }

    /// Returns the scope in which the requests of a key are counted.
    pub fn scope<'a>(&self, key: &'a str) -> &'a str {
        if self.per_key { key } else { "" }
    }

    /// Returns true if the quota applies to requests of this key.
    pub fn fits_key(&self, key: &str) -> bool {
        self.key.as_ref().is_none_or(|pattern| pattern.matches(key))
    }
}

/// The part of the concurrency that is never lent with `floor`, in percent.
const FLOOR: u8 = 20;
/// The longest time in a queue: clients give up at some time.
const MAX_WAIT: Duration = Duration::from_secs(300);
/// The most requests in a queue.
const MAX_DEPTH: usize = 10_000;

fn default_depth() -> usize {
    64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<QuotaRule>, Vec<String>> {
        #[derive(Deserialize)]
        struct File {
            quotas: Vec<Quota>,
        }
        let file: File = toml::from_str(text).map_err(|error| vec![error.to_string()])?;
        rules(&file.quotas)
    }

    #[test]
    fn a_quota_applies_to_its_keys_and_models() {
        let rules = read(
            "[[quotas]]\nkey = \"team-*\"\nmodels = [\"model-5.*\", \"alt\"]\nconcurrency = 2\n\
             [[quotas]]\nrequests_per_minute = 600\n\
             [[quotas]]\nkey = \"team-*\"\nshared = true\ntokens_per_minute = 1000",
        )
        .unwrap();
        let names: Vec<_> = rules.iter().map(|rule| rule.name.as_str()).collect();
        assert_eq!(
            names,
            ["key team-* with model-5.* alt", "all keys", "keys team-*"]
        );
        let per_key: Vec<_> = rules.iter().map(|rule| rule.per_key).collect();
        assert_eq!(per_key, [true, false, false]);
        let applying = |key, model| {
            let applies = |rule: &&QuotaRule| rule.applies(key, model);
            rules.iter().filter(applies).count()
        };
        assert_eq!(applying("team-a", "model-5.5"), 3);
        assert_eq!(applying("team-a", "model-4"), 2);
        assert_eq!(applying("other", "alt"), 1);
    }

    #[test]
    fn a_queue_has_a_wait_and_a_depth() {
        let queue = |queue: &str| {
            let rules = read(&format!("[[quotas]]\nconcurrency = 1\nqueue = {queue}"));
            rules.map(|rules| rules[0].queue.map(|queue| (queue.wait, queue.depth)))
        };
        let seconds = Duration::from_secs;
        assert_eq!(queue("{ wait = \"2s\" }"), Ok(Some((seconds(2), 64))));
        assert_eq!(
            queue("{ wait = \"1m\", depth = 3, fair = \"key\" }"),
            Ok(Some((seconds(60), 3)))
        );
        for (text, expected) in [
            (
                "{ wait = \"0s\" }",
                "quotas[0].queue.wait: must be more than 0s and at most 5m",
            ),
            (
                "{ wait = \"6m\" }",
                "quotas[0].queue.wait: must be more than 0s and at most 5m",
            ),
            (
                "{ wait = \"1s\", depth = 0 }",
                "quotas[0].queue.depth: is 0, but must be 1 to 10000",
            ),
        ] {
            assert_eq!(queue(text), Err(vec![expected.to_owned()]), "{text}");
        }
        assert!(queue("{ depth = 3 }").unwrap_err()[0].contains("wait"));
        assert!(queue("{ wait = \"1s\", fair = \"model\" }").unwrap_err()[0].contains("key"));
    }

    #[test]
    fn all_problems_are_reported_with_their_fields() {
        let problems = read(
            "[[quotas]]\nkey = \"a b\"\nmodels = []\nconcurrency = 0\n\
             [[quotas]]\nshared = true\n\
             [[quotas]]\nkey = \"a\"\nmodels = []\nconcurrency = 1\n\
             [[quotas]]\nkey = \"a\"\nconcurrency = 1\n\
             [[quotas]]\nkey = \"a\"\nrequests_per_minute = 1\n\
             [[quotas]]\nkey = \"b\"\nconcurrency = 1\nreplicas = 2\n\
             [[quotas]]\nkey = \"c\"\nconcurrency = 1\non_lost_store = \"open\"\nreplicas = 2\n\
             [[quotas]]\nkey = \"d\"\nconcurrency = 1\non_lost_store = \"floor\"\nreplicas = 0\n\
             [[quotas]]\nkey = \"e\"\nconcurrency = 1\non_lost_store = \"floor\"",
        )
        .unwrap_err();
        for (problem, expected) in problems.iter().zip([
            "quotas[0].key: ",
            "quotas[0].concurrency: is 0, but must be 1 to 50000000000",
            "quotas[1].shared: is true without a key",
            "quotas[1].concurrency: is absent",
            "quotas[2].models: is an empty list",
            "quotas[4]: there is another quota for the same keys and models (key a)",
            "quotas[5].replicas: needs on_lost_store = \"floor\"",
            "quotas[6].replicas: needs on_lost_store = \"floor\"",
            "quotas[7].replicas: is 0, but must be the number of gateways",
            "quotas[8].replicas: is absent, but on_lost_store = \"floor\" needs the number of gateways",
        ]) {
            assert!(problem.starts_with(expected), "{problem}");
        }
        assert_eq!(problems.len(), 10, "{problems:?}");
        assert!(read("[[quotas]]\nconcurency = 1").is_err());
    }
}
