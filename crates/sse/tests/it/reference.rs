//! A simple reference decoder: the standard's algorithm, step by step, over a complete stream.

use crate::Seen;

/// Decodes a complete stream exactly as in WHATWG HTML §9.2.6.
pub(crate) fn decode(bytes: &[u8]) -> Seen {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let (mut seen, mut data, mut name, mut id) =
        (Vec::new(), String::new(), String::new(), String::new());
    for line in complete_lines(text) {
        if line.is_empty() {
            if let Some(data) = data.strip_suffix('\n') {
                let name = if name.is_empty() { "message" } else { &name };
                seen.push((name.to_owned(), data.to_owned(), id.clone()));
            }
            data.clear();
            name.clear();
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => data.extend([value, "\n"]),
            "event" => name = value.to_owned(),
            "id" if !value.contains('\0') => id = value.to_owned(),
            _ => {}
        }
    }
    seen
}

/// Splits text into terminated lines; text after the last line end is ignored.
fn complete_lines(text: &str) -> Vec<&str> {
    let (mut lines, mut rest) = (Vec::new(), text);
    while let Some(end) = rest.find(['\r', '\n']) {
        lines.push(&rest[..end]);
        rest = rest[end..].strip_prefix("\r\n").unwrap_or(&rest[end + 1..]);
    }
    lines
}
