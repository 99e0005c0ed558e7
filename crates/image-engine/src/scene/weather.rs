//! Rain, snow, fog and lightning, over everything but the words.

use super::pen::{Fill, Pen};
use super::stage::{Backdrop, Stage};
use crate::brief::{Brief, Weather};
use crate::colour::Colour;

pub(super) fn draw(pen: &mut Pen, brief: &Brief, stage: &Stage) {
    if !matches!(stage.backdrop, Backdrop::Outdoors | Backdrop::Air) {
        return;
    }
    let has = |weather: Weather| brief.weather.contains(&weather);
    if has(Weather::Storm) {
        bolt(pen, stage);
    }
    if has(Weather::Fog) {
        fog(pen, stage);
    }
    if has(Weather::Rain) || has(Weather::Storm) {
        rain(pen, stage);
    }
    if has(Weather::Snowfall) {
        snow(pen, stage);
    }
}

fn rain(pen: &mut Pen, stage: &Stage) {
    let mut dice = stage.dice("rain");
    pen.set_opacity(0.5);
    for _ in 0..(110.0 * (stage.width / 1000.0).min(4.0)) as usize {
        let (x, y, long) =
            (stage.width * dice.range(-0.05, 1.1), stage.height * dice.range(-0.05, 1.0), dice.range(22.0, 60.0));
        pen.line(&format!("M{x:.0} {y:.0}l{:.1} {long:.1}", -long * 0.26), Colour::hex(0xd3_e4_f5), 2.2);
    }
    pen.set_opacity(1.0);
}

fn snow(pen: &mut Pen, stage: &Stage) {
    let mut dice = stage.dice("snow");
    pen.set_opacity(0.9);
    for _ in 0..(120.0 * (stage.width / 1000.0).min(4.0)) as usize {
        let at = (stage.width * dice.range(0.0, 1.0), stage.height * dice.range(0.0, 1.0));
        pen.circle(at, dice.range(2.0, 7.0), Colour::WHITE);
    }
    pen.set_opacity(1.0);
}

/// Banks of fog, densest along the horizon.
fn fog(pen: &mut Pen, stage: &Stage) {
    let mut dice = stage.dice("fog");
    let mist = Colour::hex(0xf3_f1_ee);
    for _ in 0..9 {
        let at = (stage.width * dice.range(0.0, 1.0), stage.horizon + stage.height * dice.range(-0.14, 0.2));
        let radius = (dice.range(320.0, 620.0), dice.range(40.0, 95.0));
        pen.set_opacity(0.62);
        pen.ellipse(at, radius, Fill::Glow(mist));
    }
    pen.set_opacity(0.2);
    pen.rect((-2.0, -2.0), (stage.width + 4.0, stage.height + 4.0), 0.0, mist);
    pen.set_opacity(1.0);
}

fn bolt(pen: &mut Pen, stage: &Stage) {
    let mut dice = stage.dice("bolt");
    let mut at = (
        stage.width * if dice.chance(0.5) { dice.range(0.1, 0.3) } else { dice.range(0.7, 0.9) },
        stage.horizon * 0.16,
    );
    let mut path = format!("M{:.0} {:.0}", at.0, at.1);
    while at.1 < stage.horizon * 0.94 {
        at = (at.0 + dice.jitter(52.0), at.1 + dice.range(36.0, 74.0));
        path.push_str(&format!("L{:.0} {:.0}", at.0, at.1));
    }
    pen.set_opacity(0.35);
    pen.line(&path, Colour::hex(0xcf_d8_ff), 20.0);
    pen.set_opacity(1.0);
    pen.line(&path, Colour::hex(0xff_fb_e0), 6.0);
}
