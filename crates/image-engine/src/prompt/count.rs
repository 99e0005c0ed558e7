//! Numbers in words and digits, and plurals.

use super::lexicon::{COUNTS, PLURALS, meaning};

/// The number that a word means.
pub(super) fn count(word: &str) -> Option<u32> {
    if word.len() <= 18 && word.bytes().all(|byte| byte.is_ascii_digit()) && !word.is_empty() {
        return Some(word.parse::<u64>().map_or(u32::MAX, |count| count.min(u64::from(u32::MAX)) as u32));
    }
    meaning(COUNTS, word)
}

/// The first form of a word that a table knows, and whether the word was a plural.
pub(super) fn singular<T>(word: &str, table: impl Fn(&str) -> Option<T>) -> Option<(T, bool)> {
    singulars(word).into_iter().find_map(|(form, plural)| Some((table(&form)?, plural)))
}

/// The singulars that a word can have, and whether it is a plural then.
fn singulars(word: &str) -> Vec<(String, bool)> {
    let endings = [("'s", ""), ("ies", "y"), ("ves", "f"), ("es", ""), ("s", "")];
    let regular =
        endings.iter().filter_map(|(plural, end)| Some((format!("{}{end}", word.strip_suffix(plural)?), true)));
    let irregular = meaning(PLURALS, word).map(|singular| (singular.to_owned(), true));
    std::iter::once((word.to_owned(), false)).chain(regular).chain(irregular).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read() {
        for (word, expected) in [("7", Some(7)), ("dozen", Some(12)), ("a", Some(1)), ("cat", None), ("", None)] {
            assert_eq!(count(word), expected, "{word}");
        }
        assert_eq!(count("999999999999999999"), Some(u32::MAX));
        assert_eq!(count("9999999999999999999999"), None);
    }

    #[test]
    fn plurals_lead_to_their_singular() {
        for (word, singular) in [("cherries", "cherry"), ("boxes", "box"), ("cats", "cat"), ("children", "person")] {
            assert!(singulars(word).contains(&(singular.to_owned(), true)), "{word}");
        }
    }
}
