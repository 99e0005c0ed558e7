//! Sea and lake, seen from above the surface and from below it.

use engine::Quality;

use super::backdrop::fill;
use super::land::swell;
use super::pen::{Fill, Pen};
use super::stage::{Ground, Stage, is_gloomy};
use crate::brief::{Brief, Light, Place};
use crate::colour::Colour;

/// Water from the horizon to the lower edge; near ground covers the rest of it.
pub(super) fn draw(pen: &mut Pen, brief: &Brief, stage: &Stage) {
    let place = if brief.has(Place::Lake) { Place::Lake } else { Place::Sea };
    let (far, near) = colours(brief, stage, place);
    pen.rect(
        (-2.0, stage.horizon),
        (stage.width + 4.0, stage.height - stage.horizon + 4.0),
        0.0,
        Fill::Down(far, near),
    );
    shimmer(pen, stage, far);
    let rough = if is_gloomy(brief) { 2.6 } else { 1.0 };
    waves(pen, stage, near, if place == Place::Lake { 0.6 } else { rough });
    if place == Place::Lake && stage.ground == Some(Ground::Bank) {
        pads(pen, stage);
    }
}

fn colours(brief: &Brief, stage: &Stage, place: Place) -> (Colour, Colour) {
    let (far, near) = match (stage.light, place) {
        (Light::Day, Place::Lake) => (0x9c_d3_e0, 0x3f_93_b5),
        (Light::Day, _) => (0x6f_c3_e6, 0x1c_6f_b5),
        (Light::Morning, _) => (0xe8_d6_d0, 0x7f_a6_c0),
        (Light::Sunset, _) => (0xf2_9a_6a, 0x45_3a_7c),
        (Light::Night, _) => (0x2f_3e_80, 0x0d_16_40),
    };
    let (mut far, mut near) = (Colour::hex(far), Colour::hex(near));
    if let Some(told) = brief.tint(place) {
        (far, near) = (told.lighter(0.35), told.darker(0.15));
    }
    if is_gloomy(brief) {
        let grey = Colour::hex(0x3e_50_68);
        (far, near) = (far.mix(grey.lighter(0.25), 0.7), near.mix(grey.darker(0.2), 0.7));
    }
    (far, near)
}

/// The light of the sky on the water, under the horizon.
fn shimmer(pen: &mut Pen, stage: &Stage, far: Colour) {
    if !pen.fine(Quality::Medium) {
        return;
    }
    let mut dice = stage.dice("shimmer");
    pen.set_opacity(0.55);
    for _ in 0..(18.0 * (stage.width / 1000.0).min(4.0)) as usize {
        let near = dice.range(0.02, 1.0);
        let y = stage.horizon + (stage.height - stage.horizon) * near * 0.5;
        let half = dice.range(20.0, 70.0) * (0.5 + near);
        pen.ellipse((stage.width * dice.range(0.0, 1.0), y), (half, 1.2 + near * 2.4), far.lighter(0.5));
    }
    pen.set_opacity(1.0);
}

/// Lines of waves, longer and farther apart towards the viewer.
fn waves(pen: &mut Pen, stage: &Stage, near: Colour, height: f32) {
    let rows = match pen.detail() {
        Quality::Low => 5,
        Quality::Medium => 8,
        Quality::High => 13,
        Quality::XHigh => 20,
        Quality::Max => 28,
    };
    let depth = stage.height - stage.horizon;
    for row in 0..rows {
        let mut dice = stage.dice(&format!("wave {row}"));
        let part = dice.range(0.05, 1.0);
        let y = stage.horizon + depth * part.powf(1.4);
        let step = 26.0 + 60.0 * part;
        let rise = (3.0 + 9.0 * part) * height;
        for _ in 0..(3.0 * (stage.width / 1000.0).min(5.0)) as usize {
            let x = stage.width * dice.range(-0.05, 1.0);
            let colour = if dice.chance(0.7) { near.lighter(0.42) } else { near.darker(0.2) };
            let path = format!("M{x:.0} {y:.0}q{:.1} {:.1} {step:.1} 0t{step:.1} 0", step / 2.0, -rise);
            pen.set_opacity(0.6);
            pen.line(&path, colour, 1.5 + 2.5 * part);
        }
    }
    pen.set_opacity(1.0);
}

/// The white edge of the sea on the sand.
pub(super) fn surf(pen: &mut Pen, stage: &Stage) {
    if stage.water {
        pen.set_opacity(0.75);
        pen.path(&swell(stage, "ground", stage.ground_top - 9.0, 12.0, 2.0), Colour::WHITE);
        pen.set_opacity(1.0);
    }
}

