//! Edits by their prompts.

use engine::{Background, ImageFormat, ImageRequest, Pixels, Size};

use crate::*;

const SIDE: u32 = 64;

fn is_near(pixel: &Rgba<u8>, colour: [u8; 3]) -> bool {
    pixel[3] == 255 && (0..3).all(|channel| pixel[channel].abs_diff(colour[channel]) < 60)
}

fn strongest(pixel: &Rgba<u8>) -> usize {
    (0..3).max_by_key(|channel| pixel[*channel]).unwrap()
}

#[tokio::test]
async fn colour_word_recolours_only_saturated_pixels() {
    let reference = square(SIDE, RED, WHITE);
    for prompt in [
        "Make the car blue",
        "turn it blue",
        "change the colour to blue",
        "Recolour it: paint it blue",
    ] {
        let picture = edited(prompt, &[&reference], None).await;
        assert_eq!(strongest(picture.get_pixel(32, 32)), 2, "{prompt}");
        assert_eq!(picture.get_pixel(2, 2).0[..3], WHITE, "{prompt}");
    }
}

#[tokio::test]
async fn a_named_source_colour_alone_is_changed() {
    let mut reference = square(SIDE, RED, GREY);
    (0..SIDE).for_each(|x| reference.put_pixel(x, 20, Rgba([30, 170, 40, 255])));
    for prompt in [
        "change red to blue",
        "replace the red with blue",
        "turn everything red into blue",
    ] {
        let picture = edited(prompt, &[&reference], None).await;
        assert_eq!(strongest(picture.get_pixel(32, 40)), 2, "{prompt}");
        assert_eq!(picture.get_pixel(32, 20).0, [30, 170, 40, 255], "{prompt}");
    }
}

#[tokio::test]
async fn naming_an_object_recolours_only_the_foreground() {
    let picture = edited(
        "make the car blue",
        &[&square(SIDE, RED, [40, 170, 60])],
        None,
    )
    .await;
    assert_eq!(
        (
            strongest(picture.get_pixel(32, 32)),
            strongest(picture.get_pixel(2, 2))
        ),
        (2, 1)
    );
    let picture = edited("make everything blue", &[&square(SIDE, RED, RED)], None).await;
    assert!(picture.pixels().all(|pixel| strongest(pixel) == 2));
}

#[tokio::test]
async fn filter_words_apply_their_filter() {
    let reference = square(SIDE, RED, BLUE);
    let made = async |prompt| edited(prompt, &[&reference], None).await;
    for prompt in [
        "Make it black and white",
        "grayscale please",
        "convert to monochrome",
    ] {
        assert!(
            made(prompt)
                .await
                .pixels()
                .all(|pixel| pixel[0] == pixel[1] && pixel[1] == pixel[2]),
            "{prompt}"
        );
    }
    assert_eq!(
        made("invert the colours").await.get_pixel(32, 32).0,
        [45, 215, 215, 255]
    );
    let brighter = made("brighten the picture").await;
    assert!(
        brighter
            .pixels()
            .zip(reference.pixels())
            .all(|(new, was)| (0..3).all(|c| new[c] > was[c]))
    );
    let blurred = made("blur it").await;
    let edge = blurred.get_pixel(16, 32);
    assert!(
        (80..180).contains(&edge[0]) && (80..180).contains(&edge[2]),
        "{edge:?}"
    );
    let sepia = made("give it a sepia tone").await;
    assert!(
        sepia
            .pixels()
            .all(|pixel| pixel[0] > pixel[1] && pixel[1] > pixel[2])
    );
    let night = made("make it night").await;
    assert!(
        night
            .pixels()
            .zip(reference.pixels())
            .all(|(new, was)| new[0] < was[0] && new[2] < was[2])
    );
}

