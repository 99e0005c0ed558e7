//! What stands about the house.

use crate::brief::Thing;
use crate::colour::Colour;
use crate::scene::layout::Actor;
use crate::scene::pen::{Fill, Pen};

pub(super) fn draw(pen: &mut Pen, actor: &Actor) -> bool {
    match actor.thing {
        Thing::Book => book(pen, actor),
        Thing::Chair => chair(pen, actor),
        Thing::Table => table(pen, actor),
        Thing::Lamp => lamp(pen, actor),
        Thing::Vase => vase(pen, actor),
        Thing::Candle => candle(pen, actor),
        Thing::Clock => clock(pen, actor),
        Thing::Hat => hat(pen, actor),
        Thing::Key => key(pen, actor),
        Thing::Sign => sign(pen, actor),
        Thing::Umbrella => umbrella(pen, actor),
        _ => return false,
    }
    true
}

fn book(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    pen.path("M-60 -82L0 -92L60 -82V-2L0 -8L-60 -2Z", c.darker(0.3));
    pen.path("M-56 -90Q-20 -100 0 -88V-10Q-20 -20 -56 -10Z", Fill::Lit(actor.accent));
    pen.path("M56 -90Q20 -100 0 -88V-10Q20 -20 56 -10Z", Fill::Lit(actor.accent.darker(0.06)));
    pen.line("M-46 -76Q-24 -82 -10 -76M-46 -62Q-24 -68 -10 -62M-46 -48Q-24 -54 -10 -48M-46 -34Q-24 -40 -10 -34M46 -76Q24 -82 10 -76M46 -62Q24 -68 10 -62M46 -48Q24 -54 10 -48", actor.accent.darker(0.3), 2.0);
    pen.path("M-60 -84L-56 -90V-10L-60 -2ZM60 -84L56 -90V-10L60 -2Z", Fill::Lit(c));
}

fn chair(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    pen.line("M-22 -46V-3M20 -46V-3M-14 -46V-12M14 -46V-12", c.darker(0.2), 5.0);
    pen.path("M-26 -98Q0 -104 24 -98L22 -50H-24Z", Fill::Lit(c));
    pen.path("M-18 -90Q0 -94 17 -90L16 -58H-17Z", actor.accent);
    pen.rect((-29.0, -53.0), (57.0, 9.0), 4.0, Fill::Lit(c.lighter(0.1)));
}

fn table(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    for x in [-66.0, 57.0] {
        pen.rect((x, -86.0), (9.0, 86.0), 2.0, Fill::Lit(actor.accent));
    }
    pen.rect((-74.0, -88.0), (148.0, 14.0), 0.0, c.darker(0.2));
    pen.rect((-85.0, -100.0), (170.0, 14.0), 4.0, Fill::Lit(c));
}

fn lamp(pen: &mut Pen, actor: &Actor) {
    pen.circle((0.0, -72.0), 56.0, Fill::Glow(actor.main));
    pen.rect((-2.0, -64.0), (4.0, 62.0), 2.0, actor.accent);
    pen.path("M-18 0Q-18 -7 0 -8Q18 -7 18 0Z", Fill::Lit(actor.accent));
    pen.path("M-16 -100H16L29 -62H-29Z", Fill::Down(actor.main.lighter(0.2), actor.main));
}

fn vase(pen: &mut Pen, actor: &Actor) {
    let bloom = actor.accent;
    for (x, y, turn) in [(-16.0, -84.0, 0.0), (16.0, -82.0, 60.0), (0.0, -92.0, 140.0)] {
        pen.line(&format!("M0 -44Q{:.1} -60 {x} {y}", x * 0.5), Colour::hex(0x4c_9a_4a), 2.4);
        for i in 0..6 {
            pen.within((x, y), (1.0, 1.0), i as f32 * 60.0, |pen| {
                pen.ellipse((0.0, -6.0), (4.0, 5.4), Fill::Lit(bloom.turned(turn * 0.3)));
            });
        }
        pen.circle((x, y), 3.6, Colour::hex(0xf7_c5_3b));
    }
    pen.path(
        "M-11 -50H11Q10 -42 18 -30C28 -14 20 0 10 0H-10C-20 0 -28 -14 -18 -30Q-10 -42 -11 -50Z",
        Fill::Lit(actor.main),
    );
    pen.line("M-20 -22Q0 -15 20 -22", actor.main.lighter(0.5), 2.4);
}

