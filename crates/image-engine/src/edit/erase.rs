//! Removes things: their surroundings grow over them.

use image::{Rgba, RgbaImage};

use super::backdrop;
use crate::colour::Colour;

/// Removes the marked pixels, or the pixels of a colour, or the foreground.
pub(crate) fn erase(canvas: &mut RgbaImage, colour: Option<Colour>, marked: Option<Vec<bool>>) {
    let width = canvas.width() as usize;
    let coloured = || {
        let colour = colour?;
        let gone: Vec<bool> = canvas
            .pixels()
            .map(|pixel| Colour::from(pixel).nearness(colour) > 0.2)
            .collect();
        gone.contains(&true).then(|| widened(&gone, width))
    };
    let gone = marked.or_else(coloured).unwrap_or_else(|| {
        let before: Vec<bool> = backdrop::find(canvas)
            .iter()
            .map(|behind| !behind)
            .collect();
        widened(&before, width)
    });
    grow(canvas, &gone);
}

/// One pixel more on every side: edges are mixtures.
fn widened(gone: &[bool], width: usize) -> Vec<bool> {
    let near = |at: usize| {
        let x = at % width;
        let beside = (x > 0 && gone[at - 1]) || (x + 1 < width && gone[at + 1]);
        let over =
            (at >= width && gone[at - width]) || (at + width < gone.len() && gone[at + width]);
        gone[at] || beside || over
    };
    (0..gone.len()).map(near).collect()
}

/// Gives removed pixels the colours of the nearest ones left in their row and column, the nearer
/// the more.
fn grow(canvas: &mut RgbaImage, gone: &[bool]) {
    let (width, height) = canvas.dimensions();
    let is_gone = |x: u32, y: u32| gone[(y * width + x) as usize];
    let mut above: Vec<Option<u32>> = vec![None; width as usize];
    let mut below: Vec<Option<u32>> = vec![Some(0); width as usize];
    for y in 0..height {
        let mut left = None;
        let mut right = Some(0);
        for x in 0..width {
            let column = x as usize;
            if !is_gone(x, y) {
                (left, above[column]) = (Some(x), Some(y));
                continue;
            }
            if right.is_some_and(|right| right <= x) {
                right = (x..width).find(|x| !is_gone(*x, y));
            }
            if below[column].is_some_and(|below| below <= y) {
                below[column] = (y..height).find(|y| !is_gone(x, *y));
            }
            let beside = [left, right]
                .into_iter()
                .flatten()
                .map(|at| (canvas.get_pixel(at, y), x.abs_diff(at)));
            let over = [above[column], below[column]].into_iter().flatten();
            let over = over.map(|at| (canvas.get_pixel(x, at), y.abs_diff(at)));
            let mixed = mean(beside.chain(over));
            canvas.put_pixel(x, y, mixed);
        }
    }
}

/// The mean of pixels, each weighted by its nearness.
fn mean<'a>(pixels: impl Iterator<Item = (&'a Rgba<u8>, u32)>) -> Rgba<u8> {
    let mut sum = [0.0_f32; 4];
    let mut all = 0.0_f32;
    for (pixel, away) in pixels {
        let weight = 1.0 / away.max(1) as f32;
        all += weight;
        sum.iter_mut()
            .zip(pixel.0)
            .for_each(|(sum, channel)| *sum += f32::from(channel) * weight);
    }
    if all == 0.0 {
        MIDDLE
    } else {
        Rgba(sum.map(|sum| (sum / all).round() as u8))
    }
}

/// The colour where no pixel is left.
const MIDDLE: Rgba<u8> = Rgba([128, 128, 128, 255]);
