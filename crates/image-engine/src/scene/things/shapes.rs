//! Plain figures, and what is in the sky.

use std::fmt::Write as _;

use engine::Quality;

use crate::brief::Thing;
use crate::colour::Colour;
use crate::scene::layout::Actor;
use crate::scene::pen::{Fill, Pen};
use crate::scene::sky;

pub(super) fn draw(pen: &mut Pen, actor: &Actor) -> bool {
    let c = actor.main;
    match actor.thing {
        Thing::Circle => pen.circle((0.0, -50.0), 50.0, Fill::Lit(c)),
        Thing::Square => pen.rect((-50.0, -100.0), (100.0, 100.0), 0.0, Fill::Lit(c)),
        Thing::Rectangle => pen.rect((-80.0, -100.0), (160.0, 100.0), 0.0, Fill::Lit(c)),
        Thing::Triangle => pen.polygon(&[(0.0, -100.0), (56.0, 0.0), (-56.0, 0.0)], Fill::Lit(c)),
        Thing::Star => pen.polygon(&star(5, 0.46), Fill::Lit(c)),
        Thing::Heart => pen.path(HEART, Fill::Lit(c)),
        Thing::Pentagon => pen.polygon(&regular(5, -90.0), Fill::Lit(c)),
        Thing::Hexagon => pen.polygon(&regular(6, 0.0), Fill::Lit(c)),
        Thing::Octagon => pen.polygon(&regular(8, 22.5), Fill::Lit(c)),
        Thing::Ellipse => pen.ellipse((0.0, -50.0), (75.0, 50.0), Fill::Lit(c)),
        Thing::Ring => pen.path(RING, Fill::Lit(c)),
        Thing::Cross => pen.path("M-16 -100H16V-66H50V-34H16V0H-16V-34H-50V-66H-16Z", Fill::Lit(c)),
        Thing::Diamond => pen.polygon(&[(0.0, -100.0), (40.0, -50.0), (0.0, 0.0), (-40.0, -50.0)], Fill::Lit(c)),
        Thing::Arrow => pen.path("M-85 -66H20V-100L85 -50L20 0V-34H-85Z", Fill::Lit(c)),
        Thing::Line => pen.rect((-300.0, -66.0), (600.0, 32.0), 16.0, c),
        Thing::Crescent => crescent(pen, c),
        Thing::Spiral => pen.line(&spiral(), c, 8.0),
        Thing::Cube => cube(pen, c),
        Thing::Sun => sun(pen, actor),
        Thing::Moon => moon(pen, actor),
        Thing::Cloud => sky::cloud(pen, (0.0, -12.0), 210.0, c, actor.seed),
        Thing::Rainbow => rainbow(pen),
        Thing::Planet => planet(pen, actor),
        Thing::Lightning => pen.polygon(
            &[(12.0, -100.0), (-30.0, -42.0), (-4.0, -42.0), (-16.0, 0.0), (30.0, -60.0), (4.0, -60.0), (26.0, -100.0)],
            Fill::Lit(c),
        ),
        _ => return false,
    }
    true
}

fn around(degrees: f32, radius: f32) -> (f32, f32) {
    let (sin, cos) = degrees.to_radians().sin_cos();
    (cos * radius, sin * radius - 50.0)
}

fn regular(corners: usize, first: f32) -> Vec<(f32, f32)> {
    (0..corners).map(|i| around(first + 360.0 * i as f32 / corners as f32, 52.0)).collect()
}

fn star(rays: usize, inner: f32) -> Vec<(f32, f32)> {
    let corner = |i: usize| {
        around(-90.0 + 180.0 * i as f32 / rays as f32, if i.is_multiple_of(2) { 53.0 } else { 53.0 * inner })
    };
    (0..rays * 2).map(corner).collect()
}

