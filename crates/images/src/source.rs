//! An image in a request: its bytes or its URL.

use std::borrow::Cow;
use std::fmt;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use picture::Format;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wire::DataUrl;

/// An image in a request; a string in JSON.
///
/// A data URL is decoded once, straight from the document, and serialized as a data URL again.
/// `Debug` shows no image data.
///
/// ```
/// use sluicegate_images::Source;
///
/// let source: Source = serde_json::from_str(r#""data:image/png;base64,iVBORw0KGgo=""#)?;
/// assert_eq!(source.media_type(), Some("image/png"));
/// assert_eq!(format!("{source:?}"), "Inline(image/png, 8 bytes)");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub enum Source {
    /// The bytes of a file, from a data URL or a form part.
    Inline {
        /// The media type that the data URL declares, by its registered name if it is an image
        /// type; in a form, the detected media type.
        media_type: String,
        /// The file.
        bytes: Bytes,
    },
    /// Any other text: a URL, or a data URL that cannot be decoded. The validator checks it.
    Url(String),
}

impl Source {
    /// Creates an inline image. The media type is detected from the bytes, never taken from a
    /// declaration.
    #[must_use]
    pub fn of(bytes: Bytes) -> Self {
        let media_type =
            Format::sniff(&bytes).map_or("application/octet-stream", Format::media_type);
        Self::Inline {
            media_type: media_type.to_owned(),
            bytes,
        }
    }

    /// Returns the media type of an inline image.
    #[must_use]
    pub fn media_type(&self) -> Option<&str> {
        match self {
            Self::Inline { media_type, .. } => Some(media_type),
            Self::Url(_) => None,
        }
    }
}

impl From<&str> for Source {
    fn from(text: &str) -> Self {
        let inline = |url: DataUrl<'_>| {
            let bytes = url.decode().ok()?.into();
            let media_type = url.image_type().unwrap_or(url.media_type);
            Some(Self::Inline {
                media_type: media_type.to_owned(),
                bytes,
            })
        };
        DataUrl::parse(text)
            .ok()
            .and_then(inline)
            .unwrap_or_else(|| Self::Url(text.to_owned()))
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inline { media_type, bytes } => {
                write!(f, "Inline({media_type}, {} bytes)", bytes.len())
            }
            // A malformed data URL holds image data as well.
            Self::Url(url) if DataUrl::is_meant(url) => {
                write!(f, "Url(data:, {} bytes)", url.len())
            }
            Self::Url(url) => write!(f, "Url({url:?})"),
        }
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Inline { media_type, bytes } => to.collect_str(&format_args!(
                "data:{media_type};base64,{}",
                Base64Display::new(bytes, &STANDARD)
            )),
            Self::Url(url) => to.serialize_str(url),
        }
    }
}

/// Decodes from the parser's buffer, so that megabytes of base64 are not copied first.
impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        wire::read_word(from)
    }
}

impl JsonSchema for Source {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Source".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        String::json_schema(schemas)
    }
}
