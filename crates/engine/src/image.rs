//! Protocol-neutral requests to image models, and the events of their generations.

use bytes::Bytes;

/// A request to an image model.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageRequest {
    /// The model name, as known to the engine.
    pub model: String,
    /// The description of the image.
    pub prompt: String,
    /// The number of images: at least 1.
    pub count: u32,
    /// The size of the images.
    pub size: Size,
    /// The quality. `None` lets the engine decide.
    pub quality: Option<Quality>,
    /// The background. `None` lets the engine decide.
    pub background: Option<Background>,
    /// The file format of the images.
    pub format: ImageFormat,
    /// The encoding quality of JPEG and WebP, 0 to 100. `None` lets the engine decide.
    pub compression: Option<u8>,
    /// The maximum number of previews per image.
    pub previews: u32,
    /// The random seed; image `i` uses `seed + i`. `None` picks a random seed.
    pub seed: Option<i64>,
    /// The reference images of an edit. `None` generates from the prompt alone.
    pub edit: Option<ImageEdit>,
}

/// Reference images of an edit, each as the bytes of a PNG, JPEG or WebP file.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageEdit {
    /// The reference images: at least one.
    pub references: Vec<Bytes>,
    /// A PNG of the same size as the first reference; its transparent pixels mark the area to edit.
    pub mask: Option<Bytes>,
}

/// The requested size of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The engine decides.
    Auto,
    /// An exact size in pixels.
    Exact(Pixels),
}

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pixels {
    /// The width.
    pub width: u32,
    /// The height.
    pub height: u32,
}

impl Pixels {
    /// Creates a size from width and height.
    #[must_use]
    pub const fn new(width: u32, height: u32) -> Self {
        Self { width, height }
    }

    /// Returns the total number of pixels.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.width as u64 * self.height as u64
    }
}

wire::text_enum! {
    /// The quality of an image, in increasing order.
    #[derive(PartialOrd, Ord)]
    pub enum Quality {
        Low = "low",
        Medium = "medium",
        High = "high",
        XHigh = "xhigh",
        Max = "max",
    }
}

wire::text_enum! {
    /// The background of an image.
    pub enum Background {
        /// The image has an alpha channel.
        Transparent = "transparent",
        Opaque = "opaque",
    }
}

wire::text_enum! {
    /// The file format of an image.
    #[derive(Default)]
    pub enum ImageFormat {
        #[default]
        Png = "png",
        Jpeg = "jpeg",
        Webp = "webp",
    }
}

/// Properties shared by all images of a response, as actually produced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageTraits {
    /// The size.
    pub size: Pixels,
    /// The quality.
    pub quality: Quality,
    /// The background.
    pub background: Background,
    /// The file format.
    pub format: ImageFormat,
}

/// One event of an image generation.
///
/// Images are produced one after the other: the previews of the first, the first image, the
/// previews of the second, and so on. The generation is complete after one [`ImageEvent::Finished`]
/// per requested image.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ImageEvent {
    /// A preview of the current image, as an image file.
    Preview(Bytes),
    /// A finished image.
    Finished {
        /// The image file.
        picture: Bytes,
        /// The token usage of this image; usage shared by all images is reported with the first.
        usage: ImageUsage,
    },
}

/// Token usage of an image generation, as counted by the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageUsage {
    /// Tokens of the prompt text.
    pub input_text: u64,
    /// Tokens of the reference images and the mask.
    pub input_image: u64,
    /// Tokens of the generated images, including previews.
    pub output_image: u64,
}
