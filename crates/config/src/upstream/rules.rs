//! The rules of an upstream: the known rules of its vendor, and the operator's own.

use std::sync::LazyLock;

use serde::Deserialize;
use translate::rules::{BUILT_IN, Rule, Rules};

use super::{Protocol, Upstream};

/// Returns the rules of an upstream whose preset and protocol are known.
pub(super) fn of(upstream: &Upstream) -> Result<Rules, String> {
    for (i, rule) in upstream.own_rules.iter().enumerate() {
        rule.check().map_err(|why| format!("rules[{i}]: {why}"))?;
    }
    let all = || KNOWN.iter().chain(&upstream.own_rules);
    if let Some(unknown) = upstream
        .rules_off
        .iter()
        .find(|id| !all().any(|rule| rule.id == **id))
    {
        let known: Vec<_> = KNOWN.iter().map(|rule| rule.id.as_str()).collect();
        let known = known.join(", ");
        return Err(format!(
            "rules_off: '{unknown}' is not known; there are: {known}"
        ));
    }
    let Some(protocol) = text_protocol(upstream.protocol()) else {
        return Ok(Rules::default());
    };
    let is_on = |rule: &&Rule| {
        rule.is_of(upstream.preset.as_deref(), protocol) && !upstream.rules_off.contains(&rule.id)
    };
    Ok(Rules::new(all().filter(is_on).cloned().collect()))
}

/// Returns the rules that an upstream with this preset has by itself.
pub(crate) fn of_preset(preset: &str, protocol: Protocol) -> impl Iterator<Item = &'static Rule> {
    let protocol = text_protocol(protocol);
    KNOWN
        .iter()
        .filter(move |rule| protocol.is_some_and(|protocol| rule.is_of(Some(preset), protocol)))
}

fn text_protocol(protocol: Protocol) -> Option<vendor::Protocol> {
    match protocol {
        Protocol::Responses => Some(vendor::Protocol::Responses),
        Protocol::Chat => Some(vendor::Protocol::Chat),
        Protocol::Messages => Some(vendor::Protocol::Messages),
        Protocol::Images => None,
    }
}

/// The form of the file of rules.
#[derive(Default, Deserialize)]
struct RuleFile {
    rule: Vec<Rule>,
}

/// A test checks that the file is valid.
static KNOWN: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let file: RuleFile = toml::from_str(BUILT_IN).unwrap_or_default();
    file.rule
});

#[cfg(test)]
mod page;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Config;
    use crate::upstream::preset;

    /// An upstream with these settings, or the problem with them.
    fn upstream(settings: &str) -> Result<Upstream, String> {
        let text = format!("[[upstreams]]\nname = \"u\"\nbase_url = \"http://h/v1\"\n{settings}");
        let config = Config::parse(&text).map_err(|error| error.to_string())?;
        Ok(config.upstreams.into_iter().next().unwrap())
    }

    fn ids(upstream: &Upstream, model: &str) -> Vec<String> {
        let rules = upstream.rules.of_model(model);
        rules.map(|rule| rule.id.clone()).collect()
    }

    #[test]
    fn an_upstream_has_the_rules_of_its_preset_protocol_and_model() {
        let sglang = upstream("preset = \"sglang\"").unwrap();
        assert_eq!(
            ids(&sglang, "glm-5"),
            [
                "label-64",
                "open-model-efforts",
                "open-model-system",
                "open-model-user",
                "vllm-top-p",
                "open-model-refusals"
            ]
        );
        let chat = upstream("protocol = \"chat\"").unwrap();
        assert_eq!(ids(&chat, "glm-5"), ["label-64"]);
        assert_eq!(
            ids(&chat, "openai/o3-mini"),
            [
                "label-64",
                "openai-verbosity",
                "openai-reasoning-limit",
                "openai-o-parallel",
                "openai-reasoning-sampling",
                "openai-reasoning-stop",
                "openai-o-efforts"
            ]
        );
        let images = upstream("protocol = \"images\"").unwrap();
        assert_eq!(ids(&images, "o3"), Vec::<String>::new());
    }

    #[test]
    fn an_operator_adds_a_rule_or_switches_one_off_in_one_line() {
        let own = upstream(
            "protocol = \"chat\"\nrules_off = [\"label-64\"]\nrules = [{ id = \"house\", models = [\"qwen*\"], members = [\"top_p\"], action = \"drop\" }]",
        )
        .unwrap();
        assert_eq!(ids(&own, "qwen3"), ["house"]);
        assert_eq!(ids(&own, "glm-5"), Vec::<String>::new());
        for (settings, expected) in [
            (
                "rules_off = [\"openai-user\"]",
                "rules_off: 'openai-user' is not known; there are: label-64, ",
            ),
            (
                "rules = [{ id = \"r\", members = [\"model\"], action = \"drop\" }]",
                "rules[0]: 'r': members: 'model' is needed by every request",
            ),
            (
                "rules = [{ id = \"r\", members = [\"a..b\"], action = \"drop\" }]",
                "'a..b' is not the path of a member such as \"messages[].reasoning_content\"",
            ),
            (
                "rules = [{ id = \"r\", members = [\"a\"], action = \"shrink\" }]",
                "unknown variant `shrink`, expected one of `drop`, `drop_beside`, ",
            ),
        ] {
            let problem = upstream(&format!("protocol = \"chat\"\n{settings}")).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
    }

    #[test]
    fn every_known_rule_is_valid_and_names_its_source() {
        let file: RuleFile = toml::from_str(BUILT_IN).unwrap();
        let ids: BTreeSet<_> = file.rule.iter().map(|rule| rule.id.as_str()).collect();
        assert_eq!(ids.len(), file.rule.len());
        let presets = preset::names();
        for rule in &file.rule {
            assert_eq!(rule.check(), Ok(()));
            assert!(rule.source.starts_with("https://"), "{}", rule.id);
            assert!(rule.read.starts_with("20"), "{}", rule.id);
            let is_known = |name: &String| presets.contains(&name.as_str());
            assert!(rule.presets.iter().all(is_known), "{}", rule.id);
        }
    }
}
