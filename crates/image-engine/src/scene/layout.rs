//! The places and sizes of all things.

use super::block::{Block, Part};
use super::random::Random;
use super::view::{Area, Backdrop, View, Zone};
use crate::colour::Colour;
use crate::drawing::Thing;
use crate::prompt::{Position, Prompt, Relation, Subject};

/// A thing in its place.
pub(super) struct Figure {
    pub(super) thing: Thing,
    /// The middle of its foot.
    pub(super) at: (f32, f32),
    pub(super) height: f32,
    /// 1, or −1 when it looks the other way.
    pub(super) facing: f32,
    pub(super) turn: f32,
    pub(super) main: Colour,
    pub(super) accent: Colour,
    /// The prompt names its colour.
    pub(super) coloured: bool,
    pub(super) contents: Option<Thing>,
    /// It has a shadow on the floor.
    pub(super) grounded: bool,
    pub(super) seed: u64,
}

/// Places all subjects, the far ones first.
pub(super) fn place(prompt: &Prompt, view: &View) -> Vec<Figure> {
    let mut blocks = blocks(prompt, view);
    let mut placer = Placer {
        prompt,
        view,
        random: Random::new(view.seed, "layout"),
        figures: Vec::new(),
    };
    for zone in [Zone::Sky, Zone::Water, Zone::Ground, Zone::Free] {
        let (here, rest): (Vec<_>, Vec<_>) =
            blocks.into_iter().partition(|placed| placed.zone == zone);
        blocks = rest;
        for (area, group) in regions(view.zone_area(zone), zone, here) {
            placer.spread(zone, area, group);
        }
    }
    placer.figures
}

struct Placed {
    block: Block,
    zone: Zone,
    position: Position,
}

/// The subjects as blocks: those that are related are one.
fn blocks(prompt: &Prompt, view: &View) -> Vec<Placed> {
    let mut joined: Vec<Vec<(Relation, Block)>> = vec![Vec::new(); prompt.subjects.len()];
    let mut placed = Vec::new();
    for (i, subject) in prompt.subjects.iter().enumerate() {
        let zone = view.zone(subject.thing);
        let position = subject.position.unwrap_or_default();
        let singles = singles(i, subject, view);
        let others = std::mem::take(&mut joined[i]);
        let partner = partner(prompt, subject, view);
        if partner.is_none() && others.is_empty() {
            placed.extend(singles.into_iter().map(|block| Placed {
                block,
                zone,
                position,
            }));
            continue;
        }
        let surface = subject.thing.surface;
        let join = |own: Block, (relation, other)| own.join(other, relation, surface);
        let block = others.into_iter().fold(Block::row(singles), join);
        match partner {
            Some((relation, to)) => joined[to].push((relation, block)),
            None => placed.push(Placed {
                block,
                zone,
                position,
            }),
        }
    }
    placed
}

/// The blocks of a subject's things. In a scene a house is larger than a cat; alone each fills the
/// picture.
fn singles(i: usize, subject: &Subject, view: &View) -> Vec<Block> {
    let height = subject.thing.height;
    let softened = if view.backdrop == Backdrop::Outdoors {
        height
    } else {
        height.powf(0.6) * 12.0
    };
    let height = softened * subject.scale;
    let width = height * subject.thing.aspect;
    (0..subject.count)
        .map(|ordinal| Block::of(i, ordinal, width, height))
        .collect()
}

/// The later subject to whose block this one belongs. Something that flies is above the land
/// anyway.
fn partner(prompt: &Prompt, subject: &Subject, view: &View) -> Option<(Relation, usize)> {
    let own = view.zone(subject.thing);
    subject.relation.filter(|(relation, to)| {
        let is_held = matches!(relation, Relation::On | Relation::Inside) && own != Zone::Sky;
        is_held || own == view.zone(prompt.subjects[*to].thing)
    })
}

