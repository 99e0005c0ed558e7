//! `sluicegate check`: reports how a configuration would be applied.

pub(crate) mod certificates;
mod coverage;
mod fact_sources;
pub(crate) mod lists;
pub(crate) mod stores;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use catalog::{Catalog, Family, Model};
use config::Config;
use policy::targets::{Backend, Routes, Target};
use policy::{Policy, clock};
use quota::Caps;

use crate::engines;

/// Describes how a request for each model would be handled.
pub(crate) fn report(config: &Config, policy: &Policy) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, config, policy);
    out
}

fn write(out: &mut String, config: &Config, policy: &Policy) -> std::fmt::Result {
    let keys = policy.keys.entries().len();
    let upstreams = config.upstreams.len();
    writeln!(
        out,
        "ok: {keys} keys, {} models, {upstreams} upstreams",
        policy.catalog.iter().count()
    )?;
    if let Some(age) = config.responses.keep {
        let size = config.responses.keep_bytes;
        writeln!(
            out,
            "answers of Responses are kept for {}s, in at most {size}",
            age.as_secs()
        )?;
    }
    for collector in [config.traces.collector(), config.metrics.collector()] {
        if collector.endpoint.is_some() {
            let (signal, to) = (collector.section, collector.describe());
            writeln!(out, "{signal} are exported to {to}")?;
        }
    }
    for key in policy.keys.entries() {
        let models = match &key.models {
            None => "all models".to_owned(),
            Some(patterns) => patterns
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" "),
        };
        let expired = match key.is_expired(clock::unix_seconds()) {
            true => ", but it has expired",
            false => "",
        };
        writeln!(out, "key {}: {models} of {}{expired}", key.name, key.scopes)?;
        for (name, found, queue) in policy.quotas.of_key(&key.name) {
            let queue = queue.map_or_else(String::new, |queue| {
                let (depth, wait) = (queue.depth, queue.wait);
                format!("; up to {depth} requests wait for up to {wait:?}")
            });
            writeln!(out, "  quota of {name}: {}{queue}", caps(found))?;
        }
    }
    for model in policy.catalog.iter() {
        write_model(out, config, model, &policy.routes)?;
    }
    for upstream in &config.upstreams {
        if let Some(preset) = &upstream.preset {
            writeln!(out, "\nupstream {}: preset {preset}", upstream.name)?;
            let settings = upstream.to_toml();
            settings
                .lines()
                .try_for_each(|line| writeln!(out, "  {line}"))?;
        }
    }
    for setting in without_admin(config) {
        writeln!(
            out,
            "note: {setting} has no effect without an admin address"
        )?;
    }
    let needed = |images| policy.needs_embedded(images);
    for advice in engines::missing(needed(false), needed(true)) {
        writeln!(out, "note: {advice}")?;
    }
    for gap in coverage::gaps(config, policy) {
        writeln!(out, "note: {gap}")?;
    }
    if let Some(unknown) = unknown_facts(config, &policy.catalog_with_facts()) {
        writeln!(out, "note: clients cannot see {unknown}")?;
    }
    for name in policy.routes.unused(&policy.catalog) {
        writeln!(out, "note: no model has the upstream '{name}' as a target")?;
    }
    Ok(())
}

