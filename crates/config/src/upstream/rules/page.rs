//! The page of the rules of vendors, `docs/vendor-rules.md`, and the test that it is current.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use field_map::Disposition;
use translate::rules::{Action, Rule};

use super::{KNOWN, of_preset, text_protocol};
use crate::upstream::preset::Preset;

#[test]
fn the_page_of_rules_is_current() {
    let page = [
        INTRODUCTION,
        &rules(),
        CLIENTS,
        &clients(),
        SHARED,
        &shared(),
        VENDORS,
        &vendors(),
    ]
    .concat();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/vendor-rules.md");
    if fs::read_to_string(&path).unwrap_or_default() != page {
        fs::write(&path, page).unwrap();
        panic!(
            "docs/vendor-rules.md was out of date and has been regenerated: review and commit it"
        );
    }
}

/// A row for each rule: the upstreams and models that it is for, and the edit.
fn rules() -> String {
    let mut rows = String::new();
    for rule in KNOWN.iter() {
        let mut models = listed_or(&rule.models, "all");
        if !rule.except.is_empty() {
            models += &format!(", not {}", listed(&rule.except));
        }
        let protocols: Vec<_> = rule.protocols.iter().map(ToString::to_string).collect();
        let protocols = match protocols.is_empty() {
            true => "all".to_owned(),
            false => protocols.join(", "),
        };
        let members = match rule.members.is_empty() {
            true => String::new(),
            false => format!("{}: ", listed(&rule.members)),
        };
        let (id, action, source, read) = (&rule.id, &rule.action, &rule.source, &rule.read);
        let presets = listed_or(&rule.presets, "all");
        writeln!(
            rows,
            "| `{id}` | {presets} | {protocols} | {models} | {members}{action} | [{read}]({source}) |"
        )
        .unwrap();
    }
    rows
}

/// A row for each rule and protocol of an upstream: the members that clients of each protocol write for it.
fn clients() -> String {
    let mut rows = String::new();
    for rule in KNOWN.iter() {
        let is_of = |upstream: &&vendor::Protocol| {
            rule.protocols.is_empty() || rule.protocols.contains(upstream)
        };
        for upstream in vendor::Protocol::ALL.iter().filter(is_of) {
            let cells = vendor::Protocol::ALL.map(|client| cell(rule, client, *upstream));
            if cells.iter().all(|cell| cell == RELAYED || cell == NOT_SENT) {
                continue;
            }
            let (id, cells) = (&rule.id, cells.join(" | "));
            writeln!(rows, "| `{id}` | {upstream} | {cells} |").unwrap();
        }
    }
    rows
}

fn cell(rule: &Rule, client: vendor::Protocol, upstream: vendor::Protocol) -> String {
    if client == upstream {
        return RELAYED.to_owned();
    }
    let members = match rule.members.is_empty() {
        true => without_members(&rule.action, client).to_vec(),
        false => from_members(rule, client, upstream),
    };
    listed_or(&members, NOT_SENT)
}

/// The members of a client's request that become members of a rule.
fn from_members(
    rule: &Rule,
    client: vendor::Protocol,
    upstream: vendor::Protocol,
) -> Vec<&'static str> {
    let members: Vec<_> = rule.members.iter().map(ToString::to_string).collect();
    let becomes_one = |text: &str| {
        let is_named = |name: &str| text.contains(&format!("`{name}`"));
        let last = |member: &str| member.rsplit("[].").next().is_some_and(is_named);
        members.iter().any(|member| last(member))
    };
    let mut found = Vec::new();
    for row in field_map::rows().iter().filter(|row| row.client == client) {
        if matches!(row.disposition(upstream), Disposition::Mapped(text) if becomes_one(text))
            && !found.contains(&row.field)
        {
            found.push(row.field);
        }
    }
    found
}

/// The members of a client's request that a rule for whole requests concerns.
fn without_members(action: &Action, client: vendor::Protocol) -> &'static [&'static str] {
    use vendor::Protocol::{Chat, Messages, Responses};
    match (action, client) {
        (
            Action::Thinking(_) | Action::Reasons | Action::NoReasoning | Action::ThinkingSwitch,
            client,
        ) => match client {
            Responses => &["reasoning.effort"],
            Chat => &["reasoning_effort"],
            Messages => &["thinking", "output_config.effort"],
        },
        (Action::Thinks, _) => &["tool_choice"],
        (Action::TypedAlternatives, Responses) => &["tools[].parameters", "text.format"],
        (Action::TypedAlternatives, Chat) => &["tools[].function.parameters", "response_format"],
        (Action::TypedAlternatives, Messages) => &["tools[].input_schema", "output_config.format"],
        (Action::SchemaAsText, Responses) => &["text.format"],
        (Action::SchemaAsText, Chat) => &["response_format"],
        (Action::SchemaAsText, Messages) => &["output_config.format"],
        (Action::MergeSystem | Action::NeedsUser, Responses) => &["instructions", "input[].role"],
        (Action::MergeSystem | Action::NeedsUser, Chat) => &["messages[].role"],
        (Action::MergeSystem | Action::NeedsUser, Messages) => &["system", "messages[].role"],
        (Action::SignedCalls, Chat) => &["messages[].tool_calls[].extra_content"],
        (Action::AnswerResults, Responses) => &["input[]"],
        (Action::NoPrefill, Responses) => &["input[]"],
        (Action::AnswerResults | Action::NoPrefill, Chat | Messages) => &["messages[]"],
        (Action::CacheBreakpoints | Action::CacheControl, Messages) => &["cache_control"],
        (Action::CacheBreakpoints | Action::CacheControl, Chat | Responses) => {
            &["prompt_cache_breakpoint"]
        }
        (Action::MostStops(_), Chat) => &["stop"],
        (Action::MostStops(_), Messages) => &["stop_sequences"],
        _ => &[],
    }
}

