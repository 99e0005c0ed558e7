//! Data URLs with base64 content, used for images inside JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::{Path, Violations};

/// A parsed base64 data URL (RFC 2397). The content is still encoded.
///
/// ```
/// use sluicegate_wire::DataUrl;
///
/// let url = DataUrl::parse("data:image/png;base64,aGk=").unwrap();
/// assert_eq!((url.media_type, url.decode().unwrap().as_slice()), ("image/png", b"hi".as_slice()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataUrl<'a> {
    /// The media type as written, with its parameters, such as `image/png`.
    pub media_type: &'a str,
    /// The content as base64: standard alphabet, padded.
    pub data: &'a str,
}

crate::text_enum! {
    /// An invalid or unsupported data URL. `Display` is a clause that follows a colon in an error
    /// message.
    #[non_exhaustive]
    pub enum DataUrlError {
        Scheme = "it does not begin with 'data:'",
        /// There is no `;base64,` before the content.
        Coding = "expected data:<media type>;base64,<content>",
        Empty = "it has no content",
        Base64 = "its content is not base64 (standard alphabet, padded)",
    }
}

impl std::error::Error for DataUrlError {}

impl<'a> DataUrl<'a> {
    /// Parses `text` without validating the content; see [`DataUrl::check`].
    ///
    /// # Errors
    /// Returns an error if the text does not have the form `data:<type>;base64,<content>`.
    pub fn parse(text: &'a str) -> Result<Self, DataUrlError> {
        let rest = strip_scheme(text).ok_or(DataUrlError::Scheme)?;
        let (head, data) = rest.split_once(',').ok_or(DataUrlError::Coding)?;
        let (media_type, coding) = head.rsplit_once(';').ok_or(DataUrlError::Coding)?;
        if !coding.eq_ignore_ascii_case("base64") {
            return Err(DataUrlError::Coding);
        }
        if data.is_empty() {
            return Err(DataUrlError::Empty);
        }
        Ok(Self { media_type, data })
    }

    /// Returns true if the text has the scheme `data:`, that is, if it is meant as a data URL.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        strip_scheme(text).is_some()
    }

    /// Returns the registered media type of an image that servers accept; see [`image_type`].
    #[must_use]
    pub fn image_type(&self) -> Option<&'static str> {
        image_type(self.media_type)
    }

    /// Checks that the content is valid base64, without buffering the decoded bytes.
    ///
    /// # Errors
    /// Returns [`DataUrlError::Base64`] if it is not.
    pub fn check(&self) -> Result<(), DataUrlError> {
        let mut scratch = [0; BLOCK / 4 * 3];
        let bytes = self.data.as_bytes();
        let mut blocks = bytes.chunks(BLOCK).peekable();
        while let Some(block) = blocks.next() {
            let padded_early = block.ends_with(b"=") && blocks.peek().is_some();
            if padded_early || STANDARD.decode_slice(block, &mut scratch).is_err() {
                return Err(DataUrlError::Base64);
            }
        }
        Ok(())
    }

    /// Decodes the content.
    ///
    /// # Errors
    /// Returns [`DataUrlError::Base64`] if it is not padded base64 of the standard alphabet.
    pub fn decode(&self) -> Result<Vec<u8>, DataUrlError> {
        STANDARD.decode(self.data).map_err(|_| DataUrlError::Base64)
    }
}

/// Checks that `url` is a data URL of an image or an `https://` URL, and records a violation at
/// `path` if not.
///
/// It does not check whether an https URL may be fetched.
pub fn check_image_url(path: &Path<'_>, url: &str, found: &mut Violations) {
    if !DataUrl::is_meant(url) {
        let https = url
            .get(..8)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"));
        if !https || url.len() == 8 {
            found.invalid_url(path);
        }
        return;
    }
    match DataUrl::parse(url).and_then(|data| data.check().map(|()| data)) {
        Err(why) => found.invalid(path, format!("Invalid Data URL in '{path}': {why}.")),
        Ok(data) if data.image_type().is_none() => {
            found.invalid(
                path,
                format!(
                    "Invalid Data URL in '{path}': expected one of {}.",
                    IMAGE_TYPES.join(", ")
                ),
            );
        }
        Ok(_) => {}
    }
}

