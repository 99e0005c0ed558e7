//! Pictures at another size, row by row, without a second copy of the source.
//!
//! A picture is scaled until it covers the new size and cut evenly on both sides, so nothing is
//! distorted. At the same size it is copied bit by bit.

use std::collections::VecDeque;

use engine::Pixels;
use image::{GenericImageView, Pixel, RgbaImage};

/// A picture whose rows are read as straight RGBA; one of grey alone is opaque.
pub(crate) trait Source: GenericImageView<Pixel: Pixel<Subpixel = u8>> {
    fn size(&self) -> Pixels {
        Pixels::new(self.width(), self.height())
    }

    /// Writes row `y`, four bytes a pixel.
    fn row(&self, y: u32, into: &mut [u8]) {
        for (x, pixel) in into.chunks_exact_mut(4).enumerate() {
            pixel.copy_from_slice(&self.get_pixel(x as u32, y).to_rgba().0);
        }
    }
}

impl<I: GenericImageView<Pixel: Pixel<Subpixel = u8>>> Source for I {}

/// The picture at another size.
pub(crate) fn cover(source: &impl Source, size: Pixels) -> RgbaImage {
    let mut fitted = RgbaImage::new(size.width, size.height);
    let mut rows = Rows::new(source, size);
    for row in fitted.chunks_exact_mut(size.width as usize * 4) {
        rows.next_into(row);
    }
    fitted
}

/// The rows of a picture at another size, from top to bottom.
pub(crate) struct Rows<'a, S> {
    source: &'a S,
    /// Absent where nothing is resampled.
    taps: Option<(Vec<Tap>, Vec<Tap>)>,
    /// Rows of the source at the new width, with the number of the first.
    ready: VecDeque<Vec<[f32; 4]>>,
    first: u32,
    raw: Vec<u8>,
    sum: Vec<[f32; 4]>,
    next: u32,
}

impl<'a, S: Source> Rows<'a, S> {
    pub(crate) fn new(source: &'a S, size: Pixels) -> Self {
        let from = source.size();
        let taps = (from != size).then(|| {
            let wide = f64::from(size.width) / f64::from(from.width);
            let high = f64::from(size.height) / f64::from(from.height);
            let scale = wide.max(high);
            (
                taps(from.width, size.width, scale),
                taps(from.height, size.height, scale),
            )
        });
        let raw = vec![0; from.width as usize * 4];
        let sum = vec![[0.0; 4]; size.width as usize];
        Self {
            source,
            taps,
            ready: VecDeque::new(),
            first: 0,
            raw,
            sum,
            next: 0,
        }
    }

    /// Writes the next row; past the last one, the last again.
    pub(crate) fn next_into(&mut self, row: &mut [u8]) {
        let Some((columns, rows)) = &self.taps else {
            self.source
                .row(self.next.min(self.source.size().height - 1), row);
            self.next += 1;
            return;
        };
        let tap = &rows[(self.next as usize).min(rows.len() - 1)];
        self.next += 1;
        while self.first < tap.first && self.ready.pop_front().is_some() {
            self.first += 1;
        }
        if self.ready.is_empty() {
            self.first = tap.first;
        }
        while self.ready.len() < tap.weights.len() {
            self.source
                .row(self.first + self.ready.len() as u32, &mut self.raw);
            self.ready.push_back(narrow(&self.raw, columns));
        }
        self.sum.fill([0.0; 4]);
        for (weight, ready) in tap.weights.iter().zip(&self.ready) {
            self.sum
                .iter_mut()
                .zip(ready)
                .for_each(|(sum, pixel)| add(sum, *pixel, *weight));
        }
        row.chunks_exact_mut(4)
            .zip(&self.sum)
            .for_each(|(pixel, sum)| pixel.copy_from_slice(&straight(*sum)));
    }
}

/// The rows or columns of the source that make up one of the result, from `first` on.
struct Tap {
    first: u32,
    weights: Vec<f32>,
}

/// The taps of `to` rows or columns, for a picture with `from` of them that is scaled by `scale`
/// and cut evenly.
fn taps(from: u32, to: u32, scale: f64) -> Vec<Tap> {
    let start = (f64::from(from) - f64::from(to) / scale) / 2.0;
    let stretch = (1.0 / scale).max(1.0);
    let tap = |at: u32| {
        let centre = start + (f64::from(at) + 0.5) / scale;
        let first = (centre - 2.0 * stretch)
            .floor()
            .clamp(0.0, f64::from(from - 1)) as u32;
        let last = (centre + 2.0 * stretch).ceil().clamp(1.0, f64::from(from)) as u32;
        let weight = |row: u32| catmull_rom((f64::from(row) + 0.5 - centre) / stretch);
        let sum: f64 = (first..last).map(weight).sum();
        Tap {
            first,
            weights: (first..last)
                .map(|row| (weight(row) / sum) as f32)
                .collect(),
        }
    };
    (0..to).map(tap).collect()
}

