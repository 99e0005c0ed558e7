//! Resolves the targets of models in the configuration to engines and upstreams.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::{Family, Model};
use config::upstream::EngineName;
use config::{Config, ModelEntry};

use super::{Backend, Target, TargetFacts, UpstreamTarget};

type Upstreams = BTreeMap<String, Arc<UpstreamTarget>>;

/// Returns the targets of each model, by its id in the catalog. Their problems are added to
/// `problems`.
pub(super) fn targets(
    config: &Config,
    upstreams: &Upstreams,
    problems: &mut Vec<String>,
) -> BTreeMap<String, Vec<Target>> {
    let names = config.upstreams.iter();
    let known: Vec<_> = names.map(|upstream| upstream.name.as_str()).collect();
    let mut resolved = BTreeMap::new();
    for entry in config.models.iter().flatten() {
        let model = &entry.model;
        let mut targets = Vec::new();
        for (i, target) in entry.targets.iter().enumerate() {
            match backend(target, model, upstreams, &known) {
                Ok(Some(backend)) => targets.push(Target {
                    backend,
                    model: target.model.clone(),
                    weight: target.weight,
                    first_content_timeout: target.first_content_timeout,
                    hedge: None,
                    place: targets.len(),
                    facts: facts(config, model, target),
                }),
                Ok(None) => {}
                Err(problem) => {
                    problems.push(format!("model '{}': targets[{i}]: {problem}", model.id));
                }
            }
        }
        problems.extend(not_relayed(model, &targets));
        problems.extend(not_hedged(entry));
        if !targets.is_empty() {
            resolved.insert(model.id.clone(), targets);
        }
    }
    resolved
}

/// Returns the facts of a model at a target, by the name that it has there.
fn facts(
    config: &Config,
    model: &Model,
    target: &config::upstream::Target,
) -> Option<Arc<TargetFacts>> {
    target.upstream.as_ref()?;
    let name = target.model.as_ref().unwrap_or(&model.id);
    Some(Arc::new(TargetFacts {
        name: name.clone(),
        configured: config.facts.get(name).cloned().unwrap_or_default(),
    }))
}

/// Returns the engine or upstream that a target refers to. `None` if its upstream is invalid,
/// which is already reported.
fn backend(
    target: &config::upstream::Target,
    model: &Model,
    upstreams: &Upstreams,
    known: &[&str],
) -> Result<Option<Backend>, String> {
    if let Some(problem) = target.problem() {
        return Err(problem.to_owned());
    }
    let embedded = match model.family {
        Family::Images => EngineName::Easel,
        _ => EngineName::Local,
    };
    match (&target.upstream, target.engine) {
        (None, Some(_)) if target.model.is_some() => {
            Err("'model' is only allowed with 'upstream'".to_owned())
        }
        (None, Some(engine)) if engine == embedded => Ok(Some(Backend::Embedded)),
        (None, Some(_)) => Err(format!(
            "this engine does not serve the family '{}'",
            model.family.as_str()
        )),
        (Some(name), None) => match upstreams.get(name) {
            Some(server) if server.serves(model) => Ok(Some(Backend::Upstream(Arc::clone(server)))),
            Some(server) => Err(format!(
                "upstream '{name}' speaks {}, which does not serve the family '{}'",
                server.config.protocol().as_str(),
                model.family.as_str()
            )),
            None if known.contains(&name.as_str()) => Ok(None),
            None => Err(format!(
                "there is no upstream '{name}'; there are: {}",
                list(known)
            )),
        },
        _ => Err("one of 'upstream' and 'engine' is needed".to_owned()),
    }
}

/// Returns a problem for each `allow` word of a model that needs a protocol which the model is not
/// served on, or which not all of its targets relay.
fn not_relayed(model: &Model, targets: &[Target]) -> Vec<String> {
    let problem = |word: catalog::Allowed| {
        let id = &model.id;
        let mut served = word
            .protocols()
            .iter()
            .filter(|it| model.is_served_on(**it))
            .peekable();
        if served.peek().is_none() {
            let paths: Vec<_> = word.protocols().iter().map(|it| it.path()).collect();
            let paths = paths.join(" or ");
            return Some(format!(
                "model '{id}': allow: '{word}' needs a model that is served on {paths}"
            ));
        }
        let is_relayed = |protocol: &catalog::Protocol| {
            !targets.is_empty() && targets.iter().all(|target| target.relays(*protocol))
        };
        let path = served.find(|protocol| !is_relayed(protocol))?.path();
        Some(format!(
            "model '{id}': allow: '{word}' needs targets that are all upstreams of the protocol of \
             {path}"
        ))
    };
    model.allow.iter().copied().filter_map(problem).collect()
}

/// Returns the problems of the hedges of a model. Images that no client waits for any more are still
/// made and billed, so requests for them are not hedged.
fn not_hedged(entry: &ModelEntry) -> Vec<String> {
    let Some(hedge) = entry.hedge else {
        return Vec::new();
    };
    let mut problems = hedge.problems(entry.targets.len());
    if entry.model.family == Family::Images {
        problems.push("hedge: requests for images are not hedged".to_owned());
    }
    let id = &entry.model.id;
    let problems = problems.into_iter();
    problems
        .map(|problem| format!("model '{id}': {problem}"))
        .collect()
}

fn list(names: &[&str]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}
