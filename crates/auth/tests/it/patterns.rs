//! Model patterns, compared with the definition of `*`.

use proptest::prelude::*;
use sluicegate_auth::Pattern;

/// The definition, in exponential time: a star matches nothing, or one more character.
fn reference(pattern: &[char], model: &[char]) -> bool {
    match (pattern, model) {
        ([], []) => true,
        (['*', rest @ ..], _) if reference(rest, model) => true,
        (['*', ..], [_, model @ ..]) => reference(pattern, model),
        ([one, pattern @ ..], [other, model @ ..]) => one == other && reference(pattern, model),
        _ => false,
    }
}

proptest! {
    #[test]
    fn matching_agrees_with_the_definition(pattern in "[ab*\u{e4}]{1,7}", model in "[ab\u{e4}]{0,9}") {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        let expected = reference(&chars(&pattern), &chars(&model));
        prop_assert_eq!(pattern.parse::<Pattern>().unwrap().matches(&model), expected);
    }

    #[test]
    fn a_pattern_without_a_star_names_one_model(name in "[a-z0-9.-]{1,20}", other in "[a-z0-9.-]{1,20}") {
        let pattern: Pattern = name.parse().unwrap();
        prop_assert!(pattern.matches(&name));
        prop_assert_eq!(pattern.matches(&other), name == other);
        prop_assert_eq!(pattern.to_string(), name);
    }
}

#[test]
fn many_stars_over_a_long_name_stay_linear() {
    // A backtracking matcher would need longer than the age of the universe.
    let pattern: Pattern = ("a*".repeat(2_000) + "b").parse().unwrap();
    assert!(!pattern.matches(&"a".repeat(100_000)));
    assert!(pattern.matches(&("a".repeat(100_000) + "b")));
}
