//! What grows, and stones.

use engine::Quality;

use crate::brief::Thing;
use crate::colour::Colour;
use crate::scene::dice::Dice;
use crate::scene::layout::Actor;
use crate::scene::pen::{Fill, Pen};

pub(super) fn draw(pen: &mut Pen, actor: &Actor) -> bool {
    match actor.thing {
        Thing::Tree => tree(pen, actor),
        Thing::Pine => pine(pen, actor),
        Thing::Palm => palm(pen, actor),
        Thing::Flower => flower(pen, actor),
        Thing::Leaf => leaf(pen, actor.main),
        Thing::Mushroom => mushroom(pen, actor),
        Thing::Cactus => cactus(pen, actor),
        Thing::Bush => bush(pen, actor.main),
        Thing::Mountain => mountain(pen, actor),
        Thing::Rock => rock(pen, actor.main),
        _ => return false,
    }
    true
}

fn tree(pen: &mut Pen, actor: &Actor) {
    let mut dice = Dice::new(actor.seed, "tree");
    let (leaf, wood) = (actor.main, actor.accent);
    pen.path("M-6 0C-4 -14 -4 -30 -5 -50L5 -50C4 -30 5 -14 8 0Z", Fill::Lit(wood));
    pen.line("M0 -34L14 -50", wood, 4.0);
    let heaps = [
        (-20.0, -46.0, 19.0),
        (20.0, -48.0, 18.0),
        (-13.0, -68.0, 20.0),
        (14.0, -70.0, 20.0),
        (0.0, -80.0, 19.0),
        (0.0, -54.0, 22.0),
    ];
    for (x, y, r) in heaps {
        let at = (x + dice.jitter(2.5), y + dice.jitter(2.0));
        pen.circle(at, r, leaf.darker(0.16));
    }
    for (x, y, r) in heaps {
        pen.circle((x - 2.5 + dice.jitter(1.5), y - 3.0), r * 0.84, Fill::Lit(leaf));
    }
    if pen.fine(Quality::High) {
        for _ in 0..14 {
            let at = (dice.jitter(26.0), -64.0 + dice.jitter(24.0));
            pen.ellipse(at, (3.4, 2.0), leaf.lighter(0.24));
        }
    }
}

fn pine(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    pen.rect((-4.0, -18.0), (8.0, 18.0), 1.0, Fill::Lit(actor.accent));
    for (top, foot, half) in [(-52.0, -12.0, 28.0), (-76.0, -38.0, 22.0), (-100.0, -64.0, 15.0)] {
        let path = format!(
            "M0 {top}L{half} {foot}Q{:.1} {:.1} 0 {:.1}Q{:.1} {:.1} -{half} {foot}Z",
            half * 0.5,
            foot + 5.0,
            foot + 3.0,
            -half * 0.5,
            foot + 5.0
        );
        pen.path(&path, Fill::Lit(c));
        if pen.fine(Quality::Medium) {
            let path = format!(
                "M0 {top}L{half} {foot}Q{:.1} {:.1} {:.1} {:.1}Z",
                half * 0.5,
                foot + 5.0,
                half * 0.2,
                foot + 3.0
            );
            pen.path(&path, c.darker(0.2));
        }
    }
}

fn palm(pen: &mut Pen, actor: &Actor) {
    pen.path("M-6 0C-4 -30 2 -52 8 -72L14 -70C9 -48 4 -28 6 0Z", Fill::Lit(actor.accent));
    for i in 1..7 {
        let y = -10.0 * i as f32;
        pen.line(&format!("M{:.1} {y}l9 -1", -5.0 + 2.0 * i as f32 * 0.9), actor.accent.darker(0.25), 1.2);
    }
    let fronds = [
        "M10 -72Q-14 -98 -34 -66Q-14 -82 10 -72Z",
        "M10 -72Q40 -98 43 -58Q32 -80 10 -72Z",
        "M10 -72Q-8 -74 -24 -46Q-18 -70 10 -72Z",
        "M10 -72Q30 -70 32 -40Q24 -64 10 -72Z",
        "M10 -72Q-2 -104 -20 -94Q2 -92 10 -72Z",
        "M10 -72Q22 -104 38 -90Q20 -90 10 -72Z",
    ];
    for (i, frond) in fronds.into_iter().enumerate() {
        pen.path(frond, Fill::Lit(actor.main.darker(0.05 * (i % 3) as f32)));
    }
}

