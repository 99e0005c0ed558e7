//! The store of keys and usage: reads the keys again when they have changed, and journals each
//! request that takes a permit.

mod losses;
pub mod open;
mod spending;

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use accounting::{
    AccountingStore, Closed, Journal, JournalOptions, LiveKeys, Opened, StoreError, TokenCounts,
};
use config::ConfigError;
use config::state::State;
use quota::LimitId;
use tokio::time::{sleep, timeout};

use crate::clock;
use crate::limit::{Charge, Permit};
use crate::policy::Policies;

/// The store, and the journal of this process.
pub struct Accounting {
    /// The store.
    pub store: Arc<dyn AccountingStore>,
    journal: Journal,
    /// The name of this process in rows of usage.
    replica: String,
    /// The interval at which changed keys are looked for.
    renewal: Duration,
    /// Held while keys are read and replaced, so that older ones never replace newer ones.
    renewing: tokio::sync::Mutex<()>,
    /// The number of refused entries that the log has.
    logged_refusals: AtomicU64,
    losses: losses::LossLog,
    /// The budgets that include the money spent before this process began.
    seeded: Mutex<HashSet<LimitId>>,
}

/// The entry of a request in the journal, from its admission to its end.
pub struct JournalEntry {
    accounting: Arc<Accounting>,
    request_id: String,
    /// The usage that the request is charged for, once it is known.
    pub charge: Charge,
}

/// The end of a request, for the journal.
pub struct Ended<'a> {
    /// The outcome of the request.
    pub outcome: &'a str,
    /// The status of the response.
    pub status: u16,
    /// The target that answered, if one did.
    pub target: Option<&'a str>,
}

impl Accounting {
    /// Opens the store of a configuration, and the journal for it. Returns `None` if the
    /// configuration has none.
    pub async fn open(state: &State) -> Result<Option<Self>, ConfigError> {
        let Some(place) = state.store().map_err(ConfigError::one)? else {
            return Ok(None);
        };
        let options = JournalOptions::new(state.journal(&place).map_err(ConfigError::one)?);
        let store = open::open_patiently(&place).await?;
        let journal = Journal::open(&options, Arc::clone(&store)).map_err(|error| {
            let folder = options.folder.display();
            ConfigError::one(format!("state.journal: cannot open {folder}: {error}"))
        })?;
        Ok(Some(Self {
            store,
            journal,
            replica: state.replica(),
            renewal: state.renewal,
            renewing: tokio::sync::Mutex::default(),
            logged_refusals: AtomicU64::new(0),
            losses: losses::LossLog::default(),
            seeded: Mutex::default(),
        }))
    }

    /// Returns the keys of the store.
    pub async fn keys(&self) -> Result<LiveKeys, StoreError> {
        self.store.keys().await
    }

    /// Journals the admission of a request, before any model is asked. Without its entry it must
    /// not be served.
    pub fn opened(
        self: &Arc<Self>,
        request: &Admitted<'_>,
        permit: &Permit,
    ) -> io::Result<JournalEntry> {
        let most = permit.most();
        // The second of the admission decides on its window, in the rows as in the limits.
        let latest = permit.admitted_ms().saturating_add(999);
        self.journal.opened(&Opened {
            request_id: request.id.to_owned(),
            at_ms: clock::unix_ms().min(latest),
            replica: self.replica.clone(),
            run: self.journal.run().to_owned(),
            key: request.key.to_owned(),
            route: request.route.to_owned(),
            model: request.model.to_owned(),
            reserved_tokens: most.tokens,
            reserved_nanos: most.money.nanos(),
        })?;
        Ok(JournalEntry {
            accounting: Arc::clone(self),
            request_id: request.id.to_owned(),
            charge: Charge::default(),
        })
    }

    /// Looks for changed keys, forever, and passes them to the policy. Reads the money spent from new
    /// budgets, and from all of them when the lease store has lost its data.
    pub async fn watch_keys(self: Arc<Self>, policies: Arc<Policies>) {
        let mut is_unreachable = false;
        loop {
            tokio::select! {
                () = sleep(self.renewal) => {}
                // It may have other budgets.
                () = policies.replaced() => {}
                () = policies.limiter().lost_data() => self.retain_seeded(&HashSet::new()),
            }
            let renewed = self.renew_keys(&policies).await;
            let failure = match renewed {
                Err(error) => Some(error.to_string()),
                Ok(()) => self.unwritable(),
            };
            match &failure {
                Some(error) if !is_unreachable => tracing::error!(
                    error,
                    "the accounting store is away: keys stay as they are, and usage waits in the journal"
                ),
                None if is_unreachable => tracing::info!("the accounting store is back"),
                _ => {}
            }
            is_unreachable = failure.is_some();
            self.log_refusals();
            self.losses.update(&self.journal.stats());
            self.journal.probe();
        }
    }

    /// Returns the number of entries of usage that the store will never take.
    pub fn refusals(&self) -> u64 {
        self.journal.stats().refused
    }

    /// Returns the number of failures of the journal by kind.
    pub fn journal_faults(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let stats = self.journal.stats();
        losses::counts(&stats).collect::<Vec<_>>().into_iter()
    }

    /// Returns why no request is served, if its usage could not be stored: the journal cannot be
    /// written.
    pub fn journal_failure(&self) -> Option<String> {
        let stats = self.journal.stats();
        let reason = || stats.last_failure.unwrap_or_default();
        stats.is_unwritable.then(reason)
    }

