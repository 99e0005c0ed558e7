//! The proportions and usual colours of things.

use crate::brief::Thing;
use crate::colour::Colour;

/// Width over height.
pub(in crate::scene) fn aspect(thing: Thing) -> f32 {
    form(thing).0
}

/// How high it is in a scene whose shorter side is 1000.
pub(in crate::scene) fn height(thing: Thing) -> f32 {
    form(thing).1
}

/// Its colour and that of its lesser part, when nobody says.
pub(in crate::scene) fn colours(thing: Thing) -> (Colour, Colour) {
    let (_, _, main, accent) = form(thing);
    (Colour::hex(main), Colour::hex(accent))
}

/// How high of it things stand that are on it, in parts of its height.
pub(in crate::scene) const fn surface(thing: Thing) -> f32 {
    match thing {
        Thing::Chair => 0.5,
        Thing::Boat | Thing::PaperBoat | Thing::Car => 0.3,
        Thing::Bowl => 0.8,
        Thing::Bicycle => 0.6,
        Thing::Bridge => 0.62,
        Thing::Duck | Thing::Whale => 0.62,
        Thing::Moon | Thing::Ball | Thing::Planet | Thing::Circle => 0.95,
        _ => 0.97,
    }
}

/// Whether it looks to one side.
pub(in crate::scene) const fn turns(thing: Thing) -> bool {
    use Thing::{Bird, Boat, Bus, Butterfly, Car, Cat, Dog, Duck, Fish, Plane, Rabbit, Ship, Train, Whale};
    matches!(
        thing,
        Bird | Boat | Bus | Butterfly | Car | Cat | Dog | Duck | Fish | Plane | Rabbit | Ship | Train | Whale
    )
}

/// Whether it sways a little.
pub(in crate::scene) const fn tilts(thing: Thing) -> bool {
    use Thing::{AirBalloon, Balloon, Bird, Butterfly, Fish, Flower, Kite, PaperBoat, Rocket};
    matches!(thing, AirBalloon | Balloon | Bird | Butterfly | Fish | Flower | Kite | PaperBoat | Rocket)
}

/// Whether it stands on a floor, rather than being a sign on paper.
pub(in crate::scene) const fn stands(thing: Thing) -> bool {
    use Thing::{
        AirBalloon, Arrow, Balloon, Bird, Butterfly, Circle, Cloud, Crescent, Cross, Diamond, Ellipse, Heart, Hexagon,
        Kite, Leaf, Lightning, Line, Moon, Octagon, Pentagon, Plane, Planet, Rainbow, Rectangle, Ring, Rocket, Spiral,
        Square, Star, Sun, Triangle,
    };
    !matches!(
        thing,
        AirBalloon
            | Arrow
            | Balloon
            | Bird
            | Butterfly
            | Circle
            | Cloud
            | Crescent
            | Cross
            | Diamond
            | Ellipse
            | Heart
            | Hexagon
            | Kite
            | Leaf
            | Line
            | Lightning
            | Moon
            | Octagon
            | Pentagon
            | Plane
            | Planet
            | Rainbow
            | Rectangle
            | Ring
            | Rocket
            | Spiral
            | Square
            | Star
            | Sun
            | Triangle
    )
}

/// Whether it may have any colour.
pub(in crate::scene) const fn is_free_in_colour(thing: Thing) -> bool {
    use Thing::{
        AirBalloon, Ball, Balloon, Book, Butterfly, Car, Circle, Cube, Diamond, Ellipse, Fish, Flower, Gift, Hexagon,
        Kite, Octagon, Pentagon, Rectangle, Ring, Spiral, Square, Triangle, Umbrella,
    };
    matches!(
        thing,
        AirBalloon
            | Balloon
            | Ball
            | Book
            | Butterfly
            | Car
            | Circle
            | Cube
            | Diamond
            | Ellipse
            | Fish
            | Flower
            | Gift
            | Hexagon
            | Kite
            | Octagon
            | Pentagon
            | Rectangle
            | Ring
            | Spiral
            | Square
            | Triangle
            | Umbrella
    )
}

