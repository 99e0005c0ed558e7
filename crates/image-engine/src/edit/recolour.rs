//! Replaces colours with others. Light and shade stay in their order.

use image::{Rgba, RgbaImage};

use super::backdrop;
use crate::colour::{Colour, byte};

/// Moves colours towards `to`: those near to `from`, or all that a mask opens, or else all
/// colourful ones that are not the picture's even background.
pub(crate) fn towards(canvas: &mut RgbaImage, from: Option<Colour>, to: Colour, masked: bool) {
    let near = |pixel: &Rgba<u8>| from.map_or(1.0, |from| Colour::from(pixel).nearness(from));
    if from.is_some() && canvas.pixels().any(|pixel| near(pixel) > 0.5) {
        return canvas
            .pixels_mut()
            .for_each(|pixel| mix(pixel, to, near(pixel)));
    }
    if masked {
        return canvas.pixels_mut().for_each(|pixel| mix(pixel, to, 1.0));
    }
    let behind = backdrop::region(canvas);
    let is_behind = |at: usize| behind.as_ref().is_some_and(|behind| behind[at]);
    let colourfulness = |pixel: &Rgba<u8>| Colour::from(pixel).colourfulness();
    let colourful = canvas
        .pixels()
        .enumerate()
        .any(|(at, pixel)| !is_behind(at) && colourfulness(pixel) > 0.5);
    for (_, pixel) in canvas
        .pixels_mut()
        .enumerate()
        .filter(|(at, _)| !is_behind(*at))
    {
        let share = if colourful { colourfulness(pixel) } else { 1.0 };
        mix(pixel, to, share);
    }
}

/// The colour of the subject: the one that most of the picture has, where pixels at the edges count
/// against it. None where there are greys only, or no subject.
pub(crate) fn subject(canvas: &RgbaImage) -> Option<Colour> {
    let (width, height) = canvas.dimensions();
    let is_edge = |at: u32, side: u32| at < side / EDGE || at >= side - side / EDGE;
    let mut bins = [([0_u64; 3], 0_u64, 0_i64); 12];
    for (x, y, pixel) in canvas.enumerate_pixels() {
        let colour = Colour::from(pixel);
        let Some(hue) = colour.hue().filter(|_| colour.colourfulness() > 0.5) else {
            continue;
        };
        let (sums, count, score) = &mut bins[(hue / 30.0) as usize % 12];
        sums.iter_mut()
            .zip(colour.rgb)
            .for_each(|(sum, channel)| *sum += u64::from(channel));
        *count += 1;
        *score += if is_edge(x, width) || is_edge(y, height) {
            AGAINST
        } else {
            1
        };
    }
    let (sums, count, _) = bins
        .into_iter()
        .max_by_key(|(.., score)| *score)
        .filter(|(.., score)| *score > 0)?;
    Some(Colour {
        rgb: sums.map(|sum| (sum / count) as u8),
    })
}

/// Moves all colours a little, another way for every seed.
pub(crate) fn shift(canvas: &mut RgbaImage, seed: u64) {
    let tints = [0xff_be_78, 0x78_be_ff, 0xbe_ff_96, 0xe6_96_ff];
    let tint = Colour::hex(tints[(seed % tints.len() as u64) as usize]);
    canvas.pixels_mut().for_each(|pixel| mix(pixel, tint, 0.35));
}

/// Gives a picture the mean and the spread of another's colours (Reinhard et al. 2001, in RGB).
pub(crate) fn like(mut canvas: RgbaImage, style: &RgbaImage) -> RgbaImage {
    let own = statistics(&canvas);
    let other = statistics(style);
    for pixel in canvas.pixels_mut() {
        for channel in 0..3 {
            let (mean, spread) = own[channel];
            let (new_mean, new_spread) = other[channel];
            let factor = (new_spread / spread.max(1.0)).clamp(0.4, 2.5);
            pixel[channel] = byte((f32::from(pixel[channel]) - mean) * factor + new_mean);
        }
    }
    canvas
}

/// Mean and standard deviation of each channel of the visible pixels.
fn statistics(picture: &RgbaImage) -> [(f32, f32); 3] {
    let mut count = 0_u64;
    let mut sums = [0_u64; 3];
    let mut squares = [0_u64; 3];
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
fn mix(pixel: &mut Rgba<u8>, to: Colour, share: f32) {
    let wanted = to.luma() * 255.0;
    let light = (Colour::from(&*pixel).luma() * 255.0 + wanted) / 2.0;
    for channel in 0..3 {
        let colour = f32::from(to.rgb[channel]);
        let lit = if light <= wanted {
            colour * light / wanted.max(1.0)
        } else {
            colour + (255.0 - colour) * (light - wanted) / (255.0 - wanted).max(1.0)
        };
        let was = f32::from(pixel[channel]);
        pixel[channel] = byte(was + (lit - was) * share);
    }
}

/// The edges are this part of a side, on each side.
const EDGE: u32 = 16;
/// The weight of a pixel at the edges.
const AGAINST: i64 = -4;
