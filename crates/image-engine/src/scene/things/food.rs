//! What is eaten, and what it is served in.

use engine::Quality;

use super::forms;
use crate::brief::Thing;
use crate::colour::Colour;
use crate::scene::dice::Dice;
use crate::scene::layout::Actor;
use crate::scene::pen::{Fill, Pen};

pub(super) fn draw(pen: &mut Pen, actor: &Actor) -> bool {
    match actor.thing {
        Thing::Apple => apple(pen, actor),
        Thing::Cherry => cherries(pen, actor),
        Thing::Orange => orange(pen, actor),
        Thing::Lemon => lemon(pen, actor),
        Thing::Banana => banana(pen, actor),
        Thing::Cake => cake(pen, actor),
        Thing::Cup => cup(pen, actor),
        Thing::Bowl => bowl(pen, actor),
        Thing::IceCream => ice_cream(pen, actor),
        Thing::Pizza => pizza(pen, actor),
        Thing::Egg => pen.path(
            "M0 -100C22 -100 39 -60 39 -38C39 -14 22 0 0 0C-22 0 -39 -14 -39 -38C-39 -60 -22 -100 0 -100Z",
            Fill::Round(actor.main),
        ),
        Thing::Pumpkin => pumpkin(pen, actor),
        _ => return false,
    }
    true
}

fn shine(pen: &mut Pen, at: (f32, f32), size: (f32, f32)) {
    if pen.fine(Quality::Medium) {
        pen.set_opacity(0.55);
        pen.ellipse(at, size, Colour::WHITE);
        pen.set_opacity(1.0);
    }
}

fn apple(pen: &mut Pen, actor: &Actor) {
    pen.path(
        "M0 -78C12 -88 46 -88 47 -48C46 -16 24 2 10 0Q0 -4 -10 0C-24 2 -46 -16 -47 -48C-46 -88 -12 -88 0 -78Z",
        Fill::Round(actor.main),
    );
    pen.line("M0 -76Q1 -90 8 -99", Colour::hex(0x6a_44_28), 4.0);
    pen.path("M5 -86Q16 -104 36 -96Q26 -80 5 -86Z", Fill::Lit(actor.accent));
    shine(pen, (-24.0, -60.0), (7.0, 11.0));
}

fn cherries(pen: &mut Pen, actor: &Actor) {
    pen.line("M-22 -44Q-12 -76 14 -96M24 -40Q22 -72 14 -96", Colour::hex(0x5a_8a_3a), 3.0);
    pen.path("M14 -96Q34 -104 46 -86Q26 -78 14 -96Z", Fill::Lit(actor.accent));
    for (x, y) in [(-24.0, -25.0), (25.0, -22.0)] {
        pen.circle((x, y), 23.0, Fill::Round(actor.main));
        shine(pen, (x - 8.0, y - 8.0), (4.0, 5.4));
    }
}

fn orange(pen: &mut Pen, actor: &Actor) {
    pen.circle((0.0, -47.0), 47.0, Fill::Round(actor.main));
    pen.path("M2 -91Q14 -106 32 -98Q22 -84 2 -91Z", Fill::Lit(actor.accent));
    pen.circle((0.0, -91.0), 4.0, actor.accent.darker(0.3));
    shine(pen, (-18.0, -66.0), (9.0, 7.0));
}

fn lemon(pen: &mut Pen, actor: &Actor) {
    pen.path("M-65 -48Q-54 -54 -48 -62C-30 -104 30 -104 48 -62Q54 -54 65 -48Q54 -42 48 -36C30 4 -30 4 -48 -36Q-54 -42 -65 -48Z", Fill::Round(actor.main));
    shine(pen, (-18.0, -68.0), (11.0, 7.0));
}

fn banana(pen: &mut Pen, actor: &Actor) {
    pen.path("M-64 -84C-52 -30 -4 -8 58 -26L68 -40C72 -30 70 -18 62 -12C10 16 -74 -10 -74 -80Z", Fill::Lit(actor.main));
    pen.path("M-76 -80L-74 -98L-64 -96L-63 -82Z", actor.accent);
    pen.path("M62 -36L70 -42L72 -30L65 -22Z", actor.accent);
}

fn cake(pen: &mut Pen, actor: &Actor) {
    let (icing, sponge) = (actor.main, actor.accent);
    pen.ellipse((0.0, -4.0), (55.0, 6.0), Colour::hex(0xe6_ea_f0));
    pen.rect((-44.0, -52.0), (88.0, 48.0), 4.0, Fill::Lit(sponge));
    pen.rect((-44.0, -32.0), (88.0, 6.0), 0.0, Colour::hex(0xff_f4_e4));
    pen.path("M-46 -58H46V-44Q40 -32 34 -42Q28 -48 22 -40Q14 -28 8 -40Q0 -48 -8 -38Q-16 -28 -22 -40Q-30 -48 -36 -38Q-44 -34 -46 -44Z", Fill::Lit(icing));
    for (i, x) in [-24.0, 0.0, 24.0].into_iter().enumerate() {
        pen.rect((x - 2.6, -80.0), (5.2, 23.0), 1.0, Colour::hsl(200.0 + 70.0 * i as f32, 0.6, 0.66));
        pen.path(&format!("M{x} -98Q{:.1} -84 {x} -81Q{:.1} -84 {x} -98Z", x + 7.0, x - 7.0), Colour::hex(0xff_b8_3a));
    }
}

