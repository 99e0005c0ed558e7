//! What people go about in.

use crate::brief::Thing;
use crate::colour::Colour;
use crate::scene::layout::Actor;
use crate::scene::pen::{Fill, Pen};

const TYRE: Colour = Colour::hex(0x2a_2c_34);
const METAL: Colour = Colour::hex(0xd3_d8_e0);

pub(super) fn draw(pen: &mut Pen, actor: &Actor) -> bool {
    match actor.thing {
        Thing::Car => car(pen, actor),
        Thing::Bus => bus(pen, actor),
        Thing::Boat => boat(pen, actor),
        Thing::PaperBoat => paper_boat(pen, actor),
        Thing::Ship => ship(pen, actor),
        Thing::Rocket => rocket(pen, actor),
        Thing::Plane => plane(pen, actor),
        Thing::AirBalloon => air_balloon(pen, actor),
        Thing::Bicycle => bicycle(pen, actor),
        Thing::Train => train(pen, actor),
        _ => return false,
    }
    true
}

fn wheel(pen: &mut Pen, x: f32, radius: f32) {
    pen.circle((x, -radius), radius, TYRE);
    pen.circle((x, -radius), radius * 0.54, METAL);
    pen.circle((x, -radius), radius * 0.2, TYRE);
}

fn car(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    pen.path("M-66 -58C-52 -94 -40 -100 -10 -100H10C36 -100 50 -84 62 -60L100 -52Q110 -48 110 -30V-18H-108V-40Q-108 -56 -66 -58Z", Fill::Lit(c));
    pen.path("M-52 -60C-42 -84 -34 -91 -14 -91H-8V-60Z", Fill::Lit(actor.accent));
    pen.path("M0 -60V-91H10C30 -91 40 -78 49 -60Z", Fill::Lit(actor.accent));
    pen.rect((-108.0, -30.0), (218.0, 7.0), 3.0, c.darker(0.25));
    pen.rect((6.0, -52.0), (14.0, 4.0), 2.0, c.darker(0.35));
    pen.ellipse((103.0, -42.0), (6.0, 7.0), Colour::hex(0xff_f0_b0));
    pen.rect((-109.0, -50.0), (7.0, 12.0), 2.0, Colour::hex(0xb0_1e_28));
    wheel(pen, -62.0, 23.0);
    wheel(pen, 64.0, 23.0);
}

fn bus(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    pen.rect((-105.0, -100.0), (210.0, 86.0), 12.0, Fill::Lit(c));
    for i in 0..5 {
        pen.rect((-96.0 + 35.0 * i as f32, -88.0), (29.0, 30.0), 4.0, Fill::Lit(actor.accent));
    }
    pen.rect((80.0, -88.0), (25.0, 36.0), 4.0, Fill::Lit(actor.accent));
    pen.rect((-105.0, -46.0), (210.0, 6.0), 0.0, c.darker(0.3));
    pen.circle((100.0, -28.0), 5.0, Colour::hex(0xff_f0_b0));
    wheel(pen, -60.0, 18.0);
    wheel(pen, 58.0, 18.0);
}

/// The light on the water under a hull, and the line of foam along it.
fn wake(pen: &mut Pen, half: f32) {
    pen.set_opacity(0.3);
    pen.ellipse((0.0, 3.0), (half * 1.05, 7.0), Colour::hex(0x0c_2a_4a));
    pen.set_opacity(0.8);
    pen.line(&format!("M{:.1} 1q{:.1} 4 {half:.1} 0t{half:.1} 0", -half, half / 2.0), Colour::WHITE, 1.4);
    pen.set_opacity(1.0);
}

fn boat(pen: &mut Pen, actor: &Actor) {
    let (hull, sail) = (actor.main, actor.accent);
    let sail = if actor.coloured && actor.accent == Colour::hex(0xff_fb_f2) { sail.mix(hull, 0.06) } else { sail };
    pen.line("M0 -16V-100", Colour::hex(0x6a_48_30), 2.4);
    pen.path("M3 -98C26 -72 38 -48 40 -28H3Z", Fill::Lit(sail));
    pen.path("M-3 -88C-14 -64 -26 -44 -34 -28H-3Z", Fill::Lit(sail.darker(0.12)));
    pen.path("M0 -100L13 -96L0 -92Z", hull.turned(20.0).lighter(0.1));
    pen.path("M-44 -21H45C40 -6 34 0 26 0H-26C-36 0 -42 -8 -44 -21Z", Fill::Lit(hull));
    pen.line("M-43 -17H43", hull.lighter(0.5), 2.4);
    wake(pen, 38.0);
}