#[tokio::test]
async fn pictures_are_mirrored_and_turned() {
    let reference = RgbaImage::from_fn(40, 20, |x, y| Rgba([x as u8 * 6, y as u8 * 12, 0, 255]));
    let mirrored = edited("mirror it", &[&reference], None).await;
    assert_eq!(mirrored.get_pixel(0, 3), reference.get_pixel(39, 3));
    let down = edited("flip the image vertically", &[&reference], None).await;
    assert_eq!(down.get_pixel(5, 0), reference.get_pixel(5, 19));
    let half = edited("rotate by 180 degrees", &[&reference], None).await;
    assert_eq!(half.get_pixel(0, 0), reference.get_pixel(39, 19));
}

#[tokio::test]
async fn a_picture_turned_by_a_quarter_lies_on_its_side() {
    let reference = RgbaImage::from_fn(40, 20, |x, y| Rgba([x as u8 * 6, y as u8 * 12, 0, 255]));
    let made = make(edit("rotate it by 90 degrees", &[&reference], None)).await;
    assert_eq!(made.traits.size, Pixels::new(20, 40));
    assert_eq!(made.picture(0).get_pixel(19, 0), reference.get_pixel(0, 0));
    let kept = ImageRequest {
        size: Size::Exact(Pixels::new(40, 20)),
        ..edit("rotate left", &[&reference], None)
    };
    assert_eq!(make(kept).await.picture(0).dimensions(), (40, 20));
}

#[tokio::test]
async fn the_background_goes_or_is_replaced() {
    let reference = square(SIDE, RED, WHITE);
    for prompt in ["Remove the background", "make the background transparent"] {
        let made = make(edit(prompt, &[&reference], None)).await;
        assert_eq!(made.traits.background, Background::Transparent, "{prompt}");
        assert_eq!(made.picture(0).get_pixel(1, 1)[3], 0);
        assert_eq!(made.picture(0).get_pixel(32, 32).0, [210, 40, 40, 255]);
    }
    let jpeg = ImageRequest {
        format: ImageFormat::Jpeg,
        ..edit("remove the background", &[&reference], None)
    };
    let jpeg = make(jpeg).await;
    assert_eq!(jpeg.traits.background, Background::Opaque);
    assert!(is_near(jpeg.picture(0).get_pixel(1, 1), [255; 3]));
    let grass = edited("replace the background with grass", &[&reference], None).await;
    assert!(
        grass.get_pixel(1, 60)[1] > grass.get_pixel(1, 60)[0],
        "{:?}",
        grass.get_pixel(1, 60)
    );
    assert_eq!(grass.get_pixel(32, 32).0, [210, 40, 40, 255]);
    let blue = edited("Make the background blue", &[&reference], None).await;
    assert_eq!(strongest(blue.get_pixel(1, 1)), 2);
    assert_eq!(blue.get_pixel(32, 32).0, [210, 40, 40, 255]);
}

#[tokio::test]
async fn an_uneven_background_goes_too() {
    let noise = |x: u32, y: u32| {
        (x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(2_246_822_519)).to_be_bytes()
    };
    let noisy = RgbaImage::from_fn(SIDE, SIDE, |x, y| {
        Rgba([noise(x, y)[0], noise(y, x)[0], noise(x, x + y)[1], 255])
    });
    let fading = RgbaImage::from_fn(SIDE, SIDE, |x, y| {
        let inside = x.abs_diff(32) < 10 && y.abs_diff(32) < 10;
        if inside {
            Rgba([200, 20, 20, 255])
        } else {
            Rgba([20, (x * 3) as u8, (y * 3) as u8, 255])
        }
    });
    for reference in [noisy, fading] {
        let picture = edited("remove the background", &[&reference], None).await;
        assert_eq!(
            (picture.get_pixel(1, 1)[3], picture.get_pixel(32, 32)),
            (0, reference.get_pixel(32, 32))
        );
    }
}

#[tokio::test]
async fn a_transparent_background_needs_no_word() {
    let reference = square(SIDE, RED, WHITE);
    let background = Some(Background::Transparent);
    let picture = make(ImageRequest {
        background,
        ..edit("make it blue", &[&reference], None)
    })
    .await
    .picture(0);
    assert_eq!(
        (
            picture.get_pixel(1, 1)[3],
            strongest(picture.get_pixel(32, 32))
        ),
        (0, 2)
    );
}

