//! The geometry and the light of a picture: its backdrop, its horizon, and the areas for things and
//! words.

use engine::{Background, ImageTraits};

use super::random::Random;
use crate::colour::Colour;
use crate::drawing::{Drawing, Place, Thing, named};
use crate::prompt::Prompt;

/// The kind of surroundings behind the subjects.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Backdrop {
    Clear,
    /// One colour.
    Plain(Colour),
    /// A soft light on paper.
    Paper(Colour),
    /// A sky, and land or water below it.
    Outdoors,
    /// Sky alone.
    Air,
    /// A place that fills the picture.
    Place(Place),
    /// Shapes that mean nothing.
    Abstract,
}

/// The part of the picture that a thing belongs to.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Zone {
    /// Anywhere.
    Free,
    Sky,
    Water,
    Ground,
}

/// A rectangle of the picture.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Area {
    pub(super) left: f32,
    pub(super) top: f32,
    pub(super) right: f32,
    pub(super) bottom: f32,
}

impl Area {
    pub(super) const fn width(&self) -> f32 {
        self.right - self.left
    }

    pub(super) const fn height(&self) -> f32 {
        self.bottom - self.top
    }
}

/// Everything about a picture that is decided before something is drawn.
pub(super) struct View {
    pub(super) width: f32,
    pub(super) height: f32,
    pub(super) backdrop: Backdrop,
    /// The time of day.
    pub(super) light: Option<&'static Drawing>,
    /// Rain, a storm or clouds darken the day.
    pub(super) gloomy: bool,
    pub(super) water: bool,
    /// The near ground; where it is missing, water goes down to the lower edge.
    pub(super) ground: Option<&'static Drawing>,
    pub(super) seed: u64,
    /// The distance of the horizon from the top.
    horizon: f32,
    /// The distance of the near ground from the top.
    ground_top: f32,
    /// The area of the subjects: everything but the margins, and the area of words.
    whole: Area,
    /// The area of words, from top to bottom.
    words: (f32, f32),
}

impl View {
    pub(super) fn new(prompt: &Prompt, traits: ImageTraits, seed: u64) -> Self {
        let [width, height] =
            [traits.size.width, traits.size.height].map(|side| side.max(1) as f32);
        let unit = 1000.0 / width.min(height);
        let width = width * unit;
        let height = height * unit;
        let mut random = Random::new(seed, "stage");
        let backdrop = backdrop(prompt, traits.background, &mut random);
        let swims = !prompt.has_horizon()
            && prompt
                .subjects
                .iter()
                .any(|subject| subject.thing.is("swims"));
        let water = swims || prompt.places.iter().any(|(place, _)| place.is("water"));
        let ground = ground(prompt, water);
        let horizon = height * (if water { 0.5 } else { 0.6 } + random.jitter(0.03));
        let horizon = if prompt.from_above {
            -OUT_OF_SIGHT
        } else {
            horizon
        };
        let ground_top = match ground.and_then(|ground| ground.fact("data-top").parse::<f32>().ok())
        {
            _ if prompt.from_above && water => height + OUT_OF_SIGHT,
            Some(top) => height * top,
            None if water => height * (0.76 + random.jitter(0.02)),
            None => horizon,
        };
        let light = prompt.light.or_else(|| named("day"));
        let gloomy = prompt.weather.iter().any(|weather| weather.is("gloomy"));
        let (whole, words) = areas(prompt, width, height);
        Self {
            width,
            height,
            backdrop,
            light,
            gloomy,
            water,
            ground,
            seed,
            horizon,
            ground_top,
            whole,
            words,
        }
    }

    /// Tests for a floor on which shadows fall.
    pub(super) fn has_floor(&self) -> bool {
        matches!(self.backdrop, Backdrop::Paper(_) | Backdrop::Outdoors) || self.is_indoors()
    }

    pub(super) fn is_indoors(&self) -> bool {
        matches!(self.backdrop, Backdrop::Place(place) if place.is("indoors"))
    }

    pub(super) const fn is_under_sky(&self) -> bool {
        matches!(self.backdrop, Backdrop::Outdoors | Backdrop::Air)
    }

    pub(super) fn is_light(&self, name: &str) -> bool {
        self.light.is_some_and(|light| light.name == name)
    }

