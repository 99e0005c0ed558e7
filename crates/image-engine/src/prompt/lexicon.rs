//! The words of prompts: tables with one kind of meaning each, in the singular and lowercase, and
//! the numbers and plurals of words. The nouns of things and places are in the files of their
//! drawings.

/// A place on the picture: −1 is left or top, 1 is right or bottom; `None` leaves it open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) across: Option<i8>,
    pub(crate) down: Option<i8>,
    /// −1 is behind the others, 1 is in front of them.
    pub(crate) depth: Option<i8>,
}

/// The place of a thing, as seen from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Relation {
    Above,
    Below,
    On,
    Inside,
    Behind,
    Before,
    LeftOf,
    RightOf,
}

/// The manner in which a picture is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    /// Lines on paper, no fills.
    pub(crate) outline: bool,
    /// No gradients.
    pub(crate) flat: bool,
    /// Coarse squares.
    pub(crate) pixels: bool,
    /// Thin, light paint.
    pub(crate) watercolour: bool,
    /// Greys only.
    pub(crate) grey: bool,
    /// A mark: one thing, centred, nothing around it.
    pub(crate) logo: bool,
}

/// Meanings, each with the words that have it.
pub(super) type Table<T> = &'static [(T, &'static str)];

/// The meaning of a word.
pub(super) fn meaning<T: Copy>(table: Table<T>, word: &str) -> Option<T> {
    table
        .iter()
        .find(|(_, words)| contains(words, word))
        .map(|(meaning, _)| *meaning)
}

/// Tests for a word in a list that commas separate; two words may be one entry.
pub(crate) fn contains(list: &str, word: &str) -> bool {
    list.split(", ").any(|found| found == word)
}

/// The number that a word means.
pub(super) fn count(word: &str) -> Option<u32> {
    if word.len() <= 18 && word.bytes().all(|byte| byte.is_ascii_digit()) && !word.is_empty() {
        return Some(
            word.parse::<u64>()
                .map_or(u32::MAX, |count| count.min(u64::from(u32::MAX)) as u32),
        );
    }
    meaning(COUNTS, word)
}

/// The first form of a word that a table knows, and whether the word was a plural.
pub(super) fn singular<T>(word: &str, table: impl Fn(&str) -> Option<T>) -> Option<(T, bool)> {
    singulars(word)
        .into_iter()
        .find_map(|(form, plural)| Some((table(&form)?, plural)))
}

/// The singulars that a word can have, and whether it is a plural then.
fn singulars(word: &str) -> Vec<(String, bool)> {
    let endings = [
        ("'s", ""),
        ("ies", "y"),
        ("ves", "f"),
        ("es", ""),
        ("s", ""),
    ];
    let regular = endings
        .iter()
        .filter_map(|(plural, end)| Some((format!("{}{end}", word.strip_suffix(plural)?), true)));
    let irregular = meaning(PLURALS, word).map(|singular| (singular.to_owned(), true));
    std::iter::once((word.to_owned(), false))
        .chain(regular)
        .chain(irregular)
        .collect()
}

/// The factors of sizes.
pub(super) const SCALES: Table<f32> = &[
    (0.36, "tiny, miniature, minuscule"),
    (0.62, "small, little, short"),
    (1.28, "big, large, tall"),
    (1.55, "huge, giant, enormous, gigantic, massive"),
];
pub(super) const RELATIONS: Table<Relation> = &[
    (Relation::Above, "above, over, atop"),
    (Relation::Below, "below, under, beneath, underneath"),
    (Relation::On, "on, upon, crossing, riding, top of"),
    (Relation::Inside, "in, inside, within"),
    (Relation::Behind, "behind"),
    (Relation::Before, "front of"),
    (Relation::LeftOf, "left of"),
    (Relation::RightOf, "right of"),
];
/// −1, 0 or 1 across and down.
pub(crate) const POSITIONS: Table<(Option<i8>, Option<i8>)> = &[
    ((Some(-1), None), "left"),
    ((Some(1), None), "right"),
    ((None, Some(-1)), "top, upper"),
    ((None, Some(1)), "bottom, lower"),
    (
        (Some(0), Some(0)),
        "centre, center, middle, centred, centered",
    ),
];
/// Words that set one of the flags of a style.
pub(super) const STYLES: Table<fn(&mut Style)> = &[
    (
        |style| style.outline = true,
        "outline, outlined, lineart, line art, line drawing, sketch, contour, coloring page, colouring page",
    ),
    (
        |style| style.flat = true,
        "flat, minimal, minimalist, simple",
    ),
    (
        |style| style.pixels = true,
        "pixel art, pixelart, pixelated, 8-bit, 8 bit",
    ),
    (
        |style| style.watercolour = true,
        "watercolor, watercolour, aquarelle",
    ),
    (
        |style| style.grey = true,
        "monochrome, grayscale, greyscale, monochromatic",
    ),
    (
        |style| (style.logo, style.flat) = (true, true),
        "logo, icon, emblem",
    ),
];
/// Parts of things: they take a colour and leave the thing its own.
pub(super) const PARTS: &str = "roof, door, window, sail, wing, scarf, stripe, handle, ribbon, eye, tail, petal, trunk, \
    cover, flame, icing, spot";
/// The clothes of a person: their colour is seen first.
pub(super) const GARMENTS: &str = "shirt, dress, coat, jacket, sweater";
/// Words that open a noun phrase, so that the words before belong to the noun before.
pub(super) const DETERMINERS: &str =
    "a, an, the, its, his, her, their, my, this, that, some, another";
/// Numbers in words. One that is too large to be drawn is cut by the reader.
const COUNTS: Table<u32> = &[
    (1, "a, an, one, single, lone"),
    (2, "two, pair, couple, twin, both"),
    (3, "three, trio"),
    (4, "four"),
    (5, "few, five"),
    (6, "six"),
    (7, "seven, several"),
    (8, "eight"),
    (9, "nine"),
    (10, "ten"),
    (11, "eleven"),
    (12, "twelve, dozen, dozens"),
    (13, "thirteen"),
    (14, "fourteen"),
    (15, "fifteen"),
    (16, "many, sixteen"),
    (20, "twenty"),
    (30, "thirty"),
    (60, "hundred, hundreds, thousand, thousands, countless"),
];
/// Plurals that follow no rule.
const PLURALS: Table<&str> = &[
    ("person", "people, children, men, folk"),
    ("woman", "women"),
    ("mouse", "mice"),
    ("goose", "geese"),
    ("leaf", "leaves"),
    ("knife", "knives"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read() {
        for (word, expected) in [
            ("7", Some(7)),
            ("dozen", Some(12)),
            ("a", Some(1)),
            ("cat", None),
            ("", None),
        ] {
            assert_eq!(count(word), expected, "{word}");
        }
        assert_eq!(count("999999999999999999"), Some(u32::MAX));
        assert_eq!(count("9999999999999999999999"), None);
    }

    #[test]
    fn plurals_lead_to_their_singular() {
        for (word, singular) in [
            ("cherries", "cherry"),
            ("boxes", "box"),
            ("cats", "cat"),
            ("children", "person"),
        ] {
            assert!(
                singulars(word).contains(&(singular.to_owned(), true)),
                "{word}"
            );
        }
    }
}
