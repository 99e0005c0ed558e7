//! Compares the distribution of outcomes for each kind of fault with the committed table: a gateway
//! that answers 502 whenever it is in doubt violates no single requirement.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use serde::Deserialize;

use crate::summary::{COLUMNS, Counts, Summary};

/// The committed table.
const EXPECTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/expected.toml");

/// The outcomes of a campaign, by kind of fault.
#[derive(Deserialize)]
struct Table {
    columns: Vec<String>,
    outcomes: BTreeMap<String, Counts>,
}

/// The committed counts, by kind.
///
/// # Errors
///
/// If there is no such table, or it has other columns.
pub(crate) fn committed() -> Result<BTreeMap<String, Counts>, String> {
    let text = fs::read_to_string(EXPECTED).map_err(|error| error.to_string());
    text.and_then(|text| parse(&text))
        .map_err(|error| format!("expected.toml: {error}; {AGAIN}"))
}

fn parse(text: &str) -> Result<BTreeMap<String, Counts>, String> {
    let table: Table = toml::from_str(text).map_err(|error| error.to_string())?;
    if table.columns == heads() {
        Ok(table.outcomes)
    } else {
        Err(format!("the columns are {:?}", table.columns))
    }
}

/// The counts of a campaign, as the table that [`committed`] reads.
pub(crate) fn text(seed: u64, summary: &Summary) -> String {
    let mut text = format!(
        "# cargo xtask campaign --seed {seed} --faults {} --write\ncolumns = {:?}\n\n[outcomes]\n",
        summary.faults(),
        heads(),
    );
    for (kind, counts) in summary.rows() {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{kind:?} = {counts:?}");
    }
    text
}

fn heads() -> [&'static str; COLUMNS.len()] {
    COLUMNS.map(|(_, head)| head)
}

/// Describes each share that differs by more than chance.
pub(crate) fn deviations(
    found: &BTreeMap<String, Counts>,
    committed: &BTreeMap<String, Counts>,
) -> Vec<String> {
    let mut deviations = Vec::new();
    for kind in found.keys().filter(|kind| !committed.contains_key(*kind)) {
        deviations.push(format!("{kind}: expected.toml has no such kind; {AGAIN}"));
    }
    let all = |table: &BTreeMap<String, Counts>| table.values().flatten().sum::<u64>();
    for (kind, committed_counts) in committed {
        let counts = found.get(kind).copied().unwrap_or_default();
        let (faults, committed_faults) = (counts.iter().sum(), committed_counts.iter().sum());
        deviations.extend(deviation(
            kind,
            "faults",
            [faults, all(found)],
            [committed_faults, all(committed)],
        ));
        for (place, (_, column)) in COLUMNS.iter().enumerate() {
            let committed = [committed_counts[place], committed_faults];
            deviations.extend(deviation(kind, column, [counts[place], faults], committed));
        }
    }
    deviations
}

/// The message for a share that differs, given as a part and its total.
fn deviation(kind: &str, column: &str, found: [u64; 2], committed: [u64; 2]) -> Option<String> {
    let share = |[part, whole]: [u64; 2]| part as f64 / whole as f64;
    let tolerance = tolerance(found, committed)?;
    let (found_share, owed) = (share(found), share(committed));
    ((found_share - owed).abs() > tolerance).then(|| {
        let [part, whole] = found;
        let [found, owed, tolerance] = [found_share, owed, tolerance].map(|share| 100.0 * share);
        format!(
            "{kind}, {column}: {found:.2} % ({part} of {whole}), expected {owed:.2} % within {tolerance:.2}; {AGAIN}"
        )
    })
}

/// The largest difference between two samples of the same share, except with a probability of one
/// in ten thousand million (Bernstein's inequality). Returns `None` if a sample is empty.
fn tolerance(one: [u64; 2], other: [u64; 2]) -> Option<f64> {
    let [part, whole] = [one[0] + other[0], one[1] + other[1]].map(|count| count as f64);
    if one[1] == 0 || other[1] == 0 {
        return None;
    }
    let share = part / whole;
    let trials = 1.0 / (1.0 / one[1] as f64 + 1.0 / other[1] as f64);
    let linear = DOUBT / (3.0 * trials);
    Some(linear + (linear * linear + 2.0 * share * (1.0 - share) * DOUBT / trials).sqrt())
}

