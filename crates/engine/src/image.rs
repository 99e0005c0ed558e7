//! What a caller wants of an image model, and what the model does, whichever protocol it was said in.

use bytes::Bytes;

/// One request to an image model.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageRequest {
    /// The model, by the name that the engine knows.
    pub model: String,
    /// What is to be seen.
    pub prompt: String,
    /// How many pictures: at least 1.
    pub count: u32,
    /// How large they are to be.
    pub size: Size,
    /// How much effort to spend. Absent: the engine decides.
    pub quality: Option<Quality>,
    /// What is behind what is seen. Absent: the engine decides.
    pub background: Option<Background>,
    /// How the pictures are encoded.
    pub format: ImageFormat,
    /// 0 to 100: how well JPEG and WebP keep the picture. Absent: the engine decides.
    pub compression: Option<u8>,
    /// How many previews of each picture are wanted at most.
    pub previews: u32,
    /// The picture at position `i` is drawn from `seed + i`. Absent: from chance.
    pub seed: Option<i64>,
    /// The pictures to start from. Absent: from the prompt alone.
    pub edit: Option<ImageEdit>,
}

/// Pictures to start from, each as the bytes of its file: PNG, JPEG or WebP.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageEdit {
    /// At least one.
    pub references: Vec<Bytes>,
    /// A PNG of the first reference's size whose transparent pixels are where the edit applies.
    pub mask: Option<Bytes>,
}

/// How large a picture is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// As the engine sees fit.
    Auto,
    /// So many pixels.
    Exact(Pixels),
}

/// Width and height.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pixels {
    /// From left to right.
    pub width: u32,
    /// From top to bottom.
    pub height: u32,
}

impl Pixels {
    /// So many pixels a side.
    #[must_use]
    pub const fn new(width: u32, height: u32) -> Self {
        Self { width, height }
    }

    /// How many there are in all.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.width as u64 * self.height as u64
    }
}

/// How much effort to spend on a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quality {
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// More than much.
    XHigh,
    /// All there is.
    Max,
}

/// What is behind what is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Background {
    /// Nothing: the picture has an alpha channel.
    Transparent,
    /// Something.
    Opaque,
}

/// The encoding of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ImageFormat {
    /// PNG.
    #[default]
    Png,
    /// JPEG.
    Jpeg,
    /// WebP.
    Webp,
}

/// What the pictures of an answer have in common, as they really are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageTraits {
    /// Their size.
    pub size: Pixels,
    /// The effort spent.
    pub quality: Quality,
    /// What is behind what is seen.
    pub background: Background,
    /// Their encoding.
    pub format: ImageFormat,
}

/// One step of the making of pictures.
///
/// The pictures come one after the other: the previews of the first, the first, the previews of the second, and so on.
/// A generation has ended when there were as many [`ImageEvent::Finished`] as pictures were asked for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ImageEvent {
    /// The picture as far as it is.
    Preview(Bytes),
    /// A picture, as the bytes of its file.
    Finished {
        /// The file.
        picture: Bytes,
        /// What this picture took; what all pictures share is told with the first.
        usage: ImageUsage,
    },
}

/// Tokens that pictures took, as the engine counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageUsage {
    /// The prompt's text.
    pub input_text: u64,
    /// The pictures to start from, and the mask.
    pub input_image: u64,
    /// The pictures made, previews included.
    pub output_image: u64,
}
