//! The page `vendors.md` has a row for each preset.

use crate::{GATEWAY, page};

#[test]
fn each_preset_has_a_row_with_its_protocols_and_address() {
    let output = GATEWAY.command().arg("presets").output().unwrap();
    let list = String::from_utf8(output.stdout).unwrap();
    let text = page("docs/vendors.md");
    let mut presets = 0;
    for line in list.lines() {
        let words: Vec<_> = line.split([' ', ',']).collect();
        let beginning = format!("| `{}` |", words[0]);
        let row = text.lines().find(|row| row.starts_with(&beginning));
        let row = row.unwrap_or_else(|| panic!("{} has no row", words[0]));
        let has_own_address = line.contains("base_url to be set");
        let is_shown = |word: &&str| {
            ["chat", "images", "messages", "responses"].contains(word)
                || (word.starts_with("http") && !has_own_address)
        };
        for word in words.iter().filter(|word| is_shown(word)) {
            assert!(
                row.contains(&format!("`{word}`")),
                "{word} of {line}\n{row}"
            );
        }
        presets += 1;
    }
    assert!(presets > 10, "{list}");
}
