//! Reading a multipart form of pictures within bounds of size, time and memory (wire-reference §4.2).
//!
//! multer takes the form apart. What it leaves open is closed here: it would take in all that is ready before it looks
//! at it, and it searches the head of a part without a bound.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::Stream;
use http_body::Body;
use images::{Edit, Form, PartKind};
use multer::{Constraints, Field, Multipart, SizeLimit};
use wire::{ApiError, ErrorKind};

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
pub(crate) async fn read<B>(boundary: String, incoming: Incoming<B>, limits: &Limits) -> Result<Edit, Refusal>
where
    B: Body<Data = Bytes> + Send,
{
    let head = Head::default();
    let limit = SizeLimit::new().per_field(limits.picture.as_u64());
    let constraints = Constraints::new().size_limit(limit);
    let mut parts = Multipart::with_constraints(feed(incoming, head.clone()), boundary, constraints);
    let mut form = Form::default();
    for _ in 0..=MAX_PARTS {
        head.begin();
        let Some(field) = parts.next_field().await.map_err(refuse)? else {
            return form.finish().map_err(|found| ApiError::from(found).into());
        };
        head.end();
        take(field, &mut form).await?;
    }
    Err(damaged(&format!("it has more than {MAX_PARTS} parts")))
}

async fn take(field: Field<'_>, form: &mut Form) -> Result<(), Refusal> {
    let name = field.name().map(str::to_owned).ok_or_else(|| damaged("a part has no name"))?;
    match images::part(&name, field.file_name().is_some()) {
        PartKind::Text => {
            let bytes = gather(field, MAX_TEXT).await?;
            let text = std::str::from_utf8(&bytes);
            form.text(&name, text.map_err(|_| damaged(&format!("its part '{name}' is not UTF-8")))?);
        }
        PartKind::Picture => form.picture(&name, gather(field, usize::MAX).await?),
        PartKind::Ignored => skip(field).await?,
    }
    Ok(())
}

async fn gather(mut field: Field<'_>, limit: usize) -> Result<Bytes, Refusal> {
    let mut pieces = Pieces::default();
    while let Some(piece) = field.chunk().await.map_err(refuse)? {
        if piece.len() > limit.saturating_sub(pieces.len()) {
            return Err(too_large(field.name()));
        }
        pieces.push(piece);
    }
    Ok(pieces.join())
}

async fn skip(mut field: Field<'_>) -> Result<(), Refusal> {
    while field.chunk().await.map_err(refuse)?.is_some() {}
    Ok(())
}

/// The body as multer takes it: one piece at a time, with a pause in which it looks at the piece.
fn feed<B>(incoming: Incoming<B>, head: Head) -> impl Stream<Item = Result<Bytes, Broken>>
where
    B: Body<Data = Bytes> + Send,
{
    futures_util::stream::unfold((incoming, head), |(mut incoming, head)| async move {
        tokio::task::yield_now().await;
        let piece = match head.check() {
            Ok(()) => incoming.piece().await,
            Err(refusal) => Err(refusal),
        };
        let piece = piece.map_err(Broken).transpose()?;
        if let Ok(piece) = &piece {
            head.add(piece.len());
        }
        Some((piece, (incoming, head)))
    })
}

/// How many bytes went by while the head of a part was looked for.
#[derive(Clone, Default)]
struct Head(Arc<Seen>);

#[derive(Default)]
struct Seen {
    /// Those that multer has looked at.
    looked_at: AtomicUsize,
    /// The piece after them, which it may not have.
    last: AtomicUsize,
}

impl Head {
    fn begin(&self) {
        self.0.looked_at.store(0, Ordering::Relaxed);
        self.0.last.store(0, Ordering::Relaxed);
    }

    fn end(&self) {
        self.0.looked_at.store(IN_DATA, Ordering::Relaxed);
    }

    fn add(&self, bytes: usize) {
        let last = self.0.last.swap(bytes, Ordering::Relaxed);
        let looked_at = self.0.looked_at.load(Ordering::Relaxed);
        if looked_at != IN_DATA {
            self.0.looked_at.store(looked_at.saturating_add(last).min(IN_DATA - 1), Ordering::Relaxed);
        }
    }

    fn check(&self) -> Result<(), Refusal> {
        match self.0.looked_at.load(Ordering::Relaxed) {
            MAX_HEAD..IN_DATA => Err(damaged("the head of a part is too long, or its boundary never comes")),
            _ => Ok(()),
        }
    }
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
    let name: String = name.unwrap_or("part").chars().take(MAX_ECHO).collect();
    let error =
        ApiError::new(ErrorKind::TooLarge, "request_too_large", format!("The part '{name}' is larger than the limit."));
    error.with_param(name).into()
}

/// So much of a caller's own word is repeated to them.
const MAX_ECHO: usize = 64;
/// The longest boundary (RFC 2046 §5.1.1).
const MAX_BOUNDARY: usize = 70;
/// The most parts of a form.
const MAX_PARTS: usize = 64;
/// The longest text, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// The longest head of a part, its boundary included; the last piece of it is not counted.
const MAX_HEAD: usize = 8 * 1024;
/// No head is being looked for.
const IN_DATA: usize = usize::MAX;

#[cfg(test)]
mod tests;
