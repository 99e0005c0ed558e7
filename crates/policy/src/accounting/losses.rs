//! Reports failures of the journal of usage: in the log, in the metrics and to the probes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use accounting::JournalStats;

/// A kind of failure that the journal counts.
struct Kind {
    /// The value of the label `kind` of `sluicegate_journal_faults_total`.
    name: &'static str,
    /// True if usage is lost, and not only late.
    is_loss: bool,
    count: fn(&JournalStats) -> u64,
}

/// The counts that the log has.
#[derive(Debug, Default)]
pub(super) struct LossLog(Mutex<[u64; KINDS.len()]>);

impl LossLog {
    /// Logs the failures since the last time.
    pub(super) fn update(&self, stats: &JournalStats) {
        let error = || stats.last_failure.as_deref().unwrap_or_default();
        for (kind, logged) in KINDS.iter().zip(&mut *self.logged()) {
            let count = (kind.count)(stats);
            let more = count.saturating_sub(*logged);
            *logged = count.max(*logged);
            match (more, kind.is_loss) {
                (0, _) => {}
                (_, true) => tracing::error!(
                    kind = kind.name,
                    count = more,
                    error = error(),
                    "the journal has lost usage of earlier requests"
                ),
                (_, false) => tracing::error!(
                    kind = kind.name,
                    count = more,
                    error = error(),
                    "the journal of usage fails"
                ),
            }
        }
    }

    fn logged(&self) -> MutexGuard<'_, [u64; KINDS.len()]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the count of each kind of failure, for the metrics.
pub(super) fn counts(stats: &JournalStats) -> impl Iterator<Item = (&'static str, u64)> {
    KINDS.iter().map(|kind| (kind.name, (kind.count)(stats)))
}

/// Returns a sentence about lost usage for the probes, if there was a loss.
pub(super) fn sentence(stats: &JournalStats) -> Option<String> {
    let losses = KINDS.iter().filter(|kind| kind.is_loss);
    let losses: Vec<_> = losses
        .map(|kind| (kind.name, (kind.count)(stats)))
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    (!losses.is_empty()).then(|| {
        format!(
            "the journal has lost usage of earlier requests: {}",
            losses.join(", ")
        )
    })
}

const fn kind(name: &'static str, is_loss: bool, count: fn(&JournalStats) -> u64) -> Kind {
    Kind {
        name,
        is_loss,
        count,
    }
}

const KINDS: [Kind; 7] = [
    kind("damaged_entries", true, |stats| stats.corrupt),
    kind("missing_bytes", true, |stats| stats.missing_bytes),
    kind("long_entries", true, |stats| stats.too_long),
    // The request of an unfinished record was not admitted.
    kind("unfinished_bytes", false, |stats| stats.torn_bytes),
    kind("failed_reads", false, |stats| stats.read_failures),
    kind("failed_writes", false, |stats| stats.write_failures),
    kind("failed_syncs", false, |stats| stats.sync_failures),
];
