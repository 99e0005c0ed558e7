//! The ground underfoot.

use engine::Quality;

use super::land::{lit, swell};
use super::pen::{Fill, Pen};
use super::stage::{Ground, Stage};
use super::water;
use crate::brief::{Brief, Place, Weather};
use crate::colour::Colour;

/// What the subjects stand on.
pub(super) fn draw(pen: &mut Pen, brief: &Brief, stage: &Stage) {
    let Some(ground) = stage.ground else { return };
    let place = place_of(ground);
    let colour = lit(stage, brief.tint(place).unwrap_or(Colour::hex(base(ground))));
    let top = stage.ground_top;
    match ground {
        Ground::Street => street(pen, stage, colour),
        Ground::Cliff => cliff(pen, stage, colour),
        Ground::Bank => pen.path(&swell(stage, "bank", top, 14.0, 2.0), Fill::Lit(colour)),
        Ground::Hills => {
            pen.path(
                &swell(stage, "hill", top + 14.0, 20.0, 1.5),
                Fill::Down(colour.lighter(0.32), colour.lighter(0.1)),
            );
            knoll(pen, stage, colour);
        }
        Ground::Field | Ground::Snow | Ground::Desert | Ground::Sand => {
            if ground == Ground::Sand {
                water::surf(pen, stage);
            }
            pen.path(
                &swell(stage, "ground", top + 8.0, 12.0, 2.0),
                Fill::Down(colour.lighter(0.2), colour.darker(0.06)),
            );
            near_swell(pen, stage, colour);
        }
    }
    if matches!(ground, Ground::Field | Ground::Hills | Ground::Bank) {
        grass(pen, stage, colour);
    }
    if ground == Ground::Snow || brief.weather.contains(&Weather::Snowfall) {
        drifts(pen, stage);
    }
}

/// The hill on which the subjects stand.
fn knoll(pen: &mut Pen, stage: &Stage, colour: Colour) {
    let (w, h) = (stage.width, stage.height);
    let foot = stage.ground_top + (h - stage.ground_top) * 0.82;
    let dome = format!(
        "M{:.1} {foot:.1} Q{:.1} {:.1} {:.1} {foot:.1} V{:.1} H{:.1}Z",
        -w * 0.1,
        w * 0.5,
        stage.ground_top - h * 0.12,
        w * 1.1,
        h + 4.0,
        -w * 0.1
    );
    pen.path(&dome, Fill::Down(colour.lighter(0.18), colour.darker(0.12)));
}

const fn base(ground: Ground) -> u32 {
    match ground {
        Ground::Field | Ground::Bank => 0x7c_b9_5c,
        Ground::Hills => 0x6d_b1_58,
        Ground::Snow => 0xe4_ee_f8,
        Ground::Desert => 0xe2_b4_6f,
        Ground::Sand => 0xee_d5_a0,
        Ground::Cliff => 0x84_78_70,
        Ground::Street => 0x5c_62_70,
    }
}

const fn place_of(ground: Ground) -> Place {
    match ground {
        Ground::Field | Ground::Bank => Place::Field,
        Ground::Hills => Place::Hills,
        Ground::Snow => Place::Snow,
        Ground::Desert => Place::Desert,
        Ground::Sand => Place::Shore,
        Ground::Cliff => Place::Cliff,
        Ground::Street => Place::Street,
    }
}

/// A nearer, darker fold of the same ground.
fn near_swell(pen: &mut Pen, stage: &Stage, colour: Colour) {
    let y = stage.ground_top + (stage.height - stage.ground_top) * 0.7;
    pen.path(&swell(stage, "near ground", y, 16.0, 1.6), Fill::Down(colour.darker(0.03), colour.darker(0.16)));
}

