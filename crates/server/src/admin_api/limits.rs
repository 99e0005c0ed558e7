//! The state of the limits of this process.

use http::StatusCode;
use quota::{Level, Status};
use schemars::JsonSchema;
use serde::Serialize;

use super::parameters::Parameters;
use super::values::Amount;
use super::{Admin, Answer, json};

/// The limits of which something is in use in this process.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LimitList {
    /// The limits, by name and scope.
    limits: Vec<LimitView>,
}

/// The state of a limit in one of its scopes.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Limit")]
pub(crate) struct LimitView {
    /// The name of the limit.
    limit: String,
    /// The name of the key, if the limit counts each key by itself; otherwise empty.
    scope: String,
    /// Requests in progress.
    in_use: u64,
    /// Requests per minute, if they are limited.
    requests: Option<Rate>,
    /// Tokens per minute, if they are limited.
    tokens: Option<Rate>,
    /// The money spent in the current window, if there is a budget.
    spent: Option<Amount>,
    /// The money reserved for requests in progress.
    reserved: Amount,
}

/// The state of a limit per minute.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Rate {
    /// The limit per minute.
    limit: u64,
    /// The rest that can be used at once.
    remaining: u64,
    /// The time until nothing of the limit is in use, in milliseconds.
    reset_ms: u64,
}

/// Answers with the state of the limits.
pub(super) fn status(admin: &Admin<'_>) -> Answer {
    Parameters::parse(admin.query, &[])?;
    let status = admin.state.limiter.status();
    let limits = status.into_iter().map(LimitView::from).collect();
    json(StatusCode::OK, &LimitList { limits })
}

impl From<Status> for LimitView {
    fn from(status: Status) -> Self {
        Self {
            limit: status.limit.to_string(),
            scope: status.scope.to_string(),
            in_use: status.in_use,
            requests: status.remaining.requests.map(Rate::from),
            tokens: status.remaining.tokens.map(Rate::from),
            spent: status.spent.map(Amount::from),
            reserved: status.reserved.into(),
        }
    }
}

impl From<Level> for Rate {
    fn from(level: Level) -> Self {
        Self {
            limit: level.limit,
            remaining: level.remaining,
            reset_ms: level.reset.div_ceil(1000),
        }
    }
}
