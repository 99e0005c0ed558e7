//! Phrases, and those that ask for a filter.

use super::filter::Filter;

/// Where the words of a phrase stand, in order and not far from each other.
pub(crate) fn find(words: &[&str], phrase: &str) -> Option<Vec<usize>> {
    let follow = |first: usize| {
        let mut found: Vec<usize> = Vec::new();
        for part in phrase.split(' ') {
            let from = found.last().map_or(first, |last| last + 1);
            let reach = if found.is_empty() { 1 } else { LARGEST_GAP + 1 };
            found.push(from + words.iter().skip(from).take(reach).position(|word| *word == part)?);
        }
        Some(found)
    };
    (0..words.len()).find_map(follow)
}

/// Words that always mean a filter. A longer phrase stands before its parts.
pub(crate) const EFFECTS: &[(&str, Filter)] = &[
    ("black and white", Filter::Grey),
    ("grayscale", Filter::Grey),
    ("greyscale", Filter::Grey),
    ("monochrome", Filter::Grey),
    ("desaturate", Filter::Grey),
    ("remove colour", Filter::Grey),
    ("remove color", Filter::Grey),
    ("sepia", Filter::Sepia),
    ("invert", Filter::Invert),
    ("negative", Filter::Invert),
    ("blur", Filter::Blur),
    ("blurry", Filter::Blur),
    ("blurred", Filter::Blur),
    ("soften", Filter::Blur),
    ("sharpen", Filter::Sharpen),
    ("sharper", Filter::Sharpen),
    ("less contrast", Filter::LessContrast),
    ("reduce contrast", Filter::LessContrast),
    ("lower contrast", Filter::LessContrast),
    ("decrease contrast", Filter::LessContrast),
    ("contrast", Filter::MoreContrast),
    ("brighten", Filter::Brighter),
    ("brighter", Filter::Brighter),
    ("brightness", Filter::Brighter),
    ("lighter", Filter::Brighter),
    ("darken", Filter::Darker),
    ("darker", Filter::Darker),
    ("less saturated", Filter::Muted),
    ("muted", Filter::Muted),
    ("saturate", Filter::Vivid),
    ("saturated", Filter::Vivid),
    ("saturation", Filter::Vivid),
    ("vivid", Filter::Vivid),
    ("vibrant", Filter::Vivid),
    ("pixelate", Filter::Pixelate),
    ("pixelated", Filter::Pixelate),
    ("mosaic", Filter::Pixelate),
    ("flip vertically", Filter::FlipDown),
    ("upside down", Filter::HalfTurn),
    ("flip", Filter::FlipAcross),
    ("mirror", Filter::FlipAcross),
    ("rotate 180", Filter::HalfTurn),
    ("rotate 270", Filter::QuarterLeft),
    ("rotate left", Filter::QuarterLeft),
    ("rotate anticlockwise", Filter::QuarterLeft),
    ("rotate counterclockwise", Filter::QuarterLeft),
    ("rotate counter clockwise", Filter::QuarterLeft),
    ("turn 180", Filter::HalfTurn),
    ("turn 270", Filter::QuarterLeft),
    ("rotate", Filter::QuarterRight),
    ("turn 90", Filter::QuarterRight),
    ("vignette", Filter::Vignette),
];

/// Words that mean a filter where they do not name a thing to draw.
pub(crate) const MOODS: &[(&str, Filter)] = &[
    ("night", Filter::Night),
    ("nighttime", Filter::Night),
    ("warm", Filter::Warm),
    ("warmer", Filter::Warm),
    ("cold", Filter::Cold),
    ("colder", Filter::Cold),
    ("cool", Filter::Cold),
    ("cooler", Filter::Cold),
    ("sunset", Filter::Sunset),
    ("golden hour", Filter::Sunset),
];

/// Words that may stand between two of a phrase.
const LARGEST_GAP: usize = 3;
