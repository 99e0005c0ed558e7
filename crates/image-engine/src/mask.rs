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

impl Mask {
    /// A mask from the alpha of a picture.
    pub(crate) fn new(picture: &RgbaImage) -> Self {
        Self { keep: GrayImage::from_fn(picture.width(), picture.height(), |x, y| Luma([picture.get_pixel(x, y)[3]])) }
    }

    /// Lays the reference over its edited version, where it is to be kept.
    pub(crate) fn restore(&self, reference: &RgbaImage, edited: &mut RgbaImage) {
        let size = edited.size();
        let (mut kept, mut old) = (Rows::new(&self.keep, size), Rows::new(reference, size));
        let (mut keep, mut was) = (row(size), row(size));
        for new in edited.chunks_exact_mut(size.width as usize * 4) {
            kept.next_into(&mut keep);
            old.next_into(&mut was);
            for ((new, was), keep) in new.chunks_exact_mut(4).zip(was.chunks_exact(4)).zip(keep.chunks_exact(4)) {
                for (new, was) in new.iter_mut().zip(was) {
                    *new = blend(*was, *new, keep[0]);
                }
            }
        }
    }

    /// The pixels of a picture of that size that are edited.
    pub(crate) fn region(&self, size: Pixels) -> Vec<bool> {
        let (mut rows, mut keep) = (Rows::new(&self.keep, size), row(size));
        let mut region = Vec::with_capacity(size.count() as usize);
        for _ in 0..size.height {
            rows.next_into(&mut keep);
            region.extend(keep.chunks_exact(4).map(is_edited));
        }
        region
    }

    /// The smallest rectangle of a picture of that size around all that is edited. None where nothing is edited.
    pub(crate) fn window(&self, size: Pixels) -> Option<Window> {
        let (mut rows, mut keep) = (Rows::new(&self.keep, size), row(size));
        let (mut left, mut top, mut right, mut bottom) = (size.width, size.height, 0, 0);
        for y in 0..size.height {
            rows.next_into(&mut keep);
            let Some(first) = keep.chunks_exact(4).position(is_edited) else { continue };
            let last = keep.chunks_exact(4).rposition(is_edited).unwrap_or(first);
            (left, right) = (left.min(first as u32), right.max(last as u32 + 1));
            (top, bottom) = (top.min(y), y + 1);
        }
        (right > left).then(|| Window { x: left, y: top, size: Pixels::new(right - left, bottom - top) })
    }
}

fn is_edited(pixel: &[u8]) -> bool {
    pixel[0] < KEPT
}

fn row(size: Pixels) -> Vec<u8> {
    vec![0; size.width as usize * 4]
}

/// `(was * keep + new * (255 - keep)) / 255`
fn blend(was: u8, new: u8, keep: u8) -> u8 {
    let keep = u16::from(keep);
    ((u16::from(was) * keep + u16::from(new) * (255 - keep)) / 255) as u8
}

/// From this much on a pixel counts as kept.
const KEPT: u8 = 192;
