//! The body of a text request, and as much of its parsed form as exists now.
//!
//! ```text
//!            release                validate again              convert
//!   Bytes ◄─────────── ForRelay ────────────────► Interpreted ─────────► Neutral
//!     │                                                ▲                    │ release,
//!     ├────────────── parse again ─────────────────────┘                    │ last target
//!     └◄────────────────────────────────────────────────────────────────────┘
//! ```

use catalog::Model;
use translate::inbound::Inbound;
use wire::ApiError;

use super::endpoint::{Permissions, RequestCodec};
use crate::exchange::body::upload::Upload;

/// The body of a validated request: its bytes, and at most one parsed form. The parsed forms are
/// boxed, because they are large and move from one future to the next.
pub(super) struct RequestBody<D: RequestCodec> {
    pub(super) upload: Upload,
    form: Form<D>,
}

/// A parsed form of a request.
pub(super) enum Form<D: RequestCodec> {
    /// Bytes only. A target that needs more parses them again.
    Bytes,
    /// The request, valid for an upstream of the same protocol, which interprets it: unknown types
    /// and roles have passed.
    ForRelay(Box<D::Request>),
    /// The request, valid for every target.
    Interpreted(Box<D::Request>),
    /// The request in the neutral model, or the error of its conversion.
    Neutral(Box<Result<Inbound, ApiError>>),
}

impl<D: RequestCodec> RequestBody<D> {
    pub(super) fn new(upload: Upload, form: Form<D>) -> Self {
        Self { upload, form }
    }

    /// Returns the same body without its parsed form.
    pub(super) fn again(&self) -> Self {
        Self::new(self.upload.clone(), Form::Bytes)
    }

    /// Drops the parsed form before a relay waits for its answer, which may take minutes to begin. The
    /// form takes several times the memory of the bytes, and a target that needs it parses them again.
    pub(super) fn release(&mut self) {
        self.form = Form::Bytes;
    }

    /// Returns the request in the neutral model, and keeps a copy of it unless this `is_last` target.
    /// `on_parsed` is called with the request from which the neutral one is made.
    pub(super) fn neutral(
        &mut self,
        model: Option<&Model>,
        is_last: bool,
        on_parsed: impl FnOnce(&D::Request),
    ) -> Result<Inbound, ApiError> {
        let neutral = match std::mem::replace(&mut self.form, Form::Bytes) {
            Form::Neutral(neutral) => *neutral,
            form => {
                let request = self.interpreted(form, model)?;
                on_parsed(&request);
                D::request(request)
            }
        };
        if !is_last {
            self.form = Form::Neutral(Box::new(neutral.clone()));
        }
        neutral
    }

    /// Returns the request as it is valid for every target.
    fn interpreted(&self, form: Form<D>, model: Option<&Model>) -> Result<D::Request, ApiError> {
        let unchecked = match form {
            Form::Interpreted(request) => return Ok(*request),
            Form::ForRelay(request) => D::unchecked(*request),
            Form::Bytes | Form::Neutral(_) => D::read(&self.upload.bytes)?,
        };
        D::validate(unchecked, model, Permissions::default())
    }

    /// Parses the bytes again, as valid for a relay.
    pub(super) fn parsed_again(&self, model: Option<&Model>) -> Result<D::Request, ApiError> {
        let permissions = Permissions {
            unknown_types: true,
            ..Permissions::default()
        };
        D::validate(D::read(&self.upload.bytes)?, model, permissions)
    }
}
