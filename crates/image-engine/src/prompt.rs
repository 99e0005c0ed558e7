//! The contents of a prompt: things with their number, colour, size and place, a setting,
//! lettering, a style.

mod lexicon;
mod reader;
mod resolve;
mod token;

use engine::Pixels;

use crate::colour::Colour;
use crate::drawing::{Drawing, Place, Thing};
pub(crate) use lexicon::{POSITIONS, Position, Relation, Style, contains};
pub(crate) use token::{Token, tokens};

/// The most things that a picture is made of, however many were asked for.
pub(crate) const MOST_THINGS: u32 = 64;
/// The most kinds of things.
pub(crate) const MOST_SUBJECTS: usize = 24;
/// The most pieces of lettering, and the most characters in one.
pub(crate) const MOST_LETTERINGS: usize = 4;
pub(crate) const LONGEST_LETTERING: usize = 160;
const WIDE: Pixels = Pixels::new(1536, 1024);
const TALL: Pixels = Pixels::new(1024, 1536);
const SQUARE: Pixels = Pixels::new(1024, 1024);

/// A prompt, as far as it is understood. Every text is read; none makes a large structure.
#[derive(Default)]
pub(crate) struct Prompt {
    pub(crate) subjects: Vec<Subject>,
    /// The places, each with its colour if the prompt names one.
    pub(crate) places: Vec<(Place, Option<Colour>)>,
    /// The time of day.
    pub(crate) light: Option<&'static Drawing>,
    pub(crate) weather: Vec<&'static Drawing>,
    pub(crate) letterings: Vec<Lettering>,
    /// One colour behind everything.
    pub(crate) plain: Option<Colour>,
    /// Nothing behind anything.
    pub(crate) cut_out: bool,
    pub(crate) style: Style,
    /// Colours that belong to nothing in particular.
    pub(crate) palette: Vec<Colour>,
    /// The things that are not to be seen.
    pub(crate) absent: Vec<Thing>,
    /// A hash of the text, for everything that it leaves open.
    pub(crate) mood: u64,
    /// The size that a word implies.
    pub(crate) size: Option<Pixels>,
    /// Seen from above: ground or water alone, without a horizon.
    pub(crate) from_above: bool,
}

/// Some things of one kind.
pub(crate) struct Subject {
    pub(crate) thing: Thing,
    pub(crate) count: u32,
    /// The prompt names the number, which is otherwise chosen for a plural.
    pub(crate) counted: bool,
    pub(crate) colours: Vec<Colour>,
    /// Each is to have a colour of its own.
    pub(crate) varied: bool,
    /// The colour of its lesser part: a roof, a sail, a hat.
    pub(crate) accent: Option<Colour>,
    /// The size beside others of its kind.
    pub(crate) scale: f32,
    pub(crate) position: Option<Position>,
    /// The place relative to another subject.
    pub(crate) relation: Option<(Relation, usize)>,
    /// The thing that it holds.
    pub(crate) contents: Option<Thing>,
}

/// Words to be read in the picture.
pub(crate) struct Lettering {
    pub(crate) text: String,
    pub(crate) colour: Option<Colour>,
    pub(crate) position: Option<Position>,
}

impl Prompt {
    /// Tests for a backdrop that the prompt names: a place, a light, or a plain colour.
    pub(crate) fn has_backdrop(&self) -> bool {
        !self.cut_out && (self.plain.is_some() || !self.places.is_empty() || self.light.is_some())
    }

    /// The same, seen from above if it is ground or water and nothing else: a hole is to be filled
    /// without a sky.
    pub(crate) fn into_filling(mut self) -> Self {
        let alone = matches!(self.places.as_slice(), [(place, _)] if place.is("even"));
        let bare =
            self.subjects.is_empty() && self.letterings.is_empty() && self.weather.is_empty();
        self.from_above = alone && bare && self.light.is_none();
        self
    }

    /// Every colour that the prompt names, in the order of the subjects, then the rest.
    pub(crate) fn colours(&self) -> impl Iterator<Item = Colour> {
        let subjects = self
            .subjects
            .iter()
            .flat_map(|subject| subject.colours.iter().copied());
        let letterings = self
            .letterings
            .iter()
            .filter_map(|lettering| lettering.colour);
        subjects
            .chain(letterings)
            .chain(self.plain)
            .chain(self.palette.iter().copied())
    }

    /// The size that suits the picture, when none was asked for.
    pub(crate) fn auto_size(&self) -> Pixels {
        self.size.unwrap_or_else(|| match self.subjects.as_slice() {
            _ if self.cut_out || self.plain.is_some() => SQUARE,
            [only] if only.count == 1 && only.thing.is("tall") => TALL,
            _ if self.has_horizon() => WIDE,
            _ => SQUARE,
        })
    }