fn spiral() -> String {
    let mut path = "M0 -50".to_owned();
    for i in 1..=60 {
        let (x, y) = around(i as f32 * 18.0, i as f32 * 0.78);
        let _ = write!(path, "L{x:.1} {y:.1}");
    }
    path
}

fn crescent(pen: &mut Pen, colour: Colour) {
    pen.path("M14 -99 A50 50 0 1 0 44 -22 A40 40 0 1 1 14 -99Z", Fill::Lit(colour));
}

fn cube(pen: &mut Pen, colour: Colour) {
    pen.polygon(&[(-46.0, -74.0), (0.0, -100.0), (46.0, -74.0), (0.0, -50.0)], colour.lighter(0.3));
    pen.polygon(&[(-46.0, -74.0), (0.0, -50.0), (0.0, 0.0), (-46.0, -25.0)], Fill::Lit(colour));
    pen.polygon(&[(46.0, -74.0), (0.0, -50.0), (0.0, 0.0), (46.0, -25.0)], Fill::Lit(colour.darker(0.24)));
}

fn sun(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    if actor.grounded || !pen.fine(Quality::Medium) {
        pen.circle((0.0, -50.0), 40.0, c);
        return;
    }
    pen.circle((0.0, -50.0), 120.0, Fill::Glow(c.lighter(0.4)));
    for i in 0..12 {
        let turn = i as f32 * 30.0 + (actor.seed % 30) as f32;
        pen.polygon(
            &[around(turn - 7.0, 41.0), around(turn, 54.0), around(turn + 7.0, 41.0)],
            actor.accent.mix(c, 0.4),
        );
    }
    pen.circle((0.0, -50.0), 37.0, Fill::Round(c));
}

fn moon(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    pen.circle((0.0, -50.0), 110.0, Fill::Glow(c));
    if actor.seed.is_multiple_of(3) {
        crescent(pen, c);
        return;
    }
    pen.circle((0.0, -50.0), 48.0, Fill::Lit(c.lighter(0.1)));
    let shade = c.darker(0.12);
    for (x, y, r) in
        [(-16.0, -66.0, 9.0), (14.0, -44.0, 12.0), (-10.0, -30.0, 6.0), (22.0, -74.0, 5.0), (-30.0, -44.0, 5.0)]
    {
        pen.circle((x, y), r, shade);
    }
}

fn rainbow(pen: &mut Pen) {
    let bands = [0xe0_4b_4b, 0xf2_93_3c, 0xf7_d6_4a, 0x5b_b8_5d, 0x4a_90_d9, 0x7b_5c_c4];
    pen.set_opacity(0.85);
    for (i, band) in bands.into_iter().enumerate() {
        let r = 96.0 - 7.0 * i as f32;
        pen.line(&format!("M{:.1} 0A{r} {r} 0 0 1 {r:.1} 0", -r), Colour::hex(band), 7.4);
    }
    pen.set_opacity(1.0);
}

fn planet(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    pen.line("M-72 -38C-60 -62 50 -92 70 -66", actor.accent.darker(0.2), 6.0);
    pen.circle((0.0, -50.0), 42.0, Fill::Round(c));
    for (y, half) in [(-66.0, 36.0), (-48.0, 40.0), (-32.0, 35.0)] {
        pen.set_opacity(0.35);
        pen.ellipse((0.0, y), (half, 4.4), c.darker(0.35));
        pen.set_opacity(1.0);
    }
    pen.line("M-72 -38C-66 -14 62 -40 70 -66", actor.accent, 6.0);
}

const HEART: &str = "M0 0C-18 -18 -54 -42 -54 -72C-54 -90 -41 -100 -27 -100C-14 -100 -5 -93 0 -82C5 -93 14 -100 27 -100C41 -100 54 -90 54 -72C54 -42 18 -18 0 0Z";
const RING: &str = "M-50 -50A50 50 0 1 1 50 -50A50 50 0 1 1 -50 -50ZM-27 -50A27 27 0 1 0 27 -50A27 27 0 1 0 -27 -50Z";
