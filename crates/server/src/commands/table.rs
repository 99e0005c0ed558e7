//! Tables for people.

use serde_json::Value;

/// Returns a table with columns as wide as their longest cell.
pub(super) fn render(head: &[&str], rows: &[Vec<String>]) -> String {
    let head = head.iter().map(|&name| name.to_owned()).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&head).chain(rows).collect();
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths);
        let cells: Vec<_> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Returns a value as a cell: a list as its entries, and nothing as a dash. Control characters,
/// which a client may have put into the name of a model, do not reach the terminal.
pub(super) fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(entries) => {
            let entries: Vec<_> = entries.iter().map(cell).collect();
            entries.join(",")
        }
        other => other.to_string(),
    };
    let shown = text.chars().filter(|character| !character.is_control());
    shown.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let rows = [
            vec![cell(&json!("mobile")), cell(&json!(["text", "images"]))],
            vec![cell(&json!("\u{1b}[2Jé")), cell(&Value::Null)],
        ];
        assert_eq!(
            render(&["NAME", "SCOPES"], &rows),
            "NAME    SCOPES\nmobile  text,images\n[2Jé    -\n"
        );
    }
}