/// Width over height, height in a scene, colour, second colour.
#[rustfmt::skip]
const fn form(thing: Thing) -> (f32, f32, u32, u32) {
    match thing {
        Thing::Circle => (1.0, 200.0, 0x3b_82_d6, 0xff_ff_ff),
        Thing::Square => (1.0, 190.0, 0xe0_7a_3f, 0xff_ff_ff),
        Thing::Rectangle => (1.6, 160.0, 0x5b_8c_5a, 0xff_ff_ff),
        Thing::Triangle => (1.12, 200.0, 0xe5_a8_2e, 0xff_ff_ff),
        Thing::Star => (1.04, 190.0, 0xff_c8_2e, 0xff_ff_ff),
        Thing::Heart => (1.08, 200.0, 0xe0_2f_4c, 0xff_ff_ff),
        Thing::Hexagon => (1.14, 200.0, 0x4a_a8_a0, 0xff_ff_ff),
        Thing::Pentagon => (1.04, 200.0, 0x8a_63_c9, 0xff_ff_ff),
        Thing::Octagon => (1.0, 200.0, 0xd1_49_5b, 0xff_ff_ff),
        Thing::Ellipse => (1.5, 160.0, 0x6a_7f_db, 0xff_ff_ff),
        Thing::Ring => (1.0, 200.0, 0xd9_6c_9a, 0xff_ff_ff),
        Thing::Cross => (1.0, 190.0, 0xd6_3a_3a, 0xff_ff_ff),
        Thing::Diamond => (0.8, 200.0, 0x4f_b6_dd, 0xff_ff_ff),
        Thing::Arrow => (1.7, 130.0, 0x33_6b_c9, 0xff_ff_ff),
        Thing::Line => (6.0, 40.0, 0x33_3a_4a, 0xff_ff_ff),
        Thing::Crescent => (0.9, 170.0, 0xf6_e3_a1, 0xff_ff_ff),
        Thing::Spiral => (1.0, 200.0, 0x8a_4f_c0, 0xff_ff_ff),
        Thing::Cube => (1.0, 190.0, 0xc9_95_5c, 0xff_ff_ff),
        Thing::Sun => (1.0, 170.0, 0xff_cf_3f, 0xff_b0_2e),
        Thing::Moon => (1.0, 140.0, 0xf7_ec_c4, 0xd8_c9_98),
        Thing::Cloud => (2.2, 110.0, 0xff_ff_ff, 0xd5_e2_f0),
        Thing::Rainbow => (2.0, 300.0, 0xe0_4b_4b, 0xff_ff_ff),
        Thing::Planet => (1.5, 190.0, 0xd9_9a_5b, 0xf0_d8_a8),
        Thing::Lightning => (0.6, 220.0, 0xff_d2_3f, 0xff_ff_ff),
        Thing::Tree => (0.78, 360.0, 0x4d_a0_4a, 0x86_5a_38),
        Thing::Pine => (0.56, 370.0, 0x2c_7a_54, 0x7a_50_34),
        Thing::Palm => (0.86, 380.0, 0x3f_a0_5a, 0xa8_7a_4c),
        Thing::Flower => (0.5, 200.0, 0xe8_55_7a, 0xf7_c5_3b),
        Thing::Leaf => (0.72, 170.0, 0x3f_a8_4c, 0x2a_7a_38),
        Thing::Mushroom => (0.9, 150.0, 0xd6_3a_34, 0xf4_ea_d8),
        Thing::Cactus => (0.66, 260.0, 0x3f_8f_57, 0xf0_6a_9a),
        Thing::Bush => (1.7, 120.0, 0x4f_94_4c, 0x3c_74_3a),
        Thing::Mountain => (1.8, 300.0, 0x6a_78_94, 0xf4_f7_fb),
        Thing::Rock => (1.5, 90.0, 0x8d_90_99, 0x6d_70_79),
        Thing::House => (1.06, 310.0, 0xf3_e3_c6, 0xc2_4f_3d),
        Thing::Castle => (1.3, 380.0, 0xb9_b4_b8, 0x4a_68_a8),
        Thing::Lighthouse => (0.4, 440.0, 0xf7_f4_ee, 0xd0_3a_36),
        Thing::Bridge => (3.0, 220.0, 0xb0_6a_4c, 0x8a_4f_38),
        Thing::Tower => (0.42, 480.0, 0x7e_92_b0, 0xf6_e2_a0),
        Thing::Tent => (1.5, 190.0, 0xe5_8a_3a, 0xb5_60_22),
        Thing::Windmill => (0.8, 400.0, 0xf0_e8_da, 0xa8_4a_3a),
        Thing::Fence => (2.6, 90.0, 0xf6_f1_e6, 0xd6_cd_bb),
        Thing::Car => (2.2, 135.0, 0xd9_3f_3f, 0xd6_ec_f7),
        Thing::Bus => (2.1, 180.0, 0xf0_b4_2c, 0xd6_ec_f7),
        Thing::Boat => (0.9, 290.0, 0xa0_52_2d, 0xff_fb_f2),
        Thing::PaperBoat => (1.6, 190.0, 0xfb_fb_f8, 0xd6_dd_e6),
        Thing::Ship => (1.9, 230.0, 0x2b_45_78, 0xf4_f4_f2),
        Thing::Rocket => (0.56, 340.0, 0xf2_f4_f8, 0xe0_40_40),
        Thing::Plane => (2.1, 130.0, 0xf3_f6_fa, 0x2f_78_c8),
        Thing::AirBalloon => (0.74, 250.0, 0xe8_5a_4f, 0xff_d9_70),
        Thing::Bicycle => (1.6, 170.0, 0xd8_43_43, 0x33_38_44),
        Thing::Train => (2.6, 170.0, 0x2f_6f_a8, 0xf2_c1_4e),
        Thing::Fish => (1.7, 110.0, 0xff_8c_42, 0xff_c9_80),
        Thing::Bird => (1.4, 90.0, 0x4a_86_c8, 0xf6_a8_30),
        Thing::Cat => (0.86, 210.0, 0xe2_9a_4a, 0xfb_ee_dc),
        Thing::Dog => (0.96, 220.0, 0xb9_82_50, 0xf6_e6_d0),
        Thing::Butterfly => (1.2, 110.0, 0x8f_5f_d6, 0xff_b3_47),
        Thing::Duck => (1.15, 120.0, 0xff_d2_3d, 0xf0_86_20),
        Thing::Whale => (2.0, 170.0, 0x4a_7f_b8, 0xdf_ee_f8),
        Thing::Rabbit => (0.7, 190.0, 0xd9_cf_c6, 0xf6_b8_c4),
        Thing::Bee => (1.3, 80.0, 0xff_cc_33, 0x33_2a_22),
        Thing::Owl => (0.76, 180.0, 0x9a_6f_4a, 0xf0_dd_bd),
        Thing::Person => (0.44, 260.0, 0x3f_7d_c0, 0x33_40_5c),
        Thing::Woman => (0.44, 260.0, 0xc8_4f_78, 0x7a_3a_5c),
        Thing::Robot => (0.72, 260.0, 0x9f_b2_c6, 0x4a_c8_e8),
        Thing::Snowman => (0.66, 290.0, 0xfa_fc_ff, 0xd8_3f_3f),
        Thing::Ghost => (0.76, 200.0, 0xf6_f6_fc, 0x3a_38_4c),
        Thing::Apple => (0.94, 120.0, 0xd9_34_34, 0x4c_9a_3c),
        Thing::Cherry => (1.0, 110.0, 0xc8_1d_37, 0x4c_9a_3c),
        Thing::Orange => (1.0, 115.0, 0xf8_8a_1c, 0x4c_9a_3c),
        Thing::Lemon => (1.3, 90.0, 0xf8_da_38, 0x4c_9a_3c),
        Thing::Banana => (1.4, 100.0, 0xf8_d7_3e, 0x7a_5a_2a),
        Thing::Cake => (1.1, 190.0, 0xf6_b8_cc, 0x9a_5a_3a),
        Thing::Cup => (1.24, 150.0, 0xf4_f0_ea, 0x6a_41_28),
        Thing::Bowl => (1.7, 130.0, 0x4f_86_b8, 0xdc_ea_f4),
        Thing::IceCream => (0.56, 200.0, 0xf6_a8_c0, 0xd9_9a_56),
        Thing::Pizza => (1.0, 180.0, 0xf4_c0_4c, 0xc8_3f_2c),
        Thing::Egg => (0.78, 110.0, 0xf7_ea_d8, 0xff_ff_ff),
        Thing::Pumpkin => (1.24, 140.0, 0xf0_7f_1f, 0x5a_7f_34),
        Thing::Balloon => (0.56, 250.0, 0xe0_3f_54, 0x6a_70_80),
        Thing::Ball => (1.0, 130.0, 0xe8_5c_3c, 0xff_ff_ff),
        Thing::Book => (1.25, 110.0, 0x2f_6f_a0, 0xfb_f6_ea),
        Thing::Umbrella => (1.0, 220.0, 0xd8_3a_50, 0x6a_4a_34),
        Thing::Chair => (0.6, 220.0, 0xb9_7a_46, 0xe8_d4_b8),
        Thing::Table => (1.7, 190.0, 0xb0_77_46, 0x8a_58_30),
        Thing::Lamp => (0.6, 260.0, 0xf6_d8_8a, 0x5a_60_70),
        Thing::Vase => (0.6, 190.0, 0x5a_94_b8, 0xe8_55_7a),
        Thing::Gift => (1.0, 150.0, 0xd6_3f_5a, 0xff_d8_5a),
        Thing::Candle => (0.36, 170.0, 0xf7_ec_d8, 0xff_b0_2e),
        Thing::Clock => (1.0, 180.0, 0x3f_5f_80, 0xfb_fb_f6),
        Thing::Flag => (0.9, 260.0, 0xd6_3a_3a, 0x7a_70_63),
        Thing::Kite => (0.7, 220.0, 0xe8_55_3f, 0x3f_a0_d8),
        Thing::Hat => (1.4, 110.0, 0x33_34_40, 0xc8_3a_3a),
        Thing::Key => (2.1, 80.0, 0xe5_b4_38, 0xa8_7a_1c),
        Thing::Sign => (1.24, 300.0, 0xf6_ec_d8, 0x9a_68_3e),
    }
}
