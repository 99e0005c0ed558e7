//! Checks the language of comments: how documentation begins, and which sources it cites.

/// The problems in the comments of a Rust file, each with its place.
pub(super) fn problems(name: &str, text: &str) -> Vec<String> {
    if EXEMPT.iter().any(|folder| name.starts_with(folder)) {
        return Vec::new();
    }
    let (mut found, mut before) = (Vec::new(), "");
    for (line, number) in text.lines().map(str::trim_start).zip(1..) {
        let marker = MARKERS.into_iter().find(|marker| line.starts_with(marker)).unwrap_or_default();
        let is_opening = !marker.is_empty() && marker != before;
        if is_opening && let Some(word) = question(&line[marker.len()..]) {
            found.push(format!("{name}:{number}: documentation begins with {word:?}; say what the item is or does"));
        }
        before = marker;
    }
    found
}

/// The word with which documentation begins, if it is one that leaves the reader guessing what the item is.
fn question(documentation: &str) -> Option<&'static str> {
    let first = documentation.split_whitespace().next()?;
    QUESTIONS.into_iter().find(|question| *question == first)
}

const MARKERS: [&str; 2] = ["//! ", "/// "];
const QUESTIONS: [&str; 7] = ["What", "Whether", "Who", "Whom", "Whose", "How", "Which"];

/// Folders whose documentation still has to be rewritten.
const EXEMPT: [&str; 1] = ["crates/image-engine/"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_says_what_an_item_is() {
        let text = "//! How it is done.\n\n/// A size.\n/// What is more: in bytes.\nstruct A;\n\n/// Whether it is open.\nfn a() {}\n";
        assert_eq!(
            problems("crates/sse/src/lib.rs", text),
            [
                "crates/sse/src/lib.rs:1: documentation begins with \"How\"; say what the item is or does",
                "crates/sse/src/lib.rs:7: documentation begins with \"Whether\"; say what the item is or does",
            ]
        );
        assert_eq!(problems("crates/image-engine/src/lib.rs", text), Vec::<String>::new());
        assert_eq!(
            problems("crates/sse/src/lib.rs", "/// However it is done.\n// What is it?\n"),
            Vec::<String>::new()
        );
    }
}