fn candle(pen: &mut Pen, actor: &Actor) {
    pen.circle((0.0, -82.0), 40.0, Fill::Glow(actor.accent));
    pen.rect((-12.0, -64.0), (24.0, 64.0), 3.0, Fill::Lit(actor.main));
    pen.path("M-12 -60Q-8 -40 -5 -56Q0 -48 4 -60Z", actor.main.lighter(0.5));
    pen.line("M0 -64V-72", Colour::hex(0x3a_30_2a), 2.0);
    pen.path("M0 -100Q12 -80 0 -70Q-12 -80 0 -100Z", Fill::Down(actor.accent, Colour::hex(0xff_ec_a0)));
}

fn clock(pen: &mut Pen, actor: &Actor) {
    pen.circle((0.0, -50.0), 50.0, Fill::Lit(actor.main));
    pen.circle((0.0, -50.0), 42.0, actor.accent);
    for i in 0..12 {
        let long = if i % 3 == 0 { 8.0 } else { 4.0 };
        pen.within((0.0, -50.0), (1.0, 1.0), i as f32 * 30.0, |pen| {
            pen.line(&format!("M0 -38v{long}"), actor.main, 2.4);
        });
    }
    pen.line("M0 -50L-14 -66", actor.main, 4.4);
    pen.line("M0 -50L20 -74", actor.main, 3.0);
    pen.circle((0.0, -50.0), 3.6, Colour::hex(0xd0_3a_3a));
}

fn hat(pen: &mut Pen, actor: &Actor) {
    pen.path("M-40 -16L-36 -94Q0 -106 36 -94L40 -16Z", Fill::Lit(actor.main));
    pen.path("M-41 -36L-40 -16H40L41 -36Q0 -26 -41 -36Z", actor.accent);
    pen.ellipse((0.0, -10.0), (70.0, 10.0), Fill::Lit(actor.main.lighter(0.06)));
}

fn key(pen: &mut Pen, actor: &Actor) {
    pen.path("M-100 -50A40 40 0 1 1 -20 -50A40 40 0 1 1 -100 -50ZM-76 -50A16 16 0 1 0 -44 -50A16 16 0 1 0 -76 -50ZM-24 -58H100V-14H84V-42H70V-24H54V-42H-24Z", Fill::Lit(actor.main));
}

fn sign(pen: &mut Pen, actor: &Actor) {
    pen.rect((-5.0, -60.0), (10.0, 60.0), 1.0, Fill::Lit(actor.accent));
    pen.rect((-62.0, -100.0), (124.0, 56.0), 5.0, Fill::Lit(actor.accent));
    pen.rect((-57.0, -95.0), (114.0, 46.0), 3.0, actor.main);
}

fn umbrella(pen: &mut Pen, actor: &Actor) {
    pen.line("M0 -96V-12Q0 -2 8 -2Q16 -2 16 -11", actor.accent, 3.6);
    pen.path("M-50 -50C-48 -82 -24 -96 0 -96C24 -96 48 -82 50 -50Q42 -58 33 -50Q25 -58 16 -50Q8 -58 0 -50Q-8 -58 -16 -50Q-25 -58 -33 -50Q-42 -58 -50 -50Z", Fill::Lit(actor.main));
    pen.path("M0 -96C-10 -86 -16 -66 -16 -50Q-8 -58 0 -50Q8 -58 16 -50C16 -66 10 -86 0 -96Z", actor.main.lighter(0.24));
    pen.line("M0 -96V-100", actor.accent, 3.0);
}
