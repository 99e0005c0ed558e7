//! Where everything is before anything is drawn: the backdrop, the horizon, and the rooms for things and words.

mod setting;

use engine::{Background, Pixels};

use super::dice::Dice;
use super::lettering::Slot;
use crate::brief::{Brief, Light, Thing};
use crate::colour::Colour;
use setting::{backdrop, ground, has_water};
pub(super) use setting::{flies, is_gloomy, swims};

/// What is behind the subjects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Backdrop {
    /// Nothing.
    Clear,
    /// One colour.
    Plain(Colour),
    /// A soft light on paper.
    Studio(Colour),
    /// A sky, and land or water below it.
    Outdoors,
    /// Sky alone.
    Air,
    Space,
    Underwater,
    Room,
    Tabletop,
    /// Shapes that mean nothing.
    Abstract,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ground {
    Field,
    Hills,
    Snow,
    Desert,
    Sand,
    Cliff,
    Street,
    Bank,
}

/// A rectangle of the picture.
#[derive(Clone, Copy, Debug, PartialEq)]
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

pub(super) struct Stage {
    pub(super) width: f32,
    pub(super) height: f32,
    pub(super) backdrop: Backdrop,
    pub(super) light: Light,
    /// Where sky and land meet, from the top.
    pub(super) horizon: f32,
    pub(super) water: bool,
    /// Absent: water goes down to the lower edge.
    pub(super) ground: Option<Ground>,
    /// Where near ground begins.
    pub(super) ground_top: f32,
    pub(super) seed: u64,
    /// Room kept free for words, from the top or the bottom.
    words: Words,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Words {
    None,
    Top(f32),
    Bottom(f32),
    Everywhere,
}

impl Stage {
    pub(super) fn plan(brief: &Brief, size: Pixels, background: Background, seed: u64) -> Self {
        let (width, height) = (size.width.max(1) as f32, size.height.max(1) as f32);
        let unit = 1000.0 / width.min(height);
        let (width, height) = (width * unit, height * unit);
        let mut dice = Dice::new(seed, "stage");
        let light = brief.light.unwrap_or(Light::Day);
        let backdrop = backdrop(brief, background, &mut dice);
        let water = has_water(brief);
        let ground = ground(brief, water);
        let horizon = height * (if water { 0.5 } else { 0.6 } + dice.jitter(0.03));
        let horizon = if brief.from_above { -OUT_OF_SIGHT } else { horizon };
        let ground_top = match ground {
            _ if brief.from_above && water => height + OUT_OF_SIGHT,
            Some(Ground::Bank) => height * 0.93,
            Some(Ground::Cliff) => height * 0.66,
            _ if water => height * (0.76 + dice.jitter(0.02)),
            _ => horizon,
        };
        let words = words(brief, height);
        Self { width, height, backdrop, light, horizon, water, ground, ground_top, seed, words }
    }

    pub(super) fn dice(&self, layer: &str) -> Dice {
        Dice::new(self.seed, layer)
    }

    /// Whether shadows fall on something.
    pub(super) const fn has_floor(&self) -> bool {
        matches!(self.backdrop, Backdrop::Studio(_) | Backdrop::Outdoors | Backdrop::Room | Backdrop::Tabletop)
    }

    /// What the light does to the colours of things.
    pub(super) fn tint(&self) -> Option<(Colour, f32)> {
        match (self.backdrop, self.light) {
            (Backdrop::Outdoors | Backdrop::Air, Light::Night) => Some((Colour::hex(0x14_1d_4a), 0.42)),
            (Backdrop::Outdoors | Backdrop::Air, Light::Sunset) => Some((Colour::hex(0x8a_2f_4a), 0.2)),
            (Backdrop::Outdoors | Backdrop::Air, Light::Morning) => Some((Colour::hex(0xff_d9_c0), 0.14)),
            (Backdrop::Underwater, _) => Some((Colour::hex(0x0b_5d_8a), 0.14)),
            _ => None,
        }
    }

