//! The results as a table.

use std::fmt::Write as _;

/// A row: one measurement of both, and their ratio.
pub(crate) struct Line {
    /// The measurement, with its unit.
    pub(crate) what: String,
    /// Medians over the rounds.
    pub(crate) bare: f64,
    /// As `bare`.
    pub(crate) gateway: f64,
    /// The median of the ratios of each round, gateway to bare.
    pub(crate) ratio: f64,
    /// The goal.
    pub(crate) goal: &'static str,
}

impl Line {
    /// The row of some rounds, each the bare proxy's number and the gateway's.
    pub(crate) fn new(what: String, goal: &'static str, rounds: &[(f64, f64)]) -> Self {
        Self {
            what,
            bare: median(rounds.iter().map(|(bare, _)| *bare)),
            gateway: median(rounds.iter().map(|(_, gateway)| *gateway)),
            ratio: median(rounds.iter().map(|(bare, gateway)| gateway / bare)),
            goal,
        }
    }
}

/// The rows as a table that is legible in a terminal, too.
pub(crate) fn table(lines: &[Line]) -> String {
    let width = lines
        .iter()
        .map(|line| line.what.chars().count())
        .max()
        .unwrap_or(0);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "| {:width$} | {:>10} | {:>10} | {:>6} | {:18} |",
        "", "bare", "gateway", "ratio", "goal"
    );
    let _ = writeln!(
        out,
        "|-{:-<width$}-|-{:->10}:|-{:->10}:|-{:->6}:|-{:-<18}-|",
        "", "", "", "", ""
    );
    for line in lines {
        let Line {
            what,
            bare,
            gateway,
            ratio,
            goal,
        } = line;
        let _ = writeln!(
            out,
            "| {what:width$} | {:>10} | {:>10} | {ratio:>6.2} | {goal:18} |",
            number(*bare),
            number(*gateway)
        );
    }
    out
}

fn number(value: f64) -> String {
    if value.abs() < 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_round_by_round() {
        let line = Line::new(
            "x".to_owned(),
            "",
            &[(1.0, 2.0), (10.0, 10.0), (100.0, 300.0)],
        );
        assert_eq!((line.bare, line.gateway, line.ratio), (10.0, 10.0, 2.0));
    }

    #[test]
    fn a_line_of_the_table_has_its_columns() {
        let text = table(&[Line::new(
            "requests / s".to_owned(),
            "≥ 0.9",
            &[(1000.0, 950.0)],
        )]);
        let last = text.lines().last().unwrap_or_default();
        let columns: Vec<_> = last.split('|').map(str::trim).collect();
        assert_eq!(
            columns,
            ["", "requests / s", "1000", "950", "0.95", "≥ 0.9", ""]
        );
    }
}
