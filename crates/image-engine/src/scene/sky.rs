//! Sky, stars, clouds, and space.

use std::fmt::Write as _;

use engine::Quality;

use super::backdrop::fill;
use super::dice::Dice;
use super::pen::{Fill, Pen};
use super::stage::{Backdrop, Stage, is_gloomy};
use crate::brief::{Brief, Light, Place, Thing, Weather};
use crate::colour::Colour;

/// The sky with what belongs to its light and weather.
pub(super) fn draw(pen: &mut Pen, brief: &Brief, stage: &Stage) {
    let (top, low) = colours(brief, stage);
    let reach = if stage.backdrop == Backdrop::Air { stage.height } else { stage.horizon + 60.0 };
    pen.rect((-2.0, -2.0), (stage.width + 4.0, reach + 2.0), 0.0, Fill::Down(top, low));
    if stage.light == Light::Night {
        stars(pen, brief, stage, reach);
    }
    glow(pen, brief, stage, low);
    if stage.light != Light::Night && !is_gloomy(brief) {
        veils(pen, stage, low);
    }
    clouds(pen, brief, stage, low);
}

/// Thin high clouds, in the finest pictures.
fn veils(pen: &mut Pen, stage: &Stage, low: Colour) {
    let count = match pen.detail() {
        Quality::Low | Quality::Medium | Quality::High => return,
        Quality::XHigh => 5,
        Quality::Max => 9,
    };
    let mut dice = stage.dice("veils");
    pen.set_opacity(0.16);
    for _ in 0..count {
        let at = (stage.width * dice.range(0.0, 1.0), stage.horizon * dice.range(0.06, 0.8));
        pen.ellipse(at, (dice.range(160.0, 420.0), dice.range(5.0, 14.0)), low.lighter(0.6));
    }
    pen.set_opacity(1.0);
}

/// The colours at the top and at the horizon.
fn colours(brief: &Brief, stage: &Stage) -> (Colour, Colour) {
    let mut dice = stage.dice("sky");
    let turn = dice.jitter(9.0);
    let (top, low) = match stage.light {
        Light::Day => (0x4f_a8_e8, 0xd9_f0_fb),
        Light::Morning => (0x8f_b8_de, 0xff_e3_cc),
        Light::Sunset => (0x4a_3b_82, 0xff_a8_5c),
        Light::Night => (0x0b_10_33, 0x35_41_82),
    };
    let (mut top, mut low) = (Colour::hex(top).turned(turn), Colour::hex(low).turned(turn * 0.6));
    if let Some(told) = brief.tint(Place::Sky) {
        (top, low) = (told, told.lighter(0.62));
    }
    if is_gloomy(brief) {
        let grey = Colour::hex(0x5d_6b_80);
        (top, low) = (top.mix(grey.darker(0.25), 0.72), low.mix(grey.lighter(0.2), 0.72));
    }
    if brief.weather.contains(&Weather::Fog) {
        (top, low) = (top.mix(Colour::hex(0xd5_dd_e4), 0.55), low.mix(Colour::hex(0xf1_ee_ea), 0.6));
    }
    (top, low)
}

/// The warm light about a low sun, and the sun itself where nobody asked for one but everybody expects it.
fn glow(pen: &mut Pen, brief: &Brief, stage: &Stage, low: Colour) {
    if !matches!(stage.light, Light::Sunset | Light::Morning) || is_gloomy(brief) {
        return;
    }
    let mut dice = stage.dice("glow");
    let x = stage.width * if dice.chance(0.5) { dice.range(0.16, 0.36) } else { dice.range(0.64, 0.84) };
    let y = stage.horizon - 1000.0 * dice.range(0.07, 0.14);
    pen.ellipse((x, y), (620.0, 330.0), Fill::Glow(low.lighter(0.35)));
    if brief.shows(Thing::Sun) || brief.absent.contains(&Thing::Sun) {
        return;
    }
    let radius = dice.range(62.0, 84.0);
    if pen.fine(Quality::High) {
        pen.circle((x, y), radius * 2.3, Fill::Glow(Colour::hex(0xff_f2_c4)));
    }
    pen.circle((x, y), radius, Fill::Down(Colour::hex(0xff_f4_b8), Colour::hex(0xff_c1_5a)));
}

fn stars(pen: &mut Pen, brief: &Brief, stage: &Stage, reach: f32) {
    let told = brief.weather.contains(&Weather::Starry);
    let every = if told { 120.0 } else { 70.0 };
    let count = (every * (stage.width / 1000.0).min(4.0)) as usize;
    scatter(pen, stage, reach, count);
    if !told {
        return;
    }
    let mut dice = stage.dice("bright stars");
    for _ in 0..9 {
        let at = (stage.width * dice.range(0.04, 0.96), reach * dice.range(0.04, 0.8));
        twinkle(pen, at, dice.range(13.0, 24.0));
    }
}

/// Small stars: half of them at low detail.
fn scatter(pen: &mut Pen, stage: &Stage, reach: f32, count: usize) {
    let mut dice = stage.dice("stars");
    for i in 0..count {
        let at = (stage.width * dice.range(0.0, 1.0), reach * dice.range(0.0, 1.0).powf(1.2));
        let radius = dice.range(1.2, 3.4);
        let warm = dice.chance(0.3);
        if i % 2 == 0 || pen.fine(Quality::Medium) {
            pen.circle(at, radius, if warm { Colour::hex(0xff_ea_c0) } else { Colour::hex(0xe6_ee_ff) });
        }
    }
}

