//! People, and what is made in their likeness.

use crate::brief::Thing;
use crate::colour::Colour;
use crate::scene::layout::Actor;
use crate::scene::pen::{Fill, Pen};

const DARK: Colour = Colour::hex(0x2a_2a_34);

pub(super) fn draw(pen: &mut Pen, actor: &Actor) -> bool {
    match actor.thing {
        Thing::Person => person(pen, actor),
        Thing::Woman => woman(pen, actor),
        Thing::Robot => robot(pen, actor),
        Thing::Snowman => snowman(pen, actor),
        Thing::Ghost => ghost(pen, actor),
        _ => return false,
    }
    true
}

/// The colours of skin and hair, by chance.
fn complexion(actor: &Actor) -> (Colour, Colour) {
    let skins = [0xf2_c9_a4, 0xd9_a0_74, 0xa8_70_48, 0x7a_4c_30];
    let hairs = [0x3a_28_20, 0x6a_44_28, 0x20_1c_22, 0xc0_8a_4a];
    (Colour::hex(skins[(actor.seed % 4) as usize]), Colour::hex(hairs[(actor.seed / 4 % 4) as usize]))
}

fn person(pen: &mut Pen, actor: &Actor) {
    let (skin, hair) = complexion(actor);
    pen.rect((-10.0, -40.0), (8.6, 38.0), 3.0, Fill::Lit(actor.accent));
    pen.rect((1.4, -40.0), (8.6, 38.0), 3.0, Fill::Lit(actor.accent));
    pen.path("M-13 0Q-13 -5 -6 -5H-1V0ZM13 0Q13 -5 6 -5H1V0Z", DARK);
    arms(pen, actor, skin);
    pen.path("M-14 -66Q-12 -73 0 -73Q12 -73 14 -66L12 -36H-12Z", Fill::Lit(actor.main));
    head(pen, skin);
    pen.path("M-12 -84C-14 -104 14 -104 12 -84C8 -92 -2 -94 -12 -84Z", hair);
}

fn woman(pen: &mut Pen, actor: &Actor) {
    let (skin, hair) = complexion(actor);
    pen.path("M-13 -88C-16 -74 -18 -66 -14 -60H14C18 -66 16 -74 13 -88Z", Fill::Lit(hair.darker(0.12)));
    pen.rect((-7.6, -26.0), (5.6, 24.0), 2.0, skin);
    pen.rect((2.0, -26.0), (5.6, 24.0), 2.0, skin);
    pen.path("M-10 0Q-10 -4 -5 -4H-1V0ZM10 0Q10 -4 5 -4H1V0Z", actor.accent);
    arms(pen, actor, skin);
    pen.path("M-11 -67Q-9 -73 0 -73Q9 -73 11 -67L8.4 -52L18 -18Q0 -13 -18 -18L-8.4 -52Z", Fill::Lit(actor.main));
    pen.line("M-8.4 -52H8.4", actor.main.darker(0.3), 2.0);
    head(pen, skin);
    pen.path("M-13.4 -74C-17 -104 17 -104 13.4 -74C13 -84 9 -90 2 -94C-4 -89 -12 -86 -13.4 -74Z", Fill::Lit(hair));
}

fn arms(pen: &mut Pen, actor: &Actor, skin: Colour) {
    pen.line("M-12 -65L-17 -42M12 -65L17 -42", actor.main.darker(0.12), 5.6);
    pen.circle((-17.2, -39.0), 3.3, skin);
    pen.circle((17.2, -39.0), 3.3, skin);
}

fn head(pen: &mut Pen, skin: Colour) {
    pen.rect((-3.4, -78.0), (6.8, 8.0), 2.0, skin.darker(0.1));
    pen.circle((0.0, -86.0), 11.5, Fill::Lit(skin));
    pen.circle((-4.0, -85.0), 1.4, DARK);
    pen.circle((4.0, -85.0), 1.4, DARK);
    pen.line("M-3.6 -80.5Q0 -78 3.6 -80.5", DARK, 1.1);
}

