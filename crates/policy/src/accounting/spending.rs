//! The money spent from budgets before this process began.

use std::collections::BTreeMap;
use std::time::Duration;

use accounting::{StoreError, UsageQuery};
use quota::{Budget, Claim, LimitId, Money};
use tokio::time::timeout;

use super::Accounting;
use crate::clock;
use crate::policy::{Policies, Policy};

impl Accounting {
    /// Reads the keys and the money already spent for the first time. With a budget, the store gets
    /// the journal entries of dead processes first: otherwise the budget would miss their spending.
    pub async fn begin(&self, policies: &Policies) -> Result<(), StoreError> {
        if policies.current().quotas.all_budgets().next().is_some() {
            self.await_journal().await?;
        }
        self.renew_keys(policies).await
    }

    async fn await_journal(&self) -> Result<(), StoreError> {
        let shipped = timeout(JOURNAL_TIMEOUT, self.journal.shipped()).await;
        shipped.map_err(|_| StoreError::Unreachable {
            store: "of this gateway".to_owned(),
            reason: format!(
                "it has not taken the journal of usage within {} s",
                JOURNAL_TIMEOUT.as_secs()
            ),
        })
    }

    /// Adds to each new budget the money that was spent from it in its current window.
    pub(super) async fn seed_budgets(&self, policies: &Policies) -> Result<(), StoreError> {
        let policy = policies.current();
        let budgets = policy.quotas.all_budgets().map(|(id, _)| id);
        self.retain_seeded(&budgets.collect());
        for (id, budget) in policy.quotas.all_budgets() {
            if self.is_seeded(id) {
                continue;
            }
            let sums = self.spent_in_window(budget).await?;
            // Another task may have been faster.
            if self.set_seeded(id) {
                add(&policy, policies, id, &sums);
            }
        }
        Ok(())
    }

    /// Returns the money spent in the current window, by key and model. Money reserved for requests
    /// that have not ended, or whose process has died, counts as spent.
    async fn spent_in_window(&self, budget: &Budget) -> Result<Vec<Spent>, StoreError> {
        let query = UsageQuery {
            from_ms: Some(budget.period(clock::timestamp()).start.as_millisecond()),
            by_key: true,
            by_model: true,
            ..UsageQuery::default()
        };
        let sums = self.store.usage(query).await?;
        let spent = sums.into_iter().map(|sum| {
            let totals = sum.totals;
            let nanos = totals
                .cost_nanos
                .saturating_add(totals.open_nanos)
                .saturating_add(totals.abandoned_nanos);
            Spent {
                key: sum.key.unwrap_or_default(),
                model: sum.model.unwrap_or_default(),
                money: Money::from_nanos(nanos),
            }
        });
        Ok(spent.collect())
    }
}

/// The money that a key has spent for a model.
struct Spent {
    key: String,
    model: String,
    money: Money,
}

/// Adds the sums to the budget with this identity, where it applies.
fn add(policy: &Policy, policies: &Policies, limit: LimitId, sums: &[Spent]) {
    let mut of_scopes: BTreeMap<&str, Money> = BTreeMap::new();
    for spent in sums {
        let budgets = policy.quotas.budgets(&spent.key, &spent.model);
        for claim in budgets.filter(|claim| claim.limit == limit) {
            let sum = of_scopes.entry(claim.scope).or_default();
            *sum = sum.saturating_add(spent.money);
        }
    }
    for (scope, spent) in of_scopes {
        policies.limiter().add_spent(Claim { limit, scope }, spent);
    }
}

/// The time for the journals of dead processes. Entries that are stored by then need not be stored
/// again at the next start.
const JOURNAL_TIMEOUT: Duration = Duration::from_secs(60);
