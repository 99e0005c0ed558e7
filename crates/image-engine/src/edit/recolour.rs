//! Colours that go over into others. Light and shade stay in their order.

use image::{Rgba, RgbaImage};

use super::backdrop;
use super::filter::{byte, luma};

/// Moves colours towards `to`: those near to `from`, or all that a mask leaves, or else all that is colourful and not
/// the picture's even backdrop.
pub(crate) fn towards(canvas: &mut RgbaImage, from: Option<[u8; 3]>, to: [u8; 3], masked: bool) {
    let near = |pixel: &Rgba<u8>| from.map_or(1.0, |from| nearness(pixel, from));
    if from.is_some() && canvas.pixels().any(|pixel| near(pixel) > 0.5) {
        return canvas.pixels_mut().for_each(|pixel| mix(pixel, to, near(pixel)));
    }
    if masked {
        return canvas.pixels_mut().for_each(|pixel| mix(pixel, to, 1.0));
    }
    let behind = backdrop::region(canvas);
    let is_behind = |at: usize| behind.as_ref().is_some_and(|behind| behind[at]);
    let colourful = canvas.pixels().enumerate().any(|(at, pixel)| !is_behind(at) && colourfulness(pixel) > 0.5);
    for (_, pixel) in canvas.pixels_mut().enumerate().filter(|(at, _)| !is_behind(*at)) {
        let share = if colourful { colourfulness(pixel) } else { 1.0 };
        mix(pixel, to, share);
    }
}

/// The colour of what stands in the picture: the one that most of the picture has, what is at its edges counting
/// against it. None where there are greys only, or nothing stands out.
pub(crate) fn subject(canvas: &RgbaImage) -> Option<[u8; 3]> {
    let (width, height) = canvas.dimensions();
    let is_edge = |at: u32, side: u32| at < side / EDGE || at >= side - side / EDGE;
    let mut bins = [([0_u64; 3], 0_u64, 0_i64); 12];
    for (x, y, pixel) in canvas.enumerate_pixels() {
        let Some(hue) = hue(pixel).filter(|_| colourfulness(pixel) > 0.5) else { continue };
        let (sums, count, score) = &mut bins[(hue / 30.0) as usize % 12];
        sums.iter_mut().zip(pixel.0).for_each(|(sum, channel)| *sum += u64::from(channel));
        *count += 1;
        *score += if is_edge(x, width) || is_edge(y, height) { AGAINST } else { 1 };
    }
    let (sums, count, _) = bins.into_iter().max_by_key(|(.., score)| *score).filter(|(.., score)| *score > 0)?;
    Some(sums.map(|sum| (sum / count) as u8))
}

/// Moves all colours a little, another way for every seed.
pub(crate) fn shift(canvas: &mut RgbaImage, seed: u64) {
    let tints = [[255, 190, 120], [120, 190, 255], [190, 255, 150], [230, 150, 255]];
    let tint = tints[(seed % tints.len() as u64) as usize];
    canvas.pixels_mut().for_each(|pixel| mix(pixel, tint, 0.35));
}

/// Gives a picture the mean and the spread of another's colours (Reinhard et al. 2001, in RGB).
pub(crate) fn like(mut canvas: RgbaImage, style: &RgbaImage) -> RgbaImage {
    let (own, other) = (statistics(&canvas), statistics(style));
    for pixel in canvas.pixels_mut() {
        for channel in 0..3 {
            let ((mean, spread), (new_mean, new_spread)) = (own[channel], other[channel]);
            let factor = (new_spread / spread.max(1.0)).clamp(0.4, 2.5);
            pixel[channel] = byte((f32::from(pixel[channel]) - mean) * factor + new_mean);
        }
    }
    canvas
}

/// Mean and standard deviation of each channel, of what is seen.
fn statistics(picture: &RgbaImage) -> [(f32, f32); 3] {
    let (mut count, mut sums, mut squares) = (0_u64, [0_u64; 3], [0_u64; 3]);
    for pixel in picture.pixels().filter(|pixel| pixel[3] > 127) {
        count += 1;
        for channel in 0..3 {
            let value = u64::from(pixel[channel]);
            sums[channel] += value;
            squares[channel] += value * value;
        }
    }
    let count = count.max(1) as f64;
    [0, 1, 2].map(|channel| {
        let mean = sums[channel] as f64 / count;
        let variance = (squares[channel] as f64 / count - mean * mean).max(0.0);
        (mean as f32, variance.sqrt() as f32)
    })
}

/// A pixel in another colour, half its own light and half the colour's.
fn mix(pixel: &mut Rgba<u8>, to: [u8; 3], share: f32) {
    let target = Rgba([to[0], to[1], to[2], u8::MAX]);
    let (own, wanted) = (luma(pixel), luma(&target));
    let light = (own + wanted) / 2.0;
    for channel in 0..3 {
        let colour = f32::from(target[channel]);
        let lit = if light <= wanted {
            colour * light / wanted.max(1.0)
        } else {
            colour + (255.0 - colour) * (light - wanted) / (255.0 - wanted).max(1.0)
        };
        let was = f32::from(pixel[channel]);
        pixel[channel] = byte(was + (lit - was) * share);
    }
}

/// 0 for greys, 1 for clear colours.
fn colourfulness(pixel: &Rgba<u8>) -> f32 {
    let (least, most) = extremes(pixel);
    ((f32::from(most - least) - 24.0) / 40.0).clamp(0.0, 1.0)
}

/// How near a pixel is to a colour: by hue, or by light where the colour is a grey.
pub(crate) fn nearness(pixel: &Rgba<u8>, colour: [u8; 3]) -> f32 {
    let colour = Rgba([colour[0], colour[1], colour[2], u8::MAX]);
    let Some(hue) = hue(&colour) else {
        let away = (luma(pixel) - luma(&colour)).abs();
        return (1.0 - colourfulness(pixel)) * (1.0 - (away - 40.0) / 30.0).clamp(0.0, 1.0);
    };
    let Some(own) = self::hue(pixel) else { return 0.0 };
    let away = (own - hue).abs();
    let away = away.min(360.0 - away);
    colourfulness(pixel) * (1.0 - (away - 28.0) / 12.0).clamp(0.0, 1.0)
}

/// 0 to 360 degrees; none for greys.
fn hue(pixel: &Rgba<u8>) -> Option<f32> {
    let (least, most) = extremes(pixel);
    let [red, green, blue] = [0, 1, 2].map(|channel| f32::from(pixel[channel]));
    let spread = f32::from(most - least);
    if spread < 12.0 {
        return None;
    }
    let sixth = if pixel[0] == most {
        (green - blue) / spread
    } else if pixel[1] == most {
        (blue - red) / spread + 2.0
    } else {
        (red - green) / spread + 4.0
    };
    Some((sixth * 60.0).rem_euclid(360.0))
}

fn extremes(pixel: &Rgba<u8>) -> (u8, u8) {
    let colours = &pixel.0[..3];
    (colours.iter().copied().min().unwrap_or(0), colours.iter().copied().max().unwrap_or(0))
}

/// The edges are this part of a side, on each side.
const EDGE: u32 = 16;
/// What a pixel at the edges counts.
const AGAINST: i64 = -4;
