//! Composes a prompt as SVG, in layers: the scenery, the subjects, the weather, the lettering.

mod block;
mod canvas;
mod layout;
mod lettering;
mod random;
mod scenery;
mod sprite;
mod view;

use engine::ImageTraits;

use crate::colour::Colour;
use crate::drawing;
use crate::prompt::Prompt;
use canvas::Canvas;
use layout::Figure;
use sprite::Sprite;
use view::{Area, View};

/// Writes the picture as SVG.
///
/// The shorter side is 1000 units whatever the size in pixels, so that a smaller picture is the
/// same picture.
pub(crate) fn compose(prompt: &Prompt, traits: ImageTraits, seed: u64) -> String {
    let view = View::new(prompt, traits, seed);
    let figures = layout::place(prompt, &view);
    let mut canvas = Canvas::new(prompt.style, traits.quality);
    let (mut far, near): (Vec<&Figure>, Vec<&Figure>) = figures
        .iter()
        .partition(|figure| view.is_under_sky() && figure.thing.is("far"));
    far.sort_by_key(|figure| figure.thing.name == "cloud");
    scenery::draw(&mut canvas, prompt, &view, |canvas| {
        far.iter().for_each(|figure| draw(canvas, &view, figure));
    });
    near.into_iter()
        .for_each(|figure| draw(&mut canvas, &view, figure));
    scenery::weather(&mut canvas, prompt, &view);
    letter(&mut canvas, prompt, &view, &figures);
    canvas.finish(view.width, view.height)
}

/// Draws one thing in its place, with its shadow.
fn draw(canvas: &mut Canvas, view: &View, figure: &Figure) {
    let exposed = match figure.coloured {
        _ if figure.thing.is("luminous") => 0.0,
        true => 0.35,
        false => 1.0,
    };
    canvas.tints = view
        .tint()
        .map(|(tint, part)| (tint, part * exposed))
        .into_iter()
        .collect();
    if view.has_floor() && figure.grounded {
        shadow(canvas, figure);
    }
    let (x, y) = figure.at;
    let scale = figure.height / 100.0;
    let transform = format!(
        "translate({x:.1} {y:.1}) rotate({:.1}) scale({:.4} {scale:.4})",
        figure.turn,
        scale * figure.facing
    );
    let known = [("main", figure.main), ("accent", figure.accent)];
    let sprite = Sprite::new(figure.thing, &known, figure.contents, figure.seed);
    canvas.group(&transform, 1.0, |canvas| sprite.draw(canvas));
    canvas.tints.clear();
}

fn shadow(canvas: &mut Canvas, figure: &Figure) {
    let Some(shadow) = drawing::named("shadow") else {
        return;
    };
    let (x, y) = figure.at;
    let reach = figure.height * figure.thing.aspect * 0.62;
    let transform = format!(
        "translate({x:.1} {y:.1}) scale({:.4} {:.4})",
        reach / 100.0,
        (reach * 0.2).min(40.0) / 100.0
    );
    canvas.group(&transform, 1.0, |canvas| {
        Sprite::new(shadow, &[], None, figure.seed).draw(canvas);
    });
}

/// Writes the words in the area that the layout has left free for them, or on a sign if there is
/// one, in the colour that the prompt names or one that can be read.
fn letter(canvas: &mut Canvas, prompt: &Prompt, view: &View, figures: &[Figure]) {
    let sign = figures.iter().find(|figure| figure.thing.name == "sign");
    for (i, text) in prompt.letterings.iter().enumerate() {
        let (area, behind) = match sign {
            Some(sign) if i == 0 => (on_sign(sign), Colour::hex(0xf6_ec_d8)),
            _ => (view.lettering(prompt, i), view.behind_lettering()),
        };
        let legible = Colour::hex(if behind.luma() > 0.52 {
            0x22_2a_44
        } else {
            0xff_f8_ea
        });
        lettering::write(canvas, &text.text, area, text.colour.unwrap_or(legible));
    }
}

fn on_sign(sign: &Figure) -> Area {
    let (x, y) = sign.at;
    let height = sign.height;
    Area {
        left: x - height * 0.55,
        right: x + height * 0.55,
        top: y - height * 0.93,
        bottom: y - height * 0.51,
    }
}
