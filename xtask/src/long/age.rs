//! Decides whether the result of a part is recent enough, by the number of commits that have changed its area since.

use super::page::Row;
use super::parts::Part;
use crate::history;
use crate::outcome::Outcome;

/// The problem of a part's row, in one sentence.
pub(super) fn problem(part: &Part, row: Option<&Row>) -> Outcome<Option<String>> {
    let Some(row) = row else { return Ok(Some(format!("'{}' has no row: {}", part.name, advice(part)))) };
    if row.result.starts_with("FAILED") {
        return Ok(Some(format!("'{}' failed on {}: {}", part.name, row.commit, advice(part))));
    }
    Ok(judge(part, row, history::changes_since(&row.commit, part.area)?))
}

/// Returns the problem if a row is too old for this number of commits in its area.
fn judge(part: &Part, row: &Row, commits: usize) -> Option<String> {
    (commits > part.most).then(|| {
        format!(
            "'{}' last ran on {}, and {commits} commits have changed its area since ({} are allowed): {}",
            part.name,
            row.commit,
            part.most,
            advice(part)
        )
    })
}

fn advice(part: &Part) -> String {
    format!("run `cargo xtask ci --tier long --only {}`", part.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: Part =
        Part { name: "soak", about: "", area: &["crates/sse", "Cargo.lock"], most: 1, run: || Ok(String::new()) };
    fn row(result: &str) -> Row {
        let [part, commit, date, minutes] = ["soak", "0123456", "2026-01-31", "1.0"].map(str::to_owned);
        Row { part, result: result.to_owned(), commit, date, minutes }
    }

    #[test]
    fn a_row_is_too_old_past_what_its_part_allows() {
        assert_eq!(judge(&PART, &row("passed"), 1), None);
        assert_eq!(
            judge(&PART, &row("passed"), 2).unwrap(),
            "'soak' last ran on 0123456, and 2 commits have changed its area since (1 are allowed): run `cargo \
             xtask ci --tier long --only soak`"
        );
    }

    #[test]
    fn a_missing_or_failed_row_is_a_problem() {
        assert!(problem(&PART, None).unwrap().unwrap().contains("'soak' has no row"));
        assert!(problem(&PART, Some(&row("FAILED: no"))).unwrap().unwrap().contains("'soak' failed on 0123456"));
    }
}
