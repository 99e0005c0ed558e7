//! What people build to stay.

use engine::Quality;

use crate::brief::Thing;
use crate::colour::Colour;
use crate::scene::layout::Actor;
use crate::scene::pen::{Fill, Pen};

const GLASS: Colour = Colour::hex(0xff_e7_a6);

pub(super) fn draw(pen: &mut Pen, actor: &Actor) -> bool {
    match actor.thing {
        Thing::House => house(pen, actor),
        Thing::Castle => castle(pen, actor),
        Thing::Lighthouse => lighthouse(pen, actor),
        Thing::Bridge => bridge(pen, actor),
        Thing::Tower => tower(pen, actor),
        Thing::Tent => tent(pen, actor),
        Thing::Windmill => windmill(pen, actor),
        Thing::Fence => fence(pen, actor),
        _ => return false,
    }
    true
}

fn house(pen: &mut Pen, actor: &Actor) {
    let (wall, roof) = (actor.main, actor.accent);
    pen.rect((18.0, -92.0), (11.0, 26.0), 0.0, roof.darker(0.3));
    pen.rect((16.0, -95.0), (15.0, 5.0), 1.0, roof.darker(0.42));
    pen.rect((-40.0, -56.0), (80.0, 56.0), 0.0, Fill::Lit(wall));
    pen.polygon(&[(-53.0, -54.0), (0.0, -100.0), (53.0, -54.0)], Fill::Lit(roof));
    pen.rect((-40.0, -55.0), (80.0, 5.0), 0.0, wall.darker(0.26));
    if pen.fine(Quality::Medium) {
        pen.line("M-38 -64H38M-26 -74H26M-15 -84H15", roof.darker(0.2), 1.3);
        pen.circle((0.0, -70.0), 6.5, Colour::hex(0xff_fa_f0));
        pen.circle((0.0, -70.0), 4.8, GLASS);
    }
    pen.path("M-9 0V-26A9 9 0 0 1 9 -26V0Z", Fill::Lit(Colour::hex(0x8a_52_33)));
    pen.circle((5.0, -15.0), 1.5, GLASS);
    for x in [-31.0, 15.0] {
        pane(pen, (x, -40.0), (16.0, 18.0));
    }
    pen.rect((-14.0, -2.5), (28.0, 3.5), 0.0, wall.darker(0.35));
}

/// A lit window with its cross.
fn pane(pen: &mut Pen, at: (f32, f32), size: (f32, f32)) {
    let frame = Colour::hex(0xff_fa_f0);
    pen.rect((at.0 - 1.8, at.1 - 1.8), (size.0 + 3.6, size.1 + 3.6), 1.0, frame);
    pen.rect(at, size, 0.0, Fill::Down(GLASS.lighter(0.2), Colour::hex(0xff_c8_6a)));
    if pen.fine(Quality::Medium) {
        let (x, y) = (at.0 + size.0 / 2.0, at.1 + size.1 / 2.0);
        pen.line(&format!("M{x} {}v{}M{} {y}h{}", at.1, size.1, at.0, size.0), frame, 1.4);
    }
}

fn castle(pen: &mut Pen, actor: &Actor) {
    let (stone, roof) = (actor.main, actor.accent);
    pen.path("M-40 0V-50H-32V-44H-22V-50H-12V-44H-2V-50H8V-44H18V-50H28V-44H40V0Z", Fill::Lit(stone));
    for (x, half, top) in [(-48.0, 14.0, -64.0), (48.0, 14.0, -64.0), (0.0, 13.0, -74.0)] {
        pen.rect((x - half, top), (half * 2.0, -top), 0.0, Fill::Lit(stone.darker(if x == 0.0 { 0.1 } else { 0.0 })));
        pen.polygon(&[(x - half - 4.0, top), (x, top - 26.0), (x + half + 4.0, top)], Fill::Lit(roof));
        pen.rect((x - 3.0, top + 14.0), (6.0, 12.0), 3.0, GLASS.darker(0.1));
    }
    pen.path("M-11 0V-20A11 11 0 0 1 11 -20V0Z", Colour::hex(0x5a_3a_28));
    if pen.fine(Quality::Medium) {
        pen.line("M-30 -30h8M22 -24h8M-26 -12h8M24 -36h7M-34 -20h6M28 -10h7", stone.darker(0.22), 1.4);
    }
}