/// Names the facts that clients ask for and that are unknown, and the text models that lack each one.
/// The built-in models and patterns are left out.
fn unknown_facts(config: &Config, catalog: &Catalog) -> Option<String> {
    config.models.as_ref()?;
    let is_text = |model: &&Model| model.family != Family::Images && model.prefix().is_none();
    let mut models = BTreeMap::<_, Vec<_>>::new();
    for model in catalog.iter().filter(is_text) {
        let unknown = model.facts.unknown();
        if !unknown.is_empty() {
            models.entry(unknown).or_default().push(model.id.as_str());
        }
    }
    let parts = models.iter();
    let parts =
        parts.map(|(facts, models)| format!("{} of {}", facts.join(", "), models.join(", ")));
    Some(parts.collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
}

/// Describes the caps of a quota.
fn caps(caps: &Caps) -> String {
    let counts = [
        (caps.concurrency, "requests at once"),
        (caps.requests_per_minute, "requests per minute"),
        (caps.tokens_per_minute, "tokens per minute"),
    ];
    let counts = counts.into_iter();
    let counts = counts.filter_map(|(cap, unit)| cap.map(|cap| format!("{cap} {unit}")));
    let budget = caps.budget.as_ref();
    let budget = budget.map(|budget| {
        let window = format!("{:?}", budget.window).to_lowercase();
        let (amount, currency, zone) = (budget.amount, budget.currency, budget.zone.name());
        format!("{amount} {currency} per {window} ({zone})")
    });
    counts.chain(budget).collect::<Vec<_>>().join(", ")
}

/// Returns the names of the settings that concern the admin address, if there is none. The command line
/// of `serve` may have one, so they are no problems.
fn without_admin(config: &Config) -> impl Iterator<Item = &'static str> {
    let set = [
        ("admin_tls", config.admin_tls.is_some()),
        ("state.admin_key", config.state.admin_key.is_some()),
        ("state.admin_hosts", !config.state.admin_hosts.is_empty()),
    ];
    let has_none = config.admin.is_none();
    let unused = set
        .into_iter()
        .filter(move |(_, is_set)| *is_set && has_none);
    unused.map(|(name, _)| name)
}

fn write_model(
    out: &mut String,
    config: &Config,
    model: &Model,
    routes: &Routes,
) -> std::fmt::Result {
    writeln!(out, "\n{}", model.id)?;
    if !model.allow.is_empty() {
        let words: Vec<_> = model.allow.iter().map(|word| word.as_str()).collect();
        writeln!(out, "  allowed: {}", words.join(", "))?;
    }
    if let Some(facts) = fact_sources::of_model(config, model) {
        writeln!(out, "  facts: {facts}")?;
    }
    let targets = routes.configured(model);
    if targets.is_empty() {
        return writeln!(out, "  {}: the embedded engine", paths(model, |_| true));
    }
    if targets.iter().any(|target| target.weight.is_some()) {
        writeln!(
            out,
            "  each conversation draws the order of its targets by their weights"
        )?;
    }
    targets
        .iter()
        .enumerate()
        .try_for_each(|(i, target)| write_target(out, i + 1, model, target))
}

fn write_target(
    out: &mut String,
    position: usize,
    model: &Model,
    target: &Target,
) -> std::fmt::Result {
    let weight = target
        .weight
        .map(|weight| format!(", weight {weight}"))
        .unwrap_or_default();
    let Backend::Upstream(server) = &target.backend else {
        return writeln!(out, "  {position}. the embedded engine{weight}");
    };
    let config = &server.config;
    let name = match (&target.model, model.prefix()) {
        (None, Some(_)) => "the client's model".to_owned(),
        (name, _) => format!("'{}'", name.as_ref().unwrap_or(&model.id)),
    };
    writeln!(
        out,
        "  {position}. {name} at upstream {} ({}){weight}",
        config.name,
        config.describe()
    )?;
    if let Some(facts) = fact_sources::of_target(target) {
        writeln!(out, "     facts: {facts}")?;
    }
    let translated = format!("translated to {}", config.protocol().as_str());
    for (handling, is_relayed) in [("relayed", true), (translated.as_str(), false)] {
        let paths = paths(model, |protocol| {
            server.translation(protocol).is_none() == is_relayed
        });
        if paths.is_empty() {
            continue;
        }
        writeln!(out, "     {paths}: {handling}")?;
        let name = target.model.as_ref().unwrap_or(&model.id);
        let rules = config.rules.of_model(name).map(|rule| rule.id.as_str());
        let rules = rules.collect::<Vec<_>>().join(", ");
        if !rules.is_empty() && (!is_relayed || config.rules_on_relay) {
            writeln!(out, "       by the rules {rules}")?;
        }
    }
    Ok(())
}

/// The paths of the model's protocols that `choose` accepts.
fn paths(model: &Model, choose: impl Fn(catalog::Protocol) -> bool) -> String {
    let paths = model
        .protocols()
        .filter(|protocol| choose(*protocol))
        .map(catalog::Protocol::path);
    paths.collect::<Vec<_>>().join(", ")
}
