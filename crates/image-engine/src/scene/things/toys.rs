//! What children play with.

use crate::brief::Thing;
use crate::colour::Colour;
use crate::scene::layout::Actor;
use crate::scene::pen::{Fill, Pen};

pub(super) fn draw(pen: &mut Pen, actor: &Actor) -> bool {
    match actor.thing {
        Thing::Balloon => balloon(pen, actor),
        Thing::Ball => ball(pen, actor),
        Thing::Gift => gift(pen, actor),
        Thing::Flag => flag(pen, actor),
        Thing::Kite => kite(pen, actor),
        _ => return false,
    }
    true
}

fn balloon(pen: &mut Pen, actor: &Actor) {
    pen.line("M0 -34Q-8 -24 0 -16T-2 0", actor.accent, 0.9);
    pen.polygon(&[(-4.0, -32.0), (0.0, -38.0), (4.0, -32.0)], actor.main.darker(0.2));
    pen.path(
        "M0 -100C17 -100 28 -86 28 -70C28 -52 12 -36 0 -36C-12 -36 -28 -52 -28 -70C-28 -86 -17 -100 0 -100Z",
        Fill::Round(actor.main),
    );
    pen.set_opacity(0.6);
    pen.within((-11.0, -82.0), (1.0, 1.0), 32.0, |pen| pen.ellipse((0.0, 0.0), (4.0, 8.0), Colour::WHITE));
    pen.set_opacity(1.0);
}

fn ball(pen: &mut Pen, actor: &Actor) {
    pen.circle((0.0, -50.0), 50.0, Fill::Round(actor.main));
    pen.line("M-44 -70Q0 -40 47 -66M-20 -96Q10 -56 -12 -4", actor.main.lighter(0.5), 3.4);
}

fn gift(pen: &mut Pen, actor: &Actor) {
    let (c, ribbon) = (actor.main, actor.accent);
    pen.rect((-42.0, -60.0), (84.0, 60.0), 2.0, Fill::Lit(c));
    pen.rect((-48.0, -74.0), (96.0, 18.0), 3.0, Fill::Lit(c.lighter(0.12)));
    pen.rect((-8.0, -74.0), (16.0, 74.0), 0.0, Fill::Lit(ribbon));
    pen.path(
        "M0 -74C-10 -104 -44 -104 -36 -82Q-28 -72 0 -74ZM0 -74C10 -104 44 -104 36 -82Q28 -72 0 -74Z",
        Fill::Lit(ribbon),
    );
    pen.circle((0.0, -76.0), 6.0, ribbon.darker(0.14));
}

fn flag(pen: &mut Pen, actor: &Actor) {
    pen.rect((-42.0, -98.0), (4.6, 98.0), 2.0, Fill::Lit(actor.accent));
    pen.circle((-39.7, -98.0), 3.6, Colour::hex(0xf0_c0_40));
    pen.path("M-38 -94C-14 -104 8 -80 44 -92V-46C8 -34 -14 -58 -38 -48Z", Fill::Lit(actor.main));
}

fn kite(pen: &mut Pen, actor: &Actor) {
    pen.line("M0 -24Q-12 -14 0 -8T-6 6", actor.accent.darker(0.3), 1.2);
    pen.polygon(&[(0.0, -100.0), (35.0, -66.0), (0.0, -22.0), (-35.0, -66.0)], Fill::Lit(actor.main));
    pen.polygon(&[(0.0, -100.0), (35.0, -66.0), (0.0, -66.0)], actor.accent);
    pen.polygon(&[(0.0, -22.0), (-35.0, -66.0), (0.0, -66.0)], actor.accent);
    pen.line("M0 -100V-22M-35 -66H35", actor.main.darker(0.35), 1.4);
    for (x, y) in [(-5.0, -14.0), (-1.0, -5.0)] {
        pen.polygon(&[(x - 6.0, y - 3.0), (x, y), (x - 6.0, y + 3.0)], actor.main);
        pen.polygon(&[(x + 6.0, y - 3.0), (x, y), (x + 6.0, y + 3.0)], actor.main);
    }
}
