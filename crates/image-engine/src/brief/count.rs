//! Numbers in words and digits.

/// The number that a word tells. More than can be drawn is cut by the reader.
pub(super) fn count(word: &str) -> Option<u32> {
    if word.len() <= 18 && word.bytes().all(|byte| byte.is_ascii_digit()) && !word.is_empty() {
        return Some(word.parse::<u64>().map_or(u32::MAX, |count| count.min(u64::from(u32::MAX)) as u32));
    }
    Some(match word {
        "a" | "an" | "one" | "single" | "lone" => 1,
        "two" | "pair" | "couple" | "twin" | "both" => 2,
        "three" | "trio" => 3,
        "four" => 4,
        "few" | "five" => 5,
        "six" => 6,
        "seven" | "several" => 7,
        "eight" => 8,
        "nine" => 9,
        "ten" => 10,
        "eleven" => 11,
        "twelve" | "dozen" | "dozens" => 12,
        "thirteen" => 13,
        "fourteen" => 14,
        "fifteen" => 15,
        "many" | "sixteen" => 16,
        "twenty" => 20,
        "thirty" => 30,
        "hundred" | "hundreds" | "thousand" | "thousands" | "countless" => 60,
        _ => return None,
    })
}

/// The forms of a noun that may stand in the lexicon, with whether the word was a plural.
pub(super) fn singulars(word: &str) -> Vec<(String, bool)> {
    let mut forms = vec![(word.to_owned(), false)];
    let mut plural = |stem: Option<&str>, end: &str| forms.extend(stem.map(|stem| (format!("{stem}{end}"), true)));
    plural(word.strip_suffix("'s"), "");
    plural(word.strip_suffix("ies"), "y");
    plural(word.strip_suffix("ves"), "f");
    plural(word.strip_suffix("es"), "");
    plural(word.strip_suffix('s'), "");
    forms.extend(irregular(word).map(|singular| (singular.to_owned(), true)));
    forms
}

fn irregular(word: &str) -> Option<&'static str> {
    Some(match word {
        "people" | "children" | "men" | "folk" => "person",
        "women" => "woman",
        "mice" => "mouse",
        "geese" => "goose",
        "leaves" => "leaf",
        "knives" => "knife",
        _ => return None,
    })
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
