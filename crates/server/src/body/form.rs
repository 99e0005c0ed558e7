//! Reading a multipart form of pictures within bounds of size, time and memory (wire-reference §4.2).
//!
//! multer takes the form apart. What it leaves open is closed here: it would take in all that is ready before it looks
//! at it, and it searches the head of a part without a bound.

mod pace;

use std::error::Error;
use std::fmt;

use bytes::Bytes;
use futures_util::Stream;
use http_body::Body;
use images::{Edit, Form, PartKind};
use multer::{Constraints, Field, Multipart, SizeLimit};
use wire::{ApiError, ErrorKind};

use self::pace::Pace;
use super::pieces::Pieces;
use super::upload::Incoming;
use crate::config::Limits;
use crate::refusal::Refusal;

/// The boundary that a media type of a form names.
///
/// # Errors
/// 400 when there is none, or one that RFC 2046 §5.1.1 does not allow.
pub(crate) fn boundary(content_type: &str) -> Result<String, Refusal> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "'()+_,-./:=? ".contains(c);
    multer::parse_boundary(content_type)
        .ok()
        .filter(|boundary| (1..=MAX_BOUNDARY).contains(&boundary.len()) && boundary.chars().all(is_allowed))
        .ok_or_else(|| damaged("its Content-Type needs a boundary of 1 to 70 characters"))
}

/// Reads a form as the edit that it asks for.
///
/// # Errors
/// As [`Incoming::piece`]; 413 for a part that is too large, 400 for a form that is damaged or no edit.
pub(crate) async fn read<B>(boundary: String, mut incoming: Incoming<B>, limits: &Limits) -> Result<Edit, Refusal>
where
    B: Body<Data = Bytes, Error: Error> + Send,
{
    let form = parts(boundary, &mut incoming, limits).await?;
    // What follows the last boundary is nobody's, but until the body has ended nobody sees the client leave.
    let mut epilogue = 0;
    while let Some(piece) = incoming.piece().await? {
        epilogue += piece.len();
        if epilogue > MAX_EPILOGUE {
            return Err(damaged(&format!("more than {MAX_EPILOGUE} bytes follow its last boundary")));
        }
    }
    form.finish().map_err(|found| ApiError::from(found).into())
}

async fn parts<B>(boundary: String, incoming: &mut Incoming<B>, limits: &Limits) -> Result<Form, Refusal>
where
    B: Body<Data = Bytes, Error: Error> + Send,
{
    let pace = Pace::default();
    let limit = SizeLimit::new().per_field(limits.picture.as_u64());
    let constraints = Constraints::new().size_limit(limit);
    let mut parts = Multipart::with_constraints(feed(incoming, pace.clone()), boundary, constraints);
    let mut form = Form::default();
    for _ in 0..=MAX_PARTS {
        pace.begin_head();
        let Some(field) = parts.next_field().await.map_err(refuse)? else { return Ok(form) };
        pace.end_head();
        check_head(&field)?;
        take(field, &mut form, &pace).await?;
    }
    Err(damaged(&format!("it has more than {MAX_PARTS} parts")))
}

/// Refuses a head that is too large though it came in few pieces, which are not counted.
fn check_head(field: &Field<'_>) -> Result<(), Refusal> {
    let headers = field.headers();
    let size: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    match (size > pace::MAX_HEAD, headers.len() > MAX_HEADERS) {
        (true, _) => Err(damaged("the head of a part is too long")),
        (_, true) => Err(damaged(&format!("a part has more than {MAX_HEADERS} headers"))),
        _ => Ok(()),
    }
}

async fn take(field: Field<'_>, form: &mut Form, pace: &Pace) -> Result<(), Refusal> {
    let name = field.name().map(str::to_owned).ok_or_else(|| damaged("a part has no name"))?;
    match images::part(&name, field.file_name().is_some()) {
        PartKind::Text => {
            let bytes = gather(field, MAX_TEXT, pace).await?;
            let text = std::str::from_utf8(&bytes);
            form.text(&name, text.map_err(|_| damaged(&format!("its part '{name}' is not UTF-8")))?);
        }
        PartKind::Picture => form.picture(&name, gather(field, usize::MAX, pace).await?),
        PartKind::Ignored => skip(field, pace).await?,
    }
    Ok(())
}

async fn gather(mut field: Field<'_>, limit: usize, pace: &Pace) -> Result<Bytes, Refusal> {
    let mut pieces = Pieces::default();
    while let Some(piece) = chunk(&mut field, pace).await? {
        if piece.len() > limit.saturating_sub(pieces.len()) {
            return Err(too_large(field.name()));
        }
        pieces.push(piece);
    }
    Ok(pieces.join())
}

async fn skip(mut field: Field<'_>, pace: &Pace) -> Result<(), Refusal> {
    while chunk(&mut field, pace).await?.is_some() {}
    Ok(())
}

async fn chunk(field: &mut Field<'_>, pace: &Pace) -> Result<Option<Bytes>, Refusal> {
    pace.hold();
    field.chunk().await.map_err(refuse)
}

/// The body as multer takes it: the next piece when it has made nothing of what it has.
fn feed<B>(incoming: &mut Incoming<B>, pace: Pace) -> impl Stream<Item = Result<Bytes, Broken>>
where
    B: Body<Data = Bytes, Error: Error> + Send,
{
    futures_util::stream::unfold((incoming, pace), |(incoming, pace)| async move {
        pace.wanted().await;
        let piece = match pace.check_head() {
            Ok(()) => incoming.piece().await,
            Err(refusal) => Err(refusal),
        };
        let piece = piece.map_err(Broken).transpose()?;
        if let Ok(piece) = &piece {
            pace.went_by(piece.len());
        }
        Some((piece, (incoming, pace)))
    })
}

/// A body that could not be read, on its way through multer.
#[derive(Debug)]
struct Broken(Refusal);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.error.message)
    }
}

impl Error for Broken {}

fn refuse(error: multer::Error) -> Refusal {
    match error {
        multer::Error::FieldSizeExceeded { field_name, .. } => too_large(field_name.as_deref()),
        multer::Error::StreamReadFailed(cause) => match cause.downcast::<Broken>() {
            Ok(broken) => broken.0,
            Err(_) => Refusal::broken_upload(),
        },
        _ => damaged("it breaks off, or its parts are not as RFC 7578 asks"),
    }
}

fn damaged(why: &str) -> Refusal {
    ApiError::new(ErrorKind::InvalidRequest, "invalid_value", format!("The multipart form cannot be read: {why}."))
        .into()
}

fn too_large(name: Option<&str>) -> Refusal {
    let name = wire::echo(name.unwrap_or("part"));
    let error =
        ApiError::new(ErrorKind::TooLarge, "request_too_large", format!("The part '{name}' is larger than the limit."));
    error.with_param(name).into()
}

/// The longest boundary (RFC 2046 §5.1.1).
const MAX_BOUNDARY: usize = 70;
/// The most headers of a part.
const MAX_HEADERS: usize = 16;
/// The most parts of a form.
const MAX_PARTS: usize = 64;
/// The longest text, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// The most bytes that may come after the last boundary, beside those that came with it.
const MAX_EPILOGUE: usize = 1024;

#[cfg(test)]
mod tests;