fn cup(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    pen.line("M34 -62Q60 -64 56 -42Q52 -24 28 -24", c.darker(0.12), 9.0);
    pen.ellipse((-4.0, -3.0), (54.0, 6.0), Fill::Lit(c.darker(0.06)));
    pen.path("M-44 -76C-44 -30 -36 -4 -20 -4H12C28 -4 36 -30 36 -76Z", Fill::Lit(c));
    pen.ellipse((-4.0, -76.0), (40.0, 9.0), c.lighter(0.4));
    pen.ellipse((-4.0, -75.0), (35.0, 6.6), Fill::Lit(actor.accent));
    pen.set_opacity(0.55);
    pen.line("M-18 -84q-6 -8 0 -16t0 -16M-2 -86q-6 -8 0 -16t0 -16M14 -84q-6 -8 0 -16t0 -16", Colour::WHITE, 3.4);
    pen.set_opacity(1.0);
}

fn bowl(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    pen.ellipse((0.0, -58.0), (82.0, 14.0), c.darker(0.4));
    if let Some(contents) = actor.contents {
        heap(pen, actor, contents);
    }
    pen.path("M-84 -58Q0 -34 84 -58C80 -22 54 -4 30 -3H-30C-54 -4 -80 -22 -84 -58Z", Fill::Lit(c));
    pen.path("M-84 -58Q0 -34 84 -58L83 -52Q0 -28 -83 -52Z", actor.accent.mix(c, 0.3));
    pen.rect((-30.0, -5.0), (60.0, 5.0), 2.0, c.darker(0.3));
}

/// What lies in a bowl: the hindmost first.
fn heap(pen: &mut Pen, actor: &Actor, contents: Thing) {
    let mut dice = Dice::new(actor.seed, "heap");
    let (main, accent) = forms::colours(contents);
    for (row, (y, count)) in [(-70.0, 3), (-60.0, 4), (-50.0, 5)].into_iter().enumerate() {
        for i in 0..count {
            let x = (i as f32 - (count as f32 - 1.0) / 2.0) * 27.0 + dice.jitter(3.0);
            let one = Actor {
                thing: contents,
                main: main.turned(dice.jitter(8.0)),
                accent,
                contents: None,
                seed: dice.seed(),
                ..actor.clone()
            };
            let scale = 0.34 + 0.02 * row as f32;
            pen.within((x, y + dice.jitter(2.0) + 8.0), (scale, scale), dice.jitter(12.0), |pen| {
                super::draw(pen, &one);
            });
        }
    }
}

fn ice_cream(pen: &mut Pen, actor: &Actor) {
    pen.polygon(&[(-20.0, -52.0), (20.0, -52.0), (0.0, 0.0)], Fill::Lit(actor.accent));
    pen.line("M-13 -50L8 -20M0 -50L12 -32M13 -50L-8 -20M0 -50L-12 -32", actor.accent.darker(0.22), 1.5);
    pen.circle((-10.0, -60.0), 15.0, Fill::Round(actor.main));
    pen.circle((10.0, -60.0), 15.0, Fill::Round(Colour::hex(0xfb_f0_d8)));
    pen.circle((0.0, -78.0), 16.0, Fill::Round(actor.main.turned(40.0)));
    pen.circle((2.0, -95.0), 5.0, Fill::Round(Colour::hex(0xd0_20_3a)));
}

fn pizza(pen: &mut Pen, actor: &Actor) {
    pen.circle((0.0, -50.0), 50.0, Fill::Round(Colour::hex(0xd8_98_4c)));
    pen.circle((0.0, -50.0), 43.0, Fill::Lit(actor.main));
    for (x, y) in [(-16.0, -72.0), (16.0, -66.0), (-24.0, -42.0), (2.0, -46.0), (24.0, -36.0), (-6.0, -22.0)] {
        pen.circle((x, y), 7.6, Fill::Lit(actor.accent));
        pen.ellipse((x + 10.0, y + 8.0), (4.0, 2.0), Colour::hex(0x4c_8a_3a));
    }
}

fn pumpkin(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    pen.path("M-5 -78Q-6 -94 6 -100L12 -94Q4 -88 6 -78Z", Fill::Lit(actor.accent));
    for (x, half) in [(-36.0, 26.0), (36.0, 26.0), (-18.0, 26.0), (18.0, 26.0), (0.0, 24.0)] {
        pen.ellipse((x, -41.0), (half, 41.0 - f32::abs(x) * 0.12), Fill::Lit(c.darker(f32::abs(x) * 0.004)));
    }
}
