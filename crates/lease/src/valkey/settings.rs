//! Reads the settings of servers from their replies.

use redis::Value;

/// Returns a policy other than `noeviction`, if one is in replies to `INFO memory`.
pub(super) fn evicting(info: &Value) -> Option<String> {
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
pub(super) fn setting(config: &Value, name: &str) -> Option<String> {
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
            crate::Unsuitable::Evicts("allkeys-lru".into()).to_string(),
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
