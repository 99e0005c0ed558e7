//! The dashboards and alerts of `crates/server/packaging`, beside the metrics of a gateway with their
//! configuration.

use std::fs;
use std::path::Path;

use serde_json::Value;
use simulator::{Protocol, Simulator, scenario};
use testkit::requests::{ask, path};
use testkit::{Connection, Gateway, Request, TEXT, await_that};

use crate::GATEWAY;
use crate::store::Store;

const CONFIG: &str = include_str!("../../crates/server/packaging/compose/sluicegate.toml");
const ALERTS: &str = include_str!("../../crates/server/packaging/chart/monitoring/alerts.yaml");
const DASHBOARDS: [&str; 2] = [
    include_str!("../../crates/server/packaging/chart/monitoring/operations.json"),
    include_str!("../../crates/server/packaging/chart/monitoring/money.json"),
];

/// Labels that Prometheus adds.
const OF_PROMETHEUS: [&str; 3] = ["instance", "job", "le"];

/// Each series of a dashboard or an alert is a metric of the gateway, with the labels by which it is
/// selected and summed.
#[test]
#[ignore = "needs a Valkey: cargo xtask shared"]
fn series_of_dashboards_and_alerts_exist() {
    let (store, simulator) = (Store::start(), Simulator::start(scenario::answer).unwrap());
    let key = GATEWAY.file("key", "sk-upstream-0000");
    let gateway = start(&store, &simulator, &key.0);
    fs::remove_file(&key.0).unwrap();
    await_that("the store lends", || chat(&gateway, "honest", false) == 200);
    for (model, streams, status) in [
        ("honest", true, 200),
        ("reset-after-3", true, 200),
        ("status-500", false, 502),
        ("once", false, 200),
        ("once", false, 429),
        ("dear", false, 200),
        ("dear", false, 429),
    ] {
        assert_eq!(chat(&gateway, model, streams), status, "{model}");
    }
    let mut held = Connection::open(gateway.address());
    held.send(chat_request("stall-after-3", true).bytes());
    assert_eq!(held.head().unwrap().status, 200);
    assert_eq!(chat(&gateway, "honest", false), 429);
    drop(held);
    gateway.await_quiet();
    fs::write(gateway.config_path(), "colour = 1").unwrap();
    let count = |series| gateway.sum(series) > 0.0;
    await_that("the configuration is refused", || {
        count("sluicegate_config_reloads_total{outcome=\"refused\"}")
    });
    await_that("the key is missing", || {
        gateway.sum_of("sluicegate_key_refreshes_total", "outcome=\"failed\"") > 0.0
    });
    let metrics = Request::get("/metrics").send(gateway.admin.unwrap());
    let metrics = metrics.text();
    let expressions = expressions();
    assert!(expressions.len() > 30, "{expressions:?}");
    for expression in &expressions {
        for (name, labels) in series(expression) {
            let starts = [format!("{name} "), format!("{name}{{")];
            let is_of = |line: &&str| starts.iter().any(|start| line.starts_with(start));
            let samples: Vec<_> = metrics.lines().filter(is_of).collect();
            assert!(!samples.is_empty(), "no series {name}: {expression}");
            for label in labels {
                let has = |line: &&str| line.contains(&label);
                assert!(
                    samples.iter().any(has),
                    "no {label}: {expression}\n{samples:?}"
                );
            }
        }
    }
}

/// Starts a gateway with the packaged configuration, and with one more upstream, whose key is in a file,
/// and two more quotas. Its store of usage is beside the key.
fn start(store: &Store, simulator: &Simulator, key: &Path) -> Gateway {
    let usage = key.with_file_name("usage.db");
    let mut config = CONFIG.to_owned();
    for (address, replaced) in [
        (
            "postgres://sluicegate:sluicegate@postgres/sluicegate?sslmode=disable",
            format!("sqlite:{}", usage.display()),
        ),
        ("redis://valkey:6379", store.address()),
        ("http://simulator:9100/v1", simulator.base_url()),
    ] {
        assert!(config.contains(address), "{address}");
        config = config.replace(address, &replaced);
    }
    config += &format!(
        "\n[limits]\nconcurrency = 1\n[responses]\nkeep = \"60s\"\n\
         [[quotas]]\nmodels = [\"once\"]\nrequests_per_minute = 1\n\
         [[quotas]]\nmodels = [\"dear\"]\n\
         budget = {{ amount = \"0.000001\", currency = \"USD\", window = \"week\" }}\n\
         [[upstreams]]\nname = \"by-command\"\nprotocol = \"chat\"\nbase_url = \"{}\"\n\
         api_key = {{ command = [\"cat\", \"{}\"], refresh = \"1s\" }}\n",
        simulator.base_url(),
        key.display()
    );
    GATEWAY.configured(&config)
}

fn chat_request(model: &str, streams: bool) -> Request {
    let body = ask(Protocol::Chat, model, "Hello.", streams);
    Request::post(path(Protocol::Chat), &body).bearer(TEXT)
}

fn chat(gateway: &Gateway, model: &str, streams: bool) -> u16 {
    chat_request(model, streams).send(gateway.address()).status
}

/// The expressions of the dashboards, and the alerts as a whole.
fn expressions() -> Vec<String> {
    let mut found: Vec<_> = ALERTS
        .split("- alert:")
        .skip(1)
        .map(str::to_owned)
        .collect();
    for dashboard in DASHBOARDS {
        collect(&serde_json::from_str(dashboard).unwrap(), &mut found);
    }
    found
}

/// Adds the queries of Prometheus in a value.
fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, member)| match member {
            Value::String(text)
                if name == "expr" || name == "query" && text.starts_with("label_values") =>
            {
                found.push(text.clone());
            }
            member => collect(member, found),
        }),
        Value::Array(entries) => entries.iter().for_each(|entry| collect(entry, found)),
        _ => {}
    }
}

/// The series of an expression: the name of each one, and what its samples have to contain.
fn series(expression: &str) -> Vec<(&str, Vec<String>)> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let sums = between(expression, " by (", ")").into_iter();
    let sums: Vec<_> = sums
        .flat_map(|labels| labels.split(", "))
        .filter(|label| !OF_PROMETHEUS.contains(label))
        .map(|label| format!("{label}=\""))
        .collect();
    let places = expression
        .match_indices("sluicegate_")
        .map(|(at, _)| &expression[at..]);
    let series = places.map(|rest| {
        let name = rest.split(|c| !is_of_name(c)).next().unwrap_or_default();
        let selected = rest[name.len()..].strip_prefix('{');
        let selected = selected.and_then(|rest| rest.split('}').next());
        let matchers = selected.into_iter().flat_map(|all| all.split(", "));
        let matchers = matchers.filter_map(|matcher| {
            let label = matcher.split(|c| !is_of_name(c)).next()?;
            let is_exact = matcher[label.len()..].starts_with("=\"");
            let wanted = if is_exact {
                matcher.to_owned()
            } else {
                format!("{label}=\"")
            };
            (!OF_PROMETHEUS.contains(&label)).then_some(wanted)
        });
        (name, matchers.chain(sums.clone()).collect())
    });
    series.collect()
}

/// The parts of a text between these marks.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    let parts = text.split(from).skip(1);
    parts.filter_map(|rest| rest.split(to).next()).collect()
}