    /// A colour of the time of day.
    pub(super) fn light_colour(&self, name: &str) -> Colour {
        self.light
            .and_then(|light| light.colour(name))
            .unwrap_or(Colour::WHITE)
    }

    /// The tint that the light gives to things, with its share.
    pub(super) fn tint(&self) -> Option<(Colour, f32)> {
        let source = match self.backdrop {
            Backdrop::Outdoors | Backdrop::Air => self.light?,
            Backdrop::Place(place) => place,
            _ => return None,
        };
        Some((
            source.colour("tint")?,
            source.fact("data-tint").parse().ok()?,
        ))
    }

    /// The part of the picture that a layer of scenery names.
    pub(super) fn area(&self, name: &str) -> Area {
        let all = Area {
            left: 0.0,
            top: 0.0,
            right: self.width,
            bottom: self.height,
        };
        match name {
            "sky" if self.backdrop != Backdrop::Air => Area {
                bottom: self.horizon,
                ..all
            },
            "skyline" => Area {
                bottom: if self.water {
                    self.horizon
                } else {
                    self.ground_top
                },
                ..all
            },
            "water" => Area {
                top: self.horizon,
                ..all
            },
            "ground" => Area {
                top: self.ground_top,
                ..all
            },
            _ => all,
        }
    }

    pub(super) fn zone(&self, thing: Thing) -> Zone {
        match self.backdrop {
            Backdrop::Outdoors if thing.is("swims") && self.water => Zone::Water,
            Backdrop::Outdoors if thing.is("flies") => Zone::Sky,
            Backdrop::Outdoors => Zone::Ground,
            _ if self.is_indoors() => Zone::Ground,
            _ => Zone::Free,
        }
    }

    /// The area of the subjects in a zone. Those on the ground have their feet in its lower part.
    pub(super) fn zone_area(&self, zone: Zone) -> Area {
        let whole = self.whole;
        match zone {
            Zone::Free => whole,
            Zone::Sky => {
                let bottom = (self.horizon - self.height * 0.03).max(whole.top + self.height * 0.2);
                Area { bottom, ..whole }
            }
            Zone::Water => {
                let bottom = if self.ground.is_some() {
                    self.ground_top
                } else {
                    self.height * 0.9
                };
                Area {
                    top: self.horizon * 0.7,
                    bottom: bottom - self.height * 0.05,
                    ..whole
                }
            }
            Zone::Ground if self.is_indoors() => Area {
                bottom: self.height * 0.86,
                ..whole
            },
            Zone::Ground => {
                let named = self
                    .ground
                    .and_then(|ground| ground.fact("data-feet").parse::<f32>().ok());
                let feet = named.unwrap_or(if self.water { 0.5 } else { 0.56 });
                Area {
                    bottom: self.ground_top + (self.height - self.ground_top) * feet,
                    ..whole
                }
            }
        }
    }

    /// The area of the words number `i`.
    pub(super) fn lettering(&self, prompt: &Prompt, i: usize) -> Area {
        let (top, bottom) = self.words;
        let each = (bottom - top) / prompt.letterings.len().max(1) as f32;
        let across = prompt.letterings[i]
            .position
            .and_then(|position| position.across)
            .map_or(0.0, f32::from);
        let half = if across == 0.0 { 0.42 } else { 0.21 } * self.width;
        let x = self.width * (0.5 + 0.24 * across);
        let y = top + each * (i as f32 + 0.5);
        Area {
            left: x - half,
            right: x + half,
            top: y - each * 0.46,
            bottom: y + each * 0.46,
        }
    }

    /// About the colour on which words are seen.
    pub(super) fn behind_lettering(&self) -> Colour {
        let dark = Colour::hex(0x15_1c_3a);
        match self.backdrop {
            Backdrop::Plain(colour) | Backdrop::Paper(colour) => colour,
            Backdrop::Place(place) if !place.is("indoors") => dark,
            _ if self.words.0 > self.height * 0.5 && self.water => dark,
            _ if self.is_light("night") => dark,
            _ => Colour::WHITE,
        }
    }
}

