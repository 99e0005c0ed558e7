//! Requests that cannot be served, and their errors.

use engine::{ImageRequest, Pixels, Size};

use crate::*;

/// The field that is refused, and the reason.
async fn refused(request: ImageRequest) -> (String, String) {
    match make_on(&EmbeddedImageEngine::new(Options::default()), request).await {
        Err(EngineError::Unsupported { param, reason }) => (param.unwrap(), reason),
        other => panic!("{other:?}"),
    }
}

fn edit_of(references: Vec<Bytes>, mask: Option<Bytes>) -> ImageRequest {
    ImageRequest {
        size: Size::Auto,
        edit: Some(ImageEdit { references, mask }),
        ..request("make it blue")
    }
}

fn sample() -> RgbaImage {
    square(32, RED, WHITE)
}

#[tokio::test]
async fn sizes_out_of_bounds() {
    for (width, height) in [(8193, 16), (15, 64), (8192, 8192), (0, 0)] {
        let size = Size::Exact(Pixels::new(width, height));
        for request in [
            request("a red circle"),
            edit("make it blue", &[&sample()], None),
        ] {
            let (param, reason) = refused(ImageRequest { size, ..request }).await;
            assert_eq!(param, "size");
            assert!(
                reason.contains(&format!("{width}x{height}")) && reason.contains("8192"),
                "{reason}"
            );
        }
    }
}

#[tokio::test]
async fn too_many_pictures_or_none() {
    for count in [0, 3] {
        let (param, reason) = refused(edit_of(vec![png(&sample()); count], None)).await;
        assert_eq!(param, "images");
        assert!(
            reason.contains(&format!("{count} pictures")) && reason.contains("1 or 2"),
            "{reason}"
        );
    }
}

/// References that are no pictures are refused by their place, in constant words.
#[tokio::test]
async fn i01_i08_references_that_are_no_pictures() {
    let good = png(&sample());
    let gif = file(&DynamicImage::from(sample()), image::ImageFormat::Gif);
    let mut bomb = good.to_vec();
    bomb[16..24].copy_from_slice(&[0, 0, 0xc3, 0x50, 0, 0, 0xc3, 0x50]);
    let noise: Vec<u8> = (0_u32..500)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    for (bytes, said) in [
        (gif, "GIF"),
        (Bytes::from(bomb), "50000x50000"),
        (good.slice(..good.len() - 20), "damaged"),
        (good.slice(..20), "damaged"),
        (noise.into(), "neither"),
        (Bytes::new(), "neither"),
    ] {
        let (param, reason) = refused(edit_of(vec![bytes.clone()], None)).await;
        assert_eq!(param, "images[0].image_url", "{reason}");
        assert!(
            reason.contains(said) && reason.contains("accepted"),
            "{reason}"
        );
        assert_eq!(
            refused(edit_of(vec![good.clone(), bytes], None)).await.0,
            "images[1].image_url"
        );
    }
}

#[tokio::test]
async fn references_far_larger_than_the_output() {
    let large = file(
        &DynamicImage::from(image::GrayImage::new(1000, 1000)),
        image::ImageFormat::Png,
    );
    let size = Size::Exact(Pixels::new(16, 16));
    let (param, reason) = refused(ImageRequest {
        size,
        ..edit_of(vec![large.clone()], None)
    })
    .await;
    assert_eq!(param, "images[0].image_url");
    assert!(
        reason.contains("1000000 pixels (1000x1000)") && reason.contains("for an output of 16x16"),
        "{reason}"
    );
    // The refusal comes before anything is decoded.
    let good = png(&sample());
    let damaged = good.slice(..good.len() - 20);
    let (param, _) = refused(ImageRequest {
        size,
        ..edit_of(vec![damaged, large], None)
    })
    .await;
    assert_eq!(param, "images[1].image_url");
}

/// A mask of another size or without alpha is refused as the mask.
#[tokio::test]
async fn i06_masks_of_the_wrong_kind() {
    let reference = png(&sample());
    let opaque = file(
        &DynamicImage::from(sample()).into_rgb8().into(),
        image::ImageFormat::Png,
    );
    let jpeg = file(
        &DynamicImage::from(sample()).into_rgb8().into(),
        image::ImageFormat::Jpeg,
    );
    let small = png(&left_mask(31, 32));
    let cut = png(&left_mask(32, 32));
    for (mask, said) in [
        (opaque, "no alpha channel"),
        (jpeg, "is a JPEG"),
        (small, "The mask is 31x32 and the first picture is 32x32"),
        (cut.slice(..cut.len() - 20), "damaged"),
        (Bytes::from_static(b"no picture"), "neither"),
    ] {
        let (param, reason) = refused(edit_of(vec![reference.clone()], Some(mask))).await;
        assert_eq!(param, "mask", "{reason}");
        assert!(
            reason.contains(said) && reason.contains("accepted"),
            "{reason}"
        );
    }
}

#[tokio::test]
async fn a_palette_with_transparent_entries_is_a_mask() {
    let mut palette = Vec::new();
    let mut encoder = png::Encoder::new(&mut palette, 32, 32);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_palette(vec![0, 0, 0, 255, 255, 255]);
    encoder.set_trns(vec![0, 255]);
    let pixels: Vec<u8> = (0..32 * 32).map(|at| u8::from(at % 32 >= 16)).collect();
    encoder
        .write_header()
        .unwrap()
        .write_image_data(&pixels)
        .unwrap();
    let picture = make(edit_of(vec![png(&sample())], Some(palette.into())))
        .await
        .picture(0);
    assert_eq!(picture.get_pixel(20, 16), sample().get_pixel(20, 16));
    assert_ne!(picture.get_pixel(10, 16), sample().get_pixel(10, 16));
}