/// The cubic kernel through its points (Catmull and Rom 1974), as wide as two pixels on either
/// side.
fn catmull_rom(x: f64) -> f64 {
    match x.abs() {
        x if x < 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
        x if x < 2.0 => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
        _ => 0.0,
    }
}

/// One row at the new width, its colours multiplied by alpha: invisible ones must not bleed.
fn narrow(raw: &[u8], columns: &[Tap]) -> Vec<[f32; 4]> {
    let column = |tap: &Tap| {
        let mut sum = [0.0; 4];
        for (weight, pixel) in tap
            .weights
            .iter()
            .zip(raw[tap.first as usize * 4..].chunks_exact(4))
        {
            let alpha = f32::from(pixel[3]);
            let seen = alpha / 255.0;
            let colour = |channel: usize| f32::from(pixel[channel]) * seen;
            add(&mut sum, [colour(0), colour(1), colour(2), alpha], *weight);
        }
        sum
    };
    columns.iter().map(column).collect()
}

fn add(sum: &mut [f32; 4], pixel: [f32; 4], weight: f32) {
    for (sum, channel) in sum.iter_mut().zip(pixel) {
        *sum += channel * weight;
    }
}

fn straight([red, green, blue, alpha]: [f32; 4]) -> [u8; 4] {
    let alpha = alpha.clamp(0.0, 255.0);
    if alpha < 0.5 {
        return [0; 4];
    }
    let whole = 255.0 / alpha;
    // The cast saturates.
    let colour = |channel: f32| (channel * whole + 0.5) as u8;
    [
        colour(red),
        colour(green),
        colour(blue),
        (alpha + 0.5) as u8,
    ]
}

#[cfg(test)]
mod tests {
    use image::{DynamicImage, GrayImage, Rgba};

    use super::*;

    fn halves(width: u32, height: u32) -> RgbaImage {
        let side = |x| {
            if x < width / 2 {
                Rgba([200, 10, 10, 255])
            } else {
                Rgba([10, 10, 200, 255])
            }
        };
        RgbaImage::from_fn(width, height, |x, _| side(x))
    }

    #[test]
    fn at_the_same_size_every_bit_stays() {
        let picture = RgbaImage::from_fn(7, 5, |x, y| {
            Rgba([x as u8 * 30, y as u8 * 50, 7, (x * y) as u8])
        });
        assert_eq!(cover(&picture, Pixels::new(7, 5)), picture);
        assert_eq!(
            cover(&DynamicImage::from(picture.clone()), Pixels::new(7, 5)),
            picture
        );
    }

    #[test]
    fn a_flat_picture_stays_flat_at_every_size() {
        let flat = RgbaImage::from_pixel(9, 4, Rgba([12, 200, 77, 255]));
        for size in
            [(1, 1), (3, 9), (40, 2), (64, 64)].map(|(width, height)| Pixels::new(width, height))
        {
            let fitted = cover(&flat, size);
            assert_eq!(fitted.dimensions(), (size.width, size.height));
            assert!(
                fitted
                    .pixels()
                    .all(|pixel| *pixel == Rgba([12, 200, 77, 255])),
                "{size:?}"
            );
        }
    }

    #[test]
    fn a_wide_picture_loses_its_sides_alike() {
        let fitted = cover(&halves(80, 20), Pixels::new(10, 10));
        let (left, right) = (fitted.get_pixel(1, 5), fitted.get_pixel(8, 5));
        assert!(
            left[0] > 180 && left[2] < 30 && right[2] > 180 && right[0] < 30,
            "{left:?} {right:?}"
        );
    }

    #[test]
    fn scaling_does_not_bleed_transparent_pixels() {
        let seen = |x| {
            if x < 4 {
                Rgba([0, 255, 0, 0])
            } else {
                Rgba([200, 0, 0, 255])
            }
        };
        let fitted = cover(&RgbaImage::from_fn(8, 8, |x, _| seen(x)), Pixels::new(5, 5));
        assert!(fitted.pixels().all(|pixel| pixel[1] == 0), "{fitted:?}");
    }

    #[test]
    fn a_grey_picture_is_fitted_like_one_in_colour() {
        let mask = GrayImage::from_fn(8, 8, |x, _| image::Luma([if x < 4 { 255 } else { 0 }]));
        let fitted = cover(&mask, Pixels::new(16, 16));
        assert_eq!(
            (fitted.get_pixel(1, 3)[0], fitted.get_pixel(14, 3)[0]),
            (255, 0)
        );
    }
}
