//! Animals.

use engine::Quality;

use crate::brief::Thing;
use crate::colour::Colour;
use crate::scene::layout::Actor;
use crate::scene::pen::{Fill, Pen};

const EYE: Colour = Colour::hex(0x26_22_2a);
const NOSE: Colour = Colour::hex(0xe0_7f_86);

pub(super) fn draw(pen: &mut Pen, actor: &Actor) -> bool {
    match actor.thing {
        Thing::Fish => fish(pen, actor),
        Thing::Bird => bird(pen, actor),
        Thing::Cat => cat(pen, actor),
        Thing::Dog => dog(pen, actor),
        Thing::Butterfly => butterfly(pen, actor),
        Thing::Duck => duck(pen, actor),
        Thing::Whale => whale(pen, actor),
        Thing::Rabbit => rabbit(pen, actor),
        Thing::Bee => bee(pen, actor),
        Thing::Owl => owl(pen, actor),
        _ => return false,
    }
    true
}

fn eye(pen: &mut Pen, at: (f32, f32), radius: f32) {
    pen.circle(at, radius, EYE);
    pen.circle((at.0 + radius * 0.3, at.1 - radius * 0.35), radius * 0.34, Colour::WHITE);
}

fn fish(pen: &mut Pen, actor: &Actor) {
    let (c, fin) = (actor.main, actor.accent.mix(actor.main, 0.4));
    pen.path("M-44 -50L-85 -88Q-72 -50 -85 -12Z", Fill::Lit(fin));
    pen.path("M-12 -84Q6 -112 34 -82Z", Fill::Lit(fin));
    pen.path("M-54 -50C-30 -100 50 -104 82 -50C50 4 -30 0 -54 -50Z", Fill::Lit(c));
    pen.path("M4 -44Q-26 -40 -22 -18Q0 -22 4 -44Z", Fill::Lit(fin.darker(0.1)));
    pen.set_opacity(0.5);
    pen.line("M-6 -80Q8 -50 -6 -20M-26 -70Q-14 -50 -26 -30", c.darker(0.3), 3.0);
    pen.set_opacity(1.0);
    pen.circle((52.0, -60.0), 9.0, Colour::WHITE);
    eye(pen, (54.0, -60.0), 5.4);
    pen.line("M80 -46Q70 -40 62 -42", c.darker(0.4), 2.6);
}

fn bird(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    pen.path("M-34 -44L-70 -30L-66 -46L-70 -58Z", c.darker(0.2));
    pen.path("M-40 -46C-20 -14 34 -10 46 -48C50 -74 24 -82 14 -64C0 -56 -22 -58 -40 -46Z", Fill::Lit(c));
    pen.path("M6 -50C-8 -74 -34 -94 -52 -98C-46 -70 -32 -46 -4 -38Z", Fill::Lit(c.darker(0.14)));
    pen.path("M46 -58L66 -52L46 -46Z", actor.accent);
    pen.path("M-6 -24C14 -16 36 -24 44 -44C26 -32 6 -32 -6 -24Z", c.lighter(0.6));
    eye(pen, (34.0, -60.0), 3.8);
}

fn cat(pen: &mut Pen, actor: &Actor) {
    let (c, light) = (actor.main, actor.accent);
    pen.line("M22 -8Q44 -6 40 -28Q38 -38 30 -40", c.darker(0.12), 8.0);
    pen.path("M-24 0C-32 -24 -22 -54 0 -58C22 -54 32 -24 26 0Z", Fill::Lit(c));
    pen.path("M-10 -2C-14 -20 -10 -42 0 -46C10 -42 14 -20 10 -2Z", light);
    pen.polygon(&[(-26.0, -72.0), (-24.0, -100.0), (-5.0, -86.0)], Fill::Lit(c));
    pen.polygon(&[(26.0, -72.0), (24.0, -100.0), (5.0, -86.0)], Fill::Lit(c));
    pen.polygon(&[(-22.0, -80.0), (-21.0, -94.0), (-11.0, -86.0)], NOSE.lighter(0.3));
    pen.polygon(&[(22.0, -80.0), (21.0, -94.0), (11.0, -86.0)], NOSE.lighter(0.3));
    pen.ellipse((0.0, -69.0), (28.0, 22.0), Fill::Lit(c));
    pen.ellipse((0.0, -60.0), (13.0, 9.0), light);
    if pen.fine(Quality::Medium) {
        pen.line(
            "M0 -90V-83M-6 -89L-5 -83M6 -89L5 -83M-27 -68H-20M27 -68H20M-25 -30Q-18 -28 -16 -24M25 -30Q18 -28 16 -24",
            c.darker(0.3),
            2.0,
        );
    }
    face(pen, (11.0, -72.0), -64.0);
    pen.line("M-13 -61L-34 -64M-13 -58L-33 -55M13 -61L34 -64M13 -58L33 -55", Colour::hex(0xff_ff_ff), 0.9);
    pen.ellipse((-12.0, -3.5), (9.0, 5.0), light);
    pen.ellipse((12.0, -3.5), (9.0, 5.0), light);
}