/// Lily pads and reeds.
fn pads(pen: &mut Pen, stage: &Stage) {
    let mut dice = stage.dice("pads");
    for _ in 0..7 {
        let side = if dice.chance(0.5) { dice.range(0.02, 0.26) } else { dice.range(0.74, 0.98) };
        let part = dice.range(0.3, 0.78);
        let (x, y) = (stage.width * side, stage.horizon + (stage.height - stage.horizon) * part);
        let r = 20.0 + 36.0 * part;
        let green = Colour::hsl(dice.range(110.0, 145.0), 0.42, 0.42);
        pen.ellipse((x, y + 4.0), (r, r * 0.34), green.darker(0.35));
        pen.path(
            &format!(
                "M{x:.1} {y:.1}L{:.1} {:.1}A{r:.1} {:.1} 0 1 1 {:.1} {:.1}Z",
                x + r * 0.9,
                y - r * 0.14,
                r * 0.34,
                x + r * 0.94,
                y + r * 0.1
            ),
            Fill::Lit(green),
        );
        if dice.chance(0.35) && pen.fine(Quality::Medium) {
            lily(pen, (x - r * 0.2, y - 3.0), r * 0.4);
        }
    }
    for i in 0..14 {
        let side = if i % 2 == 0 { dice.range(0.0, 0.12) } else { dice.range(0.88, 1.0) };
        let (x, y, tall) = (stage.width * side, stage.height * 0.97, dice.range(90.0, 210.0));
        let lean = dice.jitter(18.0);
        pen.line(&format!("M{x:.0} {y:.0}q0 {:.0} {lean:.0} {:.0}", -tall * 0.6, -tall), Colour::hex(0x4d_82_48), 5.0);
        if i % 3 == 0 {
            pen.rect((x + lean - 6.0, y - tall - 22.0), (12.0, 44.0), 6.0, Colour::hex(0x7a_4c_2c));
        }
    }
}

fn lily(pen: &mut Pen, at: (f32, f32), size: f32) {
    let (x, y) = at;
    for lean in [-0.7, -0.35, 0.7, 0.35, 0.0] {
        let tip = (x + size * lean, y - size * (1.0 - f32::abs(lean) * 0.45));
        let path = format!(
            "M{x:.1} {y:.1}Q{:.1} {:.1} {:.1} {:.1}Q{:.1} {:.1} {x:.1} {y:.1}Z",
            tip.0 - size * 0.3,
            tip.1 + size * 0.4,
            tip.0,
            tip.1,
            tip.0 + size * 0.3,
            tip.1 + size * 0.4
        );
        pen.path(&path, Fill::Down(Colour::hex(0xff_f2_f6), Colour::hex(0xf2_a6_c2)));
    }
}

/// Under the surface: light from above, sand, weeds and bubbles.
pub(super) fn below(pen: &mut Pen, stage: &Stage) {
    let mut dice = stage.dice("below");
    fill(pen, stage, Fill::Down(Colour::hex(0x5c_cb_e0), Colour::hex(0x0d_4a_7f)));
    pen.set_opacity(0.16);
    for _ in 0..5 {
        let x = stage.width * dice.range(-0.1, 1.0);
        let (width, lean) = (dice.range(60.0, 150.0), dice.range(60.0, 240.0));
        pen.polygon(
            &[
                (x, -4.0),
                (x + width, -4.0),
                (x + width * 1.7 + lean, stage.height * 0.85),
                (x + lean, stage.height * 0.85),
            ],
            Colour::WHITE,
        );
    }
    pen.set_opacity(1.0);
    pen.path(
        &swell(stage, "seabed", stage.height * 0.88, 18.0, 2.0),
        Fill::Down(Colour::hex(0xd8_c2_8c), Colour::hex(0x8f_8f_7d)),
    );
    for _ in 0..9 {
        let (x, y) = (stage.width * dice.range(0.0, 1.0), stage.height * dice.range(0.9, 0.99));
        let tall = dice.range(90.0, 240.0);
        let green = Colour::hsl(dice.range(120.0, 175.0), 0.45, 0.36);
        let weed = format!("M{x:.0} {y:.0}q-30 {:.0} 0 {:.0}t0 {:.0}", -tall * 0.25, -tall * 0.5, -tall * 0.5);
        pen.line(&weed, green, 13.0);
    }
    pen.set_opacity(0.5);
    for _ in 0..22 {
        let at = (stage.width * dice.range(0.0, 1.0), stage.height * dice.range(0.05, 0.85));
        pen.circle(at, dice.range(4.0, 15.0), Fill::Round(Colour::hex(0xc9_f1_fa)));
    }
    pen.set_opacity(1.0);
}
