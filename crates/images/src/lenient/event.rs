//! An event of a stream or a plain reply, as views into its JSON.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use wire::lenient::{Count, Members, OpenAi, ReadError, Reported, Text, Tokens};

use super::file::repaired;

/// The content of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Picture<'a> {
    /// The file as base64.
    Base64(Cow<'a, str>),
    /// The file as base64, which the document has in another form.
    Repaired(String),
    /// The address of the file, which is not checked.
    Url(Cow<'a, str>),
}

impl Picture<'_> {
    /// Copies the content, so that it outlives its document.
    #[must_use]
    pub fn into_owned(self) -> Picture<'static> {
        match self {
            Self::Base64(text) => Picture::Base64(text.into_owned().into()),
            Self::Repaired(text) => Picture::Repaired(text),
            Self::Url(text) => Picture::Url(text.into_owned().into()),
        }
    }
}

/// Reads the token counts in the JSON of a `usage` member, if it has any.
#[must_use]
pub fn tokens(usage: &[u8]) -> Option<Tokens> {
    let usage: Reported<OpenAi> = serde_json::from_slice(usage).ok()?;
    usage.tokens()
}

/// Reads the token counts of a plain reply, also of one that
/// [`Reader::reply`](super::Reader::reply) rejects: it has used them all the same.
#[must_use]
pub fn reported_tokens(body: &str) -> Option<Tokens> {
    parse::<Reply<'_>>(body).ok()?.usage.tokens()
}

/// An event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    object: Text<'a>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    b64_json: Text<'a>,
    #[serde(borrow)]
    url: Text<'a>,
    pub(super) partial_image_index: Count,
    pub(super) usage: Reported<OpenAi>,
    #[serde(borrow)]
    pub(super) size: Text<'a>,
    #[serde(borrow)]
    pub(super) quality: Text<'a>,
}

/// A plain reply.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Reply<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    object: Text<'a>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) data: Option<Vec<Members<Image<'a>>>>,
    pub(super) usage: Reported<OpenAi>,
    #[serde(borrow)]
    pub(super) size: Text<'a>,
    #[serde(borrow)]
    pub(super) quality: Text<'a>,
}

/// An image of a plain reply.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Image<'a> {
    #[serde(borrow)]
    b64_json: Text<'a>,
    #[serde(borrow)]
    url: Text<'a>,
}

impl<'a> Event<'a> {
    /// Parses the data of an event, unless it reports an error.
    pub(super) fn read(data: &'a str) -> Result<Self, ReadError> {
        let event: Self = parse(data)?;
        reported(data, event.error, [&event.kind, &event.object])?;
        Ok(event)
    }

    pub(super) fn into_picture(self) -> Result<Picture<'a>, ReadError> {
        picture(self.b64_json, self.url)
    }
}

impl<'a> Reply<'a> {
    /// Parses a reply, unless it reports an error.
    pub(super) fn read(body: &'a str) -> Result<Self, ReadError> {
        let reply: Self = parse(body)?;
        reported(body, reply.error, [&reply.kind, &reply.object])?;
        Ok(reply)
    }
}

impl<'a> Image<'a> {
    pub(super) fn into_picture(self) -> Result<Picture<'a>, ReadError> {
        picture(self.b64_json, self.url)
    }
}

/// Parses a JSON object.
fn parse<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, ReadError> {
    // Types of objects accept arrays as well.
    if !data.trim_ascii_start().starts_with('{') {
        return Err(ReadError::Malformed("not a JSON object".to_owned()));
    }
    serde_json::from_str(data).map_err(|error| ReadError::json(&error))
}

/// Fails if a document reports an error, whatever else it has.
fn reported(
    document: &str,
    error: Option<&RawValue>,
    kinds: [&Text<'_>; 2],
) -> Result<(), ReadError> {
    let has_error = error.is_some_and(|error| !matches!(error.get(), "null" | "false"));
    if has_error || kinds.iter().any(|kind| kind.get() == Some("error")) {
        Err(ReadError::Reported(document.to_owned()))
    } else {
        Ok(())
    }
}

/// The content of an image. Some servers send an empty `b64_json` beside a `url`.
fn picture<'a>(base64: Text<'a>, url: Text<'a>) -> Result<Picture<'a>, ReadError> {
    let is_filled = |text: &Cow<'_, str>| !text.is_empty();
    if let Some(base64) = base64.0.filter(is_filled) {
        return Ok(match repaired(&base64)? {
            Some(repaired) => Picture::Repaired(repaired),
            None => Picture::Base64(base64),
        });
    }
    url.0
        .filter(is_filled)
        .map(Picture::Url)
        .ok_or_else(|| ReadError::Malformed("an image without `b64_json` and `url`".to_owned()))
}