/// A row for each protocol: the rules at every vendor, for all models and by the names of models.
fn shared() -> String {
    let mut rows = String::new();
    for protocol in vendor::Protocol::ALL {
        let is_shared = |rule: &&Rule| rule.presets.is_empty() && rule.is_of(None, protocol);
        let (of_models, of_all): (Vec<_>, Vec<_>) = KNOWN
            .iter()
            .filter(is_shared)
            .partition(|rule| !rule.models.is_empty());
        let (of_all, of_models) = (ids(&of_all), ids(&of_models));
        writeln!(rows, "| {protocol} | {of_all} | {of_models} |").unwrap();
    }
    rows
}

/// A row for each preset and protocol: the rules that not every vendor has.
fn vendors() -> String {
    let mut rows = String::new();
    for (name, preset) in Preset::all() {
        for protocol in &preset.protocols {
            let own: Vec<_> = of_preset(name, *protocol)
                .filter(|rule| !rule.presets.is_empty())
                .collect();
            if let Some(protocol) = text_protocol(*protocol) {
                writeln!(rows, "| `{name}` | {protocol} | {} |", ids(&own)).unwrap();
            }
        }
    }
    rows
}

fn ids(rules: &[&Rule]) -> String {
    let ids: Vec<_> = rules.iter().map(|rule| rule.id.as_str()).collect();
    listed_or(&ids, "–")
}

fn listed(items: &[impl ToString]) -> String {
    let items: Vec<_> = items
        .iter()
        .map(|item| format!("`{}`", item.to_string()))
        .collect();
    items.join(", ")
}

fn listed_or(items: &[impl ToString], none: &str) -> String {
    match items.is_empty() {
        true => none.to_owned(),
        false => listed(items),
    }
}

const RELAYED: &str = "relayed";
const NOT_SENT: &str = "–";

const INTRODUCTION: &str = "\
# Rules of vendors

Each vendor takes only a part of a protocol, and the part differs by model. The gateway edits the requests that it
translates so that their server takes them, by the rules of this table. A test generates it from
[`rules.toml`](../crates/translate/src/rules/rules.toml).

A rule applies to the upstreams of its presets and protocols, for the models that match one of its patterns, in which
`*` stands for any text. A pattern is compared with the upstream's name of the model, with and without what stands
before its last `/` and the labels of Bedrock, such as `us.openai.`. Members that are left out or get another value are
named in the response header `x-sluicegate-dropped`. A request that is relayed was written for its own vendor, and keeps
its members, unless the upstream has `rules_on_relay = true`.

A pattern of names is a guess. An upstream to which it does not apply switches the rule off, and one with a rule of its
own adds it:

```toml
[[upstreams]]
name = \"house\"
preset = \"vllm\"
rules_off = [\"open-model-system\"]
rules = [{ id = \"house-sampling\", models = [\"house-*\"], members = [\"top_p\", \"temperature\"], action = \"drop\" }]
```

The actions for members, which may be nested as in `messages[].name`, are `\"drop\"`, `{ drop_beside = \"other\" }`,
`{ set_beside = { other = \"name\", value = 1 } }`, `{ rename = \"name\" }`, `{ default = 1 }`,
`{ words = { known = [\"low\"], instead = { max = \"low\" } } }`, `{ range = { least = 0, most = 1 } }`, `{ label = 64 }` and
`\"hide_addresses\"`. Without members there are `{ thinking = \"adaptive\" }`, `\"reasons\"`, `\"no_reasoning\"`, `\"thinks\"`,
`\"thinking_switch\"`, `\"merge_system\"`, `\"needs_user\"`, `\"signed_calls\"`, `\"answer_results\"`, `\"no_prefill\"`,
`\"mark_prefill\"`, `\"schema_as_text\"`, `\"typed_alternatives\"`, `\"text_only\"`, `\"text_content\"`, `\"tool_names\"`,
`\"refusal_as_text\"`, `\"cache_breakpoints\"`, `\"cache_control\"` and `{ most_stops = 1 }`; these are for translated requests only. A rule with
`unless = { reasoning_effort = [\"none\"] }` does not edit a request that has one of these words.
`sluicegate presets NAME` shows the rules of a preset, and `sluicegate check` the rules of each target.

| rule | presets | protocols | models | what is done | read |
|---|---|---|---|---|---|
";

const CLIENTS: &str = "
## The members of clients

The members of a client's request that a rule changes, for the protocol of the upstream. `x-sluicegate-dropped` has the
names of the upstream's protocol. A request in that protocol is relayed as it is, unless the upstream has
`rules_on_relay = true`. A dash stands where no member of the client's protocol becomes one of the rule.

| rule | upstream | Responses client | Chat Completions client | Messages client |
|---|---|---|---|---|
";

const SHARED: &str = "
## The rules of each vendor

Every upstream has these rules, with a preset or without:

| protocol | rules for all models | rules by the name of the model |
|---|---|---|
";

const VENDORS: &str = "
The presets add these:

| preset | protocol | rules |
|---|---|---|
";
