//! Finds quotas and prices for some of the names behind a pattern of models. The upstream behind it
//! may accept further spellings of these names, to which the quota or the price does not apply.

use auth::Pattern;
use config::Config;
use policy::Policy;

/// Returns a sentence for each quota and each price that can be escaped by another spelling of a
/// name.
pub(super) fn gaps(config: &Config, policy: &Policy) -> Vec<String> {
    // The configuration was checked before.
    let rules = config.quota_rules().unwrap_or_default();
    let quotas = rules.iter().flat_map(|rule| {
        let models = rule.models.iter().flatten();
        models.map(|models| (format!("the quota of {}", rule.name), models.clone()))
    });
    let prices = policy.prices.entries().iter().filter_map(|entry| {
        let models: Pattern = entry.model.parse().ok()?;
        Some((format!("the price of '{models}'"), models))
    });
    let limits: Vec<_> = quotas.chain(prices).collect();
    // A target with a model is asked for that, whatever the client's name.
    let passes_names = |model: &&catalog::Model| {
        let targets = policy.routes.configured(model);
        targets.iter().any(|target| target.model.is_none())
    };
    let patterns = policy.catalog.iter().filter(passes_names);
    let patterns = patterns.filter_map(|model| Some((&model.id, model.prefix()?)));
    let gaps = patterns.flat_map(|(id, prefix)| {
        let partial = limits
            .iter()
            .filter(move |(_, models)| is_partial(models.as_str(), prefix));
        partial.map(move |(limit, models)| {
            format!(
                "{limit} applies to the names '{models}' behind the model '{id}' as they are written: \
                 if the upstream accepts other spellings, such as in other letters, it does not apply \
                 to them"
            )
        })
    });
    gaps.collect()
}

/// Returns true if a pattern matches some, but not all of the names with this prefix.
fn is_partial(pattern: &str, prefix: &str) -> bool {
    let (head, rest) = match pattern.split_once('*') {
        Some((head, rest)) => (head, Some(rest)),
        None => (pattern, None),
    };
    let matches_all =
        rest.is_some_and(|rest| rest.bytes().all(|byte| byte == b'*')) && prefix.starts_with(head);
    let matches_some = head.starts_with(prefix) || rest.is_some() && prefix.starts_with(head);
    matches_some && !matches_all
}

#[cfg(test)]
mod tests {
    use super::is_partial;

    #[test]
    fn a_pattern_is_partial_if_it_leaves_names_out() {
        for (pattern, prefix, expected) in [
            ("gpt-5*", "", true),
            ("gpt-5.1", "", true),
            ("*", "", false),
            ("**", "gpt-", false),
            ("gpt-*", "gpt-", false),
            ("gpt-5*", "gpt-", true),
            ("*-mini", "gpt-", true),
            ("claude-*", "gpt-", false),
            ("gpt", "gpt-", false),
        ] {
            assert_eq!(is_partial(pattern, prefix), expected, "{pattern} {prefix}");
        }
    }
}
