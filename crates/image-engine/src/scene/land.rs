//! Mountains, hills, woods, and houses far away.

use std::fmt::Write as _;

use engine::Quality;

use super::pen::{Fill, Pen};
use super::stage::{Ground, Stage};
use crate::brief::{Brief, Light, Place};
use crate::colour::Colour;

/// A line from edge to edge, closed along the bottom: a smooth wave of so many swells.
pub(super) fn swell(stage: &Stage, layer: &str, y: f32, height: f32, swells: f32) -> String {
    let mut dice = stage.dice(layer);
    let count = (swells * (stage.width / 1000.0).min(8.0)).ceil().max(1.0) as usize;
    let step = stage.width / count as f32;
    let mut path = format!("M-4 {:.1}", y + dice.jitter(height));
    let mut x = 0.0;
    for _ in 0..count {
        let (middle, end) = (y + dice.jitter(height) * 1.6, y + dice.jitter(height));
        let _ = write!(path, " S{:.1} {middle:.1} {:.1} {end:.1}", x + step * 0.5, x + step);
        x += step;
    }
    let _ = write!(path, " L{:.1} {y:.1} V{:.1} H-4Z", stage.width + 4.0, stage.height + 4.0);
    path
}

/// Colours pale and take the air's colour with distance.
fn aerial(stage: &Stage, colour: Colour, far: f32) -> Colour {
    let air = match stage.light {
        Light::Day => Colour::hex(0xcf_e6_f5),
        Light::Morning => Colour::hex(0xf3_dd_d2),
        Light::Sunset => Colour::hex(0xc9_6a_72),
        Light::Night => Colour::hex(0x24_2d_66),
    };
    colour.mix(air, far)
}

/// The land's colour under the light of the day.
pub(super) fn lit(stage: &Stage, colour: Colour) -> Colour {
    stage.tint().map_or(colour, |(tint, part)| colour.mix(tint, part))
}

/// Two ranges, the farther paler.
pub(super) fn mountains(pen: &mut Pen, brief: &Brief, stage: &Stage) {
    let rock = brief.tint(Place::Mountains).unwrap_or(Colour::hex(0x5b_6a_8c));
    range(pen, stage, "far range", 0.36, aerial(stage, lit(stage, rock), 0.5));
    range(pen, stage, "near range", 0.25, aerial(stage, lit(stage, rock), 0.18));
}

fn range(pen: &mut Pen, stage: &Stage, layer: &str, rise: f32, colour: Colour) {
    let mut dice = stage.dice(layer);
    let peaks = (3.2 * (stage.width / 1000.0).min(6.0)).ceil() as usize;
    let step = stage.width / peaks as f32;
    for i in 0..=peaks {
        let x = step * (i as f32 + dice.jitter(0.3));
        let height = stage.horizon * rise * dice.range(0.75, 1.55);
        peak(pen, (x, stage.horizon + 6.0), (step * dice.range(0.7, 1.0), height), colour, dice.jitter(0.16));
    }
    pen.rect((-2.0, stage.horizon - 2.0), (stage.width + 4.0, 12.0), 0.0, colour);
}

/// One mountain: a lit side, a shaded side, snow on top.
fn peak(pen: &mut Pen, foot: (f32, f32), (half, height): (f32, f32), colour: Colour, lean: f32) {
    let (x, y) = foot;
    let (tip_x, tip_y) = (x + half * lean, y - height);
    pen.polygon(&[(x - half, y), (tip_x, tip_y), (x + half, y)], Fill::Down(colour.lighter(0.12), colour));
    let shade = [
        (tip_x, tip_y),
        (x + half, y),
        (x + half * 0.1, y),
        (tip_x + half * 0.12, y - height * 0.45),
        (tip_x - half * 0.03, y - height * 0.7),
    ];
    pen.polygon(&shade, colour.darker(0.16));
    let side = |part: f32, sign: f32| (tip_x + (x + sign * half - tip_x) * part, tip_y + height * part);
    let (left, right) = (side(0.27, -1.0), side(0.3, 1.0));
    let snow = Colour::hex(0xf4_f7_fb).mix(colour, 0.12);
    let teeth = [
        (tip_x, tip_y),
        left,
        (tip_x - half * 0.12, tip_y + height * 0.21),
        (tip_x - half * 0.02, tip_y + height * 0.31),
        (tip_x + half * 0.1, tip_y + height * 0.22),
        right,
    ];
    pen.polygon(&teeth, snow);
    if pen.fine(Quality::Medium) {
        pen.polygon(
            &[
                (tip_x, tip_y),
                right,
                (tip_x + half * 0.1, tip_y + height * 0.22),
                (tip_x - half * 0.01, tip_y + height * 0.16),
            ],
            snow.darker(0.14),
        );
    }
}

