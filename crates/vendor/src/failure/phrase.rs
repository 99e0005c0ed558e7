//! Phrases of errors, which may have places for numbers: `prompt is too long: {prompt}
//! tokens > {limit} maximum`.

use std::ops::Range;

use wire::ContextOverflow;

/// Returns the places of a phrase in a text, and the numbers that are there.
pub(super) fn places<'a>(
    phrase: &'a str,
    text: &'a str,
) -> impl Iterator<Item = (Range<usize>, ContextOverflow)> + 'a {
    let head = phrase.split('{').next().unwrap_or_default();
    text.match_indices(head).filter_map(move |(start, _)| {
        let mut numbers = ContextOverflow::default();
        let rest = follow(phrase, &text[start..], &mut numbers)?;
        Some((start..text.len() - rest.len(), numbers))
    })
}

/// Returns the rest of a text that begins with the phrase.
fn follow<'a>(phrase: &str, text: &'a str, numbers: &mut ContextOverflow) -> Option<&'a str> {
    let Some((literal, rest)) = phrase.split_once('{') else {
        return text.strip_prefix(phrase);
    };
    let (name, rest) = rest.split_once('}')?;
    let text = text.strip_prefix(literal)?;
    let is_digit = |c: char| c.is_ascii_digit() || c == ',';
    // A comma behind the number belongs to the sentence.
    let digits = text[..text.find(|c| !is_digit(c)).unwrap_or(text.len())].trim_end_matches(',');
    *number(name, numbers)? = Some(digits.replace(',', "").parse().ok()?);
    follow(rest, &text[digits.len()..], numbers)
}

/// Returns the number with the name of a place.
fn number<'a>(name: &str, numbers: &'a mut ContextOverflow) -> Option<&'a mut Option<u64>> {
    match name {
        "prompt" => Some(&mut numbers.prompt),
        "output" => Some(&mut numbers.output),
        "limit" => Some(&mut numbers.limit),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(phrase: &str, text: &str) -> Option<(Range<usize>, [Option<u64>; 3])> {
        let (place, found) = places(phrase, text).next()?;
        Some((place, [found.prompt, found.output, found.limit]))
    }

    #[test]
    fn numbers_are_read_at_their_places() {
        let phrase = "exceed context limit: {prompt} + {output} > {limit}, ";
        let text = "they exceed context limit: 196655 + 21333 > 200000, decrease them";
        let numbers = [Some(196_655), Some(21_333), Some(200_000)];
        assert_eq!(first(phrase, text), Some((5..52, numbers)));
    }

    #[test]
    fn commas_group_digits_and_end_clauses() {
        let text = "limit 1,048,576, requested 1,200,293";
        let found = first("limit {limit}, requested {prompt}", text);
        assert_eq!(
            found.map(|(_, numbers)| numbers),
            Some([Some(1_200_293), None, Some(1_048_576)])
        );
    }

    #[test]
    fn a_place_needs_a_number_that_can_be_counted() {
        for text in [
            "limit , x",
            "limit x",
            "limit",
            "limit 99999999999999999999",
            "limit -1",
            "limit 1.5",
        ] {
            assert_eq!(first("limit {limit}!", text), None, "{text}");
        }
        assert_eq!(first("limit {other}", "limit 5"), None);
        assert_eq!(first("limit", "no such word"), None);
    }

    #[test]
    fn a_later_place_is_found_as_well() {
        let found = first("only {limit} tokens", "only a few, or only 8 tokens");
        assert_eq!(found, Some((15..28, [None, None, Some(8)])));
    }
}
