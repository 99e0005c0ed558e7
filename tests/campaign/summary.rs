//! The counts of a campaign, as a table.

use std::collections::BTreeMap;
use std::fmt;

use crate::judge::Verdict;

/// How often each kind of fault ended how.
#[derive(Default)]
pub(crate) struct Summary {
    kinds: BTreeMap<&'static str, BTreeMap<Verdict, u64>>,
    /// What is not as it is owed: the number of the fault, and what was found.
    pub(crate) broken: Vec<(u64, String)>,
}

impl Summary {
    /// Counts one fault.
    pub(crate) fn count(&mut self, kind: &'static str, verdict: Verdict) {
        *self.kinds.entry(kind).or_default().entry(verdict).or_default() += 1;
    }

    /// Takes in what another thread has counted.
    pub(crate) fn merge(&mut self, other: Self) {
        for (kind, verdicts) in other.kinds {
            for (verdict, count) in verdicts {
                *self.kinds.entry(kind).or_default().entry(verdict).or_default() += count;
            }
        }
        self.broken.extend(other.broken);
        self.broken.sort();
    }

    fn of(&self, verdict: Verdict) -> u64 {
        self.kinds.values().filter_map(|verdicts| verdicts.get(&verdict)).sum()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = COLUMNS.map(|(_, head)| head);
        writeln!(f, "| fault | {} |", heads.join(" | "))?;
        writeln!(f, "|---|{}", "---:|".repeat(heads.len()))?;
        for (kind, verdicts) in &self.kinds {
            let cells = COLUMNS.map(|(verdict, _)| verdicts.get(&verdict).copied().unwrap_or_default().to_string());
            writeln!(f, "| {kind} | {} |", cells.join(" | "))?;
        }
        let sums = COLUMNS.map(|(verdict, _)| self.of(verdict).to_string());
        writeln!(f, "| **all** | {} |\n", sums.join(" | "))?;
        let begun = self.of(Verdict::StreamWhole) + self.of(Verdict::StreamFailed);
        writeln!(
            f,
            "{begun} streams were begun and read to their end: each ended with exactly one terminal event and one \
             outcome.\nBroken promises (a second end, a false success, a leaked permit, task or connection, a secret in \
             sight): {}.",
            self.broken.len()
        )
    }
}

const COLUMNS: [(Verdict, &str); 6] = [
    (Verdict::StreamWhole, "stream whole"),
    (Verdict::StreamFailed, "stream failed"),
    (Verdict::Reply, "reply"),
    (Verdict::Refused, "status"),
    (Verdict::BrokenOff, "broken off"),
    (Verdict::Unseen, "client gone"),
];