    pub(super) const fn shadow(&self) -> Colour {
        Colour::hex(0x1d_1b_3a)
    }

    /// Everything but the margins, and the room for words.
    pub(super) fn whole(&self) -> Area {
        let margin = 0.07;
        let mut area = Area {
            left: self.width * margin,
            right: self.width * (1.0 - margin),
            top: self.height * margin,
            bottom: self.height * (1.0 - margin),
        };
        match self.words {
            Words::Top(room) => area.top = room,
            Words::Bottom(room) => area.bottom = self.height - room,
            Words::None | Words::Everywhere => {}
        }
        area
    }

    pub(super) fn sky(&self) -> Area {
        let whole = self.whole();
        let bottom = (self.horizon - self.height * 0.03).max(whole.top + self.height * 0.2);
        Area { bottom, ..whole }
    }

    pub(super) fn water(&self) -> Area {
        let bottom = if self.ground.is_some() { self.ground_top } else { self.height * 0.9 };
        Area { top: self.horizon * 0.7, bottom: bottom - self.height * 0.05, ..self.whole() }
    }

    /// Where things stand: their feet are in its lower part.
    pub(super) fn standing(&self) -> Area {
        let depth = self.height - self.ground_top;
        let feet = match self.ground {
            _ if matches!(self.backdrop, Backdrop::Room | Backdrop::Tabletop) => self.height * 0.86,
            Some(Ground::Cliff) => self.ground_top + depth * 0.04,
            Some(Ground::Street) => self.ground_top + depth * 0.72,
            Some(Ground::Hills) => self.ground_top + depth * 0.4,
            _ if self.water => self.ground_top + depth * 0.5,
            _ => self.ground_top + depth * 0.56,
        };
        Area { bottom: feet, ..self.whole() }
    }

    /// The room for the words number `i`.
    pub(super) fn lettering(&self, brief: &Brief, i: usize) -> Slot {
        let all = brief.letterings.len().max(1) as f32;
        let (top, room) = match self.words {
            Words::Top(room) => (self.height * 0.05, room - self.height * 0.06),
            Words::Bottom(room) => (self.height - room + self.height * 0.01, room - self.height * 0.06),
            Words::Everywhere | Words::None => (self.height * 0.14, self.height * 0.72),
        };
        let each = room / all;
        let across = brief.letterings[i].position.and_then(|position| position.across).map_or(0.0, f32::from);
        let width = if across == 0.0 { 0.84 } else { 0.42 } * self.width;
        Slot { middle: (self.width * (0.5 + 0.24 * across), top + each * (i as f32 + 0.5)), size: (width, each * 0.92) }
    }

    /// About the colour on which words at the top are seen.
    pub(super) fn behind_lettering(&self) -> Colour {
        let dark = Colour::hex(0x15_1c_3a);
        match self.backdrop {
            Backdrop::Plain(colour) | Backdrop::Studio(colour) => colour,
            Backdrop::Space | Backdrop::Underwater => dark,
            _ if matches!(self.words, Words::Bottom(_)) && self.water => dark,
            _ if self.light == Light::Night => dark,
            _ => Colour::WHITE,
        }
    }
}

fn words(brief: &Brief, height: f32) -> Words {
    let free = brief.letterings.len() - usize::from(brief.shows(Thing::Sign)).min(brief.letterings.len());
    let low = brief.letterings.iter().any(|text| text.position.and_then(|position| position.down) == Some(1));
    match free {
        0 => Words::None,
        _ if brief.subjects.is_empty() && brief.places.is_empty() => Words::Everywhere,
        _ if low => Words::Bottom(height * 0.28),
        _ => Words::Top(height * 0.3),
    }
}

/// So far beyond an edge that nothing of it shows.
const OUT_OF_SIGHT: f32 = 120.0;
