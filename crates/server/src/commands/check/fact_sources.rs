//! The sources of the facts of a model.

use catalog::{Facts, Model};
use config::Config;
use policy::targets::Target;

/// Names the facts that the configuration has for a model, and the source of each one.
pub(super) fn of_model(config: &Config, model: &Model) -> Option<String> {
    let mut entries = config.models.iter().flatten();
    let entry = entries.find(|entry| entry.model.id == model.id);
    let own = entry.map(|entry| ("its entry".to_owned(), entry.model.facts.clone()));
    let named = config.facts.get(&model.id);
    let named = named.map(|facts| (section(&model.id), facts.clone()));
    named_sources(own.into_iter().chain(named))
}

/// Names the facts of the model of a target, and the source of each one.
pub(super) fn of_target(target: &Target) -> Option<String> {
    let configured = target.configured_facts();
    let configured = configured.map(|(name, facts)| (section(name), facts.clone()));
    let listed = target.listed_facts();
    let listed = listed.map(|facts| ("the list of the upstream".to_owned(), facts));
    named_sources(configured.into_iter().chain(listed))
}

fn section(name: &str) -> String {
    format!("[facts.{name}]")
}

/// Names the facts of sources. Each fact comes from the first source that has it.
fn named_sources(sources: impl Iterator<Item = (String, Facts)>) -> Option<String> {
    let mut seen = Vec::new();
    let mut parts = Vec::new();
    for (source, facts) in sources {
        let mut names = facts.known();
        names.retain(|name| !seen.contains(name));
        if !names.is_empty() {
            parts.push(format!("{} from {source}", names.join(", ")));
            seen.extend(names);
        }
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}