/// The areas of subjects and of words in a picture of that size.
fn areas(prompt: &Prompt, width: f32, height: f32) -> (Area, (f32, f32)) {
    let [left, right] = [MARGIN, 1.0 - MARGIN].map(|part| part * width);
    let [top, bottom] = [MARGIN, 1.0 - MARGIN].map(|part| part * height);
    let whole = Area {
        left,
        top,
        right,
        bottom,
    };
    let on_sign = usize::from(prompt.shows("sign"));
    let low = prompt
        .letterings
        .iter()
        .any(|text| text.position.and_then(|position| position.down) == Some(1));
    if prompt.letterings.len() <= on_sign
        || (prompt.subjects.is_empty() && prompt.places.is_empty())
    {
        (whole, (height * 0.14, height * 0.86))
    } else if low {
        (
            Area {
                bottom: height * 0.72,
                ..whole
            },
            (height * 0.73, height * 0.95),
        )
    } else {
        (
            Area {
                top: height * 0.3,
                ..whole
            },
            (height * 0.05, height * 0.29),
        )
    }
}

/// The backdrop that the prompt names, or the one that suits its subjects.
fn backdrop(prompt: &Prompt, background: Background, random: &mut Random) -> Backdrop {
    if background == Background::Transparent {
        return Backdrop::Clear;
    }
    if let Some(colour) = prompt.plain {
        return Backdrop::Plain(colour);
    }
    let open = prompt.has_horizon();
    let filling = ["space", "underwater", "tabletop", "room"]
        .into_iter()
        .find_map(|name| prompt.place(name));
    let lit = prompt.light.is_some() || !prompt.weather.is_empty();
    match filling.filter(|place| !(open && place.name == "space")) {
        Some(place) => Backdrop::Place(place),
        None if open => Backdrop::Outdoors,
        None if prompt.style.logo || prompt.style.outline => Backdrop::Plain(Colour::WHITE),
        None if prompt.has("sky") && stands(prompt) => Backdrop::Outdoors,
        None if prompt.has("sky") => Backdrop::Air,
        None if prompt.subjects.is_empty() && !lit && prompt.letterings.is_empty() => {
            Backdrop::Abstract
        }
        None => implied(prompt, lit, random),
    }
}

/// The surroundings in which things of this kind are usually found.
fn implied(prompt: &Prompt, lit: bool, random: &mut Random) -> Backdrop {
    let any = |setting: &str| {
        prompt
            .subjects
            .iter()
            .any(|subject| subject.thing.fact("data-setting") == setting)
    };
    let place = |name| named(name).filter(|_| any(name)).map(Backdrop::Place);
    if let Some(found) = place("space").or_else(|| place("underwater").filter(|_| !lit)) {
        return found;
    }
    let outdoors = ["outdoors", "snow", "desert"].into_iter().any(any) || (lit && stands(prompt));
    match () {
        () if outdoors => Backdrop::Outdoors,
        () if any("air") || lit => Backdrop::Air,
        () => {
            let opposite = prompt
                .colours()
                .next()
                .map(|colour| colour.to_hsl().0 + 180.0);
            let hue = opposite.unwrap_or_else(|| random.range(0.0, 360.0));
            Backdrop::Paper(Colour::hsl(hue + random.jitter(25.0), 0.42, 0.92))
        }
    }
}

fn stands(prompt: &Prompt) -> bool {
    prompt
        .subjects
        .iter()
        .any(|subject| !subject.thing.is("flies"))
}

/// The near ground: the first of the grounds that the prompt names, or the one that suits its
/// subjects.
fn ground(prompt: &Prompt, water: bool) -> Option<Place> {
    let named_grounds = [
        "cliff", "snow", "street", "beach", "desert", "hills", "field",
    ];
    if let Some(ground) = named_grounds
        .into_iter()
        .find_map(|name| prompt.place(name))
    {
        return Some(ground);
    }
    let brought = |setting: &str| {
        prompt
            .subjects
            .iter()
            .any(|subject| subject.thing.fact("data-setting") == setting)
    };
    let walks = |thing: Thing| !thing.is("flies") && !thing.is("swims");
    named(match () {
        () if brought("snow") => "snow",
        () if brought("desert") => "desert",
        () if prompt.has("city") && !water => "street",
        () if water && prompt.subjects.iter().any(|subject| walks(subject.thing)) => "beach",
        () if prompt.has("lake") => "bank",
        () if water => return None,
        () => "field",
    })
}

const MARGIN: f32 = 0.07;
/// So far beyond an edge that nothing of it shows.
const OUT_OF_SIGHT: f32 = 120.0;