/// Divides an area among the blocks that have a side of it.
fn regions(area: Area, zone: Zone, all: Vec<Placed>) -> Vec<(Area, Vec<Placed>)> {
    let mut regions: Vec<(Area, Vec<Placed>)> = Vec::new();
    let sides = all.iter().any(|placed| placed.position.across.is_some());
    let levels = zone != Zone::Ground && all.iter().any(|placed| placed.position.down.is_some());
    for placed in all {
        let across = sides.then_some(placed.position.across.unwrap_or(0));
        let down = levels.then_some(placed.position.down.unwrap_or(0));
        let part = part(area, across, down);
        match regions.iter_mut().find(|(found, _)| *found == part) {
            Some((_, group)) => group.push(placed),
            None => regions.push((part, vec![placed])),
        }
    }
    regions
}

/// A third of an area across and down; `None` is all of it.
fn part(area: Area, across: Option<i8>, down: Option<i8>) -> Area {
    let third = |low: f32, high: f32, side: Option<i8>| match side {
        None => (low, high),
        Some(side) => {
            let middle = f32::midpoint(low, high) + f32::from(side) * (high - low) * 0.33;
            let reach = (high - low) * 0.17;
            (middle - reach, middle + reach)
        }
    };
    let (left, right) = third(area.left, area.right, across);
    let (top, bottom) = third(area.top, area.bottom, down);
    Area {
        left,
        top,
        right,
        bottom,
    }
}

struct Placer<'a> {
    prompt: &'a Prompt,
    view: &'a View,
    random: Random,
    figures: Vec<Figure>,
}

impl Placer<'_> {
    /// Spreads blocks over an area in as many rows as let them be largest.
    fn spread(&mut self, zone: Zone, area: Area, mut group: Vec<Placed>) {
        group.sort_by_key(|placed| placed.position.depth.unwrap_or(0));
        let things = group.iter().map(|placed| placed.block.parts.len()).sum();
        let (rows, scale) = rows(&group, zone, area, largest(self.view, zone, things));
        let per_row = group.len().div_ceil(rows);
        let mut group = group.into_iter();
        for row in 0..rows {
            let blocks: Vec<Block> = group
                .by_ref()
                .take(per_row)
                .map(|placed| placed.block.scaled(scale))
                .collect();
            self.row(zone, strip(zone, area, row, rows), blocks);
        }
    }

    /// Places blocks side by side, with the free space spread between them by chance.
    fn row(&mut self, zone: Zone, strip: Area, blocks: Vec<Block>) {
        let slack = (strip.width() - blocks.iter().map(|block| block.width).sum::<f32>()).max(0.0);
        let widest = if zone == Zone::Sky { 1.0 } else { 0.22 };
        let gap = (slack / (blocks.len() as f32 + 1.0)).min(strip.width() * widest);
        let mut left = strip.left + (slack - gap * (blocks.len() as f32 - 1.0)) / 2.0;
        for block in blocks {
            let shift = if zone == Zone::Sky {
                // It keeps clear of things in the middle of the land.
                let side = if self.random.chance(0.5) { gap } else { -gap };
                side * self.random.range(0.3, 0.62)
            } else {
                self.random.jitter((gap * 0.34).min(strip.width() * 0.1))
            };
            let x = left + block.width / 2.0 + shift;
            left += block.width + gap;
            let spare = (strip.height() - block.height).max(0.0);
            let y = match zone {
                Zone::Ground | Zone::Water => {
                    strip.bottom + self.random.jitter(self.view.height * 0.012)
                }
                Zone::Sky => strip.top + block.height + spare * self.random.range(0.05, 0.75),
                Zone::Free => strip.bottom - spare * (0.5 + self.random.jitter(0.16)),
            };
            for part in &block.parts {
                let figure = self.figure(part, (x, y), zone);
                self.figures.push(figure);
            }
        }
    }

    /// The thing of a part of a block whose foot is at `x` and `y`.
    fn figure(&mut self, part: &Part, (x, y): (f32, f32), zone: Zone) -> Figure {
        let Self {
            prompt,
            view,
            random,
            ..
        } = self;
        let subject = &prompt.subjects[part.subject];
        let thing = subject.thing;
        let ordinal = part.ordinal as usize;
        // Another thing is inside of it, whose colour is to stand out.
        let frames = prompt
            .subjects
            .iter()
            .any(|other| other.relation == Some((Relation::Inside, part.subject)));
        let stands_on_paper = matches!(view.backdrop, Backdrop::Paper(_)) && thing.is("stands");
        let seed = random.seed();
        let start = random.range(0.0, 360.0);
        let main = match subject.colours.as_slice() {
            [] if frames => prompt.colours().next().unwrap_or(thing.main).lighter(0.74),
            [] if subject.varied => Colour::hsl(VARIED[ordinal % VARIED.len()], 0.74, 0.55),
            [] => thing.main.turned(random.jitter(if thing.is("any-colour") {
                start / 2.0
            } else {
                7.0
            })),
            named => named[ordinal % named.len()],
        };
        Figure {
            thing,
            at: (x + part.x, y + part.y),
            height: part.height,
            facing: if thing.is("mirrors") && random.chance(0.4) {
                -1.0
            } else {
                1.0
            },
            turn: if thing.is("sways") {
                random.jitter(5.0)
            } else {
                0.0
            },
            main,
            accent: subject.accent.unwrap_or(thing.accent),
            coloured: !subject.colours.is_empty(),
            contents: subject.contents,
            grounded: part.grounded && (zone == Zone::Ground || stands_on_paper),
            seed,
        }
    }
}

