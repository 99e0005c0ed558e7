//! Previews: the same picture at a size at which it is quickly made.

use engine::Pixels;

/// The size at which preview `index` of `count` is made: each twice as wide as the one before, the last half as wide
/// as the picture, but none less than [`LEAST_SIDE`] on its shorter side.
pub(crate) fn size(full: Pixels, index: u32, count: u32) -> Pixels {
    let shorter = full.width.min(full.height);
    let wanted = (shorter >> count.saturating_sub(index).min(16)).max(LEAST_SIDE).min(shorter);
    let side = |side: u32| {
        let scaled = (u64::from(side) * u64::from(wanted)).div_ceil(u64::from(shorter.max(1)));
        u32::try_from(scaled).unwrap_or(side).max(1)
    };
    Pixels::new(side(full.width), side(full.height))
}

const LEAST_SIDE: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn previews_double_up_to_half_the_size() {
        let full = Pixels::new(1024, 512);
        let sizes = [0, 1, 2].map(|index| size(full, index, 3));
        assert_eq!(sizes, [Pixels::new(128, 64), Pixels::new(256, 128), Pixels::new(512, 256)]);
        assert_eq!(size(full, 0, 1), Pixels::new(512, 256));
    }

    #[test]
    fn small_pictures_are_not_made_smaller_than_is_of_use() {
        assert_eq!(size(Pixels::new(100, 100), 0, 2), Pixels::new(64, 64));
        assert_eq!(size(Pixels::new(40, 400), 0, 2), Pixels::new(40, 400));
    }
}
