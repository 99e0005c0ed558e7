//! Pictures from a prompt alone.

use engine::{Background, ImageFormat, ImageRequest, ImageUsage, Pixels, Quality, Size};

use crate::*;

#[tokio::test]
async fn files_match_the_reported_format_and_background() {
    for (format, wanted) in [
        (ImageFormat::Png, image::ImageFormat::Png),
        (ImageFormat::Jpeg, image::ImageFormat::Jpeg),
        (ImageFormat::Webp, image::ImageFormat::WebP),
    ] {
        for background in [
            None,
            Some(Background::Opaque),
            Some(Background::Transparent),
        ] {
            let made = make(ImageRequest {
                format,
                background,
                ..request("a red circle")
            })
            .await;
            let clear = background == Some(Background::Transparent) && format != ImageFormat::Jpeg;
            let told = if clear {
                Background::Transparent
            } else {
                Background::Opaque
            };
            assert_eq!((made.traits.format, made.traits.background), (format, told));
            assert_eq!(made.traits.size, Pixels::new(96, 80));
            assert_eq!(image::guess_format(&made.pictures[0]).unwrap(), wanted);
            let picture = read(&made.pictures[0]);
            assert_eq!((picture.width(), picture.height()), (96, 80));
            assert_eq!(
                picture.color().has_alpha(),
                clear,
                "{format:?} {background:?}"
            );
            assert_eq!(
                made.picture(0).pixels().any(|pixel| pixel[3] == 0),
                clear,
                "{format:?} {background:?}"
            );
        }
    }
}

#[tokio::test]
async fn properties_that_are_not_given_are_chosen_and_reported() {
    let made = make(ImageRequest {
        quality: None,
        size: Size::Auto,
        ..request("a red circle")
    })
    .await;
    assert_eq!(
        (made.traits.quality, made.traits.background),
        (Quality::Medium, Background::Opaque)
    );
    let picture = made.picture(0);
    assert_eq!(
        made.traits.size,
        Pixels::new(picture.width(), picture.height())
    );
    let clear = "a red circle on a transparent background";
    for (format, told) in [
        (ImageFormat::Png, Background::Transparent),
        (ImageFormat::Jpeg, Background::Opaque),
    ] {
        assert_eq!(
            make(ImageRequest {
                format,
                ..request(clear)
            })
            .await
            .traits
            .background,
            told
        );
    }
    let opaque = ImageRequest {
        background: Some(Background::Opaque),
        ..request(clear)
    };
    assert_eq!(make(opaque).await.traits.background, Background::Opaque);
}

#[tokio::test]
async fn compression_changes_the_bytes() {
    for (format, worse, better) in [(ImageFormat::Jpeg, 0, 100), (ImageFormat::Webp, 50, 90)] {
        let length = async |compression| {
            let request = ImageRequest {
                format,
                compression: Some(compression),
                ..request("a red circle")
            };
            make(request).await.pictures[0].len()
        };
        assert!(length(worse).await < length(better).await, "{format:?}");
    }
}

#[tokio::test]
async fn pictures_of_a_request_differ_and_seeds_reproduce_them() {
    let seeded = async |seed, count| {
        make(ImageRequest {
            seed,
            count,
            ..request("a red circle")
        })
        .await
    };
    let three = seeded(Some(i64::MAX), 3).await;
    assert_eq!(three.pictures.len(), 3);
    assert_eq!(
        three.pictures[1..],
        seeded(Some(i64::MIN), 2).await.pictures
    );
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        assert!(
            distance(&three.picture(one), &three.picture(other)) > 1.0,
            "{one} and {other} look alike"
        );
    }
    assert_ne!(
        seeded(None, 1).await.pictures,
        seeded(None, 1).await.pictures,
        "chance"
    );
}

#[tokio::test]
async fn the_input_is_counted_with_the_first_picture_alone() {
    let made = make(ImageRequest {
        count: 2,
        previews: 1,
        ..request("a red circle")
    })
    .await;
    let output_image = (272_u64 * 96 * 80).div_ceil(1024 * 1024) + 100;
    assert_eq!(
        made.usage[0],
        ImageUsage {
            input_text: 3,
            input_image: 0,
            output_image
        }
    );
    assert_eq!(
        made.usage[1],
        ImageUsage {
            output_image,
            ..ImageUsage::default()
        }
    );
}
