//! Previews of pictures.

use engine::{ImageFormat, ImageRequest, Pixels, Size};

use crate::*;

fn large(prompt: &str) -> ImageRequest {
    ImageRequest {
        size: Size::Exact(Pixels::new(640, 512)),
        ..request(prompt)
    }
}

#[tokio::test]
async fn previews_come_nearer_and_leave_the_picture_as_it_is() {
    let photo = RgbaImage::from_fn(640, 512, |x, y| {
        let wave = (f64::from(x * x + y * y) / 1800.0).sin() * 100.0 + 128.0;
        Rgba([wave as u8, (x / 4) as u8, (y / 2) as u8, 255])
    });
    let edit = edit("make it sepia", &[&photo], Some(&left_mask(640, 512)));
    for request in [large("a red circle"), edit] {
        let plain = make(request.clone()).await;
        let made = make(ImageRequest {
            previews: 3,
            count: 2,
            ..request
        })
        .await;
        assert_eq!((made.previews.len(), made.pictures.len()), (6, 2));
        assert_eq!(made.pictures[0], plain.pictures[0]);
        for picture in [0, 1] {
            let away = |at: usize| {
                distance(
                    &read(&made.previews[picture * 3 + at]).into_rgba8(),
                    &made.picture(picture),
                )
            };
            assert!(
                away(0) > away(1) && away(1) > away(2),
                "{} {} {}",
                away(0),
                away(1),
                away(2)
            );
            assert!(away(2) > 0.0 && away(0) < 40.0, "of the same picture");
        }
    }
}

#[tokio::test]
async fn previews_are_of_the_same_kind_as_the_picture() {
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Webp] {
        let request = ImageRequest {
            previews: 1,
            format,
            ..large("a red circle on a transparent background")
        };
        let made = make(request).await;
        let (preview, picture) = (read(&made.previews[0]), read(&made.pictures[0]));
        assert_eq!(
            image::guess_format(&made.previews[0]).unwrap(),
            image::guess_format(&made.pictures[0]).unwrap()
        );
        assert_eq!(
            (preview.width(), preview.height(), preview.color()),
            (640, 512, picture.color())
        );
    }
}

#[tokio::test]
async fn no_more_previews_than_three_a_picture() {
    assert_eq!(
        make(ImageRequest {
            previews: 9,
            ..request("a red circle")
        })
        .await
        .previews
        .len(),
        3
    );
}
