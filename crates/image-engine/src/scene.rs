//! A brief as a picture in layers: what is behind, what is far, water, ground, the subjects, weather, lettering.

mod abstracts;
mod backdrop;
mod block;
mod dice;
mod ground;
mod indoors;
mod land;
mod layout;
mod lettering;
mod pen;
mod sky;
mod stage;
mod things;
mod water;
mod weather;

use engine::{Background, Pixels, Quality};

use crate::brief::{Brief, Lettering, Thing};
use crate::colour::Colour;
use layout::Actor;
use lettering::Slot;
use pen::{Fill, Pen};
use stage::Stage;

/// Writes the picture as SVG.
///
/// The shorter side is 1000 units whatever the size in pixels, so that a smaller picture is the same picture.
pub(crate) fn compose(brief: &Brief, size: Pixels, background: Background, detail: Quality, seed: u64) -> String {
    let stage = Stage::plan(brief, size, background, seed);
    let actors = layout::place(brief, &stage);
    let mut pen = Pen::new(brief.style, detail);
    backdrop::draw(&mut pen, brief, &stage, &actors);
    for actor in actors.iter().filter(|actor| !backdrop::draws(&stage, actor)) {
        act(&mut pen, &stage, actor);
    }
    weather::draw(&mut pen, brief, &stage);
    letter(&mut pen, brief, &stage, &actors);
    pen.finish(stage.width, stage.height)
}

/// Draws one thing where it stands, with the shadow that it throws.
fn act(pen: &mut Pen, stage: &Stage, actor: &Actor) {
    let told = match actor.thing {
        Thing::Sun | Thing::Moon | Thing::Crescent | Thing::Star | Thing::Rainbow => 0.0,
        _ if actor.coloured => 0.35,
        _ => 1.0,
    };
    pen.set_tint(stage.tint().map(|(tint, part)| (tint, part * told)));
    if stage.has_floor() && actor.grounded && pen.fine(Quality::Low) {
        let (x, y) = actor.at;
        let reach = actor.height * things::aspect(actor.thing) * 0.62;
        pen.ellipse((x + reach * 0.12, y), (reach, (reach * 0.2).min(40.0)), Fill::Glow(stage.shadow()));
        if pen.fine(Quality::XHigh) {
            pen.ellipse((x + reach * 0.04, y), (reach * 0.6, (reach * 0.09).min(18.0)), Fill::Glow(stage.shadow()));
        }
    }
    let scale = actor.height / 100.0;
    pen.within(actor.at, (scale * actor.facing, scale), actor.turn, |pen| things::draw(pen, actor));
    pen.set_tint(None);
}

/// Puts the words where the layout has left room for them, or on a sign if there is one.
fn letter(pen: &mut Pen, brief: &Brief, stage: &Stage, actors: &[Actor]) {
    let sign = actors.iter().find(|actor| actor.thing == Thing::Sign);
    for (i, text) in brief.letterings.iter().enumerate() {
        let (slot, behind) = match sign {
            Some(sign) if i == 0 => (on_sign(sign), Colour::hex(0xf6_ec_d8)),
            _ => (stage.lettering(brief, i), stage.behind_lettering()),
        };
        lettering::write(pen, &text.text, slot, ink(text, behind));
    }
}

fn on_sign(sign: &Actor) -> Slot {
    let (x, y) = sign.at;
    Slot { middle: (x, y - sign.height * 0.72), size: (sign.height * 1.1, sign.height * 0.42) }
}

/// The colour that was told, or one that can be read.
fn ink(text: &Lettering, behind: Colour) -> Colour {
    let legible = if behind.luma() > 0.52 { Colour::hex(0x22_2a_44) } else { Colour::hex(0xff_f8_ea) };
    text.colour.unwrap_or(legible)
}