/// The number of rows with which things are largest, and their scale.
fn rows(group: &[Placed], zone: Zone, area: Area, largest: f32) -> (usize, f32) {
    let mut best = (1, 0.0);
    let (most, spacing) = match zone {
        Zone::Ground | Zone::Water => (group.len().div_ceil(4), 0.22),
        Zone::Sky | Zone::Free => (group.len(), 1.14),
    };
    let tallest = group
        .iter()
        .map(|placed| placed.block.height)
        .fold(1.0, f32::max);
    for rows in 1..=most.clamp(1, 12) {
        let strips: Vec<_> = group.chunks(group.len().div_ceil(rows).max(1)).collect();
        let width = |row: &[Placed]| {
            row.iter()
                .map(|placed| placed.block.width * 1.12)
                .sum::<f32>()
        };
        let widest = strips.iter().map(|row| width(row)).fold(1.0, f32::max);
        let high = tallest * (1.0 + spacing * (strips.len() as f32 - 1.0));
        let scale = (area.width() / widest)
            .min(area.height() / high)
            .min(largest);
        if scale > best.1 * 1.3 {
            best = (strips.len(), scale);
        }
    }
    best
}

/// Outdoors things keep their size; elsewhere they fill the room.
fn largest(view: &View, zone: Zone, things: usize) -> f32 {
    match zone {
        Zone::Free if view.backdrop == Backdrop::Clear => 8.0,
        Zone::Free => 4.6,
        Zone::Ground if matches!(view.backdrop, Backdrop::Place(place) if place.name == "tabletop") => {
            2.4
        }
        Zone::Ground if view.backdrop != Backdrop::Outdoors => 1.8,
        _ => match things {
            1 => 1.5,
            2 => 1.3,
            _ => 1.1,
        },
    }
}

fn strip(zone: Zone, area: Area, row: usize, rows: usize) -> Area {
    if matches!(zone, Zone::Ground | Zone::Water) {
        let forward = (row as f32 - (rows as f32 - 1.0)) * area.height() * 0.09;
        return Area {
            bottom: area.bottom + forward,
            ..area
        };
    }
    let each = area.height() / rows as f32;
    let top = area.top + each * row as f32;
    Area {
        top,
        bottom: top + each,
        ..area
    }
}

/// Hues that are easily distinguished.
const VARIED: [f32; 8] = [2.0, 212.0, 46.0, 130.0, 285.0, 24.0, 180.0, 330.0];
