//! Multipart forms (RFC 7578), in which clients send pictures.

use bytes::Bytes;
use memchr::memmem;

/// A parsed form. Its parts share the memory of one copy of the body.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) parts: Vec<Part>,
}

/// A text field or a file.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) is_file: bool,
    pub(crate) bytes: Bytes,
}

impl Form {
    /// Parses a body of this content type. Returns `None` if it is not a form.
    pub(crate) fn parse(content_type: &str, body: &[u8]) -> Option<Self> {
        if !content_type.to_ascii_lowercase().starts_with("multipart/form-data") {
            return None;
        }
        let boundary = content_type.split_once("boundary=")?.1.split(';').next()?.trim().trim_matches('"');
        let delimiter = format!("\r\n--{boundary}");
        // The first delimiter is at the start of the body, without a preceding line break.
        let body = Bytes::from([b"\r\n", body].concat());
        let starts: Vec<usize> = memmem::find_iter(&body, &delimiter).map(|at| at + delimiter.len()).collect();
        let between = starts.iter().zip(starts.iter().skip(1));
        let parts = between.filter_map(|(start, next)| Part::read(&body.slice(*start..next - delimiter.len())));
        Some(Self { parts: parts.collect() })
    }

    /// The text of the field with this name.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let part = self.parts.iter().find(|part| part.name == name && !part.is_file)?;
        Some(String::from_utf8_lossy(&part.bytes).into_owned())
    }

    /// The files of the fields `name` and `name[]`.
    pub(crate) fn files(&self, name: &str) -> impl Iterator<Item = &Part> {
        let is_named = move |part: &&Part| part.is_file && part.name.split('[').next() == Some(name);
        self.parts.iter().filter(is_named)
    }
}

impl Part {
    /// Parses a part, the bytes between two delimiters.
    fn read(part: &Bytes) -> Option<Self> {
        let end_of_head = memmem::find(part, b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&part[..end_of_head]).into_owned();
        let disposition = head.lines().find(|line| line.to_ascii_lowercase().starts_with("content-disposition"))?;
        Some(Self {
            name: parameter(disposition, "name")?,
            is_file: parameter(disposition, "filename").is_some(),
            bytes: part.slice(end_of_head + 4..),
        })
    }
}

/// The value of a header parameter, without its quotes.
fn parameter(header: &str, name: &str) -> Option<String> {
    header.split(';').find_map(|piece| {
        let (key, value) = piece.trim().split_once('=')?;
        (key == name).then(|| value.trim_matches('"').to_owned())
    })
}
