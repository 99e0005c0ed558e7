//! What is behind: the pixels of like colour that reach to the picture's edge.

use std::collections::VecDeque;

use image::{Rgba, RgbaImage};

use super::mask::Window;
use crate::fit::Source;

/// Takes away what is behind; within a mask's window all of it, where nothing even is behind.
pub(crate) fn cut(canvas: &mut RgbaImage, window: Option<Window>) {
    let behind = match (region(canvas), window) {
        (Some(behind), _) => behind,
        (None, Some(window)) => return clear(canvas, window),
        (None, None) => find(canvas),
    };
    for (pixel, _) in canvas.pixels_mut().zip(behind).filter(|(_, behind)| *behind) {
        *pixel = CLEAR;
    }
}

/// Takes away all that a window shows.
pub(crate) fn clear(canvas: &mut RgbaImage, window: Window) {
    for y in window.y..window.y + window.size.height {
        for x in window.x..window.x + window.size.width {
            canvas.put_pixel(x, y, CLEAR);
        }
    }
}

/// Puts a colour behind.
pub(crate) fn lay_on(canvas: &mut RgbaImage, colour: [u8; 3]) {
    for pixel in canvas.pixels_mut() {
        let alpha = u16::from(pixel[3]);
        for (channel, colour) in pixel.0.iter_mut().zip(colour) {
            *channel = ((u16::from(*channel) * alpha + u16::from(colour) * (255 - alpha) + 127) / 255) as u8;
        }
        pixel[3] = u8::MAX;
    }
}

/// For each pixel whether it is behind: what is even, else what goes over smoothly from the edge, else what is far from
/// the middle.
pub(crate) fn find(canvas: &RgbaImage) -> Vec<bool> {
    region(canvas).or_else(|| smooth(canvas)).unwrap_or_else(|| far(canvas))
}

/// What is reached from the edge by small steps of colour. None where that is next to nothing or nearly all.
fn smooth(canvas: &RgbaImage) -> Option<Vec<bool>> {
    let (width, height) = canvas.dimensions();
    let mut behind = vec![false; canvas.size().count() as usize];
    let mut open: VecDeque<(u32, u32)> = edge(canvas).collect();
    open.iter().for_each(|(x, y)| behind[(y * width + x) as usize] = true);
    while let Some((x, y)) = open.pop_front() {
        let around = [(x.wrapping_sub(1), y), (x + 1, y), (x, y.wrapping_sub(1)), (x, y + 1)];
        for (next_x, next_y) in around.into_iter().filter(|(x, y)| *x < width && *y < height) {
            let at = (next_y * width + next_x) as usize;
            let (here, there) = (canvas.get_pixel(x, y), canvas.get_pixel(next_x, next_y));
            if !behind[at] && (0..4).all(|channel| here[channel].abs_diff(there[channel]) <= SMALL_STEP) {
                behind[at] = true;
                open.push_back((next_x, next_y));
            }
        }
    }
    let count = behind.iter().filter(|behind| **behind).count();
    (behind.len() / 10..behind.len() * 9 / 10).contains(&count).then_some(behind)
}

/// All but an ellipse in the middle.
fn far(canvas: &RgbaImage) -> Vec<bool> {
    let (width, height) = (canvas.width() as f32, canvas.height() as f32);
    let away = |x: u32, y: u32| ((x as f32 + 0.5) / width - 0.5).hypot((y as f32 + 0.5) / height - 0.5);
    canvas.enumerate_pixels().map(|(x, y, _)| away(x, y) > 0.42).collect()
}

/// For each pixel whether it is behind. None where the edge shows no even colour, or where nothing would be left.
pub(crate) fn region(canvas: &RgbaImage) -> Option<Vec<bool>> {
    let colour = edge_colour(canvas)?;
    let mut behind = vec![false; canvas.size().count() as usize];
    let (width, height) = canvas.dimensions();
    let mut open: Vec<(u32, u32)> = edge(canvas).collect();
    while let Some((x, y)) = open.pop() {
        if behind[(y * width + x) as usize] || !is_like(canvas.get_pixel(x, y), colour) {
            continue;
        }
        flood_row(canvas, colour, (x, y), &mut behind, &mut open, height);
    }
    let count = behind.iter().filter(|behind| **behind).count();
    (count > 0 && count < behind.len()).then_some(behind)
}

/// Marks the run of like pixels around one, and opens one pixel of each run above and below it.
fn flood_row(
    canvas: &RgbaImage,
    colour: Rgba<u8>,
    (x, y): (u32, u32),
    behind: &mut [bool],
    open: &mut Vec<(u32, u32)>,
    height: u32,
) {
    let width = canvas.width();
    let like = |x: u32, y: u32| is_like(canvas.get_pixel(x, y), colour);
    let first = (0..x).rev().take_while(|x| like(*x, y)).last().unwrap_or(x);
    let last = (x..width).take_while(|x| like(*x, y)).last().unwrap_or(x);
    behind[(y * width + first) as usize..=(y * width + last) as usize].fill(true);
    let neighbours = [y.checked_sub(1), Some(y + 1).filter(|y| *y < height)];
    for next in neighbours.into_iter().flatten() {
        let mut run = false;
        for x in first..=last {
            let fresh = !behind[(next * width + x) as usize] && like(x, next);
            if fresh && !run {
                open.push((x, next));
            }
            run = fresh;
        }
    }
}

/// The colour that most of the edge has. None where there is no such colour.
fn edge_colour(canvas: &RgbaImage) -> Option<Rgba<u8>> {
    let pixels: Vec<Rgba<u8>> = edge(canvas).map(|(x, y)| *canvas.get_pixel(x, y)).collect();
    // A few candidates do: the colour sought has more than half of the edge.
    let step = (pixels.len() / CANDIDATES).max(1);
    let like = |colour: &Rgba<u8>| pixels.iter().filter(|pixel| is_like(pixel, *colour)).count();
    let best = pixels.iter().step_by(step).max_by_key(|colour| like(colour))?;
    (like(best) * 5 >= pixels.len() * 3).then_some(*best)
}

fn edge(canvas: &RgbaImage) -> impl Iterator<Item = (u32, u32)> + use<> {
    let (width, height) = canvas.dimensions();
    let across = (0..width).flat_map(move |x| [(x, 0), (x, height - 1)]);
    across.chain((0..height).flat_map(move |y| [(0, y), (width - 1, y)]))
}

/// What is not seen is always behind.
fn is_like(pixel: &Rgba<u8>, colour: Rgba<u8>) -> bool {
    if pixel[3] < BARELY || colour[3] < BARELY {
        return pixel[3] < BARELY;
    }
    (0..3).all(|channel| pixel[channel].abs_diff(colour[channel]) <= TOLERANCE)
}

const CLEAR: Rgba<u8> = Rgba([0; 4]);
/// How far a channel may be from the backdrop's.
const TOLERANCE: u8 = 30;
/// Less alpha than this is not seen.
const BARELY: u8 = 16;
/// How far neighbours may differ that go over smoothly.
const SMALL_STEP: u8 = 5;
/// Colours of the edge that are tried.
const CANDIDATES: usize = 32;
