//! Reads the multipart form of an image edit (RFC 7578) within limits of size, time and memory.
//!
//! multer parses the form. This module adds the limits that multer lacks: multer buffers all data
//! that is ready before it parses any of it, and it searches for the end of a part's headers
//! without a limit.

mod pace;

use std::error::Error;
use std::fmt;

use bytes::Bytes;
use config::Limits;
use futures_util::Stream;
use images::{Edit, Form, FormFile, PartKind};
use multer::{Constraints, Field, Multipart, SizeLimit};
use wire::ApiError;

use self::pace::Pace;
use super::pieces::Pieces;
use super::upload::Incoming;
use crate::exchange::refusal::Refusal;

/// Returns the boundary parameter of a form's `Content-Type`, or 400 if it is missing or not
/// allowed by RFC 2046 §5.1.1.
pub(crate) fn boundary(content_type: &str) -> Result<String, Refusal> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "'()+_,-./:=? ".contains(c);
    multer::parse_boundary(content_type)
        .ok()
        .filter(|boundary| {
            (1..=MAX_BOUNDARY).contains(&boundary.len()) && boundary.chars().all(is_allowed)
        })
        .ok_or_else(|| {
            Refusal::malformed_form("its Content-Type needs a boundary of 1 to 70 characters")
        })
}

/// Reads a form as an edit request. Returns the errors of [`Incoming::next_chunk`], 413 for a part
/// that is too large, and 400 for a form that is malformed or not a valid edit.
pub(crate) async fn read(
    boundary: String,
    mut incoming: Incoming,
    limits: &Limits,
) -> Result<Edit, Refusal> {
    let form = parts(boundary, &mut incoming, limits).await?;
    // The bytes after the last boundary mean nothing, but a disconnect is noticed only once the
    // body has been read to its end.
    let mut epilogue = 0;
    while let Some(chunk) = incoming.next_chunk().await? {
        epilogue += chunk.len();
        if epilogue > MAX_EPILOGUE {
            return Err(Refusal::malformed_form(&format!(
                "more than {MAX_EPILOGUE} bytes follow its last boundary"
            )));
        }
    }
    form.finish().map_err(|found| ApiError::from(found).into())
}

async fn parts(
    boundary: String,
    incoming: &mut Incoming,
    limits: &Limits,
) -> Result<Form, Refusal> {
    let pace = Pace::default();
    let limit = SizeLimit::new().per_field(limits.picture.as_u64());
    let constraints = Constraints::new().size_limit(limit);
    let mut parts =
        Multipart::with_constraints(feed(incoming, pace.clone()), boundary, constraints);
    let mut form = Form::default();
    for _ in 0..=MAX_PARTS {
        pace.begin_head();
        let Some(field) = parts.next_field().await.map_err(refuse)? else {
            return Ok(form);
        };
        pace.end_head();
        check_head(&field)?;
        add_part(field, &mut form, &pace).await?;
    }
    Err(Refusal::malformed_form(&format!(
        "it has more than {MAX_PARTS} parts"
    )))
}

/// Refuses part headers over the limits. [`Pace`] does not count the last chunk, so that large
/// headers in few chunks are only noticed here.
fn check_head(field: &Field<'_>) -> Result<(), Refusal> {
    let headers = field.headers();
    let size: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    match (size > pace::MAX_HEAD, headers.len() > MAX_HEADERS) {
        (true, _) => Err(Refusal::malformed_form("the head of a part is too long")),
        (_, true) => Err(Refusal::malformed_form(&format!(
            "a part has more than {MAX_HEADERS} headers"
        ))),
        _ => Ok(()),
    }
}

async fn add_part(field: Field<'_>, form: &mut Form, pace: &Pace) -> Result<(), Refusal> {
    let name = field
        .name()
        .map(str::to_owned)
        .ok_or_else(|| Refusal::malformed_form("a part has no name"))?;
    match images::part(&name, field.file_name().is_some()) {
        PartKind::Text => {
            let bytes = read_part(field, MAX_TEXT, pace).await?;
            let text = std::str::from_utf8(&bytes);
            form.text(
                &name,
                text.map_err(|_| {
                    Refusal::malformed_form(&format!("its part '{name}' is not UTF-8"))
                })?,
            );
        }
        PartKind::Picture => form.picture(&name, read_part(field, usize::MAX, pace).await?),
        PartKind::File => form.file(FormFile {
            filename: field.file_name().unwrap_or_default().to_owned(),
            media_type: field
                .content_type()
                .map_or_else(|| BINARY.to_owned(), ToString::to_string),
            bytes: read_part(field, usize::MAX, pace).await?,
            name,
        }),
    }
    Ok(())
}

async fn read_part(mut field: Field<'_>, limit: usize, pace: &Pace) -> Result<Bytes, Refusal> {
    let mut pieces = Pieces::default();
    while let Some(chunk) = next_chunk(&mut field, pace).await? {
        if chunk.len() > limit.saturating_sub(pieces.len()) {
            return Err(Refusal::part_too_large(field.name()));
        }
        pieces.push(chunk);
    }
    Ok(pieces.join())
}

async fn next_chunk(field: &mut Field<'_>, pace: &Pace) -> Result<Option<Bytes>, Refusal> {
    pace.hold();
    field.chunk().await.map_err(refuse)
}

/// Returns the body as a stream for multer, which yields a chunk only after multer has parsed the
/// previous ones.
fn feed(incoming: &mut Incoming, pace: Pace) -> impl Stream<Item = Result<Bytes, ReadFailure>> {
    futures_util::stream::unfold((incoming, pace), |(incoming, pace)| async move {
        pace.wait_for_parser().await;
        let chunk = match pace.check_head() {
            Ok(()) => incoming.next_chunk().await,
            Err(refusal) => Err(refusal),
        };
        let chunk = chunk.map_err(ReadFailure).transpose()?;
        if let Ok(chunk) = &chunk {
            pace.record(chunk.len());
        }
        Some((chunk, (incoming, pace)))
    })
}

/// The refusal of a body that could not be read, wrapped as an error to pass through multer.
#[derive(Debug)]
struct ReadFailure(Refusal);

impl fmt::Display for ReadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.error.message)
    }
}

impl Error for ReadFailure {}

fn refuse(error: multer::Error) -> Refusal {
    match error {
        multer::Error::FieldSizeExceeded { field_name, .. } => {
            Refusal::part_too_large(field_name.as_deref())
        }
        multer::Error::StreamReadFailed(cause) => match cause.downcast::<ReadFailure>() {
            Ok(failure) => failure.0,
            Err(_) => Refusal::broken_upload(),
        },
        _ => Refusal::malformed_form("it breaks off, or its parts are not as RFC 7578 asks"),
    }
}

/// The media type of a file without one.
const BINARY: &str = "application/octet-stream";
/// The maximum length of a boundary (RFC 2046 §5.1.1).
const MAX_BOUNDARY: usize = 70;
const MAX_HEADERS: usize = 16;
const MAX_PARTS: usize = 64;
/// The maximum length of a text part, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// The maximum number of bytes after the last boundary, not counting those in the same chunk.
const MAX_EPILOGUE: usize = 1024;

#[cfg(test)]
mod tests;
