//! A composition for words that name nothing that can be drawn: bands and rounds in related colours.

use engine::Quality;

use super::backdrop::fill;
use super::land::swell;
use super::pen::{Fill, Pen};
use super::stage::Stage;
use crate::brief::Brief;
use crate::colour::Colour;

pub(super) fn draw(pen: &mut Pen, brief: &Brief, stage: &Stage) {
    let mut dice = stage.dice("abstract");
    let base = brief.colours().next().unwrap_or_else(|| {
        let hue = (brief.mood % 360) as f32 + dice.jitter(30.0);
        Colour::hsl(hue, 0.55, 0.55)
    });
    let told: Vec<Colour> = brief.colours().collect();
    let spread = if brief.mood & 1 == 0 { 26.0 } else { -26.0 };
    let tone = |i: usize| told.get(i).copied().unwrap_or_else(|| base.turned(spread * i as f32));
    fill(pen, stage, Fill::Down(tone(1).lighter(0.72), tone(0).lighter(0.35)));
    let at = (stage.width * dice.range(0.3, 0.7), stage.height * dice.range(0.22, 0.42));
    pen.circle(at, 420.0, Fill::Glow(tone(2).lighter(0.6)));
    pen.circle(at, dice.range(110.0, 190.0), Fill::Down(tone(2).turned(150.0).lighter(0.35), tone(2).lighter(0.2)));
    for i in 0..5 {
        let y = stage.height * (0.5 + 0.11 * i as f32);
        let colour = tone(i % 3).darker(0.07 * i as f32);
        pen.set_opacity(0.88);
        pen.path(&swell(stage, &format!("band {i}"), y, 70.0, 1.6), Fill::Down(colour.lighter(0.2), colour));
    }
    pen.set_opacity(0.5);
    for _ in 0..if pen.fine(Quality::Medium) { 16 } else { 8 } {
        let at = (stage.width * dice.range(0.0, 1.0), stage.height * dice.range(0.0, 1.0));
        pen.circle(at, dice.range(4.0, 26.0), tone(1).lighter(0.7));
    }
    pen.set_opacity(1.0);
}
