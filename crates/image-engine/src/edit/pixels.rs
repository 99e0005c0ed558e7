//! Measures of single pixels.

use image::Rgba;

use crate::colour::Colour;

/// The lightness of a pixel (ITU-R BT.601), 0 to 255.
pub(super) fn luma(pixel: &Rgba<u8>) -> f32 {
    colour(pixel).luma() * 255.0
}

/// The nearest value that a channel can have.
pub(super) fn byte(value: f32) -> u8 {
    value.round() as u8
}

/// The closeness of a pixel to a colour, 0 to 1: by hue, or by lightness where the colour is a grey.
pub(super) fn nearness(pixel: &Rgba<u8>, to: Colour) -> f32 {
    let Some(wanted) = hue_of(to) else {
        let away = (luma(pixel) - to.luma() * 255.0).abs();
        return (1.0 - colourfulness(pixel)) * (1.0 - (away - 40.0) / 30.0).clamp(0.0, 1.0);
    };
    let Some(own) = hue(pixel) else { return 0.0 };
    let away = (own - wanted).abs();
    let away = away.min(360.0 - away);
    colourfulness(pixel) * (1.0 - (away - 28.0) / 12.0).clamp(0.0, 1.0)
}

/// 0 for greys, 1 for clear colours.
pub(super) fn colourfulness(pixel: &Rgba<u8>) -> f32 {
    ((f32::from(spread(colour(pixel))) - 24.0) / 40.0).clamp(0.0, 1.0)
}

/// 0 to 360 degrees; none for greys.
pub(super) fn hue(pixel: &Rgba<u8>) -> Option<f32> {
    hue_of(colour(pixel))
}

fn hue_of(colour: Colour) -> Option<f32> {
    (spread(colour) >= 12).then(|| colour.to_hsl().0.rem_euclid(360.0))
}

fn colour(pixel: &Rgba<u8>) -> Colour {
    Colour { rgb: [pixel[0], pixel[1], pixel[2]] }
}

/// The distance of the strongest channel from the weakest.
fn spread(colour: Colour) -> u8 {
    let [r, g, b] = colour.rgb;
    r.max(g).max(b) - r.min(g).min(b)
}