/// Returns the registered name of a media type of images that the text protocols accept, in any case
/// and with any parameters. `None` for every other type.
///
/// ```
/// use sluicegate_wire::image_type;
///
/// assert_eq!(image_type("image/jpg"), Some("image/jpeg"));
/// assert_eq!(image_type("Image/PNG; charset=binary"), Some("image/png"));
/// assert_eq!(image_type("image/tiff"), None);
/// ```
#[must_use]
pub fn image_type(written: &str) -> Option<&'static str> {
    let essence = written.split(';').next().unwrap_or_default().trim();
    let mut known = IMAGE_TYPES.into_iter().map(|name| (name, name));
    let is_meant = |(name, _): &(&str, _)| name.eq_ignore_ascii_case(essence);
    let found = known
        .find(is_meant)
        .or_else(|| UNREGISTERED.into_iter().find(is_meant));
    found.map(|(_, registered)| registered)
}

/// Image media types accepted by the text protocols.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];
/// Names that are not registered, but that many programs send and vendors accept, with the names
/// that are (<https://www.iana.org/assignments/media-types/media-types.xhtml#image>).
const UNREGISTERED: [(&str, &str); 1] = [("image/jpg", "image/jpeg")];

fn strip_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_at_checked(5)?;
    scheme.eq_ignore_ascii_case("data:").then_some(rest)
}

/// Number of characters that `check` decodes at a time; a multiple of 4.
const BLOCK: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    /// Text that is not a base64 data URL is rejected with the specific reason.
    #[test]
    fn i05_each_kind_of_invalid_data_url_has_its_own_error() {
        let wrong = |text| DataUrl::parse(text).unwrap_err();
        assert_eq!(wrong("https://a.example/x.png"), DataUrlError::Scheme);
        assert_eq!(wrong("dat"), DataUrlError::Scheme);
        assert_eq!(wrong("data:image/png,abc"), DataUrlError::Coding);
        assert_eq!(wrong("data:image/png;base64"), DataUrlError::Coding);
        assert_eq!(
            wrong("data:image/png;base64;a=b,aGk="),
            DataUrlError::Coding
        );
        assert_eq!(wrong("data:base64,aGk="), DataUrlError::Coding);
        assert_eq!(wrong("data:image/png;base64,"), DataUrlError::Empty);
        assert_eq!(wrong("d\u{e4}ta:x;base64,aGk="), DataUrlError::Scheme);
    }

    #[test]
    fn an_image_is_known_by_the_names_that_programs_send() {
        let registered = |text| DataUrl::parse(text).unwrap().image_type();
        for (text, expected) in [
            ("data:image/jpg;base64,aGk=", Some("image/jpeg")),
            ("data:image/JPG;base64,aGk=", Some("image/jpeg")),
            ("data:IMAGE/PNG;BASE64,aGk=", Some("image/png")),
            (
                "data:image/webp;name=a.webp;base64,aGk=",
                Some("image/webp"),
            ),
            (
                "data:image/gif;charset=utf-8;a=b;base64,aGk=",
                Some("image/gif"),
            ),
            ("data:image/jpgx;base64,aGk=", None),
            ("data:image/tiff;base64,aGk=", None),
            ("data:text/plain;base64,aGk=", None),
            ("data:;base64,aGk=", None),
        ] {
            assert_eq!(registered(text), expected, "{text}");
        }
    }

    /// Base64 with another alphabet, wrong padding or a wrong length is rejected by `check` and
    /// `decode` alike.
    #[test]
    fn i04_check_agrees_with_decode() {
        let long = "QUJD".repeat(3000);
        let early = format!("{}QQ=={}", "QUJD".repeat(1023), "QUJD".repeat(10));
        for data in [
            "aGk=", "aGk", "aG k=", "aGk-", "====", "a", "AA==", "AB==", &long, &early,
        ] {
            let url = DataUrl {
                media_type: "image/png",
                data,
            };
            assert_eq!(
                url.check().is_ok(),
                url.decode().is_ok(),
                "{}",
                &data[..data.len().min(20)]
            );
        }
    }
}
