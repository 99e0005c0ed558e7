//! Changes of a whole picture, and the phrases that ask for them. Strengths are relative to the
//! picture's size, so that a small preview looks like the large picture.

use image::{Pixel, Rgba, RgbaImage, imageops};

use crate::colour::{Colour, byte};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    Grey,
    Sepia,
    Invert,
    Blur,
    Sharpen,
    Brighter,
    Darker,
    MoreContrast,
    LessContrast,
    Vivid,
    Muted,
    Pixelate,
    FlipAcross,
    FlipDown,
    HalfTurn,
    QuarterRight,
    QuarterLeft,
    Night,
    Warm,
    Cold,
    Sunset,
    Vignette,
}

/// Phrases that always mean a filter. A longer one is listed before its parts.
pub(super) const EFFECTS: &[(Filter, &str)] = &[
    (
        Filter::Grey,
        "black and white, grayscale, greyscale, monochrome, desaturate, remove colour, remove color",
    ),
    (Filter::Sepia, "sepia"),
    (Filter::Invert, "invert, negative"),
    (Filter::Blur, "blur, blurry, blurred, soften"),
    (Filter::Sharpen, "sharpen, sharper"),
    (
        Filter::LessContrast,
        "less contrast, reduce contrast, lower contrast, decrease contrast",
    ),
    (Filter::MoreContrast, "contrast"),
    (Filter::Brighter, "brighten, brighter, brightness, lighter"),
    (Filter::Darker, "darken, darker"),
    (Filter::Muted, "less saturated, muted"),
    (
        Filter::Vivid,
        "saturate, saturated, saturation, vivid, vibrant",
    ),
    (Filter::Pixelate, "pixelate, pixelated, mosaic"),
    (Filter::FlipDown, "flip vertically"),
    (Filter::HalfTurn, "upside down, rotate 180, turn 180"),
    (Filter::FlipAcross, "flip, mirror"),
    (
        Filter::QuarterLeft,
        "rotate 270, rotate left, rotate anticlockwise, rotate counterclockwise",
    ),
    (Filter::QuarterLeft, "rotate counter clockwise, turn 270"),
    (Filter::QuarterRight, "rotate, turn 90"),
    (Filter::Vignette, "vignette"),
];
/// Phrases that mean a filter where they do not name a thing to draw.
pub(super) const MOODS: &[(Filter, &str)] = &[
    (Filter::Night, "night, nighttime"),
    (Filter::Warm, "warm, warmer"),
    (Filter::Cold, "cold, colder, cool, cooler"),
    (Filter::Sunset, "sunset, golden hour"),
];

/// Applies a filter; alpha goes along. A quarter turn swaps width and height.
pub(crate) fn apply(filter: Filter, mut canvas: RgbaImage) -> RgbaImage {
    match filter {
        Filter::Blur => blur(&mut canvas, 0.02),
        Filter::Sharpen => sharpen(&mut canvas),
        Filter::Pixelate => pixelate(&mut canvas),
        Filter::Invert => imageops::invert(&mut canvas),
        Filter::FlipAcross => imageops::flip_horizontal_in_place(&mut canvas),
        Filter::FlipDown => imageops::flip_vertical_in_place(&mut canvas),
        Filter::HalfTurn => imageops::rotate180_in_place(&mut canvas),
        Filter::QuarterRight => return imageops::rotate90(&canvas),
        Filter::QuarterLeft => return imageops::rotate270(&canvas),
        Filter::Vignette => vignette(&mut canvas),
        _ => canvas.pixels_mut().for_each(|pixel| tone(filter, pixel)),
    }
    canvas
}

/// Changes one pixel, whatever the others are.
fn tone(filter: Filter, pixel: &mut Rgba<u8>) {
    let colour = Colour::from(&*pixel);
    let light = colour.luma() * 255.0;
    let tinted = |red: f32, green: f32, blue: f32| [light * red, light * green, light * blue];
    let channels = colour.rgb.map(f32::from);
    let [red, green, blue] = channels;
    let about =
        |centre: f32, factor: f32| channels.map(|channel| centre + (channel - centre) * factor);
    let new = match filter {
        Filter::Grey => [light; 3],
        Filter::Sepia => tinted(1.07, 0.87, 0.63),
        Filter::Brighter => channels.map(|channel| channel + (255.0 - channel) * 0.35),
        Filter::Darker => channels.map(|channel| channel * 0.6),
        Filter::MoreContrast => about(128.0, 1.5),
        Filter::LessContrast => about(128.0, 0.6),
        Filter::Vivid => about(light, 1.6),
        Filter::Muted => about(light, 0.5),
        Filter::Night => [red * 0.3, green * 0.35, blue * 0.55 + 12.0],
        Filter::Warm => [red * 1.1 + 8.0, green, blue * 0.82],
        Filter::Cold => [red * 0.82, green, blue * 1.1 + 8.0],
        Filter::Sunset => [red * 0.9 + 50.0, green * 0.8 + 15.0, blue * 0.65 + 10.0],
        _ => channels,
    };
    pixel.0[..3].copy_from_slice(&new.map(byte));
}

