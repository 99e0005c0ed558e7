//! The counters of a gateway that the judge checks.

use std::collections::BTreeMap;

/// The counters, by name and labels as they are printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics(BTreeMap<String, f64>);

/// The increments of one fault.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counted {
    /// Requests by status and code: `200`, `502 upstream_error`.
    pub(crate) requests: BTreeMap<String, f64>,
    /// Streams by outcome.
    pub(crate) streams: BTreeMap<String, f64>,
    /// Tokens by direction.
    pub(crate) tokens: BTreeMap<String, f64>,
}

impl Metrics {
    /// Parses them in Prometheus' text format.
    pub(crate) fn read(text: &str) -> Self {
        let counters = text.lines().filter_map(|line| line.rsplit_once(' '));
        let counters = counters.filter(|(name, _)| READ.iter().any(|read| name.starts_with(read)));
        Self(
            counters
                .map(|(name, value)| (name.to_owned(), value.parse().unwrap_or(f64::NAN)))
                .collect(),
        )
    }

    /// The number of panics.
    pub(crate) fn panics(&self) -> f64 {
        self.0.get(PANICS).copied().unwrap_or_default()
    }

    /// The difference to an older state.
    pub(crate) fn since(&self, old: &Self) -> Counted {
        let mut counted = Counted::default();
        for (name, value) in &self.0 {
            let added = value - old.0.get(name).unwrap_or(&0.0);
            if added != 0.0 {
                counted.add(name, added);
            }
        }
        counted
    }
}

impl Counted {
    /// Subtracts the counts of another request, which these counts include.
    ///
    /// # Panics
    /// If these counts do not include them.
    pub(crate) fn without(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        subtract(&mut rest.requests, &other.requests);
        subtract(&mut rest.streams, &other.streams);
        subtract(&mut rest.tokens, &other.tokens);
        rest
    }

    fn add(&mut self, name: &str, added: f64) {
        let (family, key) = match name.split('{').next() {
            Some(REQUESTS) => (
                &mut self.requests,
                format!("{} {}", label(name, "status"), label(name, "code")),
            ),
            Some(STREAMS) => (&mut self.streams, label(name, "outcome").to_owned()),
            Some(TOKENS) => (&mut self.tokens, label(name, "direction").to_owned()),
            _ => return,
        };
        *family.entry(key.trim_end().to_owned()).or_default() += added;
    }
}

fn subtract(counts: &mut BTreeMap<String, f64>, other: &BTreeMap<String, f64>) {
    for (name, count) in other {
        let rest = counts.entry(name.clone()).or_default();
        *rest -= count;
        assert!(*rest >= 0.0, "{name} was counted {count} times too few");
    }
    counts.retain(|_, count| *count != 0.0);
}

/// The value of a label; empty if it is absent.
fn label<'a>(name: &'a str, label: &str) -> &'a str {
    let value = name
        .split_once(&format!("{label}=\""))
        .and_then(|(_, rest)| rest.split('"').next());
    value.unwrap_or_default()
}

const REQUESTS: &str = "sluicegate_requests_total";
const STREAMS: &str = "sluicegate_streams_ended_total";
const TOKENS: &str = "sluicegate_tokens_total";
const PANICS: &str = "sluicegate_panics_total";
const READ: [&str; 4] = [REQUESTS, STREAMS, TOKENS, PANICS];

#[cfg(test)]
mod tests {
    use super::*;

    /// Earlier counts are not counted again, and counters are distinguished by the meaning of their
    /// labels.
    #[test]
    fn only_increments_are_counted() {
        let before =
            Metrics::read("sluicegate_requests_total{route=\"chat\",status=\"200\",code=\"\"} 2\n");
        let after = Metrics::read(
            "# TYPE sluicegate_requests counter\n\
             sluicegate_requests_total{route=\"chat\",status=\"200\",code=\"\"} 3\n\
             sluicegate_requests_total{route=\"chat\",status=\"502\",code=\"upstream_error\"} 1\n\
             sluicegate_requests_total{route=\"images\",status=\"502\",code=\"upstream_error\"} 1\n\
             sluicegate_streams_ended_total{protocol=\"chat\",outcome=\"timeout\"} 1\n\
             sluicegate_tokens_total{direction=\"input\"} 7\n\
             sluicegate_uptime_seconds 9\n\
             sluicegate_panics_total 4\n",
        );
        let map = |pairs: &[(&str, f64)]| {
            pairs
                .iter()
                .map(|(key, count)| ((*key).to_owned(), *count))
                .collect()
        };
        let counted = Counted {
            requests: map(&[("200", 1.0), ("502 upstream_error", 2.0)]),
            streams: map(&[("timeout", 1.0)]),
            tokens: map(&[("input", 7.0)]),
        };
        assert_eq!(after.since(&before), counted);
        assert_eq!((after.panics(), before.panics()), (4.0, 0.0));
    }
}
