//! Compares results with requirements.

use std::fmt::{Display, Write as _};

/// A row: one result.
pub(crate) struct Check {
    what: String,
    found: String,
    owed: String,
    /// `Some(true)` if the result meets its requirement; `None` for one without a requirement.
    pub(crate) holds: Option<bool>,
}

impl Check {
    /// A value with an upper limit.
    pub(crate) fn at_most(what: impl Into<String>, found: f64, most: f64, unit: &str) -> Self {
        let owed = format!("≤ {most} {unit}");
        Self {
            what: what.into(),
            found: format!("{} {unit}", number(found)),
            owed,
            holds: Some(found <= most),
        }
    }

    /// A value with a lower limit.
    pub(crate) fn at_least(what: impl Into<String>, found: f64, least: f64, unit: &str) -> Self {
        let owed = format!("≥ {least} {unit}");
        Self {
            what: what.into(),
            found: format!("{} {unit}", number(found)),
            owed,
            holds: Some(found >= least),
        }
    }

    /// A value that must be equal to this one.
    pub(crate) fn is<T: PartialEq + Display>(what: impl Into<String>, found: &T, owed: &T) -> Self {
        Self {
            what: what.into(),
            found: found.to_string(),
            owed: owed.to_string(),
            holds: Some(found == owed),
        }
    }

    /// A value without a requirement.
    pub(crate) fn info(what: impl Into<String>, found: impl Display) -> Self {
        Self {
            what: what.into(),
            found: found.to_string(),
            owed: String::new(),
            holds: None,
        }
    }
}

/// The checks as a table that is legible in a terminal, too.
pub(crate) fn table(checks: &[Check]) -> String {
    let mut rows = vec![[
        "".to_owned(),
        "measured".to_owned(),
        "required".to_owned(),
        "".to_owned(),
    ]];
    rows.extend(checks.iter().map(|check| {
        let verdict = check
            .holds
            .map_or("", |holds| if holds { "holds" } else { "FAILS" });
        [
            check.what.clone(),
            check.found.trim().to_owned(),
            check.owed.trim().to_owned(),
            verdict.to_owned(),
        ]
    }));
    let widths: [usize; 4] = std::array::from_fn(|at| {
        rows.iter()
            .map(|row| row[at].chars().count())
            .max()
            .unwrap_or_default()
    });
    let mut out = String::new();
    for (place, row) in rows.iter().enumerate() {
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(out, "| {cell:width$} ");
        }
        out.push_str("|\n");
        if place == 0 {
            for width in widths {
                let _ = write!(out, "|{:-<1$}", "", width + 2);
            }
            out.push_str("|\n");
        }
    }
    out
}

/// A number, rounded for people.
pub(crate) fn number(value: f64) -> String {
    if value.fract() == 0.0 || value.abs() >= 100.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_outside_their_bounds_are_reported() {
        assert_eq!(Check::at_most("a", 3.0, 3.0, "s").holds, Some(true));
        assert_eq!(Check::at_most("a", 3.1, 3.0, "s").holds, Some(false));
        assert_eq!(Check::at_least("a", 0.8, 0.9, "").holds, Some(false));
        assert_eq!(Check::is("a", &1, &1).holds, Some(true));
        assert_eq!(Check::info("a", 1).holds, None);
    }

    #[test]
    fn every_line_of_the_table_is_as_long() {
        let text = table(&[
            Check::at_most("streams", 31.25, 32.0, "KiB"),
            Check::info("β", 5),
        ]);
        let widths: Vec<_> = text.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths.len(), 4);
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
        assert!(
            text.contains("| streams | 31.25 KiB | ≤ 32 KiB | holds |"),
            "{text}"
        );
    }
}