/// Applies three box filters to lines and columns, which approximate a Gaussian without another
/// canvas. `reach` is a share of the shorter side.
fn blur(canvas: &mut RgbaImage, reach: f32) {
    let (width, height) = canvas.dimensions();
    let radius = ((width.min(height) as f32 * reach) as usize).max(1);
    let mut lines: Vec<Vec<[u8; 4]>> = vec![Vec::new(); COLUMNS as usize];
    for _ in 0..3 {
        for y in 0..height {
            lines[0].clear();
            lines[0].extend((0..width).map(|x| canvas.get_pixel(x, y).0));
            smooth(&lines[0], radius, |x, pixel| {
                canvas.put_pixel(x as u32, y, Rgba(pixel));
            });
        }
        for first in (0..width).step_by(COLUMNS as usize) {
            let columns = first..width.min(first + COLUMNS);
            lines.iter_mut().for_each(Vec::clear);
            for y in 0..height {
                columns
                    .clone()
                    .zip(&mut lines)
                    .for_each(|(x, line)| line.push(canvas.get_pixel(x, y).0));
            }
            for (x, line) in columns.zip(&lines) {
                smooth(line, radius, |y, pixel| {
                    canvas.put_pixel(x, y as u32, Rgba(pixel));
                });
            }
        }
    }
}

/// The mean around each pixel of a line, its edges repeated; colours count as much as they are
/// seen.
fn smooth(line: &[[u8; 4]], radius: usize, mut put: impl FnMut(usize, [u8; 4])) {
    let weighted = |at: isize| {
        let [red, green, blue, alpha] =
            line[at.clamp(0, line.len() as isize - 1) as usize].map(i64::from);
        [red * alpha, green * alpha, blue * alpha, alpha]
    };
    let count = 2 * radius as i64 + 1;
    let radius = radius as isize;
    let mut sum = [0_i64; 4];
    for at in -radius..=radius {
        sum.iter_mut()
            .zip(weighted(at))
            .for_each(|(sum, channel)| *sum += channel);
    }
    for at in 0..line.len() {
        let alpha = sum[3].max(1);
        let colour = |channel: usize| ((sum[channel] + alpha / 2) / alpha) as u8;
        put(
            at,
            [
                colour(0),
                colour(1),
                colour(2),
                ((sum[3] + count / 2) / count) as u8,
            ],
        );
        let new = weighted(at as isize + radius + 1);
        let old = weighted(at as isize - radius);
        sum.iter_mut()
            .zip(new)
            .zip(old)
            .for_each(|((sum, new), old)| *sum += new - old);
    }
}

/// Enlarges the differences of pixels from their surroundings.
fn sharpen(canvas: &mut RgbaImage) {
    let mut soft = canvas.clone();
    blur(&mut soft, 0.003);
    for (pixel, soft) in canvas.pixels_mut().zip(soft.pixels()) {
        pixel.apply2(soft, |sharp, soft| {
            let sharp = f32::from(sharp);
            byte(sharp + (sharp - f32::from(soft)) * 0.9)
        });
        pixel[3] = soft[3].max(pixel[3]);
    }
}

/// Blocks of one colour, about 48 on the shorter side.
fn pixelate(canvas: &mut RgbaImage) {
    let (width, height) = canvas.dimensions();
    let block = (width.min(height) / 48).max(2);
    for y in 0..height {
        for x in 0..width {
            let middle = |at: u32, side: u32| (at - at % block + block / 2).min(side - 1);
            canvas.put_pixel(x, y, *canvas.get_pixel(middle(x, width), middle(y, height)));
        }
    }
}

fn vignette(canvas: &mut RgbaImage) {
    let [half_width, half_height] = [canvas.width(), canvas.height()].map(|side| side as f32 / 2.0);
    for (x, y, pixel) in canvas.enumerate_pixels_mut() {
        let across = (x as f32 + 0.5) / half_width - 1.0;
        let down = (y as f32 + 0.5) / half_height - 1.0;
        let dark = ((across * across + down * down - 0.5) / 1.5).clamp(0.0, 1.0);
        pixel.apply_without_alpha(|channel| byte(f32::from(channel) * (1.0 - 0.8 * dark)));
    }
}

/// Columns that are read at once: a cache line holds so many pixels of a row.
const COLUMNS: u32 = 16;
