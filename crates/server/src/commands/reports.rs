//! `sluicegate usage`, `sluicegate limits` and `sluicegate explain`: reports of a running gateway.

use clap::Args;
use config::ConfigError;
use http::Method;
use serde_json::Value;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::admin_connection::Gateway;
use super::table::{cell, render};

// The question of a report. A doc comment here would replace the help of the command.
#[derive(Debug, Args)]
pub(super) struct UsageReport {
    #[command(flatten)]
    gateway: Gateway,
    /// Sum for each key, each model, or each pair of both.
    #[arg(long, value_name = "key,model", default_value = "key,model")]
    by: String,
    /// Sum for each interval of this length: minute, hour or day. Needs --from.
    #[arg(long, value_name = "INTERVAL")]
    per: Option<String>,
    /// The first moment, such as 2027-01-31T00:00:00Z.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// The moment after the last one.
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// Only usage of the key with this name.
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// Only usage of this model.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

impl UsageReport {
    pub(super) fn run(self) -> Result<(), ConfigError> {
        let path = self.path();
        self.gateway.call(Method::GET, &path, None, usage)
    }

    fn path(&self) -> String {
        let given = [
            ("per", &self.per),
            ("from", &self.from),
            ("to", &self.to),
            ("key", &self.key),
            ("model", &self.model),
        ];
        let mut query = Serializer::new(String::new());
        query.append_pair("by", &self.by);
        for (name, value) in given {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        format!("/admin/v1/usage?{}", query.finish())
    }
}

// The question of a report.
#[derive(Debug, Args)]
pub(super) struct LimitsReport {
    #[command(flatten)]
    gateway: Gateway,
    /// List what each gateway holds of the limits that are shared.
    #[arg(long)]
    replicas: bool,
}

impl LimitsReport {
    pub(super) fn run(self) -> Result<(), ConfigError> {
        let (path, table): (_, fn(&Value) -> String) = match self.replicas {
            true => ("/admin/v1/limits?replicas=true", holder_table),
            false => ("/admin/v1/limits", limit_table),
        };
        self.gateway.call(Method::GET, path, None, table)
    }
}

// The question of an explanation.
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// The id of the request: from the header x-request-id of its response, or from the log.
    #[arg(value_name = "REQUEST_ID")]
    id: String,
    #[command(flatten)]
    gateway: Gateway,
}

impl Explain {
    pub(super) fn run(self) -> Result<(), ConfigError> {
        let id: String = byte_serialize(self.id.as_bytes()).collect();
        let path = format!("/admin/v1/requests/{id}/explain");
        self.gateway.call(Method::GET, &path, None, explanation)
    }
}

fn explanation(answer: &Value) -> String {
    let lines = list(&answer["text"]).iter().filter_map(Value::as_str);
    lines.map(|line| format!("{line}\n")).collect()
}

fn usage(answer: &Value) -> String {
    let names = [
        "start", "key", "model", "requests", "input", "output", "pictures", "cost",
    ];
    let sums = list(&answer["usage"]);
    // Columns that the question did not ask for are absent.
    let is_present = |name: &&str| sums.iter().any(|sum| !sum[*name].is_null());
    let names: Vec<&str> = names.into_iter().filter(is_present).collect();
    let rows = sums.iter().map(|sum| {
        let cells = names.iter().map(|name| cell(&sum[name]));
        cells.collect()
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return "no usage\n".to_owned();
    }
    let head: Vec<String> = names.iter().map(|name| name.to_uppercase()).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    render(&head, &rows)
}

fn limit_table(answer: &Value) -> String {
    let of = |value: &Value, cap: &Value| match cap {
        Value::Null => cell(value),
        cap => format!("{} of {}", cell(value), cell(cap)),
    };
    let rate = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        rate => of(&rate["remaining"], &rate["limit"]),
    };
    let rows: Vec<_> = list(&answer["limits"])
        .iter()
        .map(|limit| {
            vec![
                cell(&limit["limit"]),
                cell(&limit["scope"]),
                of(&limit["in_use"], &limit["concurrency"]),
                rate(&limit["requests"]),
                rate(&limit["tokens"]),
                of(&limit["spent"], &limit["budget"]),
                cell(&limit["reserved"]),
            ]
        })
        .collect();
    if rows.is_empty() {
        return "nothing is in use\n".to_owned();
    }
    let head = [
        "LIMIT",
        "SCOPE",
        "IN USE",
        "REQUESTS LEFT",
        "TOKENS LEFT",
        "SPENT",
        "RESERVED",
    ];
    render(&head, &rows)
}

/// The table of the amounts that each gateway holds.
fn holder_table(answer: &Value) -> String {
    let mut rows = Vec::new();
    for limit in list(&answer["limits"]) {
        for part in list(&limit["lent"]) {
            for holder in list(&part["replicas"]) {
                rows.push(vec![
                    cell(&limit["limit"]),
                    cell(&limit["scope"]),
                    cell(&part["part"]),
                    cell(&holder["replica"]),
                    cell(&holder["held"]),
                    cell(&holder["waiting"]),
                ]);
            }
        }
    }
    if rows.is_empty() {
        return "nothing is lent\n".to_owned();
    }
    let head = ["LIMIT", "SCOPE", "PART", "REPLICA", "HELD", "WAITING"];
    render(&head, &rows)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[][..], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sums_and_limits_are_tables() {
        let sums = json!({"usage": [{
            "key": "mobile", "requests": 2, "input": 14, "output": 6, "pictures": 0, "cost": "0.10",
        }]});
        assert_eq!(
            usage(&sums),
            "KEY     REQUESTS  INPUT  OUTPUT  PICTURES  COST\n\
             mobile  2         14     6       0         0.10\n"
        );
        assert_eq!(usage(&json!({"usage": []})), "no usage\n");
        let limits = json!({"limits": [{
            "limit": "key *", "scope": "mobile", "concurrency": 8, "in_use": 1,
            "requests": {"limit": 10, "remaining": 9, "reset_ms": 6000}, "tokens": null,
            "budget": "5.00", "spent": "0.25", "reserved": "0.00", "degraded": false,
            "lent": [{"part": "concurrency", "held": 2, "free": 3, "replicas": [
                {"replica": "gate-1", "held": 2, "waiting": 0},
                {"replica": "gate-2", "held": 3, "waiting": 1},
            ]}, {"part": "budget", "held": "1.00", "free": "3.75"}],
        }]});
        assert_eq!(
            limit_table(&limits),
            "LIMIT  SCOPE   IN USE  REQUESTS LEFT  TOKENS LEFT  SPENT         RESERVED\n\
             key *  mobile  1 of 8  9 of 10        -            0.25 of 5.00  0.00\n"
        );
        assert_eq!(
            holder_table(&limits),
            "LIMIT  SCOPE   PART         REPLICA  HELD  WAITING\n\
             key *  mobile  concurrency  gate-1   2     0\n\
             key *  mobile  concurrency  gate-2   3     1\n"
        );
        assert_eq!(holder_table(&json!({"limits": []})), "nothing is lent\n");
    }
}
