//! The steps that an edit's prompt asks for, and the roles of its pictures.

use super::clause::{Clause, Step, clauses, find};
use super::filter::Filter;
use super::place;
use crate::prompt::{Position, Prompt, contains};

pub(crate) struct Plan {
    pub(crate) roles: Roles,
    /// The place of the second picture on the first.
    pub(crate) place: Position,
    /// The steps in their order.
    pub(crate) steps: Vec<Step>,
}

/// The roles of two references, which are numbered 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Roles {
    /// `object` lies on the other.
    Place { object: usize },
    /// `object` is in front of the other, as large as it is.
    Before { object: usize },
    /// Both are seen whole.
    SideBySide,
    /// The other takes on the colours of `from`.
    Style { from: usize },
}

impl Plan {
    pub(crate) fn read(prompt: &str, references: usize, masked: bool) -> Self {
        let clauses = clauses(prompt);
        let steps = clauses.iter().flat_map(|words| {
            Clause {
                prompt,
                words,
                masked,
            }
            .steps()
        });
        let mut steps: Vec<Step> = steps.take(MOST_STEPS).collect();
        if references > 1 {
            // The thing to be added or put behind is the other picture.
            steps.retain(|step| !matches!(step, Step::Add(_) | Step::Fill(_) | Step::Backdrop(_)));
        } else if steps.is_empty() {
            steps.push(unclear(prompt, masked));
        }
        let words: Vec<&str> = clauses
            .iter()
            .flatten()
            .map(|word| word.text.as_str())
            .collect();
        Self {
            roles: Roles::read(&words),
            place: place::position(&words),
            steps,
        }
    }

    /// Tests whether width and height are swapped in the end.
    pub(crate) fn turns(&self) -> bool {
        let turns = |step: &&Step| {
            matches!(
                step,
                Step::Filter(Filter::QuarterRight | Filter::QuarterLeft)
            )
        };
        self.steps.iter().filter(turns).count() % 2 == 1
    }

    /// Removes the background, if no step does.
    pub(crate) fn clear(&mut self) {
        if !self.clears() {
            self.steps.push(Step::CutBackdrop);
        }
    }

    /// Tests whether something is put behind all of the picture, and stays there.
    pub(crate) fn backs(&self) -> bool {
        self.steps.iter().any(is_behind) && !self.clears()
    }

    /// Tests whether a part of the picture is transparent in the end.
    pub(crate) fn clears(&self) -> bool {
        let cut = self
            .steps
            .iter()
            .rposition(|step| *step == Step::CutBackdrop);
        cut.is_some_and(|cut| !self.steps[cut..].iter().any(is_behind))
    }
}

fn is_behind(step: &Step) -> bool {
    matches!(step, Step::Backdrop(_) | Step::BackdropColour(_))
}

/// The step where no word was understood; it always changes something.
fn unclear(prompt: &str, masked: bool) -> Step {
    if masked {
        Step::Fill(prompt.to_owned())
    } else if Prompt::read(prompt).subjects.is_empty() {
        Step::Shift
    } else {
        Step::Add(prompt.to_owned())
    }
}

impl Roles {
    fn read(words: &[&str]) -> Self {
        let ordinals = words
            .iter()
            .enumerate()
            .filter_map(|(at, word)| Some((at, ordinal(word)?)));
        let named: Vec<(usize, usize)> = ordinals.collect();
        let position = |list: &str| words.iter().position(|word| contains(list, word));
        if SIDE_BY_SIDE
            .iter()
            .any(|phrase| find(words, phrase).is_some())
        {
            return Self::SideBySide;
        }
        if let Some(at) = position("style, colours, colors, palette, look") {
            let next = named.iter().find(|(named, _)| *named > at);
            return Self::Style {
                from: next.map_or(1, |(_, which)| *which),
            };
        }
        if position("background, backdrop").is_some()
            && position("replace, use, change, swap, as").is_some()
        {
            return Self::Before {
                object: named.last().map_or(0, |(_, which)| 1 - which),
            };
        }
        let below = named_after(words, &named, "on, onto, over, background, backdrop");
        let below = below.or_else(|| named_after(words, &named, "into, in, to, scene"));
        let alone = if let [(_, only)] = named[..] { only } else { 1 };
        Self::Place {
            object: below.map_or(alone, |below| 1 - below),
        }
    }
}

/// The first picture that is named after one of the words.
fn named_after(words: &[&str], named: &[(usize, usize)], list: &str) -> Option<usize> {
    let starts = std::iter::once(0).chain(named.iter().map(|(at, _)| at + 1));
    let mut named = named.iter().zip(starts);
    named.find_map(|((at, which), start)| {
        words[start..*at]
            .iter()
            .any(|word| contains(list, word))
            .then_some(*which)
    })
}

fn ordinal(word: &str) -> Option<usize> {
    match word {
        "first" | "1st" => Some(0),
        "second" | "2nd" | "other" => Some(1),
        _ => None,
    }
}

