//! The most recent finished requests, and the explanation of one.

use std::sync::Arc;

use accounting::UsageRow;
use quota::Money;
use schemars::JsonSchema;
use serde::Serialize;
use telemetry::outcome::Outcome;
use telemetry::requests::history::MAX_REPORTS;
use telemetry::requests::report::RequestReport;

use super::AdminRequest;
use super::failure::Failure;
use super::parameters::{Kind, Parameter};
use super::rows::Row;

/// The most recent finished requests of this gateway.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RequestList {
    /// The requests, newest first.
    requests: Vec<Report>,
}

/// A report that others read as well.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub(crate) struct Report(
    #[serde(serialize_with = "shared")]
    #[schemars(with = "RequestReport")]
    pub(super) Arc<RequestReport>,
);

/// The explanation of a request.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Explanation {
    /// The explanation in sentences.
    text: Vec<String>,
    /// The report, if the request is one of the most recent ones of this gateway.
    request: Option<Report>,
    /// The usage of the request, if there is a store and has it.
    usage: Option<Row>,
}

/// Lists the most recent finished requests, newest first.
pub(super) async fn list(admin: &AdminRequest<'_>) -> Result<RequestList, Failure> {
    let parameters = &admin.parameters;
    let limit = parameters.number("limit", 1..=MAX_REPORTS)?.unwrap_or(100);
    let fits = |name: &str, value: Option<&str>| {
        parameters
            .get(name)
            .is_none_or(|wanted| value == Some(wanted))
    };
    let (reports, _) = admin.state.history.since(0);
    let newest_first = reports.into_iter().rev();
    let fitting = newest_first.filter(|report| {
        fits("key", Some(&report.key))
            && fits("model", report.model.as_deref())
            && fits("outcome", Some(report.outcome.as_str()))
    });
    let requests = fitting.take(limit).map(Report).collect();
    Ok(RequestList { requests })
}

/// Explains a request: from its report, if this gateway has answered it recently; otherwise from its
/// usage, which all gateways with the same store have.
pub(super) async fn explain(admin: &AdminRequest<'_>) -> Result<Explanation, Failure> {
    let id = admin.id;
    let report = admin.state.history.find(id);
    let usage = match &admin.state.accounting {
        Some(accounting) => accounting.store.request(id).await?,
        None => None,
    };
    let text = match (&report, &usage) {
        (Some(report), _) => report.explanation(),
        (None, Some(usage)) => explanation(usage),
        (None, None) => {
            let id = wire::truncate_for_error(id);
            return Err(Failure::not_found(format!(
                "id: no request '{id}' is among the last {MAX_REPORTS} of this gateway, and none is stored; \
                 requests without a valid key are only in the log"
            )));
        }
    };
    let (request, usage) = (report.map(Report), usage.map(Row::from));
    Ok(Explanation {
        text,
        request,
        usage,
    })
}

/// Explains a request by its usage: another gateway, or an earlier run of this one, has answered it.
fn explanation(row: &UsageRow) -> Vec<String> {
    let UsageRow {
        request_id,
        route,
        key,
        model,
        replica,
        reserved_tokens,
        ..
    } = row;
    let mut text = vec![
        format!("{request_id}: a request to {route} by the key '{key}' for the model '{model}'."),
        format!(
            "It was answered by the gateway '{replica}', or is older than the last {MAX_REPORTS} \
             requests: its limits, attempts and losses are known to that gateway alone."
        ),
        format!("Admitted; {reserved_tokens} tokens were reserved."),
    ];
    if let Some(target) = &row.target {
        text.push(format!("'{target}' has answered."));
    }
    let (input, output) = (row.tokens.input, row.tokens.output);
    let cost = match row.cost_nanos.map(Money::from_nanos) {
        Some(cost) => format!("cost: {cost}"),
        None => "no cost is known".to_owned(),
    };
    text.push(format!(
        "Counted tokens: {input} of the prompt outside of caches, {output} of the answer; {cost}."
    ));
    text.push(match row.state.as_str() {
        "closed" => format!("Ended as {}; status {}.", row.outcome, row.status),
        "abandoned" => "Its gateway ended before it.".to_owned(),
        _ => "It is in flight.".to_owned(),
    });
    text
}

fn shared<S: serde::Serializer>(
    report: &Arc<RequestReport>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    report.serialize(serializer)
}

/// The query parameters of the list.
pub(crate) const OF_REQUESTS: [Parameter; 4] = [
    Parameter {
        name: "key",
        kind: Kind::Text,
        description: "Only requests of the key with this name.",
    },
    Parameter {
        name: "model",
        kind: Kind::Text,
        description: "Only requests for this model, as the client has named it.",
    },
    Parameter {
        name: "outcome",
        kind: Kind::Word(Outcome::TEXTS),
        description: "Only requests with this outcome.",
    },
    Parameter {
        name: "limit",
        kind: Kind::Number,
        description: "The most requests to list, 1 to 1000. Default: 100.",
    },
];
