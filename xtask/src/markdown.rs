//! Rows of Markdown tables.

use crate::outcome::Outcome;

/// A row with these cells, on a line.
pub(crate) fn row<const N: usize>(cells: [&str; N]) -> String {
    let cells = cells.map(|cell| cell.trim().replace('|', "\\|").replace('\n', " "));
    format!("| {} |\n", cells.join(" | "))
}

/// The cells of all rows of the tables in a page, without their heads; an error if a row has
/// another number of cells.
pub(crate) fn rows<const N: usize>(page: &str) -> Outcome<Vec<[String; N]>> {
    let mut rows = Vec::new();
    let mut is_head = true;
    for line in page.lines() {
        if line.starts_with("|---") || !line.starts_with('|') {
            is_head = !line.starts_with('|');
        } else if !is_head {
            // Bars in a cell are escaped: they are put aside as a character that no page has.
            let bare = line.replace("\\|", "\0");
            let cells = bare.trim_matches('|').split('|');
            let cells: Vec<_> = cells.map(|cell| cell.trim().replace('\0', "|")).collect();
            let row = cells.try_into();
            rows.push(row.map_err(|_| format!("a row needs {N} cells: {line:?}"))?);
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_they_are_written() {
        let first = row(["a|b", "", "`c`"]);
        assert_eq!(first, "| a\\|b |  | `c` |\n");
        let page = format!(
            "| no table |\n\n| x | y | z |\n|---|---|---|\n{first}{}\n| no table |\n",
            row([" 1", "2\n3", "4"])
        );
        let expected = [["a|b", "", "`c`"], ["1", "2 3", "4"]].map(|row| row.map(str::to_owned));
        assert_eq!(rows(&page), Ok(expected.to_vec()));
        assert_eq!(
            rows::<2>(&page),
            Err("a row needs 2 cells: \"| a\\\\|b |  | `c` |\"".to_owned())
        );
    }
}