/// Two eyes, a nose and a mouth.
fn face(pen: &mut Pen, eyes: (f32, f32), nose: f32) {
    eye(pen, (-eyes.0, eyes.1), 4.2);
    eye(pen, eyes, 4.2);
    pen.path(&format!("M-3.4 {nose:.1}h6.8l-3.4 4Z"), NOSE);
    pen.line(&format!("M0 {:.1}q-3 5 -6 2M0 {:.1}q3 5 6 2", nose + 4.0, nose + 4.0), EYE, 1.1);
}

fn dog(pen: &mut Pen, actor: &Actor) {
    let (c, light) = (actor.main, actor.accent);
    pen.line("M24 -14Q42 -20 42 -40", c, 7.0);
    pen.path("M-26 0C-32 -24 -24 -52 0 -56C24 -52 34 -24 28 0Z", Fill::Lit(c));
    pen.path("M-11 -2C-15 -20 -11 -42 0 -46C11 -42 15 -20 11 -2Z", light);
    pen.path("M-24 -88C-44 -92 -46 -62 -38 -48C-28 -50 -22 -64 -20 -76Z", Fill::Lit(c.darker(0.26)));
    pen.ellipse((0.0, -72.0), (28.0, 26.0), Fill::Lit(c));
    pen.path("M24 -88C44 -92 46 -62 38 -48C28 -50 22 -64 20 -76Z", Fill::Lit(c.darker(0.26)));
    pen.ellipse((0.0, -60.0), (15.0, 12.0), light);
    eye(pen, (-11.0, -76.0), 4.2);
    eye(pen, (11.0, -76.0), 4.2);
    pen.ellipse((0.0, -66.0), (5.6, 4.0), EYE);
    pen.line("M0 -62V-57M0 -57Q-5 -53 -8 -57M0 -57Q5 -53 8 -57", EYE, 1.3);
    pen.path("M-3 -54Q0 -44 3 -54Z", NOSE);
    pen.rect((-17.0, -50.0), (34.0, 6.0), 3.0, Colour::hex(0xd0_3a_3a));
    pen.circle((0.0, -43.0), 3.6, Colour::hex(0xf6_c8_3a));
    pen.ellipse((-13.0, -4.0), (10.0, 5.4), light);
    pen.ellipse((13.0, -4.0), (10.0, 5.4), light);
}

fn butterfly(pen: &mut Pen, actor: &Actor) {
    let (c, spot) = (actor.main, actor.accent);
    for side in [-1.0, 1.0] {
        pen.within((0.0, 0.0), (side, 1.0), 0.0, |pen| {
            pen.path("M3 -50C20 -100 58 -104 60 -80C60 -58 30 -46 3 -46Z", Fill::Lit(c));
            pen.path("M3 -46C34 -44 50 -30 44 -12C36 0 12 -8 3 -40Z", Fill::Lit(c.turned(18.0).darker(0.1)));
            pen.circle((42.0, -78.0), 8.0, spot);
            pen.circle((28.0, -24.0), 6.0, spot);
            pen.line("M1 -72Q6 -88 14 -92", EYE, 1.6);
        });
    }
    pen.rect((-3.4, -74.0), (6.8, 54.0), 3.4, EYE);
}

fn duck(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    pen.path("M-56 -44C-50 -4 -20 0 6 0C42 0 50 -26 44 -44C34 -40 24 -44 18 -50C-8 -38 -36 -36 -56 -44Z", Fill::Lit(c));
    pen.circle((24.0, -72.0), 24.0, Fill::Lit(c));
    pen.path("M45 -76Q62 -76 62 -66Q54 -60 44 -62Z", actor.accent);
    pen.path("M-28 -32Q-6 -36 12 -26Q-4 -8 -28 -16Q-36 -24 -28 -32Z", Fill::Lit(c.darker(0.12)));
    eye(pen, (32.0, -78.0), 4.4);
}