/// Blades and flowers: the more, the finer the picture.
fn grass(pen: &mut Pen, stage: &Stage, colour: Colour) {
    let count = match pen.detail() {
        Quality::Low => 0,
        Quality::Medium => 60,
        Quality::High => 150,
        Quality::XHigh => 300,
        Quality::Max => 450,
    };
    let mut dice = stage.dice("grass");
    for i in 0..count {
        let depth = dice.range(0.06, 1.0);
        let (x, y) = (stage.width * dice.range(0.0, 1.0), stage.ground_top + (stage.height - stage.ground_top) * depth);
        let (lean, size) = (dice.jitter(7.0), 8.0 + 14.0 * depth);
        if i % 19 == 0 {
            pen.circle((x, y), 2.5 + 3.5 * depth, Colour::hsl(dice.range(0.0, 360.0), 0.6, 0.82));
        } else {
            let tuft = format!(
                "M{x:.0} {y:.0}q{:.1} {:.1} {lean:.1} {:.1}m{:.1} {size:.1}q2 -8 {:.1} {:.1}",
                lean * 0.2,
                -size * 0.6,
                -size,
                -lean + 5.0,
                4.0 - lean,
                -size * 0.8
            );
            pen.line(&tuft, colour.darker(0.14 + 0.1 * depth), 1.6 + depth);
        }
    }
}

fn drifts(pen: &mut Pen, stage: &Stage) {
    let mut dice = stage.dice("drifts");
    for _ in 0..7 {
        let y = stage.ground_top + (stage.height - stage.ground_top) * dice.range(0.2, 0.95);
        let at = (stage.width * dice.range(0.0, 1.0), y);
        pen.ellipse(at, (dice.range(80.0, 200.0), dice.range(8.0, 20.0)), Fill::Glow(Colour::WHITE));
    }
}

fn street(pen: &mut Pen, stage: &Stage, colour: Colour) {
    let (top, depth) = (stage.ground_top, stage.height - stage.ground_top);
    let pavement = Colour::hex(0xb9_b7_b4);
    pen.rect((-2.0, top), (stage.width + 4.0, depth + 2.0), 0.0, Fill::Down(pavement.lighter(0.1), pavement));
    pen.rect((-2.0, top + depth * 0.34), (stage.width + 4.0, depth + 2.0), 0.0, Fill::Down(colour, colour.darker(0.2)));
    pen.rect((-2.0, top + depth * 0.32), (stage.width + 4.0, depth * 0.03), 0.0, pavement.darker(0.3));
    let dashes = (stage.width / 150.0).min(60.0) as usize + 1;
    for i in 0..dashes {
        let x = i as f32 * stage.width / dashes as f32;
        pen.rect(
            (x, top + depth * 0.68),
            (stage.width / dashes as f32 * 0.55, depth * 0.025),
            2.0,
            Colour::hex(0xf2_e8_c8),
        );
    }
}

fn cliff(pen: &mut Pen, stage: &Stage, colour: Colour) {
    let (w, h, top) = (stage.width, stage.height, stage.ground_top);
    let face = format!(
        "M{:.1} {:.1} L{:.1} {:.1} L{:.1} {:.1} L{:.1} {:.1} L{:.1} {:.1} L{:.1} {:.1} L{:.1} {:.1}Z",
        w * 0.22,
        top,
        w * 0.8,
        top - 8.0,
        w * 0.86,
        top + h * 0.08,
        w * 0.83,
        top + h * 0.17,
        w * 0.93,
        h + 4.0,
        w * 0.08,
        h + 4.0,
        w * 0.18,
        top + h * 0.14
    );
    pen.path(&face, Fill::Down(colour.lighter(0.1), colour.darker(0.35)));
    for (x, y, drop) in [(0.4, 0.05, 0.2), (0.55, 0.03, 0.14), (0.68, 0.07, 0.22), (0.3, 0.12, 0.16)] {
        let crack = format!(
            "M{:.1} {:.1}l{:.1} {:.1}l{:.1} {:.1}",
            w * x,
            top + h * y,
            18.0,
            h * drop * 0.5,
            -10.0,
            h * drop * 0.5
        );
        pen.line(&crack, colour.darker(0.4), 5.0);
    }
    let green = lit(stage, Colour::hex(0x6f_a6_5a));
    let turf = format!(
        "M{:.1} {:.1} Q{:.1} {:.1} {:.1} {:.1} L{:.1} {:.1} Q{:.1} {:.1} {:.1} {:.1}Z",
        w * 0.205,
        top + 16.0,
        w * 0.5,
        top - 44.0,
        w * 0.81,
        top - 10.0,
        w * 0.835,
        top + 26.0,
        w * 0.5,
        top + 20.0,
        w * 0.2,
        top + 34.0
    );
    pen.path(&turf, Fill::Lit(green));
}
