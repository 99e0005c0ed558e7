//! The drawings that pictures are composed of: SVG files that an artist can edit, found by name or
//! by noun.
//!
//! `assets/README.md` lists the attributes with which a drawing states its facts.

use std::collections::HashMap;
use std::sync::LazyLock;

use resvg::usvg::roxmltree::{Document, Node};

use crate::colour::Colour;

/// A drawing of something that a prompt can name.
pub(crate) type Thing = &'static Drawing;
/// A drawing of surroundings that a prompt can name.
pub(crate) type Place = &'static Drawing;

/// An SVG file with the facts that its root element states.
pub(crate) struct Drawing {
    pub(crate) name: &'static str,
    document: Document<'static>,
    /// The width divided by the height.
    pub(crate) aspect: f32,
    /// The height in a scene whose shorter side is 1000 units.
    pub(crate) height: f32,
    /// The height at which other things stand on it, as a fraction of its own height.
    pub(crate) surface: f32,
    /// The colour that a prompt's colour word replaces.
    pub(crate) main: Colour,
    /// The colour of its lesser part: a roof, a sail, a hat.
    pub(crate) accent: Colour,
}

impl Drawing {
    /// Parses an embedded file; `None` where it is not a drawing.
    fn parse((name, text): (&'static str, &'static str)) -> Option<Self> {
        let document = Document::parse(text).ok()?;
        let root = document.root_element();
        let number = |attribute| root.attribute(attribute)?.parse().ok();
        let sides: Vec<f32> = root
            .attribute("viewBox")?
            .split(' ')
            .filter_map(|side| side.parse().ok())
            .collect();
        let [_, _, width, height] = sides[..] else {
            return None;
        };
        let colour = |name| colour(root, name).unwrap_or(Colour::WHITE);
        Some(Self {
            name,
            aspect: width / height,
            height: number("height").unwrap_or(height),
            surface: number("data-surface").unwrap_or(0.97),
            main: colour("main"),
            accent: colour("accent"),
            document,
        })
    }

    pub(crate) fn root(&self) -> Node<'_, 'static> {
        self.document.root_element()
    }

    pub(crate) fn element(&self, id: &str) -> Option<Node<'_, 'static>> {
        self.document
            .descendants()
            .find(|node| node.attribute("id") == Some(id))
    }

    /// Tests one of the words of `data-traits`.
    pub(crate) fn is(&self, quality: &str) -> bool {
        self.fact("data-traits")
            .split(' ')
            .any(|found| found == quality)
    }

    /// An attribute of the root; empty where it is missing.
    pub(crate) fn fact(&self, attribute: &str) -> &str {
        self.root().attribute(attribute).unwrap_or_default()
    }

    /// One of the named colours that do not follow from others.
    pub(crate) fn colour(&self, name: &str) -> Option<Colour> {
        colour(self.root(), name)
    }

    /// The words of its `title` or `desc`: nouns that mean it, adjectives that imply it.
    fn words(&self, element: &str) -> impl Iterator<Item = &str> {
        let found = self
            .root()
            .children()
            .find(|node| node.has_tag_name(element))
            .and_then(|node| node.text());
        found.into_iter().flat_map(|words| words.split(", "))
    }
}

fn colour(root: Node<'_, '_>, name: &str) -> Option<Colour> {
    let (_, value) = declarations(root.attribute("style")?).find(|(found, _)| *found == name)?;
    Colour::from_css(value)
}

/// The named colours of a `style` attribute.
pub(crate) fn declarations(style: &str) -> impl Iterator<Item = (&str, &str)> {
    style
        .split(';')
        .filter_map(|entry| entry.trim().strip_prefix("--")?.split_once(": "))
}

impl PartialEq for Drawing {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The thing that a noun in the singular means; two words may be one noun.
pub(crate) fn thing(noun: &str) -> Option<Thing> {
    static NOUNS: LazyLock<Index> = LazyLock::new(|| index(&THINGS));
    NOUNS.get(noun).copied()
}

/// The place, the time of day or the weather that a word means; nouns are in the singular.
pub(crate) fn scenery(word: &str) -> Option<Place> {
    static WORDS: LazyLock<Index> = LazyLock::new(|| index(&SCENERY));
    WORDS.get(word).copied()
}

/// The place that an adjective implies: a snowy field.
pub(crate) fn implied_place(adjective: &str) -> Option<Place> {
    SCENERY
        .iter()
        .find(|place| place.words("desc").any(|word| word == adjective))
}

pub(crate) fn named(name: &str) -> Option<&'static Drawing> {
    SCENERY
        .iter()
        .chain(THINGS.iter())
        .find(|drawing| drawing.name == name)
}