fn flower(pen: &mut Pen, actor: &Actor) {
    let green = Colour::hex(0x4c_9a_4a);
    pen.line("M0 0Q-4 -34 0 -70", green, 3.6);
    pen.path("M-1 -18Q-24 -22 -22 -42Q-4 -40 -1 -18Z", Fill::Lit(green));
    pen.path("M-1 -26Q20 -30 20 -48Q2 -46 -1 -26Z", Fill::Lit(green.darker(0.1)));
    for i in 0..8 {
        pen.within((0.0, -75.0), (1.0, 1.0), i as f32 * 45.0, |pen| {
            pen.ellipse((0.0, -14.0), (6.6, 11.0), Fill::Lit(actor.main));
        });
    }
    pen.circle((0.0, -75.0), 8.5, Fill::Round(actor.accent));
}

fn leaf(pen: &mut Pen, colour: Colour) {
    pen.path("M0 -100C34 -78 44 -40 0 -8C-44 -40 -34 -78 0 -100Z", Fill::Lit(colour));
    pen.path("M0 -100C34 -78 44 -40 0 -8Z", colour.darker(0.14));
    let vein = colour.lighter(0.55);
    pen.line("M0 -84V0", vein, 2.6);
    pen.line("M0 -30L16 -46M0 -48L17 -64M0 -30L-16 -46M0 -48L-17 -64M0 -66L10 -76M0 -66L-10 -76", vein, 1.7);
}

fn mushroom(pen: &mut Pen, actor: &Actor) {
    pen.path("M-12 -46C-10 -26 -16 -8 -15 -3Q0 4 15 -3C16 -8 10 -26 12 -46Z", Fill::Lit(actor.accent));
    pen.path("M-45 -44C-42 -84 -18 -100 0 -100C18 -100 42 -84 45 -44Q0 -34 -45 -44Z", Fill::Lit(actor.main));
    for (x, y, r) in [(-20.0, -66.0, 7.0), (6.0, -80.0, 8.0), (24.0, -60.0, 6.0), (-4.0, -56.0, 5.0)] {
        pen.ellipse((x, y), (r, r * 0.85), Colour::hex(0xff_fa_f0));
    }
}

fn cactus(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    pen.line("M-8 -34H-22V-60M8 -26H22V-50", c.darker(0.08), 13.0);
    pen.rect((-11.0, -98.0), (22.0, 98.0), 11.0, Fill::Lit(c));
    pen.line("M-4 -90V-4M4 -90V-4", c.darker(0.2), 1.3);
    pen.circle((0.0, -97.0), 5.0, actor.accent);
    pen.circle((-22.0, -66.0), 3.6, actor.accent);
}

fn bush(pen: &mut Pen, colour: Colour) {
    for (x, y, r) in
        [(-52.0, -34.0, 34.0), (50.0, -36.0, 36.0), (-18.0, -56.0, 44.0), (22.0, -52.0, 40.0), (0.0, -30.0, 32.0)]
    {
        pen.circle((x, y), r, Fill::Lit(colour));
    }
}

fn mountain(pen: &mut Pen, actor: &Actor) {
    let c = actor.main;
    pen.polygon(&[(-90.0, 0.0), (-8.0, -100.0), (90.0, 0.0)], Fill::Lit(c));
    pen.polygon(&[(-8.0, -100.0), (90.0, 0.0), (10.0, 0.0), (4.0, -50.0), (-10.0, -72.0)], c.darker(0.18));
    pen.polygon(
        &[(-8.0, -100.0), (-32.0, -71.0), (-20.0, -76.0), (-9.0, -64.0), (4.0, -74.0), (20.0, -70.0)],
        actor.accent,
    );
}

fn rock(pen: &mut Pen, colour: Colour) {
    pen.path("M-75 0L-66 -46L-24 -92L30 -100L68 -52L75 0Z", Fill::Lit(colour));
    pen.polygon(&[(30.0, -100.0), (68.0, -52.0), (75.0, 0.0), (14.0, 0.0), (4.0, -58.0)], colour.darker(0.2));
}
