//! Two pictures in one, and frames.

use engine::Pixels;
use image::{Rgba, RgbaImage, imageops};

use super::backdrop;
use crate::colour::Colour;
use crate::fit::{Source, cover};
use crate::mask::Window;
use crate::prompt::{POSITIONS, Position, contains};

/// The place of a picture on another that the words of a prompt name.
pub(super) fn position(words: &[&str]) -> Position {
    let mut position = Position::default();
    for ((across, down), list) in POSITIONS {
        if words.iter().any(|word| contains(list, word)) {
            position.across = position.across.or(*across);
            position.down = position.down.or(*down);
        }
    }
    position
}

/// Lays a picture's object on another: without its even backdrop, and half as large as the whole,
/// or as large as a window that is a part only. The object comes first: its own canvas is gone when
/// the base's is made.
pub(crate) fn place(
    base: &RgbaImage,
    object: &RgbaImage,
    size: Pixels,
    window: Window,
    position: Position,
    seed: u64,
) -> RgbaImage {
    let halved = Pixels::new((size.width / 2).max(1), (size.height / 2).max(1));
    let room = if window.size == size {
        halved
    } else {
        window.size
    };
    let Some(object) = cut_out(object, room, size) else {
        return cover(base, size);
    };
    let mut base = cover(base, size);
    let chance = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = window.x
        + at(
            position.across,
            window.size.width - object.width(),
            (chance >> 56) as u8,
        );
    let y = window.y
        + at(
            position.down,
            window.size.height - object.height(),
            (chance >> 40) as u8,
        );
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
    imageops::replace(
        &mut both,
        &cover(first, Pixels::new(half.max(1), size.height)),
        0,
        0,
    );
    imageops::replace(
        &mut both,
        &cover(second, Pixels::new((size.width - half).max(1), size.height)),
        half.into(),
        0,
    );
    both
}

/// Paints a frame, a twentieth of the shorter side wide.
pub(crate) fn frame(canvas: &mut RgbaImage, colour: Colour) {
    let [red, green, blue] = colour.rgb;
    let (width, height) = canvas.dimensions();
    let thick = (width.min(height) / 20).max(1);
    for (x, y, pixel) in canvas.enumerate_pixels_mut() {
        if x < thick || y < thick || x >= width - thick || y >= height - thick {
            *pixel = Rgba([red, green, blue, u8::MAX]);
        }
    }
}

/// The foreground of a picture, as large as there is room. It is cut out at no more than the size
/// of the whole.
fn cut_out(picture: &RgbaImage, room: Pixels, whole: Pixels) -> Option<RgbaImage> {
    let full = picture.size();
    let most = Pixels::new(
        (room.width * 2).min(whole.width),
        (room.height * 2).min(whole.height),
    );
    let wanted = contained(full, most);
    let mut object = cover(
        picture,
        if wanted.count() < full.count() {
            wanted
        } else {
            full
        },
    );
    backdrop::cut(&mut object, None);
    let seen = object
        .enumerate_pixels()
        .filter(|(_, _, pixel)| pixel[3] > BARELY);
    let Window { x, y, size } = Window::around(seen.map(|(x, y, _)| (x, y)))?;
    Some(cover(
        &*imageops::crop_imm(&object, x, y, size.width, size.height),
        contained(size, room),
    ))
}

/// The largest size of the same shape within the room.
fn contained(size: Pixels, room: Pixels) -> Pixels {
    let across = f64::from(room.width) / f64::from(size.width.max(1));
    let scale = across.min(f64::from(room.height) / f64::from(size.height.max(1)));
    let side =
        |side: u32, most: u32| ((f64::from(side) * scale).round() as u32).clamp(1, most.max(1));
    Pixels::new(side(size.width, room.width), side(size.height, room.height))
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