/// The maximum number of steps. Each step is work over all pixels, and a prompt has room for
/// thousands of steps.
const MOST_STEPS: usize = 8;
const SIDE_BY_SIDE: [&str; 4] = [
    "side by side",
    "next to each other",
    "collage",
    "beside each other",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::colour::{self, Colour};

    fn steps(prompt: &str) -> Vec<Step> {
        Plan::read(prompt, 1, false).steps
    }

    fn named(word: &str) -> Colour {
        colour::named(word).unwrap()
    }

    #[test]
    fn clauses_become_steps_in_their_order() {
        assert_eq!(
            steps("Make the car blue, then blur it and add a red sun in the sky."),
            [
                Step::Recolour {
                    from: None,
                    to: named("blue"),
                    thing: true
                },
                Step::Filter(Filter::Blur),
                Step::Add("a red sun in the sky".to_owned()),
            ]
        );
    }

    #[test]
    fn one_clause_is_one_thing() {
        let (red, blue) = (named("red"), named("blue"));
        let filter = |filter| vec![Step::Filter(filter)];
        for (prompt, wanted) in [
            (
                "make the red car blue",
                vec![Step::Recolour {
                    from: Some(red),
                    to: blue,
                    thing: true,
                }],
            ),
            (
                "turn it blue",
                vec![Step::Recolour {
                    from: None,
                    to: blue,
                    thing: false,
                }],
            ),
            (
                "replace red with blue",
                vec![Step::Recolour {
                    from: Some(red),
                    to: blue,
                    thing: false,
                }],
            ),
            (
                "paint the boat red",
                vec![Step::Recolour {
                    from: None,
                    to: red,
                    thing: true,
                }],
            ),
            ("paint a red boat", vec![Step::Add("a red boat".to_owned())]),
            ("make it black and white", filter(Filter::Grey)),
            ("Reduce the contrast", filter(Filter::LessContrast)),
            ("turn day into night", filter(Filter::Night)),
            (
                "rotate it 90° counter-clockwise",
                filter(Filter::QuarterLeft),
            ),
            ("turn it by 180 degrees", filter(Filter::HalfTurn)),
            ("add a sunset tint", filter(Filter::Sunset)),
            ("add a sunset", vec![Step::Add("a sunset".to_owned())]),
            (
                "add a red sail to the boat",
                vec![Step::Add("a red sail".to_owned())],
            ),
            (
                "add a tree to the left",
                vec![Step::Add("a tree to the left".to_owned())],
            ),
            (
                "give the man a red hat",
                vec![Step::Add("a red hat".to_owned())],
            ),
            (
                "the same with the word 'Blur it, Now'",
                vec![Step::Add(
                    "the same with the word 'Blur it, Now'".to_owned(),
                )],
            ),
            (
                "remove the red ball",
                vec![Step::Erase { colour: Some(red) }],
            ),
            (
                "add a drop of water",
                vec![Step::Add("a drop of water".to_owned())],
            ),
            ("remove the background", vec![Step::CutBackdrop]),
            (
                "Put it on a blue background",
                vec![Step::BackdropColour(blue)],
            ),
            ("with a blue background", vec![Step::BackdropColour(blue)]),
            (
                "change the background to a red house",
                vec![Step::Backdrop("a red house".to_owned())],
            ),
            (
                "put a sun in the background",
                vec![Step::Add("a sun in the background".to_owned())],
            ),
            ("add a blue border", vec![Step::Frame(blue)]),
            ("leave it as it is", vec![Step::Keep]),
            ("hm", vec![Step::Shift]),
        ] {
            assert_eq!(steps(prompt), wanted, "{prompt}");
        }
    }

    #[test]
    fn masked_edit_fills_with_the_named_thing_or_whole_prompt() {
        for (prompt, wanted) in [
            ("replace the masked area with grass", "grass"),
            ("turn this into a lake", "a lake"),
            ("a red ball on the beach", "a red ball on the beach"),
        ] {
            assert_eq!(
                Plan::read(prompt, 1, true).steps,
                [Step::Fill(wanted.to_owned())],
                "{prompt}"
            );
        }
    }

    #[test]
    fn two_pictures_have_roles() {
        for (prompt, wanted) in [
            ("combine both", Roles::Place { object: 1 }),
            (
                "place the second image onto the first",
                Roles::Place { object: 1 },
            ),
            ("put the first on the second", Roles::Place { object: 0 }),
            (
                "put the object in the first image on the background of the second",
                Roles::Place { object: 0 },
            ),
            (
                "put the object in the second image on the first",
                Roles::Place { object: 1 },
            ),
            ("insert the first", Roles::Place { object: 0 }),
            (
                "replace the background of the first image with the second",
                Roles::Before { object: 0 },
            ),
            (
                "use the second image as the background",
                Roles::Before { object: 0 },
            ),
            ("use the style of the second", Roles::Style { from: 1 }),
            (
                "the second in the colours of the first",
                Roles::Style { from: 0 },
            ),
            ("show them side by side", Roles::SideBySide),
        ] {
            assert_eq!(Plan::read(prompt, 2, false).roles, wanted, "{prompt}");
        }
    }

    #[test]
    fn no_prompt_asks_for_work_without_end() {
        assert_eq!(steps(&"blur it, ".repeat(3000)).len(), MOST_STEPS);
        assert_eq!(steps(&"'a ".repeat(10_000)), [Step::Shift]);
    }

    #[test]
    fn plan_clears_only_if_the_background_stays_removed() {
        assert!(Plan::read("remove the background and make it blue", 1, false).clears());
        assert!(
            !Plan::read(
                "remove the background and make the background blue",
                1,
                false
            )
            .clears()
        );
        assert!(!Plan::read("make it blue", 1, false).clears());
    }
}
