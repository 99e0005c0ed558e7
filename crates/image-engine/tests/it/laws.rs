//! Properties of every picture and mask.

use proptest::prelude::*;
use tokio::runtime::Builder;

use crate::*;

fn picture(width: u32, height: u32) -> impl Strategy<Value = RgbaImage> {
    proptest::collection::vec(any::<u8>(), (width * height * 4) as usize)
        .prop_map(move |raw| RgbaImage::from_raw(width, height, raw).unwrap())
}

fn pair() -> impl Strategy<Value = (RgbaImage, RgbaImage)> {
    let soft = (16_u32..40, 16_u32..40)
        .prop_flat_map(|(width, height)| (picture(width, height), picture(width, height)));
    soft.prop_map(|(reference, mut mask)| {
        // Most masks are of two values only.
        mask.pixels_mut()
            .for_each(|pixel| pixel[3] = [0, 0, pixel[3], 255, 255][usize::from(pixel[3] % 5)]);
        (reference, mask)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn pixels_outside_the_mask_are_unchanged(
        (reference, mask) in pair(),
        prompt in prop::sample::select(vec![
            "fill it with a red circle", "make it blue", "blur it", "invert the colours", "add a red sun", "nonsense",
            "rotate by 180", "remove the background", "replace the background with grass", "add a blue frame", "remove it",
        ]),
    ) {
        let runtime = Builder::new_current_thread().build().unwrap();
        let made = runtime.block_on(make(edit(prompt, &[&reference], Some(&mask))));
        let picture = made.picture(0);
        prop_assert_eq!(picture.dimensions(), reference.dimensions());
        for ((new, was), keep) in picture.pixels().zip(reference.pixels()).zip(mask.pixels()) {
            prop_assert!(keep[3] != 255 || new == was, "{new:?} was {was:?}");
        }
    }

    #[test]
    fn any_prompt_edits_any_picture(prompt in ".{0,60}", reference in picture(20, 17), masked in any::<bool>()) {
        let runtime = Builder::new_current_thread().build().unwrap();
        let mask = masked.then(|| left_mask(20, 17));
        let made = runtime.block_on(make(edit(&prompt, &[&reference], mask.as_ref())));
        prop_assert_eq!(made.picture(0).dimensions().0 * made.picture(0).dimensions().1, 340);
    }
}