/// The logarithm of two divided by that probability.
const DOUBT: f64 = 23.7;
/// The remedy for an intended deviation.
const AGAIN: &str = "if this is intended, rewrite expected.toml with `cargo xtask campaign --faults 1000000 --write`";

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"
        columns = ["stream whole", "stream failed", "reply", "status", "broken off", "client gone"]
        [outcomes]
        "answer reset" = [19, 41109, 15, 26373, 703, 0]
        "nothing" = [31104, 2971, 10662, 657, 14, 0]"#;

    fn table(rows: &[(&str, Counts)]) -> BTreeMap<String, Counts> {
        rows.iter()
            .map(|(kind, counts)| ((*kind).to_owned(), *counts))
            .collect()
    }

    #[test]
    fn the_table_is_read_row_by_row() {
        let read = table(&[
            ("answer reset", [19, 41109, 15, 26373, 703, 0]),
            ("nothing", [31104, 2971, 10662, 657, 14, 0]),
        ]);
        assert_eq!(parse(TABLE), Ok(read));
        for (from, to, wrong) in [
            ("columns", "rows", "columns"),
            ("stream whole", "whole", "columns"),
            ("41109", "\"many\"", "answer reset"),
            (" 703,", "", "answer reset"),
        ] {
            let error = parse(&TABLE.replace(from, to)).unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
        assert!(committed().unwrap().contains_key("answer reset"));
    }

    #[test]
    fn a_written_table_is_read_again() {
        let mut summary = Summary::default();
        summary.count("nothing", crate::judge::Verdict::Reply);
        summary.count("nothing", crate::judge::Verdict::Unseen);
        let written = text(7, &summary);
        assert_eq!(parse(&written), Ok(summary.rows()));
        assert!(written.contains("--seed 7 --faults 2 "), "{written}");
    }

    /// A tenth of the responses of a correct upstream become a 502: no requirement is violated, but
    /// the shares show it, with 900 faults of this kind among 20,000.
    #[test]
    fn answers_that_turn_into_refusals_are_noticed() {
        let committed = parse(TABLE).unwrap();
        let sample = |counts| {
            table(&[
                ("answer reset", [1, 829, 0, 531, 14, 0]),
                ("nothing", counts),
            ])
        };
        assert_eq!(
            deviations(&sample([627, 60, 215, 13, 0, 0]), &committed),
            [""; 0]
        );
        let found = deviations(&sample([527, 60, 215, 113, 0, 0]), &committed);
        assert!(found.iter().any(|line| {
            line.starts_with("nothing, status: 12.35 % (113 of 915), expected 1.45 % within")
        }));
        assert!(
            found.iter().all(|line| line.starts_with("nothing, st")),
            "{found:?}"
        );
    }

    /// A kind that the table lacks, and one that never occurred, are deviations too.
    #[test]
    fn kinds_are_compared_as_well() {
        let committed = parse(TABLE).unwrap();
        let mut found = parse(TABLE).unwrap();
        assert_eq!(deviations(&found, &committed), [""; 0]);
        let nothing = found.remove("nothing").unwrap();
        found.insert("another".to_owned(), nothing);
        let found = deviations(&found, &committed);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("another: expected.toml has no such kind"),
            "{found:?}"
        );
        assert!(
            found[1].starts_with("nothing, faults: 0.00 % (0 of 113627)"),
            "{found:?}"
        );
    }

    /// Two samples of one share, drawn a million times, never differ by more than the tolerance.
    #[test]
    fn chance_alone_is_no_deviation() {
        let dice = &mut testkit::dice::Dice::new(1, 1);
        for (share, trials) in [
            (0_usize, 900_u64),
            (1, 900),
            (14, 900),
            (300, 900),
            (500, 900),
            (500, 20),
            (999, 20_000),
        ] {
            for _ in 0..200 {
                let part = (0..trials).filter(|_| dice.among(0..1_000) < share).count() as u64;
                let committed = [share as u64 * 1_000, 1_000_000];
                assert_eq!(
                    deviation("nothing", "reply", [part, trials], committed),
                    None,
                    "{share} of 1000"
                );
            }
        }
    }

    /// The tolerance shrinks with the number of faults: two percentage points of a half at 20,000
    /// against a million.
    #[test]
    fn many_faults_allow_little() {
        let allowed =
            |faults| 100.0 * tolerance([faults / 2, faults], [500_000, 1_000_000]).unwrap();
        assert!((2.0..3.0).contains(&allowed(20_000)), "{}", allowed(20_000));
        assert!(allowed(100) > 30.0);
        assert_eq!(tolerance([0, 0], [1, 2]), None);
    }
}