    /// The place of that name, if the prompt names it.
    pub(crate) fn place(&self, name: &str) -> Option<Place> {
        self.places
            .iter()
            .map(|(place, _)| *place)
            .find(|place| place.name == name)
    }

    pub(crate) fn has(&self, place: &str) -> bool {
        self.place(place).is_some()
    }

    /// Tests for a place where far things are seen.
    pub(crate) fn has_horizon(&self) -> bool {
        self.places.iter().any(|(place, _)| place.is("horizon"))
    }

    /// Tests for weather of that name.
    pub(crate) fn is_weather(&self, name: &str) -> bool {
        self.weather.iter().any(|found| found.name == name)
    }

    pub(crate) fn shows(&self, thing: &str) -> bool {
        self.subjects
            .iter()
            .any(|subject| subject.thing.name == thing)
    }

    /// The colour that the prompt gives to a place.
    pub(crate) fn tint(&self, place: &str) -> Option<Colour> {
        self.places
            .iter()
            .find(|(found, _)| found.name == place)
            .and_then(|(_, colour)| *colour)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn things(prompt: &str) -> Vec<(&'static str, u32)> {
        Prompt::read(prompt)
            .subjects
            .iter()
            .map(|subject| (subject.thing.name, subject.count))
            .collect()
    }

    fn colour(name: &str) -> Colour {
        crate::colour::named(name).unwrap()
    }

    #[test]
    fn things_are_counted() {
        for (prompt, expected) in [
            (
                "Two red circles and a blue square",
                vec![("circle", 2), ("square", 1)],
            ),
            ("a dozen cherries", vec![("cherry", 12)]),
            ("a pair of dogs", vec![("dog", 2)]),
            ("3 birds, 1 cat", vec![("bird", 3), ("cat", 1)]),
            ("balloons", vec![("balloon", 4)]),
            ("a paper boat", vec![("paper-boat", 1)]),
            ("a hot air balloon", vec![("air-balloon", 1)]),
            (
                "an orange next to an orange cat",
                vec![("orange", 1), ("cat", 1)],
            ),
            ("a bowl of cherries", vec![("bowl", 1)]),
            ("une maison bleue", vec![]),
        ] {
            assert_eq!(things(prompt), expected, "{prompt}");
        }
    }

    #[test]
    fn a_colour_goes_to_its_noun() {
        for (prompt, expected) in [
            (
                "Two red circles and a blue square",
                vec![vec![colour("red")], vec![colour("blue")]],
            ),
            ("a cat, a yellow ball", vec![vec![], vec![colour("yellow")]]),
            (
                "a red and white ball",
                vec![vec![colour("red"), colour("white")]],
            ),
            ("a ball that is green", vec![vec![colour("green")]]),
            ("a #ff8800 star", vec![vec![Colour::hex(0xff_88_00)]]),
        ] {
            let found: Vec<_> = Prompt::read(prompt)
                .subjects
                .into_iter()
                .map(|subject| subject.colours)
                .collect();
            assert_eq!(found, expected, "{prompt}");
        }
    }

    #[test]
    fn a_part_has_a_colour_of_its_own() {
        let house = Prompt::read("a white house with a blue roof")
            .subjects
            .remove(0);
        assert_eq!(
            (house.colours, house.accent),
            (vec![colour("white")], Some(colour("blue")))
        );
    }

    #[test]
    fn places_on_the_picture_are_named_before_and_after() {
        let position = |prompt: &str, of: usize| {
            Prompt::read(prompt).subjects[of]
                .position
                .map(|position| (position.across, position.down))
        };
        assert_eq!(
            position("a red circle on the left and a square on the right", 0),
            Some((Some(-1), None))
        );
        assert_eq!(
            position("a red circle on the left and a square on the right", 1),
            Some((Some(1), None))
        );
        assert_eq!(
            position("a star in the top left corner", 0),
            Some((Some(-1), Some(-1)))
        );
        assert_eq!(
            position("a cat. On the right, a dog", 1),
            Some((Some(1), None))
        );
        assert_eq!(position("a cat", 0), None);
    }

    #[test]
    fn relations_bind_two_things() {
        for (prompt, relation) in [
            ("a circle above a square", Relation::Above),
            ("a cat under a table lamp", Relation::Below),
            ("a cat on a chair", Relation::On),
            ("a leaf in a circle", Relation::Inside),
            ("a tree behind a house", Relation::Behind),
            ("a dog to the left of a cat", Relation::LeftOf),
        ] {
            assert_eq!(
                Prompt::read(prompt).subjects[0]
                    .relation
                    .map(|(found, _)| found),
                Some(relation),
                "{prompt}"
            );
        }
    }

    #[test]
    fn quoted_words_are_lettering() {
        for (prompt, text, colour_of_text) in [
            (
                "a poster that says 'OPEN DAY' in dark blue",
                "OPEN DAY",
                Some(crate::colour::shade("dark").unwrap()(colour("blue"))),
            ),
            ("the word “HELLO” above a cat", "HELLO", None),
            ("trees with the word \"HI\"", "HI", None),
        ] {
            let read = Prompt::read(prompt);
            assert_eq!(
                (read.letterings[0].text.as_str(), read.letterings[0].colour),
                (text, colour_of_text),
                "{prompt}"
            );
        }
    }

    #[test]
    fn negated_things_are_absent() {
        let prompt = Prompt::read("a blue sky with no clouds or birds and a red boat");
        assert_eq!(
            prompt
                .absent
                .iter()
                .map(|thing| thing.name)
                .collect::<Vec<_>>(),
            ["cloud", "bird"]
        );
        assert_eq!(prompt.subjects.len(), 1);
        assert_eq!(things("a street without people"), [("", 0); 0]);
    }

    #[test]
    fn transparency_is_asked_for_in_many_ways() {
        for (prompt, expected) in [
            ("a red heart with a transparent background", true),
            ("a heart, no background", true),
            ("a heart sticker", true),
            ("a heart, isolated", true),
            ("an apple, PNG with alpha", true),
            ("an apple on a background that is transparent", true),
            ("a heart isolated on a white background", false),
            ("a transparent vase on a table", false),
            ("a house by the sea", false),
        ] {
            assert_eq!(Prompt::read(prompt).cut_out, expected, "{prompt}");
        }
    }

    #[test]
    fn plain_backgrounds_have_their_colour() {
        for prompt in [
            "a cat on a white background",
            "a cat, background is white",
            "white background, a cat",
            "a cat on white",
        ] {
            let read = Prompt::read(prompt);
            assert_eq!(read.plain, Some(colour("white")), "{prompt}");
            assert!(
                read.has_backdrop() && read.subjects[0].colours.is_empty(),
                "{prompt}"
            );
        }
    }

    #[test]
    fn scenes_have_place_light_and_weather() {
        let prompt = Prompt::read("A house by the sea at sunset with mountains");
        assert!(prompt.has("sea") && prompt.has("mountains"));
        assert_eq!(
            (prompt.light.unwrap().name, things("A house by the sea")),
            ("sunset", vec![("house", 1)])
        );
        let night = Prompt::read("A night sky with a moon and stars over a forest");
        assert_eq!(
            night
                .subjects
                .iter()
                .map(|subject| subject.thing.name)
                .collect::<Vec<_>>(),
            ["moon"]
        );
        assert_eq!(
            night
                .weather
                .iter()
                .map(|weather| weather.name)
                .collect::<Vec<_>>(),
            ["starry"]
        );
    }

    #[test]
    fn the_picture_lies_as_its_contents_do() {
        for (prompt, size) in [
            ("a wide banner with a cat", Pixels::new(1536, 1024)),
            ("a lake between mountains", Pixels::new(1536, 1024)),
            ("a portrait of a woman", Pixels::new(1024, 1536)),
            ("a poster that says \"GO\"", Pixels::new(1024, 1536)),
            ("a red ball", Pixels::new(1024, 1024)),
        ] {
            assert_eq!(Prompt::read(prompt).auto_size(), size, "{prompt}");
        }
    }

    #[test]
    fn thing_counts_are_capped() {
        assert_eq!(things("9999999 circles"), [("circle", MOST_THINGS)]);
        let long = "seventy 99 cats and 12 dogs, ".repeat(1_000);
        let prompt = Prompt::read(&long);
        assert!(prompt.subjects.len() <= MOST_SUBJECTS);
        assert!(
            prompt
                .subjects
                .iter()
                .map(|subject| subject.count)
                .sum::<u32>()
                <= MOST_THINGS
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_within_bounds(prompt in "\\PC{0,400}|([a-z]{1,8}[ ,.'\"]){0,200}") {
            let read = Prompt::read(&prompt);
            prop_assert!(read.subjects.iter().map(|subject| subject.count).sum::<u32>() <= MOST_THINGS);
            prop_assert!(read.letterings.len() <= MOST_LETTERINGS);
            prop_assert!(read.subjects.iter().enumerate().all(|(i, subject)| subject.relation.is_none_or(|(_, to)| to > i)));
        }
    }
}
