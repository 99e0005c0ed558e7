//! The table of the figures.

use crate::machine;

/// A figure with its goal.
pub(crate) struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
    goal: Option<Goal>,
}

/// A bound of a figure.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    AtMost(f64),
}

impl Figure {
    pub(crate) fn of(name: &'static str, value: f64, unit: &'static str) -> Self {
        Self {
            name,
            value,
            unit,
            goal: None,
        }
    }

    pub(crate) fn goal(mut self, goal: Goal) -> Self {
        self.goal = Some(goal);
        self
    }

    fn line(&self) -> String {
        let Self {
            name, value, unit, ..
        } = self;
        let verdict = self.goal.map_or_else(String::new, |Goal::AtMost(most)| {
            let verdict = if *value <= most { "met" } else { "missed" };
            format!("≤ {}: {verdict}", number(most))
        });
        format!("| {name} | {} {unit} | {verdict} |\n", number(*value))
    }
}

pub(crate) fn table(figures: &[Figure]) -> String {
    let lines = figures.iter().map(Figure::line);
    HEAD.to_owned() + &lines.collect::<String>()
}

pub(crate) fn page(table: &str) -> String {
    format!(
        "# Lent limits\n\nWritten by `cargo xtask bench limits --write`: gateways in front of an upstream on the same \
         machine, whose quota of\nconcurrent requests, requests and tokens per minute is lent by a Valkey on a Unix \
         socket. The CPU times are those of the\ngateway alone, at 64 connections; gateways of each kind take turns, and \
         the difference of two medians is as rough as the\nmachine is busy. In the rows that begin with \"tight\", \
         clients of two gateways ask for five times as much concurrency as\nthere is; the goal is one exchange for each \
         round trip to the store.\n\nMachine: {}.\n\n## Table\n\n{table}",
        machine::kind()
    )
}

/// Three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        small if small < 1.0 => format!("{value:.4}"),
        middle if middle < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

const HEAD: &str = "| figure | value | goal |\n|---|---:|---|\n";