/// Soft hills on the horizon.
pub(super) fn far_hills(pen: &mut Pen, stage: &Stage) {
    let green = Colour::hex(0x7f_b0_7a);
    let colour = if stage.ground == Some(Ground::Snow) { Colour::hex(0xd3_e0_ee) } else { green };
    pen.path(&swell(stage, "far hills", stage.horizon - 46.0, 34.0, 2.0), aerial(stage, lit(stage, colour), 0.55));
    pen.path(&swell(stage, "mid hills", stage.horizon - 14.0, 24.0, 2.6), aerial(stage, lit(stage, colour), 0.3));
}

/// A skyline with lit windows by night.
pub(super) fn city(pen: &mut Pen, stage: &Stage) {
    let mut dice = stage.dice("city");
    let foot = if stage.water { stage.horizon } else { stage.ground_top };
    for (layer, far) in [(1.35, 0.55), (1.0, 0.22)] {
        let mut x = -20.0;
        let mut left = 90;
        while x < stage.width && left > 0 {
            left -= 1;
            let (width, height) = (dice.range(60.0, 130.0), stage.horizon * dice.range(0.22, 0.5) * layer);
            let colour = aerial(stage, lit(stage, Colour::hsl(dice.range(200.0, 250.0), 0.2, 0.45)), far);
            pen.rect((x, foot - height), (width, height + 30.0), 0.0, Fill::Down(colour.lighter(0.08), colour));
            if pen.fine(Quality::Medium) && layer < 1.2 {
                windows(pen, stage, (x, foot - height), (width, height), dice.seed());
            }
            x += width * dice.range(0.85, 1.15);
        }
    }
}

fn windows(pen: &mut Pen, stage: &Stage, at: (f32, f32), size: (f32, f32), seed: u64) {
    let mut dice = super::dice::Dice::new(seed, "windows");
    let dark = matches!(stage.light, Light::Night | Light::Sunset);
    let colour = if dark { Colour::hex(0xff_d9_7a) } else { Colour::hex(0xe3_f0_fa) };
    let (columns, rows) = ((size.0 / 24.0) as usize, (size.1 / 34.0).min(16.0) as usize);
    for row in 0..rows {
        for column in 0..columns {
            if dice.chance(if dark { 0.55 } else { 0.8 }) {
                let x = at.0 + 8.0 + column as f32 * 24.0;
                pen.rect((x, at.1 + 12.0 + row as f32 * 34.0), (11.0, 16.0), 0.0, colour);
            }
        }
    }
}

/// Two rows of trees along the far edge of the ground.
pub(super) fn forest(pen: &mut Pen, stage: &Stage) {
    let mut dice = stage.dice("forest");
    for (row, far) in [(0.0, 0.42), (0.03, 0.2), (0.075, 0.0)] {
        let count = (15.0 * (stage.width / 1000.0).min(6.0)) as usize;
        for i in 0..=count {
            let x = stage.width * (i as f32 + dice.jitter(0.35)) / count as f32;
            let y = stage.ground_top.min(stage.height * 0.9) + stage.height * row + 16.0;
            let height = dice.range(170.0, 270.0) * (0.9 + row * 3.0);
            let green = Colour::hsl(dice.range(135.0, 165.0), 0.36, dice.range(0.24, 0.32));
            fir(pen, (x, y), height, aerial(stage, lit(stage, green), far));
        }
    }
}

/// A fir from afar.
fn fir(pen: &mut Pen, foot: (f32, f32), height: f32, colour: Colour) {
    let (x, y, half) = (foot.0, foot.1, height * 0.2);
    let mut points = vec![(x, y - height)];
    let tiers = [(0.36, 0.62, 0.5), (0.66, 0.84, 0.72), (0.98, 1.0, 1.0)];
    for (down, out, _) in tiers {
        points.push((x + half * out, y - height * (1.0 - down)));
        points.push((x + half * out * 0.45, y - height * (1.0 - down) - height * 0.03));
    }
    let mirrored: Vec<(f32, f32)> = points.iter().skip(1).rev().map(|(px, py)| (2.0 * x - px, *py)).collect();
    points.extend(mirrored);
    pen.polygon(&points, Fill::Down(colour.lighter(0.1), colour.darker(0.12)));
}