#[tokio::test]
async fn removed_object_is_filled_from_its_surroundings() {
    let reference = square(SIDE, RED, GREY);
    for prompt in ["remove the red ball", "remove the object", "erase it"] {
        let picture = edited(prompt, &[&reference], None).await;
        assert!(
            picture.pixels().all(|pixel| is_near(pixel, GREY)),
            "{prompt}"
        );
    }
    let mask = left_mask(SIDE, SIDE);
    let picture = edited("remove it", &[&square(SIDE, GREY, RED)], Some(&mask)).await;
    assert!(picture.get_pixel(31, 32)[0] < 160 && picture.get_pixel(31, 2)[0] > 160);
}

#[tokio::test]
async fn things_are_added_on_top() {
    let reference = square(SIDE, GREY, GREY);
    for prompt in [
        "add a red circle",
        "Put a red sun in the sky",
        "Add a red sail to the boat",
    ] {
        let picture = edited(prompt, &[&reference], None).await;
        let reds = picture
            .pixels()
            .filter(|pixel| pixel[0] > 180 && pixel[1] < 90)
            .count();
        assert!(reds > 20, "{prompt}: {reds}");
        let kept = picture
            .pixels()
            .filter(|pixel| pixel.0[..3] == GREY)
            .count();
        assert!(kept > 1000, "{prompt}: {kept}");
    }
}

#[tokio::test]
async fn a_frame_goes_all_around() {
    let picture = edited("add a red frame", &[&square(SIDE, BLUE, WHITE)], None).await;
    for (x, y) in [(0, 0), (63, 30), (30, 63), (1, 63)] {
        assert!(
            is_near(picture.get_pixel(x, y), RED),
            "{:?}",
            picture.get_pixel(x, y)
        );
    }
    assert_eq!(picture.get_pixel(32, 32).0[..3], BLUE);
}

#[tokio::test]
async fn a_mask_is_filled_and_the_rest_stays() {
    let reference = square(SIDE, BLUE, GREY);
    for prompt in [
        "Replace the transparent region with grass",
        "a red circle on grass",
        "fill this area with grass",
    ] {
        let picture = edited(prompt, &[&reference], Some(&left_mask(SIDE, SIDE))).await;
        let new = picture.get_pixel(1, 62);
        assert!(new[1] > new[0] && new[1] > new[2], "{prompt}: {new:?}");
        for (x, y, pixel) in picture.enumerate_pixels().filter(|(x, _, _)| *x >= 32) {
            assert_eq!(pixel, reference.get_pixel(x, y));
        }
    }
    let picture = edited("make it green", &[&reference], Some(&left_mask(SIDE, SIDE))).await;
    assert_eq!(strongest(picture.get_pixel(20, 32)), 1);
    assert_eq!(picture.get_pixel(40, 32).0[..3], BLUE);
}

#[tokio::test]
async fn nothing_comes_back_unchanged_but_by_wish() {
    let reference = square(SIDE, RED, WHITE);
    for prompt in [
        "mumble",
        "Do something nice!",
        "?",
        "add a qwxz",
        "make it more qwxz",
    ] {
        assert!(
            distance(&edited(prompt, &[&reference], None).await, &reference) > 0.5,
            "{prompt}"
        );
    }
    assert_eq!(
        edited("Keep it as it is", &[&reference], None).await,
        reference
    );
}

#[tokio::test]
async fn alpha_of_the_reference_is_kept_and_reported() {
    let reference = left_mask(SIDE, SIDE);
    let made = make(edit("keep it as is", &[&reference], None)).await;
    assert_eq!(
        (made.traits.background, made.picture(0)),
        (Background::Transparent, reference.clone())
    );
    let opaque = ImageRequest {
        background: Some(Background::Opaque),
        ..edit("keep it as is", &[&reference], None)
    };
    let made = make(opaque).await;
    assert_eq!(made.traits.background, Background::Opaque);
    assert_eq!(made.picture(0).get_pixel(1, 1).0, [255; 4]);
}