/// A star with four rays.
fn twinkle(pen: &mut Pen, at: (f32, f32), reach: f32) {
    let (x, y) = at;
    pen.circle(at, reach * 0.9, Fill::Glow(Colour::hex(0xbf_d0_ff)));
    pen.path(
        &format!(
            "M{x:.1} {:.1} Q{x:.1} {y:.1} {:.1} {y:.1} Q{x:.1} {y:.1} {x:.1} {:.1} Q{x:.1} {y:.1} {:.1} {y:.1} Q{x:.1} {y:.1} {x:.1} {:.1}Z",
            y - reach, x + reach, y + reach, x - reach, y - reach
        ),
        Colour::hex(0xff_f8_e0),
    );
}

/// Clouds of the weather; those that were asked for are subjects.
fn clouds(pen: &mut Pen, brief: &Brief, stage: &Stage, low: Colour) {
    if brief.shows(Thing::Cloud) || brief.absent.contains(&Thing::Cloud) {
        return;
    }
    let mut dice = stage.dice("clouds");
    let gloomy = is_gloomy(brief);
    let each = match stage.light {
        Light::Night if !gloomy => return,
        _ if gloomy => 7.0,
        Light::Day => 3.6,
        _ => 3.0,
    };
    let colour = match stage.light {
        _ if gloomy => Colour::hex(0x7d_89_9c),
        Light::Sunset => Colour::hex(0xff_c9_a8).mix(low, 0.3),
        Light::Morning => Colour::hex(0xff_f1_e6),
        _ => Colour::WHITE,
    };
    let count = (each * (stage.width / 1000.0).clamp(1.0, 5.0)) as usize;
    for i in 0..count {
        let x = stage.width * (i as f32 + dice.range(0.1, 0.9)) / count as f32;
        let y = stage.horizon * dice.range(0.12, if gloomy { 0.5 } else { 0.62 });
        let width = dice.range(150.0, 300.0) * if gloomy { 1.6 } else { 1.0 };
        let turn = dice.seed();
        pen.set_opacity(dice.range(0.62, 0.9));
        cloud(pen, (x, y), width, colour, turn);
        pen.set_opacity(1.0);
    }
}

/// A cloud of round heaps on a flat foot.
pub(super) fn cloud(pen: &mut Pen, at: (f32, f32), width: f32, colour: Colour, seed: u64) {
    let mut dice = Dice::new(seed, "cloud");
    let (x, y) = at;
    let heaps = 4 + dice.below(2);
    let mut path = String::new();
    for i in 0..heaps {
        let part = (i as f32 + 0.5) / heaps as f32;
        let middle = 1.0 - (part - 0.5).abs() * 2.0;
        let radius = width * (0.085 + 0.085 * middle + dice.range(0.0, 0.025));
        let left = x + width * 0.76 * (part - 0.5) - radius;
        let lift = y - radius * (0.82 + 0.5 * middle);
        let _ = write!(
            path,
            "M{left:.1} {lift:.1}a{radius:.1} {radius:.1} 0 1 1 {0:.1} 0a{radius:.1} {radius:.1} 0 1 1 -{0:.1} 0Z",
            radius * 2.0
        );
    }
    let (span, round) = (width * 0.69, width * 0.075);
    let (left, high) = (x - span / 2.0, y - round * 2.0);
    let _ = write!(
        path,
        "M{left:.1} {high:.1}h{span:.1}a{round:.1} {round:.1} 0 0 1 0 {0:.1}h-{span:.1}a{round:.1} {round:.1} 0 0 1 0 -{0:.1}Z",
        round * 2.0
    );
    pen.merged(&path, Fill::Down(colour.lighter(0.5), colour.mix(Colour::hex(0xb9_cb_e2), 0.3)));
}

/// The dark between the planets.
pub(super) fn space(pen: &mut Pen, stage: &Stage) {
    let mut dice = stage.dice("space");
    let hue = dice.range(215.0, 285.0);
    fill(pen, stage, Fill::Down(Colour::hsl(hue, 0.5, 0.09), Colour::hsl(hue + 25.0, 0.45, 0.2)));
    for _ in 0..3 {
        let at = (stage.width * dice.range(0.1, 0.9), stage.height * dice.range(0.1, 0.9));
        let radius = (dice.range(260.0, 520.0), dice.range(160.0, 330.0));
        let colour = Colour::hsl(hue + dice.jitter(60.0), 0.6, 0.42);
        pen.set_opacity(0.4);
        pen.ellipse(at, radius, Fill::Glow(colour));
        pen.set_opacity(1.0);
    }
    scatter(pen, stage, stage.height, (130.0 * (stage.width / 1000.0).min(4.0)) as usize);
    for _ in 0..6 {
        twinkle(
            pen,
            (stage.width * dice.range(0.03, 0.97), stage.height * dice.range(0.03, 0.97)),
            dice.range(12.0, 24.0),
        );
    }
}