type Index = HashMap<&'static str, &'static Drawing>;

fn index(drawings: &'static [Drawing]) -> Index {
    drawings
        .iter()
        .flat_map(|drawing| drawing.words("title").map(move |word| (word, drawing)))
        .collect()
}

static THINGS: LazyLock<Vec<Drawing>> = LazyLock::new(|| parse(THING_FILES));
static SCENERY: LazyLock<Vec<Drawing>> = LazyLock::new(|| parse(SCENERY_FILES));

fn parse(files: &[(&'static str, &'static str)]) -> Vec<Drawing> {
    files.iter().copied().filter_map(Drawing::parse).collect()
}

/// Lists the files of a folder of `assets` with their contents.
macro_rules! files {
    ($folder:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!("../assets/", $folder, "/", $name, ".svg")))),*]
    };
}

#[rustfmt::skip]
const THING_FILES: &[(&str, &str)] = files!("things":
    "air-balloon" "apple" "arrow" "ball" "balloon" "banana" "bee" "bicycle" "bird" "boat" "book" "bowl" "bridge" "bus"
    "bush" "butterfly" "cactus" "cake" "candle" "car" "castle" "cat" "chair" "cherry" "circle" "clock" "cloud"
    "crescent" "cross" "cube" "cup" "diamond" "dog" "duck" "egg" "ellipse" "fence" "fish" "flag" "flower" "ghost"
    "gift" "hat" "heart" "hexagon" "house" "ice-cream" "key" "kite" "lamp" "leaf" "lemon" "lighthouse" "lightning"
    "line" "moon" "mushroom" "octagon" "orange" "owl" "palm" "paper-boat" "pentagon" "person" "pine" "pizza" "plane"
    "planet" "pumpkin" "rabbit" "rainbow" "rectangle" "ring" "robot" "rock" "rocket" "ship" "sign" "snowman" "spiral"
    "square" "star" "sun" "table" "tent" "tower" "train" "tree" "triangle" "umbrella" "vase" "whale" "windmill" "woman"
);
#[rustfmt::skip]
const SCENERY_FILES: &[(&str, &str)] = files!("scenery":
    "abstract" "bank" "beach" "city" "cliff" "clouds" "day" "desert" "drifts" "far-hills" "field" "fog" "forest"
    "gloomy-clouds" "hills" "lake" "low-light" "low-sun" "medallion" "morning" "mountains" "night" "paper" "plain"
    "rain" "room" "rough-sea" "sea" "shadow" "sky" "snow" "snowfall" "space" "starry" "stars" "storm" "street"
    "sunset" "tabletop" "underwater"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_embedded_and_parsed() {
        for (folder, drawings) in [("things", &THINGS), ("scenery", &SCENERY)] {
            let folder =
                std::fs::read_dir(format!("{}/assets/{folder}", env!("CARGO_MANIFEST_DIR")))
                    .unwrap();
            let mut files: Vec<_> = folder
                .map(|file| file.unwrap().file_name().into_string().unwrap())
                .collect();
            files.sort();
            assert_eq!(
                files,
                drawings
                    .iter()
                    .map(|drawing| format!("{}.svg", drawing.name))
                    .collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn no_two_drawings_have_a_noun_in_common() {
        for drawing in THINGS.iter() {
            assert!(drawing.words("title").count() > 0, "{}", drawing.name);
            assert!(
                drawing
                    .words("title")
                    .all(|noun| thing(noun) == Some(drawing)),
                "{}",
                drawing.name
            );
        }
        for drawing in SCENERY.iter() {
            assert!(
                drawing
                    .words("title")
                    .all(|word| scenery(word) == Some(drawing)),
                "{}",
                drawing.name
            );
        }
    }

    #[test]
    fn the_root_states_the_facts() {
        let cat = thing("kitten").unwrap();
        assert_eq!(
            (cat.name, cat.aspect, cat.height, cat.surface),
            ("cat", 0.86, 210.0, 0.97)
        );
        assert_eq!(
            (cat.main, cat.accent),
            (Colour::hex(0xe2_9a_4a), Colour::hex(0xfb_ee_dc))
        );
        assert!(cat.is("stands") && cat.is("mirrors") && !cat.is("flies"));
        assert_eq!(
            (
                cat.fact("data-setting"),
                thing("rocket").unwrap().fact("data-setting")
            ),
            ("", "space")
        );
    }
}
