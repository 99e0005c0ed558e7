//! Multipart forms (RFC 7578), in which clients send pictures.

use bytes::Bytes;
use memchr::memmem;

/// A text field or a file of a form. The parts of a form share the memory of one copy of the body.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) is_file: bool,
    bytes: Bytes,
}

/// Parses a body of this content type. Returns `None` if it is not a form.
pub(crate) fn parse(content_type: &str, body: &[u8]) -> Option<Vec<Part>> {
    if !content_type
        .to_ascii_lowercase()
        .starts_with("multipart/form-data")
    {
        return None;
    }
    let boundary = content_type
        .split_once("boundary=")?
        .1
        .split(';')
        .next()?
        .trim()
        .trim_matches('"');
    let delimiter = format!("\r\n--{boundary}");
    // The first delimiter is at the start of the body, without a preceding line break.
    let body = Bytes::from([b"\r\n", body].concat());
    let starts: Vec<usize> = memmem::find_iter(&body, &delimiter)
        .map(|at| at + delimiter.len())
        .collect();
    let between = starts.iter().zip(starts.iter().skip(1));
    Some(
        between
            .filter_map(|(start, next)| Part::read(&body.slice(*start..next - delimiter.len())))
            .collect(),
    )
}

impl Part {
    /// Parses a part, the bytes between two delimiters.
    fn read(part: &Bytes) -> Option<Self> {
        let end_of_head = memmem::find(part, b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&part[..end_of_head]).into_owned();
        let disposition = head
            .lines()
            .find(|line| line.to_ascii_lowercase().starts_with("content-disposition"))?;
        Some(Self {
            name: parameter(disposition, "name")?,
            is_file: parameter(disposition, "filename").is_some(),
            bytes: part.slice(end_of_head + 4..),
        })
    }

    /// The content of a text field.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// The value of a header parameter, without its quotes.
fn parameter(header: &str, name: &str) -> Option<String> {
    header.split(';').find_map(|piece| {
        let (key, value) = piece.trim().split_once('=')?;
        (key == name).then(|| value.trim_matches('"').to_owned())
    })
}