fn lighthouse(pen: &mut Pen, actor: &Actor) {
    let (wall, band) = (actor.main, actor.accent);
    pen.polygon(&[(0.0, -90.0), (130.0, -112.0), (130.0, -66.0)], Fill::Glow(GLASS));
    pen.polygon(&[(-13.0, 0.0), (-8.5, -78.0), (8.5, -78.0), (13.0, 0.0)], Fill::Lit(wall));
    for y in [-14.0, -40.0, -66.0] {
        let half = |y: f32| 13.0 + y * 4.5 / 78.0;
        pen.polygon(
            &[(-half(y), y), (half(y), y), (half(y - 12.0), y - 12.0), (-half(y - 12.0), y - 12.0)],
            Fill::Lit(band),
        );
    }
    pen.rect((-12.0, -81.0), (24.0, 3.6), 1.0, Colour::hex(0x3a_3f_4c));
    pen.rect((-7.0, -92.0), (14.0, 11.0), 0.0, Fill::Down(GLASS.lighter(0.4), GLASS));
    pen.line("M-7 -92V-81M0 -92V-81M7 -92V-81", Colour::hex(0x3a_3f_4c), 1.2);
    pen.path("M-9 -92Q0 -103 9 -92Z", Fill::Lit(band));
    pen.path("M-3.5 0V-8A3.5 3.5 0 0 1 3.5 -8V0Z", Colour::hex(0x5a_40_30));
    pen.rect((-2.0, -34.0), (4.0, 6.0), 2.0, Colour::hex(0x3a_3f_4c));
}

fn bridge(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    let arches = "M-150 -42Q0 -92 150 -42V0H122A32 34 0 0 0 58 0H44A44 44 0 0 0 -44 0H-58A32 34 0 0 0 -122 0H-150Z";
    pen.path(arches, Fill::Lit(c));
    pen.line("M-150 -46Q0 -96 150 -46", actor.accent, 6.0);
    pen.line("M-150 -62Q0 -112 150 -62", actor.accent, 3.0);
    for i in 0..13 {
        let x = -144.0 + 24.0 * i as f32;
        let y = -46.0 - 25.0 * (1.0 - (x / 150.0).powi(2));
        pen.line(&format!("M{x:.1} {y:.1}v-16"), actor.accent, 2.6);
    }
}

fn tower(pen: &mut Pen, actor: &Actor) {
    pen.line("M0 -92V-100", actor.main.darker(0.3), 1.4);
    pen.rect((-12.0, -94.0), (24.0, 10.0), 0.0, actor.main.darker(0.14));
    pen.rect((-20.0, -86.0), (40.0, 86.0), 1.0, Fill::Lit(actor.main));
    for row in 0..11 {
        for column in 0..4 {
            let at = (-16.5 + 8.7 * column as f32, -82.0 + 7.0 * row as f32);
            let lit = (actor.seed >> (row * 4 + column)) & 3 != 0;
            pen.rect(at, (6.0, 4.2), 0.0, if lit { actor.accent } else { actor.main.darker(0.3) });
        }
    }
    pen.rect((-5.0, -6.0), (10.0, 6.0), 0.0, actor.main.darker(0.5));
}

fn tent(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    pen.polygon(&[(-70.0, 0.0), (0.0, -98.0), (70.0, 0.0)], Fill::Lit(c));
    pen.polygon(&[(0.0, -98.0), (70.0, 0.0), (30.0, 0.0)], c.darker(0.18));
    pen.polygon(&[(-18.0, 0.0), (0.0, -62.0), (18.0, 0.0)], actor.accent.darker(0.4));
    pen.polygon(&[(-18.0, 0.0), (0.0, -62.0), (-30.0, -2.0)], c.lighter(0.3));
    pen.line("M0 -98L-4 -103M0 -98L4 -103", actor.accent.darker(0.3), 2.0);
}

fn windmill(pen: &mut Pen, actor: &Actor) {
    pen.polygon(&[(-20.0, 0.0), (-12.0, -60.0), (12.0, -60.0), (20.0, 0.0)], Fill::Lit(actor.main));
    pen.path("M-14 -59Q0 -82 14 -59Z", Fill::Lit(actor.accent));
    pen.path("M-5 0V-12A5 5 0 0 1 5 -12V0Z", Colour::hex(0x6a_48_30));
    pane(pen, (-4.0, -38.0), (8.0, 9.0));
    for i in 0..4 {
        pen.within((0.0, -62.0), (1.0, 1.0), 22.0 + 90.0 * i as f32, |pen| {
            pen.line("M0 0V-37", Colour::hex(0x6a_48_30), 2.0);
            pen.rect((0.5, -37.0), (9.0, 28.0), 0.0, Colour::hex(0xfb_f8_f0));
            pen.line("M5 -37V-9M.5 -28H9.5M.5 -18H9.5", Colour::hex(0xb0_98_80), 0.8);
        });
    }
    pen.circle((0.0, -62.0), 3.0, Colour::hex(0x4a_34_24));
}

fn fence(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    for y in [-68.0, -30.0] {
        pen.rect((-130.0, y), (260.0, 11.0), 2.0, c.darker(0.12));
    }
    for i in 0..9 {
        let x = -124.0 + 29.0 * i as f32;
        pen.polygon(&[(x, 0.0), (x, -86.0), (x + 8.0, -100.0), (x + 16.0, -86.0), (x + 16.0, 0.0)], Fill::Lit(c));
    }
}