    /// Returns a sentence about usage that was lost since the start, if there was a loss.
    pub fn lost_usage(&self) -> Option<String> {
        losses::sentence(&self.journal.stats())
    }

    /// Logs how many entries were set aside since the last time.
    fn log_refusals(&self) {
        let stats = self.journal.stats();
        let logged = self
            .logged_refusals
            .fetch_max(stats.refused, Ordering::Relaxed);
        let entries = stats.refused.saturating_sub(logged);
        if entries > 0 {
            tracing::error!(
                entries,
                error = stats.last_refusal.unwrap_or_default(),
                file = %self.journal.refused_file().display(),
                "the accounting store refuses some usage, which was set aside"
            );
        }
    }

    /// Returns why the store takes no usage, if it takes none: one that is read-only or full can
    /// still be read.
    fn unwritable(&self) -> Option<String> {
        let stats = self.journal.stats();
        let reason = || stats.last_failure.unwrap_or_default();
        stats.store_is_away.then(reason)
    }

    /// Reads the keys if they have changed. Adds the money already spent to new budgets.
    pub async fn renew_keys(&self, policies: &Policies) -> Result<(), StoreError> {
        let _renewing = self.renewing.lock().await;
        if self.store.epoch().await? != policies.current().keys.epoch() {
            let keys = self.store.keys().await?;
            let ended = self.without_streams(policies, &keys).await?;
            policies.replace_stored_keys(keys, &ended);
        }
        self.seed_budgets(policies).await
    }

    /// Returns the ids of the keys that are not among newer ones because they were revoked together
    /// with their streams.
    async fn without_streams(
        &self,
        policies: &Policies,
        newer: &LiveKeys,
    ) -> Result<Vec<String>, StoreError> {
        let policy = policies.current();
        let mut ended = Vec::new();
        for id in policy.keys.stored().missing_in(newer) {
            let key = self.store.key(&id).await?;
            if key.is_some_and(|key| key.ends_streams) {
                ended.push(id);
            }
        }
        Ok(ended)
    }

    /// Deletes rows of usage older than `age`, now and each hour.
    pub async fn delete_old_rows(self: Arc<Self>, age: Duration) {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        loop {
            match self
                .store
                .retain(clock::unix_ms().saturating_sub(age))
                .await
            {
                Ok(0) => {}
                Ok(rows) => tracing::info!(rows, "old rows of usage deleted"),
                Err(error) => tracing::error!(%error, "old rows of usage cannot be deleted"),
            }
            sleep(RETENTION_INTERVAL).await;
        }
    }

    /// Sends the journaled entries to the store. The next process with the same journal sends the
    /// entries that the store does not take in time.
    pub async fn finish(&self) {
        let finished = timeout(FINISH_TIMEOUT, self.journal.finish()).await;
        self.log_refusals();
        self.losses.update(&self.journal.stats());
        if finished.is_err() {
            tracing::warn!(
                "the accounting store is away: the next start sends the rest of the usage"
            );
        }
    }

    /// Forgets the budgets that are not among these.
    fn retain_seeded(&self, budgets: &HashSet<LimitId>) {
        self.seeded().retain(|budget| budgets.contains(budget));
    }

    fn is_seeded(&self, budget: LimitId) -> bool {
        self.seeded().contains(&budget)
    }

    /// Notes that a budget is seeded. Returns true if it was not yet.
    fn set_seeded(&self, budget: LimitId) -> bool {
        self.seeded().insert(budget)
    }

    fn seeded(&self) -> MutexGuard<'_, HashSet<LimitId>> {
        self.seeded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that was admitted.
pub struct Admitted<'a> {
    /// The id of the request.
    pub id: &'a str,
    /// The name of the key.
    pub key: &'a str,
    /// The endpoint.
    pub route: &'a str,
    /// The model as the client names it.
    pub model: &'a str,
}

impl JournalEntry {
    /// Journals the end of the request.
    pub fn close(self, ended: &Ended<'_>) {
        let Charge {
            usage,
            pictures,
            cost,
            missing_prices,
        } = self.charge;
        let cached = usage.cache_read.saturating_add(usage.cache_write);
        self.accounting.journal.closed(Closed {
            request_id: self.request_id,
            at_ms: clock::unix_ms(),
            outcome: ended.outcome.to_owned(),
            status: ended.status,
            target: ended.target.map(str::to_owned),
            tokens: TokenCounts {
                input: usage.input.saturating_sub(cached),
                cache_read: usage.cache_read,
                cache_write: usage.cache_write,
                cache_write_1h: usage.cache_write_1h,
                audio_input: usage.audio_input,
                image_input: usage.image_input,
                output: usage.output,
                reasoning: usage.reasoning,
                audio_output: usage.audio_output,
                image_output: usage.image_output,
            },
            pictures,
            cost_nanos: cost.map(quota::Money::nanos),
            service_tier: usage.service_tier.special().map(str::to_owned),
            missing_prices: (!missing_prices.is_empty()).then(|| missing_prices.to_string()),
        });
    }
}

impl std::fmt::Debug for JournalEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("JournalEntry")
            .field(&self.request_id)
            .finish()
    }
}

/// The time for the rest of the journal at the end of the process.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);
const RETENTION_INTERVAL: Duration = Duration::from_secs(3600);
