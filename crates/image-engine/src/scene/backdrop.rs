//! What is behind the subjects, layer by layer.

use super::layout::Actor;
use super::pen::{Fill, Pen};
use super::stage::{Backdrop, Ground, Stage};
use super::{abstracts, ground, indoors, land, sky, water};
use crate::brief::{Brief, Light, Place, Thing};
use crate::colour::Colour;

/// Draws all that is behind the subjects, those included that are in the sky behind the land.
pub(super) fn draw(pen: &mut Pen, brief: &Brief, stage: &Stage, actors: &[Actor]) {
    match stage.backdrop {
        Backdrop::Clear => vignette(pen, brief, stage),
        Backdrop::Plain(colour) => fill(pen, stage, colour),
        Backdrop::Studio(colour) => indoors::studio(pen, stage, colour),
        Backdrop::Air => {
            sky::draw(pen, brief, stage);
            far_actors(pen, stage, actors);
        }
        Backdrop::Outdoors => outdoors(pen, brief, stage, actors),
        Backdrop::Space => sky::space(pen, stage),
        Backdrop::Underwater => water::below(pen, stage),
        Backdrop::Room => indoors::room(pen, brief, stage),
        Backdrop::Tabletop => indoors::tabletop(pen, brief, stage),
        Backdrop::Abstract => abstracts::draw(pen, brief, stage),
    }
}

/// Whether the backdrop has drawn this thing already, since land hides it.
pub(super) fn draws(stage: &Stage, actor: &Actor) -> bool {
    let far = matches!(actor.thing, Thing::Sun | Thing::Moon | Thing::Cloud | Thing::Rainbow);
    far && matches!(stage.backdrop, Backdrop::Outdoors | Backdrop::Air)
}

pub(super) fn fill(pen: &mut Pen, stage: &Stage, fill: impl Into<Fill>) {
    pen.rect((-2.0, -2.0), (stage.width + 4.0, stage.height + 4.0), 0.0, fill);
}

fn far_actors(pen: &mut Pen, stage: &Stage, actors: &[Actor]) {
    let order = |actor: &&Actor| usize::from(actor.thing == Thing::Cloud);
    let mut far: Vec<&Actor> = actors.iter().filter(|actor| draws(stage, actor)).collect();
    far.sort_by_key(order);
    for actor in far {
        super::act(pen, stage, actor);
    }
}

fn outdoors(pen: &mut Pen, brief: &Brief, stage: &Stage, actors: &[Actor]) {
    sky::draw(pen, brief, stage);
    far_actors(pen, stage, actors);
    if brief.has(Place::Mountains) {
        land::mountains(pen, brief, stage);
    } else if brief.has(Place::Lake) || (!stage.water && stage.ground != Some(Ground::Desert)) {
        land::far_hills(pen, stage);
    }
    if brief.has(Place::City) {
        land::city(pen, stage);
    }
    if stage.water {
        water::draw(pen, brief, stage);
    }
    ground::draw(pen, brief, stage);
    if brief.has(Place::Forest) {
        land::forest(pen, stage);
    }
}

/// A place without its surroundings: what is to be cut out of it, in a round frame.
fn vignette(pen: &mut Pen, brief: &Brief, stage: &Stage) {
    if !brief.subjects.is_empty() || !brief.letterings.is_empty() {
        return;
    }
    let (x, y, r) = (stage.width / 2.0, stage.height / 2.0, 360.0);
    let night = brief.light == Some(Light::Night);
    let sky = if night { Colour::hex(0x27_32_6b) } else { Colour::hex(0x9f_d4_f2) };
    pen.circle((x, y), r, Fill::Down(sky, sky.lighter(0.45)));
    pen.circle((x + r * 0.3, y - r * 0.35), r * 0.17, Fill::Round(Colour::hex(0xff_d8_5a)));
    let land = brief.colours().next().unwrap_or(Colour::hex(0x4f_8a_6b));
    let chord = |drop: f32| ((r * r - drop * drop).max(0.0)).sqrt();
    let low = chord(60.0);
    pen.path(
        &format!(
            "M{:.1} {:.1} L{:.1} {:.1} L{:.1} {:.1} L{:.1} {:.1} L{:.1} {:.1} A{r} {r} 0 0 1 {:.1} {:.1}Z",
            x - low,
            y + 60.0,
            x - low * 0.42,
            y - 150.0,
            x - low * 0.05,
            y + 20.0,
            x + low * 0.35,
            y - 70.0,
            x + low,
            y + 60.0,
            x - low,
            y + 60.0
        ),
        Fill::Lit(land),
    );
    pen.ellipse((x, y + r * 0.62), (r * 0.7, r * 0.16), Fill::Glow(land.lighter(0.5)));
}