#[tokio::test]
async fn references_and_mask_are_counted_by_their_tiles() {
    let references = [&square(SIDE, RED, WHITE), &square(40, BLUE, WHITE)];
    let made = make(edit(
        "make it green",
        &references,
        Some(&left_mask(SIDE, SIDE)),
    ))
    .await;
    assert_eq!(made.usage[0].input_image, 12, "four of each");
}

#[tokio::test]
async fn another_size_fits_without_distortion() {
    let reference = square(SIDE, RED, WHITE);
    let wide = ImageRequest {
        size: Size::Exact(Pixels::new(128, 64)),
        ..edit("keep it as is", &[&reference], None)
    };
    let picture = make(wide).await.picture(0);
    assert_eq!(picture.dimensions(), (128, 64));
    let across = (0..128)
        .filter(|x| is_near(picture.get_pixel(*x, 32), RED))
        .count();
    assert!(
        (60..=68).contains(&across),
        "a square of 32 is 64 wide at twice the size, not {across}"
    );
}

#[tokio::test]
async fn the_second_picture_goes_onto_the_first_as_said() {
    let (first, second) = (square(SIDE, BLUE, BLUE), square(SIDE, RED, WHITE));
    for prompt in [
        "Place the second image onto the first at the left",
        "combine them, on the left side",
    ] {
        let picture = edited(prompt, &[&first, &second], None).await;
        assert!(
            is_near(picture.get_pixel(10, 32), RED) || is_near(picture.get_pixel(20, 32), RED),
            "{prompt}"
        );
        assert!(
            !picture.pixels().any(|pixel| is_near(pixel, WHITE)),
            "its background stays behind"
        );
        assert_eq!(picture.get_pixel(60, 32).0[..3], BLUE);
    }
    for prompt in [
        "Put the first on the second",
        "Show the object of the second image on the background of the first",
    ] {
        let picture = edited(prompt, &[&second, &first], None).await;
        assert_eq!(picture.dimensions(), (SIDE, SIDE));
    }
    let prompt = "put the object of the first image on the background of the second";
    let picture = edited(prompt, &[&second, &first], None).await;
    assert_eq!(picture.get_pixel(1, 1).0[..3], BLUE);
    assert!(picture.pixels().any(|pixel| is_near(pixel, RED)));
    let picture = edited(
        "replace the background with the second image",
        &[&second, &first],
        None,
    )
    .await;
    assert_eq!(
        (
            picture.get_pixel(1, 1).0[..3].to_vec(),
            picture.get_pixel(32, 32).0[..3].to_vec()
        ),
        (BLUE.into(), RED.into())
    );
}

#[tokio::test]
async fn two_pictures_stand_side_by_side_or_share_colours() {
    let (first, second) = (square(SIDE, BLUE, BLUE), square(SIDE, RED, RED));
    let both = edited("Show them side by side", &[&first, &second], None).await;
    assert_eq!(
        (
            both.get_pixel(3, 3).0[..3].to_vec(),
            both.get_pixel(60, 3).0[..3].to_vec()
        ),
        (BLUE.into(), RED.into())
    );
    let styled = edited(
        "Use the colours of the second picture",
        &[&first, &second],
        None,
    )
    .await;
    assert!(styled.pixels().all(|pixel| is_near(pixel, RED)));
}

#[tokio::test]
async fn in_a_mask_the_second_picture_fills_its_surroundings() {
    let (first, second) = (square(SIDE, BLUE, BLUE), square(SIDE, RED, WHITE));
    let picture = edited(
        "add the second one here",
        &[&first, &second],
        Some(&left_mask(SIDE, SIDE)),
    )
    .await;
    assert!((0..32).any(|x| is_near(picture.get_pixel(x, 32), RED)));
    assert!(
        picture
            .enumerate_pixels()
            .all(|(x, _, pixel)| x < 32 || pixel.0[..3] == BLUE)
    );
}
