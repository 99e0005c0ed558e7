//! The settings of a store that matter for lending.

use std::fmt;

use redis::Value;

use crate::store::Unreachable;

/// The settings of a store that matter for lending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// `min-replicas-to-write`, if the store permits reading it. While it is 0, a primary that has lost its
    /// replicas goes on lending what their new primary lends too.
    pub min_replicas_to_write: Option<u64>,
    /// `cluster-require-full-coverage`, if the store is a cluster and permits reading it. While it is true, all
    /// limits are out of reach when one part of the cluster is.
    pub requires_full_coverage: Option<bool>,
}

/// The reason why a store cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsuitable {
    /// The store does not answer.
    Unreachable(Unreachable),
    /// The store drops data when its memory is full, and would then lend more than there is. Contains
    /// the policy.
    Evicts(String),
}

impl fmt::Display for Unsuitable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(error) => error.fmt(f),
            Self::Evicts(policy) => write!(
                f,
                "the lease store has the maxmemory-policy {policy:?}: expected \"noeviction\""
            ),
        }
    }
}

impl std::error::Error for Unsuitable {}

/// Returns the policies that are no `noeviction` in replies to `INFO memory`.
pub(crate) fn evicting(info: &Value) -> Option<String> {
    let mut found = None;
    visit(info, &mut |text| {
        let policy = text
            .lines()
            .find_map(|line| line.strip_prefix("maxmemory_policy:"));
        if let Some(policy) = policy.filter(|policy| policy.trim() != "noeviction") {
            found = Some(policy.trim().to_owned());
        }
    });
    found
}

/// Returns the value after `name` in replies to `CONFIG GET`.
pub(crate) fn setting(config: &Value, name: &str) -> Option<String> {
    let mut found = None;
    let mut last = String::new();
    visit(config, &mut |text| {
        if last == name {
            found = Some(text.to_owned());
        }
        text.clone_into(&mut last);
    });
    found
}

/// Calls `f` with each text in a reply, which is nested if several servers have answered.
fn visit(value: &Value, f: &mut impl FnMut(&str)) {
    match value {
        Value::BulkString(bytes) => f(&String::from_utf8_lossy(bytes)),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => f(text),
        Value::Array(values) | Value::Set(values) => {
            for value in values {
                visit(value, f);
            }
        }
        Value::Map(entries) => {
            for (key, value) in entries {
                visit(key, f);
                visit(value, f);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    #[test]
    fn one_server_that_evicts_is_enough() {
        let good = "# Memory\r\nused_memory:1\r\nmaxmemory_policy:noeviction\r\n";
        let bad = "# Memory\r\nmaxmemory_policy:allkeys-lru\r\nmaxmemory:0\r\n";
        assert_eq!(evicting(&text(good)), None);
        let cluster = Value::Map(vec![(text("a:1"), text(good)), (text("b:1"), text(bad))]);
        assert_eq!(evicting(&cluster), Some("allkeys-lru".into()));
        assert_eq!(
            Unsuitable::Evicts("allkeys-lru".into()).to_string(),
            "the lease store has the maxmemory-policy \"allkeys-lru\": expected \"noeviction\""
        );
    }

    #[test]
    fn a_setting_stands_after_its_name() {
        let reply = Value::Array(vec![text("min-replicas-to-write"), text("2")]);
        assert_eq!(setting(&reply, "min-replicas-to-write"), Some("2".into()));
        assert_eq!(setting(&reply, "2"), None);
        assert_eq!(setting(&Value::Nil, "min-replicas-to-write"), None);
    }
}