fn robot(pen: &mut Pen, actor: &Actor) {
    let (c, glow) = (actor.main, actor.accent);
    pen.line("M0 -88V-97", c.darker(0.3), 2.4);
    pen.circle((0.0, -97.0), 3.4, Colour::hex(0xf0_4a_4a));
    pen.line("M-22 -50L-31 -34V-24M22 -50L31 -34V-24", c.darker(0.24), 6.0);
    pen.circle((-31.0, -22.0), 4.6, c.darker(0.4));
    pen.circle((31.0, -22.0), 4.6, c.darker(0.4));
    for x in [-13.0, 5.0] {
        pen.rect((x, -22.0), (8.0, 18.0), 2.0, c.darker(0.24));
        pen.rect((x - 3.0, -6.0), (14.0, 6.0), 3.0, c.darker(0.4));
    }
    pen.rect((-22.0, -56.0), (44.0, 36.0), 7.0, Fill::Lit(c));
    pen.rect((-13.0, -48.0), (26.0, 18.0), 4.0, c.darker(0.5));
    for (x, light) in [(-7.0, 0xf0_5a_4a), (0.0, 0xf6_c8_3a), (7.0, 0x5a_d0_7a)] {
        pen.circle((x, -39.0), 2.6, Colour::hex(light));
    }
    pen.rect((-25.0, -90.0), (50.0, 31.0), 9.0, Fill::Lit(c.lighter(0.1)));
    pen.rect((-19.0, -84.0), (38.0, 19.0), 7.0, DARK);
    pen.circle((-8.0, -75.0), 4.6, glow);
    pen.circle((8.0, -75.0), 4.6, glow);
    pen.line("M-4 -69Q0 -67 4 -69", glow, 1.4);
}

fn snowman(pen: &mut Pen, actor: &Actor) {
    let (snow, scarf) = (actor.main, actor.accent);
    let shaded = |pen: &mut Pen, y: f32, r: f32| {
        pen.circle((0.0, y), r, snow.mix(Colour::hex(0x8f_ac_d0), 0.5));
        pen.circle((-1.2, y - 1.0), r - 1.0, Fill::Lit(snow));
    };
    pen.line("M-18 -48L-34 -60M-29 -56L-34 -53M18 -48L34 -62M29 -58L34 -54", Colour::hex(0x6a_48_30), 2.4);
    shaded(pen, -23.0, 25.0);
    shaded(pen, -50.0, 19.0);
    shaded(pen, -73.0, 14.0);
    pen.path("M-13 -63Q0 -56 13 -63L12 -57Q0 -50 -12 -57Z", Fill::Lit(scarf));
    pen.path("M7 -57L12 -40L5 -39L2 -55Z", scarf.darker(0.14));
    for y in [-47.0, -38.0, -24.0] {
        pen.circle((0.0, y), 1.9, DARK);
    }
    pen.circle((-5.0, -76.0), 1.8, DARK);
    pen.circle((5.0, -76.0), 1.8, DARK);
    pen.polygon(&[(0.0, -73.0), (15.0, -69.5), (0.0, -69.0)], Colour::hex(0xf0_82_28));
    pen.rect((-15.0, -86.0), (30.0, 3.4), 1.5, DARK);
    pen.rect((-9.5, -100.0), (19.0, 15.0), 1.0, Fill::Lit(DARK));
    pen.rect((-9.5, -90.0), (19.0, 4.0), 0.0, scarf);
}

fn ghost(pen: &mut Pen, actor: &Actor) {
    pen.path(
        "M-36 -4C-40 -60 -34 -100 0 -100C34 -100 40 -60 36 -4Q28 4 20 -6Q12 4 2 -4Q-8 4 -16 -6Q-26 4 -36 -4Z",
        Fill::Lit(actor.main),
    );
    for x in [-12.0, 12.0] {
        pen.ellipse((x, -66.0), (5.4, 8.0), actor.accent);
    }
    pen.ellipse((0.0, -46.0), (5.0, 6.4), actor.accent);
    pen.ellipse((-21.0, -52.0), (5.0, 3.2), Colour::hex(0xf6_b8_c4));
    pen.ellipse((21.0, -52.0), (5.0, 3.2), Colour::hex(0xf6_b8_c4));
}
