//! The results as tables.

use std::fmt::Write as _;

/// A measurement of each subject, and how it is published.
pub(crate) struct Metric {
    /// The measurement, with its unit.
    pub(crate) what: String,
    /// The goal.
    pub(crate) goal: Goal,
    /// The tables that have it.
    pub(crate) level: Level,
}

/// A requirement on the gateway.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// No requirement.
    None,
    /// The ratio to the bare proxy is at most this.
    Most(f64),
    /// The ratio to the bare proxy is at least this.
    Least(f64),
    /// The figure itself is at most this.
    Value(f64),
}

/// The tables that have a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// The first, of results.
    Full,
    /// The second, of details.
    Detail,
}

/// The figures of all subjects in one round.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    /// The bare proxy.
    pub(crate) bare: Option<f64>,
    /// The bare proxy with a runtime for each core, where it is measured.
    pub(crate) per_core: Option<f64>,
    /// The gateway.
    pub(crate) gateway: f64,
}

/// A row: one measurement of all subjects, and the ratio of gateway to bare proxy.
pub(crate) struct Line {
    metric: Metric,
    /// Medians over the rounds, in the order of the columns.
    values: [Option<f64>; 3],
    /// Minimum, median and maximum of the ratios of each round.
    ratios: Option<[f64; 3]>,
}

impl Metric {
    pub(crate) fn new(what: impl Into<String>, goal: Goal, level: Level) -> Self {
        Self {
            what: what.into(),
            goal,
            level,
        }
    }
}

impl Line {
    /// The row of some rounds.
    pub(crate) fn new(metric: Metric, rounds: &[Round]) -> Self {
        let median_of = |value: fn(&Round) -> Option<f64>| {
            spread(rounds.iter().filter_map(value)).map(|[_, median, _]| median)
        };
        Self {
            metric,
            values: [
                median_of(|round| round.bare),
                median_of(|round| round.per_core),
                median_of(|round| Some(round.gateway)),
            ],
            ratios: spread(
                rounds
                    .iter()
                    .filter_map(|round| Some(round.gateway / round.bare.filter(|of| *of != 0.0)?)),
            ),
        }
    }

    fn goal(&self) -> String {
        let ratio = self.ratios.map(|[_, median, _]| median);
        let (sign, bound, is_met) = match self.metric.goal {
            Goal::None => return String::new(),
            Goal::Most(most) => ("≤", format!("{most:.2}"), ratio.map(|ratio| ratio <= most)),
            Goal::Least(least) => (
                "≥",
                format!("{least:.2}"),
                ratio.map(|ratio| ratio >= least),
            ),
            Goal::Value(most) => ("≤", number(most), self.values[2].map(|value| value <= most)),
        };
        let verdict = if is_met == Some(true) {
            "met"
        } else {
            "missed"
        };
        format!("{sign} {bound}: {verdict}")
    }

    fn cells(&self) -> [String; 7] {
        let [bare, per_core, gateway] = self.values.map(|value| value.map(number));
        [
            self.metric.what.clone(),
            bare.unwrap_or_default(),
            per_core.unwrap_or_default(),
            gateway.unwrap_or_default(),
            self.ratios
                .map(|[_, median, _]| format!("{median:.2}"))
                .unwrap_or_default(),
            self.ratios
                .map(|[least, _, most]| format!("{least:.2} to {most:.2}"))
                .unwrap_or_default(),
            self.goal(),
        ]
    }
}

/// The rows of one level as a table that is legible in a terminal, too.
pub(crate) fn table(lines: &[Line], level: Level) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(
        lines
            .iter()
            .filter(|line| line.metric.level == level)
            .map(Line::cells),
    );
    let widths: [usize; 7] = std::array::from_fn(|column| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    });
    let mut out = String::new();
    for (at, row) in rows.iter().enumerate() {
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column {
                1..=4 => write!(out, "| {cell:>width$} "),
                _ => write!(out, "| {cell:width$} "),
            };
        }
        out.push_str("|\n");
        if at == 0 {
            for (column, width) in widths.iter().enumerate() {
                let end = if (1..=4).contains(&column) { ":" } else { "-" };
                let _ = write!(out, "|{}{end}", "-".repeat(width + 1));
            }
            out.push_str("|\n");
        }
    }
    out
}

fn number(value: f64) -> String {
    match value.abs() {
        ..9.995 => format!("{value:.2}"),
        ..99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Minimum, median and maximum; `None` if there is nothing.
fn spread(values: impl Iterator<Item = f64>) -> Option<[f64; 3]> {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    Some([
        *values.first()?,
        *values.get(values.len() / 2)?,
        *values.last()?,
    ])
}

const HEAD: [&str; 7] = [
    "figure",
    "bare",
    "bare per core",
    "gateway",
    "ratio",
    "spread",
    "goal",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn line(goal: Goal, rounds: &[(f64, f64)]) -> Line {
        let rounds: Vec<_> = rounds
            .iter()
            .map(|&(bare, gateway)| Round {
                bare: Some(bare),
                per_core: None,
                gateway,
            })
            .collect();
        Line::new(Metric::new("requests / s", goal, Level::Full), &rounds)
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let line = line(Goal::None, &[(1.0, 2.0), (10.0, 10.0), (100.0, 300.0)]);
        assert_eq!(line.values, [Some(10.0), None, Some(10.0)]);
        assert_eq!(line.ratios, Some([1.0, 2.0, 3.0]));
    }

    #[test]
    fn a_line_of_the_table_has_its_columns() {
        let text = table(&[line(Goal::Least(0.9), &[(1000.0, 950.0)])], Level::Full);
        let last = text.lines().last().unwrap_or_default();
        let columns: Vec<_> = last.split('|').map(str::trim).collect();
        assert_eq!(
            columns,
            [
                "",
                "requests / s",
                "1000",
                "",
                "950",
                "0.95",
                "0.95 to 0.95",
                "≥ 0.90: met",
                ""
            ]
        );
    }

    #[test]
    fn a_missed_goal_is_reported() {
        let goal = |goal| line(goal, &[(10.0, 12.5)]).goal();
        assert_eq!(goal(Goal::Most(1.25)), "≤ 1.25: met");
        assert_eq!(goal(Goal::Most(1.2)), "≤ 1.20: missed");
        assert_eq!(goal(Goal::Value(12.0)), "≤ 12.0: missed");
        assert_eq!(goal(Goal::None), "");
    }
}