fn whale(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    pen.line("M20 -78V-90M20 -90Q10 -100 4 -92M20 -90Q30 -100 36 -92", Colour::hex(0xbf_e6_f8), 4.0);
    pen.path("M-66 -34L-100 -70Q-84 -70 -76 -58Q-70 -74 -56 -76Z", Fill::Lit(c.darker(0.1)));
    pen.path(
        "M-76 -46C-50 -30 -40 -74 20 -76C74 -78 96 -48 92 -26C86 -4 50 0 14 0C-30 0 -62 -10 -76 -46Z",
        Fill::Lit(c),
    );
    pen.path("M90 -24C60 -14 10 -22 -20 -10C0 0 40 2 60 -2C80 -6 88 -14 90 -24Z", actor.accent);
    pen.path("M10 -18Q-8 -6 -4 8Q18 4 28 -16Z", c.darker(0.18));
    eye(pen, (62.0, -40.0), 4.4);
}

fn rabbit(pen: &mut Pen, actor: &Actor) {
    let (c, pink) = (actor.main, actor.accent);
    pen.circle((22.0, -10.0), 8.0, c.lighter(0.5));
    for (x, turn) in [(-9.0, -8.0), (9.0, 10.0)] {
        pen.within((x, -66.0), (1.0, 1.0), turn, |pen| {
            pen.ellipse((0.0, -16.0), (7.0, 20.0), Fill::Lit(c));
            pen.ellipse((0.0, -15.0), (3.4, 14.0), pink);
        });
    }
    pen.path("M-22 0C-28 -20 -20 -42 0 -44C20 -42 28 -20 22 0Z", Fill::Lit(c));
    pen.ellipse((0.0, -54.0), (20.0, 18.0), Fill::Lit(c));
    pen.ellipse((0.0, -14.0), (11.0, 13.0), c.lighter(0.55));
    face(pen, (8.0, -57.0), -51.0);
    pen.ellipse((-10.0, -3.0), (8.0, 4.4), c.lighter(0.4));
    pen.ellipse((10.0, -3.0), (8.0, 4.4), c.lighter(0.4));
}

fn bee(pen: &mut Pen, actor: &Actor) {
    pen.set_opacity(0.8);
    pen.ellipse((-14.0, -78.0), (16.0, 24.0), Colour::hex(0xdf_f0_fa));
    pen.ellipse((14.0, -80.0), (15.0, 22.0), Colour::hex(0xdf_f0_fa));
    pen.set_opacity(1.0);
    pen.ellipse((0.0, -36.0), (50.0, 34.0), Fill::Lit(actor.main));
    pen.path("M-22 -66Q-12 -36 -22 -6L-8 -3Q2 -36 -8 -69ZM8 -69Q18 -36 8 -3L22 -6Q32 -36 22 -66Z", actor.accent);
    eye(pen, (38.0, -42.0), 4.4);
    pen.line("M40 -62Q46 -78 56 -80", actor.accent, 2.2);
}

fn owl(pen: &mut Pen, actor: &Actor) {
    let (c, light) = (actor.main, actor.accent);
    pen.path("M-32 -92L-20 -84H20L32 -92C40 -60 40 -20 24 -4Q0 4 -24 -4C-40 -20 -40 -60 -32 -92Z", Fill::Lit(c));
    pen.ellipse((0.0, -26.0), (20.0, 24.0), light);
    pen.path(
        "M-34 -58C-44 -36 -36 -14 -24 -8C-20 -24 -22 -44 -34 -58ZM34 -58C44 -36 36 -14 24 -8C20 -24 22 -44 34 -58Z",
        c.darker(0.25),
    );
    for x in [-14.0, 14.0] {
        pen.circle((x, -66.0), 15.0, light);
        eye(pen, (x, -66.0), 8.0);
    }
    pen.polygon(&[(-5.0, -58.0), (5.0, -58.0), (0.0, -46.0)], Colour::hex(0xf0_a0_30));
    pen.line("M-8 -36q4 5 8 0q4 5 8 0M-12 -24q4 5 8 0q4 5 8 0q4 5 8 0M-8 -12q4 5 8 0q4 5 8 0", c, 1.8);
    pen.line("M-10 -1v4M-5 -1v4M5 -1v4M10 -1v4", Colour::hex(0xf0_a0_30), 2.6);
}
