//! Two pictures in one, and frames.

use engine::Pixels;
use image::{Rgba, RgbaImage, imageops};

use super::backdrop;
use crate::colour::Colour;
use crate::fit::{Source, cover};
use crate::mask::Window;
use crate::prompt::contains;

/// The place of a picture on another, −1, 0 or 1 across and down; none: anywhere near the middle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spot {
    across: Option<i8>,
    down: Option<i8>,
}

impl Spot {
    /// Reads the words of a prompt.
    pub(crate) fn read(words: &[&str]) -> Self {
        let any = |list: &str| words.iter().any(|word| contains(list, word));
        let side = |first: &str, last: &str| {
            let sides = [(first, -1), (last, 1), ("centre, center, middle, centred, centered", 0)];
            sides.into_iter().find(|(list, _)| any(list)).map(|(_, side)| side)
        };
        Self { across: side("left", "right"), down: side("top, upper", "bottom, lower") }
    }
}

/// Lays a picture's object on another: without its even backdrop, and half as large as the whole, or as large as a
/// window that is a part only. The object comes first: its own canvas is gone when the base's is made.
pub(crate) fn place(
    base: &RgbaImage,
    object: &RgbaImage,
    size: Pixels,
    window: Window,
    spot: Spot,
    seed: u64,
) -> RgbaImage {
    let room = if window.size == size { halved(size) } else { window.size };
    let Some(object) = cut_out(object, room, size) else { return cover(base, size) };
    let mut base = cover(base, size);
    let free = (window.size.width - object.width(), window.size.height - object.height());
    let chance = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = window.x + at(spot.across, free.0, (chance >> 56) as u8);
    let y = window.y + at(spot.down, free.1, (chance >> 40) as u8);
    imageops::overlay(&mut base, &object, x.into(), y.into());
    base
}

/// Puts a picture without its backdrop before another, as large as it is.
pub(crate) fn before(base: &RgbaImage, object: &RgbaImage, size: Pixels) -> RgbaImage {
    let mut object = cover(object, size);
    backdrop::cut(&mut object, None);
    let mut base = cover(base, size);
    imageops::overlay(&mut base, &object, 0, 0);
    base
}

/// Both pictures, each on its half.
pub(crate) fn side_by_side(first: &RgbaImage, second: &RgbaImage, size: Pixels) -> RgbaImage {
    let half = size.width / 2;
    let mut both = RgbaImage::new(size.width, size.height);
    imageops::replace(&mut both, &cover(first, Pixels::new(half.max(1), size.height)), 0, 0);
    imageops::replace(&mut both, &cover(second, Pixels::new((size.width - half).max(1), size.height)), half.into(), 0);
    both
}

/// Paints a frame, a twentieth of the shorter side wide.
pub(crate) fn frame(canvas: &mut RgbaImage, colour: Colour) {
    let ([red, green, blue], (width, height)) = (colour.rgb, canvas.dimensions());
    let thick = (width.min(height) / 20).max(1);
    for (x, y, pixel) in canvas.enumerate_pixels_mut() {
        if x < thick || y < thick || x >= width - thick || y >= height - thick {
            *pixel = Rgba([red, green, blue, u8::MAX]);
        }
    }
}

/// The foreground of a picture, as large as there is room. It is cut out at no more than the size of the whole.
fn cut_out(picture: &RgbaImage, room: Pixels, whole: Pixels) -> Option<RgbaImage> {
    let full = picture.size();
    let most = Pixels::new((room.width * 2).min(whole.width), (room.height * 2).min(whole.height));
    let wanted = contained(full, most);
    let mut object = cover(picture, if wanted.count() < full.count() { wanted } else { full });
    backdrop::cut(&mut object, None);
    let (mut left, mut top, mut right, mut bottom) = (u32::MAX, u32::MAX, 0, 0);
    for (x, y, _) in object.enumerate_pixels().filter(|(_, _, pixel)| pixel[3] > BARELY) {
        (left, right) = (left.min(x), right.max(x + 1));
        (top, bottom) = (top.min(y), bottom.max(y + 1));
    }
    let size = Pixels::new(right.checked_sub(left)?, bottom.checked_sub(top)?);
    Some(cover(&*imageops::crop_imm(&object, left, top, size.width, size.height), contained(size, room)))
}

/// The largest size of the same shape within the room.
fn contained(size: Pixels, room: Pixels) -> Pixels {
    let across = f64::from(room.width) / f64::from(size.width.max(1));
    let scale = across.min(f64::from(room.height) / f64::from(size.height.max(1)));
    let side = |side: u32, most: u32| ((f64::from(side) * scale).round() as u32).clamp(1, most.max(1));
    Pixels::new(side(size.width, room.width), side(size.height, room.height))
}

fn halved(size: Pixels) -> Pixels {
    Pixels::new((size.width / 2).max(1), (size.height / 2).max(1))
}

/// The place on a line with so much free room; without a word near the middle, by chance.
fn at(side: Option<i8>, free: u32, chance: u8) -> u32 {
    match side {
        Some(0) => free / 2,
        Some(..0) => free / 16,
        Some(_) => free - free / 16,
        None => (u64::from(free) * (64 + u64::from(chance) / 2) / 255) as u32,
    }
}

/// Less alpha than this is invisible.
const BARELY: u8 = 8;