fn paper_boat(pen: &mut Pen, actor: &Actor) {
    let (paper, fold) = (actor.main, actor.main.mix(Colour::hex(0x6f_86_a8), 0.34));
    pen.polygon(&[(0.0, -100.0), (34.0, -34.0), (-34.0, -34.0)], Fill::Lit(paper));
    pen.polygon(&[(0.0, -100.0), (34.0, -34.0), (0.0, -34.0)], fold);
    pen.polygon(&[(-80.0, -58.0), (0.0, -34.0), (80.0, -58.0), (50.0, 0.0), (-50.0, 0.0)], Fill::Lit(paper));
    pen.polygon(&[(80.0, -58.0), (50.0, 0.0), (0.0, 0.0), (0.0, -34.0)], fold.lighter(0.3));
    pen.polygon(&[(-80.0, -58.0), (-50.0, 0.0), (-28.0, 0.0)], paper.mix(fold, 0.4));
    pen.line("M-80 -58L0 -34L80 -58", paper.mix(fold, 0.6), 1.2);
    wake(pen, 58.0);
}

fn ship(pen: &mut Pen, actor: &Actor) {
    let (hull, deck) = (actor.main, actor.accent);
    for x in [-22.0, 10.0] {
        pen.rect((x, -100.0), (17.0, 36.0), 2.0, Fill::Lit(Colour::hex(0xd0_45_3c)));
        pen.rect((x, -100.0), (17.0, 8.0), 2.0, TYRE);
    }
    pen.rect((-52.0, -70.0), (100.0, 22.0), 3.0, Fill::Lit(deck));
    pen.rect((-68.0, -50.0), (134.0, 16.0), 2.0, Fill::Lit(deck.darker(0.08)));
    for i in 0..8 {
        pen.circle((-54.0 + 15.0 * i as f32, -42.0), 3.2, hull);
        pen.rect((-46.0 + 12.0 * i as f32, -64.0), (7.0, 7.0), 1.0, Colour::hex(0x8f_c4_e4));
    }
    pen.path("M-92 -38H95C88 -18 82 -6 74 0H-74C-84 -6 -90 -20 -92 -38Z", Fill::Lit(hull));
    pen.line("M-84 -12H82", Colour::hex(0xd0_45_3c), 4.0);
    wake(pen, 82.0);
}

fn rocket(pen: &mut Pen, actor: &Actor) {
    let (body, fin) = (actor.main, actor.accent);
    pen.path("M-9 -18Q-14 0 0 12Q14 0 9 -18Z", Fill::Down(Colour::hex(0xff_d8_4a), Colour::hex(0xf0_5a_28)));
    pen.path("M-4 -18Q-6 -8 0 0Q6 -8 4 -18Z", Colour::hex(0xff_f4_c0));
    pen.path("M-14 -44L-28 -22V-8L-12 -20Z", Fill::Lit(fin));
    pen.path("M14 -44L28 -22V-8L12 -20Z", Fill::Lit(fin.darker(0.16)));
    pen.path("M0 -100C20 -80 21 -46 13 -17H-13C-21 -46 -20 -80 0 -100Z", Fill::Lit(body));
    pen.path("M0 -100C8 -92 13 -84 15.4 -75H-15.4C-13 -84 -8 -92 0 -100Z", Fill::Lit(fin));
    pen.circle((0.0, -58.0), 9.0, fin.darker(0.2));
    pen.circle((0.0, -58.0), 6.6, Fill::Round(Colour::hex(0x7c_c6_ec)));
    pen.rect((-13.0, -21.0), (26.0, 5.0), 1.0, body.darker(0.35));
    pen.path("M-2.6 -36H2.6L2 -14H-2Z", fin.darker(0.08));
}

