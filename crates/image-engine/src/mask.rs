//! The mask of an edit: the part of the picture that it applies to.

use engine::Pixels;
use image::{GrayImage, Luma, RgbaImage};

use crate::fit::{Rows, Source};

/// The share of the reference that is kept, for each pixel: 0 nothing, 255 all.
pub(crate) struct Mask {
    keep: GrayImage,
}

/// A rectangle of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) size: Pixels,
}

impl Window {
    /// The smallest rectangle around pixels. `None` if there is no pixel.
    pub(crate) fn around(pixels: impl Iterator<Item = (u32, u32)>) -> Option<Self> {
        let ends = pixels.map(|(x, y)| [x, y, x + 1, y + 1]);
        let outer = |a: [u32; 4], b: [u32; 4]| {
            [
                a[0].min(b[0]),
                a[1].min(b[1]),
                a[2].max(b[2]),
                a[3].max(b[3]),
            ]
        };
        let [x, y, right, bottom] = ends.reduce(outer)?;
        Some(Self {
            x,
            y,
            size: Pixels::new(right - x, bottom - y),
        })
    }
}

impl Mask {
    /// A mask from the alpha of a picture.
    pub(crate) fn new(picture: &RgbaImage) -> Self {
        Self {
            keep: GrayImage::from_fn(picture.width(), picture.height(), |x, y| {
                Luma([picture.get_pixel(x, y)[3]])
            }),
        }
    }

    /// Lays the reference over its edited version, where it is to be kept.
    pub(crate) fn restore(&self, reference: &RgbaImage, edited: &mut RgbaImage) {
        let size = edited.size();
        let mut kept = Rows::new(&self.keep, size);
        let mut old = Rows::new(reference, size);
        let mut keep = row(size);
        let mut was = row(size);
        for new in edited.chunks_exact_mut(size.width as usize * 4) {
            kept.next_into(&mut keep);
            old.next_into(&mut was);
            for ((new, was), keep) in new
                .chunks_exact_mut(4)
                .zip(was.chunks_exact(4))
                .zip(keep.chunks_exact(4))
            {
                let keep = u16::from(keep[0]);
                for (new, was) in new.iter_mut().zip(was) {
                    *new = ((u16::from(*was) * keep + u16::from(*new) * (255 - keep)) / 255) as u8;
                }
            }
        }
    }

    /// The pixels of a picture of that size that are edited.
    pub(crate) fn region(&self, size: Pixels) -> Vec<bool> {
        let mut rows = Rows::new(&self.keep, size);
        let mut keep = row(size);
        let mut region = Vec::with_capacity(size.count() as usize);
        for _ in 0..size.height {
            rows.next_into(&mut keep);
            region.extend(keep.chunks_exact(4).map(|keep| keep[0] < KEPT));
        }
        region
    }

    /// The smallest rectangle of a picture of that size around all that is edited. None where
    /// nothing is edited.
    pub(crate) fn window(&self, size: Pixels) -> Option<Window> {
        let region = self.region(size);
        let ends = (0..)
            .zip(region.chunks_exact(size.width as usize))
            .filter_map(|(y, row)| {
                let first = row.iter().position(|edited| *edited)?;
                let last = row.iter().rposition(|edited| *edited)?;
                Some([(first as u32, y), (last as u32, y)])
            });
        Window::around(ends.flatten())
    }
}

fn row(size: Pixels) -> Vec<u8> {
    vec![0; size.width as usize * 4]
}

/// From this much on a pixel counts as kept.
const KEPT: u8 = 192;
