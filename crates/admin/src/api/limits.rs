//! The state of the limits of this process, and of the parts that other gateways hold of them.

use lease::ShareInfo;
use quota::{Dimension, LeaseStatus, Level, Money, Status};
use schemars::JsonSchema;
use serde::Serialize;

use super::AdminRequest;
use super::failure::Failure;
use super::parameters::{Kind, Parameter};
use super::values::Amount;

/// The limits that are in use in this process.
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
    /// The requests that may be in progress, if they are limited.
    concurrency: Option<u64>,
    /// Requests in progress.
    in_use: u64,
    /// Requests per minute, if they are limited.
    requests: Option<Rate>,
    /// Tokens per minute, if they are limited.
    tokens: Option<Rate>,
    /// The money that may be spent in the current window, if there is a budget.
    budget: Option<Amount>,
    /// The money spent in the current window, if there is a budget.
    spent: Option<Amount>,
    /// The money reserved for requests in progress.
    reserved: Amount,
    /// The parts of the limit that the store lends, if the limit is shared with other gateways.
    lent: Vec<LentView>,
    /// True if the store lends nothing now: it does not answer, or may have forgotten what it has lent.
    degraded: bool,
}

/// The state of a part of a limit that the store lends.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LentPart")]
pub(crate) struct LentView {
    /// The part: `concurrency`, `requests_per_minute`, `tokens_per_minute` or `budget`.
    part: &'static str,
    /// The amount that this gateway holds.
    held: Quantity,
    /// The amount that the store could lend to any gateway, when it was asked last.
    free: Quantity,
    /// The gateways that have a part in it, with `replicas=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<Vec<HolderView>>,
}

/// The part that a gateway has in a limit.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Holder")]
pub(crate) struct HolderView {
    /// The name of the gateway: `state.replica`, or the name of its host and the number of its process.
    replica: String,
    /// The amount that it holds.
    held: Quantity,
    /// The amount for which its requests wait.
    waiting: Quantity,
}

/// A number of requests or tokens, or an amount of money as a decimal string.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum Quantity {
    /// Requests or tokens.
    Count(u64),
    /// Money.
    Money(Amount),
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

/// Answers with the state of the limits, and with the parts of all gateways if the request asks for
/// them: that asks the store.
pub(super) async fn status(admin: &AdminRequest<'_>) -> Result<LimitList, Failure> {
    let status = admin.state.limiter.status();
    let mut holders = match admin.parameters.get("replicas") {
        Some("true") => holders(admin, &status).await?,
        _ => Vec::new(),
    }
    .into_iter();
    let view = |status| LimitView::new(status, || holders.next());
    let limits = status.into_iter().map(view).collect();
    Ok(LimitList { limits })
}

/// Returns the gateways that have a part in each part of the limits that is lent.
async fn holders(
    admin: &AdminRequest<'_>,
    status: &[Status],
) -> Result<Vec<Vec<ShareInfo>>, Failure> {
    let Some(lease_client) = admin.state.limiter.lease_client() else {
        return Ok(Vec::new());
    };
    let parts = status.iter().flat_map(|status| &status.lent);
    let keys: Vec<String> = parts.map(|part| part.key.clone()).collect();
    let found = lease_client.holders(&keys).await;
    Ok(found?)
}

impl LimitView {
    /// `holders` returns the gateways that have a part in the next part that is lent.
    fn new(status: Status, mut holders: impl FnMut() -> Option<Vec<ShareInfo>>) -> Self {
        let lent = status.lent.into_iter();
        Self {
            limit: status.limit.to_string(),
            scope: status.scope.to_string(),
            concurrency: status.caps.concurrency,
            in_use: status.in_use,
            requests: status.remaining.requests.map(Rate::from),
            tokens: status.remaining.tokens.map(Rate::from),
            budget: status.caps.budget.map(|budget| budget.amount.into()),
            spent: status.spent.map(Amount::from),
            reserved: status.reserved.into(),
            lent: lent.map(|part| LentView::new(&part, holders())).collect(),
            degraded: status.is_degraded,
        }
    }
}

impl LentView {
    fn new(part: &LeaseStatus, holders: Option<Vec<ShareInfo>>) -> Self {
        let dimension = part.dimension;
        let of_store = |amount| Quantity::of(dimension, dimension.units(amount));
        let holder = |holder: ShareInfo| HolderView {
            replica: holder.replica,
            held: of_store(holder.held),
            waiting: of_store(holder.short),
        };
        Self {
            part: dimension.as_str(),
            held: Quantity::of(dimension, part.held),
            free: Quantity::of(dimension, part.free),
            replicas: holders.map(|holders| holders.into_iter().map(holder).collect()),
        }
    }
}

impl Quantity {
    fn of(dimension: Dimension, amount: u64) -> Self {
        match dimension {
            Dimension::Budget => {
                let nanos = i64::try_from(amount).unwrap_or(i64::MAX);
                Self::Money(Money::from_nanos(nanos).into())
            }
            Dimension::Concurrency | Dimension::Requests | Dimension::Tokens => Self::Count(amount),
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

/// The query parameters of the limits.
pub(super) const OF_LIMITS: [Parameter; 1] = [Parameter {
    name: "replicas",
    kind: Kind::Word(&["true", "false"]),
    description: "Also the gateways that have a part in each limit that is lent",
}];