fn plane(pen: &mut Pen, actor: &Actor) {
    let (body, wing) = (actor.main, actor.accent);
    pen.path("M-92 -58L-104 -98H-86L-58 -58Z", Fill::Lit(wing));
    pen.path("M20 -54L-16 -92H2L52 -54Z", wing.darker(0.25));
    pen.path("M-98 -58Q-20 -72 70 -66Q104 -60 104 -48Q100 -36 60 -34H-40Q-84 -38 -98 -58Z", Fill::Lit(body));
    pen.path("M24 -46L-30 -4H-10L62 -44Z", Fill::Lit(wing));
    pen.path("M76 -63Q96 -60 100 -52H78Z", Colour::hex(0x4a_78_a0));
    for i in 0..7 {
        pen.circle((-42.0 + 16.0 * i as f32, -54.0), 3.4, Colour::hex(0x6a_a0_c8));
    }
}

fn air_balloon(pen: &mut Pen, actor: &Actor) {
    let (c, stripe) = (actor.main, actor.accent);
    pen.line("M-18 -34L-8 -15M18 -34L8 -15", Colour::hex(0x6a_5a_48), 1.4);
    pen.path(
        "M0 -100C26 -100 37 -82 37 -64C37 -48 22 -38 14 -28H-14C-22 -38 -37 -48 -37 -64C-37 -82 -26 -100 0 -100Z",
        Fill::Round(c),
    );
    pen.path(
        "M0 -100C12 -96 16 -80 16 -64C16 -48 10 -38 6 -28H-6C-10 -38 -16 -48 -16 -64C-16 -80 -12 -96 0 -100Z",
        stripe,
    );
    pen.path("M0 -100C4 -92 6 -80 6 -64C6 -48 4 -38 3 -28H-3C-4 -38 -6 -48 -6 -64C-6 -80 -4 -92 0 -100Z", c);
    pen.rect((-9.0, -15.0), (18.0, 15.0), 3.0, Fill::Lit(Colour::hex(0xa8_74_44)));
    pen.line("M-9 -10H9M-9 -5H9", Colour::hex(0x7a_50_2c), 1.0);
}

fn bicycle(pen: &mut Pen, actor: &Actor) {
    for x in [-48.0, 48.0] {
        let tyre = format!("M{:.1} -31A31 31 0 1 1 {:.1} -31A31 31 0 1 1 {:.1} -31", x - 31.0, x + 31.0, x - 31.0);
        pen.line(&tyre, actor.accent, 4.4);
        pen.line(&format!("M{x} -60V-2M{} -31H{}", x - 29.0, x + 29.0), METAL.darker(0.2), 1.0);
    }
    pen.line("M-48 -31L-22 -74L34 -74L-4 -31ZM-4 -31L-24 -82M48 -31L30 -90", actor.main, 5.0);
    pen.line("M-36 -84H-14M30 -92Q44 -98 46 -84", actor.accent, 5.4);
    pen.circle((-4.0, -31.0), 7.0, METAL);
}

fn train(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    pen.rect((-125.0, -74.0), (110.0, 58.0), 6.0, Fill::Lit(actor.accent));
    for i in 0..3 {
        pen.rect((-114.0 + 34.0 * i as f32, -64.0), (24.0, 22.0), 3.0, Colour::hex(0xd6_ec_f7));
    }
    pen.rect((84.0, -98.0), (16.0, 34.0), 2.0, c.darker(0.4));
    pen.rect((0.0, -100.0), (46.0, 84.0), 5.0, Fill::Lit(c));
    pen.rect((9.0, -90.0), (28.0, 26.0), 3.0, Colour::hex(0xd6_ec_f7));
    pen.rect((40.0, -66.0), (82.0, 48.0), 16.0, Fill::Lit(c));
    pen.circle((118.0, -44.0), 6.0, Colour::hex(0xff_f0_b0));
    pen.rect((-20.0, -26.0), (26.0, 6.0), 0.0, TYRE);
    for x in [-104.0, -40.0, 20.0, 60.0, 100.0] {
        wheel(pen, x, 16.0);
    }
}
