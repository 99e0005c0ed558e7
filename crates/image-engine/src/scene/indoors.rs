//! Paper, room and table.

use engine::Quality;

use super::backdrop::fill;
use super::pen::{Fill, Pen};
use super::stage::Stage;
use crate::brief::{Brief, Place};
use crate::colour::Colour;

/// Plain paper with a light on it.
pub(super) fn studio(pen: &mut Pen, stage: &Stage, paper: Colour) {
    fill(pen, stage, Fill::Spot(paper.lighter(0.75), paper.darker(0.03)));
}

/// A wall with a window, and a floor.
pub(super) fn room(pen: &mut Pen, brief: &Brief, stage: &Stage) {
    let mut dice = stage.dice("room");
    let told = brief.tint(Place::Room);
    let wall = told.unwrap_or_else(|| Colour::hsl(dice.range(20.0, 220.0), 0.3, 0.84));
    let floor = stage.height * 0.74;
    fill(pen, stage, Fill::Down(wall.lighter(0.2), wall));
    window(pen, (stage.width * dice.range(0.62, 0.74), stage.height * 0.12), 230.0);
    let wood = Colour::hex(0xb9_84_56);
    pen.rect(
        (-2.0, floor),
        (stage.width + 4.0, stage.height - floor + 2.0),
        0.0,
        Fill::Down(wood.lighter(0.12), wood.darker(0.12)),
    );
    pen.rect((-2.0, floor - 14.0), (stage.width + 4.0, 16.0), 0.0, Colour::hex(0xf7_f1_e8));
    planks(pen, stage, floor, wood);
}

fn window(pen: &mut Pen, at: (f32, f32), size: f32) {
    let (x, y) = at;
    pen.rect((x - 14.0, y - 14.0), (size + 28.0, size * 1.3 + 28.0), 8.0, Colour::hex(0xfa_f6_ef));
    pen.rect((x, y), (size, size * 1.3), 0.0, Fill::Down(Colour::hex(0x8f_cb_f2), Colour::hex(0xe2_f3_fb)));
    pen.rect((x + size / 2.0 - 5.0, y), (10.0, size * 1.3), 0.0, Colour::hex(0xfa_f6_ef));
    pen.rect((x, y + size * 0.6), (size, 10.0), 0.0, Colour::hex(0xfa_f6_ef));
}

/// A table seen from the front, with a soft wall behind it.
pub(super) fn tabletop(pen: &mut Pen, brief: &Brief, stage: &Stage) {
    let mut dice = stage.dice("table");
    let wall = Colour::hsl(dice.range(150.0, 220.0), 0.24, 0.82);
    fill(pen, stage, Fill::Down(wall.lighter(0.3), wall));
    pen.circle((stage.width * dice.range(0.25, 0.75), stage.height * 0.3), 520.0, Fill::Glow(Colour::hex(0xff_f6_e2)));
    let wood = brief.tint(Place::Tabletop).unwrap_or(Colour::hex(0xb0_77_46));
    let top = stage.height * 0.7;
    pen.rect(
        (-2.0, top),
        (stage.width + 4.0, stage.height - top + 2.0),
        0.0,
        Fill::Down(wood.lighter(0.16), wood.darker(0.1)),
    );
    pen.rect((-2.0, top), (stage.width + 4.0, 7.0), 0.0, wood.lighter(0.34));
    planks(pen, stage, top, wood);
}

/// Joints of boards, and their grain in finer pictures.
fn planks(pen: &mut Pen, stage: &Stage, top: f32, wood: Colour) {
    let mut dice = stage.dice("planks");
    let depth = stage.height - top;
    for row in 1..5 {
        let y = top + depth * (row as f32 / 4.6).powf(1.35);
        pen.line(&format!("M-4 {y:.1}H{:.1}", stage.width + 4.0), wood.darker(0.26), 2.4);
    }
    if !pen.fine(Quality::Medium) {
        return;
    }
    pen.set_opacity(0.5);
    for _ in 0..if pen.fine(Quality::High) { 40 } else { 18 } {
        let (x, y) = (stage.width * dice.range(-0.1, 1.0), top + depth * dice.range(0.04, 1.0));
        let long = dice.range(60.0, 220.0);
        pen.line(
            &format!("M{x:.0} {y:.0}q{:.0} {:.1} {long:.0} 0", long / 2.0, dice.jitter(7.0)),
            wood.darker(0.16),
            1.8,
        );
    }
    pen.set_opacity(1.0);
}
