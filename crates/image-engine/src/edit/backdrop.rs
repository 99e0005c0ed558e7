//! The background: the pixels of like colour that reach to the picture's edge.

use std::collections::VecDeque;

use image::{Rgba, RgbaImage};

use crate::colour::Colour;
use crate::fit::Source;
use crate::mask::Window;

/// Removes the background: the even one, or else all that a mask's window shows.
pub(crate) fn cut(canvas: &mut RgbaImage, window: Option<Window>) {
    let behind = match (region(canvas), window) {
        (Some(behind), _) => behind,
        (None, Some(window)) => return clear(canvas, window),
        (None, None) => find(canvas),
    };
    for (pixel, _) in canvas
        .pixels_mut()
        .zip(behind)
        .filter(|(_, behind)| *behind)
    {
        *pixel = CLEAR;
    }
}

pub(crate) fn clear(canvas: &mut RgbaImage, window: Window) {
    for y in window.y..window.y + window.size.height {
        for x in window.x..window.x + window.size.width {
            canvas.put_pixel(x, y, CLEAR);
        }
    }
}

/// Puts a colour behind.
pub(crate) fn lay_on(canvas: &mut RgbaImage, colour: Colour) {
    for pixel in canvas.pixels_mut().filter(|pixel| pixel[3] < u8::MAX) {
        let alpha = u16::from(pixel[3]);
        for (channel, colour) in pixel.0.iter_mut().zip(colour.rgb) {
            *channel = ((u16::from(*channel) * alpha + u16::from(colour) * (255 - alpha) + 127)
                / 255) as u8;
        }
        pixel[3] = u8::MAX;
    }
}

/// The pixels of the background: an even one, else a smooth one, else all that is far from the
/// middle.
pub(crate) fn find(canvas: &RgbaImage) -> Vec<bool> {
    region(canvas)
        .or_else(|| smooth(canvas))
        .unwrap_or_else(|| far(canvas))
}

/// The pixels that small steps of colour connect with the edge. None where they are very few or
/// nearly all.
fn smooth(canvas: &RgbaImage) -> Option<Vec<bool>> {
    let is_near = |here: &Rgba<u8>, next: &Rgba<u8>| {
        (0..4).all(|channel| here[channel].abs_diff(next[channel]) <= SMALL_STEP)
    };
    let behind = flood(canvas, |_| true, is_near);
    let count = behind.iter().filter(|behind| **behind).count();
    (behind.len() / 10..behind.len() * 49 / 50)
        .contains(&count)
        .then_some(behind)
}

/// The pixels that are reached from the edge: the first ones by `starts`, and every next one by
/// `joins`.
fn flood(
    canvas: &RgbaImage,
    starts: impl Fn(&Rgba<u8>) -> bool,
    joins: impl Fn(&Rgba<u8>, &Rgba<u8>) -> bool,
) -> Vec<bool> {
    let (width, height) = canvas.dimensions();
    let mut reached = vec![false; canvas.size().count() as usize];
    let mut open = VecDeque::new();
    for (x, y) in edge(canvas) {
        let at = (y * width + x) as usize;
        if !reached[at] && starts(canvas.get_pixel(x, y)) {
            reached[at] = true;
            open.push_back((x, y));
        }
    }
    while let Some((x, y)) = open.pop_front() {
        let around = [
            (x.wrapping_sub(1), y),
            (x + 1, y),
            (x, y.wrapping_sub(1)),
            (x, y + 1),
        ];
        for (next_x, next_y) in around
            .into_iter()
            .filter(|(x, y)| *x < width && *y < height)
        {
            let at = (next_y * width + next_x) as usize;
            if !reached[at] && joins(canvas.get_pixel(x, y), canvas.get_pixel(next_x, next_y)) {
                reached[at] = true;
                open.push_back((next_x, next_y));
            }
        }
    }
    reached
}

/// All but an ellipse in the middle.
fn far(canvas: &RgbaImage) -> Vec<bool> {
    let across = |at: u32, side: u32| (at as f32 + 0.5) / side as f32 - 0.5;
    let away = |x: u32, y: u32| across(x, canvas.width()).hypot(across(y, canvas.height()));
    canvas
        .enumerate_pixels()
        .map(|(x, y, _)| away(x, y) > 0.42)
        .collect()
}

/// The pixels of an even background. None where the edge has no even colour, or where nothing would
/// be left.
pub(crate) fn region(canvas: &RgbaImage) -> Option<Vec<bool>> {
    let colour = edge_colour(canvas)?;
    let behind = flood(
        canvas,
        |pixel| is_like(pixel, colour),
        |_, next| is_like(next, colour),
    );
    let count = behind.iter().filter(|behind| **behind).count();
    (count > 0 && count < behind.len()).then_some(behind)
}

/// The colour of most of the edge, if there is one.
fn edge_colour(canvas: &RgbaImage) -> Option<Rgba<u8>> {
    let pixels: Vec<Rgba<u8>> = edge(canvas).map(|(x, y)| *canvas.get_pixel(x, y)).collect();
    // A few candidates do: the colour sought has more than half of the edge.
    let step = (pixels.len() / CANDIDATES).max(1);
    let like = |colour: &Rgba<u8>| {
        pixels
            .iter()
            .filter(|pixel| is_like(pixel, *colour))
            .count()
    };
    let best = pixels
        .iter()
        .step_by(step)
        .max_by_key(|colour| like(colour))?;
    (like(best) * 5 >= pixels.len() * 3).then_some(*best)
}

fn edge(canvas: &RgbaImage) -> impl Iterator<Item = (u32, u32)> + use<> {
    let (width, height) = canvas.dimensions();
    let across = (0..width).flat_map(move |x| [(x, 0), (x, height - 1)]);
    across.chain((0..height).flat_map(move |y| [(0, y), (width - 1, y)]))
}

/// Compares colours; an invisible pixel is like every other one.
fn is_like(pixel: &Rgba<u8>, colour: Rgba<u8>) -> bool {
    if pixel[3] < BARELY || colour[3] < BARELY {
        return pixel[3] < BARELY;
    }
    (0..3).all(|channel| pixel[channel].abs_diff(colour[channel]) <= TOLERANCE)
}

const CLEAR: Rgba<u8> = Rgba([0; 4]);
/// The largest distance of a channel from the background's.
const TOLERANCE: u8 = 30;
/// Less alpha than this is invisible.
const BARELY: u8 = 16;
/// The largest step of a channel in a smooth background.
const SMALL_STEP: u8 = 5;
/// Colours of the edge that are tried.
const CANDIDATES: usize = 32;
