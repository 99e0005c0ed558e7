//! The counts of a campaign, as a table.

use std::collections::BTreeMap;
use std::fmt;

use crate::judge::Verdict;

/// The number of faults of each kind with each outcome.
#[derive(Default)]
pub(crate) struct Summary {
    kinds: BTreeMap<&'static str, BTreeMap<Verdict, u64>>,
    /// Violations: the number of the fault, and the message.
    pub(crate) broken: Vec<(u64, String)>,
}

impl Summary {
    /// Counts one fault.
    pub(crate) fn count(&mut self, kind: &'static str, verdict: Verdict) {
        *self
            .kinds
            .entry(kind)
            .or_default()
            .entry(verdict)
            .or_default() += 1;
    }

    /// Adds the counts of another thread.
    pub(crate) fn merge(&mut self, other: Self) {
        for (kind, verdicts) in other.kinds {
            for (verdict, count) in verdicts {
                *self
                    .kinds
                    .entry(kind)
                    .or_default()
                    .entry(verdict)
                    .or_default() += count;
            }
        }
        self.broken.extend(other.broken);
        self.broken.sort();
    }

    fn of(&self, verdict: Verdict) -> u64 {
        self.kinds
            .values()
            .filter_map(|verdicts| verdicts.get(&verdict))
            .sum()
    }
}

/// The number of faults with each outcome, in the order of [`COLUMNS`].
pub(crate) type Counts = [u64; COLUMNS.len()];

impl Summary {
    /// The total number of faults.
    pub(crate) fn faults(&self) -> u64 {
        self.rows().values().flatten().sum::<u64>() + self.broken.len() as u64
    }

    /// The counts of each kind of fault.
    pub(crate) fn rows(&self) -> BTreeMap<String, Counts> {
        let counts = |verdicts: &BTreeMap<Verdict, u64>| {
            COLUMNS.map(|(verdict, _)| verdicts.get(&verdict).copied().unwrap_or_default())
        };
        self.kinds
            .iter()
            .map(|(kind, verdicts)| ((*kind).to_owned(), counts(verdicts)))
            .collect()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = COLUMNS.map(|(_, head)| head);
        writeln!(f, "| fault | {} |", heads.join(" | "))?;
        writeln!(f, "|---|{}", "---:|".repeat(heads.len()))?;
        for (kind, counts) in self.rows() {
            writeln!(
                f,
                "| {kind} | {} |",
                counts.map(|count| count.to_string()).join(" | ")
            )?;
        }
        let sums = COLUMNS.map(|(verdict, _)| self.of(verdict).to_string());
        writeln!(f, "| **all** | {} |\n", sums.join(" | "))?;
        let begun = self.of(Verdict::StreamWhole) + self.of(Verdict::StreamFailed);
        writeln!(
            f,
            "{begun} streams were read to their end. Each had exactly one terminal event and one outcome.\n\
             Violations (a second terminal event, a false success, a leaked permit, task or connection, or a disclosed \
             secret): {}.",
            self.broken.len()
        )
    }
}

/// The outcomes, with their headings in the table.
pub(crate) const COLUMNS: [(Verdict, &str); 6] = [
    (Verdict::StreamWhole, "stream whole"),
    (Verdict::StreamFailed, "stream failed"),
    (Verdict::Reply, "reply"),
    (Verdict::Refused, "status"),
    (Verdict::BrokenOff, "broken off"),
    (Verdict::Unseen, "client gone"),
];
